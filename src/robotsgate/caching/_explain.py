"""Puts together why a URL is allowed or not: the entry, what is in force, the rule.

Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from robotsgate.caching._access import AccessResult
from robotsgate.caching._entry import OVERRIDE
from robotsgate.caching._in_force import Effect
from robotsgate.caching._verdict import Reason, Verdict
from robotsgate.robotstxt._model import RuleKind

if TYPE_CHECKING:
    from robotsgate.caching._entry import Answer, Entry, Outage
    from robotsgate.caching._in_force import InForce
    from robotsgate.robotstxt._model import Match


def explain(
    entry: Entry,
    standing: InForce,
    match: Match,
    *,
    url: str,
    agent: str | tuple[str, ...],
) -> Verdict:
    """The verdict about one URL.

    Args:
        entry: what is known about the origin.
        standing: what of that is in force.
        match: what the rules say; in a full allow or a full disallow, only its
            `is_robots_txt` counts.
        url: the one that was asked about, without userinfo.
        agent: the one that was asked about.
    """
    has_rules = standing.effect is Effect.RULES
    answer = entry.answer
    decides = answer if has_rules or not standing.is_outage else None
    if answer is OVERRIDE:
        decides = None
    # While the answer is fresh, it counts, even if an early refresh has failed.
    source = cast("Answer | Outage", entry.outage if standing.is_outage else answer)
    return Verdict(
        allowed=match.is_robots_txt
        or standing.effect is Effect.ALLOW
        or (has_rules and match.allowed),
        url=url,
        agent=agent,
        reason=Reason.ROBOTS_TXT if match.is_robots_txt else _reason(standing, match),
        rule=match.rule if has_rules else None,
        group=match.group if has_rules else None,
        access=AccessResult.UNREACHABLE
        if standing.is_outage
        else cast("Answer", answer).access,
        is_stale=standing.is_stale,
        origin=entry.origin,
        status=source.status,
        redirects=source.redirects,
        error=source.error,
        fetched_at=None if decides is None else decides.answered_at,
        fresh_until=_fresh_until(entry, standing),
    )


def _fresh_until(entry: Entry, standing: InForce) -> float | None:
    if standing.is_outage:
        return entry.next_fetch_at
    answer = cast("Answer", entry.answer)
    return None if answer is OVERRIDE else answer.fresh_until


def _reason(standing: InForce, match: Match) -> Reason:
    if standing.reason is not None:
        return standing.reason
    if match.rule is not None:
        is_allow = match.rule.kind is RuleKind.ALLOW
        return Reason.ALLOWED_BY_RULE if is_allow else Reason.DISALLOWED_BY_RULE
    return Reason.NO_GROUP if match.group is None else Reason.NO_MATCHING_RULE
