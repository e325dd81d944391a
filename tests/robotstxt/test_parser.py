"""How a robots.txt is split into lines, records and groups, and their values."""

from __future__ import annotations

import pytest

from robotsgate import Origin
from robotsgate.robotstxt import Dialect, RequestRate, RobotsTxt
from robotsgate.robotstxt._parser import (
    absolute_sitemaps,
    crawl_delay_seconds,
    first_lines,
    is_absolute_url,
    is_usable_sitemap,
    request_rate,
    sitemap_urls,
)
from tests.tables import cases

_DIALECTS = pytest.mark.parametrize("dialect", Dialect, ids=lambda one: one.value)

_NOT_WHITE_SPACE = [
    pytest.param(b"\x1c", id="FS"), pytest.param(b"\x1d", id="GS"),
    pytest.param(b"\x1e", id="RS"), pytest.param(b"\x85", id="byte 85"),
    pytest.param(b"\xa0", id="byte A0"), pytest.param(b"\xc2\x85", id="NEL"),
    pytest.param(b"\xc2\xa0", id="no-break space"),
    pytest.param(b"\xe2\x80\xa8", id="line separator"),
]  # fmt: skip


def _groups(body: bytes, *, dialect: Dialect = Dialect.RFC9309) -> list[list[str]]:
    """Each group's tokens."""
    robots = RobotsTxt.parse(body, dialect=dialect)
    return [list(group.tokens) for group in robots.groups]


def _rules(body: bytes, *, dialect: Dialect = Dialect.RFC9309) -> list[str]:
    """The rules of all groups as text, each after its line number."""
    robots = RobotsTxt.parse(body, dialect=dialect)
    return [f"{rule.line} {rule}" for group in robots.groups for rule in group.rules]


@_DIALECTS
@cases("body lines", {
    "LF": (b"User-agent: a\nDisallow: /b", [2]),
    "CR": (b"User-agent: a\rDisallow: /b", [2]),
    "CRLF": (b"User-agent: a\r\nDisallow: /b\r\n", [2]),
    "LF CR are two ends": (b"User-agent: a\n\rDisallow: /b", [3]),
    "CR CRLF are two ends": (b"User-agent: a\r\r\nDisallow: /b", [3]),
    "empty lines": (b"\n\nUser-agent: a\n\n\r\rDisallow: /b", [7]),
    "a mix": (b"User-agent: a\rDisallow: /b\r\nDisallow: /c\nAllow: /d", [2, 3, 4]),
})  # fmt: skip
def test_lines_end_with_cr_lf_or_crlf(
    body: bytes, lines: list[int], dialect: Dialect
) -> None:
    robots = RobotsTxt.parse(body, dialect=dialect)

    (group,) = robots.groups
    assert group.tokens == ("a",)
    assert [rule.line for rule in group.rules] == lines


@_DIALECTS
@pytest.mark.parametrize("octets", _NOT_WHITE_SPACE)
def test_other_bytes_are_not_white_space(octets: bytes, dialect: Dialect) -> None:
    body = b"User-agent: a\n" + octets + b"Disallow: /b\nDisallow: /c" + octets

    (group,) = RobotsTxt.parse(body, dialect=dialect).groups

    assert len(group.rules) == 1
    assert group.rules[0].pattern == "/c" + octets.decode("utf-8", "replace")


@_DIALECTS
@cases("line pattern", {
    "usual spelling": (b"Disallow: /b", "/b"),
    "no space": (b"Disallow:/b", "/b"),
    "white space everywhere": (b"  Disallow\t :\t /b \t", "/b"),
    "any letter case": (b"dIsAlLoW: /b", "/b"),
    "a comment without a space": (b"Disallow: /b#c", "/b"),
    "a comment with a colon": (b"Disallow: /b # c: d", "/b"),
    "a comment instead of a value": (b"Disallow: # /b", ""),
    "no value": (b"Disallow:", ""),
    "a colon in the value": (b"Disallow: /b:c", "/b:c"),
    "two colons": (b"Disallow:: /b", ": /b"),
    "a space in the value": (b"Disallow: /b c", "/b c"),
    "a space after the slash": (b"Disallow: / b", "/ b"),
    "invalid UTF-8": (b"Disallow: /\xff", "/�"),
    "UTF-8": (b"Disallow: /\xc3\xa9", "/é"),
})  # fmt: skip
def test_record_is_field_colon_value_and_comment(
    line: bytes, pattern: str, dialect: Dialect
) -> None:
    (group,) = RobotsTxt.parse(b"User-agent: a\n" + line, dialect=dialect).groups

    assert [rule.pattern for rule in group.rules] == [pattern]


