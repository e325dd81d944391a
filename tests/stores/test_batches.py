"""Many tasks, one call: joined, in order, and whoever leaves leaves nothing behind."""

from __future__ import annotations

import asyncio
import threading
from itertools import chain
from typing import TYPE_CHECKING

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from robotsgate.stores._batches import Batches
from tests.cancellation import cancelled_at
from tests.checking.builders import let_others_run

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

pytestmark = pytest.mark.anyio

# Nothing here waits for anything but its own threads.
PATIENCE_SECONDS = 10.0

# A call suspends a handful of times; more than that would be a loop.
MOST_CHECKPOINTS = 100


class Work:
    """Tells ten times what it gets; each batch is held back while the gate is shut.

    Attributes:
        batches: what came, in order.
        has_begun: set as soon as something has come.
        most_at_once: how many batches were ever under way together.
    """

    def __init__(self, *, is_shut: bool = False) -> None:
        self.batches: list[list[int]] = []
        self.has_begun = anyio.Event()
        self.most_at_once = 0
        self._at_once = 0
        self._gate = threading.Event()
        if not is_shut:
            self._gate.set()

    def __call__(self, wishes: Sequence[int]) -> list[int]:
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            self.batches.append(list(wishes))
            anyio.from_thread.run_sync(self.has_begun.set)
            assert self._gate.wait(PATIENCE_SECONDS)
            if -1 in wishes:
                raise LookupError("there is no -1")
            return [10 * wish for wish in wishes]
        finally:
            self._at_once -= 1

    def open(self) -> None:
        self._gate.set()


class Callers:
    """Tasks that wish, and what each of them got."""

    def __init__(self, batches: Batches[int, int], tasks: anyio.abc.TaskGroup) -> None:
        self.got: dict[int, int | str | None] = {}
        self._batches = batches
        self._tasks = tasks
        self._scopes: dict[int, anyio.CancelScope] = {}

    async def start(self, *wishes: int) -> None:
        """Let a task for each come as far as it can."""
        for wish in wishes:
            self._tasks.start_soon(self._call, wish)
            await let_others_run()

    def cancel(self, wish: int) -> None:
        self._scopes[wish].cancel()

    async def _call(self, wish: int) -> None:
        with anyio.CancelScope() as self._scopes[wish]:
            try:
                self.got[wish] = await self._batches.result_of(wish)
            except LookupError as error:
                self.got[wish] = str(error)
        if self._scopes[wish].cancelled_caught:
            self.got[wish] = "cancelled"


def served(*wishes: int) -> dict[int, int]:
    return {wish: 10 * wish for wish in wishes}


async def test_one_call_is_one_batch() -> None:
    work = Work()

    result = await Batches(work, most=9).result_of(4)

    assert result == 40
    assert work.batches == [[4]]


async def test_calls_that_come_during_a_batch_are_joined_in_the_next() -> None:
    work = Work(is_shut=True)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            callers = Callers(Batches(work, most=9), tasks)
            await callers.start(0)
            await work.has_begun.wait()
            await callers.start(5, 1, 4, 2, 3)
            work.open()

    assert work.batches == [[0], [5, 1, 4, 2, 3]]
    assert callers.got == served(0, 1, 2, 3, 4, 5)


async def test_same_wish_of_two_tasks_is_answered_to_both() -> None:
    work = Work()
    batches = Batches(work, most=9)
    got: list[int | None] = []

    async def call() -> None:
        got.append(await batches.result_of(1))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(call)
        tasks.start_soon(call)

    assert got == [10, 10]


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, [[0], [1], [2], [3], [4], [5]]),
        (2, [[0], [1, 2], [3, 4], [5]]),
        (4, [[0], [1, 2, 3, 4], [5]]),
        (5, [[0], [1, 2, 3, 4, 5]]),
    ],
)
async def test_no_batch_is_larger_than_allowed(
    most: int, expected: list[list[int]]
) -> None:
    work = Work(is_shut=True)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            callers = Callers(Batches(work, most=most), tasks)
            await callers.start(0)
            await work.has_begun.wait()
            await callers.start(1, 2, 3, 4, 5)
            work.open()

    assert work.batches == expected
    assert callers.got == served(*range(6))


async def test_many_tasks_get_what_is_theirs_and_never_two_batches_at_once() -> None:
    work = Work()
    batches = Batches(work, most=7)
    got: dict[int, list[int | None]] = {}

    async def call_often(first: int) -> None:
        got[first] = [await batches.result_of(first + place) for place in range(10)]

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for first in range(0, 400, 10):
                tasks.start_soon(call_often, first)

    assert got == {
        first: [10 * wish for wish in range(first, first + 10)]
        for first in range(0, 400, 10)
    }
    assert sorted(chain.from_iterable(work.batches)) == list(range(400))
    assert work.most_at_once == 1
    assert max(map(len, work.batches)) == 7


