from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading

import anyio
import anyio.lowlevel
import pytest

from robotsgate._flights import Flights, Threads, finish, in_thread
from tests.cancellation import cancelled_at, each_way
from tests.checking.builders import let_others_run

pytestmark = pytest.mark.anyio


class Work:
    """Waits for its gate, then returns or raises its result."""

    def __init__(self, result: object) -> None:
        self.gate = anyio.Event()
        self.begun = 0
        self.ended = 0
        self._result = result

    async def __call__(self) -> object:
        self.begun += 1
        try:
            await self.gate.wait()
        finally:
            self.ended += 1
        if isinstance(self._result, Exception):
            raise self._result
        return self._result


class Callers:
    """Calls `result_of` in tasks, and records the results and errors."""

    def __init__(self, flights: Flights[object], work: Work) -> None:
        self.results: list[object] = []
        self.errors: list[Exception] = []
        self._flights = flights
        self._work = work

    async def ask(self) -> None:
        try:
            self.results.append(await self._flights.result_of("key", self._work))
        except Exception as error:  # noqa: BLE001 (checked by the test)
            self.errors.append(error)


@pytest.mark.parametrize("result", ["result", False, 0])
async def test_100_callers_share_one_piece_of_work(result: object) -> None:
    flights: Flights[object] = Flights()
    work = Work(result)
    callers = Callers(flights, work)

    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(callers.ask)
        await let_others_run()
        under_way = len(flights)
        work.gate.set()

    assert callers.results == [result] * 100
    assert (work.begun, under_way, len(flights), flights.joined) == (1, 1, 0, 99)


async def test_result_is_not_kept_for_later_callers() -> None:
    flights: Flights[object] = Flights()
    one, other = Work("one"), Work("other")
    one.gate.set()
    other.gate.set()

    results = [await flights.result_of("key", work) for work in (one, other)]

    assert results == ["one", "other"]
    assert flights.joined == 0


async def test_different_keys_do_not_wait_for_each_other() -> None:
    flights: Flights[object] = Flights()
    slow, quick = Work("slow"), Work("quick")
    quick.gate.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(flights.result_of, "slow", slow)
        await let_others_run()
        result = await flights.result_of("quick", quick)
        under_way = len(flights)
        slow.gate.set()

    assert (result, under_way) == ("quick", 1)


async def test_error_reaches_every_caller_and_the_next_call_starts_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flights: Flights[object] = Flights()
    error = KeyError("the client is closed")
    work = Work(error)
    callers = Callers(flights, work)

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(callers.ask)
        await let_others_run()
        work.gate.set()
    await callers.ask()

    assert callers.errors == [error] * 4
    assert (work.begun, len(flights)) == (2, 0)
    assert not caplog.records  # every caller got the error


@pytest.mark.parametrize(
    "waiting", [0, 10], ids=["the only caller", "the first of eleven"]
)
async def test_cancelling_a_caller_does_not_cancel_the_work(waiting: int) -> None:
    flights: Flights[object] = Flights()
    work = Work("result")
    callers = Callers(flights, work)

    async with anyio.create_task_group() as others:
        async with anyio.create_task_group() as first:
            first.start_soon(callers.ask)
            await let_others_run()
            for _ in range(waiting):
                others.start_soon(callers.ask)
            await let_others_run()
            first.cancel_scope.cancel()
        assert (len(flights), work.ended) == (1, 0)
        others.start_soon(callers.ask)  # joins work that may have no other caller
        await let_others_run()
        work.gate.set()

    assert callers.results == ["result"] * (waiting + 1)
    assert work.begun == 1


async def test_flight_started_as_an_earlier_one_ends_is_kept() -> None:
    """On asyncio, the earlier task's callback runs one step after the task ends."""
    flights: Flights[object] = Flights()
    first, second = Work("first"), Work("second")
    first.gate.set()

    async def ask_twice() -> None:
        await flights.result_of("key", first)
        flights.begin("key", second)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask_twice)
    await let_others_run()

    assert len(flights) == 1
    await flights.aclose()


async def test_closing_ends_the_work_and_its_callers_and_nothing_starts_again() -> None:
    flights: Flights[object] = Flights()
    work = Work("result")
    callers = Callers(flights, work)

    async with anyio.create_task_group() as tasks:
        for _ in range(100):
            tasks.start_soon(callers.ask)
        await let_others_run()
        await flights.aclose()
        ended_at_close = work.ended

    assert (ended_at_close, len(flights), flights.joined) == (1, 0, 0)
    assert [str(error) for error in callers.errors] == ["the checker is closed"] * 100
    assert all(type(error) is RuntimeError for error in callers.errors)
    await flights.aclose()
    with pytest.raises(RuntimeError, match="the checker is closed"):
        await flights.result_of("key", work)
    assert work.begun == 1


async def test_closing_ends_work_that_has_not_run_yet() -> None:
    flights: Flights[object] = Flights()
    work = Work("result")
    callers = Callers(flights, work)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(callers.ask)
        while not len(flights):
            await anyio.lowlevel.checkpoint()
        await flights.aclose()

    assert work.begun == work.ended
    assert (len(flights), len(callers.errors)) == (0, 1)


async def test_work_that_closes_its_own_flights_is_ended() -> None:
    flights: Flights[object] = Flights()

    async def close() -> object:
        await flights.aclose()
        return "not reached"

    with pytest.raises(RuntimeError, match="the checker is closed"):
        await flights.result_of("key", close)


