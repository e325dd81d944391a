"""Entries: everything known about one origin, and how fetches change it.

Pure values; the time is an argument, and `_codec` serializes them for stores. Sources:
RFC 9309 §2.3.1 and §2.4.

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
state. Both cases take a maximum in some order, so `merge` is associative, commutative
and idempotent, and processes may write to a store in any order.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple, NewType, cast

from robotsgate.caching._freshness import (
    ASK_FOR_LESS,
    freshness_lifetime,
    retry_after,
    retry_delay,
    with_jitter,
)
from robotsgate.caching._outcome import FailureKind, access_result, is_evidence
from robotsgate.caching._policy import AccessResult, AfterUnreachableLimit, terms_of

if TYPE_CHECKING:
    from robotsgate.caching._outcome import Outcome, Redirects
    from robotsgate.caching._policy import Policy

# Even without synchronization, the clocks in a fleet differ by less than this. A date
# further ahead means that a clock was adjusted.
LARGEST_SKEW = 5 * 60.0

_DAY = 86_400.0

# A server can make an error message hundreds of kilobytes long.
_LONGEST_ERROR = 300

_NETWORK_IS_EVIDENCE = (AfterUnreachableLimit.ALLOW, AfterUnreachableLimit.LAST_COPY)


Packed = NewType("Packed", bytes)
"""A robots.txt, compressed with zlib."""


def pack(body: bytes, *, level: int = zlib.Z_BEST_SPEED) -> Packed:
    """Compress `body` at the fastest level: a hostile file takes 11 ms, not 50."""
    return Packed(zlib.compress(body, level))


def unpack(packed: Packed) -> bytes:
    return zlib.decompress(packed)


def unpack_within(packed: Packed, max_bytes: int) -> bytes | None:
    """The robots.txt if it is at most `max_bytes` (≥ 1) long, otherwise `None`."""
    body = zlib.decompressobj().decompress(packed, max_bytes + 1)
    return body if len(body) <= max_bytes else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The last conclusive result of a fetch, from the server or the address guard.

    Times are in epoch seconds. `retry_at` is when the Retry-After period of a 429 or
    503 ends, and `fresh_until` is not before it. `packed` is the part of the body that
    is used, plus one byte if the body is longer.
    """

    access: AccessResult
    answered_at: float
    fresh_until: float
    retry_at: float | None = None
    status: int | None = None
    redirects: Redirects = ()
    error: str | None = None
    packed: Packed | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Reject an answer that would allow everything by accident."""
        is_successful = self.access is AccessResult.SUCCESSFUL
        if is_successful != (self.packed is not None):
            raise ValueError(
                f"expected a body if and only if access is SUCCESSFUL, got {self!r}"
            )
        if self.access is AccessResult.UNREACHABLE:
            raise ValueError(f"expected an answer, got {self!r}")

    def is_ahead(self, now: float) -> bool:
        """Whether its date is so far ahead of `now` that a clock was clearly reset."""
        return self.answered_at > now + LARGEST_SKEW

    def is_fresh(self, now: float) -> bool:
        return now < self.fresh_until and not self.is_ahead(now)


OVERRIDE = Answer(
    access=AccessResult.SUCCESSFUL,
    answered_at=-math.inf,
    fresh_until=math.inf,
    packed=pack(b""),
)
"""The answer for an origin with an override; the file is in `LiveOrigins.overrides`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The fetches that have failed since the last answer.

    Times are in epoch seconds; those of attempts, in which they ended. `evidence_since`
    and `last_evidence_at` are those of the first and last attempt that showed that the
    origin is at fault (`is_evidence`), and `days` is the number of different days (UTC)
    with such an attempt. `failure` and the fields after it are those of the last
    attempt.
    """

    since: float
    last_attempt_at: float
    retry_at: float
    attempts: int
    evidence_since: float | None = None
    last_evidence_at: float | None = None
    days: int = 0
    failure: FailureKind | None = None
    status: int | None = None
    redirects: Redirects = ()
    error: str | None = None

    @property
    def has_response(self) -> bool:
        """Whether the last attempt had a response from the site, not from a proxy."""
        is_from_proxy = self.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
        return self.failure is None and not is_from_proxy

    def asks_to_wait(self, now: float) -> bool:
        """Whether the last response was a 429 or 503 whose retry is not due yet."""
        return self.status in ASK_FOR_LESS and now < self.retry_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The last answer of an origin under the terms `terms_of`, and the outage since."""

    origin: str
    terms: str = ""
    answer: Answer | None = None
    outage: Outage | None = None

    def __post_init__(self) -> None:
        if self.answer is None and self.outage is None:
            raise ValueError(f"expected an answer or an outage for {self.origin!r}")

    @property
    def packed(self) -> Packed | None:
        """The robots.txt of the last answer, if that is a file."""
        return None if self.answer is None else self.answer.packed

    @property
    def access(self) -> AccessResult:
        if self.outage is not None:
            return AccessResult.UNREACHABLE
        return cast("Answer", self.answer).access

    @property
    def checked_at(self) -> float:
        if self.outage is not None:
            return self.outage.last_attempt_at
        return cast("Answer", self.answer).answered_at

    @property
    def next_fetch_at(self) -> float:
        if self.outage is not None:
            return self.outage.retry_at
        return cast("Answer", self.answer).fresh_until

    def is_current(self, now: float) -> bool:
        """Whether the entry can be used at `now` without another fetch.

        An entry dated in the future cannot be used: our clock was set back, so the age
        of the entry is unknown.
        """
        return now < self.current_until(now)

    def current_until(self, now: float) -> float:
        """Until when the entry can be used; -inf if it is dated too far ahead."""
        is_dated_ahead = now < self.checked_at - LARGEST_SKEW
        return -math.inf if is_dated_ahead else self.next_fetch_at


