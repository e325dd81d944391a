"""Decides what applies to an origin (its rules, full allow or full disallow), and why.

Pure: the time is an argument. Source: RFC 9309 §2.3.1.

Think of it this way: an answer applies while it is fresh, or if no fetch has failed
since. Otherwise `_phases` lists the phases of the outage, some of which may be empty.
Elapsed time ends each of them, but is not enough to allow everything: see
`_is_at_fault`. A new answer ends the outage in any phase.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from robotsgate.caching._entry import LARGEST_SKEW, OVERRIDE, limit, span
from robotsgate.caching._outcome import AccessResult
from robotsgate.caching._policy import AfterUnreachableLimit
from robotsgate.caching._verdict import Reason, Verdict, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robotsgate.caching._entry import Answer, Entry, Outage
    from robotsgate.caching._policy import Policy
    from robotsgate.robotstxt._model import Match

_DAY = 86_400.0

# After one of these answers, an origin stays disallowed however long an outage lasts.
_CLOSED = (AccessResult.RESTRICTED, AccessResult.REFUSED)


class Effect(enum.Enum):
    """What applies to an origin."""

    RULES = "rules"
    """The rules of the last robots.txt (conditional allow)."""

    ALLOW = "allow"
    """Full allow."""

    DISALLOW = "disallow"
    """Full disallow, except for /robots.txt itself."""

    REFUSE = "refuse"
    """Full disallow, even of /robots.txt, because the origin's address was refused."""


_OF_ANSWER = {
    AccessResult.SUCCESSFUL: (Effect.RULES, None),
    AccessResult.UNAVAILABLE: (Effect.ALLOW, Reason.UNAVAILABLE),
    AccessResult.RESTRICTED: (Effect.DISALLOW, Reason.RESTRICTED),
    AccessResult.REFUSED: (Effect.REFUSE, Reason.ADDRESS_REFUSED),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """What applies to an origin, why, and until when.

    Attributes:
        effect: what applies.
        reason: why that applies; `None` if the fetched rules apply.
        is_outage: whether the decision depends on the outage, not just on the answer.
        until: when the decision must be made again, in epoch seconds.
    """

    effect: Effect
    reason: Reason | None = None
    is_outage: bool = False
    until: float

    @property
    def is_stale(self) -> bool:
        """Whether the rules are used beyond their freshness lifetime."""
        return self.is_outage and self.effect is Effect.RULES


def in_force(entry: Entry, *, now: float, policy: Policy) -> InForce:
    """What applies at `now` according to `entry`, which must be current."""
    answer = entry.answer
    if answer is OVERRIDE:
        return InForce(
            effect=Effect.RULES, reason=Reason.OVERRIDDEN, until=answer.fresh_until
        )
    if answer is not None and (entry.outage is None or answer.is_fresh(now)):
        effect, reason = _OF_ANSWER[answer.access]
        until = min(entry.next_fetch_at, answer.fresh_until)
        return InForce(effect=effect, reason=reason, until=until)
    outage = cast("Outage", entry.outage)  # an entry has one of the two
    phases = _phases(answer, outage, now=now, policy=policy)
    end, effect, reason = next(phase for phase in phases if now < phase[0])
    until = min(end, outage.retry_at)
    if answer is not None and answer.is_ahead(now):  # it may be fresh from then on
        until = min(until, answer.answered_at - LARGEST_SKEW)
    return InForce(effect=effect, reason=reason, is_outage=True, until=until)


def explain(
    entry: Entry,
    decision: InForce,
    match: Match,
    *,
    url: str,
    agent: str | tuple[str, ...],
) -> Verdict:
    """The verdict for one URL.

    For a full allow or a full disallow, only `match.is_robots_txt` is used. `url` has
    no userinfo.
    """
    has_rules = decision.effect is Effect.RULES
    answer = entry.answer
    decides = answer if has_rules or not decision.is_outage else None
    if answer is OVERRIDE:
        decides = None
    # The answer applies while it is fresh, even if an early refresh has failed.
    source = cast("Answer | Outage", entry.outage if decision.is_outage else answer)
    return Verdict(
        allowed=match.is_robots_txt
        or decision.effect is Effect.ALLOW
        or (has_rules and match.allowed),
        url=url,
        agent=agent,
        reason=reason_of(match)
        if match.is_robots_txt or decision.reason is None
        else decision.reason,
        rule=match.rule if has_rules else None,
        group=match.group if has_rules else None,
        access=AccessResult.UNREACHABLE
        if decision.is_outage
        else cast("Answer", answer).access,
        is_stale=decision.is_stale,
        origin=entry.origin,
        status=source.status,
        redirects=(decides or source).redirects,
        error=source.error,
        fetched_at=None if decides is None else decides.answered_at,
        fresh_until=_fresh_until(entry, decision),
    )


def _phases(
    answer: Answer | None, outage: Outage, *, now: float, policy: Policy
) -> Iterator[tuple[float, Effect, Reason | None]]:
    """The end, effect and reason of each phase; the first whose end is ahead applies.

    The last phase never ends.
    """
    access = None if answer is None else answer.access
    closed = Effect.REFUSE if access is AccessResult.REFUSED else Effect.DISALLOW
    yield outage.since + policy.outage_grace, closed, Reason.UNREACHABLE
    if answer is not None and access is AccessResult.SUCCESSFUL:
        yield _copy_until(answer, outage, policy), Effect.RULES, None
    opens_at = _opens_at(answer, outage, now=now, policy=policy)
    yield opens_at, closed, Reason.UNREACHABLE
    is_open = (
        policy.after_unreachable_limit is not AfterUnreachableLimit.DISALLOW
        and access not in _CLOSED
        and _is_at_fault(answer, outage, opens_at=opens_at, policy=policy)
    )
    effect = Effect.ALLOW if is_open else closed
    yield math.inf, effect, Reason.UNREACHABLE_TOO_LONG


def _copy_until(answer: Answer, outage: Outage, policy: Policy) -> float:
    """When the copy in `answer` may no longer be used."""
    if policy.after_unreachable_limit is AfterUnreachableLimit.LAST_COPY:
        return math.inf
    began_in_time = outage.since < answer.fresh_until + policy.stale_window
    return outage.since + policy.stale_window if began_in_time else -math.inf


def _opens_at(
    answer: Answer | None, outage: Outage, *, now: float, policy: Policy
) -> float:
    """When the limit ends, counting from the first evidence; never without evidence.

    This is never before the answer becomes stale, because fetches that fail before then
    are early refreshes.
    """
    if outage.evidence_since is None:
        return math.inf
    opens_at = outage.evidence_since + span(answer, policy)
    if answer is None or answer.is_ahead(now):
        return opens_at
    return max(opens_at, answer.fresh_until)


def _is_at_fault(
    answer: Answer | None, outage: Outage, *, opens_at: float, policy: Policy
) -> bool:
    """Whether the origin has been failing for as long as the limit, and still is.

    Elapsed time is not enough. There must be evidence from enough different days, and
    the last attempt must be evidence dated after the limit.
    """
    most_days = max(1.0, limit(answer, policy) / _DAY)
    return (
        outage.last_evidence_at == outage.last_attempt_at
        and outage.last_evidence_at >= opens_at
        and outage.days >= min(policy.days_of_evidence, most_days)
    )


def _fresh_until(entry: Entry, decision: InForce) -> float | None:
    if decision.is_outage:
        return entry.next_fetch_at
    answer = cast("Answer", entry.answer)
    return None if answer is OVERRIDE else answer.fresh_until
