"""Assigns each of a crawl's URLs to a worker as soon as its host is ready.

Think of it this way: each host with work is in exactly one state. A worker takes the
host that has been ready the longest, and either gets a turn for it or moves on:

    offered ──► READY ──► TRIED ──► granted: its turn is open
                  ▲        │ │ │                   │
                  │        │ │ └── no work: gone   │
                  ├─ UNKNOWN ◄─┘                   │
                  │  (robots.txt is fetched)       │
                  └─ RESTING ◄─┴───────────────────┘
                     (until the host is ready)

There is no polling: a host becomes ready when a fetch ends, when a turn ends, or at a
time set in `_host_queue.py`. This module is longer than the others because it covers a
host's transitions between all of these states.
"""

from __future__ import annotations

import math
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Protocol, cast

import anyio

from robotsgate.caching._in_force import Effect
from robotsgate.caching._verdict import DisallowedError, Reason
from robotsgate.checking._in_order import LoopTurns
from robotsgate.errors import RobotsError, TurnNotInTimeError, UnsupportedError
from robotsgate.events import URLSkipped, WindowFilled
from robotsgate.politeness._host_queue import HostAtWork, HostQueue, State
from robotsgate.politeness._host_record import SHORTEST_WAIT_FOR_PLACE
from robotsgate.politeness._turns import Claim, Turn
from robotsgate.urls._url import Origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate._clock import Clock
    from robotsgate.caching._standing import Standing
    from robotsgate.checking._reporting import Listener
    from robotsgate.events import GateEvent
    from robotsgate.politeness._hosts import Hosts
    from robotsgate.politeness._turns import Turns
    from robotsgate.urls._url import URLLike

    MaybeURL = str | URLLike | None

# Long enough for a newly started task to enter its turn.
_SECONDS_TO_ENTER = 1.0

# A crawl may run for days with a full window, so events are limited to one a minute.
# Waits shorter than ten seconds are normal and not worth an event.
_SECONDS_BETWEEN_EVENTS = 60.0
_SECONDS_WORTH_TELLING = 10.0

_PERMITS_SOME = {Effect.RULES, Effect.ALLOW}


class Frontier(Protocol):
    """The waiting URLs, from which `Work` takes the next one for a ready host."""

    is_asked_late: bool
    """Whether a URL is only taken from the frontier once its host is ready."""

    def is_full(self) -> bool:
        """Whether the source must wait before it adds more items."""

    def has_url(self, host: str) -> bool:
        """Whether there may be a URL for `host`."""

    async def next_url(self, host: str) -> MaybeURL:
        """Return the next URL for `host`, or `None`."""

    def skip_late(self, host: str, seconds: float) -> None:
        """Skip URLs that would wait too long if `host` is not ready for `seconds`."""


