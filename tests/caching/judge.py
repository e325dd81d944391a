"""A reference model of what applies after a history of attempts.

Written solely from design.md §3.1 and §4. It keeps no totals: it stores every failure
since the last answer, in one line per process that saw different failures, and computes
everything from these lists on demand.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.caching._policy import AccessResult, AfterUnreachableLimit
from robotsgate.caching._verdict import Effect

if TYPE_CHECKING:
    from robotsgate.caching._policy import Policy

DAY = 86_400.0
LARGEST_SKEW = 300.0
"""How many seconds ahead of our clock a timestamp may be."""
MOST_JITTER = 1.1
NETWORK_COUNTS = {AfterUnreachableLimit.ALLOW, AfterUnreachableLimit.LAST_COPY}
"""The policies under which network failures are evidence too."""


class Said(NamedTuple):
    """An answer: its access result, when it was received and when it expires."""

    access: AccessResult
    at: float
    fresh_until: float
    name: str = ""


class Failure(NamedTuple):
    """A failed attempt, with or without a response from the site."""

    at: float
    retry_at: float
    is_evidence: bool
    has_response: bool = True
    asks_to_wait: bool = False
    begins_evidence: bool = False

    def holds(self, now: float) -> bool:
        """Whether what the site said in a 429 or 503 still holds."""
        return self.asks_to_wait and now < self.retry_at


Line = tuple[Failure, ...]


@dataclass(frozen=True)
class History:
    """The last answer and every line of failures since; at least one of the two."""

    said: Said | None = None
    lines: frozenset[Line] = frozenset()

    @property
    def latest(self) -> Line:
        """The line with the latest failure."""
        return max(self.lines, key=lambda line: (line[-1].at, line[-1].retry_at))

    @property
    def access(self) -> AccessResult | None:
        """The access result of the last answer."""
        return self.said.access if self.said else None


class Meaning(NamedTuple):
    """An outcome's access result and, if UNREACHABLE, how it counts."""

    access: AccessResult
    is_evidence: bool = False
    has_response: bool = True
    asks_to_wait: bool = False


def meaning(outcome: Outcome, history: History | None, policy: Policy) -> Meaning:
    """The table of design.md §4.1."""
    if outcome.failure is not None:
        if outcome.failure is FailureKind.ADDRESS_REFUSED:
            return Meaning(AccessResult.REFUSED)
        assert outcome.failure is not FailureKind.LOCAL, "that is not an attempt"
        return Meaning(
            AccessResult.UNREACHABLE,
            is_evidence=policy.after_unreachable_limit in NETWORK_COUNTS,
            has_response=False,
        )
    status = outcome.status
    assert status is not None
    has_copy = history is not None and history.access is AccessResult.SUCCESSFUL
    if outcome.has_too_many_redirects:
        access = policy.on_too_many_redirects
    elif 200 <= status < 300 and status != 206 and not outcome.is_wall:
        access = AccessResult.SUCCESSFUL
    elif status == 429:
        access = policy.on_too_many_requests
    elif status in {401, 403}:
        access = policy.on_access_denied
    elif (400 <= status < 500 and status != 407) or (
        _is_missing_page(outcome) and policy.detect_missing_page and not has_copy
    ):
        access = AccessResult.UNAVAILABLE
    else:
        access = AccessResult.UNREACHABLE
    return Meaning(
        access,
        is_evidence=status not in {407, 429} and not outcome.is_wall,
        has_response=status != 407,
        asks_to_wait=status in {429, 503},
    )


def usable(history: History | None, now: float, policy: Policy) -> History | None:
    """The part of `history` that is neither expired nor dated far ahead of `now`."""
    if history and history.lines and history.latest[-1].at > now + LARGEST_SKEW:
        history = replace(history, lines=frozenset()) if history.said else None
    return history if history and now < keep_until(history, policy) else None


def joined(a: History | None, b: History | None, now: float) -> History | None:
    """Two processes' merged history: the later answer and every line after it."""
    if a is None or b is None:
        return a or b
    if a.said != b.said:
        return max(a, b, key=lambda one: _rank(one.said, now))
    lines = a.lines | b.lines
    return History(a.said, frozenset(x for x in lines if not _is_part(x, lines)))


