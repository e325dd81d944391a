"""Schedules: turns for all the URLs in a crawl, as soon as their hosts are ready.

The two frontiers provide the URLs, from memory or from the caller's own frontier.
`Work` assigns them to workers. Think of it this way: each host with work is in exactly
one state. A worker takes the host that has been ready the longest, and either gets a
turn for it or moves on:

    offered ──► READY ──► TRIED ──► granted: its turn is open
                  ▲        │ │ │                   │
                  │        │ │ └── no work: gone   │
                  ├─ UNKNOWN ◄─┘                   │
                  │  (robots.txt is fetched)       │
                  └─ RESTING ◄─┴───────────────────┘
                     (until the host is ready)

There is no polling: a host becomes ready when a fetch ends, when a turn ends, or at a
time set in its `HostQueue`. There, one worker is on watch: it waits until the first
host is due, while the others just wait to be woken. A worker that gets a host wakes the
next worker, which may then go on watch. This way, a host wakes only one worker, however
many are waiting.

When a schedule is over, however it ended, `Work.skip_all` reports each URL that still
waits somewhere: in the frontier, with its host, or in a turn that nobody has entered.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from functools import partial
from inspect import isawaitable
from itertools import chain
from threading import get_ident
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import anyio

from robotsgate._flights import FairLoop
from robotsgate._public import set_module
from robotsgate.caching._verdict import DisallowedError, Effect, Reason
from robotsgate.errors import (
    InvalidURLError,
    RetriesExhaustedError,
    RobotsError,
    TurnNotInTimeError,
    UnsupportedError,
)
from robotsgate.events import HostSkipped, URLSkipped, WindowFilled
from robotsgate.politeness._host_queue import HostAtWork, HostQueue, State
from robotsgate.politeness._host_record import SHORTEST_WAIT_FOR_PLACE
from robotsgate.politeness._hosts import Claim
from robotsgate.politeness._turn_end import UNUSED
from robotsgate.politeness._turns import Turn
from robotsgate.urls._url import Origin, is_url_like, shown_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from robotsgate._clock import Clock
    from robotsgate._flights import Flights
    from robotsgate.caching._live import Standing
    from robotsgate.checking._reporting import Listener
    from robotsgate.events import GateEvent
    from robotsgate.politeness._hosts import Hosts
    from robotsgate.politeness._turns import Turns
    from robotsgate.urls._url import URLLike

    MaybeURL = str | URLLike | None
    NextURL = Callable[[str], MaybeURL | Awaitable[MaybeURL]]
    Source = Iterable[object] | AsyncIterable[object]

# Long enough for a newly started task to enter its turn.
_SECONDS_TO_ENTER = 1.0

# A crawl may run for days with a full window, so events are limited to one a minute.
# Waits shorter than ten seconds are normal and not worth an event.
_SECONDS_BETWEEN_EVENTS = 60.0
_SECONDS_WORTH_TELLING = 10.0

_PERMITS_SOME = {Effect.RULES, Effect.ALLOW}


@set_module("robotsgate.politeness")
class ScheduledTurn(NamedTuple):
    """A URL from a schedule, with its turn.

    Attributes:
        url: the URL as provided by the source.
        turn: the turn, which has already started; use it with `async with`.
    """

    url: str | URLLike
    turn: Turn


@set_module("robotsgate.politeness")
class TurnSchedule(AsyncIterator[ScheduledTurn]):
    """Yields URLs with their turns to one or more tasks, as hosts become ready.

    Not an async generator, because only one task at a time could iterate over it.
    """

    def __init__(
        self,
        source: Source,
        frontier: URLQueues | AskedFrontier,
        work: Work,
        sources: Flights[bool],
    ) -> None:
        work.frontier = frontier
        # Not a method of the schedule, because a task must not keep that alive.
        self._run = partial(work.run, source)
        self._work = work
        self._sources = sources
        self._thread = get_ident()

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
        """Grant no more turns, and report each waiting URL as a `URLSkipped`.

        Tasks waiting for a turn leave their loops, and the source is read no further.
        Open turns may finish; a turn that no task has entered is taken back, and its
        URL is reported, too. Can be called more than once.
        """
        self._work.close()
        await self._sources.end(self._work)
        await self._work.skip_all()  # in case the schedule has never begun

    def __del__(self) -> None:
        """Stop reading the source, because no more turns can be taken."""
        self._sources.cancel(self._work)


@set_module("robotsgate.politeness")
class URLSchedule(TurnSchedule):
    """A `TurnSchedule` of URLs in memory, to which you can add more URLs."""

    def add(self, url: str | URLLike) -> None:
        """Add `url` to the schedule without waiting.

        If the schedule is over, it reports `url` as a `URLSkipped`. A schedule that
        nobody closes is not over while a task is in one of its turns, so add a page's
        links during the page's turn.

        Raises:
            TypeError: `url` is not a URL.
            RuntimeError: the schedule belongs to another thread.
        """
        if get_ident() != self._thread:
            raise RuntimeError("expected a call from the thread that runs the schedule")
        if not is_url_like(url):
            raise TypeError(f"expected a URL, got {url!r}")
        self._work.frontier.take(url)


class URLQueues:
    """The URLs from a source, in memory and grouped by host."""

    # Whether a URL is only taken from the frontier once its host is ready.
    is_asked_late: bool = False

    def __init__(self, work: Work, *, window: int) -> None:
        self._work = work
        self._window = window
        self._urls: dict[str, deque[str | URLLike]] = {}
        self._count = 0

    def take(self, url: str | URLLike, /) -> None:
        """Add a URL to its host's queue, or skip it if it has no host."""
        work = self._work
        if work.is_over:
            work.skip(url)
            return
        host = work.host_of(url)
        if host is None:
            return
        urls = self._urls.setdefault(host, deque())
        urls.append(url)
        self._count += 1
        if work.patience < math.inf:
            self.skip_late(host, work.turns.queues.seconds_until_ready(host))
        if urls:
            work.offer(host)

    def is_full(self) -> bool:
        return self._count + self._work.held >= self._window

    def has_url(self, host: str) -> bool:
        return host in self._urls

    async def next_url(self, host: str) -> MaybeURL:
        """Return the URL for `host` that has waited the longest, or `None`."""
        return self._take_first(host) if self._urls.get(host) else None

    def take_all(self) -> Iterator[str | URLLike]:
        """Remove and return all URLs, one at a time."""
        for host in list(self._urls):
            while host in self._urls:
                yield self._take_first(host)

    def _take_first(self, host: str) -> str | URLLike:
        urls = self._urls[host]
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
    """A frontier supplied by the caller, with the same methods as `URLQueues`."""

    is_asked_late: bool = True

    def __init__(self, work: Work, next_url: NextURL, *, window: int) -> None:
        self._work = work
        self._next_url = next_url
        self._window = window

    def take(self, host: object, /) -> None:
        if not isinstance(host, str):
            raise TypeError(f"expected the name of a host to be a str, got {host!r}")
        self._work.offer(host)

    def is_full(self) -> bool:
        return len(self._work) >= self._window

    def has_url(self, host: str) -> bool:  # noqa: ARG002 (only the caller knows)
        return True

    async def next_url(self, host: str) -> MaybeURL:
        url = self._next_url(host)
        if isawaitable(url):
            url = await url
        if url is None:
            return None
        name = self._work.host_of(url)
        if name == host:
            return url
        if name is not None:
            message = f"expected a URL on {host!r}, got one on {name!r}"
            self._work.skip(url, InvalidURLError(message, url=url))
        self._work.offer(host)  # which may have other URLs
        return None

    def take_all(self) -> Iterator[str | URLLike]:
        return iter(())  # the caller keeps them

    def skip_late(self, host: str, seconds: float) -> None:
        """Report the host as dropped if it would have to wait too long."""
        if seconds > self._work.patience:
            ready_at = self._work.clock.now() + seconds
            self._work.listener.tell(HostSkipped(host=host, ready_at=ready_at))


