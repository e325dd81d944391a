"""Explains a verdict in a few words, or with the lines and rules behind it.

A pure module: it is given the verdict and the file, and must never use the network.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from robotsgate.caching import Reason, date_text, file_of, reason_text
from robotsgate.robotstxt import Line, RuleKind

if TYPE_CHECKING:
    from typing import Any

    from robotsgate.caching import Verdict
    from robotsgate.robotstxt import RobotsTxt, Rule

_LINES_AROUND = 3

_MOST_RULES = 10

_UNITS = ((86_400, "days"), (3_600, "h"), (60, "min"))

_WITHOUT_RULE = {
    Reason.NO_MATCHING_RULE: "a Disallow line for {group} whose pattern matches",
    Reason.NO_GROUP: "a group for {agent}all agents (*)",
    Reason.ROBOTS_TXT: "nothing: robots.txt itself may always be fetched",
    Reason.UNAVAILABLE: "a file at {origin}/robots.txt, once it is fetched",
    Reason.UNREACHABLE: "a file or a 404 from the server at the next fetch, at {date}",
    Reason.UNREACHABLE_TOO_LONG: (
        "a file or a 404 from the server at the next fetch, at {date}"
    ),
    Reason.ADDRESS_REFUSED: "an address that the address guard permits",
    Reason.RESTRICTED: "a status other than {status}, or another policy",
    Reason.OVERRIDDEN: "another override for this origin",
}


def summary(verdict: Verdict, *, now: float) -> str:
    """The reason for a verdict, and how long the verdict stays fresh after `now`.

    `now` is in epoch seconds.
    """
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
    """The explanation of a verdict.

    Attributes:
        lines: the line that applies and its context; empty if no line applies.
        deciding_line: the number of the line that applies, counted from 1; `None` if
            no line applies.
        competing_rules: the line number and text of each matching rule, in order of
            priority; at most ten.
        redirects: "301 to https://…" for each redirect followed.
        changes: descriptions of changes to the file or server that would alter the
            verdict.
    """

    lines: tuple[Line, ...]
    deciding_line: int | None
    competing_rules: tuple[str, ...]
    redirects: tuple[str, ...]
    changes: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """The explanation as JSON-compatible types."""
        return asdict(self) | {"lines": [line.as_dict() for line in self.lines]}


def explanation(verdict: Verdict, robots: RobotsTxt | None) -> Explanation:
    """The explanation of `verdict`.

    Args:
        verdict: the verdict.
        robots: the robots.txt behind the verdict; `None` if there is none.
    """
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
