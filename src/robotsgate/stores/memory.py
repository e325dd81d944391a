"""Entries in the memory of this process, bounded in number and bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio.lowlevel
from cachetools import Cache, LRUCache

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry

__all__ = ["MemoryStore"]

_MEBIBYTE = 2**20

# Measured on CPython 3.11: an entry and its copy without the packed body, their
# strings and numbers, and their place in the cache.
_BYTES_OF_AN_ENTRY = 700

# Some milliseconds of a sweep.
_ENTRIES_BETWEEN_CHECKPOINTS = 2_000


class MemoryStore:
    """A store that ends with the process.

    Entries are kept by last use and not by age, because a copy that is no longer
    fresh is what answers in an outage. When there is no room, the entry that has
    not been used for longest goes.
    """

    def __init__(
        self, *, max_entries: int = 100_000, max_bytes: int = 256 * _MEBIBYTE
    ) -> None:
        """Make an empty store.

        Args:
            max_entries: how many origins are kept, ≥ 1.
            max_bytes: how much memory they may take, about, ≥ 1; an entry that
                alone is larger is not kept.

        Raises:
            ValueError: a bound is below 1.
        """
        for name, bound in (("max_entries", max_entries), ("max_bytes", max_bytes)):
            if bound < 1:
                message = f"expected {name} of 1 or more, got {bound!r}"
                raise ValueError(message)
        self._max_entries = max_entries
        self._entries: LRUCache[str, Entry] = LRUCache(max_bytes, getsizeof=_size)

    def __len__(self) -> int:
        """How many entries are kept."""
        return len(self._entries)

    async def get(self, origin: str) -> Entry | None:
        """As `Store.get`; never suspends."""
        return self._entries.get(origin)

    async def put(self, entry: Entry) -> None:
        """As `Store.put`; never suspends."""
        self._entries.pop(entry.origin, None)
        if _size(entry) > self._entries.maxsize:
            return
        while len(self._entries) >= self._max_entries:
            self._entries.popitem()
        self._entries[entry.origin] = entry

    async def delete(self, origin: str) -> None:
        """As `Store.delete`; never suspends."""
        self._entries.pop(origin, None)

    async def purge(self, now: float) -> int:
        """As `Store.purge`; lets others run after every few thousand entries."""
        dropped = 0
        for number, origin in enumerate(list(self._entries), 1):
            if number % _ENTRIES_BETWEEN_CHECKPOINTS == 0:
                await anyio.lowlevel.checkpoint()
            if origin not in self._entries:  # another task was faster
                continue
            # The base class looks without counting that as a use of the entry.
            if Cache.__getitem__(self._entries, origin).retain_until <= now:
                del self._entries[origin]
                dropped += 1
        return dropped

    async def aclose(self) -> None:
        """As `Store.aclose`; forgets everything."""
        self._entries.clear()


def _size(entry: Entry) -> int:
    texts = len(entry.origin) + len(entry.error or "")
    return _BYTES_OF_AN_ENTRY + texts + (len(entry.copy.packed) if entry.copy else 0)
