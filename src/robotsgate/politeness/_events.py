"""What a gate, or the ledger of a fleet, reports: events, counters, states of hosts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from robotsgate.caching._verdict import DisallowedError, Reason
from robotsgate.checking._events import Event
from robotsgate.errors import TurnNotInTimeError
from robotsgate.robotstxt._model import JSONValue
from robotsgate.urls._origin import without_userinfo

if TYPE_CHECKING:
    from robotsgate.errors import RobotsError
    from robotsgate.politeness._host_record import HostState


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayClamped(Event):
    """An origin asks for a longer delay than the gate keeps.

    Attributes:
        host: the host that the origin belongs to.
        origin: the key of the origin.
        stated_delay: seconds that its robots.txt asks for.
        delay: seconds that the gate keeps, its `max_delay`.
    """

    host: str
    origin: str
    stated_delay: float
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnsOverdue(Event):
    """Turns count as ended, because they are older than `max_turn_seconds`.

    Attributes:
        host: the host that they belong to.
        count: how many there were, ≥ 1; with those of other processes that share the
            ledger.
    """

    host: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockForgotten(Event):
    """The gate was backing off from a host, and its ledger has forgotten the host.

    The next turn of the host may come too soon. There are more blocked or busy hosts
    than `max_hosts`, so raise it.

    Attributes:
        host: its name.
    """

    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryAfterIgnored(Event):
    """A Retry-After is neither a number of seconds nor a date.

    Attributes:
        host: the host that sent it.
        value: that of the header, cut at 200 characters.
    """

    host: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class URLLeftOut(Event):
    """A schedule leaves a URL out.

    Attributes:
        url: the object that the source gave. Texts of the event show it without
            userinfo.
        error: the reason. `DisallowedError`: robots.txt disallows it.
            `TurnNotInTimeError`: its turn comes too late. `InvalidURLError`: it names
            no origin. `UnsupportedError`: the client of the checker cannot fetch it.
        ready_at: when to try again, epoch seconds; `None` if that would not help.
    """

    url: Any
    error: RobotsError
    ready_at: float | None = None

    @classmethod
    def of(cls, url: object, error: RobotsError) -> Self:
        """The event for `url`, with the moment that `error` names."""
        ready_at = None
        if isinstance(error, TurnNotInTimeError):
            ready_at = error.ready_at
        elif isinstance(error, DisallowedError):
            verdict = error.verdict
            is_unreachable = verdict.reason is Reason.UNREACHABLE
            ready_at = verdict.fresh_until if is_unreachable else None
        return cls(url=url, error=error, ready_at=ready_at)

    def as_dict(self) -> dict[str, Any]:
        """As for other events."""
        return Event.as_dict(replace(self, url=self._shown))

    def __repr__(self) -> str:
        """The event without userinfo."""
        return (
            f"URLLeftOut(url={self._shown!r}, error={self.error!r},"
            f" ready_at={self.ready_at!r})"
        )

    @property
    def _shown(self) -> str:
        return without_userinfo(str(self.url))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLeftOut(Event):
    """A schedule of hosts leaves a host out, because its turn comes too late.

    It comes back when the source gives it again.

    Attributes:
        host: its name.
        ready_at: when it may be asked, epoch seconds.
    """

    host: str
    ready_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFilled(Event):
    """The window of a schedule is full, and no host in it may be asked for ten seconds.

    Comes once a minute at most. A schedule with `patience` hands such URLs back.

    Attributes:
        hosts: how many have waiting URLs.
        ready_at: when the first of them may be asked, epoch seconds.
    """

    hosts: int
    ready_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFailed(Event):
    """A ledger does not reach its server; from now on this process goes on alone.

    `LedgerReturned` follows when the server answers again.

    Attributes:
        error: what went wrong.
    """

    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReturned(Event):
    """A ledger reaches its server again, after `LedgerFailed`.

    Attributes:
        elapsed_seconds: for how long this process was alone, ≥ 0.
    """

    elapsed_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecordReplaced(Event):
    """A ledger could not read the record of a host, and has written a new one.

    Another program has written to its key. What the fleet knew of the host is lost.

    Attributes:
        host: its name.
    """

    host: str


GateEvent = (
    DelayClamped
    | TurnsOverdue
    | BlockForgotten
    | RetryAfterIgnored
    | URLLeftOut
    | HostLeftOut
    | WindowFilled
)
LedgerEvent = LedgerFailed | LedgerReturned | HostRecordReplaced


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStats(JSONValue):
    """What a gate has done since it was made; a snapshot.

    Attributes:
        turns: turns that have begun.
        incidents: turns that ended with 429, 503 or a failure.
        disallowed: turns that robots.txt refused.
        not_in_time: turns that would have come after the patience of their callers.
        overdue: turns that count as ended because they were too old.
        blocks_forgotten: hosts that the ledger forgot while the gate was backing off
            from them, because there were more than `max_hosts`.
        seconds_waited: total time that callers of `turn` have waited for a robots.txt
            and for their hosts, including callers that got no turn. The waits of
            schedules do not count.
        waiting: callers and fetches of a robots.txt that wait for a host now.
        under_way: turns that have not ended yet.
        event_failures: calls of `on_event` that raised.
    """

    turns: int = 0
    incidents: int = 0
    disallowed: int = 0
    not_in_time: int = 0
    overdue: int = 0
    blocks_forgotten: int = 0
    seconds_waited: float = 0.0
    waiting: int = 0
    under_way: int = 0
    event_failures: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostStatus(JSONValue):
    """How a host stands, as far as this process knows.

    Attributes:
        host: its name.
        state: what it has been through.
        delay: seconds between two requests, with what is left of incidents.
        waiting: how many callers and fetches of a robots.txt wait for it.
        under_way: how many turns and fetches of a robots.txt have not ended.
        ready_at: the earliest time at which a new caller would have a turn, epoch
            seconds.
    """

    host: str
    state: HostState
    delay: float
    waiting: int
    under_way: int
    ready_at: float
