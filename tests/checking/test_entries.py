"""Entries in a store that works, fails, hangs or contains damaged bytes."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from robotsgate import MemoryStore, Policy
from robotsgate.caching._codec import VERSION, encode
from robotsgate.caching._entry import Entry, Outage
from robotsgate.checking import _entries
from robotsgate.checking._entries import Entries
from robotsgate.checking._reporting import Reporter
from robotsgate.events import StoreFailed
from robotsgate.testing import ManualClock
from tests.tables import cases

from .builders import (
    DAY,
    HOUR,
    NOW,
    ORIGIN,
    OTHER_ORIGIN,
    FailingStore,
    LeaseStore,
    StoreBehind,
    entry_of,
    let_others_run,
)

if TYPE_CHECKING:
    from robotsgate.events import CheckerEvent
    from robotsgate.stores._base import Change, Store

pytestmark = pytest.mark.anyio

IMPATIENT = Policy(store_timeout=0.02)


class Guarded:
    """Entries in a store, and the events that they report."""

    def __init__(self, store: Store, *, policy: Policy | None = None) -> None:
        self.clock = ManualClock()
        self.events: list[CheckerEvent] = []
        self.reporter = Reporter(self.events.append)
        self.entries = Entries(
            store, self.reporter, policy=policy or Policy(), clock=self.clock
        )

    @property
    def failures(self) -> int:
        return self.reporter.counts["store_failures"]

    @property
    def skips(self) -> int:
        return self.reporter.counts["store_skips"]

    async def write(self, entry: Entry) -> Entry:
        return await self.entries.update(entry.origin, NOW, lambda _: entry)


class StoreOf(StoreBehind):
    """Returns the same bytes for every key, and stores nothing."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data
        self.changed: list[tuple[bytes, float | None] | None] = []

    async def get(self, key: str) -> bytes | None:
        del key
        return self._data

    async def update(self, key: str, change: Change) -> None:
        del key
        # If there are other writers, a store may call this more than once.
        self.changed = [change(self._data), change(self._data)]


