"""Computes an origin's entry after a fetch.

Pure: the time is an argument. Sources: RFC 9309 §2.3.1 and §2.4.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from robotsgate.caching._access_result import access_result, is_evidence
from robotsgate.caching._entry import (
    Answer,
    Entry,
    Outage,
    PackedBody,
    longest_gap,
    usable,
)
from robotsgate.caching._freshness import (
    ASK_FOR_LESS,
    freshness_lifetime,
    refusal_lifetime,
    retry_after,
    retry_delay,
)
from robotsgate.caching._merge import merge
from robotsgate.caching._outcome import AccessResult
from robotsgate.caching._policy import AfterUnreachableLimit, terms_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.caching._outcome import Outcome
    from robotsgate.caching._policy import Policy

_DAY = 86_400.0

# A server can make an error message hundreds of kilobytes long.
_LONGEST_ERROR = 300

_NETWORK_IS_EVIDENCE = (AfterUnreachableLimit.ALLOW, AfterUnreachableLimit.LAST_COPY)


def entry_after(
    known: Entry | None,
    outcome: Outcome,
    *,
    origin: str,
    began_at: float,
    now: float,
    policy: Policy,
    pack: Callable[[bytes], PackedBody] = PackedBody.of,
) -> Entry:
    """The entry for `origin` after a fetch that lasted from `began_at` to `now`.

    `known` is the entry at the end of the fetch, including updates by other processes.
    `began_at` must not precede the response that was known when the fetch started, even
    if that response was dated by another clock. `pack` compresses the body.
    """
    last = _last_answer(known, now=now, policy=policy)
    known = usable(known, now=now, policy=policy)
    is_overtaken = (
        last is not None and began_at < last.answered_at and not last.is_ahead(now)
    )
    last_access = None if last is None else last.access
    access = access_result(outcome, policy, origin=origin, last_access=last_access)
    if access is not AccessResult.UNREACHABLE:
        answer = _answer(
            access, outcome, origin=origin, now=now, policy=policy, pack=pack
        )
        if last is not None and not is_overtaken and not last.is_ahead(now):
            # Even if our clock is minutes behind, the new answer must not look older.
            answered_at = max(now, math.nextafter(last.answered_at, math.inf))
            answer = replace(answer, answered_at=answered_at)
        entry = Entry(origin=origin, terms=terms_of(policy), answer=answer)
        return cast("Entry", merge(entry, known, now=now)) if is_overtaken else entry
    if is_overtaken and known is not None and last is not None and last.is_fresh(now):
        return known
    outage = _outage_after(known, outcome, origin=origin, now=now, policy=policy)
    return Entry(origin=origin, terms=terms_of(policy), answer=last, outage=outage)


def entry_meanwhile(
    known: Entry | None,
    outcome: Outcome,
    *,
    origin: str,
    now: float,
    retry_at: float,
    policy: Policy,
) -> Entry:
    """What applies to `origin` until `retry_at`, while our own machine cannot fetch.

    Such a failure is not an attempt, so this entry must not be stored or merged with
    others. If there is no outage, the entry is as if one had just begun.
    """
    known = usable(known, now=now, policy=policy)
    answer, outage = _answer_and_outage(known, now=now, policy=policy)
    if outage is None:
        outage = Outage(since=now, last_attempt_at=now, retry_at=now, attempts=1)
    outage = replace(
        outage,
        retry_at=max(outage.retry_at, retry_at),
        failure=outcome.failure,
        error=_error(outcome),
    )
    return Entry(origin=origin, terms=terms_of(policy), answer=answer, outage=outage)


def _last_answer(known: Entry | None, *, now: float, policy: Policy) -> Answer | None:
    """The last answer, if it is usable or means that there is no file.

    An answer without a file is kept, because a store that missed it could otherwise
    bring back an earlier copy.
    """
    if known is None or known.answer is None:
        return None
    if usable(known, now=now, policy=policy) is not None:
        return known.answer
    if known.answer.access is AccessResult.UNAVAILABLE:
        return replace(known.answer, fresh_until=0.0)  # even if our clock is set back
    return None


def _answer(
    access: AccessResult,
    outcome: Outcome,
    *,
    origin: str,
    now: float,
    policy: Policy,
    pack: Callable[[bytes], PackedBody],
) -> Answer:
    packed = asked = None
    if access is AccessResult.REFUSED:
        lifetime = refusal_lifetime(origin=origin, policy=policy)
    else:
        lifetime = freshness_lifetime(outcome.headers, now=now, policy=policy)
    if outcome.status in ASK_FOR_LESS:
        asked = retry_after(outcome.headers, now=now, policy=policy)
    if access is AccessResult.SUCCESSFUL:
        # An extra byte tells the parser that the file was truncated.
        packed = pack(outcome.body[: policy.max_body_bytes + 1])
    return Answer(
        access=access,
        answered_at=now,
        fresh_until=now + max(lifetime, asked or 0.0),
        retry_at=None if asked is None else now + asked,
        status=outcome.status,
        redirects=outcome.redirects,
        error=_error(outcome),
        packed=packed,
    )


def _outage_after(
    known: Entry | None, outcome: Outcome, *, origin: str, now: float, policy: Policy
) -> Outage:
    """The outage after one more failure."""
    answer, outage = _answer_and_outage(known, now=now, policy=policy)
    attempts = 1 if outage is None else outage.attempts + 1
    status = outcome.status
    delay = retry_delay(failures=attempts, status=status, origin=origin, policy=policy)
    asked = retry_after(outcome.headers, now=now, policy=policy) or 0.0
    after = Outage(
        since=now if outage is None else outage.since,
        last_attempt_at=now,
        retry_at=now + max(delay, asked),
        attempts=attempts,
        evidence_since=None if outage is None else outage.evidence_since,
        last_evidence_at=None if outage is None else outage.last_evidence_at,
        days=0 if outage is None else outage.days,
        failure=outcome.failure,
        status=status,
        redirects=outcome.redirects,
        error=_error(outcome),
    )
    if outage is not None and not after.has_response and outage.asks_to_wait(now):
        # What the server asked of all still holds.
        after = replace(
            after,
            retry_at=max(after.retry_at, outage.retry_at),
            failure=None,
            status=outage.status,
            redirects=outage.redirects,
            error=outage.error,
        )
    counts_network = policy.after_unreachable_limit in _NETWORK_IS_EVIDENCE
    if is_evidence(outcome, counts_network=counts_network):
        return _with_evidence(after, now=now, gap=longest_gap(answer, policy))
    return after


def _answer_and_outage(
    known: Entry | None, *, now: float, policy: Policy
) -> tuple[Answer | None, Outage | None]:
    """The parts of `known`, without an outage whose retry is overdue for too long."""
    if known is None:
        return None, None
    answer, outage = known.answer, known.outage
    if outage is not None and now > outage.retry_at + longest_gap(answer, policy):
        outage = None
    return answer, outage


def _with_evidence(outage: Outage, *, now: float, gap: float) -> Outage:
    """`outage` with its last attempt counted as evidence against the origin."""
    since, last, days = outage.evidence_since, outage.last_evidence_at, outage.days
    if since is None or last is None or now > last + gap:
        since, days = now, 1
    elif now // _DAY > last // _DAY:
        days += 1
    return replace(outage, evidence_since=since, last_evidence_at=now, days=days)


def _error(outcome: Outcome) -> str | None:
    text = outcome.error
    if text is None or len(text) <= _LONGEST_ERROR:
        return text
    return f"{text[:_LONGEST_ERROR]}…"
