"""How an origin is renewed where other processes share the store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from robotsgate import AccessResult, MemoryStore, Policy, RobotsChecker, StoreError
from robotsgate.checking import _renewal
from robotsgate.testing import FakeSite, ManualClock
from tests.checking.builders import (
    AGENT,
    DAY,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    RULES,
    FailingStore,
    GatedSite,
    checker_of,
    let_others_run,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate import Entry

pytestmark = pytest.mark.anyio

# Far more than anything here takes.
PATIENCE_SECONDS = 10.0


class ForgetfulReader(MemoryStore):
    """Cannot be read at some of the looks, of which the first is number 0."""

    def __init__(self, fails_at: Callable[[int], bool]) -> None:
        super().__init__()
        self._fails_at = fails_at
        self._looks = -1

    async def get(self, origin: str) -> Entry | None:
        self._looks += 1
        if self._fails_at(self._looks):
            raise StoreError("the network is down")
        return await super().get(origin)


class FleetStore(MemoryStore):
    """Has a lease for each origin, and counts the looks."""

    def __init__(self) -> None:
        super().__init__()
        self.owners: dict[str, str] = {}
        self.looks = 0

    async def get(self, origin: str) -> Entry | None:
        self.looks += 1
        return await super().get(origin)

    async def acquire(self, origin: str, owner: str, seconds: float) -> bool:
        del seconds
        return self.owners.setdefault(origin, owner) is owner

    async def put_leased(self, entry: Entry, owner: str) -> None:
        del owner
        await self.put(entry)

    async def release(self, origin: str, owner: str) -> None:
        if self.owners.get(origin) == owner:
            del self.owners[origin]


class HurriedClock(ManualClock):
    """Waits in no time, and keeps for how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    async def wait(self, seconds: float, *, event: anyio.Event | None = None) -> bool:
        self.waits.append(seconds)
        return await super().wait(0, event=event)


async def stored_by(store: MemoryStore, clock: ManualClock, site: FakeSite) -> Entry:
    """What a process has left in `store`."""
    await checker_of(site, store=store, clock=clock).prefetch([ORIGIN])
    entry = await MemoryStore.get(store, ORIGIN)
    assert entry is not None
    return entry


class TestCopyOfOthers:
    async def test_copy_that_could_not_be_read_before_a_failure_answers_after_it(
        self,
    ) -> None:
        clock, store = ManualClock(), ForgetfulReader(lambda look: look == 1)
        entry = await stored_by(store, clock, site_of())
        clock.advance(DAY)
        checker = checker_of(site_of(status=503), store=store, clock=clock)

        answers = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])
        kept = await MemoryStore.get(store, ORIGIN)

        assert answers == [False, True]
        assert kept is not None
        assert (kept.access, kept.copy) == (AccessResult.UNREACHABLE, entry.copy)
        assert kept.unreachable_since == clock.now()

    async def test_failure_replaces_nothing_that_could_not_be_read(self) -> None:
        clock, store = ManualClock(), ForgetfulReader(lambda look: look > 0)
        entry = await stored_by(store, clock, site_of())
        clock.advance(DAY)
        checker = checker_of(site_of(status=503), store=store, clock=clock)

        answers = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])
        kept = await MemoryStore.get(store, ORIGIN)

        assert answers == [False, False]
        assert kept is entry

    async def test_answer_replaces_what_could_not_be_read(self) -> None:
        clock, store = ManualClock(), ForgetfulReader(lambda look: look > 0)
        entry = await stored_by(store, clock, site_of())
        clock.advance(DAY)

        await checker_of(site_of(), store=store, clock=clock).prefetch([ORIGIN])
        kept = await MemoryStore.get(store, ORIGIN)

        assert kept is not None
        assert kept is not entry
        assert kept.checked_at == clock.now()

    @pytest.mark.parametrize("status", [200, 404])
    async def test_answer_that_another_got_meanwhile_is_better_than_a_failure(
        self, status: int
    ) -> None:
        clock, store, site = ManualClock(), MemoryStore(), GatedSite()
        site.serve(ORIGIN, status=503)
        answers = []

        async with checker_of(site, store=store, clock=clock) as checker:

            async def ask() -> None:
                answers.append(await checker.can_fetch(AGENT, PUBLIC))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                await let_others_run()
                clock.advance(1)
                entry = await stored_by(store, clock, site_of(status=status))
                clock.advance(1)
                site.gate.set()
            after = checker.peek(AGENT, PUBLIC)
        kept = await store.get(ORIGIN)

        assert answers == [True]
        assert after is True
        assert kept is entry

    async def test_later_failure_of_another_leaves_the_copy_in_memory_in_force(
        self,
    ) -> None:
        """One that did not know of it, and could not read it either."""
        clock, store, site = ManualClock(), MemoryStore(), site_of()
        checker = checker_of(site, store=store, clock=clock)
        await checker.prefetch([ORIGIN])
        await store.delete(ORIGIN)
        clock.advance(DAY)
        await stored_by(store, clock, site_of(status=503))
        site.serve(ORIGIN, status=503)

        verdicts = [await checker.check(AGENT, url) for url in (PRIVATE, PUBLIC)]

        assert [verdict.allowed for verdict in verdicts] == [False, True]
        assert all(verdict.is_stale for verdict in verdicts)

    @pytest.mark.parametrize("failures", [1, 2])
    async def test_copy_that_an_answer_has_ended_does_not_come_back_from_the_store(
        self, failures: int
    ) -> None:
        """Which could not be written when that answer came, nor since."""
        clock, store, site = ManualClock(), FailingStore(), site_of()
        checker = checker_of(site, store=store, clock=clock)
        await checker.prefetch([ORIGIN])
        store._failing = ("put",)
        clock.advance(DAY)
        site.serve(ORIGIN, status=404)
        await checker.prefetch([ORIGIN])
        site.serve(ORIGIN, status=503)

        answers = []
        for _ in range(failures):
            clock.advance(DAY)
            answers.append(await checker.can_fetch(AGENT, PUBLIC))

        assert answers == [False] * failures


