"""`Dialect.GOOGLE` decides as Google's own matcher does, on every input."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotsgate.robotstxt import Dialect, RobotsTxt
from robotsgate.robotstxt._google import GOOGLE
from robotsgate.urls._origin import split_url
from tests.robotstxt.strategies import BODIES, steady

pytest.importorskip(
    "jwm.robotstxt", reason="Google's own matcher has wheels up to Python 3.12 only"
)

from tests.robotstxt import google_fuzz
from tests.robotstxt.google_fuzz import (
    Difference,
    case,
    differences,
    google_allows,
    minimised,
)

_LONGEST = 16_663


def _line_of(length: int, start: str, end: str) -> str:
    """A line of `length` octets, filled with spaces."""
    return start + " " * (length - len(start) - len(end)) + end


@pytest.mark.parametrize(
    ("body", "agent", "url", "is_allowed"),
    [
        pytest.param("user-agent: a\ndisalow: /", "a", "/", False, id="disalow"),
        pytest.param("user-agent: a\ndissallow: /", "a", "/", False, id="dissallow"),
        pytest.param("user-agent: a\ndissalow: /", "a", "/", False, id="dissalow"),
        pytest.param("user-agent: a\ndiasllow: /", "a", "/", False, id="diasllow"),
        pytest.param("user-agent: a\ndisallaw: /", "a", "/", False, id="disallaw"),
        pytest.param("user-agent: a\ndissallaw: /", "a", "/", True, id="dissallaw"),
        pytest.param(
            "user-agent: a\ndisallowed: /", "a", "/", False,
            id="a longer key",
        ),
        pytest.param("useragent: a\ndisallow: /", "a", "/", False, id="useragent"),
        pytest.param("user agent: a\ndisallow: /", "a", "/", False, id="user agent"),
        pytest.param("user-agents: a\ndisallow: /", "a", "/", False, id="user-agents"),
        pytest.param("user-agent a\ndisallow /", "a", "/", False, id="no colon"),
        pytest.param(
            "user-agent\ta\ndisallow \t /", "a", "/", False,
            id="tabs instead",
        ),
        pytest.param("user-agent: a\ndisallow / x", "a", "/", True, id="three words"),
        pytest.param(
            "user agent a\ndisallow: /", "a", "/", True,
            id="three words, agent",
        ),
        pytest.param(
            "user-agent: a\ndisallow\x0b/", "a", "/", True,
            id="VT parts no words",
        ),
        pytest.param("user-agent: a\n: /\ndisallow:/", "a", "/", False, id="no key"),
        pytest.param(
            "user-agent: a\nallow: /x/index.html\ndisallow: /", "a", "/x/", True,
            id="index.html of a folder is the folder",
        ),
        pytest.param(
            "user-agent: a\nallow: /index.htm\ndisallow: /", "a", "/", True,
            id="index.htm is the root",
        ),
        pytest.param(
            "user-agent: a\nallow: /index.html\ndisallow: /", "a", "/x", False,
            id="index.html is nothing else",
        ),
        pytest.param(
            "user-agent: a\nallow: /index.html\ndisallow: /", "a", "/index.html", True,
            id="index.html is still itself",
        ),
        pytest.param(
            "user-agent: a\nallow: /index.html/x\ndisallow: /", "a", "/", False,
            id="index.html must be the last segment",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /index.html", "a", "/", True,
            id="a disallowed index.html is only itself",
        ),
        pytest.param("user-agent: a1\ndisallow: /", "a", "/", False, id="digits cut"),
        pytest.param(
            "user-agent: a1\ndisallow: /", "a1", "/", True,
            id="digits never match",
        ),
        pytest.param("user-agent: a.b\ndisallow: /", "a", "/", False, id="dots cut"),
        pytest.param("user-agent: a_-b\ndisallow: /", "A_-B", "/", False, id="_ and -"),
        pytest.param(
            "user-agent: 1\ndisallow: /", "", "/", False,
            id="no token, no agent",
        ),
        pytest.param("user-agent: *\ndisallow: /", "", "/", False, id="empty agent"),
        pytest.param("user-agent: *\ndisallow: /", "*", "/", False, id="star as agent"),
        pytest.param(
            "user-agent: a\ndisallow: /", "a/1.0", "/", True,
            id="a whole header",
        ),
        pytest.param(
            "user-agent: * x\ndisallow: /", "b", "/", False,
            id="star and a word",
        ),
        pytest.param(
            "user-agent: *\x0bx\ndisallow: /", "b", "/", False,
            id="star and VT",
        ),
        pytest.param(
            "user-agent: *x\ndisallow: /", "b", "/", True,
            id="star and a letter",
        ),
        pytest.param(
            f"user-agent: a\n{_line_of(_LONGEST, 'disallow:', '/b')}", "a", "/a", True,
            id="a line of the longest length",
        ),
        pytest.param(
            f"user-agent: a\n{_line_of(_LONGEST + 1, 'disallow:', '/b')}",
            "a", "/a", False,
            id="a line that is one octet too long",
        ),
        pytest.param(
            f"user-agent: a\n{_line_of(_LONGEST + 2, 'disallow:', '/b')}",
            "a", "/a", True,
            id="a line whose value is cut off",
        ),
        pytest.param(
            f"user-agent: a\n{_line_of(_LONGEST + 9, 'x:', '')}\ndisallow: /", "a", "/",
            False, id="the line behind a cut one",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /a\0b", "a", "/ac", False,
            id="NUL cuts a line",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /a", "a", "/a\0b", False,
            id="NUL in the URL",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /a$", "a", "/a\0b", False,
            id="NUL cuts a URL",
        ),
        pytest.param(
            "user-agent: a\0b\ndisallow: /", "a", "/", False,
            id="NUL in the agent",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /%41", "a", "/A", True,
            id="%41 is not A",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /A", "a", "/%41", True,
            id="A is not %41",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /%aa", "a", "/%AA", False,
            id="%aa is %AA",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /%aa", "a", "/%aa", True,
            id="but not %aa",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /é", "a", "/%C3%A9", False,
            id="é encoded",
        ),
        pytest.param("user-agent: a\ndisallow: /é", "a", "/é", True, id="é in the URL"),
        pytest.param("user-agent: a\ndisallow: /a b", "a", "/a%20b", True, id="space"),
        pytest.param(
            "user-agent: *\ndisallow: /", "a", "/robots.txt", False,
            id="robots.txt is not implied",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /a/../b", "a", "/a/../b", False,
            id="dots",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /b", "a", "http://h/b", False,
            id="a URL",
        ),
        pytest.param("user-agent: a\ndisallow: /b", "a", "h/b", False, id="no scheme"),
        pytest.param(
            "user-agent: a\ndisallow: /b", "a", "//h/b", False,
            id="two slashes",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /b", "a", "///b", False,
            id="three slashes",
        ),
        pytest.param("user-agent: a\ndisallow: /b", "a", "b", True, id="no slash"),
        pytest.param("user-agent: a\ndisallow: /$", "a", "", False, id="no URL"),
        pytest.param(
            "user-agent: a\ndisallow: /?q", "a", "http://h?q", False,
            id="query",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /;p", "a", "http://h;p", False,
            id="params",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /$", "a", "http://h#/b", False,
            id="fragment",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /b$", "a", "http://h/b#c", False,
            id="cut",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /x", "a", "a/x://h/b", False,
            id="late ://",
        ),
        pytest.param(
            "user-agent: a\ndisallow: /b", "a", "a://h://b/b", True,
            id="two ://",
        ),
    ],
)  # fmt: skip
def test_google_dialect_decides_to_the_letter(
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
def test_byte_order_mark_is_read_as_google_reads_it(beginning: bytes) -> None:
    body = beginning + b"user-agent: a\ndisallow: /"

    robots = RobotsTxt.parse(body, dialect=Dialect.GOOGLE)

    assert robots.can_fetch("a", "/") is google_allows(body, "a", "/")


def test_sequence_of_agents_uses_the_first_that_has_a_group() -> None:
    body = "user-agent: b\ndisallow: /b\nuser-agent: *\ndisallow: /c"
    robots = RobotsTxt.parse(body, dialect=Dialect.GOOGLE)

    assert robots.match(["a", "B"], "/").group == "b"
    assert not robots.can_fetch(["a", "B"], "/b")
    assert robots.can_fetch(["a", "B"], "/c")


@pytest.mark.parametrize("key", ["crawl-delay", "request-rate"])
def test_delay_and_rate_are_read_although_google_does_not(key: str) -> None:
    assert GOOGLE.field(key).value == key
    assert GOOGLE.field(f"{key}s").value == "other"


@pytest.mark.parametrize(
    "url",
    ["http://h", "http://h?q", "http://h/é;p?a://b#c", "http://h/a\0b", "http://h//"],
)
def test_target_of_a_split_url_is_that_of_the_url(url: str) -> None:
    assert GOOGLE.target_of_path(split_url(url)[1]) == GOOGLE.target(url)


def test_index_html_is_one_rule_that_the_file_writes_once() -> None:
    body = "user-agent: a\nallow: /x/index.html\ndisallow: /"
    robots = RobotsTxt.parse(body, dialect=Dialect.GOOGLE)

    rule = robots.match("a", "/x/").rule

    assert rule is not None
    assert (rule.pattern, rule.line) == ("/x/index.html", 2)


@steady(500)
@given(
    BODIES,
    st.sampled_from(["a", "b", "ab", "foobot", "*", ""]),
    st.text(st.sampled_from("/ab:?#;$*%41\0é."), max_size=12),
)
def test_any_body_is_decided_as_by_google(body: bytes, agent: str, url: str) -> None:
    robots = RobotsTxt.parse(body, dialect=Dialect.GOOGLE, max_bytes=None)

    assert robots.can_fetch(agent, url) is google_allows(body, agent, url)


def test_five_thousand_nasty_decisions_are_those_of_google() -> None:
    """The long run is `python -m tests.robotstxt.google_fuzz`."""
    decisions = 0
    seed = 0
    while decisions < 5_000:
        one = case(seed)

        assert not list(differences(one, seed=seed))

        decisions += len(one.questions)
        seed += 1


def test_case_of_a_seed_is_always_the_same() -> None:
    assert case(7) == case(7)
    assert case(7) != case(8)


@pytest.fixture
def wrong_google(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that disallows only /a of a body with an "x"."""
    monkeypatch.setattr(
        google_fuzz,
        "google_allows",
        lambda body, agent, url: not (b"x" in body and "/a" in url and "b" in agent),
    )


