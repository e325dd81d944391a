"""Decides when an origin is asked, and what is known once it has answered.

Pure: the time is an argument. Sources: RFC 9309 §2.3.1 and §2.4.
"""

from __future__ import annotations

import enum
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from robotsgate.caching._access import AccessResult
from robotsgate.caching._entry import Copy, Entry
from robotsgate.caching._freshness import (
    freshness_lifetime,
    longest_retry_delay,
    retry_delay,
    retry_delay_asked_for,
)
from robotsgate.caching._outcome import (
    Answered,
    Failed,
    FailureKind,
    access_result,
    is_server_error,
)
from robotsgate.caching._policy import AfterStaleWindow
from robotsgate.robotstxt._parser import first_lines

if TYPE_CHECKING:
    from robotsgate.caching._outcome import Outcome
    from robotsgate.caching._policy import Policy

_LONGEST_ERROR = 300

_USUAL_REDIRECTS = 5
_USUAL_BODY_BYTES = 512_000

# Machines of a fleet that nobody looks after; more than that is a clock that was set.
_LARGEST_SKEW = 5 * 60.0


class Plan(enum.Enum):
    """What to do about an origin before a question is answered."""

    USE = "use"
    """Answer from the entry."""

    FETCH = "fetch"
    """Ask the origin first."""


def plan(entry: Entry | None, now: float) -> Plan:
    """Whether `entry` still stands at `now`.

    An entry from the future does not: the clock was set back, and how long the
    entry has been standing cannot be told.
    """
    if entry is not None and entry.checked_at <= now < entry.next_fetch_at:
        return Plan.USE
    return Plan.FETCH


def terms_of(policy: Policy) -> str:
    """What of `policy` decides what a fetch can bring, as entries name it.

    What was got under other terms must not be used, not even its copy: it may come
    from where `policy` would never have asked, or lack the rules beyond a smaller
    limit. Numbers are named where they are not those of RFC 9309 §2.3.1.2 and §2.5.
    """
    terms = [policy.address_guard.value, *policy.allowed_networks]
    if policy.max_redirects != _USUAL_REDIRECTS:
        terms.append(f"redirects={policy.max_redirects}")
    if policy.max_body_bytes != _USUAL_BODY_BYTES:
        terms.append(f"bytes={policy.max_body_bytes}")
    return " ".join(terms)


def suits(entry: Entry, policy: Policy) -> bool:
    """Whether `policy` would have come to `entry` as well, under the same terms.

    A store may be shared by checkers with different policies, and hold what an
    earlier run with another policy has left.
    """
    longest = max(
        policy.default_lifetime,
        policy.max_lifetime,
        policy.retry_after_max,
        longest_retry_delay(policy),
    )
    if entry.next_fetch_at - entry.checked_at > longest:
        return False
    if entry.failure is not None or entry.status is None:
        return True
    if entry.error is not None:
        return entry.access is policy.on_broken_redirect
    expected = access_result(Answered(status=entry.status), policy)
    is_missing_page = (
        entry.access is AccessResult.UNAVAILABLE
        and expected is AccessResult.UNREACHABLE
        and policy.detect_missing_page
        and is_server_error(entry.status)
    )
    return entry.access is expected or is_missing_page


def outdated(entry: Entry) -> Entry:
    """`entry` as one that must be fetched anew; its copy can still be used."""
    return replace(entry, next_fetch_at=entry.checked_at)


def under_our_clock(entry: Entry, now: float) -> Entry:
    """`entry`, which another process wrote, as if its clock were ours.

    An entry from the near future is one of a clock that is ahead: it counts from
    now on, for as long as it would have. One from further on is left as it is.
    """
    ahead = entry.checked_at - now
    if not 0 < ahead <= _LARGEST_SKEW:
        return entry
    copy = entry.copy and replace(
        entry.copy,
        fetched_at=entry.copy.fetched_at - ahead,
        fresh_until=entry.copy.fresh_until - ahead,
    )
    return replace(
        entry,
        checked_at=now,
        next_fetch_at=entry.next_fetch_at - ahead,
        unreachable_since=entry.unreachable_since and min(entry.unreachable_since, now),
        retain_until=entry.retain_until - ahead,
        copy=copy,
    )


def is_answer_since(entry: Entry, began_at: float, now: float) -> bool:
    """Whether `entry` stands at `now`, by an answer that came after `began_at`."""
    return (
        entry.access is not AccessResult.UNREACHABLE
        and entry.checked_at > began_at
        and plan(entry, now) is Plan.USE
    )


def later(one: Entry, other: Entry | None, now: float, policy: Policy) -> Entry:
    """What was checked later, `one` if both were at once; with the later copy.

    Who could not read the store, and got no answer either, does not know of a copy
    that others have. It answers for such an origin all the same.
    """
    if other is None:
        return one
    # What is from the future is older: the clock was set back since.
    is_other_later = (other.checked_at <= now, other.checked_at) > (
        one.checked_at <= now,
        one.checked_at,
    )
    new, old = (other, one) if is_other_later else (one, other)
    if (
        new.access is not AccessResult.UNREACHABLE
        or new.failure is FailureKind.ADDRESS_REFUSED
        or now >= old.retain_until
        or _answered_at(old, now) <= _answered_at(new, now)
    ):
        return new
    since = _unreachable_since_both(new, old)
    if _lets_go(since, now, policy):
        return new
    return replace(
        new,
        copy=old.copy,
        unreachable_since=since,
        retain_until=_retain_until(old.copy, new.next_fetch_at, policy),
        is_first_sight=False,
    )