class TestOtherTerms:
    @pytest.mark.parametrize(
        ("theirs", "ours"),
        [
            (Policy(max_redirects=0), Policy()),
            (Policy(), Policy(max_redirects=0)),
            (Policy(max_body_bytes=100), Policy()),
            (Policy(), Policy(max_body_bytes=100)),
            (Policy(allowed_networks=["10.0.0.0/8"]), Policy()),
        ],
    )
    async def test_what_was_got_under_them_is_not_used(
        self, theirs: Policy, ours: Policy
    ) -> None:
        clock, store, site = ManualClock(), MemoryStore(), site_of()
        other = checker_of(site_of(), store=store, clock=clock, policy=theirs)
        await other.prefetch([ORIGIN])

        checker = checker_of(site, store=store, clock=clock, policy=ours)
        await checker.prefetch([ORIGIN])

        assert site.requests == [ROBOTS_TXT]

    async def test_failure_does_not_replace_what_was_got_under_them(self) -> None:
        clock, store = ManualClock(), MemoryStore()
        entry = await stored_by(store, clock, site_of())
        policy = Policy(max_redirects=6)

        checker = checker_of(
            site_of(status=503), store=store, clock=clock, policy=policy
        )
        answers = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])
        kept = await store.get(ORIGIN)

        assert answers == [False, False]
        assert kept is entry


class TestTurns:
    async def test_lease_that_does_not_end_is_waited_for_twice_its_time(
        self,
    ) -> None:
        store, site, clock = FleetStore(), site_of(), HurriedClock()
        store.owners[ORIGIN] = "nobody"
        policy = Policy(fetch_deadline=10.0, store_timeout=1.0)

        async with checker_of(site, store=store, policy=policy, clock=clock) as checker:
            answer = await checker.can_fetch(AGENT, PRIVATE)

        assert not answer
        assert 2 * (10 + 3) <= sum(clock.waits) < 2 * (10 + 3) + 1
        assert checker.stats.lease_waits == len(clock.waits)
        assert site.requests == [ROBOTS_TXT]
        assert store.owners == {ORIGIN: "nobody"}

    async def test_waiting_counts_as_one_look_up(self) -> None:
        store, site, clock = FleetStore(), site_of(), HurriedClock()
        store.owners[ORIGIN] = "nobody"

        async with checker_of(site, store=store, clock=clock) as checker:
            await checker.can_fetch(AGENT, PRIVATE)

        assert store.looks > len(clock.waits) > 10
        assert checker.stats.store_misses == 1
        assert checker.stats.store_hits == 0

    async def test_what_another_brings_is_used_while_no_place_is_free(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_renewal, "_LONGEST_PAUSE_SECONDS", 0.01)
        store, site, clock = FleetStore(), GatedSite(), ManualClock()
        site.serve(OTHER_ORIGIN, RULES)
        answers = []

        checker = RobotsChecker(
            client=site, store=store, clock=clock, max_concurrent_fetches=1
        )
        async with checker, anyio.create_task_group() as tasks:

            async def ask() -> None:
                answers.append(await checker.can_fetch(AGENT, PRIVATE))

            tasks.start_soon(checker.can_fetch, AGENT, OTHER_ORIGIN)
            await let_others_run()
            tasks.start_soon(ask)
            await let_others_run()
            await stored_by(store, clock, site_of())
            with anyio.fail_after(PATIENCE_SECONDS):
                while not answers:
                    await anyio.lowlevel.checkpoint()
            under_way = site.under_way
            site.gate.set()

        assert answers == [False]
        assert under_way == 1
        assert [str(url) for url in site.requests] == [f"{OTHER_ORIGIN}/robots.txt"]

    async def test_many_that_wait_look_less_often_each(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(_renewal, "_LOOKS_PER_SECOND", 5)
        store, site, clock = FleetStore(), FakeSite(), HurriedClock()
        origins = [f"https://{number}.example" for number in range(20)]
        for origin in origins:
            site.serve(origin, RULES)
            store.owners[origin] = "nobody"

        async with checker_of(site, store=store, clock=clock) as checker:
            await checker.can_fetch_many(AGENT, origins)

        assert max(clock.waits) == 4.0
        assert min(clock.waits) == 0.05
