"""Which robots.txt is responsible for a URL, and which URLs name none."""

from __future__ import annotations

import re
from random import Random

import can_ada
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotsgate import Origin
from robotsgate.errors import InvalidURLError, RobotsError
from robotsgate.robotstxt._rfc9309 import normalised_target
from robotsgate.urls._origin import split_url
from tests.robotstxt.strategies import steady

_PORTS = {"http:": 80, "https:": 443, "ftp:": 21}


@pytest.mark.parametrize(
    ("robots_url", "url", "is_responsible"),
    [
        ("http://example.com/robots.txt", "http://example.com/", True),
        ("http://example.com/robots.txt", "http://example.com/folder/file", True),
        ("http://example.com/robots.txt", "http://other.example.com/", False),
        ("http://example.com/robots.txt", "https://example.com/", False),
        ("http://example.com/robots.txt", "http://example.com:8181/", False),
        ("http://www.example.com/robots.txt", "http://www.example.com/", True),
        ("http://www.example.com/robots.txt", "http://example.com/", False),
        ("http://www.example.com/robots.txt", "http://shop.www.example.com/", False),
        ("http://www.example.com/robots.txt", "http://www.shop.example.com/", False),
        ("https://www.müller.eu/robots.txt", "https://www.müller.eu/", True),
        ("https://www.müller.eu/robots.txt", "https://www.xn--mller-kva.eu/", True),
        ("https://www.müller.eu/robots.txt", "https://www.muller.eu/", False),
        ("ftp://example.com/robots.txt", "ftp://example.com/", True),
        ("ftp://example.com/robots.txt", "http://example.com/", False),
        ("http://212.96.82.21/robots.txt", "http://212.96.82.21/", True),
        ("http://212.96.82.21/robots.txt", "http://example.com/", False),
        ("http://example.com:80/robots.txt", "http://example.com:80/", True),
        ("http://example.com:80/robots.txt", "http://example.com/", True),
        ("http://example.com:80/robots.txt", "https://example.com/", False),
        ("http://example.com:80/robots.txt", "http://example.com:81/", False),
        ("https://example.com:443/robots.txt", "https://example.com:443/", True),
        ("https://example.com:443/robots.txt", "https://example.com/", True),
        ("http://example.com:443/robots.txt", "https://example.com/", False),
        ("http://example.com:443/robots.txt", "http://example.com/", False),
        ("http://example.com:8181/robots.txt", "http://example.com:8181/", True),
        ("http://example.com:8181/robots.txt", "http://example.com/", False),
    ],
)
def test_robots_txt_is_responsible_for_its_own_origin_only(
    robots_url: str, url: str, *, is_responsible: bool
) -> None:
    """The location examples of Google's specification."""
    is_same = Origin.from_url(url) == Origin.from_url(robots_url)

    assert is_same is is_responsible


