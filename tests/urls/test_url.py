"""The origin of a URL, the readings of its path, and where redirects lead."""

from __future__ import annotations

import re
from contextlib import suppress
from itertools import product

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotsgate import Origin
from robotsgate.errors import InvalidURLError
from robotsgate.urls._url import (
    RedirectError,
    next_hop,
    readings,
    resolved,
    split_url,
    without_userinfo,
)
from tests.tables import cases
from tests.urls.browsers import check


@cases("url key", {
    "upper case": ("HTTP://EXAMPLE.com/", "http://example.com"),
    "http's port": ("http://example.com:80", "http://example.com"),
    "https's port": ("https://example.com:443", "https://example.com"),
    "ftp's port": ("ftp://example.com:21", "ftp://example.com"),
    "another scheme's port": ("http://h:443", "http://h:443"),
    "a WebSocket": ("ws://h:80/chat", "http://h"),
    "a WebSocket over TLS": ("WSS://h:443/chat", "https://h"),
    "empty port": ("http://h:", "http://h"),
    "zeros before the port": ("http://h:00080", "http://h"),
    "highest port": ("http://h:65535", "http://h:65535"),
    "lowest port": ("http://h:1", "http://h:1"),
    "userinfo is dropped": ("http://user:pw@h/", "http://h"),
    "the last at-sign counts": ("http://a@b@h/", "http://h"),
    "fragment is dropped": ("http://h#f", "http://h"),
    "query without a path": ("http://h?q", "http://h"),
    "white space around it": ("  http://h \n", "http://h"),
    "tabs and line ends inside": ("ht\ttp://a\nb/", "http://ab"),
    "a final dot is dropped": ("http://h./", "http://h"),
    "a final dot from another script, too": ("http://h\uff0e:81/", "http://h:81"),
    "backslashes after the first slash": ("http://h/\\a?\\#\\", "http://h"),
    "escaped ASCII": ("http://ex%41mple.com", "http://example.com"),
    "escapes": ("http://b%C3%BCcher.example", "http://xn--bcher-kva.example"),
    "upper case IDN": ("http://BÜCHER.example", "http://xn--bcher-kva.example"),
    "non-transitional IDN": ("http://faß.de", "http://xn--fa-hia.de"),
    "dots from other scripts": ("http://a。b\uff0ec", "http://a.b.c"),
    "full-width digits": ("http://\uff11\uff12\uff17.1", "http://127.0.0.1"),
    "underscore": ("http://a_b/", "http://a_b"),
    "IPv4 with two parts": ("http://127.1/", "http://127.0.0.1"),
    "IPv4 with one part": ("http://2130706433/", "http://127.0.0.1"),
    "IPv4 in hexadecimal": ("http://0x7f.0.0.1/", "http://127.0.0.1"),
    "IPv4 in octal": ("http://0177.0.0.1/", "http://127.0.0.1"),
    "IPv4 as a bare 0x": ("http://0x/", "http://0.0.0.0"),
    "IPv4 with many zeros": (f"http://0x{'0' * 80}7f000001/", "http://127.0.0.1"),
    "IPv4 with many octal zeros": (f"http://{'0' * 80}17700000001/", "http://127.0.0.1"),
    "IPv4 with a final dot": ("http://1.2.3.4./", "http://1.2.3.4"),
    "IPv6": ("http://[::1]/", "http://[::1]"),
    "IPv6 and a port": ("http://[::1]:8080/", "http://[::1]:8080"),
    "long IPv6": ("http://[2001:DB8:0:0::1]", "http://[2001:db8::1]"),
    "IPv4 in IPv6": ("http://[::ffff:1.2.3.4]", "http://[::ffff:102:304]"),
    "IPv4 at the end of IPv6": ("http://[::1.2.3.4]", "http://[::102:304]"),
})  # fmt: skip
def test_origin_has_one_spelling(url: str, key: str) -> None:
    origin = Origin.from_url(url)

    assert str(origin) == key
    assert Origin.from_url(str(origin)) == origin
    assert origin.robots_url == f"{key}/robots.txt"


