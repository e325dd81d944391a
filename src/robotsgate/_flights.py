"""Shared work: done once for all callers that need it, and owned by none of them.

Think of a flight as a bus: the first caller starts it, others get on, and it arrives
even if everyone has got off on the way.

    begin ──► under way ──► over: with a value, or an error, or cancelled (neither)
                 │  ▲
                 │  └─ callers come and go; none of them ends it
                 └──── `close`, `cancel` and `end` end it early

Each flight is an event-loop task. A task group would tie its owner to a single task,
which breaks generator fixtures and owners that are closed in the order they were
opened. No other module below the integrations uses the loop's tasks directly. A turn is
ended by `finish`, in a task of its own that its caller always waits for.

The counterpart for blocking calls is `Threads`, which uses anyio's threads. A call that
may hang needs `DaemonThreads`, which never keep the interpreter from exiting.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
import os
import sys
import threading
from collections import deque
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    from robotsgate._clock import Clock

_LOGGER = logging.getLogger("robotsgate.checker")

_Result = TypeVar("_Result")

# For `FairLoop`. A lookup takes 2 µs, but 16 ms with hostile rules.
_MOST_ITEMS_AT_ONCE = 500
_LONGEST_HOLD_SECONDS = 0.005


class Flight(Generic[_Result]):
    """One piece of work, running or finished.

    Attributes:
        value: the result; `None` until the work has succeeded.
        error: the exception that the work raised, or `None`.
        callers: the number of callers waiting for the result.
        interim: what is known before the end of the work; `None` until it is set.
        task: the asyncio task, kept here because asyncio keeps only weak references.
        call_soon: schedules a call on the event loop, from any thread.
    """

    __slots__ = (
        "call_soon",
        "callers",
        "error",
        "flights",
        "interim",
        "interim_event",
        "over_event",
        "scope",
        "task",
        "value",
    )

    def __init__(
        self, flights: Flights[_Result], call_soon: Callable[..., object]
    ) -> None:
        self.flights: Flights[_Result] = flights
        self.scope: anyio.CancelScope = anyio.CancelScope()
        self.over_event: anyio.Event = anyio.Event()
        self.value: _Result | None = None
        self.error: Exception | None = None
        self.callers: int = 0
        self.interim: object = None
        self.interim_event: anyio.Event | None = None  # of those who wait for it
        self.task: asyncio.Task[None] | None = None
        self.call_soon: Callable[..., object] = call_soon

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

    async def next_interim(self) -> object:
        """Wait for `interim`; `None` if it is there already, or the work ends first."""
        if self.interim is not None or self.over_event.is_set():
            return None
        self.interim_event = self.interim_event or anyio.Event()
        self.callers += 1
        try:
            await self.interim_event.wait()
        finally:
            self.callers -= 1
        return self.interim

    async def result_within(self, seconds: float, clock: Clock) -> _Result:
        """Like `result`, but wait for at most `seconds`, as measured by `clock`.

        Raises:
            TimeoutError: no result arrived in time.
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
    """All running work, by key; `len` is the number of running flights.

    Attributes:
        owner: the owner's name in error messages.
        joined: how many callers joined work that another caller had started.
        first_loop: identifies the event loop of the owner; empty before any work.
    """

    def __init__(
        self,
        owner: str = "checker",
        *,
        others: Flights[Any] | None = None,
        on_end: Callable[[Hashable, Flight[_Result]], None] | None = None,
    ) -> None:
        """Start empty.

        `others` are other flights of the same owner, which share its event loop.
        `on_end` is called with the key and flight when work ends.
        """
        self.owner = owner
        self._on_end = on_end
        self.joined: int = 0
        self._flights: dict[Hashable, Flight[_Result]] = {}
        self.first_loop: dict[str, object] = {} if others is None else others.first_loop
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._flights)

    def set_interim(self, key: Hashable, interim: object) -> None:
        """Set the `interim` of the running work for `key`, and wake those waiting."""
        flight = self._flights[key]
        flight.interim = interim
        if flight.interim_event is not None:
            flight.interim_event.set()

    def check_open(self) -> None:
        """Raise a RuntimeError if the owner is closed."""
        if self._is_closed:
            raise RuntimeError(f"the {self.owner} is closed")

    def check_loop(self) -> Callable[..., object]:
        """Raise in every event loop but the first one that called this.

        An event of one loop never wakes a task in another. This holds even if the first
        loop has ended, because when it ends is often a matter of timing.

        Returns:
            `current_call_soon()`.

        Raises:
            RuntimeError: the owner belongs to another event loop.
        """
        here = current_call_soon()
        # In one step, because the loops may be in different threads.
        if self.first_loop.setdefault("call_soon", here) != here:
            raise RuntimeError(
                f"expected each event loop to have its own {self.owner}, got one that"
                " belongs to another loop"
            )
        return here

    async def result_of(
        self, key: Hashable, work: Callable[[], Awaitable[_Result]]
    ) -> _Result:
        """Return the result of `work`, or of any work already running for `key`.

        `work` must not return `None`.

        Raises:
            RuntimeError: the owner is closed or belongs to another event loop, or
                something else cancelled the work.
            Exception: raised by the work.
        """
        is_joined = key in self._flights
        result = await self.begin(key, work).result()
        self.joined += is_joined
        return result

    def begin(
        self, key: Hashable, work: Callable[[], Awaitable[_Result]]
    ) -> Flight[_Result]:
        """Start `work` unless work for `key` is already running; return the flight.

        Raises:
            RuntimeError: the owner is closed, or belongs to another event loop.
        """
        self.check_open()
        call_soon = self.check_loop()
        return self._flights.get(key) or self._begin(key, work, call_soon)

    def cancel(self, key: Hashable) -> None:
        """Cancel the work for `key`, if any, without waiting for it to end.

        Can be called from any thread, because the garbage collector may call it.
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

    async def settle(self, seconds: float, clock: Clock) -> None:
        """Wait until all running work is over, but for at most `seconds`."""
        deadline = clock.monotonic() + seconds
        for flight in list(self._flights.values()):
            await clock.wait(deadline - clock.monotonic(), event=flight.over_event)

    def close(self) -> None:
        """Refuse new work, and cancel running work without waiting for it to end."""
        self._is_closed = True
        for flight in self._flights.values():
            flight.scope.cancel()

    async def aclose(self) -> None:
        """Refuse new work, cancel running work, and wait for it to end; idempotent."""
        self.close()
        for flight in list(self._flights.values()):
            await flight.over_event.wait()

    def _begin(
        self,
        key: Hashable,
        work: Callable[[], Awaitable[_Result]],
        call_soon: Callable[..., object],
    ) -> Flight[_Result]:
        flight = self._flights[key] = Flight(self, call_soon)

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
            # On asyncio, this runs twice, and the next flight may have started in
            # between.
            if self._flights.get(key) is flight:
                del self._flights[key]
                if self._on_end is not None:
                    self._on_end(key, flight)
            flight.over_event.set()
            if flight.interim_event is not None:
                flight.interim_event.set()

        trio = _trio()
        if trio is not None:
            context = contextvars.copy_context()
            trio.lowlevel.spawn_system_task(fly, context=context)
        else:
            flight.task = asyncio.get_running_loop().create_task(fly())
            # A task cancelled before its first step never enters its `try`.
            flight.task.add_done_callback(end)
        return flight


async def finish(work: Callable[[], Awaitable[_Result]]) -> _Result:
    """Do `work`, and let the caller be cancelled only once that is over.

    In the caller's task, a shielded scope is not enough: on asyncio, `task.cancel`
    reaches through it. It is enough in a flight, which only its scope cancels.
    """
    with anyio.CancelScope(shield=True):
        if _trio() is None:
            task = asyncio.ensure_future(work())
            await _end_of(task)
            result = task.result()
        else:
            result = await work()
    return result


async def _end_of(task: asyncio.Future[Any]) -> None:
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


class FairLoop:
    """A loop over many items that lets other tasks run from time to time."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._items = 0
        self._ends_at = monotonic() + _LONGEST_HOLD_SECONDS

    def is_due(self) -> bool:
        """Whether other tasks should run after this item.

        This is after many items, or after a few milliseconds.
        """
        self._items += 1
        return self._items >= _MOST_ITEMS_AT_ONCE or self._monotonic() >= self._ends_at

    async def let_others_run(self) -> None:
        await anyio.lowlevel.checkpoint()
        self._items = 0
        self._ends_at = self._monotonic() + _LONGEST_HOLD_SECONDS

    async def after_item(self) -> bool:
        """Let other tasks run if it is time to, and return whether it was."""
        is_due = self.is_due()
        if is_due:
            await self.let_others_run()
        return is_due


