"""A store that outlives checkers, and fails in all the ways a store can."""

from __future__ import annotations

import enum
from collections import Counter
from typing import TYPE_CHECKING

import anyio.lowlevel

from robotsgate import StoreError

from .chance import chance_of

if TYPE_CHECKING:
    from random import Random

    from robotsgate.stores._base import Change

    from .judge import Judge


class Mood(enum.Enum):
    """How a store does its work."""

    WELL = "works"
    SLOW = "is slow"
    DEAD = "is dead"
    MOODY = "fails now and then"
    DAMAGED = "gives rubbish now and then"
    FORGETFUL = "loses entries"


class UnreliableStore:
    """Keeps bytes, if it is in the mood."""

    def __init__(self, judge: Judge) -> None:
        self.mood = Mood.WELL
        self.failures = 0
        self._judge = judge
        self._data: dict[str, bytes] = {}
        self._salt: object = 0
        self._operations: Counter[tuple[str, str]] = Counter()

    def begin_step(self, salt: object) -> None:
        """From now on `salt` decides what fails, whatever was done before."""
        self._salt = salt
        self._operations.clear()

    def has(self, key: str) -> bool:
        """Whether there is anything under `key`."""
        return key in self._data

    async def get(self, key: str) -> bytes | None:
        """As `Store.get`, in a good mood."""
        try:
            chance = await self._begin("get", key)
        except Exception:
            self._judge.was_given(key, is_whole=False)
            raise
        data, is_whole = self._shown(key, chance)
        self._judge.was_given(key, is_whole=is_whole)
        return data

    async def update(self, key: str, change: Change) -> None:
        """As `Store.update`, in a good mood; it may fail after it has written."""
        try:
            chance = await self._begin("update", key)
        except Exception:
            self._judge.was_updated(key, is_whole=False, is_kept=False)
            raise
        data, is_whole = self._shown(key, chance)
        change(data)  # as after a write of another process, which was faster
        made = change(data)
        if made is not None:
            self._data[key] = made[0]
        self._judge.was_updated(key, is_whole=is_whole, is_kept=made is not None)
        if self._is_off(Mood.FORGETFUL, chance):
            self._lose(key)
        if self._is_off(Mood.MOODY, chance):
            raise StoreError("failed after the write")

    async def delete(self, key: str) -> None:
        """As `Store.delete`, in a good mood."""
        await self._begin("delete", key)
        self._lose(key)

    async def purge(self, now: float) -> int:
        """As `Store.purge`; nothing asks for it here."""
        raise NotImplementedError(now)

    async def aclose(self) -> None:
        """As `Store.aclose`; a checker must not close what is not its own."""
        raise NotImplementedError

    def lose(self, origin: str) -> None:
        """Lose what is kept of `origin`, under any terms."""
        for key in [key for key in self._data if key.split(" ")[0] == origin]:
            self._lose(key)

    def _lose(self, key: str) -> None:
        self._data.pop(key, None)
        self._judge.was_dropped(key)

    def _shown(self, key: str, chance: Random) -> tuple[bytes | None, bool]:
        """What is given for the bytes under `key`, and whether it is those."""
        if self._is_off(Mood.FORGETFUL, chance):
            self._lose(key)
        data = self._data.get(key)
        if data is not None and self._is_off(Mood.DAMAGED, chance):
            place = chance.randrange(len(data))
            flipped = bytes([data[place] ^ (1 << chance.randrange(8))])
            others = [other for name, other in self._data.items() if name != key]
            damaged = [
                b"",
                b"rubbish",
                data[:place],
                data[:place] + flipped + data[place + 1 :],
                *others,
            ]
            return chance.choice(damaged), False
        return data, True

    async def _begin(self, operation: str, key: str) -> Random:
        self._operations[operation, key] += 1
        number = self._operations[operation, key]
        chance = chance_of(self._salt, operation, key, number)
        rounds = chance.randrange(6) if self.mood is Mood.SLOW else chance.randrange(2)
        for _ in range(rounds):
            await anyio.lowlevel.checkpoint()
        if self.mood is Mood.DEAD or self._is_off(Mood.MOODY, chance):
            self.failures += self.mood is Mood.DEAD
            raise chance.choice(_ERRORS)(f"{operation} failed")
        return chance

    def _is_off(self, mood: Mood, chance: Random) -> bool:
        is_off = self.mood is mood and chance.random() < 0.4
        self.failures += is_off
        return is_off


_ERRORS = (OSError, StoreError, ValueError, TimeoutError)
