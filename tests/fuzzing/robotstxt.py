"""Fuzzes the parser and the matcher: agent, URL and body, in both dialects.

`Dialect.GOOGLE` is checked against Google's own code, and `Dialect.RFC9309` against a
simple parser and matcher.
"""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING

from robotsgate.errors import InvalidProductTokenError, InvalidURLError
from robotsgate.robotstxt import Dialect, RobotsTxt, Rule, RuleKind
from robotsgate.robotstxt._octets import wide_encoding
from robotsgate.robotstxt._usage_lines import USAGE_FIELDS
from robotsgate.urls._origin import split_url
from robotsgate.urls._path import TAB_AND_LINE_ENDS, readings
from tests.fuzzing.plain_robots_txt import (
    lines_of,
    parse_plainly,
    plain_targets,
    plain_token,
    unique,
    whole_lines,
)
from tests.fuzzing.target import Target, as_text, fields, in_time, joined

try:
    from tests.fuzzing import google_judge
except ImportError:  # it has no wheels for Python 3.13 and later
    google_judge = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robotsgate.robotstxt import Match
    from tests.fuzzing.plain_robots_txt import PlainFile

    _Answer = tuple[str, str, Match]

# Single bytes that are expanded, because fuzzing is fast while inputs are short.
# The spaces in a file make its line almost longer than Google reads. Together with
# those in the URL they are too many for a naive search.
_SPACER = b"\xfd"
_SPACES = b" " * 16_640
_SPACES_IN_URL = b" " * 600
# Enough rules for binary searches and packed strings.
_RULES = b"\xfc"
_PATTERNS = ("/{}", "/a/{}", "/a/{}*", "*{}$", "/*.{}", "/a*b{}", "/%41{}", "/{}/a")
_MANY_RULES = "".join(
    f"\n{'disallow' if number % 3 else 'allow'}: "
    f"{_PATTERNS[number % len(_PATTERNS)].format(number // 7)}"
    for number in range(240)
).encode()

_MAX_AGENTS = 3
_MAX_URLS = 6

# Bytes of patterns times bytes of the target: more is too slow for the references.
# Google's own matcher takes seconds for one long line with a "*" and a long URL.
_MAX_PLAIN_WORK = 200_000
_MAX_GOOGLE_WORK = 12_000_000


def check(data: bytes) -> None:
    """Check everything about one body."""
    agent, url, body = fields(data, 3)
    body = body.replace(_RULES, _MANY_RULES, 1).replace(_SPACER, _SPACES, 2)
    lookup = as_text(agent), as_text(url.replace(_SPACER, _SPACES_IN_URL, 1))
    for dialect in Dialect:
        _check_dialect(body, dialect, lookup)
    if encoding := wide_encoding(body):
        in_utf8 = RobotsTxt.parse(body.decode(encoding, "replace"), max_bytes=None)
        assert RobotsTxt.parse(body, max_bytes=None).groups == in_utf8.groups


def _check_dialect(body: bytes, dialect: Dialect, lookup: tuple[str, str]) -> None:
    if dialect is Dialect.RFC9309 and wide_encoding(body):
        return  # the reference reads only bytes
    robots, answers = in_time(
        "a file with its answers", lambda: _answers(body, dialect, lookup)
    )
    is_google = dialect is Dialect.GOOGLE
    plain = parse_plainly(body)
    _check_order(robots, body)
    _check_cut(body, dialect)
    if is_google:
        _check_file_against_google(robots, body)
    else:
        _check_file_against_plain(robots, plain)
        _check_text(robots, body)
    for agent, url, match in answers:
        _check_rates(robots, agent)
        if match.rule is not None:
            _check_rule(match.rule, robots, body)
        if is_google:
            _check_against_google(match, robots, body, agent, url)
        else:
            _check_against_plain(match, robots, plain, agent, url)


def _answers(
    body: bytes, dialect: Dialect, lookup: tuple[str, str]
) -> tuple[RobotsTxt, list[_Answer]]:
    """Parse a file completely; return it with answers as (agent, URL, match)."""
    robots = RobotsTxt.parse(body, dialect=dialect, max_bytes=None)
    answers: list[_Answer] = []
    for agent, url in _lookups(robots, *lookup):
        match = _match(robots, agent, url)
        if match is not None:
            answers.append((agent, url, match))
    unknown = [one for one in robots.other_lines if one.field not in USAGE_FIELDS]
    assert len(robots.diagnostics) >= len(unknown)
    return robots, answers


def _lookups(robots: RobotsTxt, agent: str, url: str) -> Iterator[tuple[str, str]]:
    """The given agent and URL, and others that the file suggests."""
    agents, urls = dict.fromkeys([agent]), dict.fromkeys([url])
    for group in robots.groups:
        for token in group.tokens:
            if token and len(agents) < _MAX_AGENTS:
                agents[token] = None
        for rule in group.rules:
            start, *rest = rule.pattern.removesuffix("$").split("*")
            path = start + "".join(rest)
            if path.startswith("/") and len(urls) < _MAX_URLS:
                urls |= dict.fromkeys((start or path, path, f"https://host{path}x"))
    for one_agent in agents:
        for one_url in urls:
            yield one_agent, one_url


