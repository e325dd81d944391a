"""Entries in Redis or Valkey, which a fleet shares; needs the extra `redis`."""

from __future__ import annotations

import math
import os
import ssl
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from coredis import Redis
from coredis.exceptions import RedisError
from coredis.tokens import PureToken

from robotsgate.errors import StoreError
from robotsgate.stores._entry_octets import EntryReader, octets_of
from robotsgate.stores._lasting_client import CALL_SECONDS, LastingClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from coredis import RedisCluster

    from robotsgate.caching._entry import Entry

    Client = Redis[bytes] | RedisCluster[bytes]

__all__ = ["RedisStore"]

# Before each entry, another one with each put: tells whether it is still the same.
_BYTES_OF_A_STAMP = 8

# An entry that nothing can use any more is put all the same, and goes at once.
_SHORTEST_LIFE_MS = 1_000
_LONGEST_LIFE_MS = 100 * 365 * 86_400 * 1_000

# Each touches one key, as a cluster demands, and no clock, which some hosts refuse.
# Put unless another than ARGV[1] has been put since; ARGV[3]: milliseconds.
_PUT_UNLESS_CHANGED = """
local stamp = redis.call('GETRANGE', KEYS[1], 0, 7)
if stamp ~= ARGV[1] and stamp ~= '' then return 0 end
if ARGV[3] == '' then redis.call('SET', KEYS[1], ARGV[2])
else redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3]) end
return 1
"""
# Delete if it is the owner's.
_RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""

_FAILURES = (RedisError, OSError, EOFError, TimeoutError)

_Result = TypeVar("_Result")


