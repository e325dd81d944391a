"""Does the work of many tasks in one go, in a worker thread.

Whoever comes while a batch is being worked on joins the next one. A hop to a
thread and a commit cost much more than one more entry does.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio
import anyio.to_thread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_Wish = TypeVar("_Wish")
_Result = TypeVar("_Result")
_Own = TypeVar("_Own")


class _Call(Generic[_Wish, _Result]):
    """What one task wants, and what came of it."""

    def __init__(self, wish: _Wish) -> None:
        self.wish = wish
        self.is_wanted = True
        self.is_done = False
        self.result: _Result | None = None
        self.error: Exception | None = None


class Batches(Generic[_Wish, _Result]):
    """Calls of one function, never two at once, each for as many tasks as wait."""

    def __init__(
        self, work: Callable[[Sequence[_Wish]], Sequence[_Result]], *, most: int
    ) -> None:
        """Work with `work`, in a thread.

        Args:
            work: gives a result for each wish, in their order; what it raises is
                raised by each of the calls.
            most: how many wishes it gets at once, ≥ 1.
        """
        self._work = work
        self._most = most
        self._waiting: deque[_Call[_Wish, _Result]] = deque()
        self._working = anyio.Lock()
        # Of its own: the threads that all share may be waiting for this very loop.
        self._limiter = anyio.CapacityLimiter(1)
        # A task that asyncio itself cancels leaves its thread running.
        self._in_thread = threading.Lock()

    async def result_of(self, wish: _Wish) -> _Result | None:
        """What came of `wish`.

        A wish whose task is cancelled before its batch begins is dropped; later
        it is done all the same, and nobody learns of it.

        Raises:
            Exception: what the work raised.
        """
        call: _Call[_Wish, _Result] = _Call(wish)
        self._waiting.append(call)
        try:
            async with self._working:
                while not call.is_done:
                    await anyio.to_thread.run_sync(
                        self._work_off, limiter=self._limiter
                    )
        finally:
            call.is_wanted = False
        if call.error is not None:
            raise call.error
        return call.result

    async def alone(self, work: Callable[[], _Own]) -> _Own:
        """The result of `work`, done in a thread and between two batches."""
        async with self._working:
            return await anyio.to_thread.run_sync(
                self._alone_in_thread, work, limiter=self._limiter
            )

    # --- in a worker thread ---------------------------------------------------------

    def _work_off(self) -> None:
        """Do what has waited longest."""
        with self._in_thread:
            batch: list[_Call[_Wish, _Result]] = []
            while self._waiting and len(batch) < self._most:
                call = self._waiting.popleft()
                if call.is_wanted:
                    batch.append(call)
            if not batch:  # what was waited for is done by now
                return
            try:
                results = self._work([call.wish for call in batch])
                for call, result in zip(batch, results, strict=True):
                    call.result = result
            except Exception as error:  # noqa: BLE001 (handed to whoever wished)
                for call in batch:
                    call.error = error
            for call in batch:
                call.is_done = True

    def _alone_in_thread(self, work: Callable[[], _Own]) -> _Own:
        with self._in_thread:
            return work()
