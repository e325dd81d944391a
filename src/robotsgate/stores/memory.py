"""A size-limited store in this process's memory."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import anyio.lowlevel
from cachetools import Cache, LRUCache

from robotsgate._public import set_module
from robotsgate.stores._base import HOST_PREFIX

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from robotsgate.stores._base import Change

_MEBIBYTE = 2**20

# Measured on CPython 3.11: 300 bytes, plus a key of a hundred characters.
_BYTES_OF_A_KEY = 400

# A sweep over this many keys takes a few milliseconds.
_KEYS_BETWEEN_CHECKPOINTS = 2_000

_Kept = tuple[bytes, float]
"""The bytes under a key, and the epoch second at which they expire."""


@set_module("robotsgate")
class MemoryStore:
    """An in-memory store; its contents are lost when the process ends.

    When it is full, it evicts the least recently used key, regardless of age: a stale
    copy is still useful during an outage.
    """

    def __init__(
        self, *, max_entries: int = 100_000, max_bytes: int = 256 * _MEBIBYTE
    ) -> None:
        """Create an empty store.

        Args:
            max_entries: the maximum number of keys, ≥ 1.
            max_bytes: the approximate maximum memory that the entries may take up, in
                bytes, ≥ 1; an entry that is larger than that by itself is not stored.

        Raises:
            ValueError: a limit is below 1.
        """
        for name, bound in (("max_entries", max_entries), ("max_bytes", max_bytes)):
            if bound < 1:
                raise ValueError(f"expected {name} to be 1 or more, got {bound!r}")
        self._max_entries = max_entries
        self._kept: LRUCache[str, _Kept] = LRUCache(
            max_bytes, getsizeof=lambda kept: _BYTES_OF_A_KEY + len(kept[0])
        )

    def __len__(self) -> int:
        """The number of keys."""
        return len(self._kept)

    def __repr__(self) -> str:
        """The store and the number of keys."""
        return f"<robotsgate.MemoryStore keys={len(self)}>"

    async def get(self, key: str) -> bytes | None:
        """See `Store.get`. Never suspends."""
        kept = self._kept.get(key)
        return None if kept is None else kept[0]

    async def update(self, key: str, change: Change) -> None:
        """See `Store.update`. Never suspends."""
        new = change(await self.get(key))
        if new is None:
            return
        value, keep_until = new
        # The old bytes are outdated, so they are dropped even if the new ones are too
        # large.
        self._kept.pop(key, None)
        while len(self._kept) >= self._max_entries:
            self._kept.popitem()
        if _BYTES_OF_A_KEY + len(value) <= self._kept.maxsize:
            self._kept[key] = value, math.inf if keep_until is None else keep_until

    async def delete(self, key: str) -> None:
        """See `Store.delete`. Never suspends."""
        self._kept.pop(key, None)

    async def purge(self, now: float) -> int:
        """See `Store.purge`. Lets other tasks run after every few thousand keys."""
        dropped = 0
        async for key in self._all_keys():
            # A lookup through the base class does not count as a use of the key.
            if key in self._kept and Cache.__getitem__(self._kept, key)[1] <= now:
                del self._kept[key]
                dropped += 1
        return dropped

    async def keys(self) -> AsyncIterator[str]:
        """See `ListableStore.keys`. Listing a key does not count as using it."""
        async for key in self._all_keys():
            if not key.startswith(HOST_PREFIX):
                yield key

    async def count(self) -> int:
        """See `ListableStore.count`. Never suspends."""
        return sum(not key.startswith(HOST_PREFIX) for key in self._kept)

    async def aclose(self) -> None:
        """See `Store.aclose`. Discards all keys."""
        self._kept.clear()

    async def _all_keys(self) -> AsyncIterator[str]:
        for number, key in enumerate(list(self._kept), 1):
            if number % _KEYS_BETWEEN_CHECKPOINTS == 0:
                await anyio.lowlevel.checkpoint()
            yield key
