"""Asks many questions about many origins, and counts what is wrong."""

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

from robotsgate import (
    MemoryStore,
    Policy,
    RobotsChecker,
    RobotsTxtFetched,
    StoreError,
)
from robotsgate.testing import ManualClock
from tests.soak.judge import ROBOTS_TXT, ROUND_DAYS, standings
from tests.soak.servers import (
    KINDS,
    NETWORK,
    Script,
    groups,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from robotsgate import CheckerEvent
    from tests.soak.servers import Servers

_AGENTS = ("SoakBot/1.0 (+https://crawler.example)", "OtherBot", "SoakBot")

_GIVES_UP = 0.03
_LONGEST_PATIENCE_SECONDS = 0.1
_STORE_FAILS = 0.02
_LISTENER_RAISES = 0.01
_LONGEST_CROWD = 8
_MOST_REPORTED = 20
_SETTLING_SECONDS = 5.0
_POLL_SECONDS = 0.02

_DAY = 24 * 60 * 60.0
# Within a round, short lifetimes end and retries come due, on the same day.
_STEPS = 20
_STEP_SECONDS = 120.0

# The deadline is long enough for the redirects of an origin that is well, on a
# machine that does a hundred fetches at once.
_POLICY = Policy(
    min_lifetime=60.0,
    fetch_deadline=20.0,
    read_timeout=3.0,
    store_timeout=0.2,
    allowed_networks=(NETWORK,),
)


class Soak(NamedTuple):
    """How much is asked of how many."""

    origins: int = 2_000
    checks: int = 100_000
    concurrency: int = 500
    faults: float = 0.2
    seed: int = 0
    loop: str = "asyncio"
    rounds: int = 10


# --- what goes wrong next to the origins ----------------------------------------


class _BadStore(MemoryStore):
    """A store of which some operations raise, hang, or give rubbish."""

    def __init__(self, chance: Random) -> None:
        super().__init__()
        self._chance = chance

    async def get(self, key: str) -> bytes | None:
        if self._chance.random() < _STORE_FAILS:
            await self._fail()
            return b"rubbish"
        return await super().get(key)

    async def update(
        self,
        key: str,
        change: Callable[[bytes | None], tuple[bytes, float | None] | None],
    ) -> None:
        if self._chance.random() < _STORE_FAILS:
            await self._fail()
            raise StoreError("the disk is full")
        await super().update(key, change)

    async def _fail(self) -> None:
        """One of several ways; if it returns, the caller finds another one."""
        way = self._chance.randrange(4)
        if way == 0:
            raise OSError("the disk is gone")
        if way == 1:
            raise StoreError("the store is locked")
        if way == 2:
            await anyio.sleep_forever()


# --- asking ---------------------------------------------------------------------


class Held(NamedTuple):
    """What the process holds of the system; without a loop it has no tasks."""

    resident: int
    descriptors: int
    tasks: int
    threads: int

    @classmethod
    def now(cls) -> Held:
        """What is held now, once all garbage is collected."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return cls(
            resident=pages * os.sysconf("SC_PAGE_SIZE"),
            descriptors=len([*Path("/proc/self/fd").iterdir()]),
            tasks=len(anyio.get_running_tasks()),
            threads=threading.active_count(),
        )


class Round(NamedTuple):
    """What a round came to, and what was held at its end."""

    seconds: float
    asked: int
    fetches: int
    joined: int
    held: Held


class Soaking:
    """A soak that goes on."""

    start: Held
    end: Held

    def __init__(self, soak: Soak, servers: Servers) -> None:
        """Ask nothing yet."""
        self.counts: Counter[str] = Counter()
        self.attempts: Counter[str] = Counter()
        self.rounds: list[Round] = []
        self._soak = soak
        self._servers = servers
        self._script = Script(soak.seed, soak.origins, soak.faults)
        self._standings = [
            [
                *standings(
                    [
                        KINDS[self._kind(origin, round_)].comes
                        for round_ in range(soak.rounds)
                    ]
                )
            ]
            for origin in range(soak.origins)
        ]
        self._numbers = {url: number for number, url in enumerate(servers.origins)}
        self._clock = ManualClock()
        self._began = self._clock.now()
        self._chance = Random(f"surroundings {soak.seed}")
        self._unanswered: set[int] = set()

    def _kind(self, origin: int, round_: int) -> str:
        return self._script.kind(origin, round_)

    async def run(self) -> None:
        """All rounds, and what is held before and after them."""
        self.start = Held.now()
        async with RobotsChecker(
            user_agent=_AGENTS[0],
            store=_BadStore(self._chance),
            policy=_POLICY,
            clock=self._clock,
            on_event=self._hear,
        ) as checker:
            for number in range(self._soak.rounds):
                self.rounds.append(await self._one_round(checker, number))
                took = self.rounds[-1].seconds
                print(f"[round {number + 1}: {took:.0f} s]", file=sys.stderr)
            counts = checker.stats.as_dict()
            del counts["disallowed"]  # by reason
            self.counts.update(counts)
        self.end = await self._settled()

    async def _one_round(self, checker: RobotsChecker, number: int) -> Round:
        """Ask about every origin, most of them several times."""
        self._clock.set(self._began + number * ROUND_DAYS * _DAY)
        self._round = number
        await self._begin(number)
        questions = list(self._questions(number))
        self._unanswered = set(range(self._soak.origins))
        before, asked_before = checker.stats, self.counts["asked"]
        began = perf_counter()
        await self._ask_all(checker, questions)
        # What is in force later is only known if each origin was asked now.
        again = [
            (origin, _AGENTS[0], ROBOTS_TXT) for origin in sorted(self._unanswered)
        ]
        await self._ask_all(checker, again, is_patient=True)
        self.counts["asked again"] += len(again)
        seconds = perf_counter() - began
        await self._begin(number)
        return Round(
            seconds=seconds,
            asked=self.counts["asked"] - asked_before,
            fetches=checker.stats.fetches - before.fetches,
            joined=checker.stats.joined - before.joined,
            held=await self._settled(),
        )

    async def _begin(self, number: int) -> None:
        """Tell the servers, and hear who came to where nobody should come."""
        self.counts["knocks"] = await anyio.to_thread.run_sync(
            self._servers.begin, number
        )

    async def _settled(self) -> Held:
        """What is held once closed sockets and ended tasks are gone, or soon."""
        until = perf_counter() + _SETTLING_SECONDS
        while True:
            held = Held.now()
            is_back = held.descriptors <= self.start.descriptors
            if (is_back and held.tasks <= self.start.tasks) or perf_counter() > until:
                return held
            await anyio.sleep(_POLL_SECONDS)

    def _questions(self, number: int) -> Iterator[tuple[int, str, str]]:
        """Those of a round: every origin, and some of them in crowds."""
        soak = self._soak
        chance = Random(f"questions {soak.seed} {number}")
        count = soak.checks // soak.rounds
        everybody = chance.sample(range(soak.origins), min(count, soak.origins))
        crowds = [(origin, 1) for origin in everybody]
        missing = count - len(crowds)
        while missing > 0:
            crowd = min(missing, chance.randint(1, _LONGEST_CROWD))
            crowds.append((int(soak.origins * chance.random() ** 2), crowd))
            missing -= crowd
        chance.shuffle(crowds)
        for origin, crowd in crowds:
            for _ in range(crowd):
                yield origin, chance.choice(_AGENTS), self._path(origin, chance)

    def _path(self, origin: int, chance: Random) -> str:
        """One that the rules in force speak of, or others that are near."""
        edition = self._standings[origin][self._round].edition
        other = chance.randrange(self._soak.origins)
        earlier = chance.randrange(self._round + 1)
        places = [(origin, edition)] * 3
        places += [(origin, self._round), (origin, earlier), (other, self._round)]
        group = chance.choice([*groups(*chance.choice(places)).values()])
        return chance.choice([*(f"{prefix}page" for prefix in group), ROBOTS_TXT, "/"])

    async def _ask_all(
        self,
        checker: RobotsChecker,
        questions: Sequence[tuple[int, str, str]],
        *,
        is_patient: bool = False,
    ) -> None:
        left = iter(questions)
        step = max(1, len(questions) // _STEPS)

        async def work() -> None:
            for question in left:
                self.counts["asked"] += 1
                if self.counts["asked"] % step == 0:
                    self._clock.advance(_STEP_SECONDS)
                patience = None
                if not is_patient and self._chance.random() < _GIVES_UP:
                    patience = self._chance.uniform(0, _LONGEST_PATIENCE_SECONDS)
                await self._ask(checker, *question, patience=patience)

        async with anyio.create_task_group() as workers:
            for _ in range(min(self._soak.concurrency, len(questions))):
                workers.start_soon(work)

    async def _ask(
        self,
        checker: RobotsChecker,
        origin: int,
        agent: str,
        path: str,
        *,
        patience: float | None,
    ) -> None:
        standing = self._standings[origin][self._round]
        expected = standing.allows(origin=origin, agent=agent, path=path)
        url = self._servers.origins[origin] + path
        (way,) = self._chance.choices([*_WAYS], weights=[*_WAYS.values()])
        try:
            with anyio.move_on_after(patience) as giving_up:
                answer: object = await way(checker, agent, url)
        except Exception as error:  # noqa: BLE001 (whatever it is, it is no answer)
            answer = error
        if giving_up.cancelled_caught:
            self.counts["given up"] += 1
            return
        self._unanswered.discard(origin)
        if answer is not expected:
            verdict = await checker.check(agent, url)
            self._report(
                "wrong",
                f"{agent!r} asked about {path} of {self._about(origin)}, of which round"
                f" {standing.edition + 1} is in force, for {standing.effect.value}:"
                f" expected {expected}, got {answer!r}; now {verdict}",
            )

    def _hear(self, event: CheckerEvent) -> None:
        """Count an attempt, look what it came to, and raise now and then."""
        if isinstance(event, RobotsTxtFetched):
            number = self._numbers[event.origin]
            self.attempts[self._kind(number, self._round)] += 1
            access = self._standings[number][self._round].access
            if event.access is not access:
                self._report(
                    "odd fetches",
                    f"the fetch of {self._about(number)} came to"
                    f" {event.access.value}, {event.error}",
                )
        if self._chance.random() < _LISTENER_RAISES:
            raise RuntimeError("the listener has an error of its own")

    def _report(self, what: str, text: str) -> None:
        self.counts[what] += 1
        if self.counts[what] <= _MOST_REPORTED:
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
        raise RuntimeError("expected one answer about one URL, got both")
    return last


async def _refresh(checker: RobotsChecker, agent: str, url: str) -> bool:
    await checker.refresh(url)
    return await checker.can_fetch(agent, url)


# How questions are asked, with how many of a hundred are asked so.
_WAYS: dict[Callable[[RobotsChecker, str, str], Awaitable[bool]], int] = {
    _can_fetch: 50,
    _check: 44,
    _can_fetch_many: 5,
    _refresh: 1,
}
