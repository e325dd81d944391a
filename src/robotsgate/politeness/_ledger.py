"""Keeps the record of each host: the port that a gate uses, and ledgers in memory.

Must never hold a rule of its own: those are in `_host_record.py`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

from robotsgate._clock import SystemClock
from robotsgate.caching._freshness import with_jitter
from robotsgate.caching._question import check_bound
from robotsgate.politeness._host_record import (
    NEVER,
    HostRecord,
    HostState,
    Pace,
    TurnEnd,
    after_end,
    after_start,
    after_time,
    delay_in_force,
    forget_at,
    host_state,
    ready_at,
)

if TYPE_CHECKING:
    from robotsgate._clock import Clock

# How many other hosts the ledger looks at when a new one comes, and how many blocked
# ones, and forgets if it can: more than one, so that hosts that no longer matter become
# fewer.
_LOOKED_AT = 4


class Grant(NamedTuple):
    """The right to make one request now.

    Attributes:
        host: the host that may be asked.
        pace: that of the host when the right was given.
        began_at: when it was given, seconds by the clock of the ledger.
        is_robots_txt: whether the request fetches a robots.txt.
        overdue: how many turns the ledger has ended since the last start, because
            they were older than `max_turn_seconds`, ≥ 0.
        shared_began_at: the same moment by the clock of the fleet; `None` if the
            ledger has no fleet, or has not reached it.
        forgotten: the hosts that the ledger has forgotten to make room for this one,
            although they were blocked; mostly empty.
    """

    host: str
    pace: Pace
    began_at: float
    is_robots_txt: bool
    overdue: int
    shared_began_at: float | None = None
    forgotten: tuple[str, ...] = ()


class Wait(NamedTuple):
    """No right to make a request yet.

    Attributes:
        seconds: when to ask again, > 0. No request of this process can usually start
            sooner. But if a host has no delay and all its places are taken, the end of
            a turn frees one. So ask again then, too.
        overdue: as in `Grant`.
    """

    seconds: float
    overdue: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStatus:
    """How a host stands, as far as this process knows.

    Attributes:
        state: what it has been through.
        delay: seconds between two requests, with what is left of incidents.
        under_way: how many turns and fetches of a robots.txt have not ended.
        wait_seconds: seconds before the next request may start, ≥ 0.
    """

    state: HostState
    delay: float
    under_way: int
    wait_seconds: float


class Ledger(Protocol):
    """Where gates keep what they know about hosts, and learn when they may ask one.

    `start` and `end` are atomic, also between the processes that share a ledger. The
    ledger has its own clock: callers say how long, never when. It does not queue: of
    several callers that ask for one host, the first one that asks when the host is
    ready may make its request, unless another process of a fleet has waited for longer.
    No method raises because a server fails: a ledger that cannot reach its server goes
    on with what it knows.
    """

    async def start(
        self, host: str, pace: Pace, *, is_robots_txt: bool = False
    ) -> Grant | Wait:
        """Begin a request to `host`, if one may start now.

        A start that is cancelled begins nothing.

        Args:
            host: name of the host.
            pace: that of the host now, over all of its origins.
            is_robots_txt: whether the request fetches a robots.txt; it keeps the
                delay, but needs no place among the turns of the host.
        """
        ...

    async def end(
        self, grant: Grant, end: TurnEnd, *, retry_after: float | None = None
    ) -> None:
        """End the request that `grant` began; once for each grant.

        A task that is cancelled must call it, too, and shield the call. Call it also
        for a turn that was overdue, because its request really ends now.

        Args:
            grant: what `start` returned.
            end: how it ended.
            retry_after: with an incident: the seconds that the host asks to wait, as
                `after_incident` takes them; `None` if it does not say.
        """
        ...

    def peek(self, host: str, pace: Pace) -> LedgerStatus:
        """How `host` stands, as far as this process knows; never waits."""
        ...

    async def aclose(self) -> None:
        """Free everything; any task may call it, and more than once."""
        ...


class LocalLedger:
    """A ledger in the memory of one process.

    It never suspends. Gates that have the same clock may share it.

    It forgets a host when nothing of it can matter any more. If there are more than
    `max_hosts`, it forgets hosts without a turn under way before that, and blocked ones
    only if it comes upon no other.
    """

    def __init__(
        self, *, max_hosts: int = 100_000, clock: Clock = SystemClock()
    ) -> None:
        """Know no host.

        Args:
            max_hosts: how many are kept, besides those with a turn under way, ≥ 1.
            clock: tells the time, by `monotonic`.

        Raises:
            TypeError: `max_hosts` is not an int.
            ValueError: `max_hosts` is below 1.
        """
        check_bound("max_hosts", max_hosts)
        self._clock = clock
        self._max_hosts = max_hosts
        self._records: dict[str, HostRecord] = {}
        # Each host once, those next to be looked at first. Hosts that were blocked when
        # they were looked at are kept apart: they stay, so they would crowd out all
        # others there, and one of them would have to go for each new host.
        self._round: deque[str] = deque()
        self._blocked: deque[str] = deque()

    async def start(
        self, host: str, pace: Pace, *, is_robots_txt: bool = False
    ) -> Grant | Wait:
        """Begin a request to `host`, if one may start now."""
        now = self._clock.monotonic()
        record, overdue = self._record(host, pace, now)
        own_pace = self._own_pace(record, pace)
        moment = ready_at(record, now, pace=own_pace, is_robots_txt=is_robots_txt)
        if moment > now:
            self._records[host] = record
            return Wait(moment - now, overdue)
        record = after_start(record, now, pace=pace, is_robots_txt=is_robots_txt)
        forgotten = self._keep(host, record, now)
        return Grant(host, pace, now, is_robots_txt, overdue, forgotten=forgotten)

    async def end(
        self, grant: Grant, end: TurnEnd, *, retry_after: float | None = None
    ) -> None:
        """End the request that `grant` began."""
        now = self._clock.monotonic()
        record = after_end(
            self._records.get(grant.host) or HostRecord(grant.pace),
            now,
            began_at=grant.began_at,
            end=end,
            is_robots_txt=grant.is_robots_txt,
            retry_after=retry_after,
            jitter=with_jitter(1.0, grant.host) if end is TurnEnd.INCIDENT else 1.0,
        )
        self._keep(grant.host, record, now)

    def peek(self, host: str, pace: Pace) -> LedgerStatus:
        """How `host` stands; never waits."""
        now = self._clock.monotonic()
        record, _ = self._record(host, pace, now)
        own_pace = self._own_pace(record, pace)
        return LedgerStatus(
            state=host_state(record, now),
            delay=delay_in_force(record, own_pace),
            under_way=len(record.turns) + (record.fetch_began_at > NEVER),
            wait_seconds=max(0.0, ready_at(record, now, pace=own_pace) - now),
        )

    async def aclose(self) -> None:
        """Do nothing: there is nothing to free."""

    def _own_pace(self, record: HostRecord, pace: Pace) -> Pace:  # noqa: ARG002 (of a part of a fleet)
        """The pace of this process at a host with this `pace`."""
        return pace

    def _record(self, host: str, pace: Pace, now: float) -> tuple[HostRecord, int]:
        """What is known about `host`, and how many overdue turns have ended."""
        record = self._records.get(host)
        return (HostRecord(pace), 0) if record is None else after_time(record, now)

    def _keep(self, host: str, record: HostRecord, now: float) -> tuple[str, ...]:
        """Keep `record`; the blocked hosts that were forgotten for it."""
        forgotten: tuple[str, ...] = ()
        if host not in self._records:
            forgotten = self._forget_some(now)
            self._round.append(host)
        self._records[host] = record
        return forgotten

    def _forget_some(self, now: float) -> tuple[str, ...]:
        """Look at a few hosts, and forget some; those of them that were blocked."""
        records = self._records
        forgotten: tuple[str, ...] = ()
        hosts = [
            hosts.popleft()
            for hosts in (self._round, self._blocked)
            for _ in range(min(_LOOKED_AT, len(hosts)))
        ]
        states = sorted(
            (records[host].blocked_until > now, forget_at(records[host]), host)
            for host in hosts
        )
        for is_blocked, moment, host in states:
            record = records[host]
            is_idle = not record.turns and record.fetch_began_at == NEVER
            if now >= moment or (is_idle and len(records) >= self._max_hosts):
                del records[host]
                if is_blocked:
                    forgotten = (*forgotten, host)
            else:
                (self._blocked if is_blocked else self._round).append(host)
        return forgotten


class FleetMemory(LocalLedger):
    """A ledger of the turns of this process, with what the fleet says of the hosts.

    Attributes:
        is_alone: whether this process does not reach the shared server. It then takes
            only its share of each host.
    """

    def __init__(self, *, workers: int, max_hosts: int, clock: Clock) -> None:
        """Know no host, and do not be alone."""
        super().__init__(max_hosts=max_hosts, clock=clock)
        self._workers = workers
        self.is_alone = False

    def least_wait(
        self, host: str, pace: Pace, *, is_robots_txt: bool
    ) -> tuple[float, bool]:
        """The wait for a request to `host` that is needed whatever the fleet says.

        Returns:
            Seconds, 0 or less if there is no wait, and whether this process remembers
            a request to the host.
        """
        now = self._clock.monotonic()
        record, _ = self._record(host, pace, now)
        # Another process may end an incident, but cannot shorten a block or a delay.
        record = record._replace(back_off=0.0, slowed_delay=0.0)
        moment = ready_at(record, now, pace=pace, is_robots_txt=is_robots_txt)
        return moment - now, now < forget_at(record)

    def learn(self, host: str, fleet_now: float, record: HostRecord) -> None:
        """Take over what the fleet knows of `host`, but not who has which turn.

        Args:
            host: the host of `record`.
            fleet_now: the time now by the clock of `record`, seconds.
            record: what the fleet knows.
        """
        now = self._clock.monotonic()
        lag = now - fleet_now
        known, _ = self._record(host, record.pace, now)
        learnt = HostRecord(
            record.pace,
            max(known.ended_at, record.ended_at + lag),
            known.turns,
            known.fetch_began_at,
            max(known.rest_until, record.rest_until + lag),
            record.incident_at + lag,
            max(known.blocked_until, record.blocked_until + lag),
            record.back_off,
            record.slowed_delay,
        )
        self._keep(host, learnt, now)

    def begin(self, host: str, pace: Pace, *, is_robots_txt: bool) -> float:
        """Record a request that the fleet lets this process begin; the time now."""
        now = self._clock.monotonic()
        record, _ = self._record(host, pace, now)
        record = after_start(record, now, pace=pace, is_robots_txt=is_robots_txt)
        self._keep(host, record, now)
        return now

    def _own_pace(self, record: HostRecord, pace: Pace) -> Pace:
        if not self.is_alone:
            return pace
        return replace(
            pace,
            delay=self._workers * delay_in_force(record, pace),
            max_at_once=max(1, pace.max_at_once // self._workers),
        )