def _answered_at(entry: Entry, now: float) -> float:
    """Up to when nothing before `entry` counts beside it.

    A copy that an answer has ended must not come back from a store that missed it.
    """
    if entry.copy is not None:
        return entry.copy.fetched_at
    if entry.failure is FailureKind.ADDRESS_REFUSED:
        return entry.checked_at
    if entry.is_first_sight or entry.checked_at > now:
        return -math.inf
    if entry.unreachable_since is not None:
        return entry.unreachable_since
    return entry.checked_at


def entry_after(
    previous: Entry | None, outcome: Outcome, *, origin: str, now: float, policy: Policy
) -> Entry:
    """What is known about `origin` once an attempt has ended.

    Args:
        previous: what was known before; `None` at first sight.
        outcome: what the attempt brought.
        origin: the key of the origin.
        now: when the attempt ended, epoch seconds.
        policy: the numbers and choices.
    """
    access = access_result(outcome, policy)
    if access is AccessResult.UNREACHABLE:
        is_first_sight = previous is None or previous.is_first_sight
        if previous is not None and now >= previous.retain_until:
            previous = None
        entry = _after_failure(previous, outcome, origin=origin, now=now, policy=policy)
        return replace(entry, is_first_sight=is_first_sight)
    headers = {} if isinstance(outcome, Failed) else outcome.headers
    fresh_until = now + freshness_lifetime(headers, now=now, policy=policy)
    copy = None
    if access is AccessResult.SUCCESSFUL and isinstance(outcome, Answered):
        # Whole lines only, so that who reads the copy with a larger limit does not
        # take half a line for a rule.
        body = first_lines(outcome.body, policy.max_body_bytes)
        copy = Copy.of(body, fetched_at=now, fresh_until=fresh_until)
    return Entry(
        origin=origin,
        access=access,
        checked_at=now,
        next_fetch_at=fresh_until,
        retain_until=_retain_until(copy, fresh_until, policy) if copy else fresh_until,
        status=_status(outcome),
        redirects=outcome.redirects,
        error=_error(outcome),
        copy=copy,
        terms=terms_of(policy),
    )


def _after_failure(
    previous: Entry | None, outcome: Outcome, *, origin: str, now: float, policy: Policy
) -> Entry:
    kind = outcome.kind if isinstance(outcome, Failed) else None
    is_its_own = kind is not FailureKind.POOL
    failures = (0 if previous is None else previous.failures) + is_its_own
    since = _unreachable_since(previous, kind, now=now, policy=policy)
    copy = None if previous is None else previous.copy
    is_over = _lets_go(_first_failure(previous, since), now, policy)
    if kind is FailureKind.ADDRESS_REFUSED or is_over:
        copy = None
    status = _status(outcome)
    delay = None
    if not isinstance(outcome, Failed):
        delay = retry_delay_asked_for(outcome.headers, now=now, policy=policy)
    if delay is None:
        delay = retry_delay(
            failures=failures if is_its_own else 1,
            status=status,
            origin=origin,
            policy=policy,
        )
    return Entry(
        origin=origin,
        access=AccessResult.UNREACHABLE,
        checked_at=now,
        next_fetch_at=now + delay,
        retain_until=_retain_until(copy, now + delay, policy),
        status=status,
        redirects=outcome.redirects,
        error=_error(outcome),
        failure=kind,
        copy=copy,
        unreachable_since=since,
        failures=failures,
        terms=terms_of(policy),
    )


def _unreachable_since(
    previous: Entry | None, kind: FailureKind | None, *, now: float, policy: Policy
) -> float:
    """When the run of failures began; never in the future, whatever the clock did.

    Refused addresses and full pools of the caller's do not count: time without
    dialling an origin says nothing about how long it has been down. A window that
    ended while the pool was full begins anew.
    """
    if previous is None or previous.unreachable_since is None:
        return now
    since = min(previous.unreachable_since, now)
    was_not_dialled = previous.failure is not kind and (
        previous.failure is FailureKind.ADDRESS_REFUSED
        or (
            previous.failure is FailureKind.POOL
            and (previous.failures == 0 or now >= since + policy.stale_window)
        )
    )
    return now if was_not_dialled else since


def _unreachable_since_both(new: Entry, old: Entry) -> float:
    """When the run of failures began that ends with `new`."""
    since = new.checked_at if new.unreachable_since is None else new.unreachable_since
    # An answer ends any run before it, and so does a refusal: that was not dialled.
    is_end = old.failure is FailureKind.ADDRESS_REFUSED
    if old.unreachable_since is None or is_end:
        return min(max(since, old.checked_at), new.checked_at)
    if old.failure is FailureKind.POOL:  # says nothing about the origin
        return since
    return min(since, old.unreachable_since)


def _first_failure(previous: Entry | None, since: float) -> float:
    """When a copy began to be used for want of an answer."""
    if previous is None or previous.unreachable_since is None:
        return since
    return min(since, previous.unreachable_since)


def _lets_go(since: float, now: float, policy: Policy) -> bool:
    """Whether no copy may be used any more in an outage that began at `since`."""
    return (
        now >= since + policy.stale_window
        and policy.after_stale_window is not AfterStaleWindow.LAST_COPY
    )


def _retain_until(copy: Copy | None, next_fetch_at: float, policy: Policy) -> float:
    """From when on nothing can use an entry: nobody has asked for a stale window.

    A policy that uses the last copy for as long as it takes never lets go of it.
    """
    if copy and policy.after_stale_window is AfterStaleWindow.LAST_COPY:
        return math.inf
    return next_fetch_at + policy.stale_window


def _status(outcome: Outcome) -> int | None:
    return None if isinstance(outcome, Failed) else outcome.status


def _error(outcome: Outcome) -> str | None:
    """What went wrong, cut: a server can put hundreds of kilobytes into it."""
    if isinstance(outcome, Answered):
        return None
    text = outcome.error
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}…"
