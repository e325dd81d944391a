"""A checker's events and counters.

This module is imported only by checkers with a listener and by `RobotsChecker.stats`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from robotsgate.robotstxt._model import JSONValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from robotsgate.caching._outcome import AccessResult, FailureKind
    from robotsgate.caching._verdict import Reason


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
        redirects: the redirects that were followed, in order: pairs (target URL,
            truncated to 2 KB; status of the redirect response).
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
