"""Entries in a store that works, fails, hangs or contains damaged bytes."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from robotsgate import AfterUnreachableLimit, MemoryStore, Policy
from robotsgate.caching._codec import VERSION, encode
from robotsgate.caching._entry import Entry, Outage
from robotsgate.checking import _entries
from robotsgate.checking._entries import Entries
from robotsgate.checking._reporting import Reporter
from robotsgate.events import StoreFailed
from robotsgate.testing import ManualClock

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


class RecordingStore(StoreBehind):
    """Records until when it is to keep each entry."""

    def __init__(self) -> None:
        super().__init__()
        self.kept_until: list[float | None] = []

    async def update(self, key: str, change: Change) -> None:
        def recorded(data: bytes | None) -> tuple[bytes, float | None] | None:
            new = change(data)
            if new is not None:
                self.kept_until.append(new[1])
            return new

        await super().update(key, recorded)


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

    async def get(self, key: str) -> bytes | None:
        await self._hang()
        return await super().get(key)

    async def update(self, key: str, change: Change) -> None:
        await self._hang()
        await super().update(key, change)

    async def acquire(self, key: str, owner: str, seconds: float) -> bool:
        is_ours = await super().acquire(key, owner, seconds)
        await self._hang()
        return is_ours

    async def _hang(self) -> None:
        self.waiting += 1
        self.most_waiting = max(self.most_waiting, self.waiting)
        try:
            while self.is_hanging:
                await anyio.sleep_forever()
        finally:
            self.waiting -= 1


# --- reading and writing ----------------------------------------------------------


async def test_stored_entry_is_read_by_its_origin() -> None:
    guarded = Guarded(MemoryStore())
    entry = entry_of()

    written = await guarded.write(entry)

    assert written == entry
    assert await guarded.entries.get(ORIGIN, NOW) == entry
    assert await guarded.entries.get(OTHER_ORIGIN, NOW) is None


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


async def test_change_gets_the_stored_entry() -> None:
    guarded = Guarded(MemoryStore())
    await guarded.write(entry_of(b"one"))
    seen: list[Entry | None] = []

    def change(stored: Entry | None) -> Entry:
        seen.append(stored)
        return entry_of(b"other")

    await guarded.entries.update(ORIGIN, NOW, change)

    assert seen == [entry_of(b"one")]
    assert await guarded.entries.get(ORIGIN, NOW) == entry_of(b"other")


async def test_unchanged_entry_is_not_written_again() -> None:
    store = RecordingStore()
    guarded = Guarded(store)

    await guarded.write(entry_of())
    await guarded.write(entry_of())

    assert store.kept_until == [NOW + 31 * DAY]


async def test_copy_that_may_be_used_forever_is_kept_forever() -> None:
    store = RecordingStore()
    policy = Policy(after_unreachable_limit=AfterUnreachableLimit.LAST_COPY)
    guarded = Guarded(store, policy=policy)

    await guarded.write(entry_of())

    assert store.kept_until == [None]


async def test_outage_dated_far_ahead_is_dropped_but_not_its_answer() -> None:
    guarded = Guarded(MemoryStore())
    ahead = Outage(
        since=NOW + HOUR, last_attempt_at=NOW + HOUR, retry_at=NOW + DAY, attempts=1
    )
    good = entry_of()
    await guarded.write(Entry(origin=ORIGIN, answer=good.answer, outage=ahead))

    assert await guarded.entries.get(ORIGIN, NOW) == good


# --- damaged and foreign bytes --------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="no bytes"),
        pytest.param(b"\x02rubbish", id="garbage"),
        pytest.param(b"User-agent: *", id="garbage with a large first byte"),
        pytest.param("a text", id="not bytes"),
        pytest.param(encode(entry_of())[:-1], id="a missing byte"),
        pytest.param(b"\x01" + encode(entry_of())[1:], id="an earlier version"),
        pytest.param(encode(entry_of(origin=OTHER_ORIGIN)), id="another origin"),
    ],
)
async def test_damaged_entry_is_a_miss_with_a_warning_and_is_overwritten(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store = StoreOf(data)
    guarded = Guarded(store)

    read = await guarded.entries.get(ORIGIN, NOW)
    await guarded.write(entry_of())

    assert read is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert store.changed[-1] == (encode(entry_of()), NOW + 31 * DAY)


async def test_damage_is_reported_once_even_if_a_change_is_retried() -> None:
    """A change must be pure, because a store may call it in another thread.

    It used to report damage itself, which called the listener in that thread.
    """
    guarded = Guarded(StoreOf(b"\x02rubbish"))

    await guarded.entries.get(ORIGIN, NOW)
    await guarded.write(entry_of())

    (event,) = guarded.events
    assert isinstance(event, StoreFailed)
    assert (event.operation, event.origin) == ("get", ORIGIN)


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


async def test_store_that_fails_slowly_is_not_used_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise, every lookup would wait, for example for a locked file."""
    monkeypatch.setattr(_entries, "_PATIENCE", -1.0)
    guarded = Guarded(FailingStore("get"))

    for _ in range(3):
        await guarded.entries.get(ORIGIN, NOW)

    assert (guarded.failures, guarded.skips) == (1, 2)


async def test_store_that_fails_quickly_is_used_every_time() -> None:
    guarded = Guarded(FailingStore("get"))

    for _ in range(20):
        await guarded.entries.get(ORIGIN, NOW)

    assert (guarded.failures, guarded.skips) == (20, 0)


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


async def test_store_without_leases_lets_every_process_fetch() -> None:
    entries = Guarded(MemoryStore()).entries

    acquired = await entries.acquire(ORIGIN)
    await entries.release(ORIGIN)

    assert (entries.has_lease, acquired) == (False, True)


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
    store = HangingStore()
    guarded = Guarded(store, policy=IMPATIENT)

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
