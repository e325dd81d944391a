"""Keeps bytes in the memory of this process, bounded in number and size."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import anyio.lowlevel
from cachetools import Cache, LRUCache

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from robotsgate.stores._base import Change

_MEBIBYTE = 2**20

# Measured on CPython 3.11: 300 bytes, and a key of a hundred characters.
_BYTES_OF_A_KEY = 400

# A sweep over this many takes some milliseconds.
_KEYS_BETWEEN_CHECKPOINTS = 2_000

_Kept = tuple[bytes, float]
"""The bytes under a key, and the epoch second until which they are kept."""


class MemoryStore:
    """A store that ends with the process.

    When there is no room, the key that has not been used for longest goes. Age does
    not count, because a stale copy answers in an outage.
    """

    def __init__(
        self, *, max_entries: int = 100_000, max_bytes: int = 256 * _MEBIBYTE
    ) -> None:
        """Make an empty store.

        Args:
            max_entries: how many keys are kept, ≥ 1.
            max_bytes: about how many bytes of memory they may take, ≥ 1; a key that
                alone takes more is not kept.

        Raises:
            ValueError: a bound is below 1.
        """
        for name, bound in (("max_entries", max_entries), ("max_bytes", max_bytes)):
            if bound < 1:
                raise ValueError(f"expected {name} to be 1 or more, got {bound!r}")
        self._max_entries = max_entries
        self._kept: LRUCache[str, _Kept] = LRUCache(
            max_bytes, getsizeof=lambda kept: _BYTES_OF_A_KEY + len(kept[0])
        )

    def __len__(self) -> int:
        """How many keys are kept."""
        return len(self._kept)

    async def get(self, key: str) -> bytes | None:
        """As `Store.get`; never suspends."""
        kept = self._kept.get(key)
        return None if kept is None else kept[0]

    async def update(self, key: str, change: Change) -> None:
        """As `Store.update`; never suspends."""
        new = change(await self.get(key))
        if new is None:
            return
        value, keep_until = new
        # The old bytes go even if the new ones are too large: they are out of date.
        self._kept.pop(key, None)
        while len(self._kept) >= self._max_entries:
            self._kept.popitem()
        if _BYTES_OF_A_KEY + len(value) <= self._kept.maxsize:
            self._kept[key] = value, math.inf if keep_until is None else keep_until

    async def delete(self, key: str) -> None:
        """As `Store.delete`; never suspends."""
        self._kept.pop(key, None)

    async def purge(self, now: float) -> int:
        """As `Store.purge`; lets other tasks run after every few thousand keys."""
        dropped = 0
        async for key in self.keys():
            # The base class looks without counting that as a use of the key.
            if key in self._kept and Cache.__getitem__(self._kept, key)[1] <= now:
                del self._kept[key]
                dropped += 1
        return dropped

    async def keys(self) -> AsyncIterator[str]:
        """As `ListableStore.keys`; listing a key does not count as using it."""
        for number, key in enumerate(list(self._kept), 1):
            if number % _KEYS_BETWEEN_CHECKPOINTS == 0:
                await anyio.lowlevel.checkpoint()
            yield key

    async def count(self) -> int:
        """As `ListableStore.count`; never suspends."""
        return len(self._kept)

    async def aclose(self) -> None:
        """As `Store.aclose`; forgets everything."""
        self._kept.clear()
