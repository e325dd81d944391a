"""A store that fails, hangs, rests or holds damage, and what is made of its bytes."""

from __future__ import annotations

import logging
import random
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from robotsgate import (
    AfterUnreachableLimit,
    MemoryStore,
    Policy,
    StoreFailed,
)
from robotsgate.caching._codec import VERSION, encode
from robotsgate.caching._entry import Entry, Outage
from robotsgate.checking import _entries
from robotsgate.checking._entries import Entries
from robotsgate.checking._reporting import reporter_for
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
    from robotsgate import CheckerEvent
    from robotsgate.stores._base import Change, Store

pytestmark = pytest.mark.anyio

IMPATIENT = Policy(store_timeout=0.02)


class Guarded:
    """Entries in a store, with what they report."""

    def __init__(self, store: Store, *, policy: Policy | None = None) -> None:
        self.clock = ManualClock()
        self.events: list[CheckerEvent] = []
        self.reporter = reporter_for(self.events.append)
        self.entries = Entries(
            store, self.reporter, policy=policy or Policy(), clock=self.clock
        )

    @property
    def failures(self) -> int:
        return self.reporter.counts["store_failures"]

    @property
    def skips(self) -> int:
        return self.reporter.counts["store_skips"]

    async def keep(self, entry: Entry) -> Entry:
        kept, _ = await self.entries.update(entry.origin, NOW, lambda _: entry)
        return kept


class RecordingStore(StoreBehind):
    """Remembers what it was told to keep, and until when."""

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
    """Gives the same bytes under every key, and keeps nothing."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = data
        self.changed: list[tuple[bytes, float | None] | None] = []

    async def get(self, key: str) -> bytes | None:
        del key
        return self._data

    async def update(self, key: str, change: Change) -> None:
        del key
        # As a store does where others write as well: perhaps more than once.
        self.changed = [change(self._data), change(self._data)]


class HangingStore(LeaseStore):
    """Never answers, and knows how many wait for it."""

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


# --- what is kept -----------------------------------------------------------------


async def test_kept_entry_is_read_under_its_origin() -> None:
    guarded = Guarded(MemoryStore())
    entry = entry_of()

    kept = await guarded.keep(entry)

    assert kept == entry
    assert await guarded.entries.get(ORIGIN, NOW) == entry
    assert await guarded.entries.get(OTHER_ORIGIN, NOW) is None


@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
async def test_large_entry_is_read_beside_the_event_loop(*, is_large: bool) -> None:
    """To unpack and check it took 4 ms of the event loop."""
    guarded = Guarded(MemoryStore())
    entry = entry_of(random.Random(0).randbytes(70_000) if is_large else b"")  # noqa: S311 (does not pack)
    await guarded.keep(entry)
    read: list[Entry | None] = []

    async def get() -> None:
        read.append(await guarded.entries.get(ORIGIN, NOW))

    # Within this nothing is read in a thread.
    async with anyio.create_task_group() as tasks, guarded.entries._one_at_a_time:
        tasks.start_soon(get)
        await let_others_run()
        read_meanwhile = len(read)

    assert read == [entry]
    assert read_meanwhile == (0 if is_large else 1)


async def test_change_gets_what_the_store_holds() -> None:
    guarded = Guarded(MemoryStore())
    await guarded.keep(entry_of(b"one"))
    seen: list[Entry | None] = []

    def change(stored: Entry | None) -> Entry:
        seen.append(stored)
        return entry_of(b"other")

    await guarded.entries.update(ORIGIN, NOW, change)

    assert seen == [entry_of(b"one")]
    assert await guarded.entries.get(ORIGIN, NOW) == entry_of(b"other")


async def test_entry_that_stays_as_it_is_is_not_written() -> None:
    store = RecordingStore()
    guarded = Guarded(store)

    await guarded.keep(entry_of())
    await guarded.keep(entry_of())

    assert store.kept_until == [NOW + 31 * DAY]


async def test_copy_that_is_used_for_ever_is_kept_for_ever() -> None:
    store = RecordingStore()
    policy = Policy(after_unreachable_limit=AfterUnreachableLimit.LAST_COPY)
    guarded = Guarded(store, policy=policy)

    await guarded.keep(entry_of())

    assert store.kept_until == [None]


async def test_outage_of_a_clock_that_is_far_ahead_is_dropped_alone() -> None:
    guarded = Guarded(MemoryStore())
    ahead = Outage(
        since=NOW + HOUR, last_attempt_at=NOW + HOUR, retry_at=NOW + DAY, attempts=1
    )
    good = entry_of()
    await guarded.keep(Entry(origin=ORIGIN, answer=good.answer, outage=ahead))

    assert await guarded.entries.get(ORIGIN, NOW) == good


# --- damage, and what is not ours -----------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\x02rubbish", id="rubbish"),
        pytest.param("a text", id="not bytes"),
        pytest.param(encode(entry_of())[:-1], id="a byte too few"),
        pytest.param(b"\x01" + encode(entry_of())[1:], id="an earlier version"),
        pytest.param(encode(entry_of(origin=OTHER_ORIGIN)), id="of another origin"),
    ],
)
async def test_damage_is_a_miss_and_a_warning_and_is_overwritten(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    store = StoreOf(data)
    guarded = Guarded(store)

    read = await guarded.entries.get(ORIGIN, NOW)
    await guarded.keep(entry_of())

    assert read is None
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert store.changed[-1] == (encode(entry_of()), NOW + 31 * DAY)


async def test_damage_is_told_once_although_a_change_is_tried_again() -> None:
    """A change is pure, because a store may call it in another thread.

    It told of damage by itself, which called the listener in that thread.
    """
    guarded = Guarded(StoreOf(b"\x02rubbish"))

    await guarded.entries.get(ORIGIN, NOW)
    await guarded.keep(entry_of())

    (event,) = guarded.events
    assert isinstance(event, StoreFailed)
    assert (event.operation, event.origin) == ("get", ORIGIN)


async def test_later_version_is_a_miss_told_once_and_never_overwritten(
    caplog: pytest.LogCaptureFixture,
) -> None:
    data = bytes([VERSION + 1]) + encode(entry_of())[1:]
    store = StoreOf(data)
    guarded = Guarded(store)
    entry = entry_of(b"new")

    read = [await guarded.entries.get(ORIGIN, NOW) for _ in range(2)]
    kept = await guarded.keep(entry)

    assert (read, kept) == ([None, None], entry)
    assert store.changed == [None, None]
    assert guarded.failures == 0
    (record,) = caplog.records
    assert record.getMessage().endswith("such entries are fetched again")


# --- a store that fails ---------------------------------------------------------


@pytest.mark.parametrize("operation", ["get", "update", "delete"])
async def test_failure_is_told_and_worked_without(operation: str) -> None:
    guarded = Guarded(FailingStore(operation))
    entry = entry_of()

    kept = await guarded.keep(entry)
    read = await guarded.entries.get(ORIGIN, NOW)
    await guarded.entries.delete(ORIGIN)

    assert kept == entry
    assert read == (entry if operation == "delete" else None)
    (event,) = guarded.events
    assert isinstance(event, StoreFailed)
    assert (event.operation, event.origin) == (operation, ORIGIN)
    assert isinstance(event.error, OSError)
    assert guarded.failures == 1


async def test_first_failure_in_a_row_is_a_warning_and_the_return_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = FailingStore("get")
    guarded = Guarded(store)

    with caplog.at_level(logging.DEBUG, "robotsgate.checker"):
        await guarded.entries.get(ORIGIN, NOW)
        await guarded.keep(entry_of())  # works, and does not end the row
        await guarded.entries.get(ORIGIN, NOW)
        store.failing = ()
        await guarded.entries.get(ORIGIN, NOW)
        await guarded.entries.get(ORIGIN, NOW)

    assert [(one.levelname, one.getMessage()[:19]) for one in caplog.records] == [
        ("WARNING", "store failed to get"),
        ("DEBUG", "store failed to get"),
        ("INFO", "store works again: "),
    ]


async def test_store_that_hangs_is_given_up_and_rests_for_half_a_minute() -> None:
    store = HangingStore()
    guarded = Guarded(store, policy=IMPATIENT)

    answer = await guarded.entries.get(ORIGIN, NOW)
    store.is_hanging = False
    guarded.clock.advance(29)
    kept = await guarded.keep(entry_of())
    while_resting = (guarded.failures, guarded.skips)
    guarded.clock.advance(1)
    await guarded.keep(entry_of())

    assert (answer, kept) == (None, entry_of())
    assert while_resting == (1, 1)
    assert (guarded.failures, guarded.skips) == (1, 1)
    assert await guarded.entries.get(ORIGIN, NOW) == entry_of()
    (event,) = guarded.events
    assert isinstance(event, StoreFailed)
    assert str(event.error) == "no response within 0.02 s"


async def test_store_that_takes_long_to_fail_rests_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A locked file, for example: waiting for it costs each question."""
    monkeypatch.setattr(_entries, "_PATIENCE", -1.0)
    guarded = Guarded(FailingStore("get"))

    for _ in range(3):
        await guarded.entries.get(ORIGIN, NOW)

    assert (guarded.failures, guarded.skips) == (1, 2)


