"""A ledger in a store; the rules have their own tests, without a store."""

from __future__ import annotations

import os
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from robotsgate import MemoryStore, SharedLedger, SQLiteStore, StoreError
from robotsgate.events import HostRecordReplaced, LedgerFailed, LedgerReturned
from robotsgate.politeness import Grant, HostState, TurnEnd, Wait
from robotsgate.stores import HOST_PREFIX
from robotsgate.testing import ManualClock
from tests.cancellation import cancelled_at, each_way
from tests.stores.contracts import to

from .builders import pace
from .contract import HOST, ONE, LedgerContract, get_grant, request_page, wait_seconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from robotsgate.events import LedgerEvent
    from robotsgate.stores import Change, TimedChange

pytestmark = pytest.mark.anyio


class FaultyStore(MemoryStore):
    """A store in memory that can fail, hang, and lose replies.

    Attributes:
        updates: the number of updates of a host's record.
        refuses: whether a key's update fails.
        error: what it raises then.
        loses_replies: whether an update fails after it has been written.
        applies_twice: whether `change` is applied again after it has been written.
        is_back_event: if set, updates wait for this event.
    """

    def __init__(self) -> None:
        super().__init__()
        self.updates = 0
        self.refuses: Callable[[str], bool] = lambda _: False
        self.error: Exception = StoreError("refused")
        self.loses_replies = False
        self.applies_twice = False
        self.is_back_event: anyio.Event | None = None

    async def update(self, key: str, change: Change) -> None:
        self.updates += key != HOST_PREFIX
        if self.is_back_event is not None:
            await self.is_back_event.wait()
        await anyio.lowlevel.checkpoint()
        if self.refuses(key):
            raise self.error
        for _ in range(1 + self.applies_twice):
            await super().update(key, change)
        await anyio.lowlevel.checkpoint()
        if self.loses_replies:
            raise StoreError("connection lost")


class Fleet:
    """Ledgers that share a store, as in several processes."""

    def __init__(self) -> None:
        self.store = FaultyStore()
        self.clock = ManualClock()
        self.events: list[LedgerEvent] = []

    def ledger(self, **options: Any) -> SharedLedger:  # noqa: ANN401 (SharedLedger's)
        return SharedLedger(
            self.store,
            **{
                "workers": 1,
                "clock": self.clock,
                "on_event": self.events.append,
                **options,
            },
        )

    def stop(self) -> None:
        self.store.refuses = lambda _: True

    async def restart(self) -> None:
        """Let the store work again, and wait until the ledgers have noticed."""
        self.store.refuses = lambda _: False
        await self.clock.pass_time(1.0)
        assert isinstance(self.events[-1], LedgerReturned)


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


class TestSharedLedger(LedgerContract):
    real_seconds = 0.01

    @pytest.fixture
    async def ledger(self, fleet: Fleet) -> AsyncIterator[SharedLedger]:
        """A ledger that is opened in one task and closed in another."""
        ledger = fleet.ledger()
        async with anyio.create_task_group() as opening:
            opening.start_soon(ledger.__aenter__)
        yield ledger
        async with anyio.create_task_group() as closing:
            closing.start_soon(ledger.aclose)

    @pytest.fixture
    def pass_time(self, fleet: Fleet) -> Callable[[float], None]:
        return fleet.clock.advance


