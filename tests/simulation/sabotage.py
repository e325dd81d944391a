"""Deliberate mistakes in the library, each of which the simulation must notice.

Each is one function that patches the library for the length of a test.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from robotsgate import RobotsChecker
from robotsgate.caching import _attempt, _outcome
from robotsgate.caching._access import AccessResult
from robotsgate.caching._attempt import entry_after
from robotsgate.caching._entry import Entry
from robotsgate.caching._freshness import freshness_lifetime, http_date, retry_after
from robotsgate.caching._in_force import Effect, InForce, in_force
from robotsgate.caching._missing_page import says_not_found
from robotsgate.caching._outcome import (
    Failed,
    FailureKind,
    TooManyRedirects,
    access_result,
)
from robotsgate.checking import _entries, _live, _renewal, _standing
from robotsgate.checking._entries import Entries
from robotsgate.checking._flights import Flights
from robotsgate.fetching._robots_fetch import RobotsTxtFetcher

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable, Mapping

    import pytest

SABOTAGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {}


def sabotage(
    function: Callable[[pytest.MonkeyPatch], None],
) -> Callable[[pytest.MonkeyPatch], None]:
    """Add `function` to the list, under its name in words."""
    SABOTAGES[function.__name__.replace("_", " ")] = function
    return function


# --- when an origin is fetched ------------------------------------------------------


@sabotage
def entries_are_current_for_ever(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Entry, "is_current", lambda _self, _now: True)


@sabotage
def entries_are_never_current(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Entry, "is_current", lambda _self, _now: False)


@sabotage
def entries_are_current_a_second_longer(patch: pytest.MonkeyPatch) -> None:
    right = Entry.is_current
    patch.setattr(Entry, "is_current", lambda self, now: right(self, now - 1))


@sabotage
def entries_of_the_future_are_current(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Entry, "is_current", lambda self, now: now < self.next_fetch_at)


@sabotage
def headers_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        _attempt,
        "freshness_lifetime",
        lambda _headers, *, now, policy: now - now + policy.default_lifetime,
    )


@sabotage
def retry_after_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_attempt, "retry_after", lambda *_, **__: None)


@sabotage
def first_retry_after_counts(patch: pytest.MonkeyPatch) -> None:
    def wrong(headers: Mapping[str, str], **named: Any) -> float | None:  # noqa: ANN401 (those of retry_after)
        value = headers.get("retry-after", "")
        is_date = not value[:1].isdigit()
        first = value if is_date else value.partition(",")[0]
        return retry_after({"retry-after": first}, **named)

    patch.setattr(_attempt, "retry_after", wrong)


@sabotage
def own_pauses_give_way_to_retry_after(patch: pytest.MonkeyPatch) -> None:
    def wrong(known: Entry | None, outcome: Any, **named: Any) -> Entry:  # noqa: ANN401 (those of entry_after)
        entry = entry_after(known, outcome, **named)
        now, headers = named["now"], getattr(outcome, "headers", {})
        asked = retry_after(headers, now=now, policy=named["policy"])
        if asked is None or entry.outage is None:
            return entry
        return replace(entry, outage=replace(entry.outage, retry_at=now + asked))

    patch.setattr(_renewal, "entry_after", wrong)


@sabotage
def age_does_not_count_with_expires(patch: pytest.MonkeyPatch) -> None:
    def wrong(headers: Mapping[str, str], **named: Any) -> float:  # noqa: ANN401 (those of freshness_lifetime)
        without_age = {name: headers[name] for name in headers if name != "age"}
        return freshness_lifetime(
            without_age if "expires" in headers else headers, **named
        )

    patch.setattr(_attempt, "freshness_lifetime", wrong)


@sabotage
def expires_that_is_no_date_is_ignored(patch: pytest.MonkeyPatch) -> None:
    def wrong(headers: Mapping[str, str], **named: Any) -> float:  # noqa: ANN401 (those of freshness_lifetime)
        is_date = http_date(headers.get("expires", "")) is not None
        usable = {name: headers[name] for name in headers if name != "expires"}
        return freshness_lifetime(headers if is_date else usable, **named)

    patch.setattr(_attempt, "freshness_lifetime", wrong)


# --- what an answer means -----------------------------------------------------------


@sabotage
def pages_about_missing_pages_are_missing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_outcome, "says_not_found", lambda page, **_: b"Not Found" in page)


@sabotage
def missing_page_of_a_503_is_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        _outcome,
        "_is_missing_page",
        lambda answer, origin: (
            answer.status == 503
            and says_not_found(answer.body, status=503, origin=origin)
        ),
    )


@sabotage
def missing_page_ends_the_copy(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        _attempt,
        "access_result",
        lambda outcome, policy, origin, **_: access_result(
            outcome, policy, origin=origin
        ),
    )


@sabotage
def answers_without_a_file_are_missing_files(patch: pytest.MonkeyPatch) -> None:
    def wrong(outcome: Any, policy: Any, **named: Any) -> AccessResult:  # noqa: ANN401 (those of access_result)
        is_broken = getattr(outcome, "status", None) in {206, 302, 304, 407}
        right = access_result(outcome, policy, **named)
        return AccessResult.UNAVAILABLE if is_broken else right

    patch.setattr(_attempt, "access_result", wrong)


@sabotage
def loops_are_server_errors(patch: pytest.MonkeyPatch) -> None:
    def wrong(outcome: Any, policy: Any, **named: Any) -> AccessResult:  # noqa: ANN401 (those of access_result)
        if isinstance(outcome, TooManyRedirects):
            return AccessResult.UNREACHABLE
        return access_result(outcome, policy, **named)

    patch.setattr(_attempt, "access_result", wrong)


@sabotage
def overrides_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_live, "files_by_origin", lambda *_, **__: {})


# --- what an attempt leads to -------------------------------------------------------


def _patch_entries(
    patch: pytest.MonkeyPatch, change: Callable[[Entry, Entry | None], Entry]
) -> None:
    def wrong(known: Entry | None, *args: Any, **named: Any) -> Entry:  # noqa: ANN401 (those of entry_after)
        return change(entry_after(known, *args, **named), known)

    patch.setattr(_renewal, "entry_after", wrong)


def _patch_outages(patch: pytest.MonkeyPatch, **changes: Callable[[Any], Any]) -> None:
    def changed(entry: Entry, _known: Entry | None) -> Entry:
        if entry.outage is None:
            return entry
        new = {name: change(entry.outage) for name, change in changes.items()}
        return replace(entry, outage=replace(entry.outage, **new))

    _patch_entries(patch, changed)


@sabotage
def outages_begin_with_the_last_failure(patch: pytest.MonkeyPatch) -> None:
    _patch_outages(patch, since=lambda outage: outage.last_attempt_at)


@sabotage
def attempts_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    _patch_outages(patch, attempts=lambda outage: min(outage.attempts, 1))


@sabotage
def outage_forgets_the_copy(patch: pytest.MonkeyPatch) -> None:
    _patch_entries(
        patch, lambda entry, _: replace(entry, answer=None) if entry.outage else entry
    )


@sabotage
def missing_file_leaves_the_copy(patch: pytest.MonkeyPatch) -> None:
    def with_old_copy(entry: Entry, known: Entry | None) -> Entry:
        is_missing = entry.access is AccessResult.UNAVAILABLE
        return replace(entry, answer=known.answer) if is_missing and known else entry

    def changed(entry: Entry, known: Entry | None) -> Entry:
        has_copy = known is not None and known.answer is not None
        return with_old_copy(entry, known) if has_copy else entry

    _patch_entries(patch, changed)


@sabotage
def store_is_preferred_to_memory(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_renewal, "merge", lambda known, stored, **_: stored or known)


# --- what is in force ---------------------------------------------------------------


def _patch_in_force(
    patch: pytest.MonkeyPatch, wrong: Callable[[Entry, float, Any], InForce]
) -> None:
    patch.setattr(
        _standing,
        "in_force",
        lambda entry, *, now, policy: wrong(entry, now, policy),
    )


@sabotage
def outage_allows(patch: pytest.MonkeyPatch) -> None:
    def wrong(entry: Entry, now: float, policy: Any) -> InForce:  # noqa: ANN401
        right = in_force(entry, now=now, policy=policy)
        is_closed = entry.outage is not None and right.effect is Effect.DISALLOW
        return replace(right, effect=Effect.ALLOW) if is_closed else right

    _patch_in_force(patch, wrong)


def _patch_policy(
    patch: pytest.MonkeyPatch, change: Callable[[Any], dict[str, float]]
) -> None:
    _patch_in_force(
        patch,
        lambda entry, now, policy: in_force(
            entry, now=now, policy=replace(policy, **change(policy))
        ),
    )


@sabotage
def stale_window_is_doubled(patch: pytest.MonkeyPatch) -> None:
    _patch_policy(patch, lambda policy: {"stale_window": 2 * policy.stale_window})


@sabotage
def grace_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    _patch_policy(patch, lambda _: {"outage_grace": 0.0})


@sabotage
def one_day_of_evidence_is_enough(patch: pytest.MonkeyPatch) -> None:
    _patch_policy(patch, lambda _: {"days_of_evidence": 1, "unreachable_limit": 0.0})


@sabotage
def any_failure_is_evidence(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_attempt, "is_evidence", lambda _outcome, **_: True)


@sabotage
def what_is_in_force_does_not_end(patch: pytest.MonkeyPatch) -> None:
    _patch_in_force(
        patch,
        lambda entry, now, policy: replace(
            in_force(entry, now=now, policy=policy), until=entry.next_fetch_at
        ),
    )


@sabotage
def terms_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_entries, "terms_of", lambda _policy: "")
    patch.setattr(_attempt, "terms_of", lambda _policy: "")


# --- who fetches --------------------------------------------------------------------


@sabotage
def callers_do_not_share(patch: pytest.MonkeyPatch) -> None:
    async def result_of(
        _self: object,
        _key: Hashable,
        work: Callable[[], Awaitable[Any]],
        **_how: Any,  # noqa: ANN401 (as Flights)
    ) -> Any:  # noqa: ANN401 (as Flights)
        return await work()

    patch.setattr(Flights, "result_of", result_of)


@sabotage
def fetch_ends_with_its_first_caller(patch: pytest.MonkeyPatch) -> None:
    right = Flights.result_of

    async def result_of(
        self: Flights[Any],
        key: Hashable,
        work: Callable[[], Awaitable[Any]],
        **how: Any,  # noqa: ANN401 (as Flights)
    ) -> Any:  # noqa: ANN401 (as Flights)
        is_first = key not in self._flights
        try:
            return await right(self, key, work, **how)
        except BaseException:
            if is_first and key in self._flights:
                self._flights[key].scope.cancel()
            raise

    patch.setattr(Flights, "result_of", result_of)


def waiters_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """Nobody wakes those who wait for a fetch that another one began."""
    right = Flights.result_of

    async def result_of(
        self: Flights[Any],
        key: Hashable,
        work: Callable[[], Awaitable[Any]],
        **how: Any,  # noqa: ANN401 (as Flights)
    ) -> Any:  # noqa: ANN401 (as Flights)
        if key in self._flights:
            await anyio.sleep_forever()
        return await right(self, key, work, **how)

    patch.setattr(Flights, "result_of", result_of)


# --- the store ----------------------------------------------------------------------


@sabotage
def store_may_raise(patch: pytest.MonkeyPatch) -> None:
    async def guarded(
        _self: object, _operation: str, _origin: str, work: Callable[[], Any]
    ) -> Any:  # noqa: ANN401 (as Entries)
        return await work()

    patch.setattr(Entries, "_guarded", guarded)


@sabotage
def forget_spares_the_store(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: object, _origin: str) -> None:
        pass

    patch.setattr(Entries, "delete", nothing)


@sabotage
def store_is_not_read(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: object, _origin: str, _now: float) -> None:
        return None

    patch.setattr(Entries, "get", nothing)


@sabotage
def store_is_not_written(patch: pytest.MonkeyPatch) -> None:
    async def update(
        _self: object, _origin: str, _now: float, change: Callable[[None], Entry]
    ) -> Entry:
        return change(None)

    patch.setattr(Entries, "update", update)


# --- fetching and asking ------------------------------------------------------------


@sabotage
def errors_of_the_network_are_raised(patch: pytest.MonkeyPatch) -> None:
    right = RobotsTxtFetcher.fetch

    async def fetch(self: RobotsTxtFetcher, origin: Any) -> Any:  # noqa: ANN401 (as RobotsTxtFetcher)
        outcome = await right(self, origin)
        if isinstance(outcome, Failed) and outcome.cause is not None:
            raise outcome.cause
        return outcome

    patch.setattr(RobotsTxtFetcher, "fetch", fetch)


@sabotage
def full_pools_are_blamed_on_the_origin(patch: pytest.MonkeyPatch) -> None:
    right = RobotsTxtFetcher.fetch

    async def fetch(self: RobotsTxtFetcher, origin: Any) -> Any:  # noqa: ANN401 (as RobotsTxtFetcher)
        outcome = await right(self, origin)
        is_pool = isinstance(outcome, Failed) and outcome.kind is FailureKind.POOL
        return replace(outcome, kind=FailureKind.CONNECT) if is_pool else outcome

    patch.setattr(RobotsTxtFetcher, "fetch", fetch)


@sabotage
def one_redirect_too_many(patch: pytest.MonkeyPatch) -> None:
    right = RobotsTxtFetcher.__init__

    def wrong(self: Any, *args: Any, policy: Any, **named: Any) -> None:  # noqa: ANN401 (as RobotsTxtFetcher)
        more = replace(policy, max_redirects=policy.max_redirects + 1)
        right(self, *args, policy=more, **named)

    patch.setattr(RobotsTxtFetcher, "__init__", wrong)


@sabotage
def refresh_is_asleep(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: object, _url: str) -> None:
        pass

    patch.setattr(RobotsChecker, "refresh", nothing)


@sabotage
def prefetch_is_asleep(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: object, _urls: object) -> None:
        pass

    patch.setattr(RobotsChecker, "prefetch", nothing)


@sabotage
def peek_guesses(patch: pytest.MonkeyPatch) -> None:
    right = RobotsChecker.peek
    patch.setattr(
        RobotsChecker,
        "peek",
        lambda self, agent, url: bool(right(self, agent, url)),
    )


@sabotage
def cancelled_fetches_count_as_failures(patch: pytest.MonkeyPatch) -> None:
    fetch_ends_with_its_first_caller(patch)
    right = RobotsTxtFetcher.fetch

    async def wrong(self: RobotsTxtFetcher, origin: Any) -> Any:  # noqa: ANN401 (as RobotsTxtFetcher)
        with contextlib.suppress(BaseException):
            return await right(self, origin)
        return Failed(kind=FailureKind.OTHER, error="gone")

    patch.setattr(RobotsTxtFetcher, "fetch", wrong)
