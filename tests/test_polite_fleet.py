"""Separate processes that share a host act as one polite crawler."""

from __future__ import annotations

import json
import threading
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING

import anyio
import pytest

from robotsgate import (
    PolitenessGate,
    RobotsChecker,
    SharedLedger,
    SQLiteStore,
    SystemClock,
)
from robotsgate.politeness import _shared_ledger
from robotsgate.politeness._host_record import TurnEnd
from robotsgate.politeness._ledger import Grant
from robotsgate.testing import FakeSite
from tests.fleet.polite_host import PoliteHost
from tests.fleet.polite_worker import PoliteAssignment
from tests.politeness.builders import pace
from tests.servers.valkey import far_from, running_valkey
from tests.stores.child import child

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from robotsgate.stores import Change

pytestmark = pytest.mark.slow

WORKERS = 6
DELAY = 0.2
ROUND_TRIP_SECONDS = 0.02
MAX_TURN_SECONDS = 3.0

_TIMEOUT_SECONDS = 240.0


@contextmanager
def running_workers(
    store: str, host: PoliteHost, *, requests: int, workers: int = WORKERS
) -> Iterator[list[subprocess.Popen[str]]]:
    """Start workers; each exits by itself."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                child(
                    "tests.fleet.polite_worker",
                    json.dumps(
                        asdict(
                            PoliteAssignment(
                                name=f"worker-{number}",
                                store=store,
                                url=host.url,
                                workers=workers,
                                requests=requests,
                                gate={
                                    "default_delay": 0.0,
                                    "max_turn_seconds": MAX_TURN_SECONDS,
                                },
                            )
                        )
                    ),
                )
            )
            for number in range(workers)
        ]


def url_in(folder: Path) -> str:
    """The URL of a file in `folder`."""
    return f"sqlite:///{folder / 'hosts.db'}"


def wait_for(workers: list[subprocess.Popen[str]]) -> None:
    for worker in workers:
        _, error = worker.communicate(timeout=_TIMEOUT_SECONDS)
        assert worker.returncode == 0, error


def test_processes_with_one_file_are_as_polite_as_one_process(tmp_path: Path) -> None:
    with (
        PoliteHost(crawl_delay=DELAY) as host,
        running_workers(url_in(tmp_path), host, requests=300 // WORKERS) as workers,
    ):
        wait_for(workers)

    gaps = [gap for *_, gap in host.gaps]
    assert len(host.pages) == 300
    assert min(gaps) >= DELAY
    # While all workers run, each gets its share.
    first = host.pages[: 20 * WORKERS]
    shares = [
        sum(visit.agent == f"worker-{number}" for visit in first)
        for number in range(WORKERS)
    ]
    assert min(shares) >= 10


def test_fleet_far_from_its_server_keeps_the_delay() -> None:
    with (
        running_valkey() as redis,
        far_from(redis, seconds=ROUND_TRIP_SECONDS) as url,
        PoliteHost(crawl_delay=DELAY) as host,
        running_workers(url, host, requests=25, workers=2) as workers,
    ):
        wait_for(workers)

    assert len(host.pages) == 50
    assert min(gap for *_, gap in host.gaps) >= DELAY


def test_turn_of_a_killed_worker_ends_when_it_is_overdue(tmp_path: Path) -> None:
    with (
        PoliteHost(crawl_delay=DELAY, agent_to_hold="worker-0") as host,
        running_workers(url_in(tmp_path), host, requests=10) as (
            victim,
            *others,
        ),
    ):
        host.wait_until_it_holds()
        victim.kill()
        host.release()
        wait_for(others)

    gaps = [gap for *_, gap in host.gaps]
    assert len(host.pages) >= 10 * (WORKERS - 1)
    assert min(gaps) >= DELAY
    assert MAX_TURN_SECONDS / 2 < max(gaps) < 2 * MAX_TURN_SECONDS


def test_each_worker_keeps_to_its_share_while_the_server_is_down() -> None:
    with (
        running_valkey() as redis,
        PoliteHost(crawl_delay=DELAY) as host,
        running_workers(redis.url, host, requests=15) as workers,
    ):
        host.wait_until(lambda: len(host.visits) >= 30)
        redis.stop()
        host.wait_until(lambda: sum(visit.is_alone for visit in host.visits) >= 12)
        redis.start()
        wait_for(workers)

    shared = [gap for _, following, gap in host.gaps if not following.is_alone]
    assert len(host.pages) == 15 * WORKERS
    assert len(shared) >= 60
    assert min(shared) >= DELAY
    for number in range(WORKERS):
        own = [visit for visit in host.pages if visit.agent == f"worker-{number}"]
        assert all(
            following.began_at - visit.ended_at >= WORKERS * DELAY
            for visit, following in pairwise(own)
            if following.is_alone
        )


def test_two_workers_continue_while_the_server_hangs() -> None:
    with (
        running_valkey() as redis,
        PoliteHost(crawl_delay=DELAY) as host,
        running_workers(redis.url, host, requests=40, workers=2) as workers,
    ):
        host.wait_until(lambda: len(host.visits) >= 10)
        redis.pause()
        before = len(host.visits)
        threading.Event().wait(8.0)
        during = len(host.visits) - before
        redis.resume()
        wait_for(workers)

    assert len(host.pages) == 80
    # For at least 7 s, each of the two starts a turn every 0.4 s.
    assert during >= 15
    for visit, following, gap in host.gaps:
        if not (visit.is_alone or following.is_alone):
            assert gap >= DELAY
    for number in range(2):
        own = [visit for visit in host.pages if visit.agent == f"worker-{number}"]
        assert all(
            following.began_at - visit.ended_at >= 2 * DELAY
            for visit, following in pairwise(own)
            if visit.is_alone and following.is_alone
        )


class CountingStore(SQLiteStore):
    """A store that counts its updates."""

    updates = 0

    async def update(self, key: str, change: Change) -> None:
        self.updates += 1
        await super().update(key, change)


class Crowd:
    """Sixteen ledgers for one host, each standing for a process.

    Attributes:
        stores: the stores of the ledgers.
        turns: the monotonic start and end time of each turn, by ledger.
    """

    def __init__(self, path: Path) -> None:
        self.stores = [CountingStore(path) for _ in range(16)]
        self.turns: list[tuple[float, float, SQLiteStore]] = []

    @property
    def gaps(self) -> list[float]:
        """Seconds between turns."""
        return [begins - ended for (_, ended, _), (begins, *_) in pairwise(self.turns)]

    async def crawl(self, *, turns: int, turns_before_half_die: int) -> None:
        """Take `turns` turns in all; half of the ledgers stop earlier."""
        async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
            for number, store in enumerate(self.stores):
                await stack.enter_async_context(store)
                ledger = SharedLedger(store, workers=16)
                await stack.enter_async_context(ledger)
                limit = turns_before_half_die if number % 2 else turns
                tasks.start_soon(self._crawl, store, ledger, limit)

    async def _crawl(
        self, store: SQLiteStore, ledger: SharedLedger, turns: int
    ) -> None:
        clock = SystemClock()
        while len(self.turns) < turns:
            answer = await ledger.start("example.com", pace(DELAY))
            if not isinstance(answer, Grant):
                await clock.wait(answer.seconds)
                continue
            begins = clock.monotonic()
            await clock.wait(DELAY / 4)
            self.turns.append((begins, clock.monotonic(), store))
            await ledger.end(answer, TurnEnd.GOOD)


@pytest.mark.anyio
@pytest.mark.parametrize("turns_before_half_die", [64, 40])
async def test_sixteen_processes_share_a_host_even_if_half_of_them_die(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, turns_before_half_die: int
) -> None:
    # A busy machine must not look like a locked file.
    monkeypatch.setattr(_shared_ledger, "_ANSWER_SECONDS", 10.0)
    crowd = Crowd(tmp_path / "hosts.db")
    await crowd.crawl(turns=64, turns_before_half_die=turns_before_half_die)

    assert min(crowd.gaps) >= DELAY
    # The host is idle during the turns of dead processes, and a second for the last.
    assert max(crowd.gaps) < 8 * 2 * DELAY + 2.0
    assert len({store for *_, store in crowd.turns}) == 16
    # Each of the 16 asks twice without getting a turn: at the start and at the end.
    assert sum(store.updates for store in crowd.stores) / 64 <= 6.0


@pytest.mark.asyncio
async def test_schedule_overlaps_the_round_trips_of_several_workers() -> None:
    urls = [f"http://{number % 100}.example/{number}" for number in range(400)]
    pages = []
    with (
        running_valkey() as redis,
        far_from(redis, seconds=ROUND_TRIP_SECONDS) as url,
    ):
        async with (
            SharedLedger(url, workers=1) as ledger,
            RobotsChecker(user_agent="Bot", client=FakeSite()) as checker,
            PolitenessGate(checker, "Bot", ledger=ledger, default_delay=0.0) as gate,
        ):
            await checker.prefetch(urls)
            schedule = gate.schedule(urls)

            async def crawl() -> None:
                async for page, turn in schedule:
                    async with turn:
                        pages.append(page)

            clock = SystemClock()
            began_at = clock.monotonic()
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(crawl)
            seconds = clock.monotonic() - began_at

    assert sorted(pages) == sorted(urls)
    # Half the time of two consecutive round trips per page.
    assert seconds < len(urls) * ROUND_TRIP_SECONDS