@pytest.mark.parametrize("line", [
    b"# Disallow: /b", b"Dis allow: /b", b": /b", b" : /b", b"/b", b"", b" \t",
    b"x-disallow: /b", b"disallow#: /b", b"disallow/b",
])  # fmt: skip
@_DIALECTS
def test_line_that_is_not_a_rule_is_ignored(line: bytes, dialect: Dialect) -> None:
    body = b"User-agent: a\n" + line + b"\nDisallow: /c"

    assert _rules(body, dialect=dialect) == ["3 Disallow: /c"]


@_DIALECTS
@cases("body groups", {
    "a run": (b"User-agent: a\nUser-agent: b\nDisallow: /", [["a", "b"]]),
    "a rule ends the run":
        (b"User-agent: a\nDisallow: /\nUser-agent: b\nDisallow: /", [["a"], ["b"]]),
    "an empty rule ends the run":
        (b"User-agent: a\nDisallow:\nUser-agent: b", [["a"], ["b"]]),
    "empty lines and comments do not end it":
        (b"User-agent: a\n\n# c\n\nUser-agent: b\nAllow: /", [["a", "b"]]),
    "a sitemap does not end it":
        (b"User-agent: a\nSitemap: http://h/s\nUser-agent: b\nAllow: /", [["a", "b"]]),
    "a crawl-delay does not end it":
        (b"User-agent: a\nCrawl-delay: 5\nUser-agent: b\nAllow: /", [["a", "b"]]),
    "an unknown line does not end it":
        (b"User-agent: a\nfoo: bar\nbaz\nUser-agent: b\nAllow: /", [["a", "b"]]),
    "a rule before all groups":
        (b"Disallow: /\nUser-agent: a\nUser-agent: b", [["a", "b"]]),
    "one token three times":
        (b"User-agent: a\nUser-agent: a\nUser-agent: A/1", [["a", "a", "a"]]),
    "no token": (b"User-agent:\nDisallow: /", [[""]]),
    "any agent": (b"User-agent: *\nAllow: /", [["*"]]),
    "star and a word": (b"User-agent: * x\nAllow: /", [["*"]]),
    "star, tab, a word": (b"User-agent: *\tx\nAllow: /", [["*"]]),
    "star and a letter": (b"User-agent: *x\nAllow: /", [[""]]),
    "a comment": (b"User-agent: a # b\nAllow: /", [["a"]]),
    "no user-agent line": (b"Allow: /", []),
    "nothing": (b"", []),
})  # fmt: skip
def test_group_is_a_run_of_user_agent_lines_and_the_lines_after_it(
    body: bytes, groups: list[list[str]], dialect: Dialect
) -> None:
    assert _groups(body, dialect=dialect) == groups


@cases("body limit kept", {
    "no limit": (b"ab\ncd", None, b"ab\ncd"),
    "exactly the limit": (b"ab\ncd", 5, b"ab\ncd"),
    "only the last line end is beyond it": (b"ab\ncd\n", 5, b"ab\ncd"),
    "CR at the limit": (b"ab\rcd\rx", 5, b"ab\rcd"),
    "the last line is cut": (b"ab\ncd", 4, b"ab\n"),
    "the last line is cut, CR": (b"ab\rcd", 4, b"ab\r"),
    "between CR and LF": (b"ab\r\ncd", 3, b"ab\r"),
    "right after a line end": (b"ab\ncd", 3, b"ab\n"),
    "one line, cut": (b"abcd", 3, b""),
    "a limit of 0": (b"abcd", 0, b""),
    "a limit of 0 before a line end": (b"\nabcd", 0, b""),
    "an empty body": (b"", 0, b""),
})  # fmt: skip
def test_only_whole_lines_within_the_limit_are_read(
    body: bytes, limit: int | None, kept: bytes
) -> None:
    """RFC 9309 §2.5."""
    assert first_lines(body, limit) == kept


