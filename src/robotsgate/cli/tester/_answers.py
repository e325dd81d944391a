"""The contents of the tester page: a file, and a result for each check. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from robotsgate.caching import printable
from robotsgate.cli._findings import about_file
from robotsgate.errors import InvalidProductTokenError, InvalidURLError

if TYPE_CHECKING:
    from robotsgate.robotstxt import Match, RobotsTxt

# Hostile rules take up to 0.1 s per check.
MOST_ANSWERS = 50
_LONGEST_NAME = 2_000

# Linting takes 15 microseconds per line. The longest file that is read has some 20,000
# lines of usual length.
_MOST_PASTED_LINES = 50_000

# More would only fill the browser, and the memory of the server.
_MOST_LINES = 5_000
_MOST_FINDINGS = 1_000
_LONGEST_REASON = 2_000


class BadRequestError(Exception):
    """A request that the page would not send."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """The input of the page.

    Attributes:
        text: the pasted file; `None` if a URL was entered.
        url: the URL to fetch from; empty if a file was pasted.
        agents: at least one.
        paths: paths or URLs; may be empty.
    """

    text: str | None
    url: str
    agents: tuple[str, ...]
    paths: tuple[str, ...]

    def __post_init__(self) -> None:
        """Refuse input that would take too long.

        Raises:
            BadRequestError: there are too many checks or lines.
        """
        if len(self.agents) * len(self.paths) > MOST_ANSWERS:
            raise BadRequestError(
                f"expected at most {MOST_ANSWERS} results, got {len(self.agents)}"
                f" agents and {len(self.paths)} paths"
            )
        lines = len((self.text or "").splitlines())
        if lines > _MOST_PASTED_LINES:
            raise BadRequestError(
                f"expected at most {_MOST_PASTED_LINES} lines, got {lines}"
            )

    @classmethod
    def of(cls, value: object) -> Query:
        """Parse a query from JSON types.

        Raises:
            BadRequestError: it is invalid, or too large.
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
                    paths=tuple(paths),
                )
        raise BadRequestError(
            "expected text, url, agents and paths; all but the text are limited to"
            f" {_LONGEST_NAME} characters"
        )


def shown_file(robots: RobotsTxt) -> dict[str, Any]:
    """The first lines of a file, and the first findings of lint."""
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


def answer_in(robots: RobotsTxt, agent: str, path: str) -> dict[str, Any]:
    """The result of a check with a pasted file."""
    return answer_of(agent, path, _decision(robots, agent, path))


def answer_of(
    agent: str, path: str, decision: tuple[bool, int | None, str] | str
) -> dict[str, Any]:
    """One result as JSON types.

    Args:
        agent: the crawler.
        path: a path or a URL.
        decision: (whether it is allowed, the line that applies, why), or an error.
    """
    names = {"agent": printable(agent), "path": printable(path)}
    if isinstance(decision, str):
        return names | {"allowed": None, "line": None, "reason": printable(decision)}
    allowed, line, reason = decision
    shown = printable(reason[:_LONGEST_REASON])  # a rule in it may be very long
    return names | {"allowed": allowed, "line": line, "reason": shown}


def _decision(
    robots: RobotsTxt, agent: str, path: str
) -> tuple[bool, int | None, str] | str:
    try:
        match = robots.match(agent, path)
    except (InvalidProductTokenError, InvalidURLError) as error:
        return str(error)
    line = None if match.rule is None else match.rule.line
    return match.allowed, line, _reason(match)


def _reason(match: Match) -> str:
    group = "all agents" if match.group == "*" else match.group
    if match.rule is not None:
        return f"by line {match.rule.line} ({match.rule}, for {group})"
    if match.is_robots_txt:
        return "robots.txt itself may always be fetched"
    if match.group is None:
        return "the file has no group for this agent"
    return f"none of the rules for {group} match"


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_NAME
