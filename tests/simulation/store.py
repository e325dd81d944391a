"""An in-memory store that outlives checkers and fails in many ways."""

from __future__ import annotations

import enum
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import anyio.lowlevel

from robotsgate import StoreError

if TYPE_CHECKING:
    from robotsgate.stores._base import Change


class Mood(enum.Enum):
    """How the store behaves."""

    WELL = "works"
    SLOW = "is slow"
    DEAD = "is dead"
    MOODY = "sometimes fails"
    DAMAGED = "sometimes returns corrupt data"
    FORGETFUL = "loses entries"


_ERRORS = (OSError, StoreError, ValueError, TimeoutError)


class UnreliableStore:
    """Stores bytes, as reliably as its mood allows."""

    def __init__(self) -> None:
        self.mood = Mood.WELL
        self.data: dict[str, bytes] = {}
        self._salt: object = 0
        self._operations: Counter[str] = Counter()

    def begin_step(self, salt: object) -> None:
        """Make failures depend only on `salt` and the operations of this step."""
        self._salt = salt
        self._operations.clear()

    async def get(self, key: str) -> bytes | None:
        """Like `Store.get`, but subject to the mood."""
        return self._read(key, await self._begin(f"get {key}"))

    async def update(self, key: str, change: Change) -> None:
        """Like `Store.update`, but subject to the mood; may fail after writing."""
        rng = await self._begin(f"update {key}")
        data = self._read(key, rng)
        change(data)  # as if another process had written first
        result = change(data)
        if result is not None:
            self.data[key] = result[0]
        if self._misbehaves(Mood.MOODY, rng):
            raise StoreError("failed after the write")

    async def delete(self, key: str) -> None:
        """Like `Store.delete`, but subject to the mood."""
        await self._begin(f"delete {key}")
        self.data.pop(key, None)

    async def purge(self, now: float) -> int:
        """Not needed here."""
        raise NotImplementedError(now)

    async def aclose(self) -> None:
        """Raise, because a checker must not close a store it does not own."""
        raise NotImplementedError

    def _read(self, key: str, rng: Random) -> bytes | None:
        if self._misbehaves(Mood.FORGETFUL, rng):
            self.data.pop(key, None)
        data = self.data.get(key)
        if not data or not self._misbehaves(Mood.DAMAGED, rng):
            return data
        place = rng.randrange(len(data))
        flipped = bytes([data[place] ^ (1 << rng.randrange(8))])
        others = [other for name, other in self.data.items() if name != key]
        damaged = [b"rubbish", data[:place], data[:place] + flipped + data[place + 1 :]]
        return rng.choice(damaged + others)

    async def _begin(self, operation: str) -> Random:
        self._operations[operation] += 1
        seed = f"{self._salt}/{operation}/{self._operations[operation]}"
        rng = Random(seed)  # noqa: S311 (reproducible, not secret)
        for _ in range(rng.randrange(6 if self.mood is Mood.SLOW else 2)):
            await anyio.lowlevel.checkpoint()
        if self.mood is Mood.DEAD or self._misbehaves(Mood.MOODY, rng):
            raise rng.choice(_ERRORS)(f"{operation} failed")
        return rng

    def _misbehaves(self, mood: Mood, rng: Random) -> bool:
        return self.mood is mood and rng.random() < 0.4
