"""The reporting of a checker: events, counters, and the log."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from robotsgate.caching._outcome import Answered, Failed
from robotsgate.caching._verdict import Reason
from robotsgate.robotstxt._model import JSONValue
from robotsgate.urls._origin import shown_url

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from logging import Logger

    from robotsgate.caching._entry import Entry
    from robotsgate.caching._outcome import AccessResult, FailureKind, Outcome
    from robotsgate.caching._question import Question
    from robotsgate.caching._standing import StandingFor

LOGGER = logging.getLogger("robotsgate.checker")


class Event(JSONValue):
    """The base class of all events."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """The event as JSON types: its class as "event", and its attributes."""
        return {"event": type(self).__name__} | JSONValue.as_dict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchStarted(Event):
    """A fetch of a robots.txt starts; `RobotsTxtFetched` or `FetchCancelled` follows.

    Attributes:
        origin: the key of the origin.
    """

    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchCancelled(Event):
    """A fetch ended without an outcome.

    Either the checker was closed, or the caller's client raised an error such as
    TypeError, which is a bug in the program.

    Attributes:
        origin: the key of the origin.
        elapsed_seconds: the duration of the fetch, ≥ 0.
    """

    origin: str
    elapsed_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsTxtFetched(Event):
    """A fetch of a robots.txt has ended, successfully or not.

    Attributes:
        origin: the key of the origin.
        access: the access result.
        status: the status of the last response; `None` if there was none.
        redirects: the redirects that were followed, in order: pairs (target URL,
            truncated to 2 KB; status of the redirect response).
        headers: headers of the last response, pairs (lower-case name, value):
            Content-Type, and those that affect how long the response is fresh.
        failure: where the fetch failed; `None` if there was a response.
        error: what went wrong; `None` if nothing did.
        body_bytes: how many decoded bytes of the body were read, ≥ 0.
        elapsed_seconds: the duration of the fetch, ≥ 0.
        next_fetch_at: the earliest time of the next fetch, epoch seconds.
    """

    origin: str
    access: AccessResult
    status: int | None
    redirects: tuple[tuple[str, int], ...]
    headers: tuple[tuple[str, str], ...]
    failure: FailureKind | None
    error: str | None
    body_bytes: int
    elapsed_seconds: float
    next_fetch_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessChanged(Event):
    """The access result of an origin has changed since the previous fetch.

    Attributes:
        origin: the key of the origin.
        before: the access result of the previous fetch.
        after: the access result of this fetch.
    """

    origin: str
    before: AccessResult
    after: AccessResult


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreFailed(Event):
    """A store operation failed; the checker continued without it.

    Attributes:
        origin: the key of the origin; empty for "purge", and for a "get" of many
            origins.
        operation: "get", "update", "delete", "acquire", "release" or "purge".
        error: the exception raised by the store.
    """

    origin: str
    operation: str
    error: Exception


CheckerEvent = (
    FetchStarted | FetchCancelled | RobotsTxtFetched | AccessChanged | StoreFailed
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerStats(JSONValue):
    """A snapshot of the counters of a checker since it was created.

    Attributes:
        checks: lookups of an agent and a URL.
        allowed: how many were allowed; their reasons are not counted, because finding
            the reason takes longer than the lookup.
        disallowed: how many were disallowed, by reason; reasons with a count of 0 are
            omitted.
        fetches: fetches of a robots.txt, each counted once, including its redirects.
        successful: fetches that returned a file.
        unavailable: fetches that found that there is no file.
        unreachable: fetches that failed.
        restricted: fetches whose response the policy treats as "keep out".
        refused: fetches that the address guard refused.
        joined: lookups that waited for a fetch started by another lookup.
        store_hits: how often the store had a current entry of an origin.
        store_misses: how often it had none.
        lease_waits: pauses while another process was fetching an origin.
        store_failures: store operations that failed.
        store_skips: store operations that were skipped, because the store had just
            hung.
        event_failures: calls of `on_event` that raised.
        live_origins: parsed origins currently in memory.
        fetches_under_way: renewals that are currently running.
    """

    checks: int = 0
    allowed: int = 0
    disallowed: Mapping[Reason, int] = field(default_factory=dict)
    fetches: int = 0
    successful: int = 0
    unavailable: int = 0
    unreachable: int = 0
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


_Told = TypeVar("_Told", bound=Event)


class Listener(Generic[_Told]):
    """The `on_event` callback, if there is one.

    Attributes:
        failures: how many of its calls have raised.
    """

    def __init__(
        self, on_event: Callable[[_Told], object] | None, *, logger: Logger
    ) -> None:
        """Call `on_event`, and log its exceptions with `logger`.

        Raises:
            TypeError: it is not callable, or a coroutine function.
        """
        is_usable = callable(on_event) and not iscoroutinefunction(on_event)
        if not (on_event is None or is_usable):
            raise TypeError(
                f"expected on_event to be a sync callable, got {on_event!r}"
            )
        self.failures = 0
        self._on_event = on_event
        self._logger = logger

    def tell(self, event: _Told) -> None:
        """Call the callback with `event`; log and count an exception."""
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:  # a callback may raise anything
            self.failures += 1
            self._logger.exception("on_event raised for %r", event)


class Reporter:
    """Collects the reports from all parts of a checker.

    Attributes:
        listener: the callback of the caller.
        counts: counters by their names in `CheckerStats`.
        allowed: the number of allowed lookups.
        disallowed: the number of disallowed lookups, by the value of the `Reason`.
    """

    def __init__(self, on_event: Callable[[CheckerEvent], object] | None) -> None:
        """Report to `on_event`, if there is one.

        Raises:
            TypeError: it is not callable, or a coroutine function.
        """
        self.listener: Listener[CheckerEvent] = Listener(on_event, logger=LOGGER)
        self.counts: Counter[str] = Counter()
        self.allowed = 0
        self.disallowed = dict.fromkeys([reason.value for reason in Reason], 0)

    def stats(
        self, *, joined: int, live_origins: int, fetches_under_way: int
    ) -> CheckerStats:
        """The current counters, including those in the arguments."""
        return CheckerStats(
            checks=self.allowed + sum(self.disallowed.values()),
            allowed=self.allowed,
            disallowed={Reason(name): n for name, n in self.disallowed.items() if n},
            joined=joined,
            live_origins=live_origins,
            fetches_under_way=fetches_under_way,
            event_failures=self.listener.failures,
            **self.counts,
        )

    def report_answer(
        self, question: Question, rules: StandingFor, *, allowed: bool
    ) -> None:
        """Report that `question` was looked up in `rules`."""
        if allowed:
            self.allowed += 1
            return
        self.disallowed[rules.refusal] += 1
        if LOGGER.isEnabledFor(logging.DEBUG):
            LOGGER.debug(
                "%r may not fetch %r: %s",
                question.agent.name,
                shown_url(question.url),
                rules.refusal_of(question.readings),
            )

    def report_start(self, origin: str) -> None:
        """Report the start of a fetch; its outcome or cancellation follows."""
        self.listener.tell(FetchStarted(origin=origin))

    def report_cancellation(self, origin: str, *, seconds: float) -> None:
        """Report that a fetch ended without an outcome after `seconds`."""
        self.listener.tell(FetchCancelled(origin=origin, elapsed_seconds=seconds))

    def report_fetch(
        self,
        entry: Entry,
        *,
        previous: Entry | None,
        outcome: Outcome,
        seconds: float,
    ) -> None:
        """Report a fetch that took `seconds` and changed `previous` into `entry`."""
        self.counts["fetches"] += 1
        self.counts[entry.access.value] += 1
        body = outcome.body if isinstance(outcome, Answered) else b""
        self.listener.tell(
            RobotsTxtFetched(
                origin=entry.origin,
                access=entry.access,
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
            )
        )
        if previous is not None and previous.access is not entry.access:
            self._report_change(entry, previous.access, outcome)

    def report_look_up(self, *, is_hit: bool) -> None:
        """Report a lookup of a current entry in the store."""
        self.counts["store_hits" if is_hit else "store_misses"] += 1

    def report_lease_wait(self) -> None:
        """Report a pause, because another process is fetching the origin."""
        self.counts["lease_waits"] += 1

    def report_store_failure(
        self, operation: str, origin: str, *, error: Exception, is_first: bool
    ) -> None:
        """Report a store failure; `is_first` if it is the first in a row."""
        self.counts["store_failures"] += 1
        level = logging.WARNING if is_first else logging.DEBUG
        LOGGER.log(
            level, "store failed to %s: %r", f"{operation} {origin}".rstrip(), error
        )
        self.listener.tell(StoreFailed(origin=origin, operation=operation, error=error))

    def report_store_recovery(self, operation: str) -> None:
        """Report that `operation` has succeeded again after failures."""
        LOGGER.info("store works again: %s", operation)

    def report_store_skip(self) -> None:
        """Report a skipped operation, because the store had just hung or failed."""
        self.counts["store_skips"] += 1

    def _report_change(
        self, entry: Entry, before: AccessResult, outcome: Outcome
    ) -> None:
        LOGGER.info(
            "%s changed from %s to %s (%s)",
            entry.origin,
            before.value,
            entry.access.value,
            outcome.error or "no error",
        )
        self.listener.tell(
            AccessChanged(origin=entry.origin, before=before, after=entry.access)
        )
