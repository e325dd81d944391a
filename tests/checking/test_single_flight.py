"""Many callers, one piece of work; nobody inherits another's bad luck."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from robotsgate.checking._single_flight import SingleFlight

pytestmark = pytest.mark.anyio


class Work:
    """Work that takes until `may_end`; counts how often it was begun and ended."""

    def __init__(self) -> None:
        self.begun = 0
        self.done = 0
        self.under_way = 0
        self.peak = 0
        self.may_end = anyio.Event()

    async def __call__(self) -> int:
        self.begun += 1
        number = self.begun
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        try:
            await self.may_end.wait()
        finally:
            self.under_way -= 1
        self.done += 1
        return number


class WorkFailedError(Exception):
    pass


async def test_200_callers_cause_one_piece_of_work() -> None:
    flights: SingleFlight[int] = SingleFlight()
    work = Work()
    results: list[int] = []

    async def call() -> None:
        results.append(await flights.run("key", work))

    async with anyio.create_task_group() as tasks:
        for _ in range(200):
            tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        assert len(flights) == 1
        work.may_end.set()

    assert results == [1] * 200
    assert work.begun == 1
    assert flights.joined == 199
    assert len(flights) == 0


async def test_different_keys_do_not_wait_for_each_other() -> None:
    flights: SingleFlight[int] = SingleFlight()
    slow, fast = Work(), Work()
    fast.may_end.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(flights.run, "slow", slow)
        await anyio.wait_all_tasks_blocked()
        result = await flights.run("fast", fast)
        slow.may_end.set()

    assert result == 1
    assert flights.joined == 0


async def test_result_is_not_kept_for_those_who_come_later() -> None:
    flights: SingleFlight[int] = SingleFlight()
    work = Work()
    work.may_end.set()

    results = [await flights.run("key", work) for _ in range(3)]

    assert results == [1, 2, 3]
    assert flights.joined == 0


@pytest.mark.parametrize("result", [0, False, "", ()], ids=repr)
async def test_result_may_be_false(result: object) -> None:
    flights: SingleFlight[object] = SingleFlight()
    begun = 0
    results: list[object] = []

    async def work() -> object:
        nonlocal begun
        begun += 1
        await anyio.wait_all_tasks_blocked()
        return result

    async def call() -> None:
        results.append(await flights.run("key", work))

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(call)

    assert results == [result] * 3
    assert begun == 1


async def test_cancelled_leader_hands_over_to_one_of_the_others() -> None:
    flights: SingleFlight[int] = SingleFlight()
    work = Work()
    results: list[int] = []
    leader = anyio.CancelScope()

    async def lead() -> None:
        with leader:
            await flights.run("key", work)

    async def call() -> None:
        results.append(await flights.run("key", work))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lead)
        await anyio.wait_all_tasks_blocked()
        for _ in range(199):
            tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        leader.cancel()
        await anyio.wait_all_tasks_blocked()
        assert work.begun == 2
        work.may_end.set()

    assert leader.cancelled_caught
    assert results == [2] * 199
    assert work.peak == 1
    assert flights.joined == 198


async def test_leaders_cancelled_one_after_the_other_each_hand_over() -> None:
    flights: SingleFlight[int] = SingleFlight()
    work = Work()
    results: list[int] = []
    scopes = [anyio.CancelScope() for _ in range(5)]

    async def call(scope: anyio.CancelScope) -> None:
        with scope:
            results.append(await flights.run("key", work))

    async with anyio.create_task_group() as tasks:
        for scope in scopes:
            tasks.start_soon(call, scope)
        await anyio.wait_all_tasks_blocked()
        for _ in range(4):
            # Whoever leads: only leaders are inside of the work.
            for scope in scopes:
                if not scope.cancel_called:
                    scope.cancel()
                    break
            await anyio.wait_all_tasks_blocked()
        work.may_end.set()

    assert len(results) == 1
    assert work.peak == 1
    assert len(flights) == 0


async def test_everybody_cancelled_leaves_nothing_behind() -> None:
    flights: SingleFlight[int] = SingleFlight()
    work = Work()

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(flights.run, "key", work)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    work.may_end.set()
    result = await flights.run("key", work)

    assert result == work.begun
    assert work.done == 1
    assert len(flights) == 0


async def test_cancelled_waiter_does_not_disturb_the_others() -> None:
    flights: SingleFlight[int] = SingleFlight()
    work = Work()
    results: list[int] = []
    waiter = anyio.CancelScope()

    async def call() -> None:
        results.append(await flights.run("key", work))

    async def wait() -> None:
        with waiter:
            await call()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(wait)
        tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        waiter.cancel()
        await anyio.wait_all_tasks_blocked()
        work.may_end.set()

    assert waiter.cancelled_caught
    assert results == [1, 1]
    assert work.begun == 1
    assert flights.joined == 1


async def test_error_reaches_only_the_caller_whose_work_it_was() -> None:
    flights: SingleFlight[int] = SingleFlight()
    work = Work()
    results: list[int] = []

    async def fail() -> int:
        await work.may_end.wait()
        raise WorkFailedError

    async def lead() -> None:
        with pytest.raises(WorkFailedError):
            await flights.run("key", fail)

    async def call() -> None:
        results.append(await flights.run("key", work))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lead)
        await anyio.wait_all_tasks_blocked()
        for _ in range(5):
            tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        work.may_end.set()

    assert len(results) == 5
    assert work.peak == 1
    assert len(flights) == 0


async def test_work_that_always_fails_raises_for_each_in_turn() -> None:
    flights: SingleFlight[int] = SingleFlight()
    under_way, peak, raised = 0, 0, 0

    async def fail() -> int:
        nonlocal under_way, peak
        under_way += 1
        peak = max(peak, under_way)
        await anyio.lowlevel.checkpoint()
        under_way -= 1
        raise WorkFailedError

    async def call() -> None:
        nonlocal raised
        with pytest.raises(WorkFailedError):
            await flights.run("key", fail)
        raised += 1

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(call)

    assert raised == 20
    assert peak == 1


async def test_work_that_never_waits_is_done_for_each_in_turn() -> None:
    flights: SingleFlight[str] = SingleFlight()

    async def work() -> str:
        return "done"

    results = [await flights.run("key", work) for _ in range(2)]

    assert results == ["done", "done"]