def _match(robots: RobotsTxt, agent: str, url: str) -> Match | None:
    """The match for `agent` and `url`; `None` if either is invalid."""
    try:
        is_allowed = robots.can_fetch(agent, url)
    except InvalidProductTokenError:
        assert robots.dialect is Dialect.RFC9309
        assert plain_token(agent) is None
        return None
    except InvalidURLError:
        assert robots.dialect is Dialect.RFC9309
        assert not url.startswith("/")
        return None
    match = robots.match([agent], url)
    assert match.allowed is is_allowed
    assert match.rule is None or match.allowed is (match.rule.kind is RuleKind.ALLOW)
    assert match.allowed or match.rule is not None
    return match


def _check_rates(robots: RobotsTxt, agent: str) -> None:
    delay = robots.crawl_delay(agent)
    assert delay is None or 0 <= delay < math.inf
    rate = robots.request_rate(agent)
    assert rate is None or rate.requests >= 1
    assert rate is None or 0 < rate.seconds < math.inf


def _check_order(robots: RobotsTxt, body: bytes) -> None:
    """Check that groups, rules and other lines are in order and in the file."""
    last = len(lines_of(body))
    before = 0
    for group in robots.groups:
        assert before < group.line <= last
        assert group.tokens
        before = group.line
        for rule in group.rules:
            assert before < rule.line <= last
            before = rule.line
    others = [other.line for other in robots.other_lines]
    assert others == sorted(set(others))
    assert all(1 <= line <= last for line in others)
    odd = [diagnostic.line for diagnostic in robots.diagnostics]
    assert odd == sorted(odd)
    assert all(0 <= line <= last for line in odd)
    assert all(each.message.isprintable() for each in robots.diagnostics)
    assert robots.sitemaps == unique(robots.sitemaps)


def _check_rule(rule: Rule, robots: RobotsTxt, body: bytes) -> None:
    """Check a rule against its line."""
    line = lines_of(body)[rule.line - 1]
    if robots.dialect is Dialect.GOOGLE:
        line = line[:16_663]
    assert rule.pattern in line.decode("utf-8", "replace")
    assert rule in [rule for group in robots.groups for rule in group.rules]


