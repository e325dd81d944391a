"""A store that fails, hangs or is asked by thousands at once."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from robotsgate import MemoryStore, Policy, RobotsChecker, StoreError
from robotsgate.checking import _guarded_store
from robotsgate.testing import FakeSite, ManualClock
from tests.checking.builders import (
    AGENT,
    ORIGIN,
    PRIVATE,
    PUBLIC,
    RULES,
    FailingStore,
    let_others_run,
)

if TYPE_CHECKING:
    from robotsgate import Entry

pytestmark = pytest.mark.anyio


def site_of_rules(*origins: str) -> FakeSite:
    site = FakeSite()
    for origin in origins or (ORIGIN,):
        site.serve(origin, RULES)
    return site


class SlowStore(MemoryStore):
    """Takes a while, and counts how many wait for it."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way = 0
        self.most_under_way = 0

    async def get(self, origin: str) -> Entry | None:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        self.under_way -= 1
        return await super().get(origin)


async def test_thousands_at_once_do_not_crowd_the_store() -> None:
    """Their waiting for each other would be taken for its slowness."""
    store = SlowStore()
    origins = [f"https://{number}.example" for number in range(1_000)]

    async with RobotsChecker(client=site_of_rules(*origins), store=store) as checker:
        await checker.can_fetch_many(AGENT, [f"{one}/private" for one in origins])
        async with anyio.create_task_group() as tasks:
            for one in origins:
                tasks.start_soon(checker.refresh, one)

    assert checker.stats.store_failures == 0
    assert 1 < store.most_under_way <= 64


async def test_first_failure_in_a_row_is_a_warning_and_the_return_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = FailingStore("get", "put")

    with caplog.at_level(logging.DEBUG, "robotsgate.checker"):
        async with RobotsChecker(client=site_of_rules(), store=store) as checker:
            assert not await checker.can_fetch(AGENT, PRIVATE)
            store._failing = ()
            await checker.refresh(PUBLIC)

    told = [(one.levelname, one.getMessage()[:19]) for one in caplog.records]
    assert told == [
        ("WARNING", "store failed to get"),
        ("WARNING", "store failed to put"),
        ("INFO", "store works again: "),
        ("INFO", "store works again: "),
    ]


async def test_what_works_does_not_make_the_next_failure_the_first_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A full store gives what it has, and takes nothing, question by question."""
    store = FailingStore("put")
    origins = [f"https://{number}.example" for number in range(5)]

    with caplog.at_level(logging.DEBUG, "robotsgate.checker"):
        site = site_of_rules(*origins)
        async with RobotsChecker(client=site, store=store) as checker:
            await checker.can_fetch_many(AGENT, [f"{one}/private" for one in origins])

    assert [one.levelname for one in caplog.records] == ["WARNING"] + ["DEBUG"] * 4


async def test_store_that_fails_again_and_again_has_a_second_of_rest() -> None:
    store, clock = FailingStore("get", "put"), ManualClock()
    origins = [f"https://{number}.example" for number in range(20)]

    site = site_of_rules(*origins)
    async with RobotsChecker(client=site, store=store, clock=clock) as checker:
        for origin in origins:
            assert not await checker.can_fetch(AGENT, f"{origin}/private")
        failures = checker.stats.store_failures
        skips = checker.stats.store_skips
        clock.advance(1.5)
        store._failing = ()
        await checker.refresh(origins[0])

        assert checker.stats.store_skips == skips
    assert failures == 20
    assert failures + skips == 2 * len(origins)


async def test_rest_is_for_what_fails_alone() -> None:
    store, clock = FailingStore("put"), ManualClock()
    origins = [f"https://{number}.example" for number in range(20)]

    site = site_of_rules(*origins)
    async with RobotsChecker(client=site, store=store, clock=clock) as checker:
        await checker.can_fetch_many(AGENT, [f"{one}/private" for one in origins])
        failures = checker.stats.store_failures
        skips = checker.stats.store_skips
        misses = checker.stats.store_misses

    assert failures == 10
    assert skips == 10
    assert misses == 20


class LeaseStore(MemoryStore):
    """Gives a lease when another worker has just brought what it is for."""

    def __init__(self, brought: Entry) -> None:
        super().__init__()
        self._brought = brought
        self.released: list[str] = []

    async def acquire(self, origin: str, owner: str, seconds: float) -> bool:
        del origin, owner, seconds
        await super().put(self._brought)
        return True

    async def put_leased(self, entry: Entry, owner: str) -> None:
        del owner
        await super().put(entry)

    async def release(self, origin: str, owner: str) -> None:
        del owner
        self.released.append(origin)


async def test_what_another_brought_before_the_lease_is_used() -> None:
    clock, first = ManualClock(), MemoryStore()
    async with RobotsChecker(client=site_of_rules(), store=first, clock=clock) as other:
        await other.prefetch([ORIGIN])
    brought = await first.get(ORIGIN)
    assert brought is not None
    store, site = LeaseStore(brought), FakeSite()

    async with RobotsChecker(client=site, store=store, clock=clock) as checker:
        answers = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])

    assert answers == [False, True]
    assert site.requests == []
    assert store.released == [ORIGIN]


class HangingLease(LeaseStore):
    """Hangs when it is asked for a lease."""

    async def acquire(self, origin: str, owner: str, seconds: float) -> bool:
        del origin, owner, seconds
        await anyio.sleep_forever()
        raise StoreError("never")


async def test_lease_that_hangs_is_done_without() -> None:
    clock, site = ManualClock(), site_of_rules()
    async with RobotsChecker(client=site, store=(first := MemoryStore())) as other:
        await other.prefetch([ORIGIN])
    brought = await first.get(ORIGIN)
    assert brought is not None
    store, policy = HangingLease(brought), Policy(store_timeout=0.05)

    checker = RobotsChecker(client=site, store=store, clock=clock, policy=policy)
    async with checker:
        assert not await checker.can_fetch(AGENT, PRIVATE)

    assert checker.stats.store_failures == 1
    assert checker.stats.store_skips > 0


async def test_store_that_takes_long_to_fail_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A locked file, for example: waiting for it costs each question."""
    monkeypatch.setattr(_guarded_store, "_PATIENCE", -1.0)
    store, clock = FailingStore("get"), ManualClock()

    site = site_of_rules()
    async with RobotsChecker(client=site, store=store, clock=clock) as checker:
        assert not await checker.can_fetch(AGENT, PRIVATE)
        clock.advance(29)
        await checker.refresh(PUBLIC)
        while_paused = checker.stats.store_failures
        clock.advance(2)
        await checker.refresh(PUBLIC)

    assert while_paused == 1
    assert checker.stats.store_failures == 2


