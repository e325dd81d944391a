"""Schedules: turns for all the URLs in a crawl.

`_work.py` provides the turns. The two frontiers in this module provide the URLs, from
memory or from the caller's own frontier.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncIterator
from functools import partial
from inspect import isawaitable
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from robotsgate.checking._in_order import LoopTurns, read_all
from robotsgate.errors import InvalidURLError
from robotsgate.events import HostSkipped
from robotsgate.urls._url import Origin, is_url_like

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Iterable

    from robotsgate._flights import Flights
    from robotsgate.politeness._turns import Turn
    from robotsgate.politeness._work import MaybeURL, Work
    from robotsgate.urls._url import URLLike

    NextURL = Callable[[str], MaybeURL | Awaitable[MaybeURL]]


class ScheduledTurn(NamedTuple):
    """A URL from a schedule, with its turn.

    Attributes:
        url: the URL as provided by the source.
        turn: the turn, which has already started; use it with `async with`.
    """

    url: str | URLLike
    turn: Turn


class TurnSchedule(AsyncIterator[ScheduledTurn]):
    """Yields URLs with their turns to one or more tasks, as hosts become ready.

    Not an async generator, because only one task at a time could iterate over it.
    """

    def __init__(
        self,
        source: Iterable[object] | AsyncIterable[object],
        frontier: URLQueues | AskedFrontier,
        work: Work,
        sources: Flights[bool],
    ) -> None:
        work.frontier = frontier
        self._run = partial(_run, source, frontier, work)
        self._work = work
        self._sources = sources

    async def __anext__(self) -> ScheduledTurn:
        """Wait for the next URL whose host is ready, and return it.

        Raises:
            RuntimeError: the gate is closed.
            Exception: any exception from the source; raised in one of the tasks, after
                the turns for all earlier items.
        """
        work = self._work
        if not work.is_over:
            work.call_soon = self._sources.begin(work, self._run).call_soon
        try:
            turn = await work.next_turn()
        except BaseException:
            if work.is_over:
                self._sources.cancel(work)
            raise
        return ScheduledTurn(turn.url, turn)

    async def aclose(self) -> None:
        """Stop granting turns. Can be called more than once.

        Tasks waiting for a turn leave their loops.
        """
        self._work.close()
        await self._sources.end(self._work)

    def __del__(self) -> None:
        """Stop reading the source, because no more turns can be taken."""
        self._sources.cancel(self._work)


class URLSchedule(TurnSchedule):
    """A `TurnSchedule` of URLs in memory, to which you can add more URLs."""

    def __init__(
        self,
        source: Iterable[object] | AsyncIterable[object],
        queues: URLQueues,
        work: Work,
        sources: Flights[bool],
    ) -> None:
        super().__init__(source, queues, work, sources)
        self._queues = queues
        self._thread = get_ident()

    def add(self, url: str | URLLike) -> None:
        """Add `url` to the schedule without waiting.

        This always works during a turn from the schedule, because a schedule does not
        end until all of its turns have ended.

        Raises:
            TypeError: `url` is not a URL.
            RuntimeError: the schedule is over or belongs to another thread.
        """
        if self._work.is_over:
            raise RuntimeError("expected a schedule that is still running")
        if get_ident() != self._thread:
            raise RuntimeError("expected a call from the thread that runs the schedule")
        if not is_url_like(url):
            raise TypeError(f"expected a URL, got {url!r}")
        self._queues.take(url)


class URLQueues:
    """The URLs from a source, in memory and grouped by host."""

    is_asked_late = False

    def __init__(self, work: Work, *, window: int) -> None:
        self._work = work
        self._window = window
        self._urls: dict[str, deque[str | URLLike]] = {}
        self._count = 0

    def take(self, url: str | URLLike, /) -> None:
        """Add a URL to its host's queue, or skip it if it has no host."""
        work = self._work
        try:
            host = work.hosts.host(url, Origin.from_url(url).key)
        except InvalidURLError as error:
            if not is_url_like(url):
                raise
            work.skip(url, error)
            return
        urls = self._urls.setdefault(host, deque())
        urls.append(url)
        self._count += 1
        if work.patience < math.inf:
            self.skip_late(host, work.turns.queues.seconds_until_ready(host))
        if urls:
            work.offer(host)

    def is_full(self) -> bool:
        """Whether the window has reached its maximum number of URLs."""
        return self._count + self._work.held >= self._window

    def has_url(self, host: str) -> bool:
        """Whether there is a URL for `host`."""
        return host in self._urls

    async def next_url(self, host: str) -> MaybeURL:
        """Return the URL for `host` that has waited the longest, or `None`."""
        urls = self._urls.get(host)
        if not urls:
            return None
        self._count -= 1
        url = urls.popleft()
        if not urls:
            del self._urls[host]
        return url

    def skip_late(self, host: str, seconds: float) -> None:
        """Skip URLs for `host` that would wait too long, starting at the end."""
        work, urls = self._work, self._urls.get(host)
        delay = work.hosts.pace(host).delay
        while urls:
            last = seconds + (len(urls) - 1) * delay
            if last <= work.patience:
                return
            self._count -= 1
            work.skip(urls.pop(), work.turns.queues.not_in_time(host, last))
        self._urls.pop(host, None)


