"""The events, counters and host states that gates and ledgers report."""

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
    """An origin asks for a delay longer than the gate's `max_delay`.

    Attributes:
        host: the origin's host.
        origin: the origin's key.
        stated_delay: the delay that its robots.txt asks for, in seconds.
        delay: the delay that the gate uses instead (`max_delay`), in seconds.
    """

    host: str
    origin: str
    stated_delay: float
    delay: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostBlocked(Event):
    """The gate backs off from a host after a 429, a 503 or a failure.

    This includes responses to the gate's requests for robots.txt.

    Attributes:
        host: the host name.
        cause: the status, such as "503"; the class name of an exception, such as
            "ReadTimeout"; or "failure" if the caller reported one.
        ready_at: when the next request may start, in epoch seconds.
    """

    host: str
    cause: str
    ready_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class URLSkipped(Event):
    """A schedule skips a URL.

    Attributes:
        url: the object from the source. The event's text shows the URL without
            userinfo.
        error: the reason. `DisallowedError`: robots.txt disallows the URL.
            `TurnNotInTimeError`: the URL would have to wait too long.
            `InvalidURLError`: the URL has no origin. `UnsupportedError`: the checker's
            client cannot fetch the URL.
        ready_at: when to try again, in epoch seconds; `None` if that would not help.
    """

    url: Any
    error: RobotsError
    ready_at: float | None = None

    @classmethod
    def of(cls, url: object, error: RobotsError) -> Self:
        """The event for `url`, with `ready_at` from `error`."""
        ready_at = None
        if isinstance(error, TurnNotInTimeError):
            ready_at = error.ready_at
        elif isinstance(error, DisallowedError):
            verdict = error.verdict
            is_unreachable = verdict.reason is Reason.UNREACHABLE
            ready_at = verdict.fresh_until if is_unreachable else None
        return cls(url=url, error=error, ready_at=ready_at)

    def as_dict(self) -> dict[str, Any]:
        """See `Event.as_dict`."""
        return Event.as_dict(replace(self, url=self._shown))

    def __repr__(self) -> str:
        """The event without userinfo."""
        return (
            f"URLSkipped(url={self._shown!r}, error={self.error!r},"
            f" ready_at={self.ready_at!r})"
        )

    @property
    def _shown(self) -> str:
        return without_userinfo(str(self.url))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSkipped(Event):
    """A schedule of hosts drops a host that would have to wait too long.

    The host is added back when the source yields it again.

    Attributes:
        host: the host name.
        ready_at: when the host will be ready, in epoch seconds.
    """

    host: str
    ready_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowFilled(Event):
    """A schedule's window is full, and no host in it will be ready within 10 seconds.

    Reported at most once a minute. A schedule with `patience` skips the waiting URLs
    instead.

    Attributes:
        hosts: the number of hosts with waiting URLs.
        ready_at: when the first of these hosts will be ready, in epoch seconds.
    """

    hosts: int
    ready_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerFailed(Event):
    """A ledger cannot reach its store, so this process continues without the store.

    `LedgerReturned` follows when the store responds again.

    Attributes:
        error: what went wrong.
    """

    error: Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerReturned(Event):
    """A ledger can reach its store again after `LedgerFailed`.

    Attributes:
        elapsed_seconds: how long the store was unreachable, ≥ 0.
    """

    elapsed_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRecordReplaced(Event):
    """A ledger has replaced a host's unreadable record.

    Another program has written to the record's key. The host's state is lost.

    Attributes:
        host: the host name.
    """

    host: str


GateEvent = DelayClamped | HostBlocked | URLSkipped | HostSkipped | WindowFilled
LedgerEvent = LedgerFailed | LedgerReturned | HostRecordReplaced


@dataclass(frozen=True, slots=True, kw_only=True)
class GateStats(JSONValue):
    """A snapshot of what a gate has counted since it was created.

    Attributes:
        turns: turns that have started.
        incidents: turns that ended with a 429, a 503 or a failure.
        disallowed: turns that robots.txt disallowed.
        not_in_time: turns that were not available within the caller's patience.
        overdue: turns that were ended because they were older than `max_turn_seconds`,
            including those of other processes that share the ledger.
        blocks_forgotten: hosts that the ledger dropped while the gate was backing off
            from them, because there were more blocked or busy hosts than `max_hosts`.
            Their next turns may come too early.
        seconds_waited: the total time that callers of `turn` have waited for robots.txt
            and for hosts, including callers that got no turn but excluding schedules.
        waiting: callers and robots.txt fetches currently waiting for a host.
        under_way: open turns.
        event_failures: calls to `on_event` that raised an exception.
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