class FleetStore(MemoryStore):
    """Has leases, which cannot be given back for a while.

    Attributes:
        leases: that are held.
        is_down: whether they cannot.
        releases: the origins of all that was tried.
    """

    def __init__(self) -> None:
        super().__init__()
        self.leases: set[str] = set()
        self.is_down = True
        self.releases: list[str] = []

    async def acquire(self, origin: str, owner: str, seconds: float) -> bool:
        del owner, seconds
        is_free = origin not in self.leases
        self.leases.add(origin)
        return is_free

    async def put_leased(self, entry: Entry, owner: str) -> None:
        del owner
        await self.put(entry)

    async def release(self, origin: str, owner: str) -> None:
        del owner
        self.releases.append(origin)
        if self.is_down:
            raise StoreError("the server has gone")
        self.leases.discard(origin)


FIRST, SECOND, THIRD = (f"https://{number}.example" for number in range(3))


async def test_lease_that_could_not_be_given_back_is_when_the_store_works() -> None:
    store, site = FleetStore(), site_of_rules(FIRST, SECOND, THIRD)

    async with RobotsChecker(client=site, store=store) as checker:
        await checker.prefetch([FIRST])
        await checker.prefetch([SECOND])
        held = set(store.leases)
        store.is_down = False
        await checker.prefetch([THIRD])
        await checker.refresh(THIRD)

    assert held == {FIRST, SECOND}
    assert store.leases == set()


async def test_lease_of_ones_own_is_given_back_before_it_is_acquired_again() -> None:
    store, site = FleetStore(), site_of_rules(FIRST, SECOND)

    async with RobotsChecker(client=site, store=store) as checker:
        await checker.prefetch([SECOND])
        await checker.prefetch([FIRST])
        store.is_down = False
        store.releases.clear()
        await checker.refresh(FIRST)

    assert store.releases == [FIRST, FIRST]
    assert checker.stats.lease_waits == 0
    assert store.leases == {SECOND}


async def test_leases_that_are_remembered_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_guarded_store, "_MOST_LEFTOVERS", 1)
    store, site = FleetStore(), site_of_rules(FIRST, SECOND, THIRD)

    async with RobotsChecker(client=site, store=store) as checker:
        for origin in (FIRST, SECOND, THIRD):
            await checker.prefetch([origin])

        assert len(checker._store._leftovers) == 1


async def test_no_lease_is_given_back_while_the_store_is_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_guarded_store, "_PATIENCE", -1.0)
    store, clock = FleetStore(), ManualClock()

    site = site_of_rules(FIRST, SECOND, THIRD)
    async with RobotsChecker(client=site, store=store, clock=clock) as checker:
        await checker.prefetch([FIRST])
        store.is_down = False
        await checker.prefetch([SECOND])
        meanwhile = list(store.releases)
        clock.advance(31)
        monkeypatch.setattr(_guarded_store, "_PATIENCE", 0.5)
        await checker.prefetch([THIRD])

    assert meanwhile == [FIRST]
    assert store.releases == [FIRST, FIRST, THIRD]


class HangingThenFailing(MemoryStore):
    """Hangs for one origin, and fails for the other a little later."""

    def __init__(self) -> None:
        super().__init__()
        self.has_hung = anyio.Event()

    async def get(self, origin: str) -> Entry | None:
        if origin == FIRST:
            await anyio.sleep_forever()
        await self.has_hung.wait()
        raise StoreError("the server has gone")


async def test_failure_does_not_end_the_pause_of_a_store_that_hangs() -> None:
    store, site = HangingThenFailing(), site_of_rules(FIRST, SECOND, THIRD)
    policy = Policy(store_timeout=0.2)

    async with RobotsChecker(client=site, store=store, policy=policy) as checker:

        async def ask() -> None:
            await checker.prefetch([FIRST])
            store.has_hung.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await let_others_run()
            checker._store._timeout = 60.0  # of who comes next, not of this one
            await checker.prefetch([SECOND])
        failures = checker.stats.store_failures
        await checker.prefetch([THIRD])

    assert checker.stats.store_failures == failures
