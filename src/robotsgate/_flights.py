"""Shared work: done once for all callers that need the result, and owned by none.

Think of a flight as a bus: the first caller starts it, others get on, and it arrives
even if everyone has got off on the way.

    begin ──► under way ──► over: with a value, or an error, or cancelled (neither)
                 │  ▲
                 │  └─ callers come and go; none of them ends it
                 └──── `close`, `cancel` and `end` end it early

Each flight is a task of the event loop. A task group would tie its owner to a single
task, and would break generator fixtures and owners that are closed in the order in
which they were opened. This is the only module that uses the tasks of asyncio and trio
directly. `Threads` is the counterpart for blocking calls.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import sys
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import current_token

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from robotsgate._clock import Clock

_LOGGER = logging.getLogger("robotsgate.checker")

_Result = TypeVar("_Result")


class Flight(Generic[_Result]):
    """One piece of work, running or over.

    Attributes:
        flights: the `Flights` that it belongs to.
        scope: cancels it.
        over_event: set when it is over.
        value: its result; `None` until it has succeeded.
        error: the exception that it raised, or `None`.
        callers: the number of callers that are waiting for it.
        task: its task on asyncio, which itself keeps only weak references to tasks.
        call_soon: calls a function in the event loop, from any thread.
    """

    __slots__ = (
        "call_soon",
        "callers",
        "error",
        "flights",
        "over_event",
        "scope",
        "task",
        "value",
    )

    def __init__(self, flights: Flights[_Result]) -> None:
        self.flights: Flights[_Result] = flights
        self.scope: anyio.CancelScope = anyio.CancelScope()
        self.over_event: anyio.Event = anyio.Event()
        self.value: _Result | None = None
        self.error: Exception | None = None
        self.callers: int = 0
        self.task: asyncio.Task[None] | None = None
        self.call_soon: Callable[[Callable[[], object]], object]

    async def result(self) -> _Result:
        """Wait for the result.

        Raises:
            RuntimeError: the owner is closed, or something else cancelled the work.
            Exception: raised by the work.
        """
        self.callers += 1
        try:
            await self.over_event.wait()
        finally:
            self.callers -= 1
        return self._outcome()

    async def result_within(self, seconds: float, clock: Clock) -> _Result:
        """Like `result`, but wait for at most `seconds` by `clock`.

        Raises:
            TimeoutError: there is no result yet.
        """
        self.callers += 1
        try:
            if seconds > 0:
                await clock.wait(seconds, event=self.over_event)
        finally:
            self.callers -= 1
        if not self.over_event.is_set():
            raise TimeoutError
        return self._outcome()

    def _outcome(self) -> _Result:
        if self.error is not None:
            raise self.error
        if self.value is None:
            self.flights.check_open()
            raise RuntimeError(
                f"the work was cancelled, but not by the {self.flights.owner}"
            )
        return self.value


class Flights(Generic[_Result]):
    """The running pieces of work, by key; `len` is their number.

    Attributes:
        owner: the name of the owner in error messages.
        joined: how many callers shared work that another caller had started.
    """

    def __init__(
        self,
        owner: str = "checker",
        *,
        on_end: Callable[[Hashable, Flight[_Result]], None] | None = None,
    ) -> None:
        """Start empty; `on_end` is called with each key and flight that is over."""
        self.owner = owner
        self._on_end = on_end
        self.joined: int = 0
        self._flights: dict[Hashable, Flight[_Result]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._flights)

    def __contains__(self, key: Hashable) -> bool:
        return key in self._flights

    def check_open(self) -> None:
        """Raise if the owner is closed.

        Raises:
            RuntimeError: it is closed.
        """
        if self._is_closed:
            raise RuntimeError(f"the {self.owner} is closed")

    async def result_of(
        self, key: Hashable, work: Callable[[], Awaitable[_Result]]
    ) -> _Result:
        """Return the result of `work`, or of work that is already running for `key`.

        Args:
            key: identifies the result.
            work: computes it; never returns `None`.

        Raises:
            RuntimeError: the owner is closed, or something else cancelled the work.
            Exception: raised by the work.
        """
        is_joined = key in self._flights
        result = await self.begin(key, work).result()
        self.joined += is_joined
        return result

    def begin(
        self, key: Hashable, work: Callable[[], Awaitable[_Result]]
    ) -> Flight[_Result]:
        """Start `work` unless work is already running for `key`; return its flight.

        Raises:
            RuntimeError: the owner is closed.
        """
        self.check_open()
        flight = self._flights.get(key)
        return self._begin(key, work) if flight is None else flight

    def cancel(self, key: Hashable) -> None:
        """Cancel the work for `key`, if any, without waiting.

        Can be called in any thread, as the garbage collector does.
        """
        flight = self._flights.get(key)
        if flight is not None:
            with suppress(RuntimeError):  # the event loop has ended
                flight.call_soon(flight.scope.cancel)

    async def end(self, key: Hashable) -> None:
        """Cancel the work for `key`, if any, and wait until it has ended."""
        flight = self._flights.get(key)
        if flight is not None:
            flight.scope.cancel()
            await flight.over_event.wait()

    def close(self) -> None:
        """Refuse new work, and cancel running work without waiting."""
        self._is_closed = True
        for flight in self._flights.values():
            flight.scope.cancel()

    async def aclose(self) -> None:
        """Refuse new work, and cancel running work. Can be called more than once."""
        self.close()
        for flight in list(self._flights.values()):
            await flight.over_event.wait()

    def _begin(
        self, key: Hashable, work: Callable[[], Awaitable[_Result]]
    ) -> Flight[_Result]:
        flight = self._flights[key] = Flight(self)

        async def fly() -> None:
            try:
                with flight.scope:
                    flight.value = await work()
            except Exception as error:
                flight.error = error
                if not flight.callers:  # nothing else would report the error
                    _LOGGER.exception(
                        "%s failed, and no caller was waiting for it", key
                    )
            finally:
                end()

        def end(*_: object) -> None:
            # On asyncio this runs twice, and the next flight may have started in
            # between.
            if self._flights.get(key) is flight:
                del self._flights[key]
                if self._on_end is not None:
                    self._on_end(key, flight)
            flight.over_event.set()

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


def task_id() -> int:
    """The id of the current task; faster than `anyio.get_current_task`."""
    trio = _trio()
    return id(asyncio.current_task() if trio is None else trio.lowlevel.current_task())


def _trio() -> Any:  # noqa: ANN401 (a module that need not be installed)
    """The module trio if it runs the current task, otherwise `None`."""
    trio = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_task() else None


class Threads:
    """A limited number of threads for one event loop, including abandoned ones.

    A limiter of anyio is not enough: on asyncio it forgets a thread whose caller was
    cancelled, so threads pile up if callers are cancelled again and again.
    """

    def __init__(self, most: int) -> None:
        """Start no thread yet; at most `most` (≥ 1) will run at once."""
        self._places = anyio.CapacityLimiter(most)
        self._no_limit = anyio.CapacityLimiter(math.inf)

    async def result_of(self, work: Callable[[], _Result]) -> _Result:
        """Run `work` in a thread as soon as one is available, and return its result.

        A cancelled caller returns immediately. Work that has not started is then
        dropped; otherwise it continues and occupies its thread until it ends.

        Raises:
            Exception: raised by `work`.
        """
        future: Future[_Result] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():  # pragma: no branch (a race)
                try:
                    future.set_result(work())
                except BaseException as error:  # noqa: BLE001 (raised to the caller)
                    future.set_exception(error)

        await self._places.acquire_on_behalf_of(future)
        try:
            await anyio.to_thread.run_sync(
                run, limiter=self._no_limit, abandon_on_cancel=True
            )
        finally:
            if future.cancel() or future.done():
                self._places.release_on_behalf_of(future)
            else:
                self._release_after(future)
        return future.result()

    def _release_after(self, future: Future[Any]) -> None:
        """Free the slot of `future` when its thread ends."""
        # asyncio and trio each have such a call, which does not block the thread.
        loop: Any = current_token().native_token
        call = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon

        def release(_: object) -> None:
            with suppress(RuntimeError):  # the loop has ended
                call(self._places.release_on_behalf_of, future)

        future.add_done_callback(release)
