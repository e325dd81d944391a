"""A store that outlives checkers, and fails in all the ways a store can."""

from __future__ import annotations

import enum
import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio.lowlevel

from robotsgate import StoreError

from .chance import chance_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from robotsgate import Entry

__all__ = ["Mood", "StoreWatcher", "UnreliableStore"]


class Mood(enum.Enum):
    """How a store does its work."""

    WELL = "works"
    SLOW = "is slow"
    DEAD = "is dead"
    MOODY = "fails now and then"
    DAMAGED = "gives rubbish now and then"
    FORGETFUL = "loses entries"


class StoreWatcher(Protocol):
    """Who is told what really happened to the entries."""

    def was_kept(self, origin: str) -> None:
        """The entry of `origin` was replaced by the newest one."""
        ...

    def was_given(self, origin: str) -> None:
        """The entry of `origin` was given to the checker, whole."""
        ...

    def nothing_was_given(self, origin: str) -> None:
        """The checker asked for the entry of `origin`, and got nothing of use."""
        ...

    def was_dropped(self, origin: str) -> None:
        """The entry of `origin` is lost."""
        ...


class UnreliableStore:
    """Keeps entries, if it is in the mood.

    Attributes:
        mood: how it works from now on.
        failures: how often it failed on purpose.
    """

    def __init__(self, watcher: StoreWatcher) -> None:
        self.mood = Mood.WELL
        self.failures = 0
        self._watcher = watcher
        self._entries: dict[str, Entry] = {}
        self._salt: object = 0
        self._operations: Counter[tuple[str, str]] = Counter()

    def begin_step(self, salt: object) -> None:
        """From now on `salt` decides what fails, whatever was done before."""
        self._salt = salt
        self._operations.clear()

    async def get(self, origin: str) -> Entry | None:
        """As `Store.get`, in a good mood."""
        chance = await self._begin("get", origin)
        entry = self._entries.get(origin)
        if entry is not None and self._is_off(Mood.FORGETFUL, chance):
            self.lose(origin)
            entry = None
        if entry is not None and self._is_off(Mood.DAMAGED, chance):
            self._watcher.nothing_was_given(origin)
            return cast("Entry", chance.choice(_DAMAGES)(entry))
        if entry is None:
            self._watcher.nothing_was_given(origin)
        else:
            self._watcher.was_given(origin)
        return entry

    async def put(self, entry: Entry) -> None:
        """As `Store.put`, in a good mood."""
        chance = await self._begin("put", entry.origin)
        if self._is_off(Mood.FORGETFUL, chance):
            self.lose(entry.origin)
            return
        self._entries[entry.origin] = entry
        self._watcher.was_kept(entry.origin)

    async def delete(self, origin: str) -> None:
        """As `Store.delete`, in a good mood."""
        await self._begin("delete", origin)
        self._entries.pop(origin, None)
        self._watcher.was_dropped(origin)

    async def purge(self, now: float) -> int:
        """As `Store.purge`; nothing asks for it here."""
        raise NotImplementedError(now)

    async def aclose(self) -> None:
        """As `Store.aclose`; a checker must not close what is not its own."""
        raise NotImplementedError

    async def _begin(self, operation: str, origin: str) -> Random:
        self._operations[operation, origin] += 1
        number = self._operations[operation, origin]
        chance = chance_of(self._salt, operation, origin, number)
        rounds = chance.randrange(6) if self.mood is Mood.SLOW else chance.randrange(2)
        for _ in range(rounds):
            await anyio.lowlevel.checkpoint()
        is_dead = self.mood is Mood.DEAD or self._is_off(Mood.MOODY, chance)
        if is_dead:
            self.failures += 1
            if operation == "get":
                self._watcher.nothing_was_given(origin)
            raise chance.choice(_ERRORS)(f"{operation} failed")
        return chance

    def _is_off(self, mood: Mood, chance: Random) -> bool:
        is_off = self.mood is mood and chance.random() < 0.4
        self.failures += is_off
        return is_off

    def lose(self, origin: str) -> None:
        self._entries.pop(origin, None)
        self._watcher.was_dropped(origin)


_ERRORS = (OSError, StoreError, ValueError, TimeoutError)


def _with_cut_copy(entry: Entry) -> object:
    if entry.copy is None:
        return None
    return replace(entry, copy=replace(entry.copy, packed=entry.copy.packed[:-6]))


_DAMAGES: tuple[Callable[[Any], object], ...] = (
    lambda _: "rubbish",
    lambda _: {"access": "successful"},
    lambda entry: replace(entry, origin="https://somebody.else"),
    lambda entry: replace(entry, checked_at="yesterday"),
    lambda entry: replace(entry, next_fetch_at=None),
    lambda entry: replace(entry, access="unavailable"),
    lambda entry: replace(entry, status="200"),
    lambda entry: replace(entry, unreachable_since=math.nan),
    lambda entry: replace(entry, unreachable_since=-math.inf),
    _with_cut_copy,
)
