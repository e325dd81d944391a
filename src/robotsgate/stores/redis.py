"""A store in Redis or Valkey, shared by a fleet; needs the `redis` extra, and asyncio.

A cancelled command leaves a reply on its connection. redis-py therefore closes the
connection whenever a command does not finish, and opens it again for the next one, so a
call may be cancelled at any await.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import random
import re
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

import anyio

from robotsgate._clock import SystemClock
from robotsgate._flights import Flights, finish
from robotsgate._public import set_module
from robotsgate.errors import StoreError, UnsupportedError, needs_extra
from robotsgate.stores._base import HOST_PREFIX

with needs_extra("redis"):
    from redis.asyncio import Redis, RedisCluster
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import NoScriptError, RedisError, ResponseError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from robotsgate.stores._base import Change, TimedChange

    Client = Redis | RedisCluster

    # Returns the bytes under a key, and when the server read them, if known.
    _Read = Callable[[Client, str], Awaitable[tuple[bytes | None, float]]]

_Result = TypeVar("_Result")

# Calls that take longer fail. The checker does not wait that long.
CALL_SECONDS = 10.0

# The most connections. The Python code is the limit: 32 are as fast as 64.
_MOST_AT_ONCE = 32

# After a lost race, an update waits for a random part of this time, which doubles with
# each lost race.
_FIRST_PAUSE_SECONDS = 0.002
_LONGEST_PAUSE_SECONDS = 0.128

# All of a script's keys are in one slot, as a cluster requires.
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
# The value, and the server's time: seconds and microseconds. Some hosting providers
# refuse TIME, so that these two are missing.
_READ_WITH_TIME = """
local kept = redis.pcall('GET', KEYS[1])
if type(kept) == 'table' then kept = '' end
local now = redis.pcall('TIME')
return {kept, now[1], now[2]}
"""

# The year 9999: the server refuses dates that its own clock cannot represent.
_LAST_MS = 253_402_300_799_000

# How many keys the server scans before serving other clients.
_KEYS_OF_A_SLICE = 1_000


@dataclass(slots=True)
class _Lease:
    """A lease held by this store.

    `kept` is the value that `get` has read since the lease was acquired, for the next
    write; empty if it has read none. `is_over` is set once a write has ended the lease.
    """

    owner: str
    kept: list[bytes | None] = field(default_factory=list)
    is_over: bool = False


@set_module("robotsgate")
class RedisStore:
    """A `TimedStore` and `FetchLease` for a fleet of processes, on asyncio only.

    Works with Redis 6 or later and with Valkey, standalone, with Sentinel or as a
    cluster. An `update` is only as durable as the server's persistence. The server
    deletes expired keys itself, using its own clock.

    The store connects when it is first used, and keeps its connections open until it is
    closed, by `aclose` or at the end of `async with`.

    A call raises `StoreError` if the server does not respond, and `UnsupportedError` on
    trio.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        client: Client | Callable[[], Client] | None = None,
        prefix: str = "robotsgate:",
        required: bool = False,
    ) -> None:
        """Create the store without connecting.

        Args:
            url: "redis://user:password@host:6379/0" (0 is the database number),
                "rediss://…" for TLS, or "unix:///path", with redis-py's options in the
                query, such as "?ssl_ca_certs=/etc/ca.pem".
            client: instead of `url`, a `redis.asyncio` client of your own, which the
                store does not close, or a function that creates one for the store. The
                client must not decode responses. If it retries, an update whose
                response was lost may be applied twice.
            prefix: the prefix of each key.
            required: whether `async with` reads from the server first, and raises if it
                cannot be reached, for example because its name is misspelled.

        Raises:
            StoreError: neither or both of `url` and `client` were given, or the value
                is not one of the kinds above.
        """
        if (url is None) == (client is None):
            raise StoreError("expected either the URL of a Redis server or a client")
        self._is_own = client is None or callable(client)
        self._make = _maker(url) if client is None else _maker_of(client)
        self._client: Client | None = None
        self._prefix = prefix
        self._is_required = required
        self._lease_prefix = f"{prefix}lease:"
        self._leases: dict[str, _Lease] = {}
        self._places = anyio.Semaphore(_MOST_AT_ONCE, fast_acquire=True)
        self._calls: set[anyio.CancelScope] = set()
        self._acquisitions: Flights[bool | StoreError] = Flights("Redis store")

    def __repr__(self) -> str:
        """The store, without its URL, which may contain a password."""
        return f"<robotsgate.RedisStore prefix={self._prefix!r}>"

    async def __aenter__(self) -> Self:
        """Return the store; unless it is `required`, the server need not be up yet.

        Raises:
            UnsupportedError: this is not asyncio.
            StoreError: the store is closed, or belongs to another event loop; or it is
                `required`, and the server does not respond.
        """
        self._check_usable()
        if self._is_required:
            try:
                await self.get("")
            except BaseException:
                await self.aclose()
                raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Call `aclose`."""
        await self.aclose()

    async def get(self, key: str) -> bytes | None:
        """See `Store.get`. A value of another type, such as a list, counts as empty."""
        kept, _ = await self._result_of(
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
                writers kept getting in first until the time was up: ten seconds, or
                less if the caller has a shorter timeout.
            Exception: raised by `change`.
        """
        await self._update(key, lambda kept, _: change(kept), read=_value)

    async def update_timed(self, key: str, change: TimedChange) -> None:
        """See `TimedStore.update_timed`. The time comes from the server's clock.

        If the server refuses the TIME command, it comes from this process's clock.

        Raises:
            StoreError: as for `update`.
            Exception: raised by `change`.
        """
        await self._update(key, change, read=_value_with_time)

    async def delete(self, key: str) -> None:
        """See `Store.delete`."""
        await self._result_of(lambda client: client.delete(self._prefix + key))

    async def purge(self, now: float) -> int:  # noqa: ARG002 (the server has a clock)
        """See `Store.purge`. Always returns 0."""
        return 0

    async def keys(self) -> AsyncIterator[str]:
        """See `ListableStore.keys`. Reads all keys before yielding the first one."""
        for key in await self._result_of(self._all_keys):
            yield key

    async def count(self) -> int:
        """See `ListableStore.count`. As slow as `keys`."""
        return len(await self._result_of(self._all_keys))

    async def acquire(self, key: str, owner: str, seconds: float) -> bool:
        """See `FetchLease.acquire`.

        If the caller gives up in the meantime, the lease is released.
        """
        self._check_usable()
        is_wanted = True

        async def acquire() -> bool | StoreError:
            try:
                is_ours = await self._result_of(
                    lambda client: client.set(
                        self._lease_key(client, key),
                        owner,
                        nx=True,
                        px=math.ceil(seconds * 1_000),
                    )
                )
                if is_ours and not is_wanted:
                    await self.release(key, owner)
            except StoreError as error:  # the caller may have given up
                return error
            return bool(is_ours)

        try:
            outcome = await self._acquisitions.begin(acquire, acquire).result()
        except RuntimeError as error:
            raise StoreError(str(error)) from error
        finally:
            is_wanted = False
        if isinstance(outcome, StoreError):
            raise outcome
        if outcome:
            self._leases[key] = _Lease(owner)
        return outcome

    async def release(self, key: str, owner: str) -> None:
        """See `FetchLease.release`."""
        lease = self._leases.get(key)
        if lease is not None and lease.owner == owner:
            del self._leases[key]
            if lease.is_over:
                return
        await self._result_of(
            lambda client: _run(
                client, _DELETE_IF_EQUAL, [self._lease_key(client, key)], [owner]
            )
        )

    async def aclose(self) -> None:
        """See `Store.aclose`. Calls that are under way raise `StoreError`."""
        await finish(self._close)

    async def _close(self) -> None:
        with anyio.move_on_after(CALL_SECONDS):
            await self._acquisitions.aclose()
            for scope in self._calls:
                scope.cancel()
            client, self._client = self._client, None
            if client is None:
                return
            for _ in range(_MOST_AT_ONCE):  # until no call is under way
                await self._places.acquire()
            if self._is_own:
                await client.aclose()

    def _check_usable(self) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError as error:
            raise UnsupportedError(
                "RedisStore runs on asyncio only; on trio, use SQLiteStore or a URL"
                " such as 'sqlite:///robots.db'"
            ) from error
        try:
            self._acquisitions.check_open()
            self._acquisitions.check_loop()
        except RuntimeError as error:
            raise StoreError(str(error)) from error

    async def _result_of(self, work: Callable[[Client], Awaitable[_Result]]) -> _Result:
        """Call `work` with the client, and return its result.

        Any error of the client, which may be the caller's, becomes a StoreError.
        """
        self._check_usable()
        with anyio.move_on_after(CALL_SECONDS) as scope:
            self._calls.add(scope)
            try:
                async with self._places:
                    client = self._client = self._client or self._make()
                    # redis-py 8.1 cuts the connections of commands that run while
                    # another one initializes its cluster client.
                    await client.initialize()
                    return await work(client)
            except Exception as error:  # a closed connection is an AttributeError
                # The `repr` of redis-py's errors may lack the text.
                text = f"Redis failed: {type(error).__name__}: {error}"
                raise StoreError(text) from error
            finally:
                self._calls.discard(scope)
        self._check_usable()  # `aclose` cancels calls
        raise StoreError(f"Redis failed: no response within {CALL_SECONDS:g} s")

    async def _all_keys(self, client: Client) -> set[str]:
        # A set, because SCAN may return a key twice.
        keys: set[str] = set()
        pattern = re.sub(r"([*?\[\]\\])", r"\\\1", self._prefix) + "*"
        async for octets in client.scan_iter(match=pattern, count=_KEYS_OF_A_SLICE):
            key = octets.decode()
            if not key.startswith((self._lease_prefix, self._prefix + HOST_PREFIX)):
                keys.add(key.removeprefix(self._prefix))
        return keys

    async def _update(self, key: str, change: TimedChange, *, read: _Read) -> None:
        error = await self._result_of(
            lambda client: self._apply(client, key, change, read=read)
        )
        if error is not None:
            raise error

    async def _apply(
        self, client: Client, key: str, change: TimedChange, *, read: _Read
    ) -> Exception | None:
        """Apply `change` to `key`; return the error that `change` raises, if any.

        If the error were raised here, it would look like a server failure.
        """
        lease = self._lease_to_end(client, key)
        longest_pause = _FIRST_PAUSE_SECONDS
        while True:
            if lease is not None and lease.kept:
                kept, now = lease.kept.pop(), 0.0
            else:
                kept, now = await read(client, self._prefix + key)
            try:
                new = change(kept, now)
            except Exception as error:  # noqa: BLE001 (raised to the caller)
                return error
            if new is None:
                return None
            if await self._write(client, key, before=kept, new=new, lease=lease):
                return None
            pause = random.uniform(0.0, longest_pause)  # noqa: S311 (not a secret)
            if anyio.current_time() + pause > anyio.current_effective_deadline():
                return StoreError(
                    f"other writers changed {self._prefix + key} first, until the"
                    " time was over"
                )
            await SystemClock().wait(pause)
            longest_pause = min(2 * longest_pause, _LONGEST_PAUSE_SECONDS)

    async def _write(
        self,
        client: Client,
        key: str,
        *,
        before: bytes | None,
        new: tuple[bytes, float | None],
        lease: _Lease | None,
    ) -> bool:
        """Write `new` if the value is still `before`; also end `lease` in that case."""
        keys, owners = [self._prefix + key], list[str]()
        if lease is not None:
            keys.append(self._lease_key(client, key))
            owners.append(lease.owner)
        value, keep_until = new
        arguments = [_sha1(before), value, _expiry_ms(keep_until), *owners]
        is_written = bool(await _run(client, _WRITE_IF_UNCHANGED, keys, arguments))
        if is_written and lease is not None:
            lease.is_over = True
        return is_written

    def _lease_to_end(self, client: Client, key: str) -> _Lease | None:
        """The lease for `key` that the next write can end in the same step."""
        lease = self._leases.get(key)
        if (
            lease is None
            or lease.is_over
            or not _has_one_slot(client, self._prefix + key)
        ):
            return None
        return lease

    def _lease_key(self, client: Client, key: str) -> str:
        """The key of the lease for `key`; in a cluster, both keys share a slot."""
        data_key = self._prefix + key
        is_cluster = isinstance(client, RedisCluster)
        if is_cluster and _has_one_slot(client, data_key):  # pragma: no cover (slow)
            return f"{self._lease_prefix}{{{data_key}}}"
        return self._lease_prefix + key