@pytest.mark.parametrize(
    ("url", "key"),
    [
        pytest.param("HTTP://EXAMPLE.com/", "http://example.com", id="upper case"),
        pytest.param("http://example.com:80", "http://example.com", id="http's port"),
        pytest.param("https://example.com:443", "https://example.com", id="https's"),
        pytest.param("ftp://example.com:21", "ftp://example.com", id="ftp's port"),
        pytest.param("http://h:443", "http://h:443", id="another scheme's port"),
        pytest.param("http://h:", "http://h", id="empty port"),
        pytest.param("http://h:00080", "http://h", id="zeros before the port"),
        pytest.param("http://h:65535", "http://h:65535", id="highest port"),
        pytest.param("http://h:1", "http://h:1", id="lowest port"),
        pytest.param("http://user:pw@h/", "http://h", id="userinfo is dropped"),
        pytest.param("http://a@b@h/", "http://h", id="the last at-sign counts"),
        pytest.param("http://h#f", "http://h", id="fragment is dropped"),
        pytest.param("http://h?q", "http://h", id="query without a path"),
        pytest.param("  http://h \n", "http://h", id="white space around it"),
        pytest.param("ht\ttp://a\nb/", "http://ab", id="tabs and line ends inside"),
        pytest.param("http:\\\\h\\a", "http://h", id="backslashes are slashes"),
        pytest.param(
            "http://example.com\\@evil.com/", "http://example.com", id="backslash, at"
        ),
        pytest.param("http://h./", "http://h.", id="a final dot is another host"),
        pytest.param("http://ex%41mple.com", "http://example.com", id="escaped ASCII"),
        pytest.param(
            "http://b%C3%BCcher.example", "http://xn--bcher-kva.example", id="escapes"
        ),
        pytest.param(
            "http://BÜCHER.example", "http://xn--bcher-kva.example", id="upper case IDN"
        ),
        pytest.param("http://faß.de", "http://xn--fa-hia.de", id="non-transitional"),
        pytest.param("http://a。b\uff0ec", "http://a.b.c", id="dots of other scripts"),
        pytest.param(
            "http://\uff11\uff12\uff17.1", "http://127.0.0.1", id="wide digits"
        ),
        pytest.param("http://a_b/", "http://a_b", id="underscore"),
        pytest.param("http://127.1/", "http://127.0.0.1", id="IPv4 of two parts"),
        pytest.param("http://2130706433/", "http://127.0.0.1", id="IPv4 of one part"),
        pytest.param(
            "http://0x7f.0.0.1/", "http://127.0.0.1", id="IPv4 in hexadecimal"
        ),
        pytest.param("http://0177.0.0.1/", "http://127.0.0.1", id="IPv4 in octal"),
        pytest.param("http://0x/", "http://0.0.0.0", id="IPv4 of a bare 0x"),
        pytest.param(
            f"http://0x{'0' * 80}7f000001/", "http://127.0.0.1", id="IPv4 of many zeros"
        ),
        pytest.param(
            f"http://{'0' * 80}17700000001/", "http://127.0.0.1", id="many octal zeros"
        ),
        pytest.param("http://1.2.3.4./", "http://1.2.3.4", id="IPv4 with a final dot"),
        pytest.param("http://[::1]/", "http://[::1]", id="IPv6"),
        pytest.param("http://[::1]:8080/", "http://[::1]:8080", id="IPv6 and a port"),
        pytest.param(
            "http://[2001:DB8:0:0::1]", "http://[2001:db8::1]", id="long IPv6"
        ),
        pytest.param(
            "http://[::ffff:1.2.3.4]", "http://[::ffff:102:304]", id="IPv4 in IPv6"
        ),
        pytest.param("http://[::1.2.3.4]", "http://[::102:304]", id="IPv4 at its end"),
    ],
)
def test_origin_is_written_in_one_way(url: str, key: str) -> None:
    origin = Origin.from_url(url)

    assert str(origin) == key
    assert Origin.from_url(str(origin)) == origin
    assert origin.robots_url == f"{key}/robots.txt"


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://h", "/"),
        ("http://h/", "/"),
        ("http://h?q", "/?q"),
        ("http://h/?", "/?"),
        ("http://h#f", "/"),
        ("http://h/a/../b?c=/../d#e", "/b?c=/../d"),
        ("http://h/a\\b?c\\d", "/a/b?c\\d"),
        ("http://h//a", "//a"),
        ("http://h/a?b?c#d?e", "/a?b?c"),
        ("http://h/a\n b\t ", "/a b"),
    ],
)
def test_target_is_path_and_query(url: str, target: str) -> None:
    assert split_url(url)[1] == target


def test_url_object_of_a_client_is_taken() -> None:
    assert str(Origin.from_url(httpx.URL("https://EXAMPLE.com:443/a"))) == (
        "https://example.com"
    )


def test_origin_is_a_key() -> None:
    first, second = (Origin.from_url(url) for url in ("http://h/a", "http://H:80/b"))

    assert {first: 1}[second] == 1


