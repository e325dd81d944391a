"""Merges two processes' entries for one origin, so that nothing is lost.

Think of it this way: an origin's fetches, whichever process makes them, lead from one
answer to the next, and the failures between two answers form an outage:

    answer 1 ── fails ──▶ answer 1 + outage ── fails ──▶ answer 1 + outage ─┐
        └───────────────────────────┬──────────── a fetch is answered ──────┘
                                    ▼
    answer 2 ── fails ──▶ …

Each process is in one of these states. A later answer supersedes everything before it,
so if two states have different answers, the one with the later answer wins outright. If
two states have the same answer, the processes may have seen different failures of the
same outage, which began with the first failure; the last failure determines its current
state.

Both cases take a maximum in some order, so `merge` is associative, commutative and
idempotent, and processes may write to a store in any order. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robotsgate.caching._entry import Answer, Entry, Outage


def merge(known: Entry | None, stored: Entry | None, *, now: float) -> Entry | None:
    """Merge two entries for the same origin and terms.

    An answer that is ahead of `now` (`Answer.is_ahead`) is treated as the earlier of
    the two.
    """
    if known is None or stored is None:
        return known or stored
    if known.answer != stored.answer:
        known_is_later = _order(known.answer, now) > _order(stored.answer, now)
        return known if known_is_later else stored
    if known.outage is None or stored.outage is None:
        return known if stored.outage is None else stored
    return replace(known, outage=_joint_outage(known.outage, stored.outage))


def _joint_outage(one: Outage, other: Outage) -> Outage:
    """The outage that two processes saw as `one` and `other`."""
    later = max((one, other), key=_order_of_outage)
    return replace(
        later,
        since=min(one.since, other.since),
        attempts=max(one.attempts, other.attempts),
        evidence_since=min(
            _set(one.evidence_since, other.evidence_since), default=None
        ),
        last_evidence_at=max(
            _set(one.last_evidence_at, other.last_evidence_at), default=None
        ),
        days=max(one.days, other.days),
    )


def _order(answer: Answer | None, now: float) -> tuple[object, ...]:
    """The sort key of an answer; the latest answer has the greatest key."""
    if answer is None:
        return (0,)
    return (
        1,
        not answer.is_ahead(now),
        answer.answered_at,
        *_sortable(
            answer.access.value,
            answer.fresh_until,
            answer.retry_at,
            answer.status,
            answer.redirects,
            answer.error,
            None if answer.packed is None else bytes(answer.packed),
        ),
    )


def _order_of_outage(outage: Outage) -> tuple[object, ...]:
    """The sort key of an outage: the fields that `_joint_outage` does not combine."""
    failure = None if outage.failure is None else outage.failure.value
    return (
        outage.last_attempt_at,
        outage.retry_at,
        *_sortable(failure, outage.status, outage.redirects, outage.error),
    )


def _sortable(*fields: object) -> list[tuple[bool, object]]:
    """`fields`, wrapped so that `None` sorts before anything else."""
    return [(field is not None, field) for field in fields]


def _set(*times: float | None) -> list[float]:
    """The `times` that are not `None`."""
    return [time for time in times if time is not None]