def current_task() -> object:
    """The current task, not its id, which a later task may have as well."""
    trio = _trio()
    return asyncio.current_task() if trio is None else trio.lowlevel.current_task()


def _trio() -> Any:  # noqa: ANN401 (trio may not be installed)
    """The trio module if trio runs the current task, otherwise `None`."""
    trio = sys.modules.get("trio")
    return trio if trio is not None and trio.lowlevel.in_trio_task() else None


def asyncio_loop() -> asyncio.AbstractEventLoop | None:
    """The running event loop, or `None` on trio."""
    return asyncio.get_running_loop() if _trio() is None else None


def current_call_soon() -> Callable[..., object]:
    """The current event loop's method that schedules a call from any thread."""
    trio = _trio()
    if trio is None:
        return asyncio.get_running_loop().call_soon_threadsafe
    method: Callable[..., object] = trio.lowlevel.current_trio_token().run_sync_soon
    return method


async def in_thread(
    work: Callable[[], _Result], *, limiter: anyio.CapacityLimiter
) -> _Result:
    """Do slow `work` in a worker thread, or here if no thread can be started."""
    try:
        return await anyio.to_thread.run_sync(work, limiter=limiter)
    except RuntimeError as error:
        if not is_no_thread(error):
            raise
    return work()


def is_no_thread(error: BaseException) -> bool:
    """Whether `error` says that the system could not start a thread."""
    return isinstance(error, RuntimeError) and "new thread" in str(error)


