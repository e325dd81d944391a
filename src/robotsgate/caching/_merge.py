"""Joins what two processes know of one origin, so that nothing they learned is lost.

`merge` is associative, commutative and idempotent, so processes may write to a store
in any order. Pure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from robotsgate.caching._entry import Answer, Entry, Outage


def merge(known: Entry | None, stored: Entry | None, *, now: float) -> Entry | None:
    """What two entries of one origin and the same terms say together.

    If the answers differ, the entry with the later answer is taken as a whole. If they
    are the same, the outages are joined.

    Args:
        known: what this process knows; `None` for nothing.
        stored: what the store holds; `None` for nothing.
        now: epoch seconds; an answer that is ahead of it (`Answer.is_ahead`) counts
            as earlier than any other.
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
    begun = [outage.since for outage in (one, other) if outage.attempts > 0]
    return replace(
        later,
        since=min(begun or [one.since, other.since]),
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
    """The sort key of an answer; that of the latest answer is the greatest."""
    if answer is None:
        return (0,)
    return (
        1,
        not answer.is_ahead(now),
        answer.answered_at,
        *_sortable(
            answer.access.value,
            answer.fresh_until,
            answer.status,
            answer.redirects,
            answer.error,
            None if answer.packed is None else bytes(answer.packed),
        ),
    )


def _order_of_outage(outage: Outage) -> tuple[object, ...]:
    """The sort key of an outage: what `_joint_outage` takes from the later one."""
    failure = None if outage.failure is None else outage.failure.value
    return (
        outage.last_attempt_at,
        outage.retry_at,
        *_sortable(failure, outage.status, outage.redirects, outage.error),
    )


def _sortable(*fields: object) -> list[tuple[bool, object]]:
    """`fields` with an order between `None` and anything else."""
    return [(field is not None, field) for field in fields]


def _set(*times: float | None) -> list[float]:
    """Those of `times` that are not `None`."""
    return [time for time in times if time is not None]
