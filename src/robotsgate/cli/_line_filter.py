"""Passes stdin through an `Answerer`, line by line, in order and with limited memory.

Independent of URLs and of how lines are checked.

    stdin ──► batches, a few at a time ──► results in order
      │
      │ the same origins are loaded again and again, and more lines are available
      ▼
    a window: the available lines, sorted by origin on disk
      ──► batches, a few at a time ──► results in order again
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

# Each batch has 64 KiB, and takes ten times as much while it is processed.
_BATCHES_AHEAD = 3

# If one line in twenty reloads an origin, these lines take more time than all others,
# and a window saves most of it.
_LINES_FOR_A_LOOK = 5_000
_MOST_LINES_FOR_A_RELOAD = 20

# How long a window waits for more lines, in total. If a source makes us wait longer
# between two checks, it is slower than we are, and a window would not help.
_PATIENCE_SECONDS = 2.0


class Answerer(Protocol):
    """Computes the results of lines."""

    @property
    def reloads(self) -> int:
        """How often it loaded an origin that may have been in memory before."""
        ...

    def origin_of(self, line: bytes) -> Hashable:
        """The origin of a line, or another key; nearly always equal for one origin."""
        ...

    async def answer(self, lines: Iterable[bytes]) -> list[bytes]:
        r"""A result for each of `lines` that is not blank; none has a b"\n" inside."""
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
        """Read nothing yet.

        Args:
            answerer: checks the lines.
            take: called with results, in order, and the number of bytes of stdin done.
            folder: the folder for temporary files.
        """
        self._answerer = answerer
        self._take = take
        self._folder = folder
        self._source = LinesOfStdin()
        self._lines_done = 0
        self._bytes_done = 0

    async def run(self) -> None:
        """Read stdin to its end."""
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
        """Process a few batches at a time, and pass on their results in order."""
        send, receive = anyio.create_memory_object_stream[_Batch](_BATCHES_AHEAD)
        # It is closed last: otherwise, a batch that can no longer be received would be
        # an additional error.
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
        """Batches until the end, or until a window would be faster."""
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
        """The lines done, reloads, and seconds waited for stdin so far."""
        waited = self._source.seconds_waited
        return self._lines_done, self._answerer.reloads, waited

    async def _fill(self, window: Window) -> None:
        """Add lines to `window` until it is full, or no more arrive soon."""
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
            self._take([], self._bytes_done)  # shows the fetches in the meantime

    def _take_next(self, results: list[bytes], bytes_done: int) -> None:
        self._lines_done += len(results)
        self._bytes_done = bytes_done
        self._take(results, bytes_done)


async def _take_all(batches: MemoryObjectReceiveStream[_Batch]) -> None:
    """Pass on the results of `batches` in order, as soon as they are available."""
    async for batch in batches:
        await batch.answered_event.wait()
        batch.take(batch.results)
