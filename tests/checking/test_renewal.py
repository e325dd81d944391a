"""Renewing an origin: from the store, from its server, and in a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from robotsgate import (
    AccessResult,
    MemoryStore,
    Origin,
    Policy,
    RobotsChecker,
    StoreError,
)
from robotsgate.caching._codec import decode, encode
from robotsgate.testing import FakeSite, ManualClock
from tests.stores.contracts import to

from .builders import (
    AGENT,
    DAY,
    MINUTE,
    NOW,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    RULES,
    FailingStore,
    GatedSite,
    GatedStore,
    LeaseStore,
    StoreBehind,
    TickingClock,
    add_answer,
    checker_of,
    concurrently,
    entry_of,
    let_others_run,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from robotsgate.caching._entry import Entry

pytestmark = pytest.mark.anyio


async def stored(store: MemoryStore | StoreBehind) -> Entry:
    """The entry for `ORIGIN` in `store`."""
    data = await (store.behind if isinstance(store, StoreBehind) else store).get(ORIGIN)
    assert data is not None
    return decode(data, origin=ORIGIN, terms="", max_bytes=512_000)


async def stored_by_another(
    store: MemoryStore | StoreBehind, clock: ManualClock, site: FakeSite
) -> Entry:
    """The entry that another process puts into `store`."""
    behind = store.behind if isinstance(store, StoreBehind) else store
    await checker_of(site, store=behind, clock=clock).refresh(ORIGIN)
    return await stored(store)


# --- the store first ------------------------------------------------------------


async def test_entry_from_another_checker_saves_a_fetch() -> None:
    clock, store, site = ManualClock(), MemoryStore(), FakeSite()
    await stored_by_another(store, clock, site_of())
    checker = checker_of(site, store=store, clock=clock)

    verdict = await checker.check(AGENT, PRIVATE)

    assert (verdict.allowed, verdict.fetched_at) == (False, clock.now())
    assert site.requests == []
    assert (checker.stats.fetches, checker.stats.store_hits) == (0, 1)


async def test_entry_renewed_by_another_process_replaces_the_one_in_memory() -> None:
    clock, store, site = ManualClock(), MemoryStore(), site_of()
    checker = checker_of(site, store=store, clock=clock)
    await checker.prefetch([ORIGIN])
    clock.advance(DAY)
    await stored_by_another(store, clock, site_of("User-agent: *\nDisallow: /public"))

    allowed = await checker.can_fetch(AGENT, PUBLIC)

    assert allowed is False
    assert site.requests == [ROBOTS_TXT]


async def test_refresh_fetches_even_during_a_store_lookup() -> None:
    """A store lookup that returns a fresh entry is not a fetch to join."""
    clock, store, site = ManualClock(), GatedStore("get"), site_of()
    await stored_by_another(store, clock, site_of())
    checker = checker_of(site, store=store, clock=clock)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, AGENT, PUBLIC)
        await let_others_run()
        tasks.start_soon(checker.refresh, PUBLIC)
        await let_others_run()
        store.gate.set()

    assert site.requests == [ROBOTS_TXT]


# --- many origins in one lookup -----------------------------------------------------

ORIGINS = [f"https://{number}.example" for number in range(250)]


class BatchingStore(StoreBehind):
    """Has an entry for each of `ORIGINS`; looks up many once its gate is open.

    Attributes:
        lookups: the number of keys in each lookup.
    """

    def __init__(self, *, answered_at: float = NOW) -> None:
        super().__init__()
        self.answered_at = answered_at
        self.lookups: list[int] = []
        self.gate = anyio.Event()
        self.gate.set()

    async def fill(self) -> None:
        for origin in ORIGINS:
            entry = entry_of(origin=origin, answered_at=self.answered_at)
            await self.update(origin, to(encode(entry)))

    async def get(self, key: str) -> bytes | None:
        self.lookups.append(1)
        return await super().get(key)

    async def get_many(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        self.lookups.append(len(keys))
        await self.gate.wait()
        values = {key: await self.behind.get(key) for key in keys}
        return {key: value for key, value in values.items() if value is not None}


class FailingBatchStore(BatchingStore):
    async def get_many(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        raise StoreError(f"too many keys: {len(keys)}")


class DamagedBatchStore(BatchingStore):
    async def get_many(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return dict.fromkeys(keys, b"damaged")


class LargeBatchStore(BatchingStore):
    async def get_many(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        return dict.fromkeys(keys, bytes(70_000))


def urls_of(origins: Iterable[str]) -> list[str]:
    return [f"{origin}{path}" for path in ("/private", "/x") for origin in origins]


async def test_many_origins_are_looked_up_together() -> None:
    store, site = BatchingStore(), FakeSite()
    await store.fill()
    checker = checker_of(site, store=store)

    answers = await checker.can_fetch_many(AGENT, urls_of(ORIGINS))

    assert answers == [False] * 250 + [True] * 250
    assert store.lookups == [100, 100, 50]
    assert (checker.stats.store_hits, checker.stats.store_misses) == (250, 0)
    assert site.requests == []


@pytest.mark.parametrize(
    "kind", [FailingBatchStore, DamagedBatchStore, LargeBatchStore]
)
async def test_origins_are_looked_up_one_by_one_if_the_batch_is_unusable(
    kind: type[BatchingStore],
) -> None:
    store, site = kind(), FakeSite()
    await store.fill()

    answers = await checker_of(site, store=store).can_fetch_many(
        AGENT, urls_of(ORIGINS[:2])
    )

    assert answers == [False, False, True, True]
    assert store.lookups == [1, 1]
    assert site.requests == []


async def test_origins_that_are_missing_or_stale_in_a_batch_are_fetched() -> None:
    store, site = BatchingStore(answered_at=NOW - DAY), site_of()
    await store.fill()
    site.serve(ORIGINS[0], "User-agent: *\nDisallow: /\n")

    answers = await checker_of(site, store=store).can_fetch_many(
        AGENT, urls_of([ORIGIN, ORIGINS[0]])
    )

    assert answers == [False, False, True, False]
    assert sorted(site.requests) == [f"{ORIGINS[0]}/robots.txt", ROBOTS_TXT]


async def test_concurrent_calls_look_up_each_origin_once() -> None:
    store = BatchingStore()
    await store.fill()
    checker = checker_of(FakeSite(), store=store)

    answers = await concurrently(
        2, lambda: checker.can_fetch_many(AGENT, urls_of(ORIGINS[:100]))
    )

    assert answers[0] == answers[1]
    assert store.lookups == [100]


async def test_origin_refreshed_during_a_batch_lookup_is_not_taken_from_it() -> None:
    store, site = BatchingStore(), FakeSite()
    await store.fill()
    site.serve(ORIGINS[0], "User-agent: *\nDisallow: /\n")
    store.gate = anyio.Event()
    checker = checker_of(site, store=store)
    answers: list[bool] = []

    async def look_up() -> None:
        answers.extend(await checker.can_fetch_many(AGENT, [f"{ORIGINS[0]}/x"]))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(look_up)
        await let_others_run()
        await checker.refresh(ORIGINS[0])
        store.gate.set()

    assert answers == [False]
    assert checker.stats.store_hits == 0


async def test_other_tasks_run_while_loaded_origins_are_admitted() -> None:
    """Admitting 2,000 origins used to block the event loop for 8 to 15 ms."""
    store = BatchingStore()
    await store.fill()
    checker = checker_of(FakeSite(), store=store, clock=TickingClock())
    sizes = {0}

    async def watch() -> None:
        while max(sizes) < len(ORIGINS):
            sizes.add(len(checker._live.by_origin))
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await checker._renewals.load(map(Origin.from_url, ORIGINS))

    assert len(sizes) > 10


async def test_origin_forgotten_while_others_are_admitted_is_not_admitted() -> None:
    store = BatchingStore()
    await store.fill()
    checker = checker_of(FakeSite(), store=store, clock=TickingClock())
    by_origin = checker._live.by_origin

    async def forget_last() -> None:
        while not by_origin:
            await anyio.lowlevel.checkpoint()
        await checker.forget(ORIGINS[-1])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(forget_last)
        await checker._renewals.load(map(Origin.from_url, ORIGINS))

    assert ORIGINS[0] in by_origin
    assert ORIGINS[-1] not in by_origin


# --- entries in memory, in the store, and from other processes ----------------------


class UnreliableStore(StoreBehind):
    """Fails at the first read."""

    has_failed = False

    async def begin(self, operation: str) -> None:
        if operation == "get" and not self.has_failed:
            self.has_failed = True
            raise StoreError("the network is down")


async def test_copy_in_a_store_that_cannot_be_written_is_used_in_an_outage() -> None:
    """As with a full disk. The copy read before the fetch used to be lost after it."""
    clock, store = ManualClock(), FailingStore("update")
    await stored_by_another(store, clock, site_of())
    clock.advance(DAY)
    checker = checker_of(site_of(status=503), store=store, clock=clock)

    verdicts = [await checker.check(AGENT, url) for url in (PRIVATE, PUBLIC)]

    assert [verdict.allowed for verdict in verdicts] == [False, True]
    assert all(verdict.is_stale for verdict in verdicts)


async def test_later_rules_from_another_process_apply() -> None:
    """Not those in the body that this process has just fetched."""
    clock, site = ManualClock(), GatedSite()
    site.serve(ORIGIN, RULES)
    store = GatedStore("update")
    checker = checker_of(site, store=store, clock=clock)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.refresh, PUBLIC)
        await let_others_run()
        site.gate.set()
        await let_others_run()
        clock.advance(MINUTE)
        theirs = entry_of(b"User-agent: *\nDisallow: /public", answered_at=clock.now())
        await store.behind.update(ORIGIN, lambda _: (encode(theirs), None))
        store.gate.set()

    assert [checker.peek(AGENT, url) for url in (PRIVATE, PUBLIC)] == [True, False]
    assert await stored(store) == theirs


@pytest.mark.parametrize("failures", [1, 2])
@pytest.mark.parametrize(
    ("body", "status"),
    [("User-agent: *\nDisallow: /public", 200), ("", 404)],
    ids=["rules", "404"],
)
async def test_superseded_copy_does_not_come_back_from_the_store(
    body: str, status: int, failures: int
) -> None:
    """The store could not be written when the new answer came, nor since.

    The 404 used to be dropped as soon as it was stale, and the copy allowed /public.
    """
    clock, store, site = ManualClock(), FailingStore(), site_of()
    checker = checker_of(site, store=store, clock=clock)
    await checker.prefetch([ORIGIN])
    store.failing = ("update",)
    clock.advance(DAY)
    site.serve(ORIGIN, body, status=status)
    await checker.prefetch([ORIGIN])
    site.serve(ORIGIN, status=503)

    answers = []
    for _ in range(failures):
        clock.advance(DAY)
        answers.append(await checker.can_fetch(AGENT, PUBLIC))

    assert answers == [False] * failures


async def test_not_found_page_does_not_end_a_copy_that_is_only_in_the_store() -> None:
    """Whether a 5xx page means "not found" depends on the store's entry as well."""
    clock, store = ManualClock(), UnreliableStore()
    await stored_by_another(store, clock, site_of())
    clock.advance(DAY)
    site = site_of("<title>Not found</title>", status=500)

    allowed = await checker_of(site, store=store, clock=clock).can_fetch(AGENT, PRIVATE)

    assert allowed is False
    assert (await stored(store)).access is AccessResult.UNREACHABLE