def after(
    history: History | None,
    meant: Meaning,
    *,
    began_at: float,
    now: float,
    until: float,
    policy: Policy,
    name: str = "",
) -> History:
    """The history after one more attempt, which ended at `now` and is valid `until`."""
    said = history.said if history else None
    is_overtaken = said is not None and began_at < said.at <= now + LARGEST_SKEW
    if meant.access is not AccessResult.UNREACHABLE:
        new = History(Said(meant.access, now, until, name))
        return (joined(history, new, now) or new) if is_overtaken else new
    if history and said and is_overtaken and now < said.fresh_until:
        return history
    lines = _lines_to_continue(history, now, policy)
    gap = max(span(history.access if history else None, policy), 2 * DAY)
    before = max(
        (one.at for line in lines for one in evidence(line)), default=-math.inf
    )
    is_held = history is not None and bool(lines) and history.latest[-1].holds(now)
    holds = is_held and not meant.has_response
    failure = Failure(
        now,
        until,
        meant.is_evidence,
        meant.has_response or holds,
        meant.asks_to_wait or holds,
        begins_evidence=meant.is_evidence and now > before + gap,
    )
    return History(said, frozenset((*line, failure) for line in lines or {()}))


def wait(
    history: History | None,
    status: int | None,
    requested: float,
    now: float,
    policy: Policy,
) -> tuple[float, float]:
    """The shortest and longest delay before the attempt after a failure."""
    lines = _lines_to_continue(history, now, policy)
    before = max(map(len, lines), default=0)
    first = policy.retry_initial_503 if status == 503 else policy.retry_initial
    pause = min(first * policy.retry_factor ** min(before, 30), policy.retry_max)
    requested = min(requested, policy.retry_after_max)
    held = 0.0
    if status in {None, 407} and history and lines and history.latest[-1].holds(now):
        held = history.latest[-1].retry_at - now
    longest = max(pause, requested) * MOST_JITTER
    return max(pause, requested, held), max(longest, held)


def _lines_to_continue(
    history: History | None, now: float, policy: Policy
) -> frozenset[Line]:
    """The lines that one more failure continues; none after too long a gap."""
    if history is None or not history.lines:
        return frozenset()
    gap = max(span(history.access, policy), 2 * DAY)
    is_over = now > history.latest[-1].retry_at + gap
    return frozenset() if is_over else history.lines


def span(access: AccessResult | None, policy: Policy) -> float:
    """How long an outage must last before a disallowed origin may become allowed."""
    is_good = access is AccessResult.SUCCESSFUL
    window = policy.stale_window if is_good else 0.0
    return max(limit(access, policy), policy.outage_grace, window)


def limit(access: AccessResult | None, policy: Policy) -> float:
    """How long an unreachable origin stays disallowed, ignoring copies and grace."""
    without = policy.unreachable_limit_without_copy
    if access is AccessResult.SUCCESSFUL or without is None:
        return policy.unreachable_limit
    return without


def keep_until(history: History, policy: Policy) -> float:
    """When the history expires."""
    said, length = history.said, span(history.access, policy)
    ends = []
    if history.lines:
        ends.append(history.latest[-1].retry_at + max(length, 2 * DAY))
    if said is not None:
        is_good = said.access is AccessResult.SUCCESSFUL
        if (
            is_good
            and policy.after_unreachable_limit is AfterUnreachableLimit.LAST_COPY
        ):
            return math.inf
        is_missing = said.access is AccessResult.UNAVAILABLE
        ends.append(said.fresh_until + (0.0 if is_missing else length))
    return max(ends)


def is_current(history: History, now: float) -> bool:
    """Whether no attempt is due."""
    if history.lines:
        last = history.latest[-1]
        return last.at <= now + LARGEST_SKEW and now < last.retry_at
    assert history.said is not None
    return is_fresh(history.said, now)


def is_current_for(
    history: History, now: float, own: tuple[float, float] | None
) -> bool:
    """Whether no attempt is due by a process with its `own` back-off, if it failed.

    A failure without a response that only another process has seen does not count.
    """
    if not is_current(history, now):
        return False
    if not history.lines or is_fresh(history.said, now):
        return True
    last = history.latest[-1]
    if last.has_response:
        return True
    if own is None:
        return False
    since, until = own
    return now < until and -LARGEST_SKEW <= now - since < last.retry_at - last.at


