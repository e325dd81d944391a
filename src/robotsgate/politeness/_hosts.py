"""One gate's hosts: their names, their paces, and the waiting callers.

Callers waiting for a host are served in order of arrival: the first one tries the
ledger, and the others wait for the first. Requests for robots.txt go before requests
for pages. This module must never decide when a request may start; `_host_record.py`
does that.
"""

from __future__ import annotations

import logging
import math
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, cast

import anyio

from robotsgate._flights import finish
from robotsgate.errors import TurnNotInTimeError
from robotsgate.events import DelayClamped, HostBlocked
from robotsgate.politeness._host_record import HostState, pace_of, stated_delay
from robotsgate.politeness._ledger import Grant, LocalLedger
from robotsgate.politeness._turn_end import UNUSED
from robotsgate.urls._url import split_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate._clock import Clock
    from robotsgate.caching._live import Standing, StandingFor
    from robotsgate.checking._reporting import Listener
    from robotsgate.events import GateEvent
    from robotsgate.politeness._host_record import Pace
    from robotsgate.politeness._ledger import Ledger, LedgerStatus
    from robotsgate.politeness._turn_end import Report
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
    """A host whose pace may be unusual.

    Attributes:
        delay: the host's default delay.
        stated: pairs (key of an origin without the host name, the delay it asks for);
            if there are many, only those with the longest delays.
    """

    pace: Pace
    delay: float
    stated: tuple[tuple[str, _Stated], ...]


class Hosts:
    """One gate's hosts.

    Without `delay_of`, which returns a host's default delay, only hosts that ask for a
    delay are remembered. The pace of all others is `usual`.
    """

    def __init__(
        self,
        listener: Listener[GateEvent],
        *,
        host_of: Callable[[str], str] | None,
        delay_of: Callable[[str], float] | None,
        usual: Pace,
        max_hosts: int,
    ) -> None:
        self.listener: Listener[GateEvent] = listener
        self._host_of = host_of
        self._delay_of = delay_of
        self.usual: Pace = usual
        self._max_hosts = max_hosts
        self._hosts: dict[str, _Host] = {}
        self._host_with = lru_cache(_SHARED_HOSTS)(self._new_host)

    def host(self, url: str | URLLike, origin: str) -> str:
        """The name of the host of `url`, whose origin has the key `origin`.

        This also updates the host's default delay, so that `delay_of` raises here and
        not later, when the host has been queued.

        Raises:
            TypeError: `host_of` did not return a name.
            Exception: any exception from `host_of` or `delay_of`.
        """
        host = self._name(url, origin)
        self._known(host)
        return host

    def _name(self, url: str | URLLike, origin: str) -> str:
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
        known = self._hosts.get(host) or self._known(host)
        return self.usual if known is None else known.pace

    def learn(self, host: str, origin: str, rules: StandingFor) -> None:
        """Remember the delay in `rules`, which apply to `origin`."""
        agent_rules = rules.agent_rules
        stated = (agent_rules.crawl_delay, agent_rules.request_rate)
        known = self._hosts.get(host) or self._known(host)
        if known is None and stated == _NOTHING:
            return
        origins = {} if known is None else dict(known.stated)
        short_key = origin.removesuffix(host)
        if stated == origins.get(short_key, _NOTHING):
            return
        origins[short_key] = stated
        if len(origins) > _MOST_ORIGINS:
            del origins[min(origins, key=lambda key: stated_delay(*origins[key]) or 0)]
        delay = self.usual.delay if known is None else known.delay
        self._remember(host, delay, tuple(origins.items()))
        seconds = stated_delay(*stated) or 0.0
        if seconds > self.usual.max_delay:
            self.listener.tell(
                DelayClamped(
                    host=host,
                    origin=origin,
                    stated_delay=seconds,
                    delay=self.usual.max_delay,
                )
            )

    def _known(self, host: str) -> _Host | None:
        """What is known about `host`, after updating its default delay."""
        known = self._hosts.get(host)
        if self._delay_of is None:
            return known
        delay = self._delay_of(host)
        if known is not None and known.delay == delay:
            return known
        return self._remember(host, delay, () if known is None else known.stated)

    def _remember(
        self, host: str, delay: float, stated: tuple[tuple[str, _Stated], ...]
    ) -> _Host:
        if host not in self._hosts and len(self._hosts) >= self._max_hosts:
            del self._hosts[next(iter(self._hosts))]  # its next turn relearns it
        known = self._hosts[host] = self._host_with(delay, stated)
        return known

    def _new_host(self, delay: float, stated: tuple[tuple[str, _Stated], ...]) -> _Host:
        usual = replace(self.usual, delay=delay)
        return _Host(pace_of((delays for _, delays in stated), usual), delay, stated)


