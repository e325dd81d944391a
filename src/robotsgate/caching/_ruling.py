"""Decides what an entry means at a given time: its rules, everything, or nothing.

Pure: the time is an argument. Source: RFC 9309 §2.3.1.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

from robotsgate.caching._access import AccessResult
from robotsgate.caching._outcome import FailureKind
from robotsgate.caching._policy import AfterStaleWindow
from robotsgate.caching._verdict import Reason, Verdict
from robotsgate.robotstxt._model import RuleKind

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._policy import Policy
    from robotsgate.robotstxt._model import Match


class Effect(enum.Enum):
    """What is in force for an origin."""

    RULES = "rules"
    """Those of the copy (conditional allow)."""

    ALLOW = "allow"
    """Full allow."""

    DISALLOW = "disallow"
    """Full disallow, but for /robots.txt itself."""

    REFUSE = "refuse"
    """Full disallow, /robots.txt included: whoever asks for it dials the address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ruling:
    """What is in force for an origin, why, and until when.

    Attributes:
        effect: what is in force.
        reason: why; `None` where the rules decide.
        is_stale: whether the rules outlived their freshness.
        until: when the ruling must be looked at again, epoch seconds.
    """

    effect: Effect
    reason: Reason | None = None
    is_stale: bool = False
    until: float


def ruling(entry: Entry, *, now: float, policy: Policy) -> Ruling:
    """What `entry` means at `now`, which must be before its `next_fetch_at`."""
    match entry.access:
        case AccessResult.SUCCESSFUL:
            return Ruling(effect=Effect.RULES, until=entry.next_fetch_at)
        case AccessResult.UNAVAILABLE:
            return Ruling(
                effect=Effect.ALLOW,
                reason=Reason.UNAVAILABLE,
                until=entry.next_fetch_at,
            )
        case AccessResult.RESTRICTED:
            return Ruling(
                effect=Effect.DISALLOW,
                reason=Reason.RESTRICTED,
                until=entry.next_fetch_at,
            )
        case AccessResult.UNREACHABLE:
            return _ruling_of_outage(entry, now=now, policy=policy)
        case _:
            assert_never(entry.access)


def verdict(entry: Entry, found: Ruling, match: Match | None) -> Verdict:
    """The answer that `found` and, where the rules decide, `match` give.

    Args:
        entry: what is known about the origin.
        found: what that means now.
        match: what the rules say; for full allow and full disallow only whether
            the URL is /robots.txt counts.
    """
    is_robots_txt = (
        match is not None and match.is_robots_txt and found.effect is not Effect.REFUSE
    )
    reason = found.reason
    if is_robots_txt:
        reason = Reason.ROBOTS_TXT
    elif reason is None:
        reason = Reason.NO_GROUP if match is None else _reason_of_match(match)
    uses_rules = found.effect is Effect.RULES
    copy = entry.copy if uses_rules else None
    answered_at = entry.checked_at if entry.failure is None else None
    return Verdict(
        allowed=is_robots_txt
        or found.effect is Effect.ALLOW
        or (uses_rules and (match is None or match.allowed)),
        reason=reason,
        rule=match.rule if match and uses_rules else None,
        group=match.group if match and uses_rules else None,
        access=entry.access,
        is_stale=found.is_stale,
        origin=entry.origin,
        status=entry.status,
        redirects=entry.redirects,
        error=entry.error,
        fetched_at=copy.fetched_at if copy else answered_at,
        fresh_until=copy.fresh_until if copy else entry.next_fetch_at,
    )


def _reason_of_match(match: Match) -> Reason:
    if match.rule is not None:
        is_allow = match.rule.kind is RuleKind.ALLOW
        return Reason.ALLOWED_BY_RULE if is_allow else Reason.DISALLOWED_BY_RULE
    return Reason.NO_GROUP if match.group is None else Reason.NO_MATCHING_RULE


def _ruling_of_outage(entry: Entry, *, now: float, policy: Policy) -> Ruling:
    """The phases of an outage: grace, stale window, and what comes after it."""
    if entry.failure is FailureKind.ADDRESS_REFUSED:
        return Ruling(
            effect=Effect.REFUSE,
            reason=Reason.ADDRESS_REFUSED,
            until=entry.next_fetch_at,
        )
    since = now if entry.unreachable_since is None else entry.unreachable_since
    grace_end = since + policy.outage_grace
    window_end = since + policy.stale_window
    if now < grace_end:
        effect, reason, end = Effect.DISALLOW, Reason.UNREACHABLE, grace_end
    elif now < window_end:
        effect, reason, end = Effect.DISALLOW, Reason.UNREACHABLE, window_end
        if entry.copy is not None:
            effect = Effect.RULES
    else:
        effect, reason, end = (
            _after_stale_window(entry, policy),
            Reason.UNREACHABLE_TOO_LONG,
            math.inf,
        )
    until = min(end, entry.next_fetch_at)
    if effect is not Effect.RULES or entry.copy is None:
        return Ruling(effect=effect, reason=reason, until=until)
    fresh_until = entry.copy.fresh_until
    if now < fresh_until:  # an early refresh failed, and the copy is good all the same
        return Ruling(effect=effect, until=min(until, fresh_until))
    return Ruling(effect=effect, is_stale=True, until=until)


def _after_stale_window(entry: Entry, policy: Policy) -> Effect:
    # What is wrong on our side says nothing about the origin, and opens no door.
    is_ours = entry.failure is FailureKind.POOL
    no_rules = Effect.DISALLOW if is_ours else Effect.ALLOW
    match policy.after_stale_window:
        case AfterStaleWindow.ALLOW:
            return no_rules
        case AfterStaleWindow.LAST_COPY:
            return no_rules if entry.copy is None else Effect.RULES
        case AfterStaleWindow.DISALLOW:
            return Effect.DISALLOW
        case _:
            assert_never(policy.after_stale_window)
