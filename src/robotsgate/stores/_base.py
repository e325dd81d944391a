"""The ports for stores: what one must do, so that another author can write one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Protocol, runtime_checkable

Change = Callable[[bytes | None], tuple[bytes, float | None] | None]
"""Turns the bytes under a key (`None`: there are none) into those to keep.

Gives the new bytes with the epoch second from which nothing can use them (`None`:
they are kept for ever), or `None` to leave everything as it is. Pure; a store may
call it more than once, and in another thread.
"""


@runtime_checkable
class Store(Protocol):
    """Keeps bytes under a key; knows neither what they mean nor the time.

    Many tasks may call a method at once, and a call may be cancelled at any await.
    A store that fails raises `StoreError`; the checker then works without it.
    A store may lose the bytes of any key at any time, but must never give wrong ones.
    Each store documents what outlives a return of `update`: memory ends with the
    process, but a file remains even if the process is killed.
    """

    async def get(self, key: str) -> bytes | None:
        """The bytes last kept under `key`; `None` if there are none."""
        ...

    async def update(self, key: str, change: Change) -> None:
        """Replace what `key` holds by what `change` makes of it, in one step.

        No other writer of the store comes between the read and the write, so no
        process loses what another one wrote. If `change` raises, nothing is written,
        and the error goes to the caller.

        Raises:
            StoreError: the store failed, or other writers were always faster.
        """
        ...

    async def delete(self, key: str) -> None:
        """Drop what `key` holds, if anything."""
        ...

    async def purge(self, now: float) -> int:
        """Drop what nothing can use from `now` on, and say how many keys that were.

        0 if the store drops them by itself.
        """
        ...

    async def aclose(self) -> None:
        """Free everything; any task may call it, and more than once."""
        ...


@runtime_checkable
class ListableStore(Store, Protocol):
    """A store that can tell what it holds."""

    def keys(self) -> AsyncIterator[str]:
        """All keys, each once, in no order; keys written meanwhile may be missing."""
        ...

    async def count(self) -> int:
        """How many keys there are."""
        ...


@runtime_checkable
class BatchStore(Protocol):
    """A store that looks up many keys together in less time than one by one."""

    async def get_many(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """The bytes under those of `keys` that hold any, as `Store.get` gives them."""
        ...


@runtime_checkable
class FetchLease(Protocol):
    """Lets one of many processes at a time fetch an origin.

    If a store that many processes share has these methods, the checker asks for a lease
    before each fetch. If another process has the lease, the checker looks for the
    result in the store, and now and then asks for the lease again: the lease of a
    process that died ends by itself. Each method is atomic and may be cancelled at any
    await.
    """

    async def acquire(self, key: str, owner: str, seconds: float) -> bool:
        """Whether `owner` has the lease of `key` from now on, for `seconds`.

        `False` if the lease is taken, even by `owner` itself.

        Args:
            key: what is to be fetched.
            owner: a name that no other process has.
            seconds: > 0; by the clock of the server that keeps the leases.
        """
        ...

    async def release(self, key: str, owner: str) -> None:
        """End the lease of `key`, if `owner` still has it."""
        ...
