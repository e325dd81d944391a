"""Creates stores from URLs, for configuration files and command lines."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from robotsgate._public import set_module
from robotsgate.errors import StoreError
from robotsgate.stores.memory import MemoryStore

if TYPE_CHECKING:
    from robotsgate.stores._base import ListableStore

_EXPECTED = (
    "expected memory:, sqlite:///file, sqlite:////folder/file, redis://host,"
    " rediss://host or unix:///socket"
)


@set_module("robotsgate")
def open_store(url: str | PathLike[str], *, required: bool = False) -> ListableStore:
    """Open the store at `url`; the caller must close it.

    The path after "sqlite:///" is relative to the working directory unless it starts
    with a fourth slash. A Redis store does not connect until the first operation.

    Args:
        url: "memory:", "sqlite:///file", "redis://user:password@host:6379/0",
            "rediss://…" for TLS, or "unix:///socket"; or the path of an SQLite file,
            as a `Path`.
        required: as for `RedisStore`; other stores are always opened immediately.

    Raises:
        TypeError: `url` is neither a str nor a `Path`.
        StoreError: there is no such kind of store, its extra is not installed, or the
            store cannot be opened. The message does not reveal any password in `url`.
    """
    if isinstance(url, PathLike):
        return _sqlite_store(url)
    given: object = url  # callers without a type checker
    if not isinstance(given, str):
        raise TypeError(f"expected the URL or path of a store, got {url!r}")
    scheme, colon, rest = url.partition(":")
    if scheme == "memory" and colon and not rest.strip("/"):
        return MemoryStore()
    if scheme == "sqlite" and rest.startswith("///") and rest[3:4] not in {"", ":"}:
        return _sqlite_store(rest[3:])
    if scheme in {"redis", "rediss", "unix"} and rest.startswith("//"):
        return _redis_store(url, required=required)
    # There may be a password before "@", after a second ":", or in a query.
    may_be_secret = "@" in url or (scheme != "sqlite" and ("?" in url or ":" in rest))
    shown = "" if may_be_secret else f", got {url!r}"
    if shown and not colon and {".", "/"}.intersection(url):
        shown += _file_hint(url)
    path = rest.removeprefix("//")
    if scheme == "sqlite" and path.strip("/") and ":" not in path:
        shown += _file_hint(path)
    raise StoreError(f"{_EXPECTED}{shown}")


def _file_hint(path: str) -> str:
    return f"; for that file, use {f'sqlite:///{path}'!r}"


def _sqlite_store(path: str | PathLike[str]) -> ListableStore:
    from robotsgate.stores.sqlite import SQLiteStore  # noqa: PLC0415

    return SQLiteStore(path)


def _redis_store(url: str, *, required: bool) -> ListableStore:
    try:
        from robotsgate.stores.redis import RedisStore  # noqa: PLC0415
    except ImportError as error:
        raise StoreError(str(error)) from error
    return RedisStore(url, required=required)