def _maker(url: object) -> Callable[[], Client]:
    """Return a function that creates clients for `url`.

    The message of an error does not contain the URL, which may include a password.
    """
    if not isinstance(url, str) or not _is_url(url):
        raise StoreError("expected a redis://host, rediss://host or unix://path URL")
    # A retry could apply an update twice. `CALL_SECONDS` limits each call, and a limit
    # for each command would cost a task.
    make = partial(
        Redis.from_url,
        url,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=None,
        socket_connect_timeout=None,
    )
    try:
        client = make()
        pool: Any = client.connection_pool
        pool.make_connection()  # checks the options
    except (ValueError, TypeError, RedisError, OSError) as error:
        kind = type(error).__name__
        raise StoreError(
            f"expected a usable redis://host or unix://path URL ({kind})"
        ) from None  # the text of `error` may show a password
    _usable(client)
    return make


def _maker_of(client: object) -> Callable[[], Client]:
    """Return a function that returns `client`, or what it creates, if it is usable."""
    if callable(client):
        return lambda: _usable(client())
    usable_client = _usable(client)
    return lambda: usable_client


def _usable(client: object) -> Client:
    if not isinstance(client, Redis | RedisCluster):
        raise StoreError(f"expected a client of redis.asyncio, got a {type(client)}")
    if client.get_encoder().decode_responses:
        raise StoreError("expected a client that does not decode responses")
    return client


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if parts.scheme == "unix":
        return bool(parts.path)
    # If the path were not a number, the client would use database 0.
    is_database = parts.path in {"", "/"} or parts.path[1:].isdecimal()
    return parts.scheme in {"redis", "rediss"} and bool(parts.hostname) and is_database


async def _run(
    client: Client, script: str, keys: list[str], arguments: list[Any]
) -> Any:  # noqa: ANN401 (the reply of a script)
    """Run `script`, which the server usually knows already."""
    words = [len(keys), *keys, *arguments]
    try:
        return await client.evalsha(_sha1(script.encode()), *words)
    except NoScriptError:
        return await client.eval(script, *words)


async def _value(client: Client, data_key: str) -> tuple[bytes | None, float]:
    """The bytes under `data_key`, and no time.

    They are empty for a value of another type, such as a list. No entry is empty, so
    the checker replaces such a value like a damaged entry.
    """
    kept: Any  # `bytes`, because the client does not decode responses
    try:
        kept = await client.get(data_key)
    except ResponseError as error:
        if not str(error).startswith("WRONGTYPE"):
            raise
        kept = b""
    return kept, 0.0


async def _value_with_time(client: Client, data_key: str) -> tuple[bytes | None, float]:
    """Like `_value`, with the time at which the server reads it, in epoch seconds."""
    own_time = SystemClock.now()
    kept, *time = await _run(client, _READ_WITH_TIME, [data_key], [])
    if not time:
        return kept, own_time
    seconds, microseconds = map(int, time)
    return kept, seconds + microseconds / 1e6


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
