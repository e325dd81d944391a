"""Deliberate mistakes in the library, each with the complaint it must lead to.

Each function patches the library for the duration of a test.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import anyio

from robotsgate import RobotsChecker
from robotsgate._flights import Flights
from robotsgate.caching import _entry, _live
from robotsgate.caching._entry import Entry, entry_after, key_of
from robotsgate.checking import _entries, _renewal
from robotsgate.checking._entries import Entries
from robotsgate.checking._renewal import OwnAttempts

from . import simulation

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import pytest

    Sabotage = Callable[[pytest.MonkeyPatch], None]
    _Work = Callable[[], Awaitable[Any]]

SABOTAGES: dict[str, tuple[Sabotage, str]] = {}
"""The functions, each with a part of the expected complaint, by name in words."""


def leads_to(complaint: str) -> Callable[[Sabotage], Sabotage]:
    """Register a function with a part of the expected complaint."""

    def register(function: Sabotage) -> Sabotage:
        SABOTAGES[function.__name__.replace("_", " ")] = function, complaint
        return function

    return register


@leads_to("was fetched too early")
def entries_are_never_current(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OwnAttempts, "is_current", lambda *_: False)
    patch.setattr(OwnAttempts, "current_until", lambda *_: 0.0)


@leads_to("despite its override")
def overrides_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_live, "_files_by_origin", lambda *_, **__: {})


@leads_to("/public: Decision(allowed=False")
def outage_forgets_the_copy(patch: pytest.MonkeyPatch) -> None:
    def forgetful(known: Entry | None, *args: Any, **named: Any) -> Entry:  # noqa: ANN401 (those of entry_after)
        entry = entry_after(known, *args, **named)
        return replace(entry, answer=None) if entry.outage else entry

    patch.setattr(_renewal, "entry_after", forgetful)


@leads_to("; permitted: ")
def terms_are_not_compared(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_entries, "terms_of", lambda _policy: "")
    patch.setattr(_entry, "terms_of", lambda _policy: "")


@leads_to("two fetches of")
def callers_do_not_share(patch: pytest.MonkeyPatch) -> None:
    async def result_of(
        _self: object, _key: object, work: _Work, **_how: object
    ) -> object:
        return await work()

    patch.setattr(Flights, "result_of", result_of)


@leads_to("was cancelled")
def cancelled_caller_cancels_the_fetch(patch: pytest.MonkeyPatch) -> None:
    original = Flights.result_of

    async def result_of(self: Flights[Any], key: str, work: _Work) -> object:
        is_first = key not in self._flights
        try:
            return await original(self, key, work)
        except BaseException:
            if is_first and key in self._flights:
                self._flights[key].scope.cancel()
            raise

    patch.setattr(Flights, "result_of", result_of)


@leads_to("a call hangs")
def joining_callers_hang(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(simulation, "STEP_TIMEOUT", 0.2)
    original = Flights.result_of

    async def result_of(self: Flights[Any], key: str, work: _Work) -> object:
        if key in self._flights:
            await anyio.sleep_forever()
        return await original(self, key, work)

    patch.setattr(Flights, "result_of", result_of)


@leads_to("raised: ")
def store_errors_are_raised(patch: pytest.MonkeyPatch) -> None:
    async def unguarded(
        self: Entries, _operation: str, origin: str, work: Callable[[str], Any]
    ) -> Any:  # noqa: ANN401 (as Entries)
        return await work(key_of(origin, self._terms))

    patch.setattr(Entries, "_call_store", unguarded)


@leads_to("was not stored")
def store_is_not_written(patch: pytest.MonkeyPatch) -> None:
    async def update(
        _self: object, _origin: str, _now: float, change: Callable[[None], Entry]
    ) -> Entry:
        return change(None)

    patch.setattr(Entries, "update", update)


@leads_to("was not forgotten")
def forget_skips_the_store(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Entries, "delete", _nothing)


@leads_to("was not refreshed")
def refresh_does_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RobotsChecker, "refresh", _nothing)


@leads_to("was not fetched")
def prefetch_does_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RobotsChecker, "prefetch", _nothing)


async def _nothing(_self: object, _about: object) -> None:
    pass