def test_rule_cut_by_the_limit_is_ignored() -> None:
    """Cut to "Disallow: /", it would block the whole site."""
    body = b"User-agent: a\nAllow: /a\nDisallow: /private"

    robots = RobotsTxt.parse(body, max_bytes=len(body) - len("private"))

    assert robots.can_fetch("a", "/private")
    assert [str(rule) for rule in robots.groups[0].rules] == ["Allow: /a"]


def test_default_limit_is_500_kibibytes() -> None:
    start, end = b"User-agent: a\n", b"\nDisallow: /b"
    comment = b"#" * (512_000 - len(start) - len(end))

    whole = RobotsTxt.parse(start + comment + end)
    cut = RobotsTxt.parse(start + comment + b"#" + end)

    assert not whole.can_fetch("a", "/b")
    assert cut.can_fetch("a", "/b")


@pytest.mark.parametrize("octet", [b"\x0b", b"\x0c"])
def test_vertical_space_is_white_space_for_google_only(octet: bytes) -> None:
    body = b"User-agent: a\n" + octet + b"Disallow:" + octet + b"/b" + octet

    assert _rules(body, dialect=Dialect.GOOGLE) == ["2 Disallow: /b"]
    assert _rules(body) == []


@pytest.mark.parametrize(("value", "seconds"), [
    ("10", 10.0), ("0", 0.0), ("0.5", 0.5), (".5", 0.5), ("5.", 5.0), ("007", 7.0),
    ("", None), (".", None), ("-1", None), ("+1", None), ("1e3", None), ("inf", None),
    ("nan", None), ("1_0", None), ("1,5", None), ("1.2.3", None), ("10s", 10.0),
    ("1.5M", 90.0), ("1h", 3600.0), ("1d", 86400.0), ("s", None), ("10 s", None),
    ("10ss", None), ("1 0", None), ("\xb2", None), ("0x10", None),
    pytest.param("9" * 400, None, id="too large for a float"),
    pytest.param("9" * 5000, None, id="more digits than int accepts"),
])  # fmt: skip
def test_crawl_delay_is_a_plain_finite_number_with_an_optional_unit(
    value: str, seconds: float | None
) -> None:
    assert crawl_delay_seconds(value) == seconds


@pytest.mark.parametrize(("value", "expected"), [
    ("1/5", (1, 5.0)), ("1/10s", (1, 10.0)), ("30/1m", (30, 60.0)),
    ("9000/1d", (9000, 86400.0)), ("1m/5", None), ("1/2H", (1, 7200.0)),
    ("2/0.5", (2, 0.5)), ("1/5 0600-0845", (1, 5.0)), ("1.0/5", (1, 5.0)), ("", None),
    ("5", None), ("1/", None), ("/5", None), ("1/0", None), ("0/5", None),
    ("1/s", None), ("1.5/5", None), ("-1/5", None), ("1/-5", None), ("1/5x", None),
    ("1/5/2", None), ("a/b", None), ("inf/5", None), ("1/inf", None),
    pytest.param("1/" + "9" * 400, None, id="a period too large for a float"),
    pytest.param("1/" + "9" * 308 + "h", None, id="too large with its unit"),
])  # fmt: skip
def test_request_rate_is_a_number_of_requests_per_period(
    value: str, expected: tuple[int, float] | None
) -> None:
    rate = expected and RequestRate(requests=expected[0], seconds=expected[1])

    assert request_rate(value) == rate


@pytest.mark.parametrize(("value", "is_absolute"), [
    ("https://example.com/sitemap.xml", True), ("HTTP://example.com/s.xml", True),
    ("ftp://example.com/s.xml", True), ("/sitemap.xml", False), ("sitemap.xml", False),
    ("//example.com/s.xml", False), ("https://", False),
    ("gopher://example.com/s.xml", False), ("mailto:me@example.com", False),
    ("", False),
])  # fmt: skip
def test_sitemap_is_an_absolute_url(value: str, *, is_absolute: bool) -> None:
    assert is_absolute_url(value) is is_absolute


