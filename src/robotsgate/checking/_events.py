"""A checker's events and counters, and the reporter that calls a listener.

This module is imported only by checkers with a listener and by `RobotsChecker.stats`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from robotsgate.caching._outcome import Answered, Failed
from robotsgate.checking._reporting import LOGGER, Listener, Reporter
from robotsgate.robotstxt._model import JSONValue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from robotsgate.caching._entry import Entry
    from robotsgate.caching._outcome import AccessResult, FailureKind, Outcome
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


class EventReporter(Reporter):
    """A reporter that also calls a listener."""

    def __init__(self, on_event: Callable[[CheckerEvent], object]) -> None:
        """Report to `on_event`.

        Raises:
            TypeError: `on_event` is not callable, or is a coroutine function.
        """
        super().__init__()
        self._listener: Listener[CheckerEvent] = Listener(on_event, logger=LOGGER)

    @property
    def event_failures(self) -> int:
        """See `Reporter.event_failures`."""
        return self._listener.failures

    def report_fetch(
        self,
        entry: Entry,
        *,
        previous: Entry | None,
        outcome: Outcome,
        seconds: float,
    ) -> None:
        """See `Reporter.report_fetch`."""
        super().report_fetch(entry, previous=previous, outcome=outcome, seconds=seconds)
        self._tell_fetched(entry, previous, outcome, seconds=seconds)

    def report_local_failure(
        self, entry: Entry, failure: Failed, *, now: float, seconds: float
    ) -> None:
        """See `Reporter.report_local_failure`."""
        super().report_local_failure(entry, failure, now=now, seconds=seconds)
        self._tell_fetched(entry, entry, failure, seconds=seconds)

    def _tell_fetched(
        self,
        entry: Entry,
        previous: Entry | None,
        outcome: Outcome,
        *,
        seconds: float,
    ) -> None:
        body = outcome.body if isinstance(outcome, Answered) else b""
        self._listener.tell(
            RobotsTxtFetched(
                origin=entry.origin,
                access=entry.access,
                previous_access=None if previous is None else previous.access,
                status=None if isinstance(outcome, Failed) else outcome.status,
                redirects=outcome.redirects,
                headers=(
                    ()
                    if isinstance(outcome, Failed)
                    else tuple(outcome.headers.items())
                ),
                failure=outcome.kind if isinstance(outcome, Failed) else None,
                error=outcome.error,
                body_bytes=len(body),
                elapsed_seconds=seconds,
                next_fetch_at=entry.next_fetch_at,
                file=_file(entry),
                previous_file=_file(previous),
            )
        )

    def report_store_failure(
        self, operation: str, origin: str, *, error: Exception, is_first: bool
    ) -> None:
        """See `Reporter.report_store_failure`."""
        super().report_store_failure(operation, origin, error=error, is_first=is_first)
        self._listener.tell(
            StoreFailed(origin=origin, operation=operation, error=error)
        )


def _file(entry: Entry | None) -> bytes | None:
    if entry is None or entry.answer is None or entry.answer.packed is None:
        return None
    return entry.answer.packed.body