# --- one process in a fleet fetches ----------------------------------------------


def fleet_checker(
    site: FakeSite, store: LeaseStore, clock: ManualClock, *, fetches: int = 100
) -> RobotsChecker:
    policy = Policy(fetch_deadline=10.0, store_timeout=1.0)
    return checker_of(
        site, store=store, clock=clock, policy=policy, max_concurrent_fetches=fetches
    )


async def test_two_processes_make_one_fetch_and_the_second_polls_for_it() -> None:
    clock, store, site = ManualClock(), LeaseStore(), GatedSite()
    site.serve(ORIGIN, RULES)
    one, other = (fleet_checker(site, store, clock) for _ in range(2))
    answers: list[bool] = []

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add_answer, answers, one, PRIVATE)
        await let_others_run()
        tasks.start_soon(add_answer, answers, other, PRIVATE)
        await clock.pass_time(5)
        leased = list(store.owners)
        site.gate.set()
        await let_others_run()
        before_the_next_poll = len(answers)
        await clock.pass_time(1)

    assert answers == [False, False]
    assert (leased, before_the_next_poll) == ([ORIGIN], 1)
    assert site.requests == [ROBOTS_TXT]
    assert store.owners == {}
    assert (one.stats.lease_waits, one.stats.fetches) == (0, 1)
    assert (other.stats.fetches, other.stats.store_misses) == (0, 1)
    # It waits 0.05 s, then half as long again each time, up to a second.
    assert other.stats.lease_waits == 11


