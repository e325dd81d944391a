"""Does work that belongs to no caller, once for all callers that want the same.

Each piece of work is a task of the event loop. If a caller gives up, the work goes on
and its result is kept. There may be no caller at all, as when a source is read ahead.
A task group would tie the checker to one task, and would break generator fixtures and
checkers that close in the order in which they were opened.
The only module that knows the tasks of asyncio and of trio.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

_LOGGER = logging.getLogger("robotsgate.checker")

_Result = TypeVar("_Result")


async def until_set(event: anyio.Event) -> None:
    """Return when `event` is set."""
    await event.wait()


def current_task() -> object:
    """The task that calls, as an object that no other task has."""
    trio = _trio()
    return asyncio.current_task() if trio is None else trio.lowlevel.current_task()


class _Flight(Generic[_Result]):
    """One piece of work under way.

    Attributes:
        scope: ends it.
        over_event: set when it has ended.
        early_event: set as soon as there is an early result, and when it has ended.
        early: makes the result for callers that do not wait for the end; `None` until
            there is one.
        result: `None` until the work has succeeded.
        error: what it raised, else `None`.
        waiting: how many callers wait for it.
        waiting_for_end: how many of them take no early result.
        task: its task on asyncio, which itself keeps only weak references to tasks.
        call_soon: calls a function in the event loop; may be called in any thread.
    """

    __slots__ = (
        "call_soon",
        "early",
        "early_event",
        "error",
        "over_event",
        "result",
        "scope",
        "task",
        "waiting",
        "waiting_for_end",
    )

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.over_event = anyio.Event()
        self.early_event = anyio.Event()
        self.early: Callable[[], _Result] | None = None
        self.result: _Result | None = None
        self.error: Exception | None = None
        self.waiting = 0
        self.waiting_for_end = 0
        self.task: asyncio.Task[None] | None = None
        self.call_soon: Callable[[Callable[[], object]], object]


class Flights(Generic[_Result]):
    """Pieces of work under way, by key; `len` tells how many there are.

    Attributes:
        joined: how many callers got the result of work that another one had begun.
    """

    def __init__(self) -> None:
        """Nothing is under way."""
        self._flights: dict[Hashable, _Flight[_Result]] = {}
        self._is_closed = False
        self.joined = 0

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._flights

    def check_open(self) -> None:
        """Refuse to begin anything once the checker is closed.

        Raises:
            RuntimeError: the checker is closed.
        """
        if self._is_closed:
            raise RuntimeError("the checker is closed")

    async def result_of(
        self,
        key: Hashable,
        work: Callable[[], Awaitable[_Result]],
        *,
        takes_early: bool = False,
        wait: Callable[[anyio.Event], Awaitable[object]] = until_set,
    ) -> _Result:
        """The result of `work`, or of the work that is under way for `key` already.

        Args:
            key: names the result.
            work: makes it; never returns `None`.
            takes_early: whether the caller takes the result of `answer_early`.
            wait: returns when the event is set, or when the caller stops waiting.

        Raises:
            TimeoutError: `wait` returned before there was a result.
            RuntimeError: the checker is closed, or something else cancelled the work.
            Exception: what the work raised.
        """
        self.check_open()
        flight = self._flights.get(key)
        is_first = flight is None
        if flight is None:
            flight = self._begin(key, work)
        flight.waiting += 1
        flight.waiting_for_end += not takes_early
        try:
            await wait(flight.early_event if takes_early else flight.over_event)
        finally:
            flight.waiting -= 1
            flight.waiting_for_end -= not takes_early
        if not flight.over_event.is_set():
            if takes_early and flight.early is not None:
                return flight.early()
            raise TimeoutError
        if flight.error is not None:
            raise flight.error
        if flight.result is None:
            self.check_open()
            raise RuntimeError("the fetch was cancelled, and not by the checker")
        self.joined += not is_first
        return flight.result

    def begin(self, key: Hashable, work: Callable[[], Awaitable[_Result]]) -> None:
        """Begin `work`, unless work is under way for `key`; do not wait for it.

        Raises:
            RuntimeError: the checker is closed.
        """
        self.check_open()
        if key not in self._flights:
            self._begin(key, work)

    def answer_early(self, key: Hashable, early: Callable[[], _Result]) -> bool:
        """Give an early result to callers that take one, while the work goes on.

        Args:
            key: names the result.
            early: makes it for each of them, and for those that call later.

        Returns:
            Whether other callers wait for the end.
        """
        flight = self._flights[key]
        flight.early = early
        flight.early_event.set()
        return flight.waiting_for_end > 0

    def cancel(self, key: Hashable) -> None:
        """End soon what is under way for `key`, if anything.

        May be called in any thread: the garbage collector does so.
        """
        flight = self._flights.get(key)
        if flight is not None:
            with suppress(RuntimeError):  # the event loop has ended
                flight.call_soon(flight.scope.cancel)

    async def end(self, key: Hashable) -> None:
        """End what is under way for `key`, if anything, and wait until it has ended."""
        flight = self._flights.get(key)
        if flight is not None:
            flight.scope.cancel()
            await flight.over_event.wait()

    def close(self) -> None:
        """Let nothing more begin, and let what is under way end soon."""
        self._is_closed = True
        for flight in self._flights.values():
            flight.scope.cancel()

    async def aclose(self) -> None:
        """End what is under way; may be called more than once."""
        self.close()
        for flight in list(self._flights.values()):
            await flight.over_event.wait()

    def _begin(
        self, key: Hashable, work: Callable[[], Awaitable[_Result]]
    ) -> _Flight[_Result]:
        flight = self._flights[key] = _Flight[_Result]()

        async def fly() -> None:
            try:
                with flight.scope:
                    flight.result = await work()
            except Exception as error:
                flight.error = error
                if not flight.waiting:  # nothing else would tell of the mistake
                    _LOGGER.exception("%s failed, and no caller waits for it", key)
            finally:
                end()

        def end(*_: object) -> None:
            if self._flights.get(key) is flight:
                del self._flights[key]
            flight.over_event.set()
            flight.early_event.set()

        trio = _trio()
        if trio is not None:
            context = contextvars.copy_context()
            flight.call_soon = trio.lowlevel.current_trio_token().run_sync_soon
            trio.lowlevel.spawn_system_task(fly, context=context)
        else:
            loop = asyncio.get_running_loop()
            flight.call_soon = loop.call_soon_threadsafe
            flight.task = loop.create_task(fly())
            # A task that is cancelled before its first step never enters its `try`.
            flight.task.add_done_callback(end)
        return flight


def _trio() -> Any:  # noqa: ANN401 (a module that need not be installed)
    """The module trio if it runs the task that calls, else `None`."""
    trio = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_task() else None