class TestFleet:
    async def test_status_blocks_the_host_for_all_and_a_failure_only_here(
        self, fleet: Fleet
    ) -> None:
        """One worker's EMFILE used to make a healthy host wait for 64 s."""
        async with fleet.ledger() as one, fleet.ledger() as other:
            for end in (TurnEnd.FAILURE, TurnEnd.INCIDENT):
                fleet.clock.advance(10_000)
                await one.end(await get_grant(one), end, retry_after=500.0)
                fleet.clock.advance(10)
                answer = await other.start(HOST, ONE)

                assert one.peek(HOST, ONE).state is HostState.BLOCKED
                assert isinstance(answer, Grant) is (end is TurnEnd.FAILURE)
                if isinstance(answer, Grant):
                    await other.end(answer, TurnEnd.UNUSED)

            assert other.peek(HOST, ONE).state is HostState.BLOCKED
            assert 480 < other.peek(HOST, ONE).wait_seconds < 550

    async def test_host_is_forgotten_for_processes_that_do_not_know_its_block(
        self, fleet: Fleet
    ) -> None:
        """Not even a process that is waiting for the end of the block goes first."""
        async with fleet.ledger() as one, fleet.ledger() as two, fleet.ledger() as new:
            await one.end(await get_grant(one), TurnEnd.INCIDENT, retry_after=500.0)
            await wait_seconds(two)
            await one.forget(HOST, ONE)
            fleet.clock.advance(2.01)

            assert two.peek(HOST, ONE).state is HostState.BLOCKED
            await get_grant(new)

    async def test_record_expires_when_it_no_longer_matters(self, fleet: Fleet) -> None:
        async with fleet.ledger() as ledger:
            await get_grant(ledger, "busy.example")
            await request_page(ledger, "idle.example")
            await ledger.end(await get_grant(ledger, "unused.example"), TurnEnd.UNUSED)

        now = fleet.clock.now()
        assert [
            await fleet.store.purge(now + seconds) for seconds in (0, 3_600, 3_900)
        ] == [1, 1, 1]

    @pytest.mark.parametrize("data", [b"", b"junk", bytes(125)])
    async def test_unreadable_record_is_replaced_and_affects_only_its_host(
        self, fleet: Fleet, data: bytes
    ) -> None:
        async with fleet.ledger() as one, fleet.ledger() as other:
            grant = await get_grant(one)
            await request_page(one, "another.example")
            fleet.clock.advance(2.01)
            await fleet.store.update(HOST_PREFIX + HOST, to(data))
            await one.end(grant, TurnEnd.UNUSED)
            seconds = await wait_seconds(other)
            await get_grant(other, "another.example")
            fleet.clock.advance(2.01)
            await get_grant(other)

        assert seconds == pytest.approx(2.0, abs=0.01)
        assert fleet.events == [HostRecordReplaced(host=HOST)]

    async def test_host_that_the_store_has_lost_is_not_contacted_for_a_delay(
        self, fleet: Fleet
    ) -> None:
        """Another process may have contacted the host without this one knowing."""
        async with fleet.ledger() as ledger:
            await request_page(ledger)
            fleet.clock.advance(10)
            await fleet.store.delete(HOST_PREFIX + HOST)

            assert await wait_seconds(ledger) == pytest.approx(2.0, abs=0.01)

    async def test_clock_that_is_set_back_does_not_block_a_host(
        self, fleet: Fleet
    ) -> None:
        async with fleet.ledger() as one, fleet.ledger() as other:
            await request_page(one)
            fleet.clock.set(fleet.clock.now() - 86_400)

            assert await wait_seconds(other) == pytest.approx(2.0, abs=0.01)
            fleet.clock.advance(2.01)
            await get_grant(other)

    async def test_time_of_a_store_with_a_clock_is_used(self, fleet: Fleet) -> None:
        class StoreWithClock(MemoryStore):
            clock = ManualClock()

            async def update_timed(self, key: str, change: TimedChange) -> None:
                now = self.clock.now()
                await self.update(key, lambda data: change(data, now))

        store = StoreWithClock()
        async with SharedLedger(store, workers=1, clock=fleet.clock) as ledger:
            await request_page(ledger)
        async with SharedLedger(store, workers=1, clock=fleet.clock) as ledger:
            fleet.clock.set(0.0)
            seconds = await wait_seconds(ledger)
            store.clock.advance(2.01)
            fleet.clock.advance(2.01)
            grant = await get_grant(ledger)

        assert seconds == pytest.approx(2.0, abs=0.01)
        assert grant.shared_began_at == store.clock.now()


class TestUpdates:
    async def test_process_alone_needs_two_updates_a_turn(self, fleet: Fleet) -> None:
        async with fleet.ledger() as ledger:
            for _ in range(10):
                while isinstance(answer := await ledger.start(HOST, ONE), Wait):
                    fleet.clock.advance(answer.seconds)
                fleet.clock.advance(0.5)
                await ledger.end(answer, TurnEnd.GOOD)

        assert fleet.store.updates == 20

    async def test_only_max_hosts_are_remembered(self, fleet: Fleet) -> None:
        async with fleet.ledger(max_hosts=2) as ledger:
            for number in range(5):
                await request_page(ledger, f"{number}.example")

            assert len(ledger._seen) == 2
            before = fleet.store.updates
            assert isinstance(await ledger.start("0.example", ONE), Wait)
            assert fleet.store.updates == before + 1


