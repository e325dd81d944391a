"""Stands before a store: what fails there is reported and done without."""

from __future__ import annotations

import math
import secrets
import zlib
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio

from robotsgate.caching._entry import Entry
from robotsgate.caching._outcome import FailureKind
from robotsgate.errors import StoreError
from robotsgate.robotstxt._access import AccessResult
from robotsgate.stores._base import FetchLease

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from robotsgate._reporter import Reporter
    from robotsgate.caching._policy import Policy
    from robotsgate.stores._base import Store

__all__ = ["GuardedStore"]

_Result = TypeVar("_Result")

# More would wait for each other inside the store, and be taken for its slowness.
_MOST_AT_ONCE = 64

# A store that hangs, or takes so long to fail, is left alone for a while, because
# waiting for it costs each question; one that fails again and again, only to spare
# the log and the processor.
_PATIENCE_SECONDS = 1.0
_PAUSE_SECONDS = 30.0
_REST_SECONDS = 1.0
_MOST_FAILURES = 10


class GuardedStore:
    """A store whose methods never raise because of the world.

    None takes longer than its time-out, unless the store does not let itself be
    cancelled.
    """

    def __init__(
        self,
        store: Store,
        reporter: Reporter,
        *,
        policy: Policy,
        now: Callable[[], float],
    ) -> None:
        """Stand before `store`.

        Args:
            store: what may fail.
            reporter: who is told.
            policy: the time-outs.
            now: tells the time, epoch seconds.
        """
        self._store = store
        self._reporter = reporter
        self._now = now
        self._timeout = policy.store_timeout
        self._places: anyio.Semaphore | None = None
        self._failures = 0
        self._paused_at = math.inf
        self._pause = 0.0
        self._lease = store if isinstance(store, FetchLease) else None
        # For a fetch, and for the store before and after it.
        self._lease_seconds = policy.fetch_deadline + 3 * policy.store_timeout
        self._owner = secrets.token_hex(16)

    @property
    def has_lease(self) -> bool:
        """Whether other processes may be fetching what is missing here."""
        return self._lease is not None

    async def get(self, origin: str) -> Entry | None:
        """The whole entry of `origin`; `None` where there is none, or none whole."""
        return await self._reported("get", origin, work=lambda: self._whole(origin))

    async def put(self, entry: Entry) -> None:
        """Keep `entry`, if the store can."""
        work = partial(self._store.put, entry)
        if self._lease is not None:
            work = partial(self._lease.put_leased, entry, self._owner)
        await self._reported("put", entry.origin, work=work)

    async def delete(self, origin: str) -> None:
        """Drop the entry of `origin`, if the store can."""
        await self._reported("delete", origin, work=lambda: self._store.delete(origin))

    async def acquire(self, origin: str) -> bool:
        """Whether `origin` may be fetched here and now.

        It may where nobody can tell, because the store has no leases or fails.
        """
        lease = self._lease
        if lease is None:
            return True
        work = partial(lease.acquire, origin, self._owner, self._lease_seconds)
        try:
            return await self._reported("acquire", origin, work=work) is not False
        except BaseException:  # cancelled when the lease may be ours already
            await self.release(origin)
            raise

    async def release(self, origin: str) -> None:
        """Let others fetch `origin`, whatever has happened here."""
        if self._lease is None:
            return
        work = partial(self._lease.release, origin, self._owner)
        with anyio.CancelScope(shield=True):
            await self._reported("release", origin, work=work)

    async def _whole(self, origin: str) -> Entry | None:
        """The entry of `origin`.

        Raises:
            StoreError: what the store gives is no whole entry of this origin.
        """
        entry: object = await self._store.get(origin)
        if entry is None:
            return None
        if not isinstance(entry, Entry) or not _is_of_types(entry, origin):
            kind = type(entry).__name__  # and not what is in it, which may be a body
            raise StoreError(f"expected a whole entry of {origin}, got one {kind}")
        if entry.copy is not None:
            try:
                _ = entry.copy.body
            except zlib.error as error:
                raise StoreError(f"the copy of {origin} is damaged: {error}") from error
        return entry

    async def _reported(
        self, operation: str, origin: str, *, work: Callable[[], Awaitable[_Result]]
    ) -> _Result | None:
        if self._places is None:  # made here, because it belongs to a running loop
            self._places = anyio.Semaphore(_MOST_AT_ONCE, fast_acquire=True)
        # Waiting for a place is no time that the store takes.
        async with self._places:
            if self._paused_at <= self._now() < self._paused_at + self._pause:
                self._reporter.store_skipped()
                return None
            began_at = anyio.current_time()
            try:
                with anyio.move_on_after(self._timeout):
                    result = await work()
                    self._works()
                    return result
            except Exception as error:  # noqa: BLE001 (a store may be anybody's code)
                pause = _REST_SECONDS if self._failures >= _MOST_FAILURES else 0.0
                if anyio.current_time() - began_at > _PATIENCE_SECONDS:
                    pause = _PAUSE_SECONDS
                self._fails(operation, origin, error, pause=pause)
            else:
                late = TimeoutError(f"no answer within {self._timeout:g} s")
                self._fails(operation, origin, late, pause=_PAUSE_SECONDS)
            return None

    def _works(self) -> None:
        if self._failures:
            self._failures = 0
            self._reporter.store_works()

    def _fails(
        self, operation: str, origin: str, error: Exception, *, pause: float
    ) -> None:
        self._failures += 1
        self._paused_at, self._pause = self._now(), pause
        self._reporter.store_failed(
            operation, origin, error=error, is_first=self._failures == 1
        )


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
    guard: object = entry.guard
    return (
        entry.origin == origin
        and all(isinstance(one, int | float) and math.isfinite(one) for one in times)
        and all(isinstance(one, int) for one in counts)
        and isinstance(access, AccessResult)
        and isinstance(failure, FailureKind | None)
        and isinstance(error, str | None)
        and isinstance(guard, str)
    )
