"""What holds after any outcomes in any order, whatever the clock does.

A small model, which knows only what has happened, judges each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from robotsgate.caching._access import AccessResult
from robotsgate.caching._outcome import FailureKind, access_result
from robotsgate.caching._plan import Plan, later, plan, suits, terms_of
from robotsgate.caching._policy import AfterStaleWindow, Policy
from robotsgate.caching._ruling import Effect, ruling

from .builders import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    PRESETS,
    PRIVATE,
    PUBLIC,
    answer,
    answered,
    broken_redirect,
    failed,
    next_entry,
    refused,
)

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._outcome import Outcome

YEAR = 365 * DAY

OUTCOMES = st.sampled_from(
    [
        answered(),
        answered(cache_control="max-age=1"),
        answered(cache_control="max-age=99999999999999999999", age="7"),
        answered(204),
        answered(403),
        answered(404),
        answered(429, retry_after="7200"),
        answered(500),
        answered(500, body=b"<title>Not found</title>"),
        answered(503),
        answered(503, retry_after="Fri, 31 Dec 9999 23:59:59 GMT"),
        answered(600),
        broken_redirect(),
        failed(),
        refused(),
        failed(FailureKind.POOL),
    ]
)


@dataclass(frozen=True)
class Step:
    """The clock moves, somebody asks, and this is what the origin would answer."""

    seconds: float
    outcome: Outcome
    is_forced: bool
    """Whether the attempt is made although the entry still stands."""


JUMPS = [
    0.0,
    1.0,
    31.0,
    MINUTE,
    HOUR,
    12 * HOUR,
    DAY,
    DAY + 1,
    29 * DAY,
    30 * DAY,
    31 * DAY,
    10 * YEAR,
    -1.0,
    -HOUR,
    -20 * DAY,
    -10 * YEAR,
]
STEPS = st.lists(
    st.builds(
        Step,
        seconds=st.one_of(
            st.sampled_from(JUMPS),
            st.integers(0, 86_400).map(float),
        ),
        outcome=OUTCOMES,
        is_forced=st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=25,
)
SPANS = st.sampled_from([0.0, 45.0, HOUR, DAY, 30 * DAY])
POLICIES = st.one_of(
    st.sampled_from(list(PRESETS.values())),
    st.builds(
        Policy,
        default_lifetime=SPANS,
        min_lifetime=st.sampled_from([0.0, MINUTE]),
        stale_window=SPANS,
        outage_grace=SPANS,
        after_stale_window=st.sampled_from(AfterStaleWindow),
        retry_factor=st.sampled_from([1.0, 2.0, 1e6]),
        detect_missing_page=st.booleans(),
        on_access_denied=st.sampled_from(
            [AccessResult.UNAVAILABLE, AccessResult.RESTRICTED]
        ),
    ),
)

QUICKLY = settings(deadline=None, derandomize=True, database=None, max_examples=250)


@dataclass
class Model:
    """What has happened, and what may therefore be said."""

    policy: Policy
    has_copy: bool = False
    is_refused: bool = False
    is_ours: bool = False
    since: float | None = None
    failures: int = 0

    def learn(self, outcome: Outcome, previous: Entry | None, now: float) -> None:
        access = access_result(outcome, self.policy)
        if access is not AccessResult.UNREACHABLE:
            self.has_copy = access is AccessResult.SUCCESSFUL
            self.is_refused, self.since, self.failures = False, None, 0
            return
        if previous is not None and now >= previous.retain_until:
            self.has_copy, self.is_refused = False, False
            self.since, self.failures = None, 0
        is_refused = outcome == refused()
        self.is_ours = outcome == failed(FailureKind.POOL)
        is_first = self.failures == 0 and not self.is_ours
        if self.since is None or is_first or (self.is_refused and not is_refused):
            self.since = now
        self.since = min(self.since, now)
        self.is_refused = is_refused
        self.has_copy = self.has_copy and not is_refused
        self.failures += not self.is_ours

    def may_use_copy(self, now: float) -> bool:
        """Whether a copy may answer for an unreachable origin."""
        assert self.since is not None
        is_in_window = now < self.since + self.policy.stale_window
        goes_on = self.policy.after_stale_window is AfterStaleWindow.LAST_COPY
        is_after_grace = now >= self.since + self.policy.outage_grace
        return (
            self.has_copy
            and not self.is_refused
            and is_after_grace
            and (is_in_window or goes_on)
        )

    def may_allow_everything(self, now: float) -> bool:
        """Whether an unreachable origin may be taken for one without rules."""
        assert self.since is not None
        after = self.policy.after_stale_window
        has_last_copy = after is AfterStaleWindow.LAST_COPY and self.has_copy
        return (
            not self.is_refused
            and not self.is_ours
            and now >= self.since + self.policy.stale_window
            and now >= self.since + self.policy.outage_grace
            and after is not AfterStaleWindow.DISALLOW
            and not has_last_copy
        )


def check_entry(entry: Entry, model: Model, now: float) -> None:
    """What holds of every entry."""
    policy = model.policy
    assert entry.checked_at == now
    assert entry.checked_at <= entry.next_fetch_at <= entry.retain_until
    assert math.isfinite(entry.next_fetch_at)
    assert entry.unreachable_since == model.since
    assert entry.failures == model.failures
    assert entry.terms == terms_of(policy)
    assert suits(entry, policy)
    if entry.access is AccessResult.UNREACHABLE:
        pause = entry.next_fetch_at - now
        assert entry.unreachable_since is not None
        assert entry.unreachable_since <= now
        assert pause >= min(policy.retry_initial, policy.retry_initial_503)
        assert pause <= max(1.1 * policy.retry_max, policy.retry_after_max)
    else:
        longest = max(policy.max_lifetime, policy.default_lifetime)
        assert entry.next_fetch_at - now <= longest
        assert (entry.copy is not None) is model.has_copy
    if entry.copy is not None:
        assert model.has_copy


def check_ruling(entry: Entry, model: Model, now: float) -> None:
    """What holds of every ruling at a moment at which the entry is used."""
    found = ruling(entry, now=now, policy=model.policy)
    is_unreachable = entry.access is AccessResult.UNREACHABLE
    public = answer(entry, PUBLIC, now=now, policy=model.policy)
    private = answer(entry, PRIVATE, now=now, policy=model.policy)

    assert found.until > now
    assert found.until <= entry.next_fetch_at
    assert (found.reason is None) is (found.effect is Effect.RULES)
    if found.is_stale:
        assert found.effect is Effect.RULES
        assert is_unreachable
    if found.effect is Effect.RULES:
        assert entry.copy is not None
        assert not is_unreachable or model.may_use_copy(now)
    if found.effect is Effect.ALLOW:
        assert (
            model.may_allow_everything(now)
            if is_unreachable
            else entry.access is AccessResult.UNAVAILABLE
        )
    if is_unreachable and model.is_refused:
        assert found.effect is Effect.REFUSE
    if private.allowed:
        assert public.allowed
    last = math.nextafter(found.until, -math.inf)
    assert ruling(entry, now=last, policy=model.policy) == found


@QUICKLY
@given(policy=POLICIES, steps=STEPS)
def test_any_history_keeps_the_promises(policy: Policy, steps: list[Step]) -> None:
    model = Model(policy)
    entry: Entry | None = None
    now = NOW

    for step in steps:
        now += step.seconds
        if step.is_forced or plan(entry, now) is Plan.FETCH:
            model.learn(step.outcome, entry, now)
            entry = next_entry(entry, step.outcome, now=now, policy=policy)
            check_entry(entry, model, now)
        assert entry is not None
        if plan(entry, now) is Plan.USE:
            check_ruling(entry, model, now)
            later = (now + entry.next_fetch_at) / 2
            check_ruling(
                entry, model, min(later, math.nextafter(entry.next_fetch_at, 0))
            )


@QUICKLY
@given(policy=POLICIES, steps=STEPS)
def test_same_history_comes_to_the_same_entry(
    policy: Policy, steps: list[Step]
) -> None:
    def last_entry() -> Entry | None:
        entry: Entry | None = None
        now = NOW
        for step in steps:
            now += step.seconds
            entry = next_entry(entry, step.outcome, now=now, policy=policy)
        return entry

    assert last_entry() == last_entry()


@QUICKLY
@given(policy=POLICIES, steps=STEPS, seconds=st.sampled_from(JUMPS))
def test_last_answer_of_the_origin_is_never_contradicted(
    policy: Policy, steps: list[Step], seconds: float
) -> None:
    """Whatever came before, a good answer rules for its lifetime."""
    entry: Entry | None = None
    now = NOW
    for step in steps:
        now += step.seconds
        entry = next_entry(entry, step.outcome, now=now, policy=policy)

    entry = next_entry(entry, answered(), now=now, policy=policy)

    later = now + seconds
    if plan(entry, later) is Plan.USE:
        assert answer(entry, PUBLIC, now=later, policy=policy).allowed
        assert not answer(entry, PRIVATE, now=later, policy=policy).allowed


@QUICKLY
@given(
    policy=POLICIES,
    jumps=st.lists(st.sampled_from(JUMPS), min_size=1, max_size=40),
)
def test_clock_never_brings_two_attempts_within_one_pause(
    policy: Policy, jumps: list[float]
) -> None:
    """Unless it was set back behind the last one, which cannot be told apart."""
    entry: Entry | None = None
    now = NOW

    for jump in jumps:
        before, now = entry, now + jump
        if plan(before, now) is Plan.FETCH:
            assert (
                before is None or now < before.checked_at or now >= before.next_fetch_at
            )
            entry = next_entry(before, failed(), now=now, policy=policy)


def entry_of(steps: list[Step], policy: Policy) -> Entry:
    """What one process knows that lived through `steps`."""
    entry: Entry | None = None
    now = NOW
    for step in steps:
        now += step.seconds
        entry = next_entry(entry, step.outcome, now=now, policy=policy)
    assert entry is not None
    return entry


def without_what_is_carried(entry: Entry) -> Entry:
    """`entry` but for what `later` may change of it."""
    access = AccessResult.UNREACHABLE  # which needs no copy
    return replace(
        entry,
        access=access,
        copy=None,
        unreachable_since=None,
        retain_until=0.0,
        is_first_sight=False,
    )


@QUICKLY
@given(
    policy=POLICIES,
    histories=st.tuples(STEPS, STEPS),
    now_of=st.sampled_from([0, 1]),
    seconds=st.sampled_from(JUMPS),
)
def test_later_of_two_entries_is_one_of_them_with_a_copy_of_either(
    policy: Policy,
    histories: tuple[list[Step], list[Step]],
    now_of: int,
    seconds: float,
) -> None:
    one, other = (entry_of(steps, policy) for steps in histories)
    now = (one, other)[now_of].checked_at + seconds

    found = later(one, other, now, policy)

    taken = one if found.checked_at == one.checked_at else other
    assert without_what_is_carried(found) == without_what_is_carried(taken)
    assert found.access is taken.access
    assert found.checked_at <= now or min(one.checked_at, other.checked_at) > now
    assert found.copy in (one.copy, other.copy)
    if one.checked_at != other.checked_at:
        assert later(other, one, now, policy) == found
    if found != taken:
        assert found.access is AccessResult.UNREACHABLE
        assert found.unreachable_since is not None
        assert found.unreachable_since <= found.checked_at
        assert (
            now < found.unreachable_since + policy.stale_window
            or policy.after_stale_window is AfterStaleWindow.LAST_COPY
        )
        assert later(found, other, now, policy) == found
        assert later(found, one, now, policy) == found