class TestWithoutStore:
    async def test_process_without_store_uses_its_share_of_the_rate(
        self, fleet: Fleet
    ) -> None:
        fleet.stop()

        async with fleet.ledger(workers=3) as ledger:
            await request_page(ledger)
            fleet.clock.advance(5.9)
            assert isinstance(await ledger.start(HOST, ONE), Wait)
            assert ledger.peek(HOST, ONE).delay == 6.0
            fleet.clock.advance(0.1)
            assert (await get_grant(ledger)).pace == ONE

        (event,) = fleet.events
        assert isinstance(event, LedgerFailed)
        assert isinstance(event.error, StoreError)

    async def test_process_without_store_uses_its_share_of_the_turns(
        self, fleet: Fleet
    ) -> None:
        fleet.stop()
        six = pace(0.0, max_at_once=6)

        async with fleet.ledger(workers=3) as ledger:
            answers = [await ledger.start(HOST, six) for _ in range(3)]

        assert [type(answer) for answer in answers] == [Grant, Grant, Wait]

    async def test_process_without_store_remembers_blocks(self, fleet: Fleet) -> None:
        """Including blocks that it learned about from other processes."""
        async with fleet.ledger() as one, fleet.ledger() as other:
            grant = await get_grant(one)
            await one.end(grant, TurnEnd.INCIDENT, retry_after=500.0)
            await wait_seconds(other)
            fleet.stop()
            for ledger in (one, other):
                await request_page(ledger, "another.example")
            fleet.clock.advance(490)

            assert isinstance(await one.start(HOST, ONE), Wait)
            assert isinstance(await other.start(HOST, ONE), Wait)
            fleet.clock.advance(60)
            await get_grant(other)

    async def test_process_without_store_tries_again_within_five_seconds(
        self, fleet: Fleet
    ) -> None:
        fleet.stop()

        async with fleet.ledger(workers=100) as ledger:
            await request_page(ledger)
            fleet.clock.advance(2)

            assert await ledger.start(HOST, ONE) == Wait(seconds=5.0, overdue=0)

    @pytest.mark.parametrize("error", [StoreError("refused"), OSError("the disk")])
    async def test_store_that_comes_back_is_used_again(
        self, fleet: Fleet, error: Exception
    ) -> None:
        """Without being called, the ledger notices that the store is back."""
        fleet.store.error = error
        async with fleet.ledger() as one, fleet.ledger() as other:
            fleet.stop()
            await request_page(one)
            await fleet.clock.pass_time(10)
            await fleet.restart()
            await get_grant(one)
            assert isinstance(await other.start(HOST, ONE), Wait)

        failed, returned = fleet.events
        assert isinstance(failed, LedgerFailed)
        assert isinstance(returned, LedgerReturned)
        assert returned.elapsed_seconds == 11.0

    async def test_host_is_forgotten_without_the_store_and_then_in_it(
        self, fleet: Fleet
    ) -> None:
        async with fleet.ledger() as one, fleet.ledger() as other:
            await one.end(await get_grant(one), TurnEnd.INCIDENT, retry_after=500.0)
            fleet.stop()
            await one.forget(HOST, ONE)

            assert one.peek(HOST, ONE).state is HostState.OPEN
            fleet.clock.advance(2.01)
            await fleet.restart()
            await get_grant(other)

    async def test_end_refused_for_one_host_does_not_prevent_the_return(
        self, fleet: Fleet
    ) -> None:
        async with fleet.ledger() as one, fleet.ledger() as other:
            grant = await get_grant(one)
            fleet.store.refuses = lambda key: key.endswith(HOST)
            await one.end(grant, TurnEnd.GOOD)
            await fleet.clock.pass_time(1.0)
            await get_grant(one, "another.example")

            assert isinstance(await other.start("another.example", ONE), Wait)
        assert [type(event) for event in fleet.events] == [LedgerFailed, LedgerReturned]

    async def test_ends_that_the_store_missed_are_kept_until_it_works(
        self, fleet: Fleet
    ) -> None:
        """A turn used to stay open for `max_turn_seconds` if its end was sent once."""
        answers = iter([False, True, True])
        by_duration = pace(2.0, delay_factor=5.0)
        async with fleet.ledger() as one, fleet.ledger() as other:
            grant = await get_grant(one, pace=by_duration)
            fleet.stop()
            await one.end(grant, TurnEnd.GOOD)
            fleet.store.refuses = lambda _: next(answers)
            await fleet.clock.pass_time(1.0)
            await fleet.restart()
            fleet.clock.advance(2.01)
            await get_grant(other, pace=by_duration)