A, B = "https://a.example/1.xml", "http://b.example/2.xml"


@cases("value urls", {
    "one URL": (A, [A]),
    "a space between two": (f"{A} {B}", [A, B]),
    "spaces and tabs": (f"{A} \t {B}", [A, B]),
    "a comma": (f"{A},{B}", [A, B]),
    "a comma and a space": (f"{A} , {B}, ftp://c.example/3", [A, B, "ftp://c.example/3"]),
    "schemes in capitals": (f"{A.upper()} HTTP://b", [A.upper(), "HTTP://b"]),
    "a broken second URL": (f"{A} https://[::1/s", [A, "https://[::1/s"]),
    "words after the URL": (f"{A} for all", [f"{A} for all"]),
    "a space in a path": ("https://a.example/my map", ["https://a.example/my map"]),
    "a comma in a query": (f"{A}?x=1,2", [f"{A}?x=1,2"]),
    "a URL in a query": (f"{A}?u={B}", [f"{A}?u={B}"]),
    "a relative URL first": (f"/s.xml {B}", [f"/s.xml {B}"]),
    "a scheme twice": ("https://https://a.example", ["https://https://a.example"]),
    "nothing": ("", [""]),
})  # fmt: skip
def test_several_urls_on_a_line_each_begin_with_a_scheme(
    value: str, urls: list[str]
) -> None:
    assert sitemap_urls(value) == urls


def test_a_long_run_of_commas_is_split_in_linear_time() -> None:
    """Scanning the run from each of its commas would take minutes."""
    assert len(sitemap_urls(f"{A}{',' * 500_000}x")) == 1


@cases("url is_usable", {
    "a host with a dot": (A, True),
    "another host": ("http://cdn.example/s.xml", True),
    "an IPv4 address": ("http://127.0.0.1:8000/s.xml", True),
    "an IPv4 number": ("http://2130706433/s.xml", True),
    "an IPv6 address": ("http://[::1]/s.xml", True),
    "the origin's own host": ("http://intranet:8080/s.xml", True),
    "its own host, absolute": ("https://INTRANET./s.xml", True),
    "an international host": ("https://b\u00fccher.example/s.xml", True),
    "user and password": ("https://me:pw@a.example/s.xml", True),
    "FTP": ("ftp://a.example/s.xml", True),
    "a space in a path": ("https://a.example/my sitemap.xml", True),
    "a bracket that is not closed": ("https://[::1/s.xml", False),
    "a port above 65,535": ("https://a.example:99999/s.xml", False),
    "a port that is a word": ("https://a.example:port/s.xml", False),
    "a port of 5,000 digits": (f"https://a.example:{'9' * 5_000}/s.xml", False),
    "a superscript port": ("https://a.example:8\u00b2/s.xml", False),
    "a space in a host": ("https://a example.com/s.xml", False),
    "a space before a host": ("https:// a.example/s.xml", False),
    "a scheme twice": ("https://https://a.example/s.xml", False),
    "another host without a dot": ("https://localhost/s.xml", False),
    "a top-level domain": ("https://example./s.xml", False),
    "a wildcard": ("https://*/s.xml", False),
    "no host": ("https:///s.xml", False),
    "a backslash": ("https://a.example\\s.xml", False),
    "a relative URL": ("/s.xml", False),
    "another scheme": ("file://a.example/s.xml", False),
    "nothing": ("", False),
})  # fmt: skip
def test_sitemap_is_usable_if_its_host_could_exist(
    url: str, *, is_usable: bool
) -> None:
    """Crawlers ended at the others (scrapy#2390)."""
    assert is_usable_sitemap(url, Origin.from_url("http://intranet/")) is is_usable


def test_host_without_a_dot_is_not_usable_if_the_origin_is_unknown() -> None:
    assert not is_usable_sitemap("http://intranet/s.xml")


def test_sitemaps_are_separated_resolved_and_filtered() -> None:
    values = ["/a.xml", f"{A} {B}", "//cdn.example/c.xml", A, "https://[::1/s.xml"]

    assert absolute_sitemaps(values, Origin.from_url("https://a.example")) == (
        "https://a.example/a.xml", A, B, "https://cdn.example/c.xml",
    )  # fmt: skip