@pytest.mark.parametrize(("url", "target"), [
    ("http://h", "/"), ("http://h/", "/"), ("http://h?q", "/?q"), ("http://h/?", "/?"),
    ("http://h?q/a", "/?q/a"), ("http://h#f/a", "/"), ("http://h?q\\a", "/?q\\a"),
    ("http://h#f", "/"), ("http://h/a/../b?c=/../d#e", "/a/../b?c=/../d"),
    ("http://h/a\\b?c\\d", "/a\\b?c\\d"), ("http://h//a", "//a"),
    ("http://h/a?b?c#d?e", "/a?b?c"), ("http://h/a\n b\t ", "/a b"),
])  # fmt: skip
def test_target_is_path_and_query(url: str, target: str) -> None:
    assert split_url(url)[1] == target


def test_url_object_from_a_client_is_accepted() -> None:
    assert str(Origin.from_url(httpx.URL("https://EXAMPLE.com:443/a"))) == (
        "https://example.com"
    )


@cases("url expected shown", {
    "empty": ("", "absolute URL", "''"),
    "path": ("/page", "absolute URL", "'/page'"),
    "relative": ("page.html", "absolute URL", "'page.html'"),
    "without a scheme": ("//h/page", "absolute URL", "'//h/page'"),
    "empty scheme": ("://h", "absolute URL", "'://h'"),
    "digit first": ("1http://h", "absolute URL", "'1http://h'"),
    "odd scheme": ("ht_tp://h", "absolute URL", "'ht_tp://h'"),
    "an agent": ("ExampleBot", "absolute URL", "'ExampleBot'"),
    "another scheme": ("gopher://h/", "an http, https, ws", "'gopher://h/'"),
    "a scheme without hosts":
        ("mailto:me@h", "an http, https, ws", "'mailto:<hidden>@h'"),
    "host:port": ("localhost:80", "an http, https, ws", "'localhost:80'"),
    "no slashes": ("http:h", "// and a host after http:", "'http:h'"),
    "one slash": ("https:/h", "// and a host after https:", "'https:/h'"),
    "no host": ("http://", "a host", "'http://'"),
    "empty host": ("http:///a", "a host", "'http:///a'"),
    "port alone": ("http://:80/", "a host", "'http://:80/'"),
    "a dot alone": ("http://./", "a host", "'http://./'"),
    "two dots": ("http://h../", "a host", "'http://h../'"),
    "IPv4 and two dots": ("http://1.2.3.4../", "a host", "'http://1.2.3.4../'"),
    "backslashes for slashes":
        ("http:\\\\h/", "// and a host after http:", r"'http:\\\\h/'"),
    "one of each": ("http:/\\h/", "// and a host after http:", r"'http:/\\h/'"),
    "a backslash in the host":
        ("http://a.test\\x.b.test/", "no backslash", r"'http://a.test\\x.b.test/'"),
    "a backslash before an at-sign": ("http://a\\@h/", "no backslash", "'http://<hidden>@h/'"),
    "a backslash for the first slash":
        ("http://h\\a", "no backslash before the path", r"'http://h\\a'"),
    "query alone": ("http://?q", "a host", "'http://?q'"),
    "a host mapped to nothing": ("http://\xad/", "a host", r"'http://\xad/'"),
    "port above the range":
        ("http://h:65536", "a port from 1 to 65535", "'http://h:65536'"),
    "port 0": ("http://h:0", "a port from 1 to 65535", "'http://h:0'"),
    "port with many digits":
        ("http://h:" + "9" * 5000, "a port from 1 to 65535", "'http://h:9"),
    "letters in the port": ("http://h:8x", "a numeric port", "'http://h:8x'"),
    "negative port": ("http://h:-1", "a numeric port", "'http://h:-1'"),
    "port in digits from another script":
        ("http://h:\u0663", "a numeric port", "'http://h:\u0663'"),
    "space in the host": ("http://a b/", "a host without ' '", "'http://a b/'"),
    "angle bracket in the host": ("http://a<b/", "a host without '<'", "'http://a<b/'"),
    "percent sign in the host": ("http://a%b/", "a host without '%'", "'http://a%b/'"),
    "escaped slash in the host": ("http://a%2fb/", "a host without '/'", "'http://a%2fb/'"),
    "two colons": ("http://a:b:80/", "a host without ':'", "'http://a:b:80/'"),
    "a letter that maps to a slash":
        ("http://\u2100/", "a host without '/'", "'http://\u2100/'"),
    "escapes that are not UTF-8": ("http://a%ff/", "", "'http://a%ff/'"),
    "a lone surrogate": ("http://\ud800/", "", r"'http://\ud800/'"),
    "a code point that IDNA forbids":
        ("http://\U000e0080.x/", "IDNA can map", "'http://"),
    "IPv4 with five parts":
        ("http://1.2.3.4.5/", "an IPv4 address", "'http://1.2.3.4.5/'"),
    "IPv4 part above 255":
        ("http://256.1.1.1/", "an IPv4 address", "'http://256.1.1.1/'"),
    "last IPv4 part above its range":
        ("http://1.2.3.256/", "an IPv4 address", "'http://1.2.3.256/'"),
    "IPv4 above its range":
        ("http://4294967296/", "an IPv4 address", "'http://4294967296/'"),
    "a name that ends in a number": ("http://a.1/", "an IPv4 address", "'http://a.1/'"),
    "IPv4 with an empty part": ("http://1..2/", "an IPv4 address", "'http://1..2/'"),
    "not an octal number": ("http://1.08/", "an IPv4 address", "'http://1.08/'"),
    "IPv4 with many digits": ("http://" + "1" * 65, "an IPv4 address", "'http://111"),
    "open bracket": ("http://[::1", "']' after the IPv6 address", "'http://[::1'"),
    "empty brackets": ("http://[]/", "an IPv6 address", "'http://[]/'"),
    "IPv4 in brackets": ("http://[1.2.3.4]/", "an IPv6 address", "'http://[1.2.3.4]/'"),
    "IPv6 with a zone":
        ("http://[fe80::1%25eth0]/", "without a zone", "'http://[fe80::1%25eth0]/'"),
    "rubbish after the bracket":
        ("http://[::1]x/", "an IPv6 address", "'http://[::1]x/'"),
    "bytes": (b"http://h/", "the URL to be a str, got b'http", "http://h/"),
    "None": (None, "absolute URL", "got None"),
    "a number": (7, "absolute URL", "got 7"),
})  # fmt: skip
def test_url_without_an_origin_raises_an_error_that_quotes_it(
    url: object, expected: str, shown: str
) -> None:
    with pytest.raises(InvalidURLError) as caught:
        Origin.from_url(url)

    message = str(caught.value)
    assert re.search(f"expected .*{re.escape(expected)}", message) or not expected
    assert shown in message
    assert caught.value.url is url