async def test_checker_waits_twice_the_duration_of_a_lease_that_does_not_end() -> None:
    clock, store, site = ManualClock(), LeaseStore(), site_of()
    store.owners[ORIGIN] = "nobody"
    checker = fleet_checker(site, store, clock)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, AGENT, PRIVATE)
        await clock.pass_time(2 * 13)
        requests_before = len(site.requests)
        await clock.pass_time(1)

    assert (requests_before, site.requests) == (0, [ROBOTS_TXT])
    assert store.owners == {ORIGIN: "nobody"}
    assert checker.peek(AGENT, PRIVATE) is False


async def test_entry_stored_just_before_the_lease_is_acquired_is_used() -> None:
    clock, site = ManualClock(), FakeSite()

    class Busy(LeaseStore):
        async def acquire(self, key: str, owner: str, seconds: float) -> bool:
            await self.behind.update(key, lambda _: (encode(entry_of()), None))
            return await super().acquire(key, owner, seconds)

    store = Busy()
    allowed = await fleet_checker(site, store, clock).can_fetch(AGENT, PRIVATE)

    assert (allowed, site.requests, store.owners) == (False, [], {})


async def test_entry_from_another_process_is_used_at_the_fetch_limit() -> None:
    clock, store, site = ManualClock(), LeaseStore(), GatedSite()
    store.owners[ORIGIN] = "another"
    checker = fleet_checker(site, store, clock, fetches=1)
    answers: list[bool] = []

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add_answer, answers, checker, PRIVATE)
        await clock.pass_time(1)
        tasks.start_soon(checker.can_fetch, AGENT, OTHER_ORIGIN)
        await let_others_run()
        await stored_by_another(store, clock, site_of())
        await clock.pass_time(1)
        under_way, requests = site.under_way, list(site.requests)
        site.gate.set()

    assert (answers, under_way, requests) == ([False], 1, [])


