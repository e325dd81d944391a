"""What the tester page shows: a file and the result of each check. A pure module."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from robotsgate.caching import printable, reason_text
from robotsgate.cli._findings import about_file
from robotsgate.errors import InvalidProductTokenError, InvalidURLError
from robotsgate.robotstxt import Dialect, RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Iterable

# Hostile rules take up to 0.1 s per check and dialect.
_MOST_CHECKS = 50
_LONGEST_NAME = 2_000

# Linting takes 15 microseconds per line. Cut off at its maximum size, a fetched file
# has some 20,000 lines of typical length.
_MOST_PASTED_LINES = 50_000
_MOST_PASTED_BYTES = 2**20

# More would only fill up the page.
_MOST_LINES = 5_000
_MOST_FINDINGS = 1_000
_LONGEST_REASON = 2_000

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)

_DIALECTS = {Dialect.RFC9309: "RFC 9309", Dialect.GOOGLE: "Google"}


class BadRequestError(Exception):
    """A request that the page itself would never send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The input from the page.

    Attributes:
        text: the pasted file; `None` if a URL was entered.
        url: the URL to fetch from; empty if a file was pasted.
        agents: the crawlers; at least one.
        paths: paths or URLs; may be empty.
    """

    text: str | None
    url: str
    agents: tuple[str, ...]
    paths: tuple[str, ...]

    def __post_init__(self) -> None:
        """Reject input that would take too long to process.

        Raises:
            BadRequestError: there are too many checks, lines or bytes.
        """
        checks = len(self.agents) * len(self.paths)
        if checks > _MOST_CHECKS:
            raise BadRequestError(
                f"expected at most {_MOST_CHECKS} checks (agents times paths),"
                f" got {checks}"
            )
        text = self.text or ""
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > _MOST_PASTED_BYTES:
            raise BadRequestError(
                f"expected at most {_MOST_PASTED_BYTES} bytes of text, got {size}"
            )
        lines = len(text.splitlines())
        if lines > _MOST_PASTED_LINES:
            raise BadRequestError(
                f"expected at most {_MOST_PASTED_LINES} lines, got {lines}"
            )

    @classmethod
    def of(cls, value: object) -> Query:
        """Parse a query from JSON types.

        Raises:
            BadRequestError: `value` is invalid or too large.
        """
        match value:
            case {
                "text": None | str() as text,
                "url": str() as url,
                "agents": list() as agents,
                "paths": list() as paths,
            } if all(map(_is_name, [url, *agents, *paths])):
                return cls(
                    text=text,
                    url=url,
                    agents=tuple(agents) or ("*",),
                    paths=tuple(map(_with_slash, paths)),
                )
        raise BadRequestError(
            "expected text, url, agents and paths; all but the text are limited to"
            f" {_LONGEST_NAME} characters"
        )


def about_text(query: Query) -> dict[str, Any]:
    """The pasted file and the result of each check."""
    files = _in_each_dialect(query.text or "")
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


def _in_each_dialect(text: str) -> list[RobotsTxt]:
    """A pasted file, parsed in each dialect."""
    # Bytes, because a str that is a URL causes a warning.
    body = text.encode("utf-8", "surrogatepass")
    return [RobotsTxt.parse(body, dialect=dialect) for dialect in _DIALECTS]


def _answers_in(
    files: Iterable[RobotsTxt], agent: str, path: str
) -> list[dict[str, Any]]:
    """A check's results: one if all dialects agree, otherwise one per dialect."""
    decisions = {robots.dialect: _decision(robots, agent, path) for robots in files}
    results = {(allowed, line) for allowed, line, _ in decisions.values()}
    if len(results) == 1:
        return [answer_of(agent, path, decisions[Dialect.RFC9309])]
    return [
        answer_of(agent, path, decision, dialect=_DIALECTS[dialect])
        for dialect, decision in decisions.items()
    ]


def answer_of(
    agent: str,
    path: str,
    decision: tuple[bool | None, int | None, str],
    *,
    dialect: str = "",
) -> dict[str, Any]:
    """One result as JSON-compatible types.

    Args:
        agent: the crawler.
        path: a path or a URL.
        decision: (whether the path is allowed, the line that applies, the reason); on
            an error, the first two are `None`.
        dialect: the dialect's name if only that dialect has this result; otherwise
            empty.
    """
    allowed, line, reason = decision
    return {
        "agent": printable(agent),
        "path": printable(path),
        "dialect": dialect,
        "allowed": allowed,
        "line": line,
        "reason": printable(reason[:_LONGEST_REASON]),  # may quote a very long rule
    }


def has_scheme(text: str) -> bool:
    """Whether `text` begins with the scheme of a URL."""
    return _SCHEME.match(text) is not None


def _decision(
    robots: RobotsTxt, agent: str, path: str
) -> tuple[bool | None, int | None, str]:
    try:
        match = robots.match(agent, path)
    except (InvalidProductTokenError, InvalidURLError) as error:
        return None, None, str(error)
    reason = reason_text(match, file="the file")
    if match.rule is None:
        return match.allowed, None, reason
    return match.allowed, match.rule.line, f"by {reason}"


def _with_slash(path: str) -> str:
    return path if path.startswith("/") or has_scheme(path) else f"/{path}"


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_NAME
