"""A checker's entries: in its memory, or serialized in a store.

If the store fails, the checker continues without it. This is the only module in the
checker that uses the codec.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

import anyio
from cachetools import Cache, LRUCache

from robotsgate._flights import FairLoop, in_thread
from robotsgate.caching._codec import CodecError, LaterVersionError, decode, encode
from robotsgate.caching._entry import keep_until, key_of, usable
from robotsgate.caching._live import MAX_BYTES_AT_ONCE
from robotsgate.caching._policy import terms_of
from robotsgate.checking._reporting import LOGGER
from robotsgate.errors import UnsupportedError
from robotsgate.stores._base import BatchStore, FetchLease

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from robotsgate._clock import Clock
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._policy import Policy
    from robotsgate.checking._reporting import Reporter
    from robotsgate.stores._base import Store

_Result = TypeVar("_Result")

# More operations would only queue inside the store, making it seem slow.
_MOST_AT_ONCE = 64

# If an operation takes more than this fraction of the timeout and fails, the store is
# not used for a while, because otherwise every lookup would wait for it.
_PATIENCE = 0.5
_REST_SECONDS = 30.0

# For entries in memory. An entry without its body takes up 1,000 bytes (measured on
# CPython 3.11).
_MOST_BYTES = 256 * 2**20
_BYTES_OF_AN_ENTRY = 1_000


class Entries:
    """The entries under one policy's terms.

    Without a store, they are kept in memory as they are, and the least recently used
    ones are evicted.

    No method raises an exception if the store fails; an `UnsupportedError` of the store
    is a mistake of the caller, and is raised. If store operations can be
    cancelled, only `purge` may take longer than `Policy.store_timeout`.
    """

    def __init__(
        self, store: Store | None, reporter: Reporter, *, policy: Policy, clock: Clock
    ) -> None:
        self._store = store
        self._in_memory: LRUCache[str, Entry] = LRUCache(_MOST_BYTES, getsizeof=_weight)
        self._reporter = reporter
        self._policy = policy
        self._clock = clock
        self._terms = terms_of(policy)
        self._one_at_a_time = anyio.CapacityLimiter(1)
        self._places = anyio.Semaphore(_MOST_AT_ONCE, fast_acquire=True)
        self._failures: Counter[str] = Counter()  # in a row, by operation
        self._rests_until = -math.inf  # monotonic
        self._has_told_version = False
        given: object = store  # it may have the methods of other protocols
        self._lease = given if isinstance(given, FetchLease) else None
        self.has_lease: bool = self._lease is not None
        # Enough for a fetch and the store operations around it.
        self.lease_seconds: float = policy.fetch_deadline + 3 * policy.store_timeout
        self._batches = given if isinstance(given, BatchStore) else None
        self._owner = os.urandom(16).hex()

    async def get(self, origin: str, now: float) -> Entry | None:
        """The usable entry for `origin`; `None` if there is none or the store fails."""
        store = self._store
        if store is None:
            return usable(self._in_memory.get(origin), now=now, policy=self._policy)
        data = await self._call_store("get", origin, store.get)
        read = partial(self._entry, origin, data, now)
        try:
            if isinstance(data, bytes) and len(data) > MAX_BYTES_AT_ONCE:
                return await in_thread(read, limiter=self._one_at_a_time)
            return read()
        except LaterVersionError as error:
            if not self._has_told_version:
                self._has_told_version = True
                LOGGER.warning("%s; such entries are fetched again", error)
        except CodecError as error:
            self._reporter.report_store_failure("get", origin, error=error)
        return None

    async def get_many(self, origins: Iterable[str], now: float) -> list[Entry]:
        """Like `get`, but with a single lookup for many origins.

        Returns no entries if the store does not support such lookups. Large and
        unreadable entries are omitted; `get` reports unreadable entries.
        """
        batches = self._batches
        keys = {key_of(origin, self._terms): origin for origin in origins}
        if batches is None or not keys:
            return []
        values = await self._call_store("get", "", lambda _: batches.get_many([*keys]))
        loop = FairLoop(self._clock.monotonic)
        entries = []
        for key, data in (values or {}).items():
            if len(data) <= MAX_BYTES_AT_ONCE:
                with suppress(CodecError):
                    entries.append(self._entry(keys[key], data, now))
                await loop.after_item()
        return [entry for entry in entries if entry is not None]

    async def update(
        self, origin: str, now: float, change: Callable[[Entry | None], Entry]
    ) -> Entry:
        """Replace the stored entry for `origin` with the result of `change`.

        `change` is a pure function, called with the entry if it is usable at `now`,
        otherwise with `None`, and perhaps several times. Its last result is returned,
        even if the store failed.
        """
        store = self._store
        if store is None:
            known = usable(self._in_memory.get(origin), now=now, policy=self._policy)
            entry = change(known)
            self._in_memory.pop(origin, None)
            with suppress(ValueError):  # it is too large
                self._in_memory[origin] = entry
            return entry
        made: list[Entry] = []

        def change_bytes(data: bytes | None) -> tuple[bytes, float | None] | None:
            stored, is_of_later_version = None, False
            try:
                stored = self._entry(origin, data, now)
            except CodecError as error:  # `get` reports it; this may run in any thread
                is_of_later_version = isinstance(error, LaterVersionError)
            entry = change(stored)
            made.append(entry)
            if entry == stored or is_of_later_version:
                return None
            until = keep_until(entry, self._policy)
            return encode(entry), None if math.isinf(until) else until

        await self._call_store(
            "update", origin, lambda key: store.update(key, change_bytes)
        )
        return made[-1] if made else change(None)

    async def delete(self, origin: str) -> None:
        """Delete the entry for `origin`; has no effect if the store fails."""
        self._in_memory.pop(origin, None)
        if self._store is not None:
            await self._call_store("delete", origin, self._store.delete)

    async def purge(self) -> int | None:
        """Delete expired entries and return how many were deleted; `None` on failure.

        There is no timeout, because no lookup waits for a purge.
        """
        now = self._clock.now()
        if self._store is None:
            return await self._purge_memory(now)
        try:
            return await self._store.purge(now)
        except Exception as error:  # noqa: BLE001 (a store may be third-party code)
            self._reporter.report_store_failure("purge", "", error=error)
            return None

    async def acquire(self, origin: str) -> bool:
        """Try to become the only process that fetches `origin`; call `release` later.

        Requires `has_lease`. Also returns `True` if the store fails.
        """
        lease = cast("FetchLease", self._lease)
        owner, seconds = self._owner, self.lease_seconds
        try:
            is_ours = await self._call_store(
                "acquire", origin, lambda key: lease.acquire(key, owner, seconds)
            )
        except BaseException:  # cancelled when we may already have the lease
            await self.release(origin)
            raise
        return is_ours is not False

    async def release(self, origin: str) -> None:
        """Release the lease for `origin`, even if this task is cancelled."""
        lease = cast("FetchLease", self._lease)
        with anyio.CancelScope(shield=True):
            await self._call_store(
                "release", origin, lambda key: lease.release(key, self._owner)
            )

    def clear(self) -> None:
        self._in_memory.clear()

    async def _purge_memory(self, now: float) -> int:
        loop = FairLoop(self._clock.monotonic)
        deleted = 0
        for origin in list(self._in_memory):
            await loop.after_item()
            with suppress(KeyError):  # it may be gone already
                # A lookup through the base class does not count as a use of the entry.
                entry = Cache.__getitem__(self._in_memory, origin)
                if keep_until(entry, self._policy) <= now:
                    del self._in_memory[origin]
                    deleted += 1
        return deleted

    def _entry(self, origin: str, data: bytes | None, now: float) -> Entry | None:
        """The usable entry in `data`, if any; raises a `CodecError` if unreadable."""
        if data is None:
            return None
        given: object = data
        if not isinstance(given, bytes):
            raise CodecError(f"expected bytes, got {type(given).__name__}")
        entry = decode(
            data,
            origin=origin,
            terms=self._terms,
            max_bytes=self._policy.max_body_bytes + 1,
        )
        return usable(entry, now=now, policy=self._policy)

    async def _call_store(
        self, operation: str, origin: str, work: Callable[[str], Awaitable[_Result]]
    ) -> _Result | None:
        """Call `work` with the key of `origin` and return its result.

        `None` if the store fails, hangs, or hung recently.
        """
        key = key_of(origin, self._terms)
        began_at: float | None = None
        try:
            with anyio.move_on_after(self._policy.store_timeout):
                async with self._places:
                    if self._clock.monotonic() >= self._rests_until:
                        began_at = anyio.current_time()
                        result = await work(key)
                        if self._failures.pop(operation, 0):
                            LOGGER.info("store works again: %s", operation)
                        return result
            error: Exception = TimeoutError(
                f"no response within {self._policy.store_timeout:g} s"
            )
        except UnsupportedError:
            raise
        except Exception as raised:  # noqa: BLE001 (a store may be third-party code)
            error = raised
        if began_at is None:  # it hung recently, or other operations took too long
            self._reporter.counts["store_skips"] += 1
            return None
        self._failures[operation] += 1
        is_first = self._failures[operation] == 1
        self._reporter.report_store_failure(
            operation, origin, error=error, is_first=is_first
        )
        seconds = anyio.current_time() - began_at
        if seconds > _PATIENCE * self._policy.store_timeout:
            self._rests_until = self._clock.monotonic() + _REST_SECONDS
        return None


def _weight(entry: Entry) -> int:
    """The approximate size of `entry` in memory, in bytes."""
    return _BYTES_OF_AN_ENTRY + len(entry.packed or b"")
