"""Calls Redis, Valkey or a cluster; every failure becomes a `StoreError`."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from coredis import Redis
from coredis.exceptions import RedisError

from robotsgate.errors import StoreError
from robotsgate.stores._lasting_client import CALL_SECONDS, LastingClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from robotsgate.stores._lasting_client import Client

_FAILURES = (RedisError, OSError, EOFError, TimeoutError)

_Result = TypeVar("_Result")


class RedisServer:
    """A Redis server or cluster, which may be down.

    After `open`, connections are kept open, and a call runs to completion even if its
    caller gives up. Before that, each call opens its own connection.
    """

    def __init__(
        self, url: str | Callable[[], Client], ssl_context: ssl.SSLContext | None
    ) -> None:
        """Create the object without connecting.

        Args:
            url: as for `RedisStore`.
            ssl_context: for "rediss://"; `None` for the system's certificates.

        Raises:
            StoreError: `url` is not valid; the message does not contain the URL.
        """
        self._make = url if callable(url) else _maker(url, ssl_context)
        self._lasting_client: LastingClient | None = None
        self._is_closed = False

    @property
    def is_open(self) -> bool:
        """Whether `open` was called."""
        return self._lasting_client is not None

    def open(self) -> None:
        """Keep connections open from now on."""
        self._lasting_client = LastingClient(self._make)

    async def aclose(self) -> None:
        """Refuse new calls, cancel pending ones, and close the connections."""
        self._is_closed = True
        if self._lasting_client is not None:
            await self._lasting_client.aclose()

    async def result_of(self, work: Callable[[Client], Awaitable[_Result]]) -> _Result:
        """Call `work` with a connected client, and return its result.

        Raises:
            StoreError: the call failed for any reason.
        """
        if self._is_closed:
            raise StoreError("the connection to Redis is closed")
        try:
            if self._lasting_client is not None:
                return await self._lasting_client.result_of(work)
            async with self._make() as client:
                return await work(client)
        except _FAILURES as error:
            raise StoreError(f"Redis failed: {error!r}") from error
        except ExceptionGroup as group:  # a connection consists of several tasks
            raise StoreError(f"Redis failed: {group.exceptions[0]!r}") from group


def _maker(url: object, ssl_context: ssl.SSLContext | None) -> Callable[[], Client]:
    """Return a function that creates clients for `url`.

    Raises:
        StoreError: `url` is not a Redis URL; the message does not contain the URL.
    """
    if not isinstance(url, str) or not _is_url(url):
        raise StoreError("expected a redis://host, rediss://host or unix://path URL")
    options: dict[str, Any] = {
        "decode_components": True,
        "verify_version": False,
        "connect_timeout": CALL_SECONDS,
        "stream_timeout": CALL_SECONDS,
    }
    if url.startswith("rediss:"):
        # coredis's default context would accept a certificate for any name.
        options["ssl_context"] = ssl_context or ssl.create_default_context()
    try:
        Redis.from_url(url, **options)
    except (ValueError, RuntimeError, OSError) as error:
        kind = type(error).__name__
        raise StoreError(
            f"expected a usable redis://host or unix://path URL ({kind})"
        ) from None  # the text of `error` may show a password
    return lambda: Redis.from_url(url, **options)


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
