"""Deliberate mistakes in the library, each of which the simulation must notice.

Each is one function that patches the library for the length of a test.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from robotsgate import AccessResult, RobotsChecker
from robotsgate.caching import _plan, _ruling
from robotsgate.caching._plan import Plan, entry_after, plan
from robotsgate.checking import _guarded_store, _live, _renewal, _single_flight
from robotsgate.checking._single_flight import SingleFlight
from robotsgate.fetching import _fetcher

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

    import pytest

    from robotsgate import Entry

__all__ = ["SABOTAGES", "waiters_are_forgotten"]


def _entries_stand_for_ever(patch: pytest.MonkeyPatch) -> None:
    def wrong_plan(entry: Entry | None, _now: float) -> Plan:
        return Plan.FETCH if entry is None else Plan.USE

    _patch_plan(patch, wrong_plan)


def _entries_never_stand(patch: pytest.MonkeyPatch) -> None:
    _patch_plan(patch, lambda _entry, _now: Plan.FETCH)


def _entries_of_the_future_stand(patch: pytest.MonkeyPatch) -> None:
    def wrong_plan(entry: Entry | None, now: float) -> Plan:
        is_due = entry is None or now >= entry.next_fetch_at
        return Plan.FETCH if is_due else Plan.USE

    _patch_plan(patch, wrong_plan)


def _entries_stand_a_second_longer(patch: pytest.MonkeyPatch) -> None:
    def usable_later(entry: Entry | None, now: float) -> Plan:
        late = entry and replace(entry, next_fetch_at=entry.next_fetch_at + 1)
        return plan(late, now)

    _patch_plan(patch, usable_later)


def _patch_plan(
    patch: pytest.MonkeyPatch, wrong: Callable[[Entry | None, float], Plan]
) -> None:
    patch.setattr(_renewal, "plan", wrong)
    patch.setattr(_live, "plan", wrong)


def _runs_of_failures_begin_anew(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_plan, "_unreachable_since", lambda _previous, _kind, now: now)


def _failures_are_not_counted(patch: pytest.MonkeyPatch) -> None:
    _patch_entries(
        patch, lambda entry, _previous: replace(entry, failures=min(entry.failures, 1))
    )


def _outage_forgets_the_copy(patch: pytest.MonkeyPatch) -> None:
    def without_copy(entry: Entry, _previous: Entry | None) -> Entry:
        is_outage = entry.access is AccessResult.UNREACHABLE
        return replace(entry, copy=None) if is_outage else entry

    _patch_entries(patch, without_copy)


def _missing_file_leaves_the_copy(patch: pytest.MonkeyPatch) -> None:
    def with_old_copy(entry: Entry, previous: Entry | None) -> Entry:
        is_missing = entry.access is AccessResult.UNAVAILABLE
        return replace(entry, copy=previous.copy) if is_missing and previous else entry

    _patch_entries(patch, with_old_copy)


def _patch_entries(
    patch: pytest.MonkeyPatch, change: Callable[[Entry, Entry | None], Entry]
) -> None:
    def wrong_entry(previous: Entry | None, *args: Any, **named: Any) -> Entry:  # noqa: ANN401 (those of entry_after)
        return change(entry_after(previous, *args, **named), previous)

    patch.setattr(_renewal, "entry_after", wrong_entry)


def _headers_are_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        _plan,
        "freshness_lifetime",
        lambda _headers, *, now, policy: now - now + policy.default_lifetime,
    )


def _retry_after_is_ignored(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_plan, "retry_delay_asked_for", lambda *_, **__: None)


def _outage_allows(patch: pytest.MonkeyPatch) -> None:
    right = _ruling.ruling

    def wrong_ruling(*args: Any, **named: Any) -> _ruling.Ruling:  # noqa: ANN401 (those of ruling)
        found = right(*args, **named)
        is_outage = found.reason is _ruling.Reason.UNREACHABLE
        return replace(found, effect=_ruling.Effect.ALLOW) if is_outage else found

    patch.setattr(_live, "ruling", wrong_ruling)


def _stale_window_is_doubled(patch: pytest.MonkeyPatch) -> None:
    _patch_policy(
        patch, lambda policy: replace(policy, stale_window=2 * policy.stale_window)
    )


def _grace_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    _patch_policy(patch, lambda policy: replace(policy, outage_grace=0.0))


def _patch_policy(patch: pytest.MonkeyPatch, change: Callable[[Any], Any]) -> None:
    right = _ruling.ruling
    patch.setattr(
        _live,
        "ruling",
        lambda entry, *, now, policy: right(entry, now=now, policy=change(policy)),
    )


def _own_failures_are_blamed_on_the_origin(patch: pytest.MonkeyPatch) -> None:
    right = _ruling.ruling
    patch.setattr(
        _live,
        "ruling",
        lambda entry, **named: right(replace(entry, failure=None), **named),
    )


def _rulings_do_not_end(patch: pytest.MonkeyPatch) -> None:
    right = _ruling.ruling
    patch.setattr(
        _live,
        "ruling",
        lambda entry, **named: replace(
            right(entry, **named), until=entry.next_fetch_at
        ),
    )


def _nothing_is_stale(patch: pytest.MonkeyPatch) -> None:
    right = _ruling.ruling
    patch.setattr(
        _live,
        "ruling",
        lambda *args, **named: replace(right(*args, **named), is_stale=False),
    )


def _policies_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_renewal, "suits", lambda _entry, _policy: True)


class _EachForHimself(SingleFlight[Any]):
    async def run(self, key: Hashable, work: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 (as SingleFlight)
        _ = key
        return await work()


def _callers_do_not_share(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_renewal, "SingleFlight", _EachForHimself)


class _InheritsCancellation(SingleFlight[Any]):
    async def run(self, key: Hashable, work: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 (as SingleFlight)
        flight = self._flights.get(key)
        if flight is None:
            return await self._lead(key, work)
        await flight.is_over.wait()
        assert flight.result is not None
        return flight.result


def _waiters_inherit_cancellation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_renewal, "SingleFlight", _InheritsCancellation)


class _ForgetsWaiters(SingleFlight[Any]):
    async def _lead(self, key: Hashable, work: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 (as SingleFlight)
        flight = self._flights[key] = _single_flight._Flight()
        try:
            flight.result = await work()
        finally:
            del self._flights[key]
        flight.is_over.set()
        return flight.result


def waiters_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """When the leader is cancelled, nobody wakes those who wait for him."""
    patch.setattr(_renewal, "SingleFlight", _ForgetsWaiters)


def _store_is_believed(patch: pytest.MonkeyPatch) -> None:
    async def whole(self: Any, origin: str) -> Any:  # noqa: ANN401 (as GuardedStore)
        return await self._store.get(origin)

    patch.setattr(_guarded_store.GuardedStore, "_whole", whole)


def _store_may_raise(patch: pytest.MonkeyPatch) -> None:
    async def reported(
        _self: object, _operation: str, _origin: str, *, work: Callable[[], Any]
    ) -> Any:  # noqa: ANN401 (as GuardedStore)
        return await work()

    patch.setattr(_guarded_store.GuardedStore, "_reported", reported)


def _forget_spares_the_store(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: object, _origin: str) -> None:
        pass

    patch.setattr(_guarded_store.GuardedStore, "delete", nothing)


def _store_is_not_written(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: object, _entry: Entry) -> None:
        pass

    patch.setattr(_guarded_store.GuardedStore, "put", nothing)


def _errors_of_the_network_are_raised(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_fetcher, "MISTAKES", (Exception,))


def _one_redirect_too_many(patch: pytest.MonkeyPatch) -> None:
    right = _fetcher.Fetcher.__init__

    def wrong(self: Any, client: object, *, policy: Any, **named: Any) -> None:  # noqa: ANN401 (as Fetcher)
        more = replace(policy, max_redirects=policy.max_redirects + 1)
        right(self, client, policy=more, **named)

    patch.setattr(_fetcher.Fetcher, "__init__", wrong)


def _refresh_is_asleep(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: object, _url: str) -> None:
        pass

    patch.setattr(RobotsChecker, "refresh", nothing)


def _prefetch_is_asleep(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_self: object, _urls: object) -> None:
        pass

    patch.setattr(RobotsChecker, "prefetch", nothing)


def _peek_guesses(patch: pytest.MonkeyPatch) -> None:
    right = RobotsChecker.peek

    def guess(self: RobotsChecker, agent: str, url: str) -> bool:
        return bool(right(self, agent, url))

    patch.setattr(RobotsChecker, "peek", guess)


def _cancelled_fetches_count_as_failures(patch: pytest.MonkeyPatch) -> None:
    right = _fetcher.Fetcher.fetch

    async def wrong(self: Any, origin: Any) -> Any:  # noqa: ANN401 (as Fetcher)
        with contextlib.suppress(BaseException):
            return await right(self, origin)
        return _fetcher.failed(OSError("gone"), redirects=0, deadline=1.0)

    patch.setattr(_fetcher.Fetcher, "fetch", wrong)


SABOTAGES: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    sabotage.__name__.strip("_").replace("_", " "): sabotage
    for sabotage in (
        _entries_stand_for_ever,
        _entries_never_stand,
        _entries_of_the_future_stand,
        _entries_stand_a_second_longer,
        _runs_of_failures_begin_anew,
        _failures_are_not_counted,
        _outage_forgets_the_copy,
        _missing_file_leaves_the_copy,
        _headers_are_ignored,
        _retry_after_is_ignored,
        _outage_allows,
        _stale_window_is_doubled,
        _grace_is_forgotten,
        _own_failures_are_blamed_on_the_origin,
        _rulings_do_not_end,
        _nothing_is_stale,
        _policies_are_not_compared,
        _callers_do_not_share,
        _waiters_inherit_cancellation,
        _store_is_believed,
        _store_may_raise,
        _forget_spares_the_store,
        _store_is_not_written,
        _errors_of_the_network_are_raised,
        _one_redirect_too_many,
        _refresh_is_asleep,
        _prefetch_is_asleep,
        _peek_guesses,
        _cancelled_fetches_count_as_failures,
    )
}
