"""The store that `docs/how-to/write-a-store.md` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from robotsgate.testing.stores import StoreContract

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from robotsgate.stores import Change


# --- The store
class DictStore:
    """Keeps bytes in a dict."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[bytes, float | None]] = {}

    async def get(self, key: str) -> bytes | None:
        return self._kept[key][0] if key in self._kept else None

    async def update(self, key: str, change: Change) -> None:
        new = change(await self.get(key))
        if new is not None:
            self._kept[key] = new

    async def delete(self, key: str) -> None:
        self._kept.pop(key, None)

    async def purge(self, now: float) -> int:
        useless = [
            key
            for key, (_, keep_until) in self._kept.items()
            if keep_until is not None and keep_until <= now
        ]
        for key in useless:
            del self._kept[key]
        return len(useless)

    async def keys(self) -> AsyncIterator[str]:
        for key in list(self._kept):
            yield key

    async def count(self) -> int:
        return len(self._kept)

    async def aclose(self) -> None:
        self._kept.clear()


# --- Its tests
class TestDictStore(StoreContract):
    @pytest.fixture
    def make_store(self) -> type[DictStore]:
        return DictStore
