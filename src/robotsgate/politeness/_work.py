"""Gives the workers of a crawl its URLs, each when its host has a turn.

How to think of it: each host with work is in one place. A worker takes the host that
has been ready for longest, and comes back with its turn, or without one:

    offered ──► READY ──► TRIED ──► given: its turn is under way
                  ▲        │ │ │                   │
                  │        │ │ └── no work: gone   │
                  ├─ UNKNOWN ◄─┘                   │
                  │  (robots.txt is fetched)       │
                  └─ RESTING ◄─┴───────────────────┘
                     (until its host may be asked)

Nothing polls: the end of a fetch, the end of a turn or a moment in the heap makes a
host ready. Of the workers that wait, the first one also waits for that moment, and
each one that gets a host wakes the next.
"""

from __future__ import annotations

import enum
import heapq
import math
from collections import deque
from functools import partial
from inspect import isawaitable
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

import anyio

from robotsgate.caching._verdict import DisallowedError, Reason
from robotsgate.checking._in_order import LoopTurns, read_all
from robotsgate.errors import InvalidURLError, TurnNotInTimeError, UnsupportedError
from robotsgate.politeness._events import URLLeftOut, WindowFilled
from robotsgate.politeness._host_record import SHORTEST_WAIT_FOR_PLACE
from robotsgate.politeness._turns import Claim, Turn
from robotsgate.urls._origin import Origin

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Awaitable, Callable, Iterable

    from robotsgate._clock import Clock
    from robotsgate.checking._reporting import Listener
    from robotsgate.politeness._events import GateEvent
    from robotsgate.politeness._hosts import Hosts
    from robotsgate.politeness._turns import Turns
    from robotsgate.urls._origin import URLLike

    MaybeURL = str | URLLike | None

# Long enough for a task that was just started to enter its turn.
_SECONDS_TO_ENTER = 1.0

# A crawl may last for days with a full window.
_SECONDS_BETWEEN_EVENTS = 60.0

# The robots.txt of so many hosts may be fetched before their URLs have a turn. It is
# a part of what a checker holds in memory by default.
MOST_HOSTS_AHEAD = 2_000


class ScheduledTurn(NamedTuple):
    """A URL of a schedule, with its turn.

    Attributes:
        url: as the source gave it.
        turn: has begun, to be used by `async with`.
    """

    url: str | URLLike
    turn: Turn


class _State(enum.Enum):
    """Where a host is; see the top of the module."""

    IDLE = enum.auto()
    READY = enum.auto()
    TRIED = enum.auto()
    UNKNOWN = enum.auto()
    RESTING = enum.auto()


class _Host:
    """A host with work, or with turns that have not ended.

    Attributes:
        url: the one that has the next turn; `None` if the frontier is to be asked.
        is_offered: whether more work came since the frontier was asked.
        turns: how many turns have not ended.
        number: that of its valid moment in the heap.
    """

    __slots__ = ("is_offered", "name", "number", "state", "turns", "url")

    def __init__(self, name: str) -> None:
        self.name = name
        self.state = _State.IDLE
        self.url: str | URLLike | None = None
        self.is_offered = False
        self.turns = 0
        self.number = -1


class Frontier(Protocol):
    """The URLs that wait; `Work` asks it for those of a host that may be asked."""

    def take(self, item: Any, /) -> None:  # noqa: ANN401 (a URL, or a host)
        """Take an item of the source, and offer its host to the work."""
        ...

    def is_full(self) -> bool:
        """Whether the source must wait."""
        ...

    def has_url(self, host: str) -> bool:
        """Whether it is worth asking for a URL of `host`."""
        ...

    def next_url(
        self, host: str
    ) -> str | URLLike | Awaitable[str | URLLike | None] | None:
        """The next URL of `host`; `None` if it has none now."""
        ...

    def leave_late(self, host: str, seconds: float) -> None:
        """Leave out what comes too late if the next turn of `host` is in `seconds`."""
        ...


