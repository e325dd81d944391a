"""Runs blocking calls in a few threads, and lets each caller give up at once.

A limiter of anyio is not enough: on asyncio it forgets a thread whose caller has given
up, so threads pile up if callers give up again and again.
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
    """A limited number of threads for one event loop; abandoned ones count, too."""

    def __init__(self, most: int) -> None:
        """Start no thread yet; at most `most` (≥ 1) will work at once."""
        self._places = anyio.CapacityLimiter(most)
        self._no_limit = anyio.CapacityLimiter(math.inf)

    async def result_of(self, work: Callable[[], _Result]) -> _Result:
        """The result of `work`, which runs in a thread as soon as one may start.

        A caller that is cancelled leaves at once. Work that has not begun is then
        dropped; other work goes on and keeps its place until it ends.

        Raises:
            Exception: what `work` raises.
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
        """Free the place of `future` when its thread ends."""
        # asyncio and trio each have such a call; it does not block the thread.
        loop: Any = current_token().native_token
        call = getattr(loop, "call_soon_threadsafe", None) or loop.run_sync_soon

        def release(_: object) -> None:
            with suppress(RuntimeError):  # the loop has ended
                call(self._places.release_on_behalf_of, future)

        future.add_done_callback(release)
