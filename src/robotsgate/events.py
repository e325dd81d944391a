"""The events and counters that checkers, gates and ledgers report."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from robotsgate.robotstxt._model import JSONValue
from robotsgate.urls._url import without_userinfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from robotsgate.caching._outcome import FailureKind
    from robotsgate.caching._policy import AccessResult
    from robotsgate.caching._verdict import Reason
    from robotsgate.errors import RobotsError

__all__ = [
    "CheckerEvent",
    "CheckerStats",
    "DelayClamped",
    "Event",
    "GateEvent",
    "GateStats",
    "HostBlocked",
    "HostRecordReplaced",
    "HostSkipped",
    "LedgerEvent",
    "LedgerFailed",
    "LedgerReturned",
    "RobotsTxtFetched",
    "StoreFailed",
    "URLSkipped",
    "WindowFilled",
]


class Event(JSONValue):
    """The base class of all events."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """Its class name as "event", and its attributes, as JSON-compatible types."""
        return {"event": type(self).__name__} | JSONValue.as_dict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsTxtFetched(Event):
    """A robots.txt fetch has ended, successfully or not.

    Attributes:
        origin: the origin's key.
        access: the access result.
        previous_access: the access result of the previous fetch; `None` if there was no
            cached entry.
        status: the status of the last response; `None` if there was none.
        redirects: the redirects that were followed, in order. Each is a pair: the
            target URL, truncated to 2 KB, and the status of the redirect response.
        headers: pairs (lower-case name, value) from the last response, but only
            Content-Type and the headers that affect how long the response stays fresh.
        failure: where the fetch failed; `None` if there was a response. After LOCAL,
            nothing is stored, and the other attributes describe what applies meanwhile.
        error: what went wrong; `None` if nothing did.
        body_bytes: how many decoded bytes of the body were read, ≥ 0.
        elapsed_seconds: the duration of the fetch, ≥ 0.
        next_fetch_at: the earliest time for the next fetch, in epoch seconds.
        file: the cached robots.txt after this fetch, decoded: the new one or, if the
            fetch failed, the previous one. `None` if there is none. `as_dict` omits
            both files.
        previous_file: the cached robots.txt before this fetch; `None` if there was
            none.
    """

    origin: str
    access: AccessResult
    previous_access: AccessResult | None
    status: int | None
    redirects: tuple[tuple[str, int], ...]
    headers: tuple[tuple[str, str], ...]
    failure: FailureKind | None
    error: str | None
    body_bytes: int
    elapsed_seconds: float
    next_fetch_at: float
    file: bytes | None = field(repr=False)
    previous_file: bytes | None = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """See `Event.as_dict`; omits the files."""
        values = Event.as_dict(self)
        del values["file"], values["previous_file"]
        return values


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFailed(Event):
    """A store operation failed, and the checker continued without the store.

    Attributes:
        origin: the origin's key; empty for "purge", and for a "get" of several
            origins.
        operation: "get", "update", "delete", "acquire", "release" or "purge".
        error: the exception raised by the store.
    """

    origin: str
    operation: str
    error: Exception


CheckerEvent = RobotsTxtFetched | StoreFailed


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
            `InvalidURLError`: the URL has no origin, or is on a different host than
            the one that `next_url` was called for. `UnsupportedError`: the checker's
            client cannot fetch the URL. `RetriesExhaustedError`: the URL failed once
            more often than `retries`. `None`: the schedule ended before the URL's turn,
            usually because it or the gate was closed.
        ready_at: when to try again, in epoch seconds; `None` if that would not help.
    """

    url: Any
    error: RobotsError | None
    ready_at: float | None = None

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


GateEvent = DelayClamped | HostBlocked | URLSkipped | HostSkipped | WindowFilled


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


LedgerEvent = LedgerFailed | LedgerReturned | HostRecordReplaced


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerStats(JSONValue):
    """A snapshot of what a checker has counted since it was created.

    Attributes:
        checks: lookups for an agent and a URL.
        allowed: how many checks allowed the URL; the reasons are not counted, because
            finding the reason takes longer than the lookup.
        disallowed: how many checks disallowed the URL, by reason; reasons with a count
            of 0 are omitted.
        fetches: robots.txt fetches; a fetch with redirects counts once.
        successful: fetches that returned a file.
        unavailable: fetches that found no file.
        unreachable: fetches that failed.
        local_failures: fetches that failed because this machine could not send the
            request; they count neither as fetches nor as unreachable.
        restricted: fetches whose response the policy treats as "keep out".
        refused: fetches that the address guard refused.
        joined: lookups that waited for a fetch started by another lookup.
        store_hits: how often the store had a current entry for an origin.
        store_misses: how often the store had no current entry.
        lease_waits: pauses while another process was fetching an origin.
        store_failures: store operations that failed.
        store_skips: store operations skipped because the store had just been too slow.
        event_failures: calls to `on_event` that raised an exception.
        live_origins: parsed origins currently in memory.
        fetches_under_way: renewals currently running.
    """

    checks: int = 0
    allowed: int = 0
    disallowed: Mapping[Reason, int] = field(default_factory=dict)
    fetches: int = 0
    successful: int = 0
    unavailable: int = 0
    unreachable: int = 0
    local_failures: int = 0
    restricted: int = 0
    refused: int = 0
    joined: int = 0
    store_hits: int = 0
    store_misses: int = 0
    lease_waits: int = 0
    store_failures: int = 0
    store_skips: int = 0
    event_failures: int = 0
    live_origins: int = 0
    fetches_under_way: int = 0


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
