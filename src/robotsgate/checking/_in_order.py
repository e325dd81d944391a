"""Processes an iterable in order while preparing later items in advance."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_Item = TypeVar("_Item")
_Prepared = TypeVar("_Prepared")
_Answer = TypeVar("_Answer")

_MOST_ITEMS_IN_A_TURN = 500

# A lookup takes 2 µs, but 16 ms with hostile rules.
_LONGEST_TURN_SECONDS = 0.005


class LoopTurns:
    """Lets other tasks run from time to time during a loop over many items."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._items = 0
        self._ends_at = monotonic() + _LONGEST_TURN_SECONDS

    async def after_item(self) -> bool:
        """Let other tasks run after many items, or after a few milliseconds.

        Returns whether it did.
        """
        self._items += 1
        if self._items < _MOST_ITEMS_IN_A_TURN and self._monotonic() < self._ends_at:
            return False
        await anyio.lowlevel.checkpoint()
        self._items = 0
        self._ends_at = self._monotonic() + _LONGEST_TURN_SECONDS
        return True


async def read_all(
    source: Iterable[_Item] | AsyncIterable[_Item],
    take: Callable[[_Item], Awaitable[None]],
) -> None:
    """Pass each item of `source` to `take`; an async generator is closed at the end."""
    try:
        if isinstance(source, AsyncIterable):
            async for item in source:
                await take(item)
        else:
            for item in source:
                await take(item)
    finally:
        if isinstance(source, AsyncGenerator):
            await source.aclose()


class InOrder(AsyncIterator[_Answer], Generic[_Item, _Prepared, _Answer]):
    """The results for the items in an iterable, in order.

    Not an async generator, because trio warns about generators that are not exhausted.
    """

    def __init__(
        self,
        source: Iterable[_Item],
        *,
        prepare: Callable[[_Item], _Prepared],
        is_ready: Callable[[_Prepared], bool],
        answer: Callable[[_Prepared], Awaitable[_Answer]],
        window: int,
        monotonic: Callable[[], float],
    ) -> None:
        """Read nothing yet.

        Args:
            source: may be endless.
            prepare: called as soon as an item is read.
            is_ready: whether `answer` would not wait. A slow source is then not read
                any further before the result is returned.
            answer: called when all earlier items are done.
            window: how many items to read ahead, ≥ 1.
            monotonic: returns the current time in seconds.
        """
        self._source = iter(source)
        self._prepare = prepare
        self._is_ready = is_ready
        self._answer = answer
        self._window = window
        self._turns = LoopTurns(monotonic)
        self._ahead: deque[_Prepared] = deque()
        self._end: Exception | None = None
        self._one_at_a_time = anyio.Lock(fast_acquire=True)

    async def __anext__(self) -> _Answer:
        """Return the result for the next item.

        Can be called again after a cancellation.

        Raises:
            RuntimeError: the checker is closed.
            Exception: any exception from the source, `prepare` or `answer`. After an
                exception from `answer`, the results for later items may follow.
        """
        async with self._one_at_a_time:
            await self._turns.after_item()
            await self._read_ahead()
            if self._end is not None and not self._ahead:
                raise self._end
            try:
                answer = await self._answer(self._ahead[0])
            except Exception:
                self._ahead.popleft()
                raise
            self._ahead.popleft()
            return answer

    async def _read_ahead(self) -> None:
        while self._end is None and len(self._ahead) < self._window:
            try:
                self._ahead.append(self._prepare(next(self._source)))
            except StopIteration:
                self._end = StopAsyncIteration()
            except Exception as error:  # noqa: BLE001 (raised after earlier results)
                self._end = error
            else:
                if await self._turns.after_item() and self._is_ready(self._ahead[0]):
                    return
