"""Gives every host its turn: start reading here.

The way of a turn: `PolitenessGate.turn` → `Turn` → `Turns.begin` → robots.txt, from
memory or by `Permissions` → `Queues`, in the order of arrival → `Ledger.start`, by the
rules of `_host_record.py`. The gate looks down on the checker, which knows of no gate.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterable, Iterable
from typing import TYPE_CHECKING, Self

from robotsgate._flights import Flights
from robotsgate.caching._question import Agent, check_bound, check_urls
from robotsgate.checking._checker import RobotsChecker
from robotsgate.checking._reporting import Listener
from robotsgate.politeness._events import GateStats, HostStatus
from robotsgate.politeness._hosts import Hosts
from robotsgate.politeness._ledger import LocalLedger
from robotsgate.politeness._permissions import pause_until
from robotsgate.politeness._schedule import (
    AskedFrontier,
    TurnSchedule,
    URLQueues,
    URLSchedule,
)
from robotsgate.politeness._turns import Claim, Turn, Turns
from robotsgate.politeness._work import Work
from robotsgate.urls._origin import Origin

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from robotsgate.politeness._events import GateEvent
    from robotsgate.politeness._ledger import Ledger
    from robotsgate.urls._origin import URLLike

_LOGGER = logging.getLogger("robotsgate.politeness")
_LEDGER_METHODS = ("start", "end", "peek", "aclose")


class PolitenessGate:
    """Lets a crawler ask each host only when its turn has come.

    Requests to a host keep its delay, from the end of one to the start of the next:
    the largest of its crawl-delay, its request-rate and `default_delay`. The requests
    for a robots.txt that the gate needs keep it too, but a call of the checker itself
    does not wait for turns. After 429 or 503, the gate leaves the host alone, then asks
    it more slowly.

    Use it as an async context manager, or call `aclose` at the end. Any number of tasks
    of one event loop may use it. A checker may have several gates; give them one ledger
    if they are to keep one pace.
    """

    def __init__(
        self,
        checker: RobotsChecker,
        agent: str | Sequence[str],
        *,
        default_delay: float = 1.0,
        max_delay: float = 3_600.0,
        delay_factor: float = 0.0,
        max_concurrent_per_host: int = 1,
        max_turn_seconds: float = 300.0,
        max_hosts: int = 100_000,
        host_of: Callable[[str], str] | None = None,
        ledger: Ledger | None = None,
        on_event: Callable[[GateEvent], object] | None = None,
    ) -> None:
        """Make a gate, which asks no host yet.

        Args:
            checker: answers by robots.txt; its clock tells the time. Close it yourself,
                after the gate.
            agent: the crawler, as in `RobotsChecker.can_fetch`.
            default_delay: the shortest delay of a host, seconds ≥ 0.
            max_delay: the longest delay of a host, seconds ≥ `default_delay`; if a
                host asks for more, an event says so.
            delay_factor: the delay after a turn is at least the length of the turn
                times this factor, up to `max_delay`; ≥ 0. So a slow host gets fewer
                requests.
            max_concurrent_per_host: how many turns of a host may be under way, ≥ 1. A
                host that states a crawl-delay has one at a time.
            max_turn_seconds: the age at which a turn counts as ended, seconds > 0; an
                event says so.
            max_hosts: how many hosts the gate remembers, ≥ 1.
            host_of: gives the name of the host that a URL belongs to, for example
                its registrable domain; it gets the URL with the key of its `Origin`
                in front, without userinfo and fragment. `None`: the host name.
            ledger: remembers the hosts; the gate never closes it. `None`: a
                `LocalLedger`.
            on_event: called with each `GateEvent`; it must not block. The gate logs
                its exceptions.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: an argument is out of range.
            InvalidProductTokenError: `agent` names no crawler.
        """
        given: object = checker  # callers without a type checker
        if not isinstance(given, RobotsChecker):
            raise TypeError(f"expected checker to be a RobotsChecker, got {given!r}")
        _check_seconds("default_delay", default_delay)
        _check_seconds("max_delay", max_delay, least=default_delay)
        _check_seconds("delay_factor", delay_factor)
        _check_seconds("max_turn_seconds", max_turn_seconds)
        if max_turn_seconds == 0:
            raise ValueError("expected max_turn_seconds above 0, got 0")
        check_bound("max_concurrent_per_host", max_concurrent_per_host)
        check_bound("max_hosts", max_hosts)
        if not (host_of is None or callable(host_of)):
            raise TypeError(f"expected host_of to be callable, got {host_of!r}")
        _check_ledger(ledger)
        self._agent = Agent.of(agent)
        self._answers = checker._answers  # noqa: SLF001 (one package)
        renewals = checker._renewals  # noqa: SLF001 (one package)
        self._clock = self._answers.clock
        self._listener: Listener[GateEvent] = Listener(on_event, logger=_LOGGER)
        if ledger is None:
            ledger = LocalLedger(max_hosts=max_hosts, clock=self._clock)
        self._hosts = Hosts(
            self._listener,
            host_of=host_of,
            default_delay=default_delay,
            max_delay=max_delay,
            delay_factor=delay_factor,
            max_at_once=max_concurrent_per_host,
            max_turn_seconds=max_turn_seconds,
            max_hosts=max_hosts,
        )
        self._turns = Turns(
            self._answers,
            renewals,
            agent=self._agent,
            hosts=self._hosts,
            ledger=ledger,
            listener=self._listener,
        )
        self._sources: Flights[bool] = Flights("gate")

    async def __aenter__(self) -> Self:
        """The gate itself."""
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Call `aclose`."""
        await self.aclose()

    async def aclose(self) -> None:
        """Give no more turns.

        A caller that waits for a turn gets a RuntimeError. Turns of pages that are
        under way may go on; those for a robots.txt end, but its fetch goes on. The
        checker and your own ledger stay open. You may call this more than once.
        """
        self._turns.queues.close()
        self._sources.close()
        await self._turns.permissions.aclose()
        await self._sources.aclose()

    def turn(self, url: str | URLLike, *, patience: float | None = None) -> Turn:
        """A turn for one request to the host of `url`; enter it by `async with`.

        The turn waits for the robots.txt of the origin, then for the host, in the order
        of arrival. If the robots.txt has expired or was replaced by then, the gate asks
        again. If its last fetch was a 429 or 503, the turn waits until the next one.

        Args:
            url: the one to fetch, as in `RobotsChecker.can_fetch`.
            patience: seconds for both waits together, ≥ 0; `None`: without a limit. 0:
                now or not at all; the checker still fetches an unknown robots.txt, for
                later questions.

        Raises:
            TypeError: `patience` is not a number.
            ValueError: `patience` is negative or nan.
        """
        if patience is None:
            return Turn(self._turns, Claim(url))
        _check_seconds("patience", patience, is_finite=False)
        return Turn(self._turns, Claim(url, patience=patience))

    def schedule(
        self,
        urls: Iterable[str | URLLike] | AsyncIterable[str | URLLike] = (),
        *,
        window: int = 100_000,
        patience: float | None = None,
    ) -> URLSchedule:
        """The URLs of a source, each as soon as its host has a turn.

        An async iterator of pairs `(url, turn)`. Any number of tasks may iterate over
        it, and so many requests are made at once. Each turn has begun: enter it by
        `async with` within a second. Otherwise the host gets it back; if you enter it
        later, it waits again.

        URLs wait by host, so that no host holds up another while fewer than `window`
        URLs wait. The schedule ends when the source is at its end, no URL waits, and
        every turn that it gave has ended. So a crawl may `add` the links of a page
        within its turn.

        The gate leaves out a URL that robots.txt disallows, that has no origin with a
        robots.txt, or whose turn would come too late; a `URLLeftOut` says so. Callers
        that wait in `turn` go first. You may leave the loop, or cancel it, at any time.

        Args:
            urls: may be endless. Another task reads it, so an async iterable may wait
                for what you do with earlier URLs. An async generator is closed when
                the schedule ends.
            window: how many URLs wait in memory, ≥ 1; the source is read on when
                there is room.
            patience: seconds, ≥ 0. A URL whose turn would come later is left out,
                counting the URLs of its host that wait before it. `None`: no limit.

        Raises:
            TypeError: `urls` is a single URL, or not iterable; or another argument has
                the wrong type.
            ValueError: an argument is out of range.
            RuntimeError: while you iterate: the gate is closed.
            Exception: while you iterate: what `urls` raises, in one of the tasks, after
                the turns for the URLs before.
        """
        check_urls(urls, may_be_async=True)
        check_bound("window", window)
        work = self._work(patience)
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
        patience: float | None = None,
    ) -> TurnSchedule:
        """Turns for the URLs of a frontier of your own, for example on disk.

        As `schedule`, but the URLs stay with you: when a host may be asked, the
        schedule calls `next_url` with its name.

        Args:
            hosts: names of hosts with URLs, as `host_of` gives them. May be endless
                and may repeat, but give a host again only if it has new URLs.
            next_url: gives the next URL of a host, or `None` if it has none now. Then
                the host is dropped until `hosts` gives it again. May be async.
            window: how many hosts are at work, ≥ 1.
            patience: seconds, ≥ 0. A host whose turn would come later is dropped, and
                a `HostLeftOut` says when it may be asked. `None`: no limit.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: an argument is out of range; while you iterate: `next_url` gave
                a URL of another host.
            RuntimeError: while you iterate: the gate is closed.
            Exception: while you iterate: what `hosts` or `next_url` raises, in one of
                the tasks.
        """
        if isinstance(hosts, str) or not isinstance(hosts, Iterable | AsyncIterable):
            raise TypeError(f"expected hosts to be an iterable of names, got {hosts!r}")
        if not callable(next_url):
            raise TypeError(f"expected next_url to be callable, got {next_url!r}")
        check_bound("window", window)
        work = self._work(patience)
        frontier = AskedFrontier(work, next_url, window=window)
        return TurnSchedule(hosts, frontier, work, self._sources)

    def _work(self, patience: float | None) -> Work:
        if patience is not None:
            _check_seconds("patience", patience, is_finite=False)
        return Work(
            turns=self._turns,
            hosts=self._hosts,
            listener=self._listener,
            clock=self._clock,
            patience=math.inf if patience is None else patience,
        )

    def ready_at(self, url: str | URLLike) -> float:
        """When a turn for `url` would come at the earliest, epoch seconds.

        A lower bound from what this process knows, for schedulers of your own. It does
        not wait, and begins no fetch.

        Raises:
            InvalidURLError: `url` names no origin.
        """
        return self.status(url).ready_at

    def status(self, url: str | URLLike) -> HostStatus:
        """How the host of `url` stands, as far as this process knows.

        Raises:
            InvalidURLError: `url` names no origin.
        """
        origin = str(Origin.from_url(url))
        host = self._hosts.host(url, origin)
        standing, rules = self._answers.in_memory(self._agent, origin)
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

    @property
    def stats(self) -> GateStats:
        """The counters as they are now."""
        return GateStats(
            blocks_forgotten=self._hosts.blocks_forgotten,
            seconds_waited=self._turns.seconds_waited,
            waiting=len(self._turns.queues),
            under_way=sum(map(len, self._turns.under_way.values())),
            event_failures=self._listener.failures,
            **self._turns.counts,
        )


def _check_seconds(
    name: str, seconds: object, *, least: float = 0.0, is_finite: bool = True
) -> None:
    """Refuse what is not a number of `least` or more.

    Raises:
        TypeError: it is not a number.
        ValueError: it is too small, nan, or infinite although it has to be finite.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"expected {name} to be a float, got {seconds!r}")
    if not least <= seconds <= math.inf or (is_finite and seconds == math.inf):
        finite = "finite and " if is_finite else ""
        raise ValueError(
            f"expected {name} to be {finite}{least:g} or more, got {seconds!r}"
        )


def _check_ledger(ledger: object) -> None:
    """Refuse what is neither a ledger nor `None`.

    Raises:
        TypeError: it lacks a method.
    """
    methods = (getattr(ledger, name, None) for name in _LEDGER_METHODS)
    if not (ledger is None or all(map(callable, methods))):
        raise TypeError(
            f"expected ledger to have start, end, peek and aclose, got {ledger!r}"
        )
