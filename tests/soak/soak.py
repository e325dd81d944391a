"""Runs many lookups for many origins and counts what goes wrong."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections import Counter
from pathlib import Path
from random import Random
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import anyio
import anyio.to_thread

from robotsgate import MemoryStore, Policy, RobotsChecker, StoreError
from robotsgate.events import RobotsTxtFetched
from robotsgate.testing import ManualClock
from tests.soak.judge import ROBOTS_TXT, ROUND_DAYS, expectations
from tests.soak.servers import (
    KINDS,
    NETWORK,
    Script,
    groups,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from robotsgate.events import CheckerEvent
    from tests.soak.servers import Servers

_AGENTS = ("SoakBot/1.0 (+https://crawler.example)", "OtherBot", "SoakBot")

_CANCELLED_SHARE = 0.03
_MAX_PATIENCE_SECONDS = 0.1
_STORE_FAILURE_SHARE = 0.02
_LISTENER_ERROR_SHARE = 0.01
_MAX_BURST = 8
_MAX_REPORTED = 20
_SETTLING_SECONDS = 5.0
_POLL_SECONDS = 0.02

_DAY = 24 * 60 * 60.0
# Within a round, short lifetimes end and retries become due, all on the same day.
_STEPS = 20
_STEP_SECONDS = 120.0

# The deadline is long enough for the redirects of a sound origin, on a machine that
# runs a hundred fetches at once.
_POLICY = Policy(
    min_lifetime=60.0,
    fetch_deadline=20.0,
    read_timeout=3.0,
    store_timeout=0.2,
    allowed_networks=(NETWORK,),
)


class Soak(NamedTuple):
    """The options of a soak test."""

    origins: int = 2_000
    checks: int = 100_000
    concurrency: int = 500
    faults: float = 0.2
    seed: int = 0
    loop: str = "asyncio"
    rounds: int = 10


# --- failures other than those of origins ---------------------------------------


class _BadStore(MemoryStore):
    """A store with operations that sometimes raise, hang or return garbage."""

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self._rng = rng

    async def get(self, key: str) -> bytes | None:
        if self._rng.random() < _STORE_FAILURE_SHARE:
            await self._fail()
            return b"garbage"
        return await super().get(key)

    async def update(
        self,
        key: str,
        change: Callable[[bytes | None], tuple[bytes, float | None] | None],
    ) -> None:
        if self._rng.random() < _STORE_FAILURE_SHARE:
            await self._fail()
            raise StoreError("the disk is full")
        await super().update(key, change)

    async def _fail(self) -> None:
        """Raise or hang; if it returns, the caller fails in its own way."""
        method = self._rng.randrange(4)
        if method == 0:
            raise OSError("the disk is gone")
        if method == 1:
            raise StoreError("the store is locked")
        if method == 2:
            await anyio.sleep_forever()


# --- lookups --------------------------------------------------------------------


class Resources(NamedTuple):
    """The system resources of this process."""

    resident: int
    descriptors: int
    tasks: int
    threads: int

    @classmethod
    def now(cls) -> Resources:
        """Collect garbage, then count."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return cls(
            resident=pages * os.sysconf("SC_PAGE_SIZE"),
            descriptors=len([*Path("/proc/self/fd").iterdir()]),
            tasks=len(anyio.get_running_tasks()),
            threads=threading.active_count(),
        )


class Round(NamedTuple):
    """The figures of a round, and the resources at its end."""

    seconds: float
    lookups: int
    fetches: int
    joined: int
    resources: Resources


