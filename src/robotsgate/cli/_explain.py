"""What the commands and the tester page say about verdicts, files and responses.

A pure module: it is given what to explain, and must never use the network.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from http import HTTPStatus
from itertools import product
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from robotsgate.caching import (
    Policy,
    Reason,
    date_text,
    file_of,
    freshness_lifetime,
    printable,
    reason_text,
)
from robotsgate.errors import InvalidProductTokenError, InvalidURLError
from robotsgate.robotstxt import Dialect, Line, RobotsTxt, RuleKind, Severity
from robotsgate.urls import Origin

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from robotsgate.caching import Verdict
    from robotsgate.robotstxt import Rule

# --- Verdicts

_LINES_AROUND = 3

_MOST_RULES = 10

_ONCE_REACHABLE = "a file or a 404 from the server at the next fetch, at {date}"

_WITHOUT_RULE = {
    Reason.NO_MATCHING_RULE: "a Disallow line for {group} whose pattern matches",
    Reason.NO_GROUP: "a group for {agent}all agents (*)",
    Reason.ROBOTS_TXT: "nothing: robots.txt itself may always be fetched",
    Reason.UNAVAILABLE: "a file at {origin}/robots.txt, once it is fetched",
    Reason.UNREACHABLE: _ONCE_REACHABLE,
    Reason.UNREACHABLE_TOO_LONG: _ONCE_REACHABLE,
    Reason.ADDRESS_REFUSED: "an address that the address guard permits",
    Reason.RESTRICTED: "a status other than {status}, or another policy",
    Reason.OVERRIDDEN: "another override for this origin",
}

_UNITS = ((86_400, "days"), (3_600, "h"), (60, "min"))


def summary(verdict: Verdict, *, now: float) -> str:
    """The reason for a verdict, and how long it stays fresh after `now`."""
    phrase = reason_text(verdict, file="robots.txt")
    if verdict.rule is not None and verdict.redirects:
        phrase += f" of {file_of(verdict)}"
    if verdict.reason is Reason.ROBOTS_TXT:
        return phrase
    left = _duration((verdict.fresh_until or now) - now)
    if verdict.fetched_at is None:
        return f"{phrase}; next fetch in {left}"
    if verdict.is_stale:
        age = _duration(now - verdict.fetched_at)
        evidence = verdict.error or verdict.status
        phrase += f"; cached {age} ago, now unreachable ({evidence})"
        return f"{phrase}; next fetch in {left}"
    return f"{phrase}; fresh for {left}"


def _duration(seconds: float) -> str:
    """Round `seconds` to the largest unit that gives a value of at least 2."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(0, seconds):.0f} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The lines and rules behind a verdict, and what would change it."""

    lines: tuple[Line, ...]
    deciding_line: int | None
    competing_rules: tuple[str, ...]
    redirects: tuple[str, ...]
    changes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"lines": [line.as_dict() for line in self.lines]}


def explanation(verdict: Verdict, robots: RobotsTxt | None) -> Explanation:
    """Explain `verdict`, based on the file `robots` if there is one."""
    rule = verdict.rule
    lines: tuple[Line, ...] = ()
    matches: tuple[Rule, ...] = ()
    if rule is not None and robots is not None:
        start = max(0, rule.line - 1 - _LINES_AROUND)
        lines = robots.lines[start : rule.line + _LINES_AROUND]
        matches = robots.matches(verdict.agent, verdict.url)
    return Explanation(
        lines=lines,
        deciding_line=None if rule is None else rule.line,
        competing_rules=tuple(
            f"line {one.line}: {one}" for one in matches[:_MOST_RULES]
        ),
        redirects=tuple(f"{status} to {url}" for url, status in verdict.redirects),
        changes=_changes(verdict, matches),
    )


def _changes(verdict: Verdict, matches: tuple[Rule, ...]) -> tuple[str, ...]:
    rule = verdict.rule
    group = "all agents" if verdict.group == "*" else verdict.group
    if rule is None:
        sentence = _WITHOUT_RULE[verdict.reason].format(
            agent="" if verdict.agent == "*" else "this agent, or for ",
            group=group,
            origin=verdict.origin,
            date=date_text(verdict.fresh_until),
            status=verdict.status,
        )
        return (sentence,)
    opposite = next((one for one in matches if one.kind is not rule.kind), None)
    above = matches if opposite is None else matches[: matches.index(opposite)]
    lines = ", ".join(str(one.line) for one in above[:_MOST_RULES])
    more = ", …" if len(above) > _MOST_RULES else ""
    is_allowed = rule.kind is RuleKind.ALLOW
    length = "longer than" if is_allowed else "at least as long as"
    wanted = "a Disallow" if is_allowed else "an Allow"
    pattern = f"a matching pattern {length} {rule.pattern}"
    changes = [f"{wanted} line for {group}, with {pattern}"]
    removal = f"removing line {lines}{more}"
    if opposite is not None:
        changes.append(f"{removal}: line {opposite.line} would then apply")
    elif not is_allowed:
        changes.append(f"{removal}: no rule would then match")
    if verdict.group == "*" != verdict.agent:
        changes.append(f"a group for {verdict.agent!r}, which would then apply")
    return tuple(changes)


