"""Makes blocking calls in daemon threads: looking up names, FTP, loading certificates.

A thread starts when a call needs one, and ends when it has been idle for a while. A
caller that gives up does not end a running call, which occupies its thread until it
returns:

    begin ──► queued ──► running ──► returned
                 │           └─ its caller gives up: the result is dropped
                 └─ its caller gives up or has waited too long: it never runs

Unlike in `anyio.to_thread`, the limit includes threads whose callers have given up. A
call also takes half the time.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio

from robotsgate._flights import current_call_soon
from robotsgate.caching._outcome import FailureKind
from robotsgate.fetching._fetcher import FetchFailedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_Result = TypeVar("_Result")


class DaemonThreads:
    """A limited number of threads; they never keep the interpreter from exiting."""

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

        Args:
            work: the blocking call.
            seconds: how long to wait for a thread.

        Raises:
            FetchFailedError: there was no thread in time, or none can be started.
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
                raise FetchFailedError(
                    "no thread was free in time", kind=FailureKind.LOCAL
                )
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
        except RuntimeError as error:  # the system's limit, or the interpreter exits
            if self._count:
                return False
            raise FetchFailedError(str(error), kind=FailureKind.LOCAL) from error
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
    """A blocking call for a task of the current event loop.

    Attributes:
        begun_event: set when the call begins; `None` if a thread was free for it.
    """

    def __init__(self, work: Callable[[], _Result]) -> None:
        self.begun_event: anyio.Event | None = None
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