class BackOff(NamedTuple):
    """The pause after a checker's own attempt without a response, in epoch seconds."""

    since: float
    until: float


def current_until_for(entry: Entry, now: float, own: BackOff | None) -> float:
    """Like `Entry.current_until`, for a checker that knows its `own` attempts.

    If the last attempt had no response from the site, another checker's network, proxy
    or resolver may be at fault. Such an outage is current only for a checker that has
    failed itself, and only during its own back-off.
    """
    outage, answer = entry.outage, entry.answer
    until = entry.current_until(now)
    if outage is None or outage.has_response:
        return until
    if answer is not None and answer.is_fresh(now):
        return until
    if own is None or now < own.since - LARGEST_SKEW:
        return -math.inf
    # The back-off may be from an earlier outage.
    back_off = outage.retry_at - outage.last_attempt_at
    return min(until, own.until, own.since + back_off)


def key_of(origin: str, terms: str) -> str:
    return f"{origin} {terms}" if terms else origin


def usable(entry: Entry | None, *, now: float, policy: Policy) -> Entry | None:
    """The part of `entry` that is valid by our clock; `None` if no part is.

    Nothing is valid after `keep_until`.
    """
    entry = None if entry is None else by_our_clock(entry, now)
    return None if entry is None or now >= keep_until(entry, policy) else entry


def by_our_clock(entry: Entry, now: float) -> Entry | None:
    """`entry`, minus its outage if the outage is dated far ahead of our clock."""
    if entry.outage is None or entry.outage.last_attempt_at <= now + LARGEST_SKEW:
        return entry
    return None if entry.answer is None else replace(entry, outage=None)


def limit(answer: Answer | None, policy: Policy) -> float:
    """How long an unreachable origin with this answer stays disallowed, in seconds."""
    without_copy = policy.unreachable_limit_without_copy
    if without_copy is None or _is_successful(answer):
        return policy.unreachable_limit
    return without_copy


def span(answer: Answer | None, policy: Policy) -> float:
    """How long an outage after this answer can affect what is allowed, in seconds."""
    stale_window = policy.stale_window if _is_successful(answer) else 0.0
    return max(limit(answer, policy), policy.outage_grace, stale_window)


def longest_gap(answer: Answer | None, policy: Policy) -> float:
    """How overdue a retry may be before a failure starts a new outage, in seconds."""
    return max(span(answer, policy), 2 * _DAY)


def keep_until(entry: Entry, policy: Policy) -> float:
    """When `entry` expires; infinity means never."""
    answer, outage = entry.answer, entry.outage
    until = -math.inf
    if answer is not None:
        until = answer.fresh_until
        if answer.access is not AccessResult.UNAVAILABLE:
            until += span(answer, policy)
    if outage is not None:
        until = max(until, outage.retry_at + longest_gap(answer, policy))
    keeps_copy = policy.after_unreachable_limit is AfterUnreachableLimit.LAST_COPY
    return math.inf if keeps_copy and _is_successful(answer) else until


