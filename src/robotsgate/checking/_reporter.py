"""Reports what a checker did to its counters, its listener and the log."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING

from robotsgate.caching._outcome import Answered, Failed
from robotsgate.caching._verdict import Reason
from robotsgate.checking._events import (
    AccessChanged,
    FetchCancelled,
    FetchStarted,
    RobotsTxtFetched,
    StoreFailed,
)
from robotsgate.checking._listener import Listener
from robotsgate.checking._stats import CheckerStats
from robotsgate.urls._origin import shown_url

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.caching._access import AccessResult
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._outcome import Outcome
    from robotsgate.checking._events import CheckerEvent
    from robotsgate.checking._question import Question
    from robotsgate.checking._standing import StandingFor

LOGGER = logging.getLogger("robotsgate.checker")


class Reporter:
    """Where the parts of a checker report what happened.

    Attributes:
        listener: the callback of the caller.
        counts: by the names of `CheckerStats`.
        allowed: how many questions were answered with yes.
        disallowed: how many with no, by the value of the `Reason`.
    """

    def __init__(self, on_event: Callable[[CheckerEvent], object] | None) -> None:
        """Tell `on_event`, if there is one.

        Raises:
            TypeError: it cannot be called, or is a coroutine function.
        """
        self.listener: Listener[CheckerEvent] = Listener(on_event, logger=LOGGER)
        self.counts: Counter[str] = Counter()
        self.allowed = 0
        self.disallowed = dict.fromkeys([reason.value for reason in Reason], 0)

    def stats(
        self, *, joined: int, live_origins: int, fetches_under_way: int
    ) -> CheckerStats:
        """The counters as they are now, with the counts in the arguments."""
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
        """`question` was answered by `rules`."""
        if allowed:
            self.allowed += 1
            return
        self.disallowed[rules.refusal] += 1
        if LOGGER.isEnabledFor(logging.DEBUG):
            LOGGER.debug(
                "%r may not fetch %r: %s",
                question.agent.name,
                shown_url(question.url),
                rules.refusal_of(question.target),
            )

    def report_start(self, origin: str) -> None:
        """A fetch begins; `report_fetch` or `report_cancellation` follows."""
        self.listener.tell(FetchStarted(origin=origin))

    def report_cancellation(self, origin: str, *, seconds: float) -> None:
        """A fetch ended without an outcome after so many `seconds`."""
        self.listener.tell(FetchCancelled(origin=origin, elapsed_seconds=seconds))

    def report_fetch(
        self,
        entry: Entry,
        *,
        previous: Entry | None,
        outcome: Outcome,
        seconds: float,
    ) -> None:
        """A fetch of so many `seconds` has made `previous` into `entry`."""
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
        """The store was asked for a current entry."""
        self.counts["store_hits" if is_hit else "store_misses"] += 1

    def report_lease_wait(self) -> None:
        """Another process is fetching what is wanted here."""
        self.counts["lease_waits"] += 1

    def report_store_failure(
        self, operation: str, origin: str, *, error: Exception, is_first: bool
    ) -> None:
        """The store failed; `is_first`: for the first time in a row."""
        self.counts["store_failures"] += 1
        level = logging.WARNING if is_first else logging.DEBUG
        LOGGER.log(
            level, "store failed to %s: %r", f"{operation} {origin}".rstrip(), error
        )
        self.listener.tell(StoreFailed(origin=origin, operation=operation, error=error))

    def report_store_recovery(self, operation: str) -> None:
        """The store has done `operation` again, after it had failed at that."""
        LOGGER.info("store works again: %s", operation)

    def report_store_skip(self) -> None:
        """The store was not asked, because it had just hung or failed."""
        self.counts["store_skips"] += 1

    def _report_change(
        self, entry: Entry, before: AccessResult, outcome: Outcome
    ) -> None:
        LOGGER.info(
            "%s was %s and is %s now (%s)",
            entry.origin,
            before.value,
            entry.access.value,
            outcome.error or "no error",
        )
        self.listener.tell(
            AccessChanged(origin=entry.origin, before=before, after=entry.access)
        )
