"""The politeness gate, which spaces out requests to each host. Start reading here.

The path of a turn: `PolitenessGate.turn` → `Turn` → `Turns.begin` → robots.txt, from
memory or through `Permissions` → `Queues`, in order of arrival → `Ledger.start`, which
applies the rules in `_host_record.py`. The gate uses the checker, but the checker does
not use the gate.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Self
from weakref import WeakSet

from robotsgate._flights import Flights
from robotsgate._public import set_module
from robotsgate.caching._policy import in_seconds
from robotsgate.caching._question import Agent, check_bound, check_urls
from robotsgate.checking._checker import RobotsChecker
from robotsgate.checking._reporting import Listener
from robotsgate.events import GateStats
from robotsgate.politeness._host_record import Pace
from robotsgate.politeness._hosts import Claim, Hosts
from robotsgate.politeness._ledger import Ledger, LocalLedger
from robotsgate.politeness._schedule import (
    AskedFrontier,
    TurnSchedule,
    URLQueues,
    URLSchedule,
    Work,
)
from robotsgate.politeness._turns import Turn, Turns, pause_until
from robotsgate.robotstxt._model import JSONValue
from robotsgate.urls._url import Origin

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import timedelta

    from robotsgate.events import GateEvent
    from robotsgate.politeness._host_record import HostState
    from robotsgate.urls._url import URLLike

_LOGGER = logging.getLogger("robotsgate.politeness")


@set_module("robotsgate.politeness")
@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus(JSONValue):
    """The state of a host, as far as this process knows.

    Attributes:
        host: the host name.
        state: whether the gate is backing off from the host.
        delay: seconds between requests, including the effect of incidents.
        waiting: how many callers and robots.txt fetches are waiting for the host.
        under_way: the number of open turns and robots.txt fetches.
        ready_at: the earliest time at which a new caller would get a turn, in epoch
            seconds.
    """

    host: str
    state: HostState
    delay: float
    waiting: int
    under_way: int
    ready_at: float


@set_module("robotsgate")
class PolitenessGate:
    """Limits how often a crawler sends requests to each host.

    Between the end of a request to a host and the start of the next one, the gate waits
    for the host's delay: the longest of its crawl-delay, its request-rate and
    `default_delay`. The delay also applies to the gate's own requests for robots.txt,
    but not to requests caused by direct calls to the checker. After a 429 or 503, the
    gate backs off from the host and then slows down.

    Use it as an async context manager, or call `aclose` at the end. It can be shared by
    any number of tasks in one event loop. A checker can have several gates; give them
    the same ledger if they should share limits.
    """

    def __init__(
        self,
        checker: RobotsChecker,
        agent: str | Sequence[str],
        *,
        default_delay: float | timedelta | Callable[[str], float | timedelta] = 1.0,
        max_delay: float | timedelta = 3_600.0,
        delay_factor: float = 0.0,
        max_concurrent_per_host: int = 1,
        max_turn_seconds: float | timedelta = 300.0,
        max_hosts: int = 100_000,
        host_of: Callable[[str], str] | None = None,
        ledger: Ledger | None = None,
        on_event: Callable[[GateEvent], object] | None = None,
    ) -> None:
        """Create a gate without sending any requests.

        Durations are in seconds; a `timedelta` is converted.

        Args:
            checker: checks URLs against robots.txt and provides the clock. Close the
                checker yourself, after the gate.
            agent: the crawler, as in `RobotsChecker.can_fetch`.
            default_delay: the minimum delay for a host, in seconds, ≥ 0; or a function
                that returns it for the name of a host, as returned by `host_of`. The
                function is called for each turn, so a change applies from the next turn
                on. An exception that it raises reaches the caller of the turn, or a
                task that iterates over the schedule.
            max_delay: the maximum delay for a host, in seconds, ≥ `default_delay`. If a
                host asks for a longer delay, the gate reports a `DelayClamped` event.
            delay_factor: the delay after a turn is at least this factor times the
                turn's duration, up to `max_delay`; ≥ 0. This way, slow hosts get fewer
                requests.
            max_concurrent_per_host: the maximum number of open turns per host, ≥ 1. A
                host with a crawl-delay gets only one turn at a time.
            max_turn_seconds: the age in seconds, > 0, at which a turn is considered
                over; `stats.overdue` counts these turns.
            max_hosts: how many hosts the gate remembers, ≥ 1.
            host_of: returns the name of the host that a URL belongs to, for example its
                registrable domain. It is called with the normalized URL, without
                userinfo or fragment. By default, the name is the URL's host.
            ledger: stores the hosts' state; the gate does not close it. By default, a
                `LocalLedger`.
            on_event: called with each `GateEvent`; it must not block. Exceptions that
                it raises are logged.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: an argument is out of range.
            InvalidProductTokenError: `agent` is not the name of a crawler.
        """
        given: object = checker  # callers without a type checker
        if not isinstance(given, RobotsChecker):
            raise TypeError(f"expected a robotsgate.RobotsChecker, got {given!r}")
        delay_of = None
        if callable(default_delay):
            delay_of = _checked(default_delay, most=_seconds("max_delay", max_delay))
            default_delay = 0.0
        default_delay = _seconds("default_delay", default_delay)
        max_delay = _seconds("max_delay", max_delay, least=default_delay)
        _number("delay_factor", delay_factor)
        max_turn_seconds = _seconds("max_turn_seconds", max_turn_seconds)
        if max_turn_seconds == 0:
            raise ValueError("expected max_turn_seconds above 0, got 0")
        check_bound("max_concurrent_per_host", max_concurrent_per_host)
        check_bound("max_hosts", max_hosts)
        if not (host_of is None or callable(host_of)):
            raise TypeError(f"expected host_of to be callable, got {host_of!r}")
        given = ledger
        if not (given is None or isinstance(given, Ledger)):
            raise TypeError(
                "expected ledger to have start, end, peek, forget and aclose,"
                f" got {given!r}"
            )
        self._agent = Agent.of(agent)
        self._lookups = checker._lookups  # noqa: SLF001 (same package)
        self._clock = self._lookups.clock
        self._listener: Listener[GateEvent] = Listener(on_event, logger=_LOGGER)
        if ledger is None:
            ledger = LocalLedger(max_hosts=max_hosts, clock=self._clock)
        self._hosts = Hosts(
            self._listener,
            host_of=host_of,
            delay_of=delay_of,
            usual=Pace(
                delay=default_delay,
                max_at_once=max_concurrent_per_host,
                max_delay=max_delay,
                max_turn_seconds=max_turn_seconds,
                delay_factor=delay_factor,
            ),
            max_hosts=max_hosts,
        )
        self._ledger = ledger
        self._turns = Turns(
            self._lookups, agent=self._agent, hosts=self._hosts, ledger=ledger
        )
        self._sources: Flights[bool] = Flights("gate")
        self._works: WeakSet[Work] = WeakSet()

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied, like a checker."""
        RobotsChecker.__reduce__(self)

    def __repr__(self) -> str:
        """The gate, with the product tokens of its agent."""
        agent, waiting = ",".join(self._agent.tokens), len(self._turns.queues)
        return f"<robotsgate.PolitenessGate agent={agent!r} waiting={waiting}>"

    async def __aenter__(self) -> Self:
        """The gate itself."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Call `aclose`."""
        await self.aclose()

    async def aclose(self) -> None:
        """Grant no more turns.

        Callers waiting for a turn get a RuntimeError. Open turns for pages may finish;
        a turn for a robots.txt ends, but the fetch continues. The checker and your
        ledger stay open. Can be called more than once.
        """
        self._turns.queues.close()
        self._sources.close()
        await self._turns.permissions.aclose()
        await self._sources.aclose()
        for work in list(self._works):  # in case a schedule has never begun
            work.close()
            await work.skip_all()

    def turn(
        self, url: str | URLLike, *, patience: float | timedelta | None = None
    ) -> Turn:
        """Return a turn for one request to the host of `url`; use it with `async with`.

        The turn waits for the origin's robots.txt, and then, in order of arrival, for
        the host. If the robots.txt has expired or been replaced by then, the gate
        checks again. If fetching it returned a 429 or 503, and a stale copy or the
        policy allows the page, the turn waits for the next fetch.

        Args:
            url: the URL to fetch, as in `RobotsChecker.can_fetch`.
            patience: the limit for both waits combined, in seconds, ≥ 0; `None` for no
                limit. With 0, the turn starts immediately or not at all; the checker
                still fetches an uncached robots.txt for later lookups.

        Raises:
            TypeError: `patience` is not a number.
            ValueError: `patience` is negative or nan.
        """
        if patience is None:
            return Turn(self._turns, Claim(url))
        seconds = _seconds("patience", patience, is_finite=False)
        return Turn(self._turns, Claim(url, patience=seconds))

    def schedule(
        self,
        urls: Iterable[str | URLLike] | AsyncIterable[str | URLLike] = (),
        *,
        window: int = 100_000,
        patience: float | timedelta | None = None,
        retries: int = 0,
    ) -> URLSchedule:
        """Iterate over URLs, getting each one as soon as its host is ready.

        Returns an async iterator of pairs `(url, turn)`. Any number of tasks can
        iterate over it to send requests concurrently. The turns have already started,
        so enter each one (`async with`) within a second, or skip its URL. A turn that
        is not entered in time is taken back. If you enter it later, it waits again, and
        the schedule may end first.

        URLs are queued by host, so hosts do not block each other as long as fewer than
        `window` URLs are waiting. The schedule ends when `urls` is exhausted, no URL is
        waiting, and all turns have ended. So a crawl can `add` the links on a page
        during that page's turn.

        The gate skips URLs that robots.txt disallows, that have no origin with a
        robots.txt, or that would have to wait too long, and reports each one as a
        `URLSkipped` event. Callers waiting in `turn` go first. You can leave or cancel
        the loop at any time. If the schedule or the gate is closed, all URLs still
        waiting are reported, too.

        Args:
            urls: any iterable or async iterable, including an endless one. It is read
                in another task, so an async iterable can depend on what you do with
                earlier URLs. If `urls` is an async generator, it is closed when the
                schedule ends.
            window: how many URLs can wait in memory, ≥ 1; when fewer are waiting, more
                are read.
            patience: the longest wait in seconds, ≥ 0; `None` for no limit. URLs that
                would have to wait longer are skipped; the wait includes the turns of
                URLs already waiting for the same host.
            retries: how many more turns a URL gets after a 429, a 503 or a failure,
                each after the gate has backed off from the host, ≥ 0. If the last one
                fails, too, the URL is skipped.

        Raises:
            TypeError: `urls` is a single URL, or not iterable; or another argument has
                the wrong type.
            ValueError: an argument is out of range.
            RuntimeError: the gate is closed; raised while you iterate.
            Exception: any exception from `urls`; raised in one of the iterating tasks,
                after the turns for the URLs before it.
        """
        check_urls(urls, may_be_async=True)
        check_bound("window", window)
        check_bound("retries", retries, lowest=0)
        work = self._work(patience, retries=retries)
        queues = URLQueues(work, window=window)
        return URLSchedule(urls, queues, work, self._sources)

    def schedule_hosts(
        self,
        hosts: Iterable[str] | AsyncIterable[str],
        next_url: Callable[
            [str], str | URLLike | Awaitable[str | URLLike | None] | None
        ],
        *,
        window: int = 10_000,
        patience: float | timedelta | None = None,
    ) -> TurnSchedule:
        """Like `schedule`, but for your own frontier, which may be on disk.

        You keep the URLs: when a host is ready, the schedule calls `next_url` with the
        host's name. There is no `retries` argument; to retry a URL, return it again.

        Args:
            hosts: the names of hosts that have URLs, as returned by `host_of`. The
                iterable can be endless and can repeat a host that has new URLs.
            next_url: returns the next URL for a host, or `None` if there is none. The
                host is then dropped until `hosts` yields it again. A URL that is
                invalid or on a different host is skipped. The function can be async.
            window: the maximum number of active hosts, ≥ 1.
            patience: the longest wait in seconds, ≥ 0; `None` for no limit. A host that
                would have to wait longer is dropped, with a `HostSkipped` event.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: an argument is out of range.
            RuntimeError: the gate is closed; raised while you iterate.
            Exception: any exception from `hosts` or `next_url`; raised in one of the
                iterating tasks.
        """
        if isinstance(hosts, str) or not isinstance(hosts, Iterable | AsyncIterable):
            raise TypeError(f"expected hosts to be an iterable of names, got {hosts!r}")
        if not callable(next_url):
            raise TypeError(f"expected next_url to be callable, got {next_url!r}")
        check_bound("window", window)
        work = self._work(patience)
        frontier = AskedFrontier(work, next_url, window=window)
        return TurnSchedule(hosts, frontier, work, self._sources)

    def _work(self, patience: float | timedelta | None, *, retries: int = 0) -> Work:
        if patience is None:
            patience = math.inf
        seconds = _seconds("patience", patience, is_finite=False)
        work = Work(self._turns, patience=seconds, retries=retries)
        self._works.add(work)
        return work

    def ready_at(self, url: str | URLLike) -> float:
        """The earliest time at which a turn for `url` could start, in epoch seconds.

        This is a lower bound, based on what this process knows; use it to write your
        own scheduler. The call does not wait or start a fetch.

        Raises:
            InvalidURLError: `url` has no origin.
        """
        return self.status(url).ready_at

    def status(self, url: str | URLLike) -> HostStatus:
        """The state of the host that `url` belongs to, as far as this process knows.

        Raises:
            InvalidURLError: `url` has no origin.
        """
        origin = str(Origin.from_url(url))
        host = self._hosts.host(url, origin)
        standing, rules = self._lookups.in_memory(self._agent, origin)
        if rules is not None:
            self._hosts.learn(host, origin, rules)
        queues = self._turns.queues
        status = queues.status(host)
        seconds = queues.seconds_until_ready(host)
        return HostStatus(
            host=host,
            state=status.state,
            delay=status.delay,
            waiting=queues.length(host),
            under_way=status.under_way,
            ready_at=max(self._clock.now() + seconds, pause_until(standing)),
        )

    async def forget(self, url: str | URLLike) -> None:
        """Forget the incidents of the host that `url` belongs to.

        Use it after an outage of your own: backing off, waiting for a Retry-After and
        slowing down end immediately. The host's delay still applies, and turns stay
        open. If robots.txt itself could not be fetched, call `RobotsChecker.refresh`
        first, because pages depend on it.

        A `SharedLedger` also changes the record that processes share. A process that
        already knows about a block waits for it to end unless that process calls this,
        too.

        Raises:
            InvalidURLError: `url` has no origin.
        """
        host = self._hosts.host(url, str(Origin.from_url(url)))
        try:
            await self._ledger.forget(host, self._hosts.pace(host))
        finally:
            self._turns.queues.wake(host)
            for work in list(self._works):
                work.look_again(host)

    @property
    def stats(self) -> GateStats:
        """The current counters."""
        return GateStats(
            blocks_forgotten=self._turns.queues.blocks_forgotten,
            seconds_waited=self._turns.seconds_waited,
            waiting=len(self._turns.queues),
            under_way=sum(map(len, self._turns.under_way.values())),
            event_failures=self._listener.failures,
            **self._turns.counts,
        )


def _checked(
    default_delay: Callable[[str], float | timedelta], *, most: float
) -> Callable[[str], float]:
    """`default_delay`, but raising if it returns a bad delay."""

    def delay_of(host: str) -> float:
        name = f"default_delay({host!r})"
        delay = _seconds(name, default_delay(host))
        if delay > most:
            raise ValueError(
                f"expected {name} to be at most max_delay ({most:g}), got {delay}"
            )
        return delay

    return delay_of


def _seconds(
    name: str, value: object, *, least: float = 0.0, is_finite: bool = True
) -> float:
    """A duration in seconds, checked."""
    return _number(name, in_seconds(value), least=least, is_finite=is_finite)


def _number(
    name: str, number: object, *, least: float = 0.0, is_finite: bool = True
) -> float:
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"expected {name} to be a float, got {number!r}")
    if not least <= number <= math.inf or (is_finite and number == math.inf):
        finite = "finite and " if is_finite else ""
        raise ValueError(
            f"expected {name} to be {finite}{least:g} or more, got {number!r}"
        )
    return number