@pytest.mark.parametrize(
    ("url", "expected", "shown"),
    [
        pytest.param("", "absolute URL", "''", id="empty"),
        pytest.param("/page", "absolute URL", "'/page'", id="path"),
        pytest.param("page.html", "absolute URL", "'page.html'", id="relative"),
        pytest.param("//h/page", "absolute URL", "'//h/page'", id="without a scheme"),
        pytest.param("://h", "absolute URL", "'://h'", id="empty scheme"),
        pytest.param("1http://h", "absolute URL", "'1http://h'", id="digit first"),
        pytest.param("ht_tp://h", "absolute URL", "'ht_tp://h'", id="odd scheme"),
        pytest.param("ExampleBot", "absolute URL", "'ExampleBot'", id="an agent"),
        pytest.param("gopher://h/", "the scheme http, https or ftp", "'gopher://h/'",
                     id="another scheme"),
        pytest.param("mailto:me", "the scheme http, https or ftp", "'mailto:me'",
                     id="no host scheme"),
        pytest.param(
            "localhost:80", "the scheme http", "'localhost:80'",
            id="host:port",
        ),
        pytest.param(
            "http:h", "// and a host after http:", "'http:h'",
            id="no slashes",
        ),
        pytest.param("https:/h", "// and a host after https:", "'https:/h'",
                     id="one slash"),
        pytest.param("http://", "a host", "'http://'", id="no host"),
        pytest.param("http:///a", "a host", "'http:///a'", id="empty host"),
        pytest.param("http://:80/", "a host", "'http://:80/'", id="port alone"),
        pytest.param("http://?q", "a host", "'http://?q'", id="query alone"),
        pytest.param(
            "http://\xad/", "a host", r"'http://\xad/'",
            id="mapped to nothing",
        ),
        pytest.param("http://h:65536", "a port from 1 to 65535", "'http://h:65536'",
                     id="port above the range"),
        pytest.param(
            "http://h:0", "a port from 1 to 65535", "'http://h:0'",
            id="port 0",
        ),
        pytest.param("http://h:" + "9" * 5000, "a port from 1 to 65535", "'http://h:9",
                     id="port of many digits"),
        pytest.param("http://h:8x", "a port of digits", "'http://h:8x'", id="letters"),
        pytest.param("http://h:-1", "a port of digits", "'http://h:-1'", id="negative"),
        pytest.param("http://h:\u0663", "a port of digits", "'http://h:\u0663'",
                     id="digits of another script"),
        pytest.param("http://a b/", "a host without ' '", "'http://a b/'", id="space"),
        pytest.param(
            "http://a<b/", "a host without '<'", "'http://a<b/'",
            id="bracket",
        ),
        pytest.param(
            "http://a%b/", "a host without '%'", "'http://a%b/'",
            id="percent",
        ),
        pytest.param("http://a%2fb/", "a host without '/'", "'http://a%2fb/'",
                     id="escaped slash"),
        pytest.param("http://a:b:80/", "a host without ':'", "'http://a:b:80/'",
                     id="two colons"),
        pytest.param("http://\u2100/", "a host without '/'", "'http://\u2100/'",
                     id="a letter that maps to a slash"),
        pytest.param(
            "http://a%ff/", "", "'http://a%ff/'",
            id="escapes that are no UTF-8",
        ),
        pytest.param("http://\ud800/", "", r"'http://\ud800/'", id="a lone surrogate"),
        pytest.param("http://\U000e0080.x/", "IDNA can map", "'http://",
                     id="a code point that IDNA forbids"),
        pytest.param("http://1.2.3.4.5/", "an IPv4 address", "'http://1.2.3.4.5/'",
                     id="IPv4 of five parts"),
        pytest.param("http://256.1.1.1/", "an IPv4 address", "'http://256.1.1.1/'",
                     id="IPv4 part above 255"),
        pytest.param("http://1.2.3.256/", "an IPv4 address", "'http://1.2.3.256/'",
                     id="last IPv4 part above its range"),
        pytest.param("http://4294967296/", "an IPv4 address", "'http://4294967296/'",
                     id="IPv4 above its range"),
        pytest.param("http://a.1/", "an IPv4 address", "'http://a.1/'",
                     id="a name that ends in a number"),
        pytest.param("http://1..2/", "an IPv4 address", "'http://1..2/'",
                     id="IPv4 with an empty part"),
        pytest.param("http://1.08/", "an IPv4 address", "'http://1.08/'",
                     id="no octal number"),
        pytest.param("http://" + "1" * 65, "an IPv4 address", "'http://111",
                     id="IPv4 of many digits"),
        pytest.param(
            "http://[::1", "an IPv6 address", "'http://[::1'",
            id="open bracket",
        ),
        pytest.param(
            "http://[]/", "an IPv6 address", "'http://[]/'",
            id="empty brackets",
        ),
        pytest.param("http://[1.2.3.4]/", "an IPv6 address", "'http://[1.2.3.4]/'",
                     id="IPv4 in brackets"),
        pytest.param("http://[fe80::1%25eth0]/", "without a zone",
                     "'http://[fe80::1%25eth0]/'", id="IPv6 with a zone"),
        pytest.param("http://[::1]x/", "an IPv6 address", "'http://[::1]x/'",
                     id="rubbish behind the bracket"),
        pytest.param(b"http://h/", "a URL as str, got bytes", "http://h/", id="bytes"),
        pytest.param(None, "absolute URL", "'None'", id="None"),
        pytest.param(7, "absolute URL", "'7'", id="a number"),
    ],
)  # fmt: skip
def test_url_without_an_origin_raises_an_error_that_names_it(
    url: object, expected: str, shown: str
) -> None:
    with pytest.raises(InvalidURLError) as caught:
        Origin.from_url(url)

    message = str(caught.value)
    assert re.search(f"expected .*{re.escape(expected)}", message) or not expected
    assert shown in message
    assert caught.value.url is url


