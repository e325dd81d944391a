"""Stands before a store: what fails there is reported and done without."""

from __future__ import annotations

import math
import zlib
from typing import TYPE_CHECKING, TypeVar

import anyio

from robotsgate.caching._entry import Entry
from robotsgate.caching._outcome import FailureKind
from robotsgate.errors import StoreError
from robotsgate.robotstxt._access import AccessResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from robotsgate._reporter import Reporter
    from robotsgate.stores._base import Store

__all__ = ["GuardedStore"]

_Result = TypeVar("_Result")


class GuardedStore:
    """A store whose methods never raise because of the world, and never hang."""

    def __init__(self, store: Store, reporter: Reporter, *, timeout: float) -> None:
        """Stand before `store`.

        Args:
            store: what may fail.
            reporter: who is told.
            timeout: seconds that each operation may take, > 0.
        """
        self._store = store
        self._reporter = reporter
        self._timeout = timeout

    async def get(self, origin: str) -> Entry | None:
        """The whole entry of `origin`; `None` where there is none, or none whole."""
        return await self._reported("get", origin, work=lambda: self._whole(origin))

    async def put(self, entry: Entry) -> None:
        """Keep `entry`, if the store can."""
        await self._reported("put", entry.origin, work=lambda: self._store.put(entry))

    async def delete(self, origin: str) -> None:
        """Drop the entry of `origin`, if the store can."""
        await self._reported("delete", origin, work=lambda: self._store.delete(origin))

    async def _whole(self, origin: str) -> Entry | None:
        """The entry of `origin`.

        Raises:
            StoreError: what the store gives is no whole entry of this origin.
        """
        entry: object = await self._store.get(origin)
        if entry is None:
            return None
        if not isinstance(entry, Entry) or not _is_of_types(entry, origin):
            raise StoreError(f"expected an entry of {origin}, got {entry!r}")
        if entry.copy is not None:
            try:
                _ = entry.copy.body
            except zlib.error as error:
                raise StoreError(f"the copy of {origin} is damaged: {error}") from error
        return entry

    async def _reported(
        self, operation: str, origin: str, *, work: Callable[[], Awaitable[_Result]]
    ) -> _Result | None:
        try:
            with anyio.fail_after(self._timeout):
                return await work()
        except Exception as error:  # noqa: BLE001 (a store may be anybody's code)
            self._reporter.store_failed(operation, origin, error=error)
            return None


def _is_of_types(entry: Entry, origin: str) -> bool:
    """Whether `entry` is of `origin`, and its fields are what they should be."""
    copy = entry.copy
    times: list[object] = [
        entry.checked_at,
        entry.next_fetch_at,
        # Infinite where a copy is kept for as long as it takes.
        0 if entry.retain_until == math.inf else entry.retain_until,
        0 if entry.unreachable_since is None else entry.unreachable_since,
        *(() if copy is None else (copy.fetched_at, copy.fresh_until)),
    ]
    counts: list[object] = [
        entry.redirects,
        entry.failures,
        0 if entry.status is None else entry.status,
    ]
    access: object = entry.access
    failure: object = entry.failure
    error: object = entry.error
    return (
        entry.origin == origin
        and all(isinstance(one, int | float) and math.isfinite(one) for one in times)
        and all(isinstance(one, int) for one in counts)
        and isinstance(access, AccessResult)
        and isinstance(failure, FailureKind | None)
        and isinstance(error, str | None)
    )
