"""The store protocols, and the check that an argument is a store.

The protocols are all you need to write a store for another backend.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from os import PathLike
from typing import Protocol, runtime_checkable

from robotsgate._public import set_module
from robotsgate.errors import StoreError

Change = Callable[[bytes | None], tuple[bytes, float | None] | None]
"""A function that computes a key's new bytes from its current bytes, if any.

It returns the new bytes and the time at which they expire, in epoch seconds (`None` if
never), or just `None` to leave the key unchanged. It must be pure: a store may call it
more than once, and from another thread.
"""

TimedChange = Callable[[bytes | None, float], tuple[bytes, float | None] | None]
"""Like `Change`, but also gets the time of the read, in epoch seconds."""

HOST_PREFIX = "turn:"
"""The prefix of the keys under which a `SharedLedger` keeps the hosts' records.

`keys` and `count` leave these keys out, and a file that is full does not evict them.
"""


@set_module("robotsgate")
@runtime_checkable
class Store(Protocol):
    """Stores bytes under keys, without interpreting them or reading a clock.

    Several tasks may call a method concurrently, and a call may be cancelled at any
    await. If a store fails, it raises `StoreError`; the checker then works without the
    store. A store may lose any key's bytes at any time, but must never return wrong
    bytes. Each store documents how durable an `update` is once it has returned: memory
    is lost with the process, but a file survives even if the process is killed.
    """

    async def get(self, key: str) -> bytes | None:
        """Return the bytes stored under `key`, or `None` if there are none."""
        ...

    async def update(self, key: str, change: Change) -> None:
        """Atomically replace the bytes under `key` with the result of `change`.

        No other write can happen between the read and the write, so no update is lost.
        If `change` raises, nothing is written, and the exception propagates.

        Raises:
            StoreError: the store failed, or there were too many concurrent writers.
        """
        ...

    async def delete(self, key: str) -> None:
        """Delete the bytes under `key`, if there are any."""
        ...

    async def purge(self, now: float) -> int:
        """Delete all keys that have expired by `now`, and return how many there were.

        Returns 0 if the store deletes expired keys by itself.
        """
        ...

    async def aclose(self) -> None:
        """Release all resources. Any task may call this, even more than once."""
        ...


def check_store(store: object, *, is_required: bool = False) -> None:
    """Check that `store` is a store, a URL, a path or, unless required, `None`."""
    if isinstance(store, str | PathLike) or (store is None and not is_required):
        return
    if isinstance(store, type) or not isinstance(store, Store):
        raise StoreError(
            "expected a store with the methods of Store, a URL, or the path of a file,"
            f" got {store!r}"
        )


@set_module("robotsgate.stores")
@runtime_checkable
class ListableStore(Store, Protocol):
    """A store that can list its keys, except those that begin with `HOST_PREFIX`."""

    def keys(self) -> AsyncIterator[str]:
        """Iterate over all keys, once each, in any order.

        Keys written during the iteration may be missing.
        """
        ...

    async def count(self) -> int:
        """Return the number of keys."""
        ...


@runtime_checkable
class BatchStore(Protocol):
    """A store that can look up several keys efficiently in one call."""

    async def get_many(self, keys: Sequence[str]) -> Mapping[str, bytes]:
        """Like `Store.get`, but for several keys; omits keys without bytes."""
        ...


@set_module("robotsgate.stores")
@runtime_checkable
class TimedStore(Protocol):
    """A store with a clock that all its users share, such as a server's."""

    async def update_timed(self, key: str, change: TimedChange) -> None:
        """Like `Store.update`, but `change` also gets the store's time of the read.

        The time is in epoch seconds, and never later than the write.
        """
        ...


@set_module("robotsgate.stores")
@runtime_checkable
class FetchLease(Protocol):
    """Lets only one process at a time fetch an origin.

    If a shared store has these methods, the checker acquires a lease before each fetch.
    If another process holds the lease, the checker polls the store for the result. From
    time to time it also tries to acquire the lease, which expires if the other process
    dies. Each method is atomic and may be cancelled at any await.
    """

    async def acquire(self, key: str, owner: str, seconds: float) -> bool:
        """Try to acquire the lease for `key`, and return whether it succeeded.

        Returns `False` if the lease is already held, even by `owner` itself.

        Args:
            key: identifies what will be fetched.
            owner: a name that is unique across all processes.
            seconds: how long the lease lasts, > 0, by the server's clock.
        """
        ...

    async def release(self, key: str, owner: str) -> None:
        """Release the lease for `key` if `owner` still holds it."""
        ...