class Work:
    """A schedule's hosts.

    Separate from the schedule, because tasks keep this object alive.

    Attributes:
        frontier: provides the URLs.
        held: how many URLs have been taken from the frontier but have no turn yet.
        is_over: whether no more turns are granted.
    """

    frontier: Frontier
    call_soon: Callable[[Callable[[], object]], object]

    def __init__(
        self,
        *,
        turns: Turns,
        hosts: Hosts,
        listener: Listener[GateEvent],
        clock: Clock,
        patience: float,
    ) -> None:
        self.is_over: bool = False
        self.turns = turns
        self.hosts = hosts
        self.listener = listener
        self.clock = clock
        self.patience = patience
        self.held: int = 0
        self._end: Exception | None = None  # set once the source is exhausted
        self._hosts: dict[str, HostAtWork] = {}
        self._busy = 0  # hosts that are not IDLE
        self._open_turns = 0
        self._queue: HostQueue = HostQueue(clock)
        self._cold: deque[HostAtWork] = deque()
        self._ahead: set[HostAtWork] = set()
        self._room_event = anyio.Event()
        self._handed_out: deque[tuple[float, Claim, HostAtWork]] = deque()
        self._hand_out_event = anyio.Event()
        self._told_full_at = -math.inf
        self._loop_turns = LoopTurns(clock.monotonic)

    def __len__(self) -> int:
        """The number of hosts with work."""
        return self._busy

    async def take_back_all(self) -> None:
        """Take back all turns that have not been entered, and wake all workers."""
        self._queue.wake_all()
        while self._handed_out:
            _, claim, _ = self._handed_out.popleft()
            await self.turns.give_back(claim)

    async def take_back(self) -> None:
        """Until cancelled, take back each turn that is not entered in time."""
        while True:
            if not self._handed_out:
                self._hand_out_event = anyio.Event()
                await self._hand_out_event.wait()
            at, claim, host = self._handed_out[0]
            if not claim.is_entered:
                await self.clock.wait(at - self.clock.monotonic())
            if not claim.is_entered:
                is_open = claim.on_over is not None
                if is_open:
                    claim.on_over = self._close_turn
                await self.turns.give_back(claim)
                if is_open:
                    self._end_turn(host)
            self._handed_out.popleft()

    def offer(self, name: str) -> None:
        """Make the host called `name` available to the workers."""
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = HostAtWork(name)
        host.is_offered = True
        if host.state is State.IDLE:
            self._busy += 1
            self._go_on(host)

    async def wait_for_room(self) -> None:
        """Wait until there are fewer waiting URLs or hosts."""
        self._room_event = anyio.Event()
        await self._room_event.wait()

    def end_source(self, end: Exception) -> None:
        """Handle the end of the source; `end` is the exception that workers get."""
        self._end = self._end or end
        self._queue.wake()

    def close(self) -> None:
        """Grant no more turns."""
        self.is_over = True
        self._end = StopAsyncIteration()
        self._queue.wake_all()

    def skip(self, url: object, error: RobotsError) -> None:
        """Report `url` as skipped."""
        self._room_event.set()
        ready_at = _ready_at(error)
        self.listener.tell(URLSkipped(url=url, error=error, ready_at=ready_at))

    def _make_ready(self, host: HostAtWork) -> None:
        host.state = State.READY
        self._queue.put(host)

    def _rest(self, host: HostAtWork, seconds: float | None = None) -> None:
        """Make `host` wait for `seconds`, or until its next turn can start."""
        if seconds is None:
            seconds = self.turns.queues.seconds_until_ready(host.name)
        if self.patience < math.inf:
            self._skip_late(host, seconds)
            if seconds > self.patience or not self._has_more(host):
                self._let_go(host)
                return
        if host.turns >= self.hosts.pace(host.name).max_at_once:
            # A turn will end earlier than that unless its task has lost it.
            seconds = self.hosts.max_turn_seconds
        if seconds > _SECONDS_WORTH_TELLING:
            self._warm_next(host)
        host.state = State.RESTING
        self._queue.put_at(host, self.clock.monotonic() + seconds)

    def _skip_late(self, host: HostAtWork, seconds: float) -> None:
        if host.url is not None and seconds > self.patience:
            late = self.turns.queues.not_in_time(host.name, seconds)
            self.skip(self._take_url(host), late)
        if host.url is None:
            self.frontier.skip_late(host.name, seconds)
        elif not self.frontier.is_asked_late:
            delay = self.hosts.pace(host.name).delay
            self.frontier.skip_late(host.name, seconds + delay)

    def _take_url(self, host: HostAtWork) -> str | URLLike:
        """Remove and return the URL for `host`."""
        url, host.url, host.standing = host.url, None, None
        self.held -= 1
        self._room_event.set()
        return cast("str | URLLike", url)

    def _has_more(self, host: HostAtWork) -> bool:
        return (
            host.url is not None or host.is_offered or self.frontier.has_url(host.name)
        )

    def _let_go(self, host: HostAtWork) -> None:
        """Mark `host` as out of work, and drop it once its turns have ended."""
        self._busy -= 1
        self._queue.discard(host)
        host.state = State.IDLE
        self._warm_next(host)
        self._room_event.set()
        self._forget_if_idle(host)

    def _forget_if_idle(self, host: HostAtWork) -> None:
        if host.state is State.IDLE and not host.turns:
            self._hosts.pop(host.name, None)
        if self._is_done():
            self._queue.wake()

    def _warm_next(self, host: HostAtWork) -> None:
        """Prefetch another robots.txt if the one for `host` was prefetched."""
        if host in self._ahead:
            self._ahead.discard(host)
            if self._cold:
                cold = self._cold.popleft()
                self._ahead.add(cold)
                self._make_ready(cold)

    def _end_turn(self, host: HostAtWork) -> None:
        """Handle the end of a turn for `host`."""
        host.turns -= 1
        if self._queue.is_resting(host):
            self._rest(host)
        self._forget_if_idle(host)

    def _close_turn(self, host: HostAtWork | None = None) -> None:
        """Count a turn as closed, and end it for `host` if a host is given."""
        if host is not None:
            self._end_turn(host)
        self._open_turns -= 1
        if self._is_done():
            self._queue.wake()

    async def next_turn(self) -> Turn:
        """Wait for the next turn.

        Raises the same errors as `TurnSchedule.__anext__`.
        """
        while True:
            self.turns.check_open()
            if self.is_over or self._is_done():
                end = self._end or StopAsyncIteration()
                self.close()  # an error from the source is raised only once
                raise end
            host = self._queue.pop()
            if host is None:
                self._tell_if_full()
                await self._queue.wait()
                continue
            host.state = State.TRIED
            try:
                turn = await self._try(host)
            finally:
                if host.state is State.TRIED:  # cancelled, or an unexpected error
                    self._make_ready(host)
            if turn is not None:
                return turn
            await self._loop_turns.after_item()

    async def _try(self, host: HostAtWork) -> Turn | None:
        """Try to start a turn for `host`; otherwise, move `host` to its next state."""
        seconds = self.turns.queues.seconds_until_ready(host.name)
        if host.url is None and seconds > 0 and self.frontier.is_asked_late:
            self._rest(host, seconds)
            return None
        url = host.url if host.url is not None else await self._next_url(host)
        if url is None:
            return None
        claim = Claim(url, patience=0.0)
        try:
            origin = Origin.from_url(url)
            standing = self.turns.permissions.standing(origin) or host.standing
            claim.standing = host.standing
            if standing is None:
                self._fetch_ahead(host, origin)
                return None
            if seconds > 0 and standing.effect in _PERMITS_SOME:
                self._rest(host, seconds)
                return None
            await self.turns.begin(claim)
        except TurnNotInTimeError as late:
            seconds = late.ready_at - self.clock.now()
            self._rest(host, max(seconds, SHORTEST_WAIT_FOR_PLACE))
            return None
        except (DisallowedError, UnsupportedError) as error:
            self.skip(self._take_url(host), error)
            self._go_on(host)
            return None
        if self.is_over:  # it was closed in the meantime
            await self.turns.give_back(claim)
            return None
        return self._given(host, claim)

    async def _next_url(self, host: HostAtWork) -> MaybeURL:
        """Take the next URL for `host`, or return `None`."""
        host.is_offered = False
        try:
            host.url = await self.frontier.next_url(host.name)
        except Exception:
            self.close()
            raise
        if host.url is not None:
            self.held += 1
        elif host.is_offered:
            self._make_ready(host)
        else:
            self._let_go(host)
        return host.url

    def _fetch_ahead(self, host: HostAtWork, origin: Origin) -> None:
        """Fetch the robots.txt of `origin` before `host` gets a turn."""
        permissions = self.turns.permissions
        if host not in self._ahead and len(self._ahead) >= permissions.most_ahead:
            self._cold.append(host)
        else:
            self._ahead.add(host)
            permissions.begin(origin, partial(self._use, host))
        host.state = State.UNKNOWN

    def _use(self, host: HostAtWork, standing: Standing | None) -> None:
        """Continue with `host` now that its robots.txt has been fetched."""
        host.standing = standing
        self._make_ready(host)

    def _given(self, host: HostAtWork, claim: Claim) -> Turn:
        self._take_url(host)
        host.turns += 1
        self._open_turns += 1
        claim.patience = math.inf  # in case it is entered too late
        claim.on_over = partial(self._close_turn, host)
        claim.call_soon = self.call_soon
        at = self.clock.monotonic() + _SECONDS_TO_ENTER
        self._handed_out.append((at, claim, host))
        self._hand_out_event.set()
        self._warm_next(host)
        self._go_on(host)
        return Turn(self.turns, claim)

    def _go_on(self, host: HostAtWork) -> None:
        """Let `host` wait for its next turn if it has more work."""
        if not self._has_more(host):
            self._let_go(host)
        elif host.turns:
            self._rest(host)
        else:
            self._make_ready(host)

    def _is_done(self) -> bool:
        return self._end is not None and not self._busy and not self._open_turns

    def _tell_if_full(self) -> None:
        """Report an event if the source has to wait for resting hosts."""
        moment, now = self._queue.first_moment, self.clock.monotonic()
        is_told = now < self._told_full_at + _SECONDS_BETWEEN_EVENTS
        is_soon = not now + _SECONDS_WORTH_TELLING <= moment < math.inf
        if is_told or is_soon or self._end is not None:
            return
        if self.frontier.is_full():
            self._told_full_at = now
            ready_at = self.clock.now() + moment - now
            self.listener.tell(WindowFilled(hosts=self._busy, ready_at=ready_at))


def _ready_at(error: RobotsError) -> float | None:
    """When to try again after `error`; `None` if that would not help."""
    if isinstance(error, TurnNotInTimeError):
        return error.ready_at
    if not isinstance(error, DisallowedError):
        return None
    verdict = error.verdict
    return verdict.fresh_until if verdict.reason is Reason.UNREACHABLE else None
