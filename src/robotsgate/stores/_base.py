"""What a store must do, so that another author can write one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry

__all__ = ["Store"]


@runtime_checkable
class Store(Protocol):
    """Keeps entries by origin.

    Any method may be called by many tasks at once and cancelled at any await;
    each is atomic for its origin: whoever reads sees a whole entry or none.
    A store that fails raises `StoreError`; the checker then works without it.
    A store may lose any entry at any time; it must never give a changed one.
    """

    async def get(self, origin: str) -> Entry | None:
        """The entry last put for `origin`; `None` where there is none."""
        ...

    async def put(self, entry: Entry) -> None:
        """Keep `entry` in the place of any other of its origin.

        Once this returns, `get` gives it, until something else replaces it, it
        is deleted or purged, or the store runs out of room.
        """
        ...

    async def delete(self, origin: str) -> None:
        """Drop the entry of `origin`, if there is one."""
        ...

    async def purge(self, now: float) -> int:
        """Drop all entries whose `retain_until` is not after `now`; how many."""
        ...

    async def aclose(self) -> None:
        """Free everything; may be called more than once."""
        ...
