"""Gives a caller the URLs of a source as their hosts become free.

Another task reads the source ahead. The next host is the one that will be ready first.
A turn begins only when the caller gets it, so that no caller holds a host that it does
not ask yet.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from collections.abc import AsyncIterator
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio.lowlevel

from robotsgate.caching._verdict import DisallowedError
from robotsgate.checking._in_order import LoopTurns, OneTask, ReadAhead
from robotsgate.errors import InvalidURLError, TurnNotInTimeError, UnsupportedError
from robotsgate.politeness._events import URLLeftOut
from robotsgate.politeness._host_record import SHORTEST_WAIT_FOR_PLACE
from robotsgate.politeness._turns import Claim, Turn
from robotsgate.urls._origin import Origin, is_url_like, shown_url, without_userinfo

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Iterable

    from robotsgate._clock import Clock
    from robotsgate._flights import Flights
    from robotsgate.checking._reporting import Listener
    from robotsgate.politeness._events import GateEvent
    from robotsgate.politeness._hosts import Hosts
    from robotsgate.politeness._turns import Turns
    from robotsgate.urls._origin import URLLike


class ScheduledTurn(NamedTuple):
    """A URL of a schedule, with its turn.

    Attributes:
        url: as the source gave it.
        turn: has begun, to be used by `async with`.
    """

    url: str | URLLike
    turn: Turn


class _Ready(NamedTuple):
    """A host with waiting URLs; `at` is when to look at it, by `Clock.monotonic`."""

    at: float
    number: int
    host: str


class TurnSchedule(AsyncIterator[ScheduledTurn]):
    """The URLs of a source with their turns, in the order of the turns.

    Not an async generator: trio warns of those that are not read to their end.
    """

    def __init__(
        self,
        urls: Iterable[str | URLLike] | AsyncIterable[str | URLLike],
        *,
        turns: Turns,
        hosts: Hosts,
        sources: Flights[bool],
        listener: Listener[GateEvent],
        clock: Clock,
        window: int,
    ) -> None:
        self._turns = turns
        self._sources = sources
        self._listener = listener
        self._clock = clock
        self._loop_turns = LoopTurns(clock.monotonic)
        self._ahead = ReadAhead(
            urls,
            partial(_prepare, turns, hosts, listener),
            window,
            LoopTurns(clock.monotonic),
        )
        self._waiting: dict[str, deque[str | URLLike]] = {}
        self._heap: list[_Ready] = []
        self._numbers = count()
        self._handed_out: list[Claim] = []
        self._one_task = OneTask()
        self._is_closed = False

    async def __anext__(self) -> ScheduledTurn:
        """The next URL whose host may be asked; waits until there is one.

        If no task has entered the turn before, its host gets it back. A task that
        enters it later waits again.

        Raises:
            RuntimeError: the gate is closed, or another task waits for a turn.
            Exception: what the source raised, after the turns for the URLs before.
        """
        if self._is_closed:
            raise StopAsyncIteration
        with self._one_task:
            return await self._next()

    async def aclose(self) -> None:
        """Read no further, and give no more turns; may be called more than once."""
        self._is_closed = True
        self._ahead.end = StopAsyncIteration()
        await self._sources.end(self._ahead)

    def __del__(self) -> None:
        """Read no further, and give the last turn back: nobody can get more URLs."""
        self._sources.cancel(self._ahead)

    async def _next(self) -> ScheduledTurn:
        ahead = self._ahead
        self._turns.check_open()
        if ahead.end is None:
            work = partial(_read, ahead, self._handed_out, self._turns, self._clock)
            self._sources.begin(ahead, work)
        for _ in range(2):  # lets a task enter the last turn, also on trio
            await anyio.lowlevel.checkpoint()
        await _give_back(self._handed_out, self._turns)
        while True:
            self._sort()
            scheduled = await self._hand_out()
            if scheduled is not None:
                return scheduled
            if ahead.end is not None and not self._heap:
                await self._sources.end(ahead)
                raise ahead.end
            seconds = math.inf
            if self._heap:
                seconds = self._heap[0].at - self._clock.monotonic()
            await self._clock.wait(seconds, event=ahead.change_event())
            self._turns.check_open()

    def _sort(self) -> None:
        """Let the URLs that were read wait for their hosts."""
        while self._ahead.items:
            url, host = self._ahead.items.popleft()
            if host is None:
                self._ahead.wake()
                continue
            self._ahead.taken += 1
            if host not in self._waiting:
                self._waiting[host] = deque()
                self._push(host, self._clock.monotonic())
            self._waiting[host].append(url)

    async def _hand_out(self) -> ScheduledTurn | None:
        """The first URL of a host that may be asked now."""
        while self._heap and self._heap[0].at <= self._clock.monotonic():
            await self._loop_turns.after_item()
            host = self._heap[0].host
            url = self._waiting[host][0]
            claim = Claim(url, patience=0.0)
            try:
                await self._turns.begin(claim)
            except TurnNotInTimeError as late:
                seconds = late.ready_at - self._clock.now()
                if seconds <= 0:  # robots.txt is not known yet
                    seconds = SHORTEST_WAIT_FOR_PLACE
                heapq.heappop(self._heap)
                self._push(host, self._clock.monotonic() + seconds)
            except DisallowedError as error:
                self._drop_first(host)
                event = URLLeftOut(url=shown_url(url), error=error)
                self._listener.tell(event)
            else:
                self._drop_first(host)
                claim.patience = math.inf  # in case it is entered too late
                self._handed_out.append(claim)
                return ScheduledTurn(url, Turn(self._turns, claim))
        return None

    def _drop_first(self, host: str) -> None:
        """Make room: the first URL of the first host has its turn, or is left out."""
        heapq.heappop(self._heap)
        waiting = self._waiting[host]
        waiting.popleft()
        if waiting:
            self._push(host, self._clock.monotonic())
        else:
            del self._waiting[host]
        self._ahead.taken -= 1
        self._ahead.wake()

    def _push(self, host: str, at: float) -> None:
        heapq.heappush(self._heap, _Ready(at, next(self._numbers), host))


async def _read(
    ahead: ReadAhead[Any, Any], handed_out: list[Claim], turns: Turns, clock: Clock
) -> bool:
    """Read the source, then wait until the schedule ends, for whatever reason."""
    try:
        await ahead.read()
        return await clock.wait(math.inf)
    finally:
        ahead.wake()
        await _give_back(handed_out, turns)


async def _give_back(handed_out: list[Claim], turns: Turns) -> None:
    while handed_out:
        await turns.give_back(handed_out.pop())


def _prepare(
    turns: Turns, hosts: Hosts, listener: Listener[GateEvent], url: str | URLLike
) -> tuple[str | URLLike, str | None]:
    """`url` and its host, `None` if it has none; begins to fetch the robots.txt.

    Apart from `TurnSchedule`, because the task that reads must not keep that alive.
    """
    try:
        origin = Origin.from_url(url)
        turns.permissions.begin(origin)
    except (InvalidURLError, UnsupportedError) as error:
        if not is_url_like(url):
            raise
        shown = without_userinfo(str(url))
        listener.tell(URLLeftOut(url=shown, error=error))
        return url, None
    return url, hosts.host(url, origin.key)
