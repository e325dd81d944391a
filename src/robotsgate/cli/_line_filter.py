"""Passes stdin through an `Answerer` line by line, in order, with bounded memory.

Knows nothing about URLs or about how lines are checked.

    stdin ──► batches, a few at a time ──► results in order
      │
      │ the same origins are loaded again and again, and more lines are available
      ▼
    a window: the available lines, sorted by origin on disk
      ──► batches, a few at a time ──► results in input order
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

import anyio
import anyio.lowlevel

from robotsgate.cli._shell import LinesOfStdin
from robotsgate.cli._window import Window

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Hashable, Iterable

    from anyio.streams.memory import MemoryObjectReceiveStream

# A batch is 64 KiB long, and takes ten times as much memory during processing.
_BATCHES_AHEAD = 3

# If one line in twenty reloads an origin, those lines take more time than all the
# others together, and a window saves most of that time.
_LINES_FOR_A_LOOK = 5_000
_MOST_LINES_FOR_A_RELOAD = 20

# The total time that a window waits for more lines. A source that makes us wait longer
# than this between two measurements is slower than we are; a window would not help.
_PATIENCE_SECONDS = 2.0


class Answerer(Protocol):
    """Computes the result for each line."""

    @property
    def reloads(self) -> int:
        """How many loads were of origins that may have been in memory before."""
        ...

    def origin_of(self, line: bytes) -> Hashable:
        """A line's origin, or a key that nearly always identifies the origin."""
        ...

    async def answer(self, lines: Iterable[bytes]) -> list[bytes]:
        r"""Return a result for each non-blank line; no result contains b"\n"."""
        ...


@dataclass(slots=True)
class _Batch:
    """A batch of lines, a callback for their results, and the results."""

    lines: list[bytes]
    take: Callable[[list[bytes]], None]
    results: list[bytes] = field(default_factory=list)
    answered_event: anyio.Event = field(default_factory=anyio.Event)


class LineFilter:
    """One pass over stdin."""

    def __init__(
        self,
        answerer: Answerer,
        take: Callable[[list[bytes], int], None],
        *,
        folder: str,
    ) -> None:
        """Prepare to filter; nothing is read yet.

        Args:
            answerer: checks the lines.
            take: called with the results in order, and the number of stdin bytes
                processed so far.
            folder: the folder for temporary files.
        """
        self._answerer = answerer
        self._take = take
        self._folder = folder
        self._source = LinesOfStdin()
        self._lines_done = 0
        self._bytes_done = 0

    async def run(self) -> None:
        """Read stdin to the end."""
        while True:
            await self._answer_all(self._batches_of_stdin())
            if self._source.is_over:
                return
            with Window(self._answerer.origin_of, folder=self._folder) as window:
                await self._fill(window)
                await self._answer_all(self._batches_of(window))
                for results in window.results():
                    self._take_next(results, self._source.bytes_read)
                    await anyio.lowlevel.checkpoint()

    async def _answer_all(self, batches: AsyncIterator[_Batch]) -> None:
        """Process a few batches at a time and pass on their results in order."""
        send, receive = anyio.create_memory_object_stream[_Batch](_BATCHES_AHEAD)
        # `receive` is closed last: otherwise, a batch that can no longer be received
        # would cause an additional error.
        async with receive, anyio.create_task_group() as tasks:
            tasks.start_soon(_take_all, receive)
            async with send:
                async for batch in batches:
                    tasks.start_soon(self._answer, batch)
                    await send.send(batch)

    async def _answer(self, batch: _Batch) -> None:
        batch.results = await self._answerer.answer(batch.lines)
        batch.answered_event.set()

    async def _batches_of_stdin(self) -> AsyncIterator[_Batch]:
        """Yield batches of lines until stdin ends or a window would be faster."""
        before = self._look()
        async for lines in self._source:
            yield _Batch(
                lines, partial(self._take_next, bytes_done=self._source.bytes_read)
            )
            look = self._look()
            lines_done, reloads, seconds_waited = map(operator.sub, look, before)
            if lines_done < _LINES_FOR_A_LOOK:
                continue
            before = look
            is_slow = reloads * _MOST_LINES_FOR_A_RELOAD > lines_done
            if is_slow and seconds_waited < _PATIENCE_SECONDS:
                return

    def _look(self) -> tuple[float, ...]:
        """Totals so far: lines processed, reloads, seconds spent waiting for stdin."""
        waited = self._source.seconds_waited
        return self._lines_done, self._answerer.reloads, waited

    async def _fill(self, window: Window) -> None:
        """Add lines to `window` until it is full or lines stop arriving."""
        until = self._source.seconds_waited + _PATIENCE_SECONDS
        while not window.is_full:
            lines = None
            with anyio.move_on_after(until - self._source.seconds_waited):
                lines = await anext(self._source, None)
            if lines is None:
                return
            window.add(lines)
            await anyio.lowlevel.checkpoint()

    async def _batches_of(self, window: Window) -> AsyncIterator[_Batch]:
        for lines, take in window.blocks():
            yield _Batch(lines, take)
            self._take([], self._bytes_done)  # updates the displayed fetch counts

    def _take_next(self, results: list[bytes], bytes_done: int) -> None:
        self._lines_done += len(results)
        self._bytes_done = bytes_done
        self._take(results, bytes_done)


async def _take_all(batches: MemoryObjectReceiveStream[_Batch]) -> None:
    """Pass on the results of `batches` in order as they become available."""
    async for batch in batches:
        await batch.answered_event.wait()
        batch.take(batch.results)
