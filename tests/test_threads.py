from __future__ import annotations

import math
import subprocess
import sys
import threading
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

import anyio
import pytest

from robotsgate._flights import DaemonThreads
from tests.fetching.fetches import PATIENCE_SECONDS
from tests.systems import need_posix

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anyio.abc import TaskGroup

pytestmark = pytest.mark.anyio

_Result = TypeVar("_Result")


async def result_of(
    threads: DaemonThreads,
    work: Callable[[], _Result],
    *,
    seconds: float = PATIENCE_SECONDS,
) -> _Result:
    return await (await threads.begin(work, seconds))


class Hanging:
    """A blocking call that returns its thread once it is told to."""

    def __init__(self) -> None:
        self._may_return = threading.Event()

    def __call__(self) -> threading.Thread:
        assert self._may_return.wait(PATIENCE_SECONDS)
        return threading.current_thread()

    def end(self) -> None:
        self._may_return.set()

    async def occupy(self, threads: DaemonThreads, tasks: TaskGroup) -> None:
        """Occupy a thread until `end`, for a caller that ends with `tasks`."""
        running = await threads.begin(self, math.inf)

        async def wait() -> None:
            await running

        tasks.start_soon(wait)


@pytest.fixture
async def hanging() -> AsyncIterator[Hanging]:
    call = Hanging()
    yield call
    call.end()


def refuse(*_: object) -> NoReturn:
    raise RuntimeError("can't start new thread")


async def test_call_returns_its_result_from_a_daemon_thread() -> None:
    thread = await result_of(DaemonThreads(1), threading.current_thread)

    assert thread.daemon
    assert thread is not threading.current_thread()


@pytest.mark.parametrize("error", [OSError("no"), SystemExit(1)], ids=repr)
async def test_call_raises_its_error_and_the_thread_lives_on(
    error: BaseException,
) -> None:
    def fail() -> NoReturn:
        raise error

    threads = DaemonThreads(1)

    with pytest.raises(type(error)) as caught:
        await result_of(threads, fail)

    assert caught.value is error
    assert await result_of(threads, lambda: 1) == 1


async def test_call_beyond_the_limit_begins_when_a_thread_is_free(
    hanging: Hanging,
) -> None:
    threads, results = DaemonThreads(2), []

    async def call() -> None:
        results.append(await result_of(threads, hanging))

    async with anyio.create_task_group() as tasks:
        for _ in range(6):
            tasks.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        hanging.end()

    assert len(results) == 6
    assert len(set(results)) <= 2


async def test_idle_thread_is_used_again() -> None:
    threads = DaemonThreads(100)

    with anyio.fail_after(PATIENCE_SECONDS):
        used = {await result_of(threads, threading.current_thread) for _ in range(100)}

    # A thread may not be idle again yet when the next call begins.
    assert len(used) < 50


async def test_thread_ends_when_it_has_been_idle() -> None:
    threads = DaemonThreads(1, idle_seconds=0)

    first = await result_of(threads, threading.current_thread)
    first.join(PATIENCE_SECONDS)

    assert not first.is_alive()
    assert await result_of(threads, threading.current_thread) is not first


async def test_queued_call_whose_caller_gave_up_never_begins(hanging: Hanging) -> None:
    threads, begun = DaemonThreads(1), []

    async with anyio.create_task_group() as tasks:
        await hanging.occupy(threads, tasks)
        with anyio.move_on_after(0):
            await result_of(threads, partial(begun.append, "given up"))
        hanging.end()
        await result_of(threads, partial(begun.append, "next"))

    assert begun == ["next"]


async def test_queued_call_that_has_no_thread_in_time_fails_and_never_begins(
    hanging: Hanging,
) -> None:
    threads, begun = DaemonThreads(1), []

    async with anyio.create_task_group() as tasks:
        await hanging.occupy(threads, tasks)
        with pytest.raises(TimeoutError):
            await result_of(threads, partial(begun.append, "late"), seconds=0)
        hanging.end()
        await result_of(threads, partial(begun.append, "next"))

    assert begun == ["next"]


async def test_call_waits_if_no_further_thread_can_be_started(
    hanging: Hanging, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = DaemonThreads(2)

    async with anyio.create_task_group() as tasks:
        await hanging.occupy(threads, tasks)
        monkeypatch.setattr(threading.Thread, "start", refuse)
        tasks.start_soon(result_of, threads, lambda: 1)
        await anyio.wait_all_tasks_blocked()
        hanging.end()


async def test_call_fails_if_no_thread_can_be_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = DaemonThreads(1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)

        with pytest.raises(RuntimeError, match="can't start new thread"):
            await result_of(threads, lambda: 1)

    assert await result_of(threads, lambda: 1) == 1


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_result_for_an_event_loop_that_has_ended_is_dropped(backend: str) -> None:
    """An exception in the thread would be a warning, which fails the test."""
    threads, hanging = DaemonThreads(1), Hanging()

    async def give_up() -> None:
        with anyio.move_on_after(0):
            await result_of(threads, hanging)

    anyio.run(give_up, backend=backend)
    hanging.end()

    assert anyio.run(result_of, threads, lambda: 1, backend=backend) == 1


FORKS = """
import os, sys, threading
import anyio
from robotsgate._flights import DaemonThreads

threads = DaemonThreads(1)

async def result_of(work, seconds):
    with anyio.move_on_after(seconds):
        return await (await threads.begin(work, 10))

anyio.run(result_of, threading.Event().wait, 0.01, backend=sys.argv[1])
child = os.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
sys.exit(anyio.run(result_of, lambda: "done", 10, backend=sys.argv[1]) != "done")
"""


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_child_process_has_its_own_threads(backend: str) -> None:
    """In its parent, all threads are occupied."""
    need_posix()
    command = [sys.executable, "-c", FORKS, backend]

    process = subprocess.run(  # noqa: S603 (this very interpreter)
        command, timeout=60, check=False
    )

    assert process.returncode == 0
