"""Runs what blocks in few threads, and lets each caller give up at once.

On asyncio a limiter of anyio forgets a thread whose caller has given up, so callers
that give up again and again pile up threads.
"""

from __future__ import annotations

import math
from concurrent.futures import Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from anyio.lowlevel import current_token

if TYPE_CHECKING:
    from collections.abc import Callable

_Result = TypeVar("_Result")


class Threads:
    """At most so many threads at work for one event loop, abandoned ones included."""

    def __init__(self, most: int) -> None:
        """Start none yet; `most` > 0."""
        self._places = anyio.CapacityLimiter(most)
        self._no_limit = anyio.CapacityLimiter(math.inf)

    async def result_of(self, work: Callable[[], _Result]) -> _Result:
        """What `work` gives, in a thread, as soon as there is a place for one.

        A caller that is cancelled leaves at once. Work that has not begun is then
        dropped; other work goes on and keeps its place until it ends.

        Raises:
            Exception: what `work` raises.
        """
        future: Future[_Result] = Future()

        def run() -> None:
            if future.set_running_or_notify_cancel():
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
        """Give the place of `future` back when its thread ends."""
        # Both loops have such a call, which never blocks the thread.
        loop: Any = current_token().native_token
        call = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon

        def release(_: object) -> None:
            with suppress(RuntimeError):  # the loop has ended
                call(self._places.release_on_behalf_of, future)

        future.add_done_callback(release)