async def test_error_is_raised_by_each_call_of_the_batch_and_by_no_other() -> None:
    work = Work(is_shut=True)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            callers = Callers(Batches(work, most=3), tasks)
            await callers.start(0)
            await work.has_begun.wait()
            await callers.start(1, -1, 2, 3)
            work.open()

    error = "there is no -1"
    assert work.batches == [[0], [1, -1, 2], [3]]
    assert callers.got == {**served(0, 3), 1: error, -1: error, 2: error}


# --- cancelled ---------------------------------------------------------------------


async def test_cancelled_call_is_dropped_before_its_batch_begins() -> None:
    work = Work(is_shut=True)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            callers = Callers(Batches(work, most=9), tasks)
            await callers.start(0)
            await work.has_begun.wait()
            await callers.start(1, 2, 3)
            callers.cancel(2)
            await let_others_run()
            work.open()

    assert work.batches == [[0], [1, 3]]
    assert callers.got == {**served(0, 1, 3), 2: "cancelled"}


async def test_cancelled_call_that_would_have_led_the_next_batch_is_dropped() -> None:
    work = Work(is_shut=True)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            callers = Callers(Batches(work, most=9), tasks)
            await callers.start(0)
            await work.has_begun.wait()
            await callers.start(1, 2, 3)
            callers.cancel(1)
            work.open()

    assert work.batches == [[0], [2, 3]]
    assert callers.got == {**served(0, 2, 3), 1: "cancelled"}


async def test_batch_under_way_is_finished_for_the_others_when_one_is_cancelled() -> (
    None
):
    work = Work(is_shut=True)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            callers = Callers(Batches(work, most=9), tasks)
            await callers.start(0)
            await work.has_begun.wait()
            callers.cancel(0)
            await callers.start(1, 2)
            batches_before = list(work.batches)
            work.open()

    assert batches_before == [[0]]
    assert work.batches == [[0], [1, 2]]
    assert callers.got.items() >= served(1, 2).items()
    assert work.most_at_once == 1


@pytest.mark.parametrize("before", [0, 2], ids=["first in line", "last in line"])
async def test_call_cancelled_at_any_place_leaves_nothing_behind(before: int) -> None:
    """Whoever has joined its batch is served all the same."""
    for number in range(1, MOST_CHECKPOINTS):
        work = Work()
        batches = Batches(work, most=9)
        was_cancelled: list[bool] = []
        got: dict[int, int | None] = {}

        async def call(
            wish: int,
            *,
            batches: Batches[int, int] = batches,
            got: dict[int, int | None] = got,
        ) -> None:
            got[wish] = await batches.result_of(wish)

        async def call_and_be_cancelled(
            number: int = number,
            batches: Batches[int, int] = batches,
            was_cancelled: list[bool] = was_cancelled,
        ) -> None:
            was_cancelled.append(
                await cancelled_at(number, lambda: batches.result_of(99))
            )

        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as tasks:
                for wish in range(before):
                    tasks.start_soon(call, wish)
                tasks.start_soon(call_and_be_cancelled)
                for wish in range(before, 4):
                    tasks.start_soon(call, wish)
            await call(4)

        assert got == served(*range(5))
        assert sorted(set(chain.from_iterable(work.batches)) - {99}) == list(range(5))
        assert work.most_at_once == 1
        assert not batches._waiting
        if not was_cancelled[0]:
            return
    raise AssertionError(f"{MOST_CHECKPOINTS} checkpoints and no end")


async def test_all_calls_cancelled_together_leave_batches_that_work() -> None:
    work = Work(is_shut=True)
    batches = Batches(work, most=9)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            callers = Callers(batches, tasks)
            await callers.start(0)
            await work.has_begun.wait()
            await callers.start(1, 2)
            tasks.cancel_scope.cancel()
            work.open()
        result = await batches.result_of(3)

    assert result == 30
    assert work.batches == [[0], [3]]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_task_cancelled_by_asyncio_itself_does_not_let_two_batches_meet() -> None:
    """No scope of anyio shields from Task.cancel, which asyncio.timeout uses.

    The thread goes on with a batch whose leader has left already.
    """
    work = Work(is_shut=True)
    batches = Batches(work, most=9)

    async with asyncio.timeout(PATIENCE_SECONDS):
        leader = asyncio.create_task(batches.result_of(0))
        await work.has_begun.wait()
        joined = [asyncio.create_task(batches.result_of(wish)) for wish in (1, 2)]
        await let_others_run()
        leader.cancel()
        await let_others_run()
        work.open()
        results = await asyncio.gather(*joined)

    assert leader.cancelled()
    assert results == [10, 20]
    assert work.batches == [[0], [1, 2]]
    assert work.most_at_once == 1


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_batch_whose_leader_asyncio_cancels_is_finished_for_the_others() -> None:
    work = Work(is_shut=True)
    batches = Batches(work, most=9)

    async with asyncio.timeout(PATIENCE_SECONDS):
        leader, *joined = [
            asyncio.create_task(batches.result_of(wish)) for wish in range(4)
        ]
        await work.has_begun.wait()
        leader.cancel()
        await let_others_run()
        work.open()
        results = await asyncio.gather(*joined)

    assert leader.cancelled()
    assert results == [10, 20, 30]
    assert work.batches == [[0, 1, 2, 3]]