@dataclass(slots=True, eq=False)
class Claim:
    """The internal state of one turn, for a page or a robots.txt.

    All times are by `Clock.monotonic`.

    Attributes:
        patience: the total time limit for waiting, in seconds.
        deadline: when the caller stops waiting.
        waits_since: when the caller began to wait; infinite once a long wait has been
            logged.
        order: the sort key in the host's queue: robots.txt before pages, then in order
            of arrival.
        event: wakes the caller; `None` before the first wait.
        grant: `None` unless the turn is open.
        owner: the task or thread that entered the turn; `None` after `Turn.leave_task`.
        report: the last report; `None` if there was none. Set before the turn is
            entered if its schedule is over.
        standing: the state of the origin after a fetch for this turn, if there was one.
        on_over: called once, when the turn has ended or can no longer start.
        call_soon: schedules a call on the event loop, from any thread.
    """

    url: str | URLLike
    patience: float = math.inf
    is_robots_txt: bool = False
    deadline: float = math.inf
    waits_since: float = math.inf
    host: str = ""
    order: tuple[bool, int] = (False, 0)
    event: anyio.Event | None = None
    grant: Grant | None = None
    began_at: float = -math.inf
    is_entered: bool = False
    owner: object = None
    report: Report | None = None
    standing: Standing | None = None
    on_over: Callable[[], object] | None = None
    call_soon: Callable[[Callable[[], object]], object] = field(init=False)

    def wake(self) -> None:
        if self.event is not None:
            self.event.set()

    def close(self) -> None:
        """Call `on_over`, because the turn has ended or can no longer start."""
        self.owner = None  # a task that fails would keep itself alive
        on_over, self.on_over = self.on_over, None
        if on_over is not None:
            on_over()


