"""The hosts of a schedule, and the queue from which its workers take them."""

from __future__ import annotations

import enum
import heapq
import math
from collections import deque
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from robotsgate._clock import Clock
    from robotsgate.caching._live import Standing
    from robotsgate.urls._url import URLLike

# A heap with more entries per host than this contains mostly obsolete ones.
_ENTRIES_OF_A_HOST = 2
_ENTRIES_AT_LEAST = 100

State = enum.Enum("State", "IDLE READY TRIED UNKNOWN RESTING")
"""The state of a host; the transitions are at the top of `_schedule.py`."""


@dataclass(slots=True, eq=False)
class HostAtWork:
    """A host with work or open turns.

    Attributes:
        url: the URL for the next turn; `None` if it must come from the frontier.
        standing: the state of the URL's origin after the fetch for that turn, if any.
        is_offered: whether the host has been offered again since the last call to the
            frontier.
    """

    name: str
    state: State = State.IDLE
    url: str | URLLike | None = None
    standing: Standing | None = None
    is_offered: bool = False
    turns: int = 0  # open ones


class HostQueue:
    """The queue of hosts, each listed once, for worker tasks in one event loop."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ready: deque[HostAtWork] = deque()
        # An entry is obsolete unless it has the number in `_entries` for its host.
        self._heap: list[tuple[float, int, HostAtWork]] = []
        self._entries: dict[HostAtWork, int] = {}
        self._numbers = count()
        self._waiting: deque[anyio.Event] = deque()
        self._on_watch: anyio.Event | None = None

    @property
    def first_moment(self) -> float:
        """The earliest `monotonic` time at which a resting host can be ready."""
        return self._heap[0][0] if self._heap else math.inf

    def put(self, host: HostAtWork) -> None:
        host.state = State.READY
        self._ready.append(host)
        self.wake()

    def put_at(self, host: HostAtWork, moment: float) -> None:
        """Make `host` wait until `moment`, replacing any earlier setting."""
        if moment <= self._clock.monotonic():
            self._entries.pop(host, None)
            self.put(host)
            return
        host.state = State.RESTING
        number = self._entries[host] = next(self._numbers)
        heapq.heappush(self._heap, (moment, number, host))
        if self._heap[0][1] == number:
            self._wake_watch()
        most = _ENTRIES_OF_A_HOST * len(self._entries) + _ENTRIES_AT_LEAST
        if len(self._heap) > most:
            self._heap = [entry for entry in self._heap if self._is_valid(entry)]
            heapq.heapify(self._heap)

    def discard(self, host: HostAtWork) -> None:
        self._entries.pop(host, None)

    def pop(self) -> HostAtWork | None:
        """Remove and return the host that has been ready the longest, or `None`."""
        now = self._clock.monotonic()
        while self._heap and self._heap[0][0] <= now:
            entry = heapq.heappop(self._heap)
            if self._is_valid(entry):
                host = entry[2]
                del self._entries[host]
                host.state = State.READY
                self._ready.append(host)
        if not self._ready:
            return None
        host = self._ready.popleft()
        if self._ready or self._heap:
            self.wake()
        return host

    async def wait(self) -> None:
        """Wait until a worker is needed."""
        if self._ready:
            return
        event = anyio.Event()
        self._waiting.append(event)
        seconds = math.inf
        if self._on_watch is None:
            self._on_watch = event
            seconds = self.first_moment - self._clock.monotonic()
        is_over = False
        try:
            await self._clock.wait(seconds, event=event)
            is_over = True
        finally:
            if self._on_watch is event:
                self._on_watch = None
            if not event.is_set():
                self._waiting.remove(event)
            if not is_over:  # cancelled: another worker may be needed
                self.wake()

    def wake(self) -> None:
        """Wake the worker that has been waiting the longest."""
        if self._waiting:
            self._waiting.popleft().set()

    def wake_all(self) -> None:
        while self._waiting:
            self.wake()

    def _wake_watch(self) -> None:
        """Wake the worker on watch, so that it recomputes its wait."""
        if self._on_watch is not None and not self._on_watch.is_set():
            self._waiting.remove(self._on_watch)
            self._on_watch.set()
        else:
            self.wake()

    def _is_valid(self, entry: tuple[float, int, HostAtWork]) -> bool:
        _, number, host = entry
        return self._entries.get(host) == number
