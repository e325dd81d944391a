"""The public interface of a parsed robots.txt."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given

from robotsgate.errors import InvalidProductTokenError
from robotsgate.robotstxt import (
    Dialect,
    Group,
    LineKind,
    Match,
    OtherLine,
    RequestRate,
    RobotsTxt,
    Rule,
    RuleKind,
)
from robotsgate.robotstxt._robots_txt import MAX_KNOWN_AGENTS, has_rules
from tests.robotstxt.strategies import BODIES
from tests.tables import cases

_DIALECTS = pytest.mark.parametrize("dialect", Dialect, ids=lambda one: one.value)

_FILE = b"""\
# A file with everything.
User-agent: ExampleBot
User-agent: OtherBot
Crawl-delay: 2.5
Disallow: /private
Allow: /private/open
Request-rate: 1/5 0600-0845
Sitemap: https://example.com/sitemap.xml
Host: example.com

User-agent: *
Disallow: /
Noindex:
Sitemap: HTTPS://example.com/s%C3%A9.xml
sitemap: https://example.com/sitemap.xml
Sitemap: /relative.xml
"""


def _rule(kind: RuleKind, pattern: str, line: int) -> Rule:
    return Rule(kind=kind, pattern=pattern, line=line)


@cases("body", {
    "bytes": (_FILE,),
    "str": (_FILE.decode(),),
    "bytearray": (bytearray(_FILE),),
    "memoryview": (memoryview(_FILE),),
    "part of a memoryview": (memoryview(_FILE + b"x")[:-1],),
})  # fmt: skip
def test_body_may_be_bytes_or_text(body: bytes | str) -> None:
    assert RobotsTxt.parse(body).groups == RobotsTxt.parse(_FILE).groups


@cases("body", {
    "a URL": ("https://example.com/robots.txt",),
    "in capitals, with white space": (" HTTP://example.com\n",),
    "FTP": ("ftp://example.com/robots.txt",),
})  # fmt: skip
def test_url_as_the_body_is_warned_about(body: str) -> None:
    """It is a file without rules: everything would be allowed, silently."""
    with pytest.warns(UserWarning, match="got a URL; .* use RobotsChecker") as caught:
        robots = RobotsTxt.parse(body)

    assert robots.groups == ()
    assert caught[0].filename == __file__


@cases("body", {
    "bytes": (b"https://example.com/robots.txt",),
    "a line with a URL": ("Sitemap: https://example.com/a.xml",),
    "a line that begins with a URL": ("https://example.com/ x",),
    "several URLs": ("https://example.com/a\nhttps://example.com/b",),
    "a path": ("robots.txt",),
    "empty": ("",),
})  # fmt: skip
def test_other_bodies_are_not_warned_about(body: bytes | str) -> None:
    assert RobotsTxt.parse(body).groups == ()


@cases("arguments options", {
    "a body": (["User-agent: *"], {}),
    "a body and its dialect": (["User-agent: *"], {"dialect": Dialect.GOOGLE}),
    "nothing": ([], {}),
})  # fmt: skip
def test_constructor_names_the_method_to_use(
    arguments: list[Any], options: dict[str, Any]
) -> None:
    with pytest.raises(TypeError, match=r"expected RobotsTxt\.parse\(body\)"):
        RobotsTxt(*arguments, **options)


@pytest.mark.parametrize(("body", "name"), [
    (None, "NoneType"), (7, "int"), ([b"a"], "list"), (["a"], "list"),
])  # fmt: skip
def test_body_of_another_type_raises(body: object, name: str) -> None:
    with pytest.raises(
        TypeError, match=f"expected the body to be bytes or str, got {name}"
    ):
        RobotsTxt.parse(body)  # type: ignore[arg-type]  # the mistake under test


@pytest.mark.parametrize("limit", [-1, -512_000])
def test_negative_limit_raises(limit: int) -> None:
    with pytest.raises(
        ValueError, match=f"max_bytes to be 0 or more, or None, got {limit}"
    ):
        RobotsTxt.parse(b"", max_bytes=limit)


def test_groups_are_listed_as_in_the_file() -> None:
    assert RobotsTxt.parse(_FILE).groups == (
        Group(
            tokens=("examplebot", "otherbot"),
            rules=(
                _rule(RuleKind.DISALLOW, "/private", 5),
                _rule(RuleKind.ALLOW, "/private/open", 6),
            ),
            line=2,
            crawl_delay=2.5,
            request_rate=RequestRate(requests=1, seconds=5.0),
            other_lines=(OtherLine(line=9, field="host", value="example.com"),),
        ),
        Group(
            tokens=("*",),
            rules=(_rule(RuleKind.DISALLOW, "/", 12),),
            line=11,
            other_lines=(OtherLine(line=13, field="noindex", value=""),),
        ),
    )


def test_group_is_shown_as_lines_of_a_file() -> None:
    first, second, third = RobotsTxt.parse(
        "Disallow: /a\nUser-agent: B\nUser-agent: C # c\nDisallow: /*d$\nAllow: /\n"
        "User-agent: *\nCrawl-delay: 2.50\nRequest-rate: 1/2m\nDisallow: /e\n"
        "User-agent: F"
    ).groups

    assert str(first) == "User-agent: b\nUser-agent: c\nDisallow: /*d$\nAllow: /"
    assert str(second) == (
        "User-agent: *\nCrawl-delay: 2.5\nRequest-rate: 1/120\nDisallow: /e"
    )
    assert str(third) == "User-agent: f\nAllow:"


def test_sitemaps_are_listed_once_each_as_written() -> None:
    assert RobotsTxt.parse(_FILE).sitemaps == (
        "https://example.com/sitemap.xml",
        "HTTPS://example.com/s%C3%A9.xml",
        "/relative.xml",
    )


def test_other_lines_are_kept_with_their_line_numbers() -> None:
    assert RobotsTxt.parse(_FILE).other_lines == (
        OtherLine(line=9, field="host", value="example.com"),
        OtherLine(line=13, field="noindex", value=""),
    )


def test_other_line_is_readable_text() -> None:
    """Bytes used to be lower-cased as if they were latin-1, which corrupted them."""
    (line,) = RobotsTxt.parse(b"\xc3\x89t\xc3\xa9 : \xff # c").other_lines

    assert line.field.lower() == "été"
    assert line.value == "�"


@cases("body delay", {
    "the first": ("User-agent: a\nCrawl-delay: 1\nCrawl-delay: 2", 1),
    "an invalid one is none, not the next one":
        ("User-agent: a\nCrawl-delay: x\nCrawl-delay: 2", None),
    "an invalid one is none, not that of the token's next group":
        ("User-agent: a\nCrawl-delay: x\nAllow:\nUser-agent: a\nCrawl-delay: 2", None),
    "an invalid one is none, not that of the fallback group":
        ("User-agent: a\nCrawl-delay: x\nAllow:\nUser-agent: *\nCrawl-delay: 2", None),
    "zero": ("User-agent: a\nCrawl-delay: 0", 0),
    "outside any group": ("Crawl-delay: 1\nUser-agent: a", None),
    "above the agent's user-agent line":
        ("User-agent: b\nCrawl-delay: 1\nUser-agent: a\nDisallow: /", None),
    "shared by two agents": ("User-agent: a\nUser-agent: b\nCrawl-delay: 1", 1),
    "merged": ("User-agent: a\nAllow: /\nUser-agent: a\nCrawl-delay: 1", 1),
    "between two groups of the agent":
        ("User-agent: a\nDisallow: /x\nCrawl-delay: 5\nUser-agent: a\nAllow: /", 5),
    "from the fallback group": ("User-agent: *\nCrawl-delay: 1", 1),
    "not from the fallback group if the agent has one":
        ("User-agent: *\nCrawl-delay: 1\nDisallow:\nUser-agent: a", None),
    "an empty file": ("", None),
})  # fmt: skip
@_DIALECTS
def test_first_crawl_delay_after_the_agents_line_applies(
    body: str, delay: float | None, dialect: Dialect
) -> None:
    assert RobotsTxt.parse(body, dialect=dialect).crawl_delay("a") == delay


@cases("body rate", {
    "its own group's":
        ("User-agent: a\nRequest-rate: 1/5", RequestRate(requests=1, seconds=5.0)),
    "an invalid one is none, not that of the next group": (
        "User-agent: a\nRequest-rate: 5\nAllow: /\nUser-agent: a\nRequest-rate: 1/5",
        None
    ),
    "no group": ("User-agent: b\nRequest-rate: 1/5", None),
})  # fmt: skip
def test_first_request_rate_applies(body: str, rate: RequestRate | None) -> None:
    assert RobotsTxt.parse(body).request_rate("a") == rate


@cases("agent url match", {
    "a disallow rule": ("ExampleBot", "/private/x", Match(allowed=False,
        rule=_rule(RuleKind.DISALLOW, "/private", 5), group="examplebot")),
    "an allow rule":
        ("otherbot", "https://example.com/private/open", Match(allowed=True,
        rule=_rule(RuleKind.ALLOW, "/private/open", 6), group="otherbot")),
    "no rule": ("ExampleBot", "/", Match(allowed=True, rule=None, group="examplebot")),
    "a rule for all agents": ("unknown", "/",
        Match(allowed=False, rule=_rule(RuleKind.DISALLOW, "/", 12), group="*")),
    "robots.txt itself": ("unknown", "/robots.txt",
        Match(allowed=True, rule=None, group="*", is_robots_txt=True)),
})  # fmt: skip
def test_match_contains_the_decisive_rule(agent: str, url: str, match: Match) -> None:
    robots = RobotsTxt.parse(_FILE)

    assert robots.match(agent, url) == match
    assert bool(match) is match.allowed
    assert robots.can_fetch(agent, url) is match.allowed


def test_file_as_dict_is_json() -> None:
    robots = RobotsTxt.parse(
        "Host: h\nUser-agent: a\nCrawl-delay: 1\nRequest-rate: 1/5\nAllow: /é\n"
        "Noindex: l\nSitemap: /s"
    )

    assert json.loads(json.dumps(robots.as_dict())) == {
        "dialect": "rfc9309",
        "groups": [
            {
                "tokens": ["a"],
                "rules": [{"kind": "allow", "pattern": "/é", "line": 5}],
                "line": 2,
                "crawl_delay": 1.0,
                "request_rate": {"requests": 1, "seconds": 5.0},
                "other_lines": [{"line": 6, "field": "noindex", "value": "l"}],
            }
        ],
        "sitemaps": ["/s"],
        "other_lines": [
            {"line": 1, "field": "host", "value": "h"},
            {"line": 6, "field": "noindex", "value": "l"},
        ],
        "diagnostics": [
            {
                "line": line,
                "column": column,
                "severity": severity,
                "kind": kind,
                "message": message,
            }
            for line, column, severity, kind, message in (
                (1, 1, "note", "unknown-field", "unknown field 'host'"),
                (6, 1, "note", "unknown-field", "unknown field 'noindex'"),
                (7, 10, "warning", "relative-sitemap",
                 "a sitemap must be an absolute URL"),
            )
        ],
    }  # fmt: skip


@cases("agent match", {
    "a decisive rule": ("a", {
        "allowed": False, "rule": {"kind": "disallow", "pattern": "/", "line": 2},
        "group": "a", "is_robots_txt": False
    }),
    "no group": ("b", {
        "allowed": True, "rule": None, "group": None, "is_robots_txt": False
    }),
})  # fmt: skip
def test_match_as_dict_is_json(agent: str, match: dict[str, object]) -> None:
    robots = RobotsTxt.parse("User-agent: a\nDisallow: /")

    assert json.loads(json.dumps(robots.match(agent, "/").as_dict())) == match


@_DIALECTS
@cases("line kind", {
    "user-agent": (" User-Agent : a # b", LineKind.USER_AGENT),
    "allow": ("allow:", LineKind.ALLOW),
    "disallow": ("DISALLOW:/", LineKind.DISALLOW),
    "sitemap": ("Sitemap: x", LineKind.SITEMAP),
    "crawl-delay": ("crawl-delay: x", LineKind.CRAWL_DELAY),
    "request-rate": ("Request-rate: x", LineKind.REQUEST_RATE),
    "unknown field": ("Höst: h", LineKind.OTHER),
    "no field": (": /", LineKind.NO_RECORD),
    "no colon": ("keep all of it out", LineKind.NO_RECORD),
    "comment": ("\t# Allow: /", LineKind.COMMENT),
    "blank": (" \t", LineKind.BLANK),
})  # fmt: skip
def test_line_has_a_number_a_kind_and_its_text_as_written(
    dialect: Dialect, line: str, kind: LineKind
) -> None:
    first, second = RobotsTxt.parse(f"#\r\n{line}\r", dialect=dialect).lines

    assert (first.number, second.number) == (1, 2)
    assert (second.text, second.kind) == (line, kind)


@cases("dialect kind", {
    "the standard": (Dialect.RFC9309, LineKind.NO_RECORD),
    "Google": (Dialect.GOOGLE, LineKind.DISALLOW),
})  # fmt: skip
def test_kind_of_a_line_depends_on_the_dialect(
    dialect: Dialect, kind: LineKind
) -> None:
    (line,) = RobotsTxt.parse("disalow /", dialect=dialect).lines

    assert line.kind is kind


def test_empty_file_has_no_lines() -> None:
    assert RobotsTxt.parse("").lines == ()


@cases("agent url lines", {
    "the longest first": ("a", "/private/open/x", [5, 3, 7, 2]),
    "of equally long rules, allow first": ("a", "/both", [7, 9, 8, 2]),
    "every line of a repeated rule": ("a", "/twice", [7, 10, 11, 2]),
    "from all merged groups": ("b", "/private", [13, 15]),
    "none": ("c", "/", []),
    "robots.txt itself": ("a", "/robots.txt", []),
})  # fmt: skip
def test_matching_rules_are_listed_in_order_of_priority(
    agent: str, url: str, lines: list[int]
) -> None:
    robots = RobotsTxt.parse(
        "User-agent: a\nDisallow: /\nDisallow: /private\nDisallow: /x\n"
        "Allow: /private/open\nAllow:\nDisallow: /*******\nDisallow: /both\n"
        "Allow: /both\nDisallow: /twice\nDisallow: /twice\n"
        "User-agent: b\nDisallow: /private\nUser-agent: B\nDisallow: /*\n"
    )

    assert [rule.line for rule in robots.matches(agent, url)] == lines


def test_rule_is_shown_as_written() -> None:
    robots = RobotsTxt.parse("User-agent: a\nDisallow: /é%2f%41 b")

    assert str(robots.match("a", "/é%2fA b").rule) == "Disallow: /é%2f%41 b"


def test_agent_without_a_token_raises() -> None:
    robots = RobotsTxt.parse(_FILE)

    for method in (robots.can_fetch, robots.match, robots.matches):
        with pytest.raises(InvalidProductTokenError, match="arguments swapped"):
            method("https://example.com/", "ExampleBot")
    for rate_method in (robots.crawl_delay, robots.request_rate):
        with pytest.raises(InvalidProductTokenError):
            rate_method("")


def test_agents_of_one_group_share_their_rules() -> None:
    robots = RobotsTxt.parse(_FILE)

    first, second = (robots.rules_for(agent) for agent in ("examplebot", "otherbot"))

    assert first.rules is second.rules
    assert robots.rules_for("ExampleBot/1.0") is first


def test_answers_stay_the_same_after_matching_for_many_agents() -> None:
    robots = RobotsTxt.parse(_FILE)

    for number in range(MAX_KNOWN_AGENTS + 10):
        assert not robots.can_fetch(f"agent-{number}", "/x")

    assert len(robots._by_agent) <= MAX_KNOWN_AGENTS
    assert robots.can_fetch("ExampleBot", "/x")


@_DIALECTS
@pytest.mark.parametrize(
    "body", [b"", b"\n", b"#", b"\0", b"\xff\xfe", b"<html></html>"]
)
def test_body_without_records_allows_everything(body: bytes, dialect: Dialect) -> None:
    robots = RobotsTxt.parse(body, dialect=dialect)

    assert not robots.groups
    assert not robots.sitemaps
    assert not robots.other_lines
    assert robots.match("a", "/") == Match(allowed=True, rule=None, group=None)


@_DIALECTS
@given(BODIES)
def test_any_body_can_be_parsed_and_asked(dialect: Dialect, body: bytes) -> None:
    robots = RobotsTxt.parse(body, dialect=dialect)

    assert robots.can_fetch("a", "/a") is robots.match("a", "/a").allowed
    assert len(robots.diagnostics) <= 20 * len(body)
    assert json.dumps(robots.as_dict())


def test_dialect_given_by_name_raises() -> None:
    """Any string used to mean RFC 9309."""
    with pytest.raises(TypeError, match="dialect to be a Dialect, got 'google'"):
        RobotsTxt.parse("", dialect="google")  # type: ignore[arg-type]


@cases("body expected", {
    "a disallow line": (b"User-agent: *\nDisallow: /", True),
    "an empty disallow line": (b"user-agent:*\rdisallow:\r", True),
    "an allow line after other lines": (b"User-agent: a\n\nx: y\n ALLOW : /\n", True),
    "after a byte order mark": (b"\xef\xbb\xbfUser-agent: *\nDisallow: /", True),
    "in UTF-16": ("\ufeffUser-agent: *\nDisallow: /".encode("utf-16-le"), True),
    "nothing": (b"", False),
    "a group without rules": (b"User-Agent: Mozilla/5.0\nSitemap: /s.xml\n", False),
    "a rule above the first group": (b"Disallow: /\nUser-agent: *\n", False),
    "a page that mentions rules": (
        b"<p>User-agent: *</p>\n<p>Disallow: /</p>\nDisallow: /", False),
    "rules in comments": (b"# User-agent: *\n# Disallow: /\n", False),
    "a misspelt rule": (b"User-agent: *\nDisalow: /\n", False),
    "a rule on the same line": (b"User-agent: * Disallow: /\n", False),
    "a rule cut by the limit": (
        b"User-agent: *\n" + b"#" * 60 + b"\nDisallow: /x", False),
})  # fmt: skip
def test_file_has_rules_if_one_is_in_a_group(*, body: bytes, expected: bool) -> None:
    assert has_rules(body, max_bytes=80) is expected


def test_looking_for_rules_does_not_hold_the_event_loop() -> None:
    """A hostile 202 of 500 KB used to hold it a hundred times as long."""
    body = b"User-agent: *\n" + b"x\n" * 1_000_000
    began_at = time.process_time()

    assert not has_rules(body, max_bytes=len(body))

    assert time.process_time() - began_at < 0.5