class TestHungStore:
    async def test_only_the_first_turns_wait_and_the_store_is_used_once_it_responds(
        self, fleet: Fleet
    ) -> None:
        async with fleet.ledger() as ledger:
            fleet.store.is_back_event = is_back = anyio.Event()
            async with anyio.create_task_group() as first:
                first.start_soon(request_page, ledger, "first.example")
                first.start_soon(request_page, ledger, "second.example")
                await fleet.clock.pass_time(1.0)
            for number in range(20):
                await request_page(ledger, f"{number}.example")
            fleet.store.is_back_event = None
            is_back.set()
            await fleet.clock.pass_time(1.0)

        assert str(fleet.events[0]) == (
            "LedgerFailed(error=TimeoutError('no response within 1 s'))"
        )
        assert [type(event) for event in fleet.events] == [LedgerFailed, LedgerReturned]

    async def test_call_may_take_longer_than_a_second_while_others_are_answered(
        self, fleet: Fleet
    ) -> None:
        fleet.store.is_back_event = is_back = anyio.Event()
        async with fleet.ledger() as ledger, anyio.create_task_group() as tasks:
            tasks.start_soon(request_page, ledger, "slow.example")
            await fleet.clock.pass_time(0.5)
            fleet.store.is_back_event = None
            for number in range(4):
                await request_page(ledger, f"{number}.example")
                await fleet.clock.pass_time(0.5)
            is_back.set()

        assert fleet.events == []

    async def test_turn_granted_too_late_is_given_back(self, fleet: Fleet) -> None:
        async with fleet.ledger() as one, fleet.ledger() as other:
            fleet.store.is_back_event = is_back = anyio.Event()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(get_grant, one)
                await fleet.clock.pass_time(1.0)
            fleet.store.is_back_event = None
            is_back.set()
            await fleet.clock.pass_time(1.0)
            await get_grant(other)

    async def test_closing_waits_for_the_store_for_at_most_a_second(
        self, fleet: Fleet
    ) -> None:
        ledger = await fleet.ledger().__aenter__()
        grant = await get_grant(ledger)
        fleet.store.is_back_event = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ledger.end, grant, TurnEnd.GOOD)
            await fleet.clock.pass_time(1.0)
            tasks.start_soon(ledger.aclose)
            await fleet.clock.pass_time(1.0)


class TestCancellation:
    @each_way
    @pytest.mark.parametrize("loses_replies", [False, True])
    async def test_start_cancelled_at_any_point_leaves_no_turn_open(
        self, fleet: Fleet, *, way: str, loses_replies: bool
    ) -> None:
        number, is_cancelled = 0, True
        free = pace(0.0)

        async with fleet.ledger() as other:
            while is_cancelled:
                number += 1
                fleet.store.loses_replies = loses_replies
                async with fleet.ledger() as one:
                    is_cancelled = await cancelled_at(
                        number, lambda: one.start(HOST, free), way=way
                    )
                    fleet.store.loses_replies = False
                    await fleet.clock.pass_time(1.0)
                    if is_cancelled:
                        assert one.peek(HOST, free).under_way == 0
                        grant = await get_grant(other, pace=free)
                        await other.end(grant, TurnEnd.UNUSED)

        assert number > 1

    async def test_start_cancelled_with_its_ledger_leaves_no_turn_open(
        self, fleet: Fleet
    ) -> None:
        with anyio.CancelScope() as scope:
            async with fleet.ledger() as one, anyio.create_task_group() as tasks:
                tasks.start_soon(one.start, HOST, ONE)
                while not fleet.store.updates:
                    await anyio.lowlevel.checkpoint()
                scope.cancel()

        async with fleet.ledger() as other:
            await get_grant(other)

    async def test_change_that_is_applied_twice_starts_one_turn(
        self, fleet: Fleet
    ) -> None:
        """A client may send a request again if its reply is lost."""
        two = pace(0.0, max_at_once=2)
        async with fleet.ledger() as one, fleet.ledger() as other:
            fleet.store.applies_twice = True
            grant = await get_grant(one, pace=two)
            fleet.store.applies_twice = False
            await get_grant(other, pace=two)
            assert isinstance(await other.start(HOST, two), Wait)
            await one.end(grant, TurnEnd.GOOD)
            await get_grant(other, pace=two)

    async def test_end_after_the_ledger_is_closed_is_ignored(
        self, fleet: Fleet
    ) -> None:
        async with fleet.ledger() as ledger:
            grant = await get_grant(ledger)

        await ledger.end(grant, TurnEnd.GOOD)


