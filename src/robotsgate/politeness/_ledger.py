"""The `Ledger` protocol and in-memory ledgers, which keep a record for each host.

Must not contain rules, which belong in `_host_record.py`.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from robotsgate._clock import SystemClock
from robotsgate._public import set_module
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
    is_held_back,
    ready_at,
    without_incidents,
)

if TYPE_CHECKING:
    from robotsgate._clock import Clock

# How many other hosts, and how many blocked hosts, the ledger considers dropping when
# it adds one: more than one, so that the number of obsolete hosts shrinks.
_LOOKED_AT = 4


@set_module("robotsgate.politeness")
class Grant(NamedTuple):
    """Permission to make one request now.

    Attributes:
        host: the host of the request.
        pace: the host's pace at the time of the grant.
        began_at: the time of the grant in seconds, by the ledger's clock.
        is_robots_txt: whether the request fetches a robots.txt.
        overdue: how many turns the ledger has ended since the last start because they
            were older than `max_turn_seconds`, ≥ 0.
        shared_began_at: the time of the grant in the record that processes share;
            `None` if they share none, or the store could not be reached.
        forgotten: how many blocked hosts the ledger has dropped to make room for this
            one, ≥ 0.
    """

    host: str
    pace: Pace
    began_at: float
    is_robots_txt: bool
    overdue: int
    shared_began_at: float | None = None
    forgotten: int = 0


@set_module("robotsgate.politeness")
class Wait(NamedTuple):
    """The request has to wait.

    Attributes:
        seconds: how long to wait before trying again, > 0. Usually, no request from
            this process can start sooner. But if a host has no delay and its maximum
            number of turns is open, the end of a turn makes room, so try again then as
            well.
        overdue: as in `Grant`.
    """

    seconds: float
    overdue: int


@set_module("robotsgate.politeness")
@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerStatus:
    """The state of a host, as far as this process knows.

    Attributes:
        state: whether the gate is backing off from the host.
        delay: seconds between requests, including the effect of incidents.
        under_way: the number of open turns and robots.txt fetches.
        wait_seconds: seconds before the next request may start, ≥ 0.
    """

    state: HostState
    delay: float
    under_way: int
    wait_seconds: float


@set_module("robotsgate.politeness")
@runtime_checkable
class Ledger(Protocol):
    """Keeps the state of hosts and grants permission to contact them.

    `start` and `end` are atomic, even across processes that share a ledger. The ledger
    has its own clock: callers pass durations, never times. It does not queue: if
    several callers wait for one host, the first one to try once the host is ready gets
    the grant, unless another process has waited longer. A failing store never raises an
    exception: a ledger that cannot reach its store continues with what it knows.
    """

    async def start(
        self, host: str, pace: Pace, *, is_robots_txt: bool = False
    ) -> Grant | Wait:
        """Start a request to `host` if it is ready.

        A cancelled call has no effect.

        Args:
            host: the host name.
            pace: the host's current pace, taking all of its origins into account.
            is_robots_txt: whether the request fetches a robots.txt. The delay applies
                to such a request, but the maximum number of turns does not.
        """
        ...

    async def end(
        self, grant: Grant, end: TurnEnd, *, retry_after: float | None = None
    ) -> None:
        """End the granted request; call this exactly once for each grant.

        Call it even if the task is cancelled, in another task, and even for an overdue
        turn, whose request only ends now.

        Args:
            grant: the result of `start`.
            end: how the request ended.
            retry_after: how many seconds the host asked callers to wait; `None` if it
                did not.
        """
        ...

    def peek(self, host: str, pace: Pace) -> LedgerStatus:
        """The state of `host`, as far as this process knows. Never waits."""
        ...

    async def forget(self, host: str, pace: Pace) -> None:
        """Forget the incidents of `host` and their effect, including a Retry-After.

        Delays between requests still apply, and turns stay open.
        """
        ...

    async def aclose(self) -> None:
        """Release all resources. Any task may call this, even more than once."""
        ...


@set_module("robotsgate.politeness")
class LocalLedger:
    """An in-memory ledger for one process.

    It never suspends. Gates with the same clock can share it.

    A host is dropped when its state no longer matters. Above `max_hosts`, hosts with no
    open turn are evicted early; blocked hosts are evicted only as a last resort.
    """

    def __init__(
        self, *, max_hosts: int = 100_000, clock: Clock = SystemClock()
    ) -> None:
        """Start without any hosts.

        Args:
            max_hosts: the maximum number of hosts, not counting those with an open
                turn, ≥ 1.
            clock: the clock; only its `monotonic` is used.

        Raises:
            TypeError: `max_hosts` is not an int.
            ValueError: `max_hosts` is below 1.
        """
        check_bound("max_hosts", max_hosts)
        self._clock = clock
        self._max_hosts = max_hosts
        self._records: dict[str, HostRecord] = {}
        # Each host once; the first ones are considered next. Hosts that were blocked
        # the last time are kept separately: they are not dropped, so they would crowd
        # out the others, until each new host could only replace a blocked one.
        self._round: deque[str] = deque()
        self._blocked: deque[str] = deque()

    async def start(
        self, host: str, pace: Pace, *, is_robots_txt: bool = False
    ) -> Grant | Wait:
        """Start a request to `host` if it is ready."""
        now = self._clock.monotonic()
        record, overdue = self._record(host, pace, now)
        moment = ready_at(record, now, pace=pace, is_robots_txt=is_robots_txt)
        if moment > now:
            self._records[host] = record
            return Wait(moment - now, overdue)
        record = after_start(record, now, pace=pace, is_robots_txt=is_robots_txt)
        forgotten = self._keep(host, record, now)
        return Grant(host, pace, now, is_robots_txt, overdue, forgotten=forgotten)

    async def end(
        self, grant: Grant, end: TurnEnd, *, retry_after: float | None = None
    ) -> None:
        """End the granted request."""
        now = self._clock.monotonic()
        record = after_end(
            self._records.get(grant.host) or HostRecord(grant.pace),
            now,
            began_at=grant.began_at,
            end=end,
            is_robots_txt=grant.is_robots_txt,
            retry_after=retry_after,
            jitter=with_jitter(1.0, grant.host) if end.is_incident else 1.0,
        )
        self._keep(grant.host, record, now)

    def peek(self, host: str, pace: Pace) -> LedgerStatus:
        """The state of `host`. Never waits."""
        now = self._clock.monotonic()
        record, _ = self._record(host, pace, now)
        return LedgerStatus(
            state=host_state(record, now),
            delay=delay_in_force(record, pace),
            under_way=len(record.turns) + (record.fetch_began_at > NEVER),
            wait_seconds=max(0.0, ready_at(record, now, pace=pace) - now),
        )

    async def forget(self, host: str, pace: Pace) -> None:  # noqa: ARG002 (the protocol's)
        """Forget the incidents of `host`."""
        record = self._records.get(host)
        if record is not None:
            self._records[host] = without_incidents(record)

    async def aclose(self) -> None:
        """Do nothing: there are no resources to release."""

    def _record(self, host: str, pace: Pace, now: float) -> tuple[HostRecord, int]:
        """The record of `host`, and how many overdue turns have ended."""
        record = self._records.get(host)
        return (HostRecord(pace), 0) if record is None else after_time(record, now)

    def _keep(self, host: str, record: HostRecord, now: float) -> int:
        """Store `record`; return how many blocked hosts were dropped to make room."""
        forgotten = 0
        if host not in self._records:
            forgotten = self._forget_some(now)
            self._round.append(host)
        self._records[host] = record
        return forgotten

    def _forget_some(self, now: float) -> int:
        """Drop some of the next few hosts; return how many of them were blocked."""
        records = self._records
        forgotten = 0
        hosts = [
            hosts.popleft()
            for hosts in (self._round, self._blocked)
            for _ in range(min(_LOOKED_AT, len(hosts)))
        ]
        states = sorted(
            (is_held_back(records[host], now), forget_at(records[host]), host)
            for host in hosts
        )
        for is_blocked, moment, host in states:
            record = records[host]
            is_idle = not record.turns and record.fetch_began_at == NEVER
            if now >= moment or (is_idle and len(records) >= self._max_hosts):
                del records[host]
                forgotten += is_blocked
            else:
                (self._blocked if is_blocked else self._round).append(host)
        return forgotten