async def test_forgetting_while_another_process_fetches_needs_no_fetch_of_its_own() -> (
    None
):
    clock, store, site = ManualClock(), LeaseStore(), site_of()
    store.owners[ORIGIN] = "another"
    checker = fleet_checker(site, store, clock)
    answers: list[bool] = []

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add_answer, answers, checker, PRIVATE)
        await clock.pass_time(1)
        await checker.forget(ORIGIN)
        await stored_by_another(store, clock, site_of())
        await clock.pass_time(1)

    assert (answers, site.requests) == ([False], [])


async def test_outage_dated_ahead_in_memory_does_not_hide_that_in_the_store() -> None:
    """After our clock was set back, another process has seen the server fail."""
    store, site, clock = MemoryStore(), FakeSite(), ManualClock()
    site.serve(ORIGIN, status=500)
    checker, other = (checker_of(site, store=store, clock=clock) for _ in range(2))

    clock.advance(DAY)
    await checker.can_fetch(AGENT, PUBLIC)
    clock.set(clock.now() - DAY)
    await store.delete(ORIGIN)
    await other.can_fetch(AGENT, PUBLIC)
    site.requests.clear()

    assert not await checker.can_fetch(AGENT, PUBLIC)
    assert site.requests == []


async def test_lease_is_released_when_the_checker_is_closed() -> None:
    store, site = LeaseStore(), GatedSite()
    checker = checker_of(site, store=store)

    with anyio.CancelScope(deadline=anyio.current_time() - 1):
        await checker.can_fetch(AGENT, PUBLIC)
    await let_others_run()
    leased = list(store.owners)
    await checker.aclose()

    assert (leased, store.owners) == ([ORIGIN], {})


async def test_end_of_a_fetch_that_never_starts_is_signalled() -> None:
    checker = checker_of(site_of())
    origin = Origin.from_url(ORIGIN)

    flight = checker._renewals.begin(origin)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(flight.next_interim)
        await checker.aclose()

    assert await flight.next_interim() is None