# --- alone -------------------------------------------------------------------------


async def test_work_alone_waits_for_the_batch_under_way_and_holds_up_the_next() -> None:
    work = Work(is_shut=True)
    batches = Batches(work, most=9)
    during: list[tuple[int, list[list[int]]]] = []

    def alone() -> str:
        during.append((work._at_once, list(work.batches)))
        return "done"

    results: list[str] = []

    async def work_alone() -> None:
        results.append(await batches.alone(alone))

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            callers = Callers(batches, tasks)
            await callers.start(0)
            await work.has_begun.wait()
            tasks.start_soon(work_alone)
            await let_others_run()
            await callers.start(1, 2)
            begun_early = list(during)
            work.open()

    assert begun_early == []
    assert during == [(0, [[0]])]
    assert results == ["done"]
    assert work.batches == [[0], [1, 2]]
    assert callers.got == served(0, 1, 2)


async def test_no_batch_begins_while_somebody_works_alone() -> None:
    work = Work()
    batches = Batches(work, most=9)
    has_begun = anyio.Event()
    end = threading.Event()

    def alone() -> None:
        anyio.from_thread.run_sync(has_begun.set)
        assert end.wait(PATIENCE_SECONDS)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(batches.alone, alone)
            await has_begun.wait()
            callers = Callers(batches, tasks)
            await callers.start(1, 2)
            begun_early = list(work.batches)
            end.set()

    assert begun_early == []
    assert work.batches == [[1, 2]]


async def test_error_of_work_alone_is_raised_and_the_next_batch_works() -> None:
    batches = Batches(Work(), most=9)

    with pytest.raises(ZeroDivisionError):
        await batches.alone(lambda: 1 // 0)

    assert await batches.result_of(1) == 10


async def test_work_alone_cancelled_at_any_place_holds_up_nobody() -> None:
    for number in range(1, MOST_CHECKPOINTS):
        batches = Batches(Work(), most=9)
        with anyio.fail_after(PATIENCE_SECONDS):
            was_cancelled = await cancelled_at(
                number, lambda batches=batches: batches.alone(int)
            )
            assert await batches.result_of(1) == 10
            assert await batches.alone(int) == 0
        if not was_cancelled:
            return
    raise AssertionError(f"{MOST_CHECKPOINTS} checkpoints and no end")


# --- beside other threads ----------------------------------------------------------


async def asked_by_all_threads(
    ask: Callable[[int], Coroutine[object, object, int | None]],
) -> dict[int, int | None]:
    """What `ask` gives to each of as many threads as there are for all to share."""
    threads = int(anyio.to_thread.current_default_thread_limiter().total_tokens)
    all_are_busy = threading.Barrier(threads)
    got: dict[int, int | None] = {}

    def ask_from_thread(wish: int) -> None:
        all_are_busy.wait(PATIENCE_SECONDS)
        got[wish] = anyio.from_thread.run(ask, wish)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for wish in range(threads):
                tasks.start_soon(anyio.to_thread.run_sync, ask_from_thread, wish)
    return got


async def test_all_threads_that_others_share_may_wait_for_a_batch() -> None:
    """They once had to give one back before any batch could begin."""
    work = Work()
    batches = Batches(work, most=9)

    got = await asked_by_all_threads(batches.result_of)

    assert got == served(*range(len(got)))
    assert len(got) >= 40
    assert work.most_at_once == 1


async def test_all_threads_that_others_share_may_wait_for_work_alone() -> None:
    batches = Batches(Work(), most=9)

    async def alone(wish: int) -> int:
        return await batches.alone(lambda: 10 * wish)

    got = await asked_by_all_threads(alone)

    assert got == served(*range(len(got)))
    assert len(got) >= 40
