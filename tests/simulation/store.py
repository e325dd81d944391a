"""An in-memory store that outlives checkers and fails in many ways."""

from __future__ import annotations

import enum
from collections import Counter
from typing import TYPE_CHECKING

import anyio.lowlevel

from robotsgate import StoreError

from .randomness import rng_for

if TYPE_CHECKING:
    from random import Random

    from robotsgate.stores._base import Change

    from .judge import Judge


class Mood(enum.Enum):
    """How the store behaves."""

    WELL = "works"
    SLOW = "is slow"
    DEAD = "is dead"
    MOODY = "sometimes fails"
    DAMAGED = "sometimes returns corrupt data"
    FORGETFUL = "loses entries"


class UnreliableStore:
    """Stores bytes, as reliably as its mood allows."""

    def __init__(self, judge: Judge) -> None:
        self.mood = Mood.WELL
        self.failures = 0
        self._judge = judge
        self._data: dict[str, bytes] = {}
        self._salt: object = 0
        self._operations: Counter[tuple[str, str]] = Counter()

    def begin_step(self, salt: object) -> None:
        """Make failures depend only on `salt` and the operations of this step."""
        self._salt = salt
        self._operations.clear()

    def has(self, key: str) -> bool:
        """Whether `key` has an entry."""
        return key in self._data

    async def get(self, key: str) -> bytes | None:
        """Like `Store.get`, but subject to the mood."""
        try:
            rng = await self._begin("get", key)
        except Exception:
            self._judge.entry_read(key, is_whole=False)
            raise
        data, is_whole = self._read(key, rng)
        self._judge.entry_read(key, is_whole=is_whole)
        return data

    async def update(self, key: str, change: Change) -> None:
        """Like `Store.update`, but subject to the mood; may fail after writing."""
        try:
            rng = await self._begin("update", key)
        except Exception:
            self._judge.entry_updated(key, is_whole=False, is_kept=False)
            raise
        data, is_whole = self._read(key, rng)
        change(data)  # as if another process had written first
        result = change(data)
        if result is not None:
            self._data[key] = result[0]
        self._judge.entry_updated(key, is_whole=is_whole, is_kept=result is not None)
        if self._misbehaves(Mood.FORGETFUL, rng):
            self._lose(key)
        if self._misbehaves(Mood.MOODY, rng):
            raise StoreError("failed after the write")

    async def delete(self, key: str) -> None:
        """Like `Store.delete`, but subject to the mood."""
        await self._begin("delete", key)
        self._lose(key)

    async def purge(self, now: float) -> int:
        """Not needed here."""
        raise NotImplementedError(now)

    async def aclose(self) -> None:
        """Raise, because a checker must not close a store it does not own."""
        raise NotImplementedError

    def lose(self, origin: str) -> None:
        """Lose the entries of `origin`, under any terms."""
        for key in [key for key in self._data if key.split(" ")[0] == origin]:
            self._lose(key)

    def _lose(self, key: str) -> None:
        self._data.pop(key, None)
        self._judge.entry_dropped(key)

    def _read(self, key: str, rng: Random) -> tuple[bytes | None, bool]:
        """The bytes to return for `key`, and whether they are the stored ones."""
        if self._misbehaves(Mood.FORGETFUL, rng):
            self._lose(key)
        data = self._data.get(key)
        if data is not None and self._misbehaves(Mood.DAMAGED, rng):
            place = rng.randrange(len(data))
            flipped = bytes([data[place] ^ (1 << rng.randrange(8))])
            others = [other for name, other in self._data.items() if name != key]
            damaged = [
                b"",
                b"rubbish",
                data[:place],
                data[:place] + flipped + data[place + 1 :],
                *others,
            ]
            return rng.choice(damaged), False
        return data, True

    async def _begin(self, operation: str, key: str) -> Random:
        self._operations[operation, key] += 1
        number = self._operations[operation, key]
        rng = rng_for(self._salt, operation, key, number)
        rounds = rng.randrange(6) if self.mood is Mood.SLOW else rng.randrange(2)
        for _ in range(rounds):
            await anyio.lowlevel.checkpoint()
        if self.mood is Mood.DEAD or self._misbehaves(Mood.MOODY, rng):
            self.failures += self.mood is Mood.DEAD
            raise rng.choice(_ERRORS)(f"{operation} failed")
        return rng

    def _misbehaves(self, mood: Mood, rng: Random) -> bool:
        misbehaves = self.mood is mood and rng.random() < 0.4
        self.failures += misbehaves
        return misbehaves


_ERRORS = (OSError, StoreError, ValueError, TimeoutError)
