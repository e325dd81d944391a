"""`Dialect.GOOGLE` gives the same answer as Google's own matcher for any input."""

from __future__ import annotations

import pytest

from robotsgate.robotstxt import Dialect, RobotsTxt
from robotsgate.robotstxt._dialect import GOOGLE
from robotsgate.urls._url import split_url
from tests.tables import cases

pytest.importorskip(
    "jwm.robotstxt", reason="Google's own matcher has wheels up to Python 3.12 only"
)

from tests.robotstxt.google_fuzz import (
    case,
    differences,
    google_allows,
)

_LIMIT = 16_663


def _padded(length: int, start: str, end: str) -> str:
    """A line of `length` bytes, padded with spaces before `end`."""
    return start + " " * (length - len(start) - len(end)) + end


@cases("body agent url is_allowed", {
    "disalow": ("user-agent: a\ndisalow: /", "a", "/", False),
    "dissallow": ("user-agent: a\ndissallow: /", "a", "/", False),
    "dissalow": ("user-agent: a\ndissalow: /", "a", "/", False),
    "diasllow": ("user-agent: a\ndiasllow: /", "a", "/", False),
    "disallaw": ("user-agent: a\ndisallaw: /", "a", "/", False),
    "dissallaw": ("user-agent: a\ndissallaw: /", "a", "/", True),
    "a longer key": ("user-agent: a\ndisallowed: /", "a", "/", False),
    "useragent": ("useragent: a\ndisallow: /", "a", "/", False),
    "user agent": ("user agent: a\ndisallow: /", "a", "/", False),
    "user-agents": ("user-agents: a\ndisallow: /", "a", "/", False),
    "no colon": ("user-agent a\ndisallow /", "a", "/", False),
    "tabs instead of colons": ("user-agent\ta\ndisallow \t /", "a", "/", False),
    "three words": ("user-agent: a\ndisallow / x", "a", "/", True),
    "three words, agent": ("user agent a\ndisallow: /", "a", "/", True),
    "VT does not separate words": ("user-agent: a\ndisallow\x0b/", "a", "/", True),
    "no key": ("user-agent: a\n: /\ndisallow:/", "a", "/", False),
    "index.html of a folder matches the folder":
        ("user-agent: a\nallow: /x/index.html\ndisallow: /", "a", "/x/", True),
    "index.htm matches the root":
        ("user-agent: a\nallow: /index.htm\ndisallow: /", "a", "/", True),
    "index.html matches nothing else":
        ("user-agent: a\nallow: /index.html\ndisallow: /", "a", "/x", False),
    "index.html still matches itself":
        ("user-agent: a\nallow: /index.html\ndisallow: /", "a", "/index.html", True),
    "index.html must be the last segment":
        ("user-agent: a\nallow: /index.html/x\ndisallow: /", "a", "/", False),
    "a disallowed index.html matches only itself":
        ("user-agent: a\ndisallow: /index.html", "a", "/", True),
    "digits are cut off": ("user-agent: a1\ndisallow: /", "a", "/", False),
    "digits never match": ("user-agent: a1\ndisallow: /", "a1", "/", True),
    "dots are cut off": ("user-agent: a.b\ndisallow: /", "a", "/", False),
    "_ and -": ("user-agent: a_-b\ndisallow: /", "A_-B", "/", False),
    "no token, no agent": ("user-agent: 1\ndisallow: /", "", "/", False),
    "empty agent": ("user-agent: *\ndisallow: /", "", "/", False),
    "star as agent": ("user-agent: *\ndisallow: /", "*", "/", False),
    "a whole header": ("user-agent: a\ndisallow: /", "a/1.0", "/", True),
    "star and a word": ("user-agent: * x\ndisallow: /", "b", "/", False),
    "star and VT": ("user-agent: *\x0bx\ndisallow: /", "b", "/", False),
    "star and a letter": ("user-agent: *x\ndisallow: /", "b", "/", True),
    "a line of the maximum length":
        (f"user-agent: a\n{_padded(_LIMIT, 'disallow:', '/b')}", "a", "/a", True),
    "a line that is one byte too long": (
        f"user-agent: a\n{_padded(_LIMIT + 1, 'disallow:', '/b')}", "a", "/a",
        False
    ),
    "a line whose value is cut off": (
        f"user-agent: a\n{_padded(_LIMIT + 2, 'disallow:', '/b')}", "a", "/a", True
    ),
    "the line after a cut one": (
        f"user-agent: a\n{_padded(_LIMIT + 9, 'x:', '')}\ndisallow: /", "a", "/",
        False
    ),
    "NUL cuts a line": ("user-agent: a\ndisallow: /a\0b", "a", "/ac", False),
    "NUL in the URL": ("user-agent: a\ndisallow: /a", "a", "/a\0b", False),
    "NUL cuts a URL": ("user-agent: a\ndisallow: /a$", "a", "/a\0b", False),
    "NUL in the agent": ("user-agent: a\0b\ndisallow: /", "a", "/", False),
    "%41 does not match A": ("user-agent: a\ndisallow: /%41", "a", "/A", True),
    "A does not match %41": ("user-agent: a\ndisallow: /A", "a", "/%41", True),
    "%aa matches %AA": ("user-agent: a\ndisallow: /%aa", "a", "/%AA", False),
    "%aa does not match %aa": ("user-agent: a\ndisallow: /%aa", "a", "/%aa", True),
    "é encoded": ("user-agent: a\ndisallow: /é", "a", "/%C3%A9", False),
    "é in the URL": ("user-agent: a\ndisallow: /é", "a", "/é", True),
    "space": ("user-agent: a\ndisallow: /a b", "a", "/a%20b", True),
    "robots.txt is not implied":
        ("user-agent: *\ndisallow: /", "a", "/robots.txt", False),
    "dots": ("user-agent: a\ndisallow: /a/../b", "a", "/a/../b", False),
    "a URL": ("user-agent: a\ndisallow: /b", "a", "http://h/b", False),
    "no scheme": ("user-agent: a\ndisallow: /b", "a", "h/b", False),
    "two slashes": ("user-agent: a\ndisallow: /b", "a", "//h/b", False),
    "three slashes": ("user-agent: a\ndisallow: /b", "a", "///b", False),
    "no slash": ("user-agent: a\ndisallow: /b", "a", "b", True),
    "no URL": ("user-agent: a\ndisallow: /$", "a", "", False),
    "query": ("user-agent: a\ndisallow: /?q", "a", "http://h?q", False),
    "params": ("user-agent: a\ndisallow: /;p", "a", "http://h;p", False),
    "fragment": ("user-agent: a\ndisallow: /$", "a", "http://h#/b", False),
    "path and fragment": ("user-agent: a\ndisallow: /b$", "a", "http://h/b#c", False),
    "late ://": ("user-agent: a\ndisallow: /x", "a", "a/x://h/b", False),
    "two ://": ("user-agent: a\ndisallow: /b", "a", "a://h://b/b", True),
})  # fmt: skip
def test_google_dialect_reproduces_googles_quirks(
    body: str, agent: str, url: str, *, is_allowed: bool
) -> None:
    robots = RobotsTxt.parse(body, dialect=Dialect.GOOGLE, max_bytes=None)

    assert robots.can_fetch(agent, url) is is_allowed
    assert robots.match(agent, url).allowed is is_allowed
    assert google_allows(body.encode(), agent, url) is is_allowed