class TestStores:
    @pytest.mark.parametrize("is_url", [False, True], ids=["path", "URL"])
    async def test_store_at_a_url_or_path_is_opened_and_closed_but_not_a_callers(
        self, tmp_path: Path, *, is_url: bool
    ) -> None:
        path = tmp_path / "robots.db"
        async with SharedLedger(
            f"sqlite:///{path}" if is_url else path, workers=1
        ) as ledger:
            await request_page(ledger)

        names = os.listdir(tmp_path)  # noqa: PTH208 (no pathlib in async)
        assert names == ["robots.db"]
        async with SQLiteStore(path) as store:
            async with SharedLedger(store, workers=1) as ledger:
                assert isinstance(await ledger.start(HOST, ONE), Wait)

            assert await store.get(HOST_PREFIX + HOST) is not None

    @each_way
    async def test_store_is_closed_even_if_that_is_cancelled(
        self, tmp_path: Path, way: str
    ) -> None:
        ledger = await SharedLedger(tmp_path / "robots.db", workers=1).__aenter__()
        await request_page(ledger)

        await cancelled_at(1, ledger.aclose, way=way)

        names = os.listdir(tmp_path)  # noqa: PTH208 (no pathlib in async)
        assert names == ["robots.db"]

    async def test_store_without_connections_is_opened_too(self) -> None:
        async with SharedLedger("memory:", workers=1) as ledger:
            await request_page(ledger)

    @pytest.mark.parametrize("kind", ["memory", "sqlite"])
    async def test_records_are_neither_listed_nor_counted_but_purged(
        self, tmp_path: Path, kind: str
    ) -> None:
        store = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "a.db")
        async with aclosing(store):
            for key in (HOST_PREFIX + HOST, "https://example.com", HOST_PREFIX):
                await store.update(key, to(b"", 1.0))

            listed = [key async for key in store.keys()]  # noqa: SIM118 (not a dict)
            assert (listed, await store.count()) == (["https://example.com"], 1)
            assert await store.purge(1.0) == 3

    async def test_records_are_not_evicted_from_a_full_file(
        self, tmp_path: Path
    ) -> None:
        async with SQLiteStore(tmp_path / "robots.db", max_bytes=2**20) as store:
            await store.update(HOST_PREFIX + HOST, to(b"record"))
            for number in range(100):
                await store.update(f"https://{number}.example", to(bytes(30_000)))

            assert await store.count() < 50
            assert await store.get(HOST_PREFIX + HOST) == b"record"


class TestBadInput:
    @pytest.mark.parametrize("name", ["start", "forget"])
    async def test_call_outside_async_with_raises(
        self, fleet: Fleet, name: str
    ) -> None:
        with pytest.raises(RuntimeError, match="inside async with"):
            await getattr(fleet.ledger(), name)(HOST, ONE)

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({}, TypeError),
            ({"workers": 0}, ValueError),
            ({"workers": 2.0}, TypeError),
            ({"workers": 1, "max_hosts": 0}, ValueError),
            ({"workers": 1, "on_event": 1}, TypeError),
            ({"workers": 1, "store": 1}, StoreError),
            ({"workers": 1, "store": None}, StoreError),
        ],
    )
    def test_bad_argument_raises(
        self, options: dict[str, Any], error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            SharedLedger(**{"store": "memory:", **options})

    async def test_store_that_cannot_be_opened_raises(self) -> None:
        with pytest.raises(StoreError):
            await SharedLedger("http://host", workers=1).__aenter__()