class HangingStore(LeaseStore):
    """Never responds, and counts the calls that are waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = 0
        self.most_waiting = 0
        self.is_hanging = True

    async def acquire(self, key: str, owner: str, seconds: float) -> bool:
        is_ours = await super().acquire(key, owner, seconds)
        await self.begin("acquire")
        return is_ours

    async def begin(self, operation: str) -> None:
        del operation
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        try:
            while self.is_hanging:
                await anyio.sleep_forever()
        finally:
            self.waiting -= 1


# --- reading and writing ----------------------------------------------------------


async def test_stored_entry_is_read_by_its_origin_and_can_be_changed() -> None:
    guarded = Guarded(MemoryStore())
    entry, changed = entry_of(b"one"), entry_of(b"other")
    seen: list[Entry | None] = []

    def change(stored: Entry | None) -> Entry:
        seen.append(stored)
        return changed

    assert await guarded.write(entry) == entry
    assert await guarded.entries.get(ORIGIN, NOW) == entry
    assert await guarded.entries.get(OTHER_ORIGIN, NOW) is None
    assert await guarded.entries.update(ORIGIN, NOW, change) == changed
    assert seen == [entry]
    assert await guarded.entries.get(ORIGIN, NOW) == changed


async def test_unchanged_entry_is_not_written_again() -> None:
    store = StoreOf(encode(entry_of()))

    await Guarded(store).write(entry_of())

    assert store.changed == [None, None]


@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
async def test_large_entry_is_decoded_in_a_worker_thread(*, is_large: bool) -> None:
    """Decompressing and checking it used to block the event loop for 4 ms."""
    guarded = Guarded(MemoryStore())
    entry = entry_of(random.Random(0).randbytes(70_000) if is_large else b"")  # noqa: S311 (does not compress)
    await guarded.write(entry)
    read: list[Entry | None] = []

    async def get() -> None:
        read.append(await guarded.entries.get(ORIGIN, NOW))

    # In this block, no worker thread decodes anything.
    async with anyio.create_task_group() as tasks, guarded.entries._one_at_a_time:
        tasks.start_soon(get)
        await let_others_run()
        read_meanwhile = len(read)

    assert read == [entry]
    assert read_meanwhile == (0 if is_large else 1)


@cases("policy kept_until", {
    "a month": (Policy(), NOW + 31 * DAY),
    "forever": (Policy.google_2021(), None),
})  # fmt: skip
async def test_entry_is_stored_for_as_long_as_it_can_be_used(
    policy: Policy, kept_until: float | None
) -> None:
    store = StoreOf(b"")

    await Guarded(store, policy=policy).write(entry_of())

    assert store.changed == [(encode(entry_of()), kept_until)] * 2


async def test_outage_dated_far_ahead_is_dropped_but_not_its_answer() -> None:
    guarded = Guarded(MemoryStore())
    ahead = Outage(
        since=NOW + HOUR, last_attempt_at=NOW + HOUR, retry_at=NOW + DAY, attempts=1
    )
    good = entry_of()
    await guarded.write(Entry(origin=ORIGIN, answer=good.answer, outage=ahead))

    assert await guarded.entries.get(ORIGIN, NOW) == good


# --- damaged and foreign bytes --------------------------------------------------


@cases("data", {
    "no bytes": (b"",),
    "garbage": (b"\x02rubbish",),
    "not bytes": ("a text",),
    "an earlier version": (b"\x01" + encode(entry_of())[1:],),
    "another origin": (encode(entry_of(origin=OTHER_ORIGIN)),),
})  # fmt: skip
async def test_damaged_entry_is_a_miss_with_a_warning_and_is_overwritten(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """Only reading reports it, as a store may call changes in another thread."""
    store = StoreOf(data)
    guarded = Guarded(store)

    read = await guarded.entries.get(ORIGIN, NOW)
    await guarded.write(entry_of())

    assert read is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    (event,) = guarded.events
    assert isinstance(event, StoreFailed)
    assert (event.operation, event.origin) == ("get", ORIGIN)
    assert store.changed[-1] == (encode(entry_of()), NOW + 31 * DAY)


async def test_later_version_is_a_miss_reported_once_and_never_overwritten(
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = bytes([VERSION + 1]) + encode(entry_of())[1:]
    store = StoreOf(data)
    guarded = Guarded(store)
    entry = entry_of(b"new")

    read = [await guarded.entries.get(ORIGIN, NOW) for _ in range(2)]
    written = await guarded.write(entry)

    assert (read, written) == ([None, None], entry)
    assert store.changed == [None, None]
    assert guarded.failures == 0
    (record,) = caplog.records
    assert record.getMessage().endswith("such entries are fetched again")


# --- a store that fails ---------------------------------------------------------


@pytest.mark.parametrize("operation", ["get", "update", "delete"])
async def test_store_failure_is_reported_and_not_raised(operation: str) -> None:
    guarded = Guarded(FailingStore(operation))
    entry = entry_of()

    written = await guarded.write(entry)
    read = await guarded.entries.get(ORIGIN, NOW)
    await guarded.entries.delete(ORIGIN)

    assert written == entry
    assert read == (entry if operation == "delete" else None)
    (event,) = guarded.events
    assert isinstance(event, StoreFailed)
    assert (event.operation, event.origin) == (operation, ORIGIN)
    assert isinstance(event.error, OSError)
    assert guarded.failures == 1


async def test_first_failure_in_a_row_is_a_warning_and_recovery_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = FailingStore("get")
    guarded = Guarded(store)

    with caplog.at_level(logging.DEBUG, "robotsgate.checker"):
        await guarded.entries.get(ORIGIN, NOW)
        await guarded.write(entry_of())  # works, but does not end the row
        await guarded.entries.get(ORIGIN, NOW)
        store.failing = ()
        await guarded.entries.get(ORIGIN, NOW)
        await guarded.entries.get(ORIGIN, NOW)

    assert [(one.levelname, one.getMessage()[:19]) for one in caplog.records] == [
        ("WARNING", "store failed to get"),
        ("DEBUG", "store failed to get"),
        ("INFO", "store works again: "),
    ]


async def test_store_that_hangs_times_out_and_is_not_used_for_30_seconds() -> None:
    store = HangingStore()
    guarded = Guarded(store, policy=IMPATIENT)

    answer = await guarded.entries.get(ORIGIN, NOW)
    store.is_hanging = False
    guarded.clock.advance(29)
    written = await guarded.write(entry_of())
    while_unused = (guarded.failures, guarded.skips)
    guarded.clock.advance(1)
    await guarded.write(entry_of())

    assert (answer, written) == (None, entry_of())
    assert while_unused == (1, 1)
    assert (guarded.failures, guarded.skips) == (1, 1)
    assert await guarded.entries.get(ORIGIN, NOW) == entry_of()
    (event,) = guarded.events
    assert isinstance(event, StoreFailed)
    assert str(event.error) == "no response within 0.02 s"


@cases("patience failures skips", {
    "quickly: it is used every time": (_entries._PATIENCE, 3, 0),
    # Otherwise, every lookup would wait, for example for a locked file.
    "slowly: it is not used for a while": (-1.0, 1, 2),
})  # fmt: skip
async def test_how_fast_a_store_fails_decides_whether_it_is_used_again(
    patience: float, failures: int, skips: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_entries, "_PATIENCE", patience)
    guarded = Guarded(FailingStore("get"))

    for _ in range(3):
        await guarded.entries.get(ORIGIN, NOW)

    assert (guarded.failures, guarded.skips) == (failures, skips)


async def test_number_of_concurrent_store_operations_is_limited() -> None:
    """More of them would queue inside the store and make it seem slow."""
    store = HangingStore()
    guarded = Guarded(store)

    async with anyio.create_task_group() as tasks:
        for number in range(1_000):
            tasks.start_soon(guarded.entries.get, f"https://{number}.example", NOW)
        await let_others_run()
        tasks.cancel_scope.cancel()

    assert store.most_waiting == 64
    assert (store.waiting, guarded.failures) == (0, 0)


# --- leases ---------------------------------------------------------------------


async def test_store_without_leases_has_none() -> None:
    assert not Guarded(MemoryStore()).entries.has_lease


async def test_lease_belongs_to_one_process_per_terms_at_a_time() -> None:
    store = LeaseStore()
    one, other = Guarded(store).entries, Guarded(store).entries
    strict = Guarded(store, policy=Policy.strict()).entries

    acquired = [await entries.acquire(ORIGIN) for entries in (one, other, strict)]
    await other.release(ORIGIN)
    still = await other.acquire(ORIGIN)
    await one.release(ORIGIN)
    after = await other.acquire(ORIGIN)

    assert one.has_lease
    assert acquired == [True, False, True]
    assert (still, after) == (False, True)


async def test_lease_lasts_for_a_fetch_and_the_store_operations_around_it() -> None:
    seconds: list[float] = []

    class Lease(LeaseStore):
        async def acquire(self, key: str, owner: str, seconds_: float) -> bool:
            seconds.append(seconds_)
            return await super().acquire(key, owner, seconds_)

    policy = Policy(fetch_deadline=10.0, store_timeout=1.0)
    await Guarded(Lease(), policy=policy).entries.acquire(ORIGIN)

    assert seconds == [13.0]


async def test_lease_is_not_needed_if_the_store_hangs() -> None:
    guarded = Guarded(HangingStore(), policy=IMPATIENT)

    assert await guarded.entries.acquire(ORIGIN) is True
    assert guarded.failures == 1


async def test_cancelled_caller_releases_a_lease_that_it_may_have_acquired() -> None:
    store = HangingStore()
    guarded = Guarded(store)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(guarded.entries.acquire, ORIGIN)
        await let_others_run()
        owners_before = dict(store.owners)
        tasks.cancel_scope.cancel()

    assert list(owners_before) == [ORIGIN]
    assert store.owners == {}


async def test_memory_store_is_read_without_suspending() -> None:
    guarded = Guarded(MemoryStore())
    coroutine: Any = guarded.entries.get(ORIGIN, NOW)

    with pytest.raises(StopIteration) as end:
        coroutine.send(None)

    assert end.value.value is None
