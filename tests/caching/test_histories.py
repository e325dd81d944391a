"""What is in force after long histories, against a model that keeps each attempt."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from robotsgate.caching._attempt import entry_after
from robotsgate.caching._entry import keep_until, usable
from robotsgate.caching._in_force import Effect, in_force
from robotsgate.caching._merge import merge
from robotsgate.caching._outcome import (
    AccessResult,
    Answered,
    FailureKind,
    TooManyRedirects,
)
from robotsgate.caching._policy import AfterUnreachableLimit, Policy

from . import judge
from .builders import DAY, HOUR, MINUTE, ORIGIN, PRESETS, answered, failed
from .builders import NOW as START

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._outcome import Outcome

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
POOL = failed(FailureKind.POOL)
REFUSED = failed(FailureKind.ADDRESS_REFUSED)

OUTCOMES: list[Outcome] = [
    *(OK, MISSING, answered(403), REFUSED, POOL, BROKEN, TOO_MANY, DEAD, TIMEOUT),
    *(answered(status) for status in (206, 304, 407, 410, 503, 600)),
    *(answered(status, retry_after="86400") for status in (429, 500, 503)),
    answered(503, retry_after="120"), answered(500, retry_after="7776000"),
    Answered(status=500, body=b"<title>Page Not Found</title>"),
    Answered(status=200, headers={"cache-control": "max-age=604800"}),
    Answered(status=404, headers={"cache-control": "no-store"}),
    TooManyRedirects(status=302, error="a loop"),
]  # fmt: skip
FAILURES: list[Outcome] = [BROKEN, BROKEN, BROKEN, DEAD, TOO_MANY, POOL, answered(503)]


@dataclass
class Process:
    """What one process has in memory: the entry, and the history behind it."""

    entry: Entry | None = None
    history: History | None = None


@dataclass
class World:
    """Processes that share a store, and what they do, step by step."""

    policy: Policy = field(default_factory=Policy)
    now: float = START
    store: Process = field(default_factory=Process)
    backup: Process = field(default_factory=Process)
    told: list[str] = field(default_factory=list)

    def attempt(
        self,
        process: Process,
        outcome: Outcome,
        *,
        began_at: float | None = None,
        has_store: bool = True,
    ) -> Effect:
        """Let `process` end an attempt now, and keep it; what is in force then."""
        self.tell(f"attempt {outcome}")
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
        if has_store:
            self.store = Process(entry, history)
        self.compare(process)
        return in_force(entry, now=self.now, policy=self.policy).effect

    def look(self, process: Process) -> Effect | None:
        """Let `process` read the store; what is in force, `None` if nothing counts."""
        self.tell("look")
        process.entry, process.history = self._joined(process, self.store)
        self.compare(process)
        if process.entry is None:
            return None
        return in_force(process.entry, now=self.now, policy=self.policy).effect

    def compare(self, process: Process) -> None:
        """The entry says now, and for any later time, what the history says."""
        entry, history = process.entry, process.history
        assert (entry is None) is (history is None), self.told
        if entry is None or history is None:
            return
        if len(history.lines) < 2:
            end = judge.keep_until(history, self.policy)
            assert keep_until(entry, self.policy) == end, self.told
            current = judge.is_current(history, self.now)
            assert entry.is_current(self.now) is current, self.told
        for later in (0.0, HOUR, 2 * DAY, 31 * DAY):
            now = self.now + later
            said = in_force(entry, now=now, policy=self.policy)
            permitted = judge.effects(history, now, self.policy)
            assert said.effect in permitted, (later, permitted, self.told, entry)

    def pass_time(self, chance: random.Random, *spans: float) -> None:
        """Let nothing happen for at most one of `spans`."""
        self.now += chance.choice(spans) * (chance.random() + 1e-3)

    def tell(self, text: str) -> None:
        """Note what happens, for whoever reads why it failed."""
        self.told.append(f"{(self.now - START) / DAY:.6f} d: {text}")

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
    """Let chance do 24 things to two processes and a store."""
    chance = random.Random(seed)  # noqa: S311 (reproducible, no secret)
    world = World(policy)
    processes, is_down = (Process(), Process()), False
    for _ in range(24):
        world.pass_time(chance, 1, MINUTE, HOUR, DAY, 3 * DAY)
        process, other = chance.sample(processes, 2)
        kind = chance.randrange(22)
        if kind < 5:
            disturb(world, process, kind, chance)
        elif kind == 5:
            is_down = not is_down
        elif kind in {6, 7}:
            if kind == 7:
                world.pass_time(chance, 7 * DAY, 31 * DAY, 60 * DAY)
            world.look(process)
        elif kind in {8, 9, 10}:
            for _ in range(chance.randrange(2, 40)):
                world.pass_time(chance, HOUR, DAY)
                world.attempt(process, chance.choice(FAILURES))
        else:  # the attempt of another process may end first
            began_at = world.now
            for one in (other, process) if kind < 13 else (process,):
                world.now += 1 + chance.random()
                world.attempt(
                    one,
                    chance.choice(FAILURES if is_down else OUTCOMES),
                    began_at=began_at,
                    has_store=chance.random() < 0.9,
                )


def disturb(world: World, process: Process, kind: int, chance: random.Random) -> None:
    """Do what no attempt does."""
    world.tell(f"disturbed {kind}")
    match kind:
        case 0:
            world.store = Process()
        case 1:
            world.store, world.backup = world.backup, world.store
        case 2:
            world.backup = world.store
        case 3:  # a restart
            process.entry = process.history = None
        case _:  # somebody sets the clock
            seconds = chance.choice([4 * MINUTE, HOUR, 5 * DAY, 400 * DAY])
            world.now += chance.choice([-1, 1]) * seconds


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_random_history_is_judged_alike(policy: Policy) -> None:
    for seed in range(8):
        run_random(seed, policy)


@pytest.mark.slow
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_hundreds_of_random_histories_are_judged_alike(policy: Policy) -> None:
    for seed in range(8, 400):
        run_random(seed, policy)


Event = tuple[float, "Outcome | None"]


def daily(
    outcomes: Outcome | list[Outcome], first: float, last: float, *, per_day: int = 1
) -> list[Event]:
    """Attempts from day `first` to day `last`, which take turns with `outcomes`."""
    several = outcomes if isinstance(outcomes, list) else [outcomes]
    count = round((last - first) * per_day) + 1
    return [(first + n / per_day, several[n % len(several)]) for n in range(count)]


def effect_after(policy: Policy, *events: Event) -> Effect | None:
    """What is in force after (day, outcome) by day; `None`: somebody only asks."""
    world, process = World(policy), Process()
    effect = None
    for day, outcome in events:
        world.now = START + day * DAY
        if outcome is None:
            effect = world.look(process)
        else:
            effect = world.attempt(process, outcome)
    return effect


BUSY = answered(503, retry_after="86400")
KEEP_OUT = Policy(on_access_denied=AccessResult.RESTRICTED)
ALLOW_AT_LIMIT = Policy(after_unreachable_limit=AfterUnreachableLimit.ALLOW)

NAMED: dict[str, tuple[Policy, list[Event], Effect | None]] = {
    "429 and 500 in turn, 500 last: open":
        (Policy(), daily([BROKEN, TOO_MANY], 0, 34), Effect.ALLOW),
    "429 and 500 in turn, 429 last: closed":
        (Policy(), daily([BROKEN, TOO_MANY], 0, 35), Effect.DISALLOW),
    "full pools within an outage that opened leave it open":
        (Policy(), [*daily(BROKEN, 0, 31), (31.5, POOL)], Effect.ALLOW),
    "no stale window: open after the limit all the same":
        (Policy(stale_window=0.0), [(0, OK), *daily(BROKEN, 2, 33)], Effect.ALLOW),
    "grace longer than the limit: open after both":
        (Policy(outage_grace=40 * DAY), daily(BROKEN, 0, 40), Effect.ALLOW),
    "grace longer than window and limit: the copy never serves":
        (Policy(outage_grace=40 * DAY), [(0, OK), *daily(BROKEN, 2, 41)],
        Effect.DISALLOW),
    "an early refresh fails, Retry-After beyond freshness: fresh":
        (Policy(outage_grace=DAY / 2), [(0, OK), (0.9, BUSY), (0.95, None)],
        Effect.RULES),
    "an early refresh fails, Retry-After beyond freshness: grace":
        (Policy(outage_grace=DAY / 2), [(0, OK), (0.9, BUSY), (1.1, None)],
        Effect.DISALLOW),
    "Retry-After across the end of the grace: the copy":
        (Policy.google_today(), [(0, OK), (2, BUSY), (2.6, None)], Effect.RULES),
    "Retry-After across the end of the window: closed":
        (Policy(), [(0, OK), *daily(BUSY, 2.5, 31.5), (32.6, None)], Effect.DISALLOW),
    "Retry-After across the end of the window, then 503: open":
        (Policy(), [(0, OK), *daily(BUSY, 2.5, 31.5), (32.6, BUSY)], Effect.ALLOW),
    "Retry-After across the limit: closed until the next attempt":
        (Policy(), [*daily(BUSY, 0, 29), (29.9, BUSY), (30.5, None)], Effect.DISALLOW),
    "Retry-After across the limit, then 503: open":
        (Policy(), [*daily(BUSY, 0, 29), (29.9, BUSY), (30.91, BUSY)], Effect.ALLOW),
    "refused, then 31 days of time-outs: refused":
        (ALLOW_AT_LIMIT, [(0, REFUSED), *daily(TIMEOUT, 1, 32)], Effect.REFUSE),
    "refused in an outage: the copy is gone for good":
        (Policy(), [(0, OK), (2, BROKEN), (3, REFUSED), (4, BROKEN)], Effect.REFUSE),
    "31 days of our own dead network: closed":
        (Policy(), daily(DEAD, 0, 31, per_day=4), Effect.DISALLOW),
    "31 days of a dead network, which counts as ALLOW: open":
        (ALLOW_AT_LIMIT, daily(DEAD, 0, 31), Effect.ALLOW),
    "32 days of a dead network, then one 500: closed":
        (Policy(), [*daily(DEAD, 0, 32), (32.5, BROKEN)], Effect.DISALLOW),
    "clock an hour back after an answer: nothing is fresh":
        (Policy(outage_grace=HOUR), [(0, OK), (-1 / 24, BROKEN)], Effect.DISALLOW),
    "clock an hour back after an answer: its copy serves":
        (Policy(), [(0, OK), (-1 / 24, BROKEN)], Effect.RULES),
    "clock an hour back: what it opened is closed":
        (Policy(), [*daily(BROKEN, 0, 31), (31 - 1 / 24, BROKEN)], Effect.DISALLOW),
    "clock an hour ahead for one attempt, within an outage": (Policy(), [*daily(BROKEN,
        0, 29), (29.99 + 1 / 24, BROKEN), (29.99, BROKEN)], Effect.DISALLOW),
    "clock three minutes back: taken as it is":
        (Policy(), [*daily(BROKEN, 0, 31), (31 - 3 / 1440, None)], Effect.ALLOW),
    "nobody asks for 60 days: the copy counts as nothing":
        (Policy(), [(0, OK), (60, BROKEN)], Effect.DISALLOW),
    "nobody asks for 60 days: nothing is known":
        (Policy(), [*daily(BROKEN, 0, 31), (91, None)], None),
    "nobody asks for 60 days: an outage begins again":
        (Policy(), [*daily(BROKEN, 0, 31), (91, BROKEN)], Effect.DISALLOW),
    "nobody asks for 60 days: the last copy serves after the grace":
        (Policy.google_2021(), [(0, OK), *daily(BROKEN, 60, 90)], Effect.RULES),
    "last copy, and a full pool after 400 days":
        (Policy.google_2021(), [(0, OK), (2, BROKEN), (402, POOL)], Effect.RULES),
    "one failure every 28 days, 84 days: closed":
        (Policy(), [(28 * n, BROKEN) for n in range(4)], Effect.DISALLOW),
    "one failure every 28 days, 112 days: open":
        (Policy(), [(28 * n, BROKEN) for n in range(5)], Effect.ALLOW),
    "429 each day and a 500 every 31 days never opens":
        (Policy(), [(day, TOO_MANY if day % 31 else BROKEN) for day in range(311)],
        Effect.DISALLOW),
    "keep out, then 35 days of 500: closed":
        (KEEP_OUT, [(0, answered(403)), *daily(BROKEN, 2, 37)], Effect.DISALLOW),
    "keep out, nobody asks for 40 days, then 29 days of 500: closed":
        (KEEP_OUT, [(0, answered(403)), *daily(BROKEN, 40, 69)], Effect.DISALLOW),
    "keep out, nobody asks for 40 days, then 30 days of 500: open":
        (KEEP_OUT, [(0, answered(403)), *daily(BROKEN, 40, 70)], Effect.ALLOW),
    "clock an hour back after an answer, caught up: fresh again":
        (Policy(outage_grace=HOUR), [(0, OK), (-1 / 24, BROKEN), (0.01, None)],
        Effect.RULES),
    "clock a day back in an outage that opened, caught up: open again":
        (Policy(), [*daily(BROKEN, 0, 31), (30, None), (31, None)], Effect.ALLOW),
    "clock a day back in an outage that opened, and a failure: closed":
        (Policy(), [*daily(BROKEN, 0, 31), (30, BROKEN), (31, None)], Effect.DISALLOW),
    "one failure every 31 days never opens":
        (Policy(), [(31 * n, BROKEN) for n in range(12)], Effect.DISALLOW),
}  # fmt: skip


@pytest.mark.parametrize(("policy", "events", "effect"), NAMED.values(), ids=NAMED)
def test_named_history_ends_so(
    policy: Policy, events: list[Event], effect: Effect | None
) -> None:
    assert effect_after(policy, *events) is effect


def test_store_that_comes_back_brings_the_beginning_of_the_outage() -> None:
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


def test_copy_of_a_store_that_comes_back_serves_in_the_outage() -> None:
    world, process = World(), Process()
    world.attempt(process, OK)
    backup, world.store, process = world.store, Process(), Process()
    world.now += 2 * DAY
    assert world.attempt(process, BROKEN) is Effect.DISALLOW

    world.store = backup

    world.now += DAY
    assert world.attempt(process, BROKEN) is Effect.RULES