class Queues:
    """One gate's queues for all hosts; `len` is the number of waiting callers."""

    def __init__(
        self,
        ledger: Ledger,
        hosts: Hosts,
        *,
        clock: Clock,
        on_overdue: Callable[[str, int], None],
    ) -> None:
        self._ledger = ledger
        self._never_suspends = type(ledger) is LocalLedger
        self._hosts = hosts
        self._clock = clock
        self._on_overdue = on_overdue
        self._queues: dict[str, deque[Claim]] = {}
        self._paused: set[Claim] = set()
        self._arrivals = count()
        self.blocks_forgotten: int = 0
        self.is_closed: bool = False

    def __len__(self) -> int:
        return sum(map(len, self._queues.values())) + len(self._paused)

    def length(self, host: str) -> int:
        return len(self._queues.get(host, ()))

    def status(self, host: str) -> LedgerStatus:
        return self._ledger.peek(host, self._hosts.pace(host))

    def seconds_until_ready(self, host: str, *, ahead: int | None = None) -> float:
        """The minimum wait for `host` behind `ahead` (or all) callers, in seconds."""
        ahead = self.length(host) if ahead is None else ahead
        delay = self._hosts.pace(host).delay  # ignoring incidents, whose effect may end
        return self.status(host).wait_seconds + ahead * delay

    def join(self, claim: Claim) -> None:
        """Add `claim` at the end, or ahead of all pages if it is for a robots.txt.

        `leave` must be called later.
        """
        claim.event = None
        claim.order = (not claim.is_robots_txt, next(self._arrivals))
        queue = self._queues.setdefault(claim.host, deque())
        if claim.is_robots_txt:
            insort(queue, claim, key=_order)
        else:
            queue.append(claim)

    def leave(self, claim: Claim) -> None:
        """Remove `claim` and wake the next one."""
        queue = self._queues[claim.host]
        if queue[0] is not claim:
            del queue[self._index(claim)]
            return
        queue.popleft()
        if not queue:
            del self._queues[claim.host]
        self._wake_first(claim.host)

    async def wait(
        self, claim: Claim, *, before_wait: Callable[[Claim], float] | None = None
    ) -> None:
        """Wait until the host of `claim` is ready, and set its grant.

        `before_wait` returns how long the first one in the queue may wait before the
        next call, in seconds.

        Raises:
            TurnNotInTimeError: the turn would start after the deadline, or the gate is
                closed.
        """
        while not self.is_closed:
            least, longest = 0.0, math.inf
            is_first = self._queues[claim.host][0] is claim
            if is_first:
                least = longest = await self._try(claim)
                if claim.grant is not None:
                    return
            elif claim.deadline < math.inf:
                least = self.least_wait(claim)
            left = claim.deadline - self._clock.monotonic()
            if left <= 0 or least > left:
                raise self.not_in_time(claim.host, least)
            if before_wait is not None:
                seconds = before_wait(claim)
                longest = min(longest, seconds) if is_first else longest
            claim.event = anyio.Event()
            await self._clock.wait(min(longest, left), event=claim.event)
        raise self.not_in_time(claim.host, 0.0)

    async def pause(self, claim: Claim, *, until: float) -> None:
        """Leave the queue until `until` (epoch seconds), then join it again.

        If the claim stayed in the queue, the host's other origins would have to wait
        too.
        """
        seconds = until - self._clock.now()
        if self.is_closed or seconds > claim.deadline - self._clock.monotonic():
            raise self.not_in_time(claim.host, seconds)
        self.leave(claim)
        self._paused.add(claim)
        claim.event = anyio.Event()
        try:
            await self._clock.wait(seconds, event=claim.event)
        finally:
            self._paused.discard(claim)
            self.join(claim)

    def least_wait(self, claim: Claim) -> float:
        return self.seconds_until_ready(claim.host, ahead=self._index(claim))

    def not_in_time(self, host: str, seconds: float) -> TurnNotInTimeError:
        """The error for a turn for `host` that is at least `seconds` away."""
        return TurnNotInTimeError(
            f"{host!r} is not ready in time: its next turn is at least"
            f" {seconds:.1f} s away",
            ready_at=self._clock.now() + seconds,
        )

    async def end(self, claim: Claim, report: Report) -> None:
        """End the turn, even if the caller is cancelled."""
        if self._never_suspends:
            await self._end(claim, report)
        else:
            await finish(partial(self._end, claim, report))

    async def _end(self, claim: Claim, report: Report) -> None:
        host, (end, cause, retry_after) = claim.host, report
        grant, claim.grant = cast("Grant", claim.grant), None
        before = self.status(host) if end.is_incident else None
        await self._ledger.end(grant, end, retry_after=retry_after)
        self._wake_first(host)
        if before is None:
            return
        seconds = self.status(host).wait_seconds
        if before.state is not HostState.BLOCKED or seconds > before.wait_seconds:
            _LOGGER.warning("backing off from %s for %.1f s: %s", host, seconds, cause)
            ready_at = self._clock.now() + seconds
            self._hosts.listener.tell(
                HostBlocked(host=host, cause=cause, ready_at=ready_at)
            )

    def wake(self, host: str) -> None:
        """Let the callers waiting for `host` try again."""
        for claim in self._paused:
            if claim.host == host:
                claim.wake()
        self._wake_first(host)

    def close(self) -> None:
        """Refuse all waiting and future callers."""
        self.is_closed = True
        for claims in (self._paused, *self._queues.values()):
            for claim in claims:
                claim.wake()

    def _index(self, claim: Claim) -> int:
        """The number of places ahead of `claim`."""
        return bisect_left(self._queues[claim.host], claim.order, key=_order)

    async def _try(self, claim: Claim) -> float:
        """Try to start the turn; return the seconds until the next try, or 0.0."""
        answer = await self._ledger.start(
            claim.host, self._hosts.pace(claim.host), is_robots_txt=claim.is_robots_txt
        )
        if answer.overdue:
            self._on_overdue(claim.host, answer.overdue)
        if isinstance(answer, Grant):
            claim.grant = answer
            self.blocks_forgotten += answer.forgotten
        if self.is_closed:  # in the meantime
            if claim.grant is not None:
                await self.end(claim, UNUSED)
            raise self.not_in_time(claim.host, 0.0)
        return 0.0 if isinstance(answer, Grant) else answer.seconds

    def _wake_first(self, host: str) -> None:
        queue = self._queues.get(host)
        if queue is not None:
            queue[0].wake()