@pytest.mark.parametrize("host", ["0x0x7f", "1.0x0x1", "00o17", "1.00O1"])
def test_host_that_only_python_reads_as_a_number_stays_a_name(host: str) -> None:
    """`int(text, base)` accepts another 0x or 0o; to WHATWG, this is a name."""
    assert Origin.from_url(f"http://{host}/").host == host.lower()


@pytest.mark.parametrize("url", [
    "http://user:secret@h:99999/", "http://user:secret@/", "http://user:secret@[::1/",
    "gopher://user:secret@h/", "//user:secret@h/", "user:secret@h/page",
    "http:user:secret@h/", "http:/user:secret@h/", "http:///user:secret@h/",
    "http:\\\\user:secret@h:99999/", "http:\\/user:secret@h:99999/",
    "\thttp://user:secret@h:99999/", "http://a@b:secret@h:99999/",
    "secret:@h/", "secret:x@h/page", b"http://user:secret@h/",
])  # fmt: skip
def test_error_never_shows_a_password(url: object) -> None:
    with pytest.raises(InvalidURLError) as caught:
        Origin.from_url(url)

    assert "secret" not in str(caught.value)
    assert caught.value.url is url


@cases("text shown", {
    "nothing to hide": ("https://h/a", "https://h/a"),
    "a scheme": ("FTPS://u:p@h/", "FTPS://<hidden>@h/"),
    "a scheme without slashes": ("mailto:me@h", "mailto:<hidden>@h"),
    "no scheme": ("u@h", "<hidden>@h"),
    "a user name that could be a scheme": ("Key:@h", "<hidden>@h"),
    "one slash": ("https:/u:p@h", "https:/<hidden>@h"),
    "slashes alone": ("//u:p@h", "//<hidden>@h"),
    "white space before it": (" \nhttp://u:p@h", " \nhttp://<hidden>@h"),
    "several at-signs and a line end": ("http://u:p@\n@q@h", "http://<hidden>@h"),
    "a list": ("['http://u:p@h']", "<hidden>@h']"),
})  # fmt: skip
def test_everything_before_an_at_sign_is_hidden_except_the_scheme(
    text: str, shown: str
) -> None:
    assert without_userinfo(text) == shown