@pytest.mark.usefixtures("wrong_google")
def test_difference_is_reported_small() -> None:
    one = google_fuzz.Case(body=b"user: y\nfoo: xyz\n", questions=(("bot", "/b/a"),))

    (found,) = differences(one, seed=3)

    assert minimised(found) == Difference(
        seed=3,
        body=b"x",
        agent="b",
        url="/a",
        google=False,
        can_fetch=True,
        matched=True,
    )


@pytest.fixture
def two_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command line that asks for two small cases."""
    monkeypatch.setattr(
        google_fuzz,
        "case",
        lambda seed: google_fuzz.Case(body=b"x%d" % seed, questions=(("b", "/a"),)),
    )
    monkeypatch.setattr(sys, "argv", ["google_fuzz", "--seed", "5", "--decisions", "2"])


@pytest.mark.usefixtures("two_cases")
def test_run_without_differences_succeeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert google_fuzz.main() == 0

    assert capsys.readouterr().out == "2 decisions, seeds 5 to 6, 0 differences\n"


@pytest.mark.usefixtures("two_cases", "wrong_google")
def test_run_with_differences_prints_how_to_replay_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert google_fuzz.main() == 1

    first, _, last = capsys.readouterr().out.splitlines()
    assert first == (
        "--seed 5 --decisions 1: agent 'b', URL '/a', body b'x': "
        "Google False, can_fetch True, match True"
    )
    assert last == "2 decisions, seeds 5 to 6, 2 differences"