@pytest.mark.parametrize(
    "beginning",
    [
        b"", b"\xef", b"\xef\xbb", b"\xef\xbb\xbf", b"\xbb\xbf", b"\xef\xbf",
        b"\xef\xbb\xbf\xef\xbb\xbf", b"\xff\xfe", b"\n\xef\xbb\xbf",
    ],
)  # fmt: skip
def test_byte_order_mark_is_read_the_way_google_reads_it(beginning: bytes) -> None:
    body = beginning + b"user-agent: a\ndisallow: /"

    robots = RobotsTxt.parse(body, dialect=Dialect.GOOGLE)

    assert robots.can_fetch("a", "/") is google_allows(body, "a", "/")


def test_first_agent_with_a_group_is_used() -> None:
    body = "user-agent: b\ndisallow: /b\nuser-agent: *\ndisallow: /c"
    robots = RobotsTxt.parse(body, dialect=Dialect.GOOGLE)

    assert robots.match(["a", "B"], "/").group == "b"
    assert not robots.can_fetch(["a", "B"], "/b")
    assert robots.can_fetch(["a", "B"], "/c")


@pytest.mark.parametrize("key", ["crawl-delay", "request-rate"])
def test_delay_and_rate_are_read_although_google_ignores_them(key: str) -> None:
    assert GOOGLE.field(key).value == key
    assert GOOGLE.field(f"{key}s").value == "other"


@pytest.mark.parametrize("url", [
    "http://h", "http://h?q", "http://h/é;p?a://b#c", "http://h/a\0b", "http://h//",
])  # fmt: skip
def test_split_url_has_the_same_readings_as_the_url(url: str) -> None:
    assert GOOGLE.readings_of(split_url(url)[1]) == GOOGLE.readings(url)


def test_match_of_a_folder_shows_the_index_html_rule_as_written() -> None:
    body = "user-agent: a\nallow: /x/index.html\ndisallow: /"
    robots = RobotsTxt.parse(body, dialect=Dialect.GOOGLE)

    rule = robots.match("a", "/x/").rule

    assert rule is not None
    assert (rule.pattern, rule.line) == ("/x/index.html", 2)


def test_line_numbers_stay_right_after_a_line_that_makes_two_rules() -> None:
    body = "user-agent: a\nallow: /x/index.html\n\nallow: /y"
    robots = RobotsTxt.parse(body, dialect=Dialect.GOOGLE)

    lines = [rule.line for url in ("/x/", "/y") for rule in robots.matches("a", url)]

    assert lines == [2, 4]


def test_rule_that_matches_as_index_html_and_as_folder_is_listed_once() -> None:
    body = "user-agent: a\nallow: /x*/index.html\n"
    robots = RobotsTxt.parse(body, dialect=Dialect.GOOGLE)

    rules = robots.matches("a", "/x/index.html/")

    assert [rule.line for rule in rules] == [2]


def test_five_thousand_nasty_decisions_agree_with_google() -> None:
    """For a longer run, use `python -m tests.robotstxt.google_fuzz`."""
    decisions = 0
    seed = 0
    while decisions < 5_000:
        fuzz_case = case(seed)

        assert differences(fuzz_case) == [], f"seed {seed}: {fuzz_case.body!r}"

        decisions += len(fuzz_case.questions)
        seed += 1