@cases("text question", {
    "localhost and a port": ("localhost:8000/x", "http://localhost:8000/x?"),
    "localhost": ("LocalHost", "http://LocalHost?"),
    "a name": ("example.com/x", "https://example.com/x?"),
    "a name and a port": ("example.com:8080/x", "https://example.com:8080/x?"),
    "a name in another script": ("bücher.example", "https://bücher.example?"),
    "an IPv4 address": ("127.0.0.1:80/x", "http://127.0.0.1:80/x?"),
    "an IPv6 address": ("[::1]:80/x", "http://[::1]:80/x?"),
    "a single label": ("page", None),
    "a path": ("/a.html", None),
    "a relative path": ("../a.html", None),
    "another scheme": ("tel:1.5", None),
    "an e-mail address": ("me@example.com", None),
    "a control character": ("example.com/\x1b[2J", None),
    "an agent": ("ExampleBot/1.0", None),
    "a number": ("7", None),
})  # fmt: skip
def test_error_suggests_the_scheme_that_a_url_lacks(
    text: str, question: str | None
) -> None:
    with pytest.raises(InvalidURLError) as caught:
        Origin.from_url(text)

    _, _, suggested = str(caught.value).partition("; did you mean ")
    assert suggested == (question or "")


def test_hiding_in_a_long_text_takes_no_longer_than_reading_it() -> None:
    """A pattern that backtracks would take hours."""
    text = "/" * 1_000_000

    assert without_userinfo(text) == text


def test_label_longer_than_any_name_server_accepts_raises() -> None:
    """Encoding it used to take quadratic time: 100 s for 16,000 letters."""
    label = "".join(chr(0x4E00 + number * 7_919 % 20_000) for number in range(1_000))

    with pytest.raises(InvalidURLError):
        Origin.from_url(f"http://{label}/")


@cases("host", {
    "a label": ("\u00fc" * 64,),
    "a name": (".".join(["a" * 63] * 13),),
})  # fmt: skip
def test_international_host_too_long_for_dns_raises(host: str) -> None:
    with pytest.raises(InvalidURLError, match="short enough for DNS"):
        Origin.from_url(f"https://{host}/")


