"""An in-memory store that outlives checkers and takes its time."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import anyio.lowlevel

if TYPE_CHECKING:
    from robotsgate.stores._base import Change


class SlowStore:
    """Stores bytes after a random number of checkpoints."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self._salt: object = 0
        self._operations: Counter[str] = Counter()

    def begin_step(self, salt: object) -> None:
        """Make delays depend only on `salt` and the operations of this step."""
        self._salt = salt
        self._operations.clear()

    async def get(self, key: str) -> bytes | None:
        await self._wait(f"get {key}")
        return self.data.get(key)

    async def update(self, key: str, change: Change) -> None:
        await self._wait(f"update {key}")
        data = self.data.get(key)
        change(data)  # as if another process had written first
        result = change(data)
        if result is not None:
            self.data[key] = result[0]

    async def delete(self, key: str) -> None:
        await self._wait(f"delete {key}")
        self.data.pop(key, None)

    async def purge(self, now: float) -> int:
        """Not needed here."""
        raise NotImplementedError(now)

    async def aclose(self) -> None:
        """Raise, because a checker must not close a store it does not own."""
        raise NotImplementedError

    async def _wait(self, operation: str) -> None:
        self._operations[operation] += 1
        seed = f"{self._salt}/{operation}/{self._operations[operation]}"
        for _ in range(Random(seed).randrange(6)):  # noqa: S311 (reproducible)
            await anyio.lowlevel.checkpoint()
