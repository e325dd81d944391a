"""A store in Redis or Valkey, shared by a fleet; needs the `redis` extra."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from coredis import RedisCluster
from coredis.exceptions import WrongTypeError
from coredis.tokens import PureToken

from robotsgate.errors import StoreError
from robotsgate.stores._redis_server import RedisServer

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable

    from robotsgate.stores._base import Change
    from robotsgate.stores._lasting_client import Client

# All of a script's keys are in one slot, as a cluster requires. No script reads the
# time, because some hosting providers do not allow it.
#
# Writes ARGV[2] if the value is still the one that was read. ARGV[1] is the SHA-1 of
# that value, because sending the value itself would double the traffic; if two values
# had the same SHA-1, only the update in between would be lost. ARGV[3] is the epoch
# millisecond at which the key expires, or "" for never. If there is a KEYS[2], the
# script also ends the lease under it, if ARGV[4] owns that lease. A value of another
# type counts as empty, as in `_value`.
_WRITE_IF_UNCHANGED = """
local kept = redis.pcall('GET', KEYS[1])
if type(kept) == 'table' then kept = '' end
if (kept and redis.sha1hex(kept) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
if ARGV[3] ~= '' then redis.call('PEXPIREAT', KEYS[1], ARGV[3]) end
if KEYS[2] and redis.call('GET', KEYS[2]) == ARGV[4] then
    redis.call('DEL', KEYS[2])
end
return 1
"""
_DELETE_IF_EQUAL = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
_ATTEMPTS_TO_WRITE = 10

# The year 9999: the server refuses dates that its own clock cannot represent.
_LAST_MS = 253_402_300_799_000

# How many keys the server scans before serving other clients.
_KEYS_OF_A_SLICE = 1_000


@dataclass(slots=True)
class _Lease:
    """A lease held by this store.

    Attributes:
        owner: the lease's owner.
        kept: the value that `get` has read since the lease was acquired, for the next
            write; empty if it has read none.
        is_over: whether a write has ended the lease.
    """

    owner: str
    kept: list[bytes | None] = field(default_factory=list)
    is_over: bool = False


class RedisStore:
    """A store and `FetchLease` for a fleet of processes.

    Works with Redis 6 or later and with Valkey, standalone or as a cluster. An `update`
    is only as durable as the server's persistence. The server deletes expired keys
    itself, using its own clock.

    Use it as an async context manager around the checkers, so that it keeps its
    connections open. Otherwise, it opens a connection for each operation.
    """

    def __init__(
        self,
        url: str | Callable[[], Client],
        *,
        prefix: str = "robotsgate:",
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """Create the store without connecting.

        Args:
            url: "redis://user:password@host:6379/0" (0 is the database number),
                "rediss://…" for TLS, or "unix:///path"; or a function that creates a
                `coredis` client, for example for a cluster. The client must not decode
                responses.
            prefix: the prefix of each key.
            ssl_context: for "rediss://"; `None` for the system's certificates.

        Raises:
            StoreError: `url` is none of these.
        """
        self._server = RedisServer(url, ssl_context)
        self._prefix = prefix
        self._lease_prefix = f"{prefix}lease:"
        self._leases: dict[str, _Lease] = {}

    async def __aenter__(self) -> Self:
        """Keep connections open from now on; the server need not be up yet."""
        self._server.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Call `aclose`."""
        await self.aclose()

    async def get(self, key: str) -> bytes | None:
        """See `Store.get`. A value of another type, such as a list, is read as empty.

        Raises:
            StoreError: the server does not respond.
        """
        kept = await self._server.result_of(
            lambda client: _value(client, self._prefix + key)
        )
        lease = self._leases.get(key)
        if lease is not None and not lease.is_over:
            lease.kept = [kept]
        return kept

    async def update(self, key: str, change: Change) -> None:
        """See `Store.update`. Calls `change` again if another writer got in first.

        If this store holds the lease for `key`, the update starts from the bytes that
        `get` has read and releases the lease in the same step, so a fetch takes only
        four round trips.

        Raises:
            StoreError: the server does not respond or refuses the bytes, or other
                writers got in first ten times in a row.
            Exception: raised by `change`.
        """
        error = await self._server.result_of(
            lambda client: self._apply(client, key, change)
        )
        if error is not None:
            raise error

    async def delete(self, key: str) -> None:
        """See `Store.delete`.

        Raises:
            StoreError: the server does not respond.
        """
        await self._server.result_of(lambda client: client.delete([self._prefix + key]))

    async def purge(self, now: float) -> int:  # noqa: ARG002 (the server has a clock)
        """See `Store.purge`. Always returns 0."""
        return 0

    async def keys(self) -> AsyncIterator[str]:
        """See `ListableStore.keys`. Reads all keys before yielding the first one.

        Raises:
            StoreError: the server does not respond, or has too many keys.
        """
        for key in await self._server.result_of(self._all_keys):
            yield key

    async def count(self) -> int:
        """See `ListableStore.count`. As slow as `keys`.

        Raises:
            StoreError: the server does not respond, or has too many keys.
        """
        return len(await self._server.result_of(self._all_keys))

    async def acquire(self, key: str, owner: str, seconds: float) -> bool:
        """See `FetchLease.acquire`.

        Raises:
            StoreError: the server does not respond.
        """
        life_ms = math.ceil(seconds * 1_000)
        is_wanted = True

        async def acquire(client: Client) -> bool:
            lease_key = self._lease_key(client, key)
            is_ours = await client.set(
                lease_key, owner, condition=PureToken.NX, px=life_ms
            )
            if is_ours and not is_wanted:  # the caller has given up in the meantime
                await client.eval(_DELETE_IF_EQUAL, [lease_key], [owner])
            return bool(is_ours)

        try:
            is_ours = await self._server.result_of(acquire)
        finally:
            is_wanted = False
        if is_ours:
            self._leases[key] = _Lease(owner)
        return is_ours

    async def release(self, key: str, owner: str) -> None:
        """See `FetchLease.release`.

        Raises:
            StoreError: the server does not respond.
        """
        lease = self._leases.get(key)
        if lease is not None and lease.owner == owner:
            del self._leases[key]
            if lease.is_over:
                return
        await self._server.result_of(
            lambda client: client.eval(
                _DELETE_IF_EQUAL, [self._lease_key(client, key)], [owner]
            )
        )

    async def aclose(self) -> None:
        """See `Store.aclose`."""
        await self._server.aclose()

    async def _all_keys(self, client: Client) -> set[str]:
        # A set, because SCAN may return a key twice.
        keys: set[str] = set()
        pattern = re.sub(r"([*?\[\]\\])", r"\\\1", self._prefix) + "*"
        async for octets in client.scan_iter(match=pattern, count=_KEYS_OF_A_SLICE):
            key = octets.decode()
            if not key.startswith(self._lease_prefix):
                keys.add(key.removeprefix(self._prefix))
        return keys

    async def _apply(
        self, client: Client, key: str, change: Change
    ) -> Exception | None:
        """Apply `change` to `key`; return the error that `change` raises, if any.

        If the error were raised here, it would look like a server failure.
        """
        data_key, lease_key = self._prefix + key, self._lease_key(client, key)
        keys, owners = [data_key], list[str]()
        lease = self._leases.get(key)
        if lease is None or lease.is_over:
            lease = _Lease("")
        elif _has_one_slot(client, data_key):  # pragma: no branch (clusters: slow)
            keys, owners = [data_key, lease_key], [lease.owner]
        for _ in range(_ATTEMPTS_TO_WRITE):
            kept = lease.kept.pop() if lease.kept else await _value(client, data_key)
            try:
                new = change(kept)
            except Exception as error:  # noqa: BLE001 (raised to the caller)
                return error
            if new is None:
                return None
            value, keep_until = new
            values = [_sha1(kept), value, _expiry_ms(keep_until), *owners]
            if await client.eval(_WRITE_IF_UNCHANGED, keys, values):
                lease.is_over = bool(owners)
                return None
        return StoreError(
            f"other writers changed {data_key} first,"
            f" {_ATTEMPTS_TO_WRITE} times in a row"
        )

    def _lease_key(self, client: Client, key: str) -> str:
        """The key of the lease for `key`; in a cluster, both keys share a slot."""
        data_key = self._prefix + key
        is_cluster = isinstance(client, RedisCluster)
        if is_cluster and _has_one_slot(client, data_key):  # pragma: no cover (slow)
            return f"{self._lease_prefix}{{{data_key}}}"
        return self._lease_prefix + key


async def _value(client: Client, data_key: str) -> bytes | None:
    """The bytes under `data_key`; empty for a value of another type, such as a list.

    No entry is empty, so the checker replaces such a value like a damaged entry.
    """
    try:
        return await client.get(data_key)
    except WrongTypeError:
        return b""


def _has_one_slot(client: Client, data_key: str) -> bool:
    """Whether `data_key`'s lease shares its slot; false if the key contains braces."""
    return not isinstance(client, RedisCluster) or {*data_key}.isdisjoint("{}")


def _sha1(value: bytes | None) -> str:
    """Like `redis.sha1hex`; "" for `None`."""
    if value is None:
        return ""
    return hashlib.sha1(value, usedforsecurity=False).hexdigest()


def _expiry_ms(keep_until: float | None) -> int | str:
    """The epoch millisecond at which the server should drop a key; "" for never."""
    if keep_until is None:
        return ""
    return math.ceil(min(max(keep_until * 1_000, 1), _LAST_MS))
