"""One gate's hosts: their names, their paces, and the waiting callers.

Callers waiting for a host are served in order of arrival: the first one tries the
ledger, and the others wait for the first. Requests for robots.txt go before requests
for pages. This module must never decide when a request may start; `_host_record.py`
does that. This module is longer than the others, because a place in a queue and its
host's pace belong together.
"""

from __future__ import annotations

import logging
import math
from bisect import bisect_left, insort
from collections import deque
from functools import lru_cache
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

import anyio

from robotsgate.errors import TurnNotInTimeError
from robotsgate.events import DelayClamped, HostBlocked
from robotsgate.politeness._host_record import TurnEnd, pace_of, stated_delay
from robotsgate.politeness._ledger import Grant
from robotsgate.urls._url import split_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate._clock import Clock
    from robotsgate.caching._standing import StandingFor
    from robotsgate.checking._reporting import Listener
    from robotsgate.events import GateEvent
    from robotsgate.politeness._host_record import Pace
    from robotsgate.politeness._ledger import Ledger, LedgerStatus, Wait
    from robotsgate.robotstxt._model import RequestRate
    from robotsgate.urls._url import URLLike

_LOGGER = logging.getLogger("robotsgate.politeness")

_Stated = tuple[float | None, "RequestRate | None"]
_NOTHING: _Stated = (None, None)


# Most hosts with a delay have one origin and one of a few delays, so equal hosts share
# an object.
_SHARED_HOSTS = 1_000

# How many origins are remembered for each host: `host_of` may combine thousands.
_MOST_ORIGINS = 20

_order = attrgetter("order")


class _Host(NamedTuple):
    """A host with an origin that asks for a delay.

    Attributes:
        pace: the host's pace, taking all of its origins into account.
        stated: pairs (key of an origin without the host name, the delay it asks for);
            if there are many, only those with the longest delays.
    """

    pace: Pace
    stated: tuple[tuple[str, _Stated], ...]


class Hosts:
    """One gate's hosts.

    Only hosts that ask for a delay are remembered.

    Attributes:
        listener: the gate's listener.
        max_turn_seconds: the age at which a turn is considered over.
    """

    def __init__(
        self,
        listener: Listener[GateEvent],
        *,
        host_of: Callable[[str], str] | None,
        default_delay: float,
        max_delay: float,
        delay_factor: float,
        max_at_once: int,
        max_turn_seconds: float,
        max_hosts: int,
    ) -> None:
        self.listener: Listener[GateEvent] = listener
        self._host_of = host_of
        self._default_delay = default_delay
        self._max_delay = max_delay
        self._delay_factor = delay_factor
        self._max_at_once = max_at_once
        self.max_turn_seconds = max_turn_seconds
        self._max_hosts = max_hosts
        self._hosts: dict[str, _Host] = {}
        self._host_with = lru_cache(_SHARED_HOSTS)(self._new_host)
        self._usual = self._new_host(()).pace

    def host(self, url: str | URLLike, origin: str) -> str:
        """The name of the host of `url`, whose origin has the key `origin`.

        Raises:
            TypeError: `host_of` did not return a name.
        """
        if self._host_of is None:
            address = origin[origin.index("/") + 2 :]
            name, colon, port = address.rpartition(":")
            return name if colon and port[-1] != "]" else address
        host: object = self._host_of(f"{origin}{split_url(url)[1]}")
        if not isinstance(host, str) or not host:
            raise TypeError(
                f"expected host_of to return the name of a host, got {host!r}"
            )
        return host

    def pace(self, host: str) -> Pace:
        """The pace of `host`, based on the origins known so far."""
        known = self._hosts.get(host)
        return self._usual if known is None else known.pace

    def learn(self, host: str, origin: str, rules: StandingFor) -> None:
        """Remember the delay in `rules`, which apply to `origin`."""
        agent_rules = rules.agent_rules
        stated = (agent_rules.crawl_delay, agent_rules.request_rate)
        known = self._hosts.get(host)
        if known is None and stated == _NOTHING:
            return
        origins = {} if known is None else dict(known.stated)
        short_key = origin.removesuffix(host)
        if stated == origins.get(short_key, _NOTHING):
            return
        origins[short_key] = stated
        if len(origins) > _MOST_ORIGINS:
            del origins[min(origins, key=lambda key: stated_delay(*origins[key]) or 0)]
        if known is None and len(self._hosts) >= self._max_hosts:
            del self._hosts[next(iter(self._hosts))]  # its next turn relearns it
        self._hosts[host] = self._host_with(tuple(origins.items()))
        seconds = stated_delay(*stated) or 0.0
        if seconds > self._max_delay:
            self.listener.tell(
                DelayClamped(
                    host=host,
                    origin=origin,
                    stated_delay=seconds,
                    delay=self._max_delay,
                )
            )

    def report_blocked(self, event: HostBlocked, *, seconds: float) -> None:
        """Log and report that the gate is backing off from a host for `seconds`."""
        _LOGGER.info(
            "backing off from %s for %.1f s: %s", event.host, seconds, event.cause
        )
        self.listener.tell(event)

    def _new_host(self, stated: tuple[tuple[str, _Stated], ...]) -> _Host:
        pace = pace_of(
            (delays for _, delays in stated),
            default_delay=self._default_delay,
            max_delay=self._max_delay,
            max_at_once=self._max_at_once,
            max_turn_seconds=self.max_turn_seconds,
            delay_factor=self._delay_factor,
        )
        return _Host(pace, stated)