async def test_store_that_fails_at_once_is_asked_each_time() -> None:
    guarded = Guarded(FailingStore("get"))

    for _ in range(20):
        await guarded.entries.get(ORIGIN, NOW)

    assert (guarded.failures, guarded.skips) == (20, 0)


async def test_thousand_at_once_do_not_crowd_the_store() -> None:
    """Their waiting for each other would be taken for its slowness."""
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


async def test_store_without_leases_lets_everybody_fetch() -> None:
    entries = Guarded(MemoryStore()).entries

    acquired = await entries.acquire(ORIGIN)
    await entries.release(ORIGIN)

    assert (entries.has_lease, acquired) == (False, True)


async def test_lease_is_of_one_process_and_its_terms_at_a_time() -> None:
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


async def test_lease_lasts_for_a_fetch_and_the_store() -> None:
    seconds: list[float] = []

    class Lease(LeaseStore):
        async def acquire(self, key: str, owner: str, seconds_: float) -> bool:
            seconds.append(seconds_)
            return await super().acquire(key, owner, seconds_)

    policy = Policy(fetch_deadline=10.0, store_timeout=1.0)
    await Guarded(Lease(), policy=policy).entries.acquire(ORIGIN)

    assert seconds == [13.0]


async def test_lease_that_cannot_be_asked_for_is_worked_without() -> None:
    store = HangingStore()
    guarded = Guarded(store, policy=IMPATIENT)

    assert await guarded.entries.acquire(ORIGIN) is True
    assert guarded.failures == 1


async def test_cancelled_caller_gives_back_a_lease_that_may_be_its_own() -> None:
    store = HangingStore()
    guarded = Guarded(store)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(guarded.entries.acquire, ORIGIN)
        await let_others_run()
        held = dict(store.owners)
        tasks.cancel_scope.cancel()

    assert list(held) == [ORIGIN]
    assert store.owners == {}


async def test_our_own_memory_is_asked_without_a_guard() -> None:
    guarded = Guarded(MemoryStore())
    coroutine: Any = guarded.entries.get(ORIGIN, NOW)

    with pytest.raises(StopIteration) as end:
        coroutine.send(None)

    assert end.value.value is None
