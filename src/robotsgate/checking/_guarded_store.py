"""Stands before a store: what fails there is reported and done without."""

from __future__ import annotations

import math
import secrets
import zlib
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import anyio

from robotsgate.caching._access import AccessResult
from robotsgate.caching._entry import Entry
from robotsgate.caching._outcome import FailureKind
from robotsgate.errors import StoreError
from robotsgate.stores._base import FetchLease

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from robotsgate.caching._policy import Policy
    from robotsgate.checking._reporter import Reporter
    from robotsgate.stores._base import Store

_Result = TypeVar("_Result")

# More would wait for each other inside the store, and be taken for its slowness.
_MOST_AT_ONCE = 64

# A store that hangs, or takes so much of its time-out to fail, is left alone for a
# while, because waiting for it costs each question. What fails again and again at
# once rests, only to spare the log and the processor.
_PATIENCE = 0.5
_PAUSE_SECONDS = 30.0
_REST_SECONDS = 1.0
_MOST_IN_A_ROW = 10

# Of leases that could not be given back, so many are remembered; nobody dies of one
# that is not, for leases end.
_MOST_LEFTOVERS = 1_000


class Found(NamedTuple):
    """What a look into the store brought.

    Attributes:
        entry: what is there; `None` if nothing is, or nobody knows.
        is_certain: whether the store has answered.
    """

    entry: Entry | None
    is_certain: bool


_UNKNOWN = Found(entry=None, is_certain=False)


class _Pause(NamedTuple):
    """A time without questions, also by a clock that is set back."""

    began_at: float = math.inf
    seconds: float = 0.0

    def lasts(self, now: float) -> bool:
        return self.began_at <= now < self.began_at + self.seconds


class GuardedStore:
    """A store whose methods never raise because of the world.

    None takes longer than its time-out, unless the store does not let itself be
    cancelled.

    Attributes:
        lease_seconds: how long a lease lasts: for a fetch, and for the store before
            and after it.
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
        self._failures: Counter[str] = Counter()  # in a row, by operation
        self._pause = _Pause()
        self._rests: dict[str, _Pause] = {}  # by operation
        self._leftovers: dict[str, None] = {}
        self._lease = store if isinstance(store, FetchLease) else None
        self.lease_seconds = policy.fetch_deadline + 3 * policy.store_timeout
        self._owner = secrets.token_hex(16)

    @property
    def has_lease(self) -> bool:
        """Whether other processes may be fetching what is missing here."""
        return self._lease is not None

    async def get(self, origin: str) -> Found:
        """What the store knows of `origin`, if that is whole."""
        found = await self._reported("get", origin, work=lambda: self._whole(origin))
        return found or _UNKNOWN

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
        """Whether `origin` may be fetched here and now; only of a store with leases.

        It may where nobody can tell, because the store fails.
        """
        lease = cast("FetchLease", self._lease)
        await self._release_leftovers(lease, origin)
        work = partial(lease.acquire, origin, self._owner, self.lease_seconds)
        try:
            return await self._reported("acquire", origin, work=work) is not False
        except BaseException:  # cancelled when the lease may be ours already
            await self.release(origin)
            raise

    async def release(self, origin: str) -> None:
        """Let others fetch `origin`, whatever has happened here, after `acquire`."""
        with anyio.CancelScope(shield=True):
            await self._release(cast("FetchLease", self._lease), origin)

    async def _release(self, lease: FetchLease, origin: str) -> None:
        async def work() -> bool:
            await lease.release(origin, self._owner)
            return True

        if await self._reported("release", origin, work=work):
            self._leftovers.pop(origin, None)
        elif len(self._leftovers) < _MOST_LEFTOVERS:
            self._leftovers[origin] = None

    async def _release_leftovers(self, lease: FetchLease, origin: str) -> None:
        """Give back what could not be given back: the lease of `origin`, or another."""
        if not self._leftovers or self._is_left_alone("release"):
            return
        leftover = origin if origin in self._leftovers else next(iter(self._leftovers))
        del self._leftovers[leftover]
        await self._release(lease, leftover)

    async def _whole(self, origin: str) -> Found:
        """What there is of `origin`.

        Raises:
            StoreError: what the store gives is no whole entry of this origin.
        """
        entry: object = await self._store.get(origin)
        if entry is None:
            return Found(entry=None, is_certain=True)
        if not isinstance(entry, Entry) or not _is_of_types(entry, origin):
            kind = type(entry).__name__  # and not what is in it, which may be a body
            raise StoreError(f"expected a whole entry of {origin}, got one {kind}")
        if entry.copy is not None:
            try:
                _ = entry.copy.body
            except zlib.error as error:
                raise StoreError(f"the copy of {origin} is damaged: {error}") from error
        return Found(entry=entry, is_certain=True)

    async def _reported(
        self, operation: str, origin: str, *, work: Callable[[], Awaitable[_Result]]
    ) -> _Result | None:
        if self._places is None:  # made here, because it belongs to a running loop
            self._places = anyio.Semaphore(_MOST_AT_ONCE, fast_acquire=True)
        # Waiting for a place is no time that the store takes.
        async with self._places:
            if self._is_left_alone(operation):
                self._reporter.store_skipped()
                return None
            began_at = anyio.current_time()
            try:
                with anyio.move_on_after(self._timeout):
                    result = await work()
                    self._works(operation)
                    return result
            except Exception as error:  # noqa: BLE001 (a store may be anybody's code)
                self._fails(operation, origin, error)
                if anyio.current_time() - began_at > _PATIENCE * self._timeout:
                    self._leave_alone()
            else:
                late = TimeoutError(f"no answer within {self._timeout:g} s")
                self._fails(operation, origin, late)
                self._leave_alone()
            return None

    def _is_left_alone(self, operation: str) -> bool:
        now = self._now()
        rest = self._rests.get(operation)
        return self._pause.lasts(now) or (rest is not None and rest.lasts(now))

    def _leave_alone(self) -> None:
        self._pause = _Pause(self._now(), _PAUSE_SECONDS)

    def _works(self, operation: str) -> None:
        if self._failures.pop(operation, 0):
            self._rests.pop(operation, None)
            self._reporter.store_works(operation)

    def _fails(self, operation: str, origin: str, error: Exception) -> None:
        self._failures[operation] += 1
        failures = self._failures[operation]
        if failures >= _MOST_IN_A_ROW:
            self._rests[operation] = _Pause(self._now(), _REST_SECONDS)
        self._reporter.store_failed(
            operation, origin, error=error, is_first=failures == 1
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
    terms: object = entry.terms
    return (
        entry.origin == origin
        and all(isinstance(one, int | float) and math.isfinite(one) for one in times)
        and all(isinstance(one, int) for one in counts)
        and isinstance(access, AccessResult)
        and isinstance(failure, FailureKind | None)
        and isinstance(error, str | None)
        and isinstance(terms, str)
        and isinstance(entry.is_first_sight, bool)
    )