class RedisStore:
    """A store for a fleet, which is its `FetchLease` as well.

    Works with Redis 6 or later and with Valkey, alone or as a cluster. Entries
    leave the server by themselves when nothing can use them any more.

    Use it as an async context manager, around the checkers: it then keeps its
    connections. Used without, it works, and connects for each operation.
    """

    def __init__(
        self,
        url: str | Callable[[], Client],
        *,
        prefix: str = "robotsgate:",
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        """Prepare; nothing is opened.

        Args:
            url: "redis://user:password@host:6379/0" (0: the number of the
                database), or "rediss://…" for TLS, or "unix:///path", or a
                function that makes a `coredis` client, for a cluster for
                example; it must not decode responses.
            prefix: stands before each key.
            ssl_context: for "rediss://"; `None`: the system's authorities.

        Raises:
            StoreError: `url` is none.
        """
        self._make = url if callable(url) else _maker(url, ssl_context)
        self._prefix = prefix
        self._opened: LastingClient | None = None
        # What stood at an origin when somebody acquired its lease.
        self._stamps: dict[tuple[str, str], bytes] = {}
        self._reader = EntryReader("Redis")
        self._is_closed = False

    async def __aenter__(self) -> Self:
        """The store, which keeps its connections from now on.

        The server need not be there yet.
        """
        self._opened = await LastingClient(self._make).__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        self._is_closed = True
        assert self._opened is not None  # noqa: S101 (entered before)
        await self._opened.aclose()

    async def get(self, origin: str) -> Entry | None:
        """As `Store.get`.

        Raises:
            StoreError: the server does not answer, or the entry is damaged.
        """
        key = self._key(origin)
        octets = await self._result_of(lambda client: client.get(key))
        return self._reader.entry(octets and octets[_BYTES_OF_A_STAMP:], origin)

    async def put(self, entry: Entry) -> None:
        """As `Store.put`.

        Raises:
            StoreError: the server does not answer, or does not take it.
        """
        key, octets, life = self._key(entry.origin), _stamped(entry), _life_ms(entry)
        await self._result_of(lambda client: client.set(key, octets, px=life))

    async def put_leased(self, entry: Entry, owner: str) -> None:
        """As `FetchLease.put_leased`.

        Raises:
            StoreError: the server does not answer, or does not take it.
        """
        stamp = self._stamps.get((entry.origin, owner))
        if stamp is None:
            await self.put(entry)
            return
        key, life = self._key(entry.origin), _life_ms(entry)
        arguments = [stamp, _stamped(entry), "" if life is None else life]
        await self._result_of(
            lambda client: client.eval(_PUT_UNLESS_CHANGED, [key], arguments)
        )

    async def delete(self, origin: str) -> None:
        """As `Store.delete`.

        Raises:
            StoreError: the server does not answer.
        """
        key = self._key(origin)
        await self._result_of(lambda client: client.delete([key]))

    async def purge(self, now: float) -> int:  # noqa: ARG002 (the server knows)
        """Nothing: the server drops entries by itself."""
        return 0

    async def acquire(self, origin: str, owner: str, seconds: float) -> bool:
        """As `FetchLease.acquire`.

        Raises:
            StoreError: the server does not answer.
        """
        key, lease_key = self._key(origin), self._lease_key(origin)
        self._stamps.pop((origin, owner), None)  # of one that was not released
        is_wanted = True

        async def acquire(client: Client) -> bytes | None:
            """The stamp of the entry there is, if the lease is ours."""
            is_ours = await client.set(
                lease_key,
                owner,
                condition=PureToken.NX,
                px=math.ceil(seconds * 1_000),
            )
            if not is_ours:
                return None
            stamp: bytes = await client.getrange(key, 0, _BYTES_OF_A_STAMP - 1)
            if not is_wanted:
                await client.eval(_RELEASE, [lease_key], [owner])
            return stamp

        try:
            stamp = await self._result_of(acquire)
        finally:
            is_wanted = False
        if stamp is None:
            return False
        self._stamps[origin, owner] = stamp
        return True

    async def release(self, origin: str, owner: str) -> None:
        """As `FetchLease.release`.

        Raises:
            StoreError: the server does not answer.
        """
        self._stamps.pop((origin, owner), None)
        key = self._lease_key(origin)
        await self._result_of(lambda client: client.eval(_RELEASE, [key], [owner]))

    async def aclose(self) -> None:
        """As `Store.aclose`; connections are closed where the context ends."""
        self._is_closed = True

    async def _result_of(self, work: Callable[[Client], Awaitable[_Result]]) -> _Result:
        """What `work` gives with a client that is connected.

        Raises:
            StoreError: whatever has gone wrong.
        """
        if self._is_closed:
            raise StoreError("the Redis store is closed")
        try:
            if self._opened is not None:
                return await self._opened.result_of(work)
            async with self._make() as client:
                return await work(client)
        except _FAILURES as error:
            raise StoreError(f"Redis failed: {error!r}") from error
        except ExceptionGroup as group:  # of the tasks that a connection consists of
            raise StoreError(f"Redis failed: {group.exceptions[0]!r}") from group

    def _key(self, origin: str) -> str:
        return f"{self._prefix}{origin}"

    def _lease_key(self, origin: str) -> str:
        return f"{self._prefix}lease:{origin}"


def _maker(url: object, ssl_context: ssl.SSLContext | None) -> Callable[[], Client]:
    """What makes clients for `url`.

    Raises:
        StoreError: `url` is none of Redis; what is in it is not shown.
    """
    if not isinstance(url, str) or not _is_url(url):
        raise StoreError("expected a URL redis://host, rediss://host or unix://path")
    options: dict[str, Any] = {
        "decode_components": True,
        "verify_version": False,
        "connect_timeout": CALL_SECONDS,
        "stream_timeout": CALL_SECONDS,
    }
    if url.startswith("rediss:"):
        # Its own would take the certificate of any name.
        options["ssl_context"] = ssl_context or ssl.create_default_context()
    try:
        Redis.from_url(url, **options)
    except (ValueError, RuntimeError, OSError) as error:
        kind = type(error).__name__
        message = f"expected a usable URL redis://host or unix://path ({kind})"
        raise StoreError(message) from None  # whose text may show a password
    return lambda: Redis.from_url(url, **options)


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.scheme == "unix":
        return bool(parts.path)
    # The client would take the database 0 where the path is no number.
    is_database = parts.path in {"", "/"} or parts.path[1:].isdecimal()
    return parts.scheme in {"redis", "rediss"} and bool(parts.hostname) and is_database


def _stamped(entry: Entry) -> bytes:
    """What stands in the server for `entry`.

    Raises:
        StoreError: a number of it is out of range.
    """
    return os.urandom(_BYTES_OF_A_STAMP) + octets_of(entry)


def _life_ms(entry: Entry) -> int | None:
    """How long the server keeps `entry`, milliseconds; `None`: for good.

    From the entry's own times: whose clock they are does not matter then.
    """
    if math.isinf(entry.retain_until):
        return None
    life = math.ceil((entry.retain_until - entry.checked_at) * 1_000)
    return min(max(life, _SHORTEST_LIFE_MS), _LONGEST_LIFE_MS)