_PARTS = (
    "http://", "https://", "ftp://", "HTTP:", ":", "://", "//", "/", "\\", "\\\\", "@",
    "[", "]", "a", "b.c", "EXAMPLE.com", "xn--", "xn--bcher-kva", "xn--zca", ".", "..",
    "。", "\uff0e", "1", "0", "127.1", "0x7f", "0x", "08", "256", "65535", "65536",
    "443", "00080", "é", "ß", "bücher", "ﬀ", "İ", "\u017f", "\u212a", "\u200d", "\xad",
    "℀", "\uff0f", "\uff1a", "\uff20", "\uff11", "٣", "%41", "%", "%2e", "%00",
    "%zz", "%c3%a9", "%40", "80",
    "%2f", "%3a", "\t", "\n", "\r", " ", "\0", "\x7f", "\xa0", "?", "#", "a?b", "/..",
    "/p/../q", "/.", "/%2e%2e/", "-", "_", "~", "!", "$", "&", "(", "*", "+", ",", ";",
    "=", "|", "^", "`", "{", "}", '"', "<", ">", "\U0001f41f", "\u0627", "ab\u0300",
    "x\u0323\u0307", "::1", "1::", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8", "u:p@", "1.2.3",
    "1.2.3.4", "4294967295", "0xffffffff", "037777777777", "0b1", "0o7", "1_0",
)  # fmt: skip


@given(st.lists(st.sampled_from(_PARTS), max_size=7).map("".join))
def test_origin_of_odd_text_is_the_same_as_in_browsers(text: str) -> None:
    check(text)
    check(f"http://{text}")


@given(st.text(max_size=8), st.text(max_size=8))
def test_origin_of_any_text_is_the_same_as_in_browsers(host: str, path: str) -> None:
    check(f"https://{host}/{path}")


_BYTES = (
    "0", "9", "10", "99", "100", "199", "200", "249", "250", "255", "256", "260", "300",
    "1000", "00", "01", "08", "0377", "0x7f", "1a", "", "\uff11",
)  # fmt: skip
_HOSTS = (
    *(f"{byte}.1.2.3" for byte in _BYTES), *(f"1.2.{byte}.3" for byte in _BYTES),
    *(f"1.2.3.{byte}" for byte in _BYTES), "1.2", "1.2.3", "1.2.3.4.", "1.2.3.4.5",
    "1.2.3.x", "a", "a.", "a.b-c_d", "A.b", "a..b", ".a", "a.0", "a.0b", "a.0xb",
    "xn--zca", "bücher", "%61", "a%2eb", "[::1]", "@a", "u:7@a", "u@1.2.3.4", "a\\b",
)  # fmt: skip
_PORTS_AND_PATHS = (
    "/", ":/", ":0/", ":1/", ":9/", ":10/", ":080/", ":80/", ":443/", ":00443/",
    ":9999/", ":10000/", ":59999/", ":60000/", ":65535/", ":65536/", ":99999/",
    ":100000/", ":1_0/", ":+1/", ":\u0663/", ":8x/", ":80:80/", ":80./", ":80@a/",
    ":80", "/#a", "?a/", ":80?a/", "\\a/",
)  # fmt: skip


@pytest.mark.parametrize("start", ["http://", "https://", "ftp://"])
def test_usual_origin_is_the_same_as_in_an_unusual_url(start: str) -> None:
    """White space before a URL is dropped, but no usual URL has any."""

    def split(url: str) -> object:
        try:
            origin, target = split_url(url)
        except InvalidURLError:
            return None
        return str(origin), origin, target

    for host, rest in product(_HOSTS, _PORTS_AND_PATHS):
        url = f"{start}{host}{rest}"
        assert split(url) == split(f" {url}"), url