@pytest.mark.parametrize("host", ["0x0x7f", "1.0x0x1", "00o17", "1.00O1"])
def test_host_with_a_prefix_of_python_stays_a_name(host: str) -> None:
    """`int(text, base)` takes another 0x or 0o; WHATWG sees a name, not a number."""
    assert Origin.from_url(f"http://{host}/").host == host.lower()


@pytest.mark.parametrize(
    "url",
    [
        "http://user:secret@h:99999/",
        "http://user:secret@/",
        "http://user:secret@[::1/",
        "gopher://user:secret@h/",
        "//user:secret@h/",
        "user:secret@h/page",
        "http:user:secret@h/",
        "http:/user:secret@h/",
        "http:///user:secret@h/",
        "http:\\\\user:secret@h:99999/",
        "http:\\/user:secret@h:99999/",
        "\thttp://user:secret@h:99999/",
        "http://a@b:secret@h:99999/",
        b"http://user:secret@h/",
    ],
)
def test_error_never_shows_a_password(url: object) -> None:
    with pytest.raises(InvalidURLError) as caught:
        Origin.from_url(url)

    assert "secret" not in str(caught.value)
    assert caught.value.url is url


def test_error_shows_what_is_behind_the_userinfo() -> None:
    with pytest.raises(InvalidURLError, match=re.escape("got '…@h:99999/a'")):
        Origin.from_url("http://user:pw@h:99999/a")


def test_label_longer_than_any_name_server_takes_raises() -> None:
    """Encoding it took time with the square of its length: 100 s for 16,000 letters."""
    label = "".join(chr(0x4E00 + number * 7_919 % 20_000) for number in range(1_000))

    with pytest.raises(InvalidURLError):
        Origin.from_url(f"http://{label}/")


@pytest.mark.parametrize(
    "host",
    [
        pytest.param("\u00fc" * 64, id="a label"),
        pytest.param(".".join(["a" * 63] * 13), id="a name"),
    ],
)
def test_international_host_that_dns_has_no_room_for_raises(host: str) -> None:
    with pytest.raises(InvalidURLError, match="fits into DNS"):
        Origin.from_url(f"https://{host}/")


def test_error_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="expected") as caught:
        Origin.from_url("/page")

    assert isinstance(caught.value, RobotsError)


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


def _agrees_with_browsers(url: str) -> bool:
    """Whether what robotsgate makes of `url`, if anything, is what WHATWG says."""
    try:
        origin, target = split_url(url)
    except InvalidURLError:
        return True
    try:
        parsed = can_ada.parse(url)
    except ValueError:
        # Names that IDNA refuses are let through: no DNS server knows them.
        return "xn--" in origin.host
    port = int(parsed.port or _PORTS[parsed.protocol])
    path = "/" + parsed.href.split("/", 3)[3].partition("#")[0]
    return (
        (f"{origin.scheme}:", origin.host, origin.port)
        == (parsed.protocol, parsed.hostname, port)
    ) and normalised_target(target) == normalised_target(path)


@steady(500)
@given(st.lists(st.sampled_from(_PARTS), max_size=7).map("".join))
def test_origin_of_odd_text_is_that_of_browsers(text: str) -> None:
    assert _agrees_with_browsers(text)
    assert _agrees_with_browsers(f"http://{text}")


# IDNA's tables changed for the capital sharp s ("ss" before Unicode 15.1).
_LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="'\u1e9e")


@steady(500)
@given(st.text(_LETTERS, max_size=8), st.text(_LETTERS, max_size=8))
def test_origin_of_any_text_is_that_of_browsers(host: str, path: str) -> None:
    assert _agrees_with_browsers(f"https://{host}/{path}")


def test_origins_of_many_odd_urls_are_those_of_browsers() -> None:
    chance = Random(1)  # noqa: S311 (reproducible, no secret)

    for _ in range(10_000):
        count = chance.choice((1, 2, 2, 3, 4, 6))
        url = "http://" + "".join(chance.choices(_PARTS, k=count))
        assert _agrees_with_browsers(url), url