def _is_successful(answer: Answer | None) -> bool:
    return answer is not None and answer.access is AccessResult.SUCCESSFUL


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
    """The sort key of an answer; its text decides between answers of the same time."""
    if answer is None:
        return ()
    return (
        not answer.is_ahead(now),
        answer.answered_at,
        repr(answer),
        b"" if answer.packed is None else answer.packed,
    )


def _order_of_outage(outage: Outage) -> tuple[object, ...]:
    """The sort key of an outage: the fields that `_joint_outage` does not combine."""
    rest = (outage.failure, outage.status, outage.redirects, outage.error)
    return (outage.last_attempt_at, outage.retry_at, repr(rest))


def _set(*times: float | None) -> list[float]:
    return [time for time in times if time is not None]


def entry_after(
    known: Entry | None,
    outcome: Outcome,
    *,
    origin: str,
    began_at: float,
    now: float,
    policy: Policy,
    level: int = zlib.Z_BEST_SPEED,
) -> Entry:
    """The entry for `origin` after a fetch that lasted from `began_at` to `now`.

    `known` is the entry at the end of the fetch, including updates by other processes.
    `began_at` must not precede the response that was known when the fetch started, even
    if that response was dated by another clock. `level` is that of the compression.
    """
    valid = usable(known, now=now, policy=policy)
    last = _without_file(known) if valid is None else valid.answer
    is_overtaken = (
        last is not None and began_at < last.answered_at and not last.is_ahead(now)
    )
    last_access = None if last is None else last.access
    access = access_result(outcome, policy, origin=origin, last_access=last_access)
    if access is not AccessResult.UNREACHABLE:
        answer = _answer(
            access, outcome, origin=origin, now=now, policy=policy, level=level
        )
        if last is not None and not is_overtaken and not last.is_ahead(now):
            # Even if our clock is minutes behind, the new answer must not look older.
            answered_at = max(now, math.nextafter(last.answered_at, math.inf))
            answer = replace(answer, answered_at=answered_at)
        entry = Entry(origin=origin, terms=terms_of(policy), answer=answer)
        return cast("Entry", merge(entry, valid, now=now)) if is_overtaken else entry
    if is_overtaken and valid is not None and last is not None and last.is_fresh(now):
        return valid
    outage = _outage_after(valid, outcome, origin=origin, now=now, policy=policy)
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


def _without_file(expired: Entry | None) -> Answer | None:
    """The answer of an `expired` entry if it means that there is no file.

    It is kept, because a store that missed it could otherwise bring back an earlier
    copy.
    """
    answer = None if expired is None else expired.answer
    if answer is None or answer.access is not AccessResult.UNAVAILABLE:
        return None
    return replace(answer, fresh_until=0.0)  # even if our clock is set back


def _answer(
    access: AccessResult,
    outcome: Outcome,
    *,
    origin: str,
    now: float,
    policy: Policy,
    level: int,
) -> Answer:
    packed = asked = None
    if access is AccessResult.REFUSED:
        lifetime = with_jitter(policy.retry_max, origin)
    else:
        lifetime = freshness_lifetime(outcome.headers, now=now, policy=policy)
    if outcome.status in ASK_FOR_LESS:
        asked = retry_after(outcome.headers, now=now, policy=policy)
    if access is AccessResult.SUCCESSFUL:
        # An extra byte tells the parser that the file was truncated.
        packed = pack(outcome.body[: policy.max_body_bytes + 1], level=level)
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
    answer, outage = _answer_and_outage(known, now=now, policy=policy)
    if outage is None:
        outage = Outage(since=now, last_attempt_at=now, retry_at=now, attempts=0)
    attempts = outage.attempts + 1
    status = outcome.status
    delay = retry_delay(failures=attempts, status=status, origin=origin, policy=policy)
    asked = retry_after(outcome.headers, now=now, policy=policy) or 0.0
    after = replace(
        outage,
        last_attempt_at=now,
        retry_at=now + max(delay, asked),
        attempts=attempts,
        failure=outcome.failure,
        status=status,
        redirects=outcome.redirects,
        error=_error(outcome),
    )
    if not after.has_response and outage.asks_to_wait(now):
        # The server asked every client to wait, which still applies.
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