def _check_cut(body: bytes, dialect: Dialect) -> None:
    """Check that a limit keeps only whole lines, wherever it is."""
    number = zlib.crc32(body)
    for max_bytes in {number % (len(body) + 1), number // 7 % (len(body) + 1)}:
        cut = RobotsTxt.parse(body, dialect=dialect, max_bytes=max_bytes)
        expected = RobotsTxt.parse(
            whole_lines(body, max_bytes), dialect=dialect, max_bytes=None
        )
        assert cut.groups == expected.groups
        assert cut.sitemaps == expected.sitemaps
        assert cut.other_lines == expected.other_lines


def _check_text(robots: RobotsTxt, body: bytes) -> None:
    """Check that a `str` is parsed like its UTF-8 encoding."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return
    other = RobotsTxt.parse(text, max_bytes=None)
    assert other.groups == robots.groups
    assert other.diagnostics == robots.diagnostics


def _check_against_plain(
    match: Match, robots: RobotsTxt, plain: PlainFile, agent: str, url: str
) -> None:
    agent_token = plain_token(agent)
    assert agent_token is not None
    path = url.partition("#")[0].translate(TAB_AND_LINE_ENDS)
    if not url.startswith("/"):
        path = split_url(url)[1]
    targets = [one for reading in readings(path) for one in plain_targets(reading)]
    token = plain.token_for(agent_token)
    assert match.group == token
    assert robots.crawl_delay(agent) == plain.crawl_delay(token)
    size = sum(len(rule.value) for rule in plain.rules_of(token))
    if size * sum(map(len, targets)) > _MAX_PLAIN_WORK:
        return
    decisive = [
        None if target == "/robots.txt" else plain.decisive(token, target)
        for target in targets
    ]
    assert match.is_robots_txt is (match.allowed and targets[0] == "/robots.txt")
    refusals = (rule for rule in decisive if rule is not None and not rule.is_allow)
    expected = next(refusals, decisive[0])
    if expected is None:
        assert match.rule is None
    else:
        assert match.rule == Rule(
            kind=RuleKind.ALLOW if expected.is_allow else RuleKind.DISALLOW,
            pattern=expected.value.decode("utf-8", "replace"),
            line=expected.line,
        )


def _check_file_against_plain(robots: RobotsTxt, plain: PlainFile) -> None:
    ours = [
        (
            group.line,
            list(group.tokens),
            [(rule.line, rule.kind is RuleKind.ALLOW) for rule in group.rules],
        )
        for group in robots.groups
    ]
    theirs = [
        (
            group.agents[0][1],
            [token for token, _ in group.agents],
            [(rule.line, rule.is_allow) for rule in group.rules],
        )
        for group in plain.groups
    ]
    assert ours == theirs
    assert robots.sitemaps == unique(plain.sitemaps)
    assert plain.others == [
        (one.line, one.field, one.value) for one in robots.other_lines
    ]


def _check_against_google(
    match: Match, robots: RobotsTxt, body: bytes, agent: str, url: str
) -> None:
    rules = [rule for group in robots.groups for rule in group.rules]
    size = sum(len(rule.pattern) for rule in rules if "*" in rule.pattern)
    if google_judge is None or size * len(url) > _MAX_GOOGLE_WORK:
        return
    is_allowed, line = google_judge.google_answer(body, agent, url)
    assert match.allowed is is_allowed
    assert not match.is_robots_txt
    if match.rule is not None:
        assert match.rule.line == line
    elif line:  # Google's matcher also reports a matching rule without a value
        assert [rule.pattern for rule in rules if rule.line == line] == [""]


def _check_file_against_google(robots: RobotsTxt, body: bytes) -> None:
    google = None if google_judge is None else google_judge.google_file(body)
    if google_judge is None or google is None:
        return
    ours = [
        (
            group.line,
            list(group.tokens),
            [(rule.line, rule.kind is RuleKind.ALLOW) for rule in group.rules],
        )
        for group in robots.groups
    ]
    assert ours == [
        (group.line, group.tokens, [rule[:2] for rule in group.rules])
        for group in google.groups
    ]
    assert robots.sitemaps == unique(google.sitemaps)
    assert [(one.line, one.field) for one in robots.other_lines] == [
        (line, key) for line, key, _ in google.others
    ]
    values = [rule.pattern for group in robots.groups for rule in group.rules]
    values += [one.value for one in robots.other_lines]
    spelt = [rule[2] for group in google.groups for rule in group.rules]
    spelt += [value for _, _, value in google.others]
    for value, expected in zip(values, spelt, strict=True):
        if "\ufffd" not in value:  # which replaces bytes that Google's parser keeps
            assert google_judge.google_spelling(value) == expected


_LONG_LINE = b"user-agent: a\ndisallow:" + _SPACER
_WILD = b"user-agent: a\ndisallow:/" + _SPACER + b"*x"

TARGET = Target(
    check=check,
    seeds=(
        joined(b"ExampleBot", b"/a", b"User-agent: *\nDisallow: /a\n"),
        joined(b"b", b"http://h/x?y", b"user-agent:a\r\nuser-agent:b\r\nallow:/x*y$"),
        joined(b"a", b"/b#c", b"\xef\xbb\xbfuseragent a\ndisalow /b\nsitemap:http://s"),
        joined(b"foo/1.0", b"/i/", b"user-agent: foo\nallow:/i/index.html\ndisallow:/"),
        joined(b"x", b"/%c3%a9", b"user-agent: x #\ndisallow: /\xc3\xa9\nfoo: bar\n"),
        joined(b"y", b"/", b"user-agent: y\ncrawl-delay: 1.5\nrequest-rate: 1/5m\n"),
        joined(b"a", b"/aaaaaa", _LONG_LINE + b"/aaaaaaaaaaaaaaaaaa"),
        joined(b"a", b"/..", b"user-agent: *\nallow: /\x00\n\ndisallow: *$$\nallow:\n"),
        joined(b"Mozilla/5.0 (compatible; Bot/1)", b"/%7e", b"user-agent: bot\nallow:"),
        joined(b"b", b"/x", b"user-agent:a\ncrawl-delay:2\nuser-agent:b\nsitemap:x"),
        joined(b"c", b"/*$/%2E%2e/*$a", b"user-agent:c\ndisallow:/%2a%24\nallow:/a*a$"),
        joined(b"a", b"/a/7b9", b"user-agent:a" + _RULES + b"\nallow:/a/7b"),
        joined(b"a", b"/a" + _SPACER + b"bc", _WILD + b"\nallow:/a*b\ndisallow:*c$"),
        joined(b"*", b"/robots.txt", b"<html>\nuser-agent: *\ndisallow: /"),
    ),
    words=(
        b"user-agent:", b"useragent ", b"user agent:", b"disallow:", b"disalow ",
        b"dissallow:", b"dissalow:", b"diasllow:", b"disallaw:", b"allow:", b"sitemap:",
        b"site-map:", b"crawl-delay:", b"request-rate:", b"1/5s", b"/index.html",
        b"/index.htm", b"/robots.txt", b"/../", b"/%2e", b"%41", b"%c3%a9", b"%24",
        b"%2A", b"*", b"$", b"#", b":", b"?", b";", b"://", b"//", b"http://h/", b"\r",
        b"\r\n", b"\n", b"\t", b"\x0b", b"\x0c", b"\x00", b"\x1c", b"\x85", b"\xa0",
        b"\xef\xbb\xbf", b"\xef\xbb", b"\xef", b"\xc3\xa9", b"\xff", _SPACER, _RULES,
        b"compatible;", b"Mozilla/5.0 (", b"\xfe",
    ),
    max_length=1_024,
)  # fmt: skip
