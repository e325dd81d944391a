"""Creates stores from URLs, for configuration files and command lines."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from robotsgate.errors import StoreError
from robotsgate.stores.memory import MemoryStore

if TYPE_CHECKING:
    from robotsgate.stores._base import ListableStore

_EXPECTED = (
    "expected memory:, sqlite:///file, sqlite:////folder/file, redis://host,"
    " rediss://host or unix:///socket"
)


def open_store(url: str) -> ListableStore:
    """Open the store at `url`; the caller must close it.

    The path after "sqlite:///" is relative to the working directory unless it starts
    with a fourth slash. A Redis store does not connect until the first operation.

    Args:
        url: "memory:", "sqlite:///file", "redis://user:password@host:6379/0",
            "rediss://…" for TLS, or "unix:///socket".

    Raises:
        TypeError: `url` is not a str.
        StoreError: there is no such kind of store, its extra is not installed, or the
            store cannot be opened. The message does not reveal any password in `url`.
    """
    given: object = url  # callers without a type checker
    if not isinstance(given, str):
        hint = file_hint(given)
        raise TypeError(f"expected the URL of a store to be a str, got {url!r}{hint}")
    scheme, colon, rest = url.partition(":")
    if scheme == "memory" and colon and not rest.strip("/"):
        return MemoryStore()
    if scheme == "sqlite" and rest.startswith("///") and rest[3:4] not in {"", ":"}:
        # Imported here, because most programs need only one kind of store, or none.
        from robotsgate.stores.sqlite import SQLiteStore  # noqa: PLC0415

        return SQLiteStore(rest[3:])
    if scheme in {"redis", "rediss", "unix"} and rest.startswith("//"):
        return _redis_store(url)
    # There may be a password before "@", after a second ":", or in a query.
    may_be_secret = "@" in url or (scheme != "sqlite" and ("?" in url or ":" in rest))
    shown = "" if may_be_secret else f", got {url!r}"
    if shown and not colon and {".", "/"}.intersection(url):
        shown += file_hint(url)
    path = rest.removeprefix("//")
    if scheme == "sqlite" and path.strip("/") and ":" not in path:
        shown += file_hint(path)
    raise StoreError(f"{_EXPECTED}{shown}")


def file_hint(path: object) -> str:
    """A hint to append to an error: the file's URL; "" if `path` is not a path."""
    if not isinstance(path, str | PathLike):
        return ""
    return f"; for that file, use {f'sqlite:///{path}'!r}"


def _redis_store(url: str) -> ListableStore:
    try:
        from robotsgate.stores.redis import RedisStore  # noqa: PLC0415
    except ImportError as error:
        raise StoreError(
            "a Redis store needs the redis extra: pip install 'robotsgate[redis]'"
        ) from error
    return RedisStore(url)