class Work:
    """The hosts of a schedule, apart from it, because tasks keep them alive.

    Attributes:
        is_over: whether no more turns come.
    """

    frontier: Frontier
    call_soon: Callable[[Callable[[], object]], object]

    def __init__(
        self,
        source: Iterable[object] | AsyncIterable[object],
        *,
        turns: Turns,
        hosts: Hosts,
        listener: Listener[GateEvent],
        clock: Clock,
        patience: float,
    ) -> None:
        self.is_over = False
        self.turns = turns
        self.hosts = hosts
        self.listener = listener
        self.clock = clock
        self.patience = patience
        self._source = source
        self.held = 0  # URLs that the hosts have
        self._end: Exception | None = None  # once the source is read
        self._hosts: dict[str, _Host] = {}
        self._busy = 0  # hosts that are not IDLE
        self._open_turns = 0
        self._ready: deque[_Host] = deque()
        self._cold: deque[_Host] = deque()
        self._ahead: set[_Host] = set()
        self._heap: list[tuple[float, int, _Host]] = []
        self._numbers = count()
        self._waiting: deque[anyio.Event] = deque()  # workers
        self._first: anyio.Event | None = None  # of the worker that waits for the heap
        self._room_event = anyio.Event()
        self._handed_out: deque[tuple[float, Claim, _Host]] = deque()
        self._hand_out_event = anyio.Event()
        self._told_full_at = -math.inf
        self._loop_turns = LoopTurns(clock.monotonic)

    def __len__(self) -> int:
        """How many hosts have work."""
        return self._busy

    # --- The source, and turns that nobody enters -------------------------------------

    async def run(self) -> bool:
        """Read the source, and take back turns that nobody enters, until cancelled."""
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._take_back)
                await self._read()
        finally:
            for _, claim, _host in self._handed_out:
                await self.turns.give_back(claim)
        return True

    async def _read(self) -> None:
        reading = LoopTurns(self.clock.monotonic)

        async def take(item: object) -> None:
            self.frontier.take(item)
            await reading.after_item()
            while self.frontier.is_full():
                self._room_event = anyio.Event()
                await self._room_event.wait()

        end: Exception = StopAsyncIteration()
        try:
            await read_all(self._source, take)
        except Exception as error:  # noqa: BLE001 (raised to a worker)
            end = error
        self._end = self._end or end
        self._wake()

    async def _take_back(self) -> None:
        while True:
            if not self._handed_out:
                self._hand_out_event = anyio.Event()
                await self._hand_out_event.wait()
            at, claim, host = self._handed_out[0]
            if not claim.is_entered:
                await self.clock.wait(at - self.clock.monotonic())
            if not claim.is_entered and claim.on_over is not None:
                claim.on_over = self._close_turn
                await self.turns.give_back(claim)
                self._end_turn(host)
            self._handed_out.popleft()

    # --- Hosts with work --------------------------------------------------------------

    def offer(self, name: str) -> None:
        """Let a worker look for work at the host with this name."""
        host = self._hosts.get(name)
        if host is None:
            host = self._hosts[name] = _Host(name)
        host.is_offered = True
        if host.state is not _State.IDLE:
            return
        self._busy += 1
        if host.turns:
            self._rest(host)
        else:
            self._make_ready(host)

    def seconds_until_ready(self, name: str) -> float:
        """The least wait for a turn of a host, ≥ 0."""
        queues = self.turns.queues
        return queues.seconds_until_ready(name, ahead=queues.length(name))

    def not_in_time(self, host: str, seconds: float) -> TurnNotInTimeError:
        """The error for a turn of `host` that comes in `seconds`."""
        return self.turns.queues.not_in_time(host, seconds)

    def close(self) -> None:
        """Give no more turns."""
        self.is_over = True
        self._end = StopAsyncIteration()
        while self._waiting:
            self._wake()

    def leave_out(
        self,
        url: object,
        error: DisallowedError
        | InvalidURLError
        | TurnNotInTimeError
        | UnsupportedError,
    ) -> None:
        """Tell that `url` gets no turn."""
        ready_at = None
        if isinstance(error, TurnNotInTimeError):
            ready_at = error.ready_at
        elif isinstance(error, DisallowedError):
            verdict = error.verdict
            if verdict.reason is Reason.UNREACHABLE:
                ready_at = verdict.fresh_until
        self.listener.tell(URLLeftOut(url=url, error=error, ready_at=ready_at))

    def _make_ready(self, host: _Host) -> None:
        host.state = _State.READY
        self._ready.append(host)
        self._wake()

    def _rest(self, host: _Host, seconds: float | None = None) -> None:
        """Let `host` rest for so long, or until its next turn can begin."""
        if seconds is None:
            seconds = self.seconds_until_ready(host.name)
        if self.patience < math.inf:
            self._leave_late(host, seconds)
            if host.url is None and not self._has_more(host):
                self._let_go(host)
                return
        if host.turns >= self.hosts.pace(host.name).max_at_once:
            # The end of a turn comes before, unless its task has lost it.
            seconds = self.hosts.max_turn_seconds
        if seconds <= 0:
            self._make_ready(host)
            return
        host.state = _State.RESTING
        host.number = next(self._numbers)
        entry = (self.clock.monotonic() + seconds, host.number, host)
        heapq.heappush(self._heap, entry)
        if self._heap[0] is entry:
            self._wake(self._first)
        if len(self._heap) > 2 * self._busy + 100:
            self._heap = [one for one in self._heap if _is_valid(one)]
            heapq.heapify(self._heap)

    def _leave_late(self, host: _Host, seconds: float) -> None:
        if host.url is not None and seconds > self.patience:
            self.leave_out(host.url, self.not_in_time(host.name, seconds))
            self._take_url(host)
        delay = self.hosts.pace(host.name).delay if host.url is not None else 0.0
        self.frontier.leave_late(host.name, seconds + delay)
        if seconds > self.patience:
            host.is_offered = False

    def _take_url(self, host: _Host) -> str | URLLike:
        """The URL that `host` has had until now."""
        url, host.url = host.url, None
        self.held -= 1
        self._room_event.set()
        return cast("str | URLLike", url)

    def _has_more(self, host: _Host) -> bool:
        return host.is_offered or self.frontier.has_url(host.name)

    def _let_go(self, host: _Host) -> None:
        """Keep `host` no longer than its turns: it has no work."""
        self._busy -= 1
        host.state = _State.IDLE
        self._warm_next(host)
        self._room_event.set()
        self._forget_if_idle(host)

    def _forget_if_idle(self, host: _Host) -> None:
        if host.state is _State.IDLE and not host.turns:
            self._hosts.pop(host.name, None)
        if self._is_done():
            self._wake()

    def _warm_next(self, host: _Host) -> None:
        """Fetch another robots.txt ahead, if that of `host` was."""
        if host in self._ahead:
            self._ahead.discard(host)
            if self._cold:
                self._make_ready(self._cold.popleft())

    def _end_turn(self, host: _Host) -> None:
        """The place that a turn of `host` had is free."""
        host.turns -= 1
        if host.state is _State.RESTING:
            self._rest(host)
        self._forget_if_idle(host)

    def _close_turn(self) -> None:
        """A turn is over, and nothing more can come of it."""
        self._open_turns -= 1
        if self._is_done():
            self._wake()

    # --- Workers ----------------------------------------------------------------------

    async def next_turn(self) -> ScheduledTurn:
        """The next URL with its turn; raises as `TurnSchedule.__anext__`."""
        while True:
            self.turns.check_open()
            self._take_due()
            if self.is_over or self._is_done():
                raise self._last_word()
            if not self._ready:
                await self._wait()
                continue
            host = self._ready.popleft()
            if self._ready or self._heap:
                self._wake()
            host.state = _State.TRIED
            try:
                scheduled = await self._try(host)
            finally:
                if host.state is _State.TRIED:  # cancelled, or a mistake
                    self._make_ready(host)
            if scheduled is not None:
                return scheduled
            await self._loop_turns.after_item()

    async def _try(self, host: _Host) -> ScheduledTurn | None:
        """A turn of `host`; if there is none now, `host` is in its place again."""
        seconds = self.seconds_until_ready(host.name)
        if seconds > 0:
            self._rest(host, seconds)
            return None
        if host.url is None:
            host.is_offered = False
            url = await self._next_url(host)
            if url is None:
                if host.is_offered:
                    self._make_ready(host)
                else:
                    self._let_go(host)
                return None
            host.url = url
            self.held += 1
        claim = Claim(host.url, patience=0.0)
        try:
            if self._is_unknown(host, Origin.from_url(host.url)):
                return None
            await self.turns.begin(claim)
        except TurnNotInTimeError as late:
            seconds = late.ready_at - self.clock.now()
            self._rest(host, max(seconds, SHORTEST_WAIT_FOR_PLACE))
            return None
        except (DisallowedError, UnsupportedError) as error:
            self.leave_out(self._take_url(host), error)
            self._go_on(host)
            return None
        return self._given(host, claim)

    async def _next_url(self, host: _Host) -> MaybeURL:
        try:
            url = self.frontier.next_url(host.name)
            return await url if isawaitable(url) else url
        except Exception:
            self.close()
            raise

    def _is_unknown(self, host: _Host, origin: Origin) -> bool:
        """Whether the robots.txt of `origin` is to be fetched before a turn."""
        permissions = self.turns.permissions
        if permissions.is_known(origin):
            return False
        if host not in self._ahead and len(self._ahead) >= MOST_HOSTS_AHEAD:
            self._cold.append(host)
        else:
            permissions.begin(origin, then=partial(self._make_ready, host))
            self._ahead.add(host)
        host.state = _State.UNKNOWN
        return True

    def _given(self, host: _Host, claim: Claim) -> ScheduledTurn:
        url = self._take_url(host)
        host.turns += 1
        self._open_turns += 1
        claim.patience = math.inf  # in case it is entered too late
        claim.on_over = partial(self._end_and_close_turn, host)
        claim.call_soon = self.call_soon
        at = self.clock.monotonic() + _SECONDS_TO_ENTER
        self._handed_out.append((at, claim, host))
        self._hand_out_event.set()
        self._warm_next(host)
        self._go_on(host)
        return ScheduledTurn(url, Turn(self.turns, claim))

    def _end_and_close_turn(self, host: _Host) -> None:
        self._end_turn(host)
        self._close_turn()

    def _go_on(self, host: _Host) -> None:
        """Let `host` wait for its next turn, if it has more work."""
        if not self._has_more(host):
            self._let_go(host)
        elif host.turns:
            self._rest(host)
        else:
            self._make_ready(host)

    def _take_due(self) -> None:
        """Make the hosts ready whose moment has come."""
        now = self.clock.monotonic()
        while self._heap and (self._heap[0][0] <= now or not _is_valid(self._heap[0])):
            entry = heapq.heappop(self._heap)
            if _is_valid(entry):
                entry[2].state = _State.READY
                self._ready.append(entry[2])

    def _is_done(self) -> bool:
        return self._end is not None and not self._busy and not self._open_turns

    def _last_word(self) -> Exception:
        """What ends the loop of this worker; the error of the source comes once."""
        end = self._end or StopAsyncIteration()
        self.close()
        return end

    async def _wait(self) -> None:
        """Wait until a worker is needed; the first one also waits for the heap."""
        if self._end is None and self.frontier.is_full():
            self._tell_full()
        event = anyio.Event()
        self._waiting.append(event)
        seconds = math.inf
        if self._first is None:
            self._first = event
            if self._heap:
                seconds = self._heap[0][0] - self.clock.monotonic()
        is_cancelled = True
        try:
            await self.clock.wait(seconds, event=event)
            is_cancelled = False
        finally:
            if self._first is event:
                self._first = None
            if not event.is_set():
                self._waiting.remove(event)
            if is_cancelled:
                self._wake()

    def _wake(self, event: anyio.Event | None = None) -> None:
        """Wake the worker with this event, or the one that has waited for longest."""
        if event is not None and event in self._waiting:
            self._waiting.remove(event)
            event.set()
        elif self._waiting:
            self._waiting.popleft().set()

    def _tell_full(self) -> None:
        now = self.clock.monotonic()
        if self._heap and now >= self._told_full_at + _SECONDS_BETWEEN_EVENTS:
            self._told_full_at = now
            ready_at = self.clock.now() + self._heap[0][0] - now
            self.listener.tell(WindowFilled(hosts=self._busy, ready_at=ready_at))


def _is_valid(entry: tuple[float, int, _Host]) -> bool:
    """Whether a moment in the heap still counts."""
    _, number, host = entry
    return host.state is _State.RESTING and host.number == number