class AskedFrontier:
    """A frontier supplied by the caller and queried for each host's URLs."""

    is_asked_late = True

    def __init__(self, work: Work, next_url: NextURL, *, window: int) -> None:
        self._work = work
        self._next_url = next_url
        self._window = window

    def take(self, host: object, /) -> None:
        """Add a host."""
        if not isinstance(host, str):
            raise TypeError(f"expected the name of a host to be a str, got {host!r}")
        self._work.offer(host)

    def is_full(self) -> bool:
        """Whether the window has reached its maximum number of hosts."""
        return len(self._work) >= self._window

    def has_url(self, host: str) -> bool:  # noqa: ARG002 (only the caller knows)
        """Always true, because only `next_url` can tell."""
        return True

    async def next_url(self, host: str) -> MaybeURL:
        """Call the caller's `next_url`.

        Raises:
            ValueError: `next_url` returned a URL that does not belong to `host`.
        """
        url = self._next_url(host)
        if isawaitable(url):
            url = await url
        if url is None:
            return None
        name = self._work.hosts.host(url, Origin.from_url(url).key)
        if name != host:
            raise ValueError(f"expected a URL on {host!r}, got one on {name!r}")
        return url

    def skip_late(self, host: str, seconds: float) -> None:
        """Report the host as dropped if it would have to wait too long."""
        if seconds > self._work.patience:
            ready_at = self._work.clock.now() + seconds
            self._work.listener.tell(HostSkipped(host=host, ready_at=ready_at))


async def _run(
    source: Iterable[object] | AsyncIterable[object],
    frontier: URLQueues | AskedFrontier,
    work: Work,
) -> bool:
    """Until cancelled, read the source and take back turns that nobody enters.

    Separate from `TurnSchedule`, because a task must not keep the schedule alive.
    """
    reading = LoopTurns(work.clock.monotonic)

    async def take(item: Any) -> None:  # noqa: ANN401 (of any source)
        frontier.take(item)
        await reading.after_item()
        while frontier.is_full():
            await work.wait_for_room()

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work.take_back)
            end: Exception = StopAsyncIteration()
            try:
                await read_all(source, take)
            except Exception as error:  # noqa: BLE001 (re-raised in a worker)
                end = error
            work.end_source(end)
    finally:
        work.is_over = True  # nothing takes back turns or reads the source anymore
        work.end_source(RuntimeError("the source was cancelled"))
        await work.take_back_all()
    return True  # pragma: no cover (it is cancelled first)
