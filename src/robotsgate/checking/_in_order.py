"""Processes an iterable in order while preparing later items in advance.

The iterable is read in a separate task (a flight), because it may depend on what the
caller does with the results, as a crawl's frontier does. The task cannot be in a task
group, because no task group may stay open while the caller uses a result.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from typing import TYPE_CHECKING, Generic, TypeVar

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from robotsgate._flights import Flights

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

    async def after_item(self) -> None:
        """Let other tasks run after many items, or after a few milliseconds."""
        self._items += 1
        if self._items < _MOST_ITEMS_IN_A_TURN and self._monotonic() < self._ends_at:
            return
        await anyio.lowlevel.checkpoint()
        self._items = 0
        self._ends_at = self._monotonic() + _LONGEST_TURN_SECONDS


class OneTask:
    """A `with` block that only one task at a time may enter."""

    def __init__(self) -> None:
        self._is_inside = False

    def __enter__(self) -> None:
        """Enter.

        Raises:
            RuntimeError: another task is inside the block.
        """
        if self._is_inside:
            raise RuntimeError(
                "expected one task at a time, but another is already waiting"
            )
        self._is_inside = True

    def __exit__(self, *exc_info: object) -> None:
        """Leave."""
        self._is_inside = False


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
        source: Iterable[_Item] | AsyncIterable[_Item],
        *,
        prepare: Callable[[_Item], _Prepared],
        answer: Callable[[_Prepared], Awaitable[_Answer]],
        window: int,
        flights: Flights[bool],
        monotonic: Callable[[], float],
    ) -> None:
        """Read nothing yet.

        Args:
            source: may be endless; an async generator is closed at the end.
            prepare: called as soon as an item is read.
            answer: called when all earlier items are done.
            window: how many items to read ahead, ≥ 1.
            flights: runs the task that reads the source.
            monotonic: returns the current time in seconds.
        """
        self._ahead = ReadAhead(source, prepare, window, LoopTurns(monotonic))
        self._turns = LoopTurns(monotonic)
        self._answer = answer
        self._flights = flights
        self._is_closed = False
        self._one_task = OneTask()

    async def __anext__(self) -> _Answer:
        """Return the result for the next item.

        Can be called again after a cancellation.

        Raises:
            RuntimeError: the checker is closed, or another task is waiting.
            Exception: any exception from the source, `prepare` or `answer`. After an
                exception from `answer`, the results for later items may follow.
        """
        if self._is_closed:
            raise StopAsyncIteration
        with self._one_task:
            return await self._next()

    async def _next(self) -> _Answer:
        ahead = self._ahead
        if ahead.end is None:
            self._flights.begin(ahead, ahead.read)
        await self._turns.after_item()
        while not ahead.items:
            if ahead.end is not None:
                raise ahead.end
            await ahead.wait_for_change()
        try:
            answer = await self._answer(ahead.items[0])
        except Exception:
            ahead.drop_first()
            raise
        ahead.drop_first()
        return answer

    async def aclose(self) -> None:
        """Stop reading and returning results."""
        self._is_closed = True
        self._ahead.end = StopAsyncIteration()
        await self._flights.end(self._ahead)

    def __del__(self) -> None:
        """Stop reading, because nothing can use the results anymore."""
        self._flights.cancel(self._ahead)


class ReadAhead(Generic[_Item, _Prepared]):
    """The items that have been read but not yet processed.

    Separate from `InOrder`, which the reading task must not keep alive.

    Attributes:
        items: the prepared items, in order.
        end: what to raise after the last item; `None` until everything has been read.
    """

    def __init__(
        self,
        source: Iterable[_Item] | AsyncIterable[_Item],
        prepare: Callable[[_Item], _Prepared],
        window: int,
        turns: LoopTurns,
    ) -> None:
        """Read nothing yet. The arguments are the same as for `InOrder`."""
        self._source = source
        self._prepare = prepare
        self._window = window
        self._turns = turns
        self._change_event: anyio.Event | None = None
        self.items: deque[_Prepared] = deque()
        self.end: Exception | None = None

    async def read(self) -> bool:
        """Read the source to the end."""
        end: Exception = RuntimeError("the checker is closed")
        try:
            await read_all(self._source, self._add)
            end = StopAsyncIteration()
        except Exception as error:  # noqa: BLE001 (raised by `InOrder`)
            end = error
        finally:
            self.end = self.end or end
            self.wake()
        return True

    async def _add(self, item: _Item) -> None:
        self.items.append(self._prepare(item))
        self.wake()
        await self._turns.after_item()
        while len(self.items) >= self._window:
            await self.wait_for_change()

    def drop_first(self) -> None:
        """Remove the first item, which has been processed."""
        self.items.popleft()
        self.wake()

    async def wait_for_change(self) -> None:
        """Wait until the other side has added or removed an item."""
        event = self._change_event = anyio.Event()
        await event.wait()

    def wake(self) -> None:
        """Wake the other side, if it is waiting."""
        if self._change_event is not None:
            self._change_event.set()
            self._change_event = None
