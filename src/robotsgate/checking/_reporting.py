"""Reports what a checker does: counters, the log, and events for a listener."""

from __future__ import annotations

import logging
import math
from collections import Counter
from typing import TYPE_CHECKING, Generic, TypeVar

from robotsgate.caching._entry import unpack
from robotsgate.caching._question import check_callback
from robotsgate.caching._verdict import Reason
from robotsgate.urls._url import shown_url

if TYPE_CHECKING:
    from collections.abc import Callable
    from logging import Logger

    from robotsgate.caching._entry import Entry
    from robotsgate.caching._live import StandingFor
    from robotsgate.caching._outcome import Outcome
    from robotsgate.caching._question import Question
    from robotsgate.events import CheckerEvent, CheckerStats, Event

LOGGER = logging.getLogger("robotsgate.checker")

# A machine without file descriptors fails for every origin.
_BETWEEN_WARNINGS_SECONDS = 60.0

_Told = TypeVar("_Told", bound="Event")


class Listener(Generic[_Told]):
    """The `on_event` callback, if any; its exceptions are logged and counted."""

    def __init__(
        self, on_event: Callable[[_Told], object] | None, *, logger: Logger
    ) -> None:
        check_callback("on_event", on_event)
        self.is_there: bool = on_event is not None
        self.failures: int = 0
        self._on_event = on_event
        self._logger = logger

    def tell(self, event: _Told) -> None:
        if self._on_event is None:
            return
        try:
            self._on_event(event)
        except Exception:  # a callback may raise anything
            self.failures += 1
            self._logger.exception("on_event raised for %r", event)


class Reporter:
    """Collects the reports from all parts of a checker.

    `counts` is keyed by the names in `CheckerStats`; `disallowed` has the number of
    disallowed lookups, by the value of their `Reason`.
    """

    def __init__(self, on_event: Callable[[CheckerEvent], object] | None) -> None:
        self._listener: Listener[CheckerEvent] = Listener(on_event, logger=LOGGER)
        self.counts: Counter[str] = Counter()
        self.allowed: int = 0
        self.disallowed: dict[str, int] = {reason.value: 0 for reason in Reason}
        self._warned_at = -math.inf

    def stats(
        self, *, joined: int, live_origins: int, fetches_under_way: int
    ) -> CheckerStats:
        """The current counters, including those passed as arguments."""
        # Imported here and below, because its dataclasses take 7 ms to create.
        from robotsgate.events import CheckerStats  # noqa: PLC0415

        return CheckerStats(
            checks=self.allowed + sum(self.disallowed.values()),
            allowed=self.allowed,
            disallowed={Reason(name): n for name, n in self.disallowed.items() if n},
            joined=joined,
            live_origins=live_origins,
            fetches_under_way=fetches_under_way,
            event_failures=self._listener.failures,
            **self.counts,
        )

    def report_answer(
        self, question: Question, rules: StandingFor, *, allowed: bool
    ) -> None:
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

    def report_fetch(
        self, entry: Entry, *, previous: Entry | None, outcome: Outcome, seconds: float
    ) -> None:
        """Report a fetch that took `seconds` and changed `previous` into `entry`."""
        self.counts["fetches"] += 1
        self.counts[entry.access.value] += 1
        if outcome.is_our_fault:
            message = "could not judge the response of %s"
            LOGGER.error(message, entry.origin, exc_info=outcome.cause)
        if previous is not None and previous.access is not entry.access:
            LOGGER.info(
                "%s changed from %s to %s (%s)",
                entry.origin,
                previous.access.value,
                entry.access.value,
                outcome.error or outcome.status,
            )
        self._tell_fetched(entry, previous, outcome, seconds=seconds)

    def report_local_failure(
        self, entry: Entry, failure: Outcome, *, now: float, seconds: float
    ) -> None:
        """Report a fetch that failed on our own machine; `entry` applies meanwhile.

        Logs a warning, but at most one a minute.
        """
        self.counts["local_failures"] += 1
        if not self._warned_at <= now < self._warned_at + _BETWEEN_WARNINGS_SECONDS:
            self._warned_at = now
            LOGGER.warning(
                "%s was not fetched, because this machine failed: %s",
                entry.origin,
                failure.error,
            )
        self._tell_fetched(entry, entry, failure, seconds=seconds)

    def report_store_failure(
        self, operation: str, origin: str, *, error: Exception, is_first: bool = True
    ) -> None:
        """Report a store failure; `is_first` marks the first in a row."""
        self.counts["store_failures"] += 1
        level = logging.WARNING if is_first else logging.DEBUG
        LOGGER.log(
            level, "store failed to %s: %r", f"{operation} {origin}".rstrip(), error
        )
        if self._listener.is_there:
            from robotsgate.events import StoreFailed  # noqa: PLC0415

            event = StoreFailed(origin=origin, operation=operation, error=error)
            self._listener.tell(event)

    def _tell_fetched(
        self, entry: Entry, previous: Entry | None, outcome: Outcome, *, seconds: float
    ) -> None:
        if not self._listener.is_there:
            return
        from robotsgate.events import RobotsTxtFetched  # noqa: PLC0415

        self._listener.tell(
            RobotsTxtFetched(
                origin=entry.origin,
                access=entry.access,
                previous_access=None if previous is None else previous.access,
                status=outcome.status,
                redirects=outcome.redirects,
                headers=tuple(outcome.headers.items()),
                failure=outcome.failure,
                error=outcome.error,
                body_bytes=len(outcome.body),
                elapsed_seconds=seconds,
                next_fetch_at=entry.next_fetch_at,
                file=_file(entry),
                previous_file=_file(previous),
            )
        )


def _file(entry: Entry | None) -> bytes | None:
    packed = None if entry is None else entry.packed
    return None if packed is None else unpack(packed)