class SoakRun:
    """One run of a soak test."""

    start: Resources
    end: Resources

    def __init__(self, soak: Soak, servers: Servers) -> None:
        self.counts: Counter[str] = Counter()
        self.attempts: Counter[str] = Counter()
        self.rounds: list[Round] = []
        self._soak = soak
        self._servers = servers
        self._script = Script(soak.seed, soak.origins, soak.faults)
        self._expectations = [
            [
                *expectations(
                    [
                        KINDS[self._kind(origin, round_)].outcome
                        for round_ in range(soak.rounds)
                    ]
                )
            ]
            for origin in range(soak.origins)
        ]
        self._numbers = {url: number for number, url in enumerate(servers.origins)}
        self._clock = ManualClock()
        self._began = self._clock.now()
        self._rng = Random(f"surroundings {soak.seed}")
        self._unanswered: set[int] = set()

    def _kind(self, origin: int, round_: int) -> str:
        return self._script.kind(origin, round_)

    async def run(self) -> None:
        """Run all rounds, and count resources before and after them."""
        self.start = Resources.now()
        async with RobotsChecker(
            user_agent=_AGENTS[0],
            store=_BadStore(self._rng),
            policy=_POLICY,
            clock=self._clock,
            on_event=self._on_event,
        ) as checker:
            for number in range(self._soak.rounds):
                self.rounds.append(await self._run_round(checker, number))
                seconds = self.rounds[-1].seconds
                print(f"[round {number + 1}: {seconds:.0f} s]", file=sys.stderr)
            counts = checker.stats.as_dict()
            del counts["disallowed"]  # by reason
            self.counts.update(counts)
        self.end = await self._settle()

    async def _run_round(self, checker: RobotsChecker, number: int) -> Round:
        """Look up every origin, most of them several times."""
        self._clock.set(self._began + number * ROUND_DAYS * _DAY)
        self._round = number
        await self._begin(number)
        lookups = list(self._lookups(number))
        self._unanswered = set(range(self._soak.origins))
        before, lookups_before = checker.stats, self.counts["lookups"]
        began = perf_counter()
        await self._look_up_all(checker, lookups)
        # What applies later is only known if every origin is looked up now.
        repeated = [
            (origin, _AGENTS[0], ROBOTS_TXT) for origin in sorted(self._unanswered)
        ]
        await self._look_up_all(checker, repeated, is_patient=True)
        self.counts["repeated"] += len(repeated)
        seconds = perf_counter() - began
        await self._begin(number)
        return Round(
            seconds=seconds,
            lookups=self.counts["lookups"] - lookups_before,
            fetches=checker.stats.fetches - before.fetches,
            joined=checker.stats.joined - before.joined,
            resources=await self._settle(),
        )

    async def _begin(self, number: int) -> None:
        """Begin a round on the servers, and count forbidden connections."""
        self.counts["breaches"] = await anyio.to_thread.run_sync(
            self._servers.begin, number
        )

    async def _settle(self) -> Resources:
        """The resources, once closed sockets and ended tasks are gone."""
        until = perf_counter() + _SETTLING_SECONDS
        while True:
            resources = Resources.now()
            is_back = resources.descriptors <= self.start.descriptors
            if (
                is_back and resources.tasks <= self.start.tasks
            ) or perf_counter() > until:
                return resources
            await anyio.sleep(_POLL_SECONDS)

    def _lookups(self, number: int) -> Iterator[tuple[int, str, str]]:
        """The lookups of a round: every origin, and some in bursts."""
        soak = self._soak
        rng = Random(f"questions {soak.seed} {number}")
        count = soak.checks // soak.rounds
        everyone = rng.sample(range(soak.origins), min(count, soak.origins))
        bursts = [(origin, 1) for origin in everyone]
        remaining_count = count - len(bursts)
        while remaining_count > 0:
            burst = min(remaining_count, rng.randint(1, _MAX_BURST))
            bursts.append((int(soak.origins * rng.random() ** 2), burst))
            remaining_count -= burst
        rng.shuffle(bursts)
        for origin, burst in bursts:
            for _ in range(burst):
                yield origin, rng.choice(_AGENTS), self._path(origin, rng)

    def _path(self, origin: int, rng: Random) -> str:
        """A path that the current rules match, or those of another round or origin."""
        edition = self._expectations[origin][self._round].edition
        other = rng.randrange(self._soak.origins)
        earlier = rng.randrange(self._round + 1)
        choices = [(origin, edition)] * 3
        choices += [(origin, self._round), (origin, earlier), (other, self._round)]
        group = rng.choice([*groups(*rng.choice(choices)).values()])
        return rng.choice([*(f"{prefix}page" for prefix in group), ROBOTS_TXT, "/"])

    async def _look_up_all(
        self,
        checker: RobotsChecker,
        lookups: Sequence[tuple[int, str, str]],
        *,
        is_patient: bool = False,
    ) -> None:
        remaining = iter(lookups)
        step = max(1, len(lookups) // _STEPS)

        async def work() -> None:
            for lookup in remaining:
                self.counts["lookups"] += 1
                if self.counts["lookups"] % step == 0:
                    self._clock.advance(_STEP_SECONDS)
                patience = None
                if not is_patient and self._rng.random() < _CANCELLED_SHARE:
                    patience = self._rng.uniform(0, _MAX_PATIENCE_SECONDS)
                await self._look_up(checker, *lookup, patience=patience)

        async with anyio.create_task_group() as workers:
            for _ in range(min(self._soak.concurrency, len(lookups))):
                workers.start_soon(work)

    async def _look_up(
        self,
        checker: RobotsChecker,
        origin: int,
        agent: str,
        path: str,
        *,
        patience: float | None,
    ) -> None:
        expectation = self._expectations[origin][self._round]
        expected = expectation.allows(origin=origin, agent=agent, path=path)
        url = self._servers.origins[origin] + path
        (method,) = self._rng.choices([*_METHODS], weights=[*_METHODS.values()])
        try:
            with anyio.move_on_after(patience) as scope:
                answer: object = await method(checker, agent, url)
        except Exception as error:  # noqa: BLE001 (any error is a wrong answer)
            answer = error
        if scope.cancelled_caught:
            self.counts["cancelled"] += 1
            return
        self._unanswered.discard(origin)
        if answer is not expected:
            verdict = await checker.check(agent, url)
            self._report(
                "wrong",
                f"{agent!r} looked up {path} of {self._about(origin)}, which allows"
                f" {expectation.effect.value} (round {expectation.edition + 1}):"
                f" expected {expected}, got {answer!r}; now {verdict}",
            )

    def _on_event(self, event: CheckerEvent) -> None:
        """Count an attempt, check its result, and sometimes raise."""
        if isinstance(event, RobotsTxtFetched):
            number = self._numbers[event.origin]
            self.attempts[self._kind(number, self._round)] += 1
            access = self._expectations[number][self._round].access
            if event.access is not access:
                self._report(
                    "odd fetches",
                    f"the result of fetching {self._about(number)} is"
                    f" {event.access.value}, {event.error}",
                )
        if self._rng.random() < _LISTENER_ERROR_SHARE:
            raise RuntimeError("the listener fails")

    def _report(self, what: str, text: str) -> None:
        self.counts[what] += 1
        if self.counts[what] <= _MAX_REPORTED:
            print(f"wrong, seed {self._soak.seed}: {text}", file=sys.stderr)

    def _about(self, origin: int) -> str:
        kind = self._kind(origin, self._round)
        return f"origin {origin}, which {kind} in round {self._round + 1}"


async def _can_fetch(checker: RobotsChecker, agent: str, url: str) -> bool:
    return await checker.can_fetch(agent, url)


async def _check(checker: RobotsChecker, agent: str, url: str) -> bool:
    return (await checker.check(agent, url)).allowed


async def _can_fetch_many(checker: RobotsChecker, agent: str, url: str) -> bool:
    first, _, last = await checker.can_fetch_many(agent, [url, f"{url}/more", url])
    if first is not last:
        raise RuntimeError("expected one answer for one URL, got both")
    return last


async def _refresh(checker: RobotsChecker, agent: str, url: str) -> bool:
    await checker.refresh(url)
    return await checker.can_fetch(agent, url)


# The methods that look up a URL, with the percentage of each.
_METHODS: dict[Callable[[RobotsChecker, str, str], Awaitable[bool]], int] = {
    _can_fetch: 50,
    _check: 44,
    _can_fetch_many: 5,
    _refresh: 1,
}