class Threads:
    """A limited number of threads for one event loop, abandoned threads included.

    An anyio limiter is not enough: on asyncio, it forgets a thread whose caller was
    cancelled, so threads pile up if many callers are cancelled.
    """

    def __init__(self, most: int) -> None:
        """Allow at most `most` (≥ 1) threads at once; no thread is started yet."""
        self._places = anyio.CapacityLimiter(most)
        self._no_limit = anyio.CapacityLimiter(math.inf)

    async def result_of(self, work: Callable[[], _Result]) -> _Result:
        """Run `work` in a thread as soon as one is available, and return its result.

        If the caller is cancelled, this returns immediately: work that has not started
        is dropped; running work occupies its thread until it ends.
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
        """Free the slot that `future` occupies when its thread ends."""
        call = current_call_soon()

        def release(_: object) -> None:
            with suppress(RuntimeError):  # the loop has ended
                call(self._places.release_on_behalf_of, future)

        future.add_done_callback(release)


class DaemonThreads:
    """A limited number of threads, started when needed and ended when idle for a while.

    A caller that gives up does not end a running call, which occupies its thread until
    it returns:

        begin ──► queued ──► running ──► returned
                     │           └─ its caller gives up: the result is dropped
                     └─ its caller gives up or has waited too long: it never runs

    A call takes half as long as in `anyio.to_thread`.
    """

    def __init__(self, most: int, *, idle_seconds: float = 10) -> None:
        """Allow at most `most` (≥ 1) threads at once; no thread is started yet."""
        self._most = most
        self._idle_seconds = idle_seconds
        self._start_afresh()

    def _start_afresh(self) -> None:
        self._process_id = os.getpid()
        self._queue: deque[_Call[Any]] = deque()
        self._changed = threading.Condition()
        self._count = self._idle = 0

    async def begin(
        self, work: Callable[[], _Result], seconds: float
    ) -> Awaitable[_Result]:
        """Wait until a thread is free to call `work`; the result can then be awaited.

        Raises:
            TimeoutError: no thread was free within `seconds`.
            RuntimeError: no thread can be started.
        """
        call = _Call(work)
        self._put(call)
        if call.begun_event is not None:
            try:
                with anyio.move_on_after(seconds):
                    await call.begun_event.wait()
            finally:
                has_begun = not self._withdraw(call)
            if not has_begun:
                raise TimeoutError
        return call.result()

    def _put(self, call: _Call[Any]) -> None:
        if self._process_id != os.getpid():  # a fork copies no threads
            self._start_afresh()
        with self._changed:
            if len(self._queue) >= self._idle and not self._start_thread():
                call.begun_event = anyio.Event()
            self._queue.append(call)
            self._changed.notify()

    def _start_thread(self) -> bool:
        """Start a thread if possible; return whether there is a new one."""
        if self._count == self._most:
            return False
        try:
            threading.Thread(target=self._work, name="robotsgate", daemon=True).start()
        except RuntimeError:  # the system's limit, or the interpreter exits
            if self._count:
                return False
            raise
        self._count += 1
        return True

    def _withdraw(self, call: _Call[Any]) -> bool:
        """Remove `call` from the queue; whether it was still there."""
        with self._changed, suppress(ValueError):
            self._queue.remove(call)
            return True
        return False

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                has_call = self._changed.wait_for(
                    lambda: self._queue, self._idle_seconds
                )
                self._idle -= 1
                if not has_call:
                    self._count -= 1
                    return
                call = self._queue.popleft()
            call.run()
            del call  # with all that it refers to, before the next wait


class _Call(Generic[_Result]):
    """A blocking call for a task of the current event loop."""

    def __init__(self, work: Callable[[], _Result]) -> None:
        self.begun_event: anyio.Event | None = None  # none if a thread was free for it
        self._work = work
        self._call_soon = current_call_soon()
        self._returned_event = anyio.Event()
        self._error: BaseException | None = None
        self._value: _Result

    def run(self) -> None:
        if self.begun_event is not None:
            self._set(self.begun_event)
        try:
            self._value = self._work()
        except BaseException as error:  # noqa: BLE001 (raised to the caller)
            self._error = error
        self._set(self._returned_event)

    def _set(self, event: anyio.Event) -> None:
        with suppress(RuntimeError):  # the event loop has ended
            self._call_soon(event.set)

    async def result(self) -> _Result:
        await self._returned_event.wait()
        if self._error is not None:
            raise self._error
        return self._value