@pytest.mark.parametrize(("path", "expected"), [
    ("/a/b", "/a/b"), ("/a/./b", "/a/b"), ("/a/../b", "/b"), ("/a/b/..", "/a/"),
    ("/a/b/.", "/a/b/"), ("/..", "/"), ("/.", "/"), ("/../../a", "/a"),
    ("/a//../b", "/a/b"), ("/...", "/..."), ("/.a/..b", "/.a/..b"), ("//..//", "//"),
    ("/a/%2e%2E/b", "/b"), ("/a/.%2e", "/"), ("/a/%2e", "/a/"),
    ("/a/b/%2e%2e/../c", "/c"), ("/%2ea/%2e.b", "/%2ea/%2e.b"),
])  # fmt: skip
def test_dot_segments_are_removed(path: str, expected: str) -> None:
    """RFC 3986 §5.2.4."""
    assert resolved(path) == expected


@cases("target others", {
    "no dots": ("/a/b?c", set()),
    "dots in names": ("/.a/b../...?/../", set()),
    "empty segments": ("//a///", set()),
    "an escaped dot in a name": ("/a%2Ehtml", set()),
    "an escaped slash": ("/a%2F..%5C..", set()),
    "dots in the query": ("/a?b=/../\\c%2e", set()),
    "a literal dot": ("/a/./b", {"/a/b"}),
    "at the end": ("/a/..?q", {"/?q"}),
    "escaped": ("/a/%2e%2E/b", {"/b"}),
    "half escaped": ("/a/.%2e/b", {"/b"}),
    "literal and escaped": ("/a/../b/%2e%2e/c?d", {"/b/%2e%2e/c?d", "/c?d"}),
    "a literal one removes an escaped one":
        ("/a/%2e%2e/../b", {"/b", "/a/b"}),
    "a backslash": ("/a\\b", {"/a/b", "/a%5Cb"}),
    "a backslash before dots":
        ("/a\\../b", {"/a/../b", "/b", "/a%5C../b"}),
    "a server reads backslashes as slashes after a client resolved dots":
        ("/a/b\\c/../d\\e", {
            "/a/b/d/e", "/a/b/c/../d/e", "/a/d/e", "/a/d\\e", "/a/d%5Ce",
            "/a/b%5Cc/../d%5Ce",
        }),
})  # fmt: skip
def test_target_has_these_readings(target: str, others: set[str]) -> None:
    first, *rest = readings(target)

    assert first == target
    assert set(rest) == others
    assert len(rest) == len(others)


URL = "http://example.com:8080/robots.txt"


def target(*locations: str, url: str = URL, status: int = 301) -> str | None:
    hop = next_hop(url, status, locations)
    if hop is None:
        return None
    origin, target = hop
    assert target.startswith(f"{origin}/")
    return target