class Place:
    """A place in a host's queue.

    Attributes:
        host: the host that the caller is waiting for.
        is_robots_txt: whether the place is for fetching a robots.txt.
        order: the sort key in the queue: robots.txt before pages, then in order of
            arrival.
        event: wakes the caller; `None` before the first wait.
    """

    __slots__ = ("event", "host", "is_robots_txt", "order")

    def __init__(self, host: str, *, is_robots_txt: bool = False) -> None:
        self.host: str = host
        self.is_robots_txt: bool = is_robots_txt
        self.order: tuple[bool, int] = (False, 0)
        self.event: anyio.Event | None = None

    def wake(self) -> None:
        """Wake the caller."""
        if self.event is not None:
            self.event.set()


class Queues:
    """One gate's queues for all hosts; `len` is the number of waiting callers.

    Attributes:
        blocks_forgotten: how many blocked hosts the ledger has dropped.
        is_closed: whether no more turns are granted.
    """

    def __init__(
        self,
        ledger: Ledger,
        hosts: Hosts,
        *,
        clock: Clock,
        on_overdue: Callable[[str, int], None],
    ) -> None:
        """Start empty; `on_overdue` is called with a host and a number of turns."""
        self._ledger = ledger
        self._hosts = hosts
        self._clock = clock
        self._on_overdue = on_overdue
        self._queues: dict[str, deque[Place]] = {}
        self._paused: set[Place] = set()
        self._arrivals = count()
        self.blocks_forgotten: int = 0
        self.is_closed: bool = False

    def __len__(self) -> int:
        return sum(map(len, self._queues.values())) + len(self._paused)

    def length(self, host: str) -> int:
        """The number of callers waiting for `host`."""
        return len(self._queues.get(host, ()))

    def status(self, host: str) -> LedgerStatus:
        """The state of `host`, as far as this process knows."""
        return self._ledger.peek(host, self._hosts.pace(host))

    def seconds_until_ready(self, host: str, *, ahead: int | None = None) -> float:
        """The minimum wait for `host` behind `ahead` (or all) callers, in seconds."""
        ahead = self.length(host) if ahead is None else ahead
        delay = self._hosts.pace(host).delay  # ignoring incidents, whose effect may end
        return self.status(host).wait_seconds + ahead * delay

    def join(self, place: Place) -> None:
        """Add `place` at the end, or ahead of all pages if it is for a robots.txt.

        `leave` must be called later.
        """
        place.order = (not place.is_robots_txt, next(self._arrivals))
        queue = self._queues.setdefault(place.host, deque())
        if place.is_robots_txt:
            insort(queue, place, key=_order)
        else:
            queue.append(place)

    def leave(self, place: Place) -> None:
        """Remove `place` and wake the next one."""
        queue = self._queues[place.host]
        if queue[0] is not place:
            del queue[self._index(place)]
            return
        queue.popleft()
        if not queue:
            del self._queues[place.host]
        self._wake_first(place.host)

    async def grant(
        self,
        place: Place,
        *,
        deadline: float,
        before_wait: Callable[[str], None] | None = None,
    ) -> Grant:
        """Wait until the host of `place` is ready, and return the grant.

        Args:
            place: a place that has joined.
            deadline: when the caller stops waiting, by `Clock.monotonic`; may be
                infinite.
            before_wait: called with the host before each wait.

        Raises:
            TurnNotInTimeError: the turn would start after `deadline`, or the gate is
                closed.
        """
        while not self.is_closed:
            queue = self._queues[place.host]
            if queue[0] is place:
                answer = await self._ask(place)
                if isinstance(answer, Grant):
                    return answer
                least = longest = answer.seconds
            else:
                longest = math.inf
                least = 0.0 if deadline == math.inf else self.least_wait(place)
            left = deadline - self._clock.monotonic()
            if left <= 0 or least > left:
                raise self.not_in_time(place.host, least)
            if before_wait is not None:
                before_wait(place.host)
            place.event = anyio.Event()
            await self._clock.wait(min(longest, left), event=place.event)
        raise self.not_in_time(place.host, 0.0)

    async def pause(self, place: Place, *, until: float, deadline: float) -> None:
        """Leave the queue until `until`, then join it again.

        If the place stayed in the queue, the host's other origins would have to wait
        too.

        Args:
            place: a place that has joined.
            until: epoch seconds.
            deadline: when the caller stops waiting, by `Clock.monotonic`.

        Raises:
            TurnNotInTimeError: `until` is after `deadline`, or the gate is closed.
        """
        seconds = until - self._clock.now()
        if self.is_closed or seconds > deadline - self._clock.monotonic():
            raise self.not_in_time(place.host, seconds)
        self.leave(place)
        self._paused.add(place)
        place.event = anyio.Event()
        try:
            await self._clock.wait(seconds, event=place.event)
        finally:
            self._paused.discard(place)
            self.join(place)

    def least_wait(self, place: Place) -> float:
        """The minimum wait for `place`, in seconds."""
        return self.seconds_until_ready(place.host, ahead=self._index(place))

    def not_in_time(self, host: str, seconds: float) -> TurnNotInTimeError:
        """The error for a turn for `host` that is at least `seconds` away."""
        return TurnNotInTimeError(
            f"{host!r} is not ready in time: its next turn is at least"
            f" {seconds:.1f} s away",
            ready_at=self._clock.now() + seconds,
        )

    async def end(
        self,
        grant: Grant,
        end: TurnEnd,
        *,
        cause: str = "",
        retry_after: float | None = None,
    ) -> None:
        """Like `Ledger.end`, but also takes a `cause`, as in `HostBlocked`."""
        with anyio.CancelScope(shield=True):
            await self._ledger.end(grant, end, retry_after=retry_after)
        self._wake_first(grant.host)
        if end.is_incident:
            seconds = self.status(grant.host).wait_seconds
            ready_at = self._clock.now() + seconds
            event = HostBlocked(host=grant.host, cause=cause, ready_at=ready_at)
            self._hosts.report_blocked(event, seconds=seconds)

    def close(self) -> None:
        """Refuse all waiting and future callers."""
        self.is_closed = True
        for places in (self._paused, *self._queues.values()):
            for place in places:
                place.wake()

    def _index(self, place: Place) -> int:
        """The number of places ahead of `place`."""
        return bisect_left(self._queues[place.host], place.order, key=_order)

    async def _ask(self, place: Place) -> Grant | Wait:
        answer = await self._ledger.start(
            place.host,
            self._hosts.pace(place.host),
            is_robots_txt=place.is_robots_txt,
        )
        if answer.overdue:
            self._on_overdue(place.host, answer.overdue)
        if isinstance(answer, Grant):
            self.blocks_forgotten += len(answer.forgotten)
        if self.is_closed:  # in the meantime
            if isinstance(answer, Grant):
                await self.end(answer, TurnEnd.UNUSED)
            raise self.not_in_time(place.host, 0.0)
        return answer

    def _wake_first(self, host: str) -> None:
        queue = self._queues.get(host)
        if queue is not None:
            queue[0].wake()
