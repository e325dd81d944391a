"""What applies after long histories, compared with a model that keeps each attempt."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from robotsgate.caching._entry import (
    BackOff,
    current_until_for,
    entry_after,
    entry_meanwhile,
    keep_until,
    merge,
    usable,
)
from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.caching._policy import AccessResult, AfterUnreachableLimit, Policy
from robotsgate.caching._verdict import Effect, in_force

from . import judge
from .builders import DAY, HOUR, MINUTE, ORIGIN, PRESETS, answered, failed
from .builders import NOW as START

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry

    from .judge import History

POLICIES = {
    **PRESETS,
    "no stale window": Policy(stale_window=0.0),
    "long stale window": Policy(stale_window=50 * DAY),
    "long grace": Policy(outage_grace=40 * DAY),
    "short limit, allow": Policy(unreachable_limit=2 * DAY,
        unreachable_limit_without_copy=DAY / 2, stale_window=DAY, days_of_evidence=3,
        after_unreachable_limit=AfterUnreachableLimit.ALLOW,
        on_too_many_requests=AccessResult.RESTRICTED,
        on_too_many_redirects=AccessResult.UNREACHABLE),
}  # fmt: skip


OK = answered(200)
MISSING = answered(404)
BROKEN = answered(500)
TOO_MANY = answered(429)
DEAD = failed(FailureKind.CONNECT)
TIMEOUT = failed(FailureKind.TIMEOUT)
OWN_FAILURE = failed(FailureKind.LOCAL)
REFUSED = failed(FailureKind.ADDRESS_REFUSED)

OUTCOMES: list[Outcome] = [
    *(OK, MISSING, answered(403), REFUSED, BROKEN, TOO_MANY, DEAD, TIMEOUT),
    *(answered(status) for status in (206, 304, 407, 410, 503, 600)),
    *(answered(status, retry_after="86400") for status in (429, 500, 503)),
    answered(503, retry_after="120"), answered(500, retry_after="7776000"),
    Outcome(status=500, body=b"<title>Page Not Found</title>"),
    Outcome(status=200, headers={"cache-control": "max-age=604800"}),
    Outcome(status=404, headers={"cache-control": "no-store"}),
    Outcome(has_too_many_redirects=True, status=302, error="a loop"),
]  # fmt: skip
FAILURES: list[Outcome] = [BROKEN, BROKEN, BROKEN, DEAD, TOO_MANY, answered(503)]


@dataclass
class Process:
    """What one process has in memory: the entry, and the history behind it.

    `own` is the back-off after its own last attempt if that had no response.
    """

    entry: Entry | None = None
    history: History | None = None
    own: BackOff | None = None


@dataclass
class World:
    """Processes that share a store, and what they do, step by step."""

    policy: Policy = field(default_factory=Policy)
    now: float = START
    store: Process = field(default_factory=Process)
    backup: Process = field(default_factory=Process)
    log: list[str] = field(default_factory=list)

    def attempt(
        self,
        process: Process,
        outcome: Outcome,
        *,
        began_at: float | None = None,
        has_store: bool = True,
    ) -> Effect:
        """End an attempt by `process` now; return the standing that then applies."""
        self.record(f"attempt {outcome}")
        stored = self.store if has_store else Process()
        known, history = self._joined(process, stored)
        began_at = self.now if began_at is None else began_at
        entry = entry_after(
            known,
            outcome,
            origin=ORIGIN,
            began_at=began_at,
            now=self.now,
            policy=self.policy,
        )
        meant = judge.meaning(outcome, history, self.policy)
        history = judge.after(
            history,
            meant,
            began_at=began_at,
            now=self.now,
            until=entry.next_fetch_at,
            policy=self.policy,
        )
        process.entry, process.history = entry, history
        process.own = None
        if meant.access is AccessResult.UNREACHABLE and not meant.has_response:
            process.own = BackOff(self.now, entry.next_fetch_at)
        if has_store:
            self.store = Process(entry, history)
        self.compare(process)
        return in_force(entry, now=self.now, policy=self.policy).effect

    def look(self, process: Process) -> Effect | None:
        """Let `process` read the store; return what applies, or `None` if unknown."""
        self.record("look")
        process.entry, process.history = self._joined(process, self.store)
        self.compare(process)
        if process.entry is None:
            return None
        return in_force(process.entry, now=self.now, policy=self.policy).effect

    def meanwhile(self, process: Process) -> Effect:
        """What applies to `process` if its own machine cannot fetch now."""
        until = self.now + MINUTE
        entry = entry_meanwhile(
            process.entry,
            OWN_FAILURE,
            origin=ORIGIN,
            now=self.now,
            retry_at=until,
            policy=self.policy,
        )
        history = judge.usable(process.history, self.now, self.policy)
        history = judge.meanwhile(history, self.now, until, self.policy)
        effect = in_force(entry, now=self.now, policy=self.policy).effect
        assert effect in judge.effects(history, self.now, self.policy), self.log
        return effect

    def compare(self, process: Process) -> None:
        """Check that the entry agrees with the history, now and later."""
        entry, history = process.entry, process.history
        assert (entry is None) is (history is None), self.log
        self.meanwhile(process)
        if entry is None or history is None:
            return
        if len(history.lines) < 2:
            end = judge.keep_until(history, self.policy)
            assert keep_until(entry, self.policy) == end, self.log
            current = judge.is_current(history, self.now)
            assert entry.is_current(self.now) is current, self.log
            current = judge.is_current_for(history, self.now, process.own)
            until = current_until_for(entry, self.now, process.own)
            assert (self.now < until) is current, self.log
        for later in (0.0, HOUR, 2 * DAY, 31 * DAY):
            now = self.now + later
            decision = in_force(entry, now=now, policy=self.policy)
            permitted = judge.effects(history, now, self.policy)
            assert decision.effect in permitted, (later, permitted, self.log, entry)

    def pass_time(self, rng: random.Random, *spans: float) -> None:
        """Advance the clock by a random fraction of one of `spans`."""
        self.now += rng.choice(spans) * (rng.random() + 1e-3)

    def record(self, text: str) -> None:
        """Log a step, for the message if an assertion fails."""
        self.log.append(f"{(self.now - START) / DAY:.6f} d: {text}")

    def _joined(
        self, process: Process, stored: Process
    ) -> tuple[Entry | None, History | None]:
        now, policy = self.now, self.policy
        entries = (
            usable(one.entry, now=now, policy=policy) for one in (process, stored)
        )
        histories = (
            judge.usable(one.history, now, policy) for one in (process, stored)
        )
        return merge(*entries, now=now), judge.joined(*histories, now)


def run_random(seed: int, policy: Policy) -> None:
    """Take 24 random steps with two processes and a store."""
    rng = random.Random(seed)  # noqa: S311 (reproducible, no secret)
    world = World(policy)
    processes, is_down = (Process(), Process()), False
    for _ in range(24):
        world.pass_time(rng, 1, MINUTE, HOUR, DAY, 3 * DAY)
        process, other = rng.sample(processes, 2)
        kind = rng.randrange(22)
        if kind < 5:
            disturb(world, process, kind, rng)
        elif kind == 5:
            is_down = not is_down
        elif kind in {6, 7}:
            if kind == 7:
                world.pass_time(rng, 7 * DAY, 31 * DAY, 60 * DAY)
            world.look(process)
        elif kind in {8, 9, 10}:
            for _ in range(rng.randrange(2, 40)):
                world.pass_time(rng, HOUR, DAY)
                world.attempt(process, rng.choice(FAILURES))
        else:  # another process's attempt may end first
            began_at = world.now
            for one in (other, process) if kind < 13 else (process,):
                world.now += 1 + rng.random()
                world.attempt(
                    one,
                    rng.choice(FAILURES if is_down else OUTCOMES),
                    began_at=began_at,
                    has_store=rng.random() < 0.9,
                )


def disturb(world: World, process: Process, kind: int, rng: random.Random) -> None:
    """Change the store, the memory of `process` or the clock."""
    world.record(f"disturbed {kind}")
    match kind:
        case 0:
            world.store = Process()
        case 1:
            world.store, world.backup = world.backup, world.store
        case 2:
            world.backup = world.store
        case 3:  # a restart
            process.entry = process.history = process.own = None
        case _:  # the clock is reset
            seconds = rng.choice([4 * MINUTE, HOUR, 5 * DAY, 400 * DAY])
            world.now += rng.choice([-1, 1]) * seconds


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_random_history_agrees_with_the_model(policy: Policy) -> None:
    for seed in range(8):
        run_random(seed, policy)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_hundreds_of_random_histories_agree_with_the_model(policy: Policy) -> None:
    for seed in range(8, 400):
        run_random(seed, policy)


Event = tuple[float, "Outcome | None"]


def daily(
    outcomes: Outcome | list[Outcome], first: float, last: float, *, per_day: int = 1
) -> list[Event]:
    """Attempts from day `first` to day `last`, cycling through `outcomes`."""
    several = outcomes if isinstance(outcomes, list) else [outcomes]
    count = round((last - first) * per_day) + 1
    return [(first + n / per_day, several[n % len(several)]) for n in range(count)]


def effect_after(policy: Policy, *events: Event) -> Effect | None:
    """What applies after these (day, outcome) pairs; `None` is a lookup alone."""
    world, process = World(policy), Process()
    effect = None
    for day, outcome in events:
        world.now = START + day * DAY
        if outcome is OWN_FAILURE:
            effect = world.meanwhile(process)
        elif outcome is None:
            effect = world.look(process)
        else:
            effect = world.attempt(process, outcome)
    return effect


BUSY = answered(503, retry_after="86400")
RESTRICT = Policy(on_access_denied=AccessResult.RESTRICTED)
ALLOW_AT_LIMIT = Policy(after_unreachable_limit=AfterUnreachableLimit.ALLOW)

SCENARIOS: dict[str, tuple[Policy, list[Event], Effect | None]] = {
    "alternating 429 and 500, 500 last: open":
        (Policy(), daily([BROKEN, TOO_MANY], 0, 34), Effect.ALLOW),
    "alternating 429 and 500, 429 last: closed":
        (Policy(), daily([BROKEN, TOO_MANY], 0, 35), Effect.DISALLOW),
    "our own machine fails once the origin is open: still open":
        (Policy(), [*daily(BROKEN, 0, 31), (31.5, OWN_FAILURE)], Effect.ALLOW),
    "our own machine fails after the limit without evidence since: closed":
        (Policy(), [*daily(BROKEN, 0, 29), (31, OWN_FAILURE)], Effect.DISALLOW),
    "our own machine fails with a stale copy: the copy":
        (Policy(), [(0, OK), (2, OWN_FAILURE)], Effect.RULES),
    "our own machine fails with a stale copy, grace: closed":
        (Policy.google_today(), [(0, OK), (2, OWN_FAILURE)], Effect.DISALLOW),
    "our own machine fails after a 404: closed":
        (Policy(), [(0, MISSING), (2, OWN_FAILURE)], Effect.DISALLOW),
    "our own machine fails at first: closed":
        (ALLOW_AT_LIMIT, [(0, OWN_FAILURE)], Effect.DISALLOW),
    "our own machine fails for years: closed":
        (ALLOW_AT_LIMIT, daily(OWN_FAILURE, 0, 900), Effect.DISALLOW),
    "no stale window: still open after the limit":
        (Policy(stale_window=0.0), [(0, OK), *daily(BROKEN, 2, 33)], Effect.ALLOW),
    "grace longer than the limit: open after both":
        (Policy(outage_grace=40 * DAY), daily(BROKEN, 0, 40), Effect.ALLOW),
    "grace longer than window and limit: the copy is never used":
        (Policy(outage_grace=40 * DAY), [(0, OK), *daily(BROKEN, 2, 41)],
        Effect.DISALLOW),
    "a failed early refresh, Retry-After past expiry: still fresh":
        (Policy(outage_grace=DAY / 2), [(0, OK), (0.9, BUSY), (0.95, None)],
        Effect.RULES),
    "a failed early refresh, Retry-After past expiry: grace":
        (Policy(outage_grace=DAY / 2), [(0, OK), (0.9, BUSY), (1.1, None)],
        Effect.DISALLOW),
    "Retry-After past the end of the grace: the copy":
        (Policy.google_today(), [(0, OK), (2, BUSY), (2.6, None)], Effect.RULES),
    "Retry-After past the end of the window: closed":
        (Policy(), [(0, OK), *daily(BUSY, 2.5, 31.5), (32.6, None)], Effect.DISALLOW),
    "Retry-After past the end of the window, then 503: open":
        (Policy(), [(0, OK), *daily(BUSY, 2.5, 31.5), (32.6, BUSY)], Effect.ALLOW),
    "Retry-After past the limit: closed until the next attempt":
        (Policy(), [*daily(BUSY, 0, 29), (29.9, BUSY), (30.5, None)], Effect.DISALLOW),
    "Retry-After past the limit, then 503: open":
        (Policy(), [*daily(BUSY, 0, 29), (29.9, BUSY), (30.91, BUSY)], Effect.ALLOW),
    "refused, then 31 days of timeouts: refused":
        (ALLOW_AT_LIMIT, [(0, REFUSED), *daily(TIMEOUT, 1, 32)], Effect.REFUSE),
    "refused during an outage: the copy is discarded":
        (Policy(), [(0, OK), (2, BROKEN), (3, REFUSED), (4, BROKEN)], Effect.REFUSE),
    "31 days of network failures: closed":
        (Policy(), daily(DEAD, 0, 31, per_day=4), Effect.DISALLOW),
    "31 days of network failures under ALLOW: open":
        (ALLOW_AT_LIMIT, daily(DEAD, 0, 31), Effect.ALLOW),
    "32 days of network failures, then one 500: closed":
        (Policy(), [*daily(DEAD, 0, 32), (32.5, BROKEN)], Effect.DISALLOW),
    "clock set back an hour after an answer: nothing is fresh":
        (Policy(outage_grace=HOUR), [(0, OK), (-1 / 24, BROKEN)], Effect.DISALLOW),
    "clock set back an hour after an answer: its copy is used":
        (Policy(), [(0, OK), (-1 / 24, BROKEN)], Effect.RULES),
    "clock set back an hour once the origin is open: closed":
        (Policy(), [*daily(BROKEN, 0, 31), (31 - 1 / 24, BROKEN)], Effect.DISALLOW),
    "clock an hour ahead for one attempt in an outage: closed":
        (Policy(), [*daily(BROKEN, 0, 29), (29.99 + 1 / 24, BROKEN), (29.99, BROKEN)],
        Effect.DISALLOW),
    "clock set back three minutes: no effect":
        (Policy(), [*daily(BROKEN, 0, 31), (31 - 3 / 1440, None)], Effect.ALLOW),
    "no lookups for 60 days: the copy has expired":
        (Policy(), [(0, OK), (60, BROKEN)], Effect.DISALLOW),
    "no lookups for 60 days: nothing is known":
        (Policy(), [*daily(BROKEN, 0, 31), (91, None)], None),
    "no lookups for 60 days: a new outage begins":
        (Policy(), [*daily(BROKEN, 0, 31), (91, BROKEN)], Effect.DISALLOW),
    "no lookups for 60 days: the last copy is used after the grace":
        (Policy.google_2021(), [(0, OK), *daily(BROKEN, 60, 90)], Effect.RULES),
    "last copy, and our own machine fails a month into an outage: the copy":
        (Policy.google_2021(), [(0, OK), *daily(BROKEN, 2, 32), (32.9, OWN_FAILURE)],
        Effect.RULES),
    "last copy, and our own machine fails after 400 days: closed":
        (Policy.google_2021(), [(0, OK), (2, BROKEN), (402, OWN_FAILURE)],
        Effect.DISALLOW),
    "one failure every 28 days for 84 days: closed":
        (Policy(), [(28 * n, BROKEN) for n in range(4)], Effect.DISALLOW),
    "one failure every 28 days for 112 days: open":
        (Policy(), [(28 * n, BROKEN) for n in range(5)], Effect.ALLOW),
    "429 every day and 500 every 31 days: closed":
        (Policy(), [(day, TOO_MANY if day % 31 else BROKEN) for day in range(311)],
        Effect.DISALLOW),
    "restricted, then 35 days of 500: closed":
        (RESTRICT, [(0, answered(403)), *daily(BROKEN, 2, 37)], Effect.DISALLOW),
    "restricted, no lookups for 40 days, then 29 days of 500: closed":
        (RESTRICT, [(0, answered(403)), *daily(BROKEN, 40, 69)], Effect.DISALLOW),
    "restricted, no lookups for 40 days, then 30 days of 500: open":
        (RESTRICT, [(0, answered(403)), *daily(BROKEN, 40, 70)], Effect.ALLOW),
    "clock set back an hour after an answer, caught up: fresh again":
        (Policy(outage_grace=HOUR), [(0, OK), (-1 / 24, BROKEN), (0.01, None)],
        Effect.RULES),
    "clock set back a day once the origin is open, caught up: open again":
        (Policy(), [*daily(BROKEN, 0, 31), (30, None), (31, None)], Effect.ALLOW),
    "clock set back a day once the origin is open, then a failure: closed":
        (Policy(), [*daily(BROKEN, 0, 31), (30, BROKEN), (31, None)], Effect.DISALLOW),
    "one failure every 31 days: closed":
        (Policy(), [(31 * n, BROKEN) for n in range(12)], Effect.DISALLOW),
}  # fmt: skip


@pytest.mark.parametrize(
    ("policy", "events", "effect"), SCENARIOS.values(), ids=SCENARIOS
)
def test_scenario_ends_with_the_expected_effect(
    policy: Policy, events: list[Event], effect: Effect | None
) -> None:
    assert effect_after(policy, *events) is effect


def test_restored_store_brings_back_the_start_of_the_outage() -> None:
    world, process = World(), Process()
    for day, outcome in daily(BROKEN, 0, 20):
        world.now = START + day * DAY
        world.attempt(process, outcome)
    backup, world.store, process = world.store, Process(), Process()
    for day, outcome in daily(BROKEN, 21, 33):
        world.now = START + day * DAY
        assert world.attempt(process, outcome) is Effect.DISALLOW

    world.store = backup

    assert world.look(process) is Effect.ALLOW


def test_copy_from_a_restored_store_is_used_during_the_outage() -> None:
    world, process = World(), Process()
    world.attempt(process, OK)
    backup, world.store, process = world.store, Process(), Process()
    world.now += 2 * DAY
    assert world.attempt(process, BROKEN) is Effect.DISALLOW

    world.store = backup

    world.now += DAY
    assert world.attempt(process, BROKEN) is Effect.RULES