TARGETS = {
    "an absolute path": ("/other.txt", "http://example.com:8080/other.txt"),
    "a relative path": ("other.txt", "http://example.com:8080/other.txt"),
    "a relative path with dots": ("./../a/x", "http://example.com:8080/a/x"),
    "only a query": ("?a=1", "http://example.com:8080/robots.txt?a=1"),
    "a path with a query": ("/a?b=/c", "http://example.com:8080/a?b=/c"),
    "another host": ("http://www.example.com/", "http://www.example.com/"),
    "another host without a path": ("http://www.example.com", "http://www.example.com/"),
    "another host with only a query": ("http://b.com?q", "http://b.com/?q"),
    "another port": ("http://example.com:81/x", "http://example.com:81/x"),
    "the default port, dropped": ("http://example.com:80/", "http://example.com/"),
    "https": ("https://example.com/robots.txt", "https://example.com/robots.txt"),
    "the default port of https": ("https://example.com:443/", "https://example.com/"),
    "no scheme": ("//b.com/robots.txt", "http://b.com/robots.txt"),
    "a scheme in capitals": ("HTTPS://B.com/X", "https://b.com/X"),
    "a host in capitals": ("http://B.COM/X", "http://b.com/X"),
    "an international host": ("http://bücher.de/", "http://xn--bcher-kva.de/"),
    "an IPv6 address": ("http://[0:0::1]:81/x", "http://[::1]:81/x"),
    "a number as an address": ("http://2130706433/", "http://127.0.0.1/"),
    "userinfo, dropped": ("http://user:secret@b.com/x", "http://b.com/x"),
    "userinfo without a scheme": ("//user:secret@b.com/x", "http://b.com/x"),
    "a doubled slash in a path": ("a//b", "http://example.com:8080/a//b"),
    "a doubled slash after the root": ("/a//b", "http://example.com:8080/a//b"),
    "a final semicolon": ("/a;", "http://example.com:8080/a;"),
    "three slashes": ("///b.com/x", "http://b.com/x"),
    "backslashes": ("\\\\b.com\\x?\\", "http://b.com/x?\\"),
    "its own scheme without slashes": ("http:x", "http://example.com:8080/x"),
    "another scheme without slashes": ("https:b.com/x", "https://b.com/x"),
    "another scheme with one slash": ("https:/b.com/x", "https://b.com/x"),
    "a path that looks like a scheme": ("./a:b", "http://example.com:8080/a:b"),
    "a fragment, dropped": ("/x#y", "http://example.com:8080/x"),
    "only a fragment": ("#y", URL),
    "spaces around it": ("  /x \t", "http://example.com:8080/x"),
    "a character beyond ASCII": ("/é", "http://example.com:8080/%C3%A9"),
    "the same URL": (URL, URL),
    "the longest Location":
        ("/" + "x" * 16_383, "http://example.com:8080/" + "x" * 16_383),
}  # fmt: skip

UNUSABLE = {
    "no Location": ([], "without a Location"),
    "Locations that differ": (["/a", "/b", "/a"], "2 different Location headers"),
    "an empty Location": ([""], "without a Location"),
    "a Location that is too long": (["/" + "x" * 16_384], "16385 characters"),
    "ftp": (["ftp://example.com/robots.txt"], "to the scheme 'ftp'"),
    "file": (["file:///etc/passwd"], "to the scheme 'file'"),
    "a WebSocket": (["ws://example.com/robots.txt"], "to the scheme 'ws'"),
    "an unknown scheme": (["gopher://example.com/"], "to the scheme 'gopher'"),
    "port 0": (["http://example.com:0/"], "invalid Location"),
    "a host with a space": (["http://a b.com/"], "invalid Location"),
}


@cases("location expected", TARGETS)
def test_redirect_leads_to_target(location: str, expected: str) -> None:
    assert target(location) == expected


@cases("locations message", UNUSABLE)
def test_unusable_location_raises(locations: list[str], message: str) -> None:
    with pytest.raises(RedirectError, match=message):
        target(*locations)


def test_same_location_twice_is_followed() -> None:
    assert target("/a", "/a") == "http://example.com:8080/a"


def test_every_3xx_except_304_redirects() -> None:
    """RFC 9110 §15.4, including statuses that are not understood."""
    followed = [one for one in range(100, 1_000) if target("/a", status=one)]

    assert followed == [one for one in range(300, 400) if one != 304]


@pytest.mark.parametrize("base", ["https://example.com/robots.txt", URL])
def test_location_without_a_scheme_keeps_the_scheme_of_the_base_url(base: str) -> None:
    expected = f"{base.partition(':')[0]}://b.com/x"

    assert target("//b.com/x", url=base) == expected


@pytest.mark.parametrize(
    "location", ["http://user:secret@example.com:0/", "ftp://user:secret@example.com/"]
)
def test_password_in_a_location_is_not_shown(location: str) -> None:
    with pytest.raises(RedirectError) as caught:
        target(location)

    assert "secret" not in str(caught.value)


def test_redirect_target_is_always_a_url_that_httpx_accepts() -> None:
    """httpx rejects control characters, which must not look like a dead host."""
    for octet in (*range(0x20), 0x7F):
        with suppress(RedirectError):
            httpx.Request("GET", target(f"/a{chr(octet)}b") or "")
