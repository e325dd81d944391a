"""Makes the store that a URL names: what people put into a settings file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from robotsgate.errors import StoreError
from robotsgate.stores.memory import MemoryStore

if TYPE_CHECKING:
    from robotsgate.stores._base import Store

_EXPECTED = (
    "expected memory:, sqlite:///file, sqlite:////folder/file, redis://host,"
    " rediss://host or unix://socket"
)


def store_of_url(url: str) -> Store:
    """The store that `url` names.

    A file of "sqlite:///" is found from the working directory; one with a fourth
    slash, from the root.

    Raises:
        StoreError: there is no such kind of store, its extra is not installed, or
            it cannot be opened; a password in `url` is not shown.
    """
    scheme, colon, rest = url.partition(":")
    if scheme == "memory" and colon and not rest.strip("/"):
        return MemoryStore()
    if scheme == "sqlite":
        return _sqlite_store(rest)
    if scheme in {"redis", "rediss", "unix"} and rest.startswith("//"):
        return _redis_store(url)
    raise StoreError(_EXPECTED)  # and not what came, which may hold a password


def _sqlite_store(rest: str) -> Store:
    slashes, path = rest[:3], rest[3:]
    if slashes != "///" or not path or path.startswith(":"):
        raise StoreError(f"{_EXPECTED}, got {'sqlite:' + rest!r}")
    # Imported here: most programs need one kind of store, or none.
    from robotsgate.stores.sqlite import SQLiteStore  # noqa: PLC0415

    return SQLiteStore(path)


def _redis_store(url: str) -> Store:
    try:
        from robotsgate.stores.redis import RedisStore  # noqa: PLC0415
    except ImportError as error:
        message = "expected the extra redis for such a store: robotsgate[redis]"
        raise StoreError(message) from error
    return RedisStore(url)
