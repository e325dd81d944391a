"""What a store must do, so that another author can write one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry


@runtime_checkable
class Store(Protocol):
    """Keeps entries by origin.

    Any method may be called by many tasks at once and cancelled at any await;
    each is atomic for its origin: whoever reads sees a whole entry or none.
    A store that fails raises `StoreError`; the checker then works without it.
    A store may lose any entry at any time; it must never give a changed one.
    What `put` has returned from is as safe as the store promises: of those here,
    one in memory ends with the process, one in a file survives its being killed.
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
        """Drop all entries whose `retain_until` is not after `now`; how many.

        0 where entries leave by themselves.
        """
        ...

    async def aclose(self) -> None:
        """Free everything; may be called more than once."""
        ...


@runtime_checkable
class FetchLease(Protocol):
    """Lets one of many processes at a time fetch an origin.

    A store that many processes share may be one as well; the checker then asks it
    before each fetch. Who does not get the lease looks into the store for what the
    owner brings, and asks again now and then: the lease of an owner that died ends
    by itself. Each method is atomic and may be cancelled at any await.
    """

    async def acquire(self, origin: str, owner: str, seconds: float) -> bool:
        """Whether `owner` has the lease of `origin` from now on, for `seconds`.

        Not if anybody has it, `owner` itself included.

        Args:
            origin: what is to be fetched.
            owner: a name that no other process has.
            seconds: > 0; by the clock of whoever keeps the leases.
        """
        ...

    async def put_leased(self, entry: Entry, owner: str) -> None:
        """Keep `entry`, unless another was put since `owner` acquired the lease.

        Who was slower than its lease so replaces nothing newer. Without a lease
        acquired before, as `Store.put`.
        """
        ...

    async def release(self, origin: str, owner: str) -> None:
        """End the lease of `origin`, if `owner` still has it."""
        ...