# --- Lint findings

_DAY = 86_400.0

# Yields the lifetime that the headers specify, ignoring a crawler's own limits.
_AS_ASKED = Policy(min_lifetime=0, max_lifetime=1e12, default_lifetime=_DAY)

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A single lint finding."""

    line: int  # counted from 1; 0 for the whole file
    column: int  # counted from 1; 0 for the whole line
    severity: Severity
    code: str  # each has a paragraph in `docs/reference/lint.md`
    message: str

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"severity": self.severity.value}


def about_file(robots: RobotsTxt, *, most: int | None = None) -> list[Finding]:
    """The first `most` findings about a file; by default, all of them."""
    return [
        Finding(
            line=one.line,
            column=one.column,
            severity=one.severity,
            code=one.kind.value,
            message=one.message,
        )
        for one in robots.diagnostics[:most]
    ]


def about_answer(
    origin: Origin,
    *,
    status: int | None,
    headers: Mapping[str, str],
    redirects: Iterable[tuple[str, int]],
    now: float,
) -> list[Finding]:
    """The findings about the last response from `origin`.

    `status` is `None` if there was none; the names in `headers` are lower-case;
    `redirects` are (target URL, status) pairs; `now` is in epoch seconds.
    """
    facts = [*_about_redirects(origin, redirects)]
    # FTP has different status codes, and no headers.
    if status is not None and origin.scheme != "ftp":
        facts += _about_response(status, headers, now)
    return [
        Finding(line=0, column=0, severity=severity, code=code, message=message)
        for severity, code, message in facts
    ]


def _about_redirects(
    origin: Origin, redirects: Iterable[tuple[str, int]]
) -> Iterator[tuple[Severity, str, str]]:
    for url, _ in redirects:
        host = Origin.from_url(url).host
        if host.removeprefix("www.") != origin.host.removeprefix("www."):
            message = f"a redirect leads to {host}, whose owner then controls the rules"
            yield Severity.WARNING, "foreign-redirect", message
            return


def _about_response(
    status: int, headers: Mapping[str, str], now: float
) -> Iterator[tuple[Severity, str, str]]:
    is_server_error = 500 <= status <= 599  # noqa: PLR2004
    if is_server_error or status == HTTPStatus.TOO_MANY_REQUESTS:
        message = f"status {status}: crawlers stop fetching the entire site"
        yield Severity.WARNING, "server-error", message
    if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
        message = f"status {status}: crawlers may fetch everything"
        yield Severity.WARNING, "access-denied", message
    is_success = 200 <= status <= 299  # noqa: PLR2004
    if not is_success or status == HTTPStatus.PARTIAL_CONTENT:
        return
    media_type = headers.get("content-type", "").partition(";")[0].strip()
    if media_type.lower() != "text/plain":
        message = f"expected the Content-Type text/plain, got {media_type[:80]!r}"
        yield Severity.WARNING, "wrong-content-type", message
    lifetime = freshness_lifetime(headers, now=now, policy=_AS_ASKED)
    if lifetime > _DAY:
        message = f"crawlers may cache the file for {lifetime / _DAY:.1f} days"
        yield Severity.WARNING, "long-caching", message
    if lifetime <= 0:
        message = "the headers do not let crawlers cache the file"
        yield Severity.NOTE, "no-caching", message


def sarif(findings: Sequence[tuple[str, Finding]], *, version: str) -> dict[str, Any]:
    """The (URL or file, finding) pairs as a SARIF 2.1.0 log (an OASIS standard)."""
    codes = sorted({one.code for _, one in findings})
    driver = {
        "name": "robotsgate",
        "version": version,
        "rules": [{"id": code} for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_sarif_result(*one) for one in findings],
    }
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _sarif_result(source: str, finding: Finding) -> dict[str, Any]:
    uri = source if "://" in source else quote(source)
    place: dict[str, Any] = {"artifactLocation": {"uri": uri}}
    if finding.line:
        region = {"startLine": finding.line, "startColumn": max(1, finding.column)}
        place["region"] = region
    return {
        "ruleId": finding.code,
        "level": finding.severity.value,
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
    }


# --- The tester page

# Hostile rules take up to 0.1 s per check and dialect.
_MOST_CHECKS = 50
_LONGEST_NAME = 2_000

# More would only fill up the page.
_MOST_LINES = 5_000
_MOST_FINDINGS = 1_000
_LONGEST_REASON = 2_000

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)

_DIALECTS = {Dialect.RFC9309: "RFC 9309", Dialect.GOOGLE: "Google"}

# Whether the path is allowed, the line that applies, and the reason; on an error, the
# first two are `None`.
Decision = tuple[bool | None, int | None, str]


class BadRequestError(Exception):
    """A request that the page itself would never send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The input from the page."""

    text: str | None  # `None` if a URL was entered
    url: str
    agents: tuple[str, ...]
    paths: tuple[str, ...]

    @classmethod
    def of(cls, value: object) -> Query:
        """Parse a query from JSON types.

        Raises:
            BadRequestError: `value` is invalid, or there are too many checks.
        """
        match value:
            case {
                "text": None | str() as text,
                "url": str() as url,
                "agents": list() as agents,
                "paths": list() as paths,
            } if all(map(_is_name, [url, *agents, *paths])):
                names = tuple(agents) or ("*",)
                checks = len(names) * len(paths)
                if checks > _MOST_CHECKS:
                    raise BadRequestError(
                        f"expected at most {_MOST_CHECKS} checks (agents times paths),"
                        f" got {checks}"
                    )
                return cls(
                    text=text,
                    url=url,
                    agents=names,
                    paths=tuple(map(_with_slash, paths)),
                )
        raise BadRequestError(
            "expected text, url, agents and paths; all but the text are limited to"
            f" {_LONGEST_NAME} characters"
        )


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_NAME


def _with_slash(path: str) -> str:
    return path if path.startswith("/") or has_scheme(path) else f"/{path}"


def has_scheme(text: str) -> bool:
    return _SCHEME.match(text) is not None


def about_text(query: Query) -> dict[str, Any]:
    # Bytes, because a str that is a URL causes a warning.
    body = (query.text or "").encode("utf-8", "surrogatepass")
    files = [RobotsTxt.parse(body, dialect=dialect) for dialect in _DIALECTS]
    answers = [
        answer
        for path, agent in product(query.paths, query.agents)
        for answer in _answers_in(files, agent, path)
    ]
    return shown_file(files[0]) | {"answers": answers, "source": None}


def shown_file(robots: RobotsTxt) -> dict[str, Any]:
    """The first lines of a file and the first lint findings about it."""
    findings = about_file(robots, most=_MOST_FINDINGS)
    return {
        "lines": [
            {"number": line.number, "text": printable(line.text.replace("\t", " "))}
            for line in robots.lines[:_MOST_LINES]
        ],
        "more_lines": max(0, len(robots.lines) - _MOST_LINES),
        "findings": [finding.as_dict() for finding in findings],
        "more_findings": len(robots.diagnostics) - len(findings),
    }


def _answers_in(
    files: Iterable[RobotsTxt], agent: str, path: str
) -> list[dict[str, Any]]:
    """A check's results: one if all dialects agree, otherwise one per dialect."""
    decisions = {robots.dialect: _decision(robots, agent, path) for robots in files}
    results = {(allowed, line) for allowed, line, _ in decisions.values()}
    if len(results) == 1:
        return [answer_of(agent, path, decisions[Dialect.RFC9309])]
    return [
        answer_of(agent, path, decision) | {"dialect": _DIALECTS[dialect]}
        for dialect, decision in decisions.items()
    ]


def answer_of(agent: str, path: str, decision: Decision) -> dict[str, Any]:
    allowed, line, reason = decision
    return {
        "agent": printable(agent),
        "path": printable(path),
        "dialect": "",  # all dialects have this result
        "allowed": allowed,
        "line": line,
        "reason": printable(reason[:_LONGEST_REASON]),  # may quote a very long rule
    }


def _decision(robots: RobotsTxt, agent: str, path: str) -> Decision:
    try:
        match = robots.match(agent, path)
    except (InvalidProductTokenError, InvalidURLError) as error:
        return None, None, str(error)
    reason = reason_text(match, file="the file")
    if match.rule is None:
        return match.allowed, None, reason
    return match.allowed, match.rule.line, f"by {reason}"