VARIABLE = contextvars.ContextVar("VARIABLE", default="nobody's")


async def test_work_sees_the_context_variables_of_its_first_caller() -> None:
    flights: Flights[str] = Flights()

    async def look() -> str:
        await anyio.lowlevel.checkpoint()
        return VARIABLE.get()

    VARIABLE.set("the first caller's")

    assert await flights.result_of("key", look) == "the first caller's"


@pytest.mark.parametrize("key", ["same", "other"])
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("has_ended", [True, False], ids=["ended", "running"])
def test_work_in_a_second_event_loop_raises(
    backend: str, key: str, *, has_ended: bool
) -> None:
    """Only joining work of a running loop used to raise."""
    flights: Flights[object] = Flights()

    async def begin() -> None:
        flights.begin("same", anyio.sleep_forever)

    async def work() -> None:
        with anyio.fail_after(10):
            await flights.result_of(key, anyio.sleep_forever)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(begin())
    try:
        if has_ended:
            loop.run_until_complete(flights.end("same"))
        with pytest.raises(RuntimeError, match="to have its own checker, got one that"):
            anyio.run(work, backend=backend)
    finally:
        loop.run_until_complete(flights.aclose())
        loop.close()


ENDS_WITHOUT_ACLOSE = """
import sys
import anyio
from robotsgate._flights import Flights

async def main():
    flights = Flights()
    async def hang():
        try:
            await anyio.sleep_forever()
        finally:
            print("ended")
    with anyio.move_on_after(0.01):
        await flights.result_of("key", hang)

anyio.run(main, backend=sys.argv[1])
print("trio" in sys.modules)
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_end_of_the_event_loop_ends_unclosed_work_silently(
    backend: str,
) -> None:
    command = [sys.executable, "-W", "error", "-c", ENDS_WITHOUT_ACLOSE, backend]

    process = subprocess.run(  # noqa: S603 (this very interpreter)
        command, capture_output=True, text=True, timeout=60, check=False
    )

    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.split() == ["ended", str(backend == "trio")]


async def test_error_without_a_waiting_caller_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Otherwise, a crawler that always times out would never see the error."""
    flights: Flights[str] = Flights()
    gate = anyio.Event()

    async def fail() -> str:
        await gate.wait()
        raise TypeError("a mistake")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(flights.result_of, "key", fail)
        await let_others_run()
        tasks.cancel_scope.cancel()
    gate.set()
    while len(flights):
        await anyio.lowlevel.checkpoint()

    (record,) = caplog.records
    assert record.getMessage() == "key failed, and no caller was waiting for it"
    assert record.exc_info is not None


@each_way
@pytest.mark.parametrize("number", [1, 2])
async def test_caller_is_cancelled_only_after_its_work(way: str, number: int) -> None:
    steps = []

    async def work() -> str:
        for step in range(3):
            await anyio.lowlevel.checkpoint()
            steps.append(step)
        return "result"

    async def call() -> None:
        assert await finish(work) == "result"
        await anyio.lowlevel.checkpoint()

    assert await cancelled_at(number, call, way=way)
    assert steps == [0, 1, 2]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_caller_may_be_cancelled_many_times_during_its_work() -> None:
    work = Work("result")
    task = asyncio.create_task(finish(work))
    for _ in range(2_000):  # as by a loop that waits for the task to end
        await asyncio.sleep(0)  # noqa: TID251 (one step of this loop)
        task.cancel()
    await let_others_run()
    assert not task.done()

    work.gate.set()
    await asyncio.wait([task])

    assert (task.cancelled(), work.ended) == (True, 1)


async def test_error_of_finished_work_is_raised() -> None:
    work = Work(ValueError("a mistake"))
    work.gate.set()

    with pytest.raises(ValueError, match="a mistake"):
        await finish(work)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_work_cancelled_before_its_first_step_is_removed() -> None:
    """As at the end of `asyncio.run`, which cancels every task."""
    flights: Flights[str] = Flights()
    others = asyncio.all_tasks()
    caller = asyncio.create_task(flights.result_of("key", Work("result")))
    await asyncio.sleep(0)  # noqa: TID251 (one step of this loop)
    for task in asyncio.all_tasks() - others:
        task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await caller
    await flights.aclose()

    assert len(flights) == 0


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_work_cancelled_from_outside_raises() -> None:
    flights: Flights[str] = Flights()

    async def work() -> str:
        raise asyncio.CancelledError

    with pytest.raises(RuntimeError, match="but not by the checker"):
        await flights.result_of("key", work)


async def test_error_in_a_thread_is_raised_to_its_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        await Threads(1).result_of(lambda: 1 / 0)


async def test_slow_work_is_done_without_a_thread_if_none_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("anyio.to_thread.run_sync", refuse)

    thread = await in_thread(threading.get_ident, limiter=anyio.CapacityLimiter(1))

    assert thread == threading.get_ident()


async def test_error_of_slow_work_is_raised() -> None:
    calls = []

    def fail() -> None:
        calls.append("called")
        raise RuntimeError("the database is closed")

    with pytest.raises(RuntimeError, match="the database is closed"):
        await in_thread(fail, limiter=anyio.CapacityLimiter(1))
    assert calls == ["called"]