def meanwhile(
    history: History | None, now: float, until: float, policy: Policy
) -> History:
    """What a process whose own machine fails must act on until `until`."""
    begun: frozenset[Line] = frozenset({(Failure(now, until, is_evidence=False),)})
    lines = _lines_to_continue(history, now, policy) or begun
    return History(
        history.said if history else None,
        frozenset(
            (*line[:-1], line[-1]._replace(retry_at=max(line[-1].retry_at, until)))
            for line in lines
        ),
    )


def is_fresh(said: Said | None, now: float) -> bool:
    """Whether the answer is fresh; never if it is dated far ahead."""
    return said is not None and said.at <= now + LARGEST_SKEW and now < said.fresh_until


def effects(history: History, now: float, policy: Policy) -> set[Effect]:
    """The effects that may apply: one, or two if the lines differ in minor details."""
    slack = range(1 + (len(history.lines) > 1))
    return {
        _effect(history, line, now, policy, fewer)
        for line in history.lines or {()}
        for fewer in slack
    }


def _effect(
    history: History, line: Line, now: float, policy: Policy, fewer_days: int
) -> Effect:
    said = history.said
    if not line or is_fresh(said, now):
        assert said is not None
        return _ANSWERS[said.access]
    is_refused = history.access is AccessResult.REFUSED
    closed = Effect.REFUSE if is_refused else Effect.DISALLOW
    good = said if history.access is AccessResult.SUCCESSFUL else None
    since = min(one[0].at for one in history.lines)
    if now < since + policy.outage_grace:
        return closed
    if good is not None:
        is_within = now < since + policy.stale_window
        is_copy_kept = since < good.fresh_until + policy.stale_window
        is_last = policy.after_unreachable_limit is AfterUnreachableLimit.LAST_COPY
        if is_last or (is_within and is_copy_kept):
            return Effect.RULES
    is_open = _is_open(history, line, now, policy, fewer_days)
    return Effect.ALLOW if is_open else closed


def _is_open(
    history: History, line: Line, now: float, policy: Policy, fewer_days: int
) -> bool:
    """Whether there has been evidence for long enough to allow the origin."""
    if history.access in {AccessResult.REFUSED, AccessResult.RESTRICTED}:
        return False
    if policy.after_unreachable_limit is AfterUnreachableLimit.DISALLOW:
        return False
    seen = [evidence(one) for one in history.lines if evidence(one)]
    if not seen or not evidence(line):
        return False
    opens_at = min(one[0].at for one in seen) + span(history.access, policy)
    if history.said is not None and history.said.at <= now + LARGEST_SKEW:
        opens_at = max(opens_at, history.said.fresh_until)
    days = max(len({int(one.at // DAY) for one in few}) for few in seen) - fewer_days
    needed = min(policy.days_of_evidence, max(1, limit(history.access, policy) / DAY))
    is_late = evidence(line)[-1].at >= opens_at and now >= opens_at
    return is_late and history.latest[-1].is_evidence and days >= needed


@lru_cache(maxsize=10_000)
def evidence(line: Line) -> list[Failure]:
    """The line's failures that are evidence against the origin, since the last gap."""
    result: list[Failure] = []
    for failure in line:
        if failure.is_evidence:
            result = [failure] if failure.begins_evidence else [*result, failure]
    return result


def _is_part(line: Line, lines: frozenset[Line]) -> bool:
    """Whether another line continues this one within the same run of evidence."""
    more = [one[len(line) :] for one in lines if one[: len(line)] == line]
    return any(
        rest and not any(failure.begins_evidence for failure in rest) for rest in more
    )


def _rank(said: Said | None, now: float) -> tuple[bool, bool, float]:
    if said is None:
        return False, False, 0.0
    return True, said.at <= now + LARGEST_SKEW, said.at


def _is_missing_page(outcome: Outcome) -> bool:
    is_named = b"<title>Page Not Found</title>" in outcome.body
    return is_named and outcome.status == 500 and "retry-after" not in outcome.headers


_ANSWERS = {
    AccessResult.SUCCESSFUL: Effect.RULES,
    AccessResult.UNAVAILABLE: Effect.ALLOW,
    AccessResult.RESTRICTED: Effect.DISALLOW,
    AccessResult.REFUSED: Effect.REFUSE,
}