async def _read_all(source: Source, take: Callable[[object], Awaitable[None]]) -> None:
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


class Work:
    """A schedule's hosts.

    Separate from the schedule, because tasks keep this object alive.

    Attributes:
        held: how many URLs have been taken from the frontier but have no turn yet.
    """

    frontier: URLQueues | AskedFrontier
    call_soon: Callable[[Callable[[], object]], object]

    def __init__(self, turns: Turns, *, patience: float, retries: int = 0) -> None:
        self.is_over: bool = False
        self.turns = turns
        self.hosts: Hosts = turns.hosts
        self.listener: Listener[GateEvent] = turns.hosts.listener
        self.clock: Clock = turns.clock
        self.patience = patience
        self.held: int = 0
        self._retries = retries
        self._failures: dict[str, int] = {}  # of each URL that is tried again
        self._end: Exception | None = None  # set once the source is exhausted
        self._hosts: dict[str, HostAtWork] = {}
        self._busy = 0  # hosts that are not IDLE
        self._open: set[Claim] = set()
        self._queue: HostQueue = HostQueue(self.clock)
        self._cold: deque[HostAtWork] = deque()
        self._ahead: set[HostAtWork] = set()
        self._room_event = anyio.Event()
        self._handed_out: deque[tuple[float, Claim]] = deque()
        self._hand_out_event = anyio.Event()
        self._told_full_at = -math.inf
        self._loop = FairLoop(self.clock.monotonic)

    def __len__(self) -> int:
        """The number of hosts with work."""
        return self._busy

    async def run(self, source: Source) -> bool:
        """Until cancelled, read the source and take back turns that nobody enters."""
        reading = FairLoop(self.clock.monotonic)

        async def take(item: Any) -> None:  # noqa: ANN401 (of any source)
            self.frontier.take(item)
            await reading.after_item()
            while self.frontier.is_full():
                self._room_event = anyio.Event()
                await self._room_event.wait()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._take_back)
                end: Exception = StopAsyncIteration()
                try:
                    await _read_all(source, take)
                except Exception as error:  # noqa: BLE001 (re-raised in a worker)
                    end = error
                self._end = self._end or end
                self._queue.wake()
        finally:
            # Nothing takes back turns or reads the source anymore.
            self.is_over = True
            self._end = self._end or RuntimeError("the source was cancelled")
            self._queue.wake_all()
            with anyio.CancelScope(shield=True):
                await self.skip_all()
        return True  # pragma: no cover (it is cancelled first)

    async def _take_back(self) -> None:
        """Until cancelled, take back each turn that is not entered in time."""
        while True:
            if not self._handed_out:
                self._hand_out_event = anyio.Event()
                await self._hand_out_event.wait()
            at, claim = self._handed_out[0]
            if not claim.is_entered:
                await self.clock.wait(at - self.clock.monotonic())
            self._handed_out.popleft()
            if not claim.is_entered:
                self._open.discard(claim)  # its caller has the URL
                await self.turns.give_back(claim)
                claim.close()

    def offer(self, name: str) -> None:
        """Make the host called `name` available to the workers."""
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = HostAtWork(name)
        host.is_offered = True
        if host.state is State.IDLE:
            self._busy += 1
            self._go_on(host)

    def close(self) -> None:
        self.is_over = True
        self._end = StopAsyncIteration()
        self._queue.wake_all()

    def skip(self, url: object, error: RobotsError | None = None) -> None:
        """Report that `url` gets no turn, because of `error` or the schedule's end."""
        self._room_event.set()
        self._failures.pop(str(url), None)
        ready_at = self.clock.now() if error is None else _ready_at(error)
        self.listener.tell(URLSkipped(url=url, error=error, ready_at=ready_at))

    async def skip_all(self) -> None:
        """Skip all waiting URLs, including those whose turns nobody has entered."""
        for claim in self._open.union(claim for _, claim in self._handed_out):
            if not claim.is_entered and claim.report is None:
                claim.report = UNUSED  # so nobody can enter it anymore
                self.skip(claim.url)
                await self.turns.give_back(claim)
        telling = FairLoop(self.clock.monotonic)
        for url in chain(self._take_held(), self.frontier.take_all()):
            self.skip(url)
            await telling.after_item()

    def _take_held(self) -> Iterator[str | URLLike]:
        for host in list(self._hosts.values()):
            if host.url is not None:
                yield self._take_url(host)

    def host_of(self, url: Any) -> str | None:  # noqa: ANN401 (of any source)
        """The name of the host of `url`; if it has none, skip `url` and return `None`.

        Raises:
            InvalidURLError: the value is not of a type that represents URLs.
        """
        try:
            return self.hosts.host(url, Origin.from_url(url).key)
        except InvalidURLError as error:
            if not is_url_like(url):
                raise
            self.skip(url, error)
        return None

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
            seconds = self.hosts.usual.max_turn_seconds
        if seconds > _SECONDS_WORTH_TELLING:
            self._warm_next(host)
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
                self._queue.put(cold)

    def look_again(self, name: str) -> None:
        """Look again at when the host called `name` is ready."""
        host = self._hosts.get(name)
        if host is not None and host.state is State.RESTING:
            self._rest(host)

    def _close_turn(self, claim: Claim, host: HostAtWork) -> None:
        if self._retries:
            self._retry(claim)
        host.turns -= 1
        self.look_again(host.name)
        self._forget_if_idle(host)
        self._open.discard(claim)
        if self._is_done():
            self._queue.wake()

    def _retry(self, claim: Claim) -> None:
        """After an incident, queue the URL again unless it has failed too often."""
        url = claim.url
        failures = self._failures.pop(str(url), 0) + 1
        if claim.report is None or not claim.report.end.is_incident:
            return
        if failures > self._retries:
            cause = claim.report.cause
            message = (
                f"{shown_url(url)} failed {failures} times, most recently with {cause}"
            )
            self.skip(url, RetriesExhaustedError(message, cause=cause))
            return
        self._failures[str(url)] = failures
        self.frontier.take(url)

    async def next_turn(self) -> Turn:
        """Raises the same errors as `TurnSchedule.__anext__`."""
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
                    self._queue.put(host)
            if turn is not None:
                return turn
            await self._loop.after_item()

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
            if not self.is_over:  # otherwise, `skip_all` has reported it
                self.skip(self._take_url(host), error)
                self._go_on(host)
            return None
        if self.is_over:  # closed in the meantime
            await self.turns.give_back(claim)
            return None
        return self._given(host, claim)

    async def _next_url(self, host: HostAtWork) -> MaybeURL:
        host.is_offered = False
        try:
            url = await self.frontier.next_url(host.name)
        except Exception:
            self.close()
            raise
        if url is not None and self.is_over:  # closed in the meantime
            self.skip(url)
            return None
        host.url = url
        if url is not None:
            self.held += 1
        elif host.is_offered:
            self._queue.put(host)
        else:
            self._let_go(host)
        return url

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
        self._queue.put(host)

    def _given(self, host: HostAtWork, claim: Claim) -> Turn:
        self._take_url(host)
        host.turns += 1
        self._open.add(claim)
        claim.patience = math.inf  # in case it is entered too late
        claim.on_over = partial(self._close_turn, claim, host)
        claim.call_soon = self.call_soon
        at = self.clock.monotonic() + _SECONDS_TO_ENTER
        self._handed_out.append((at, claim))
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
            self._queue.put(host)

    def _is_done(self) -> bool:
        return self._end is not None and not self._busy and not self._open

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
