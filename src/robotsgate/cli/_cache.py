"""`robotsgate cache`: lists and deletes the entries in a store."""

from __future__ import annotations

from collections import Counter
from contextlib import aclosing
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from robotsgate import Origin, SystemClock, open_store
from robotsgate.caching import entry_as_dict, file_in_entry
from robotsgate.cli._shell import (
    from_variable,
    json_option,
    tell_json,
    tell_raw,
    tell_table,
    with_dates,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator

    from robotsgate.stores import ListableStore

_DATES = ("checked_at", "next_fetch_at")

_UNREADABLE = "unreadable"


def _existing(_context: object, _option: object, store_url: str) -> str:
    """Return `store_url`; reject a missing file, because opening it would create it."""
    _, is_sqlite, path = store_url.partition("sqlite:///")
    if is_sqlite and not Path(path).exists():
        raise click.BadParameter(f"there is no store at {path!r}")
    return store_url


def _on_store(command: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Add --store and --json to `command`, and call it with the open store."""

    async def run_on_store(store_url: str, options: dict[str, Any]) -> None:
        async with aclosing(open_store(store_url)) as store:
            await command(store, **options)

    @click.option(
        "--store",
        "store_url",
        required=True,
        callback=_existing,
        metavar="URL",
        **from_variable("STORE"),
        help="The store: sqlite:///FILE, redis://HOST.",
    )
    @json_option
    @wraps(command)
    def run(*, store_url: str, **options: Any) -> None:  # noqa: ANN401 (the command's options)
        anyio.run(run_on_store, store_url, options)

    return run


@click.group()
def cache() -> None:
    """List and delete the entries in a store.

    \b
    Examples:
      robotsgate cache ls --store sqlite:///robots.db
      robotsgate cache forget --store redis://localhost https://example.com/
    """  # noqa: D301 (\b stops click from rewrapping)


@cache.command()
@_on_store
async def ls(store: ListableStore, *, as_json: bool) -> None:
    """List the entries: their origin, access result, last and next fetch."""
    rows = []
    async for key, record in _records(store):
        if as_json:
            parts = {"answer", "outage"}
            tell_json({name: record[name] for name in record if name not in parts})
        dates = (with_dates(record[name], name) or "" for name in _DATES)
        rows.append((key, record["access"] or _UNREADABLE, *dates))
    if not as_json:
        tell_table(("origin", "access", "last fetch", "next fetch"), sorted(rows))


@cache.command()
@_on_store
@click.option("--raw", "is_raw", is_flag=True, help="Print the cached file instead.")
@click.argument("url")
async def show(store: ListableStore, *, as_json: bool, is_raw: bool, url: str) -> None:
    """Show the entries for URL's origin; there is one for each kind of policy.

    With --raw, print the first file in them.
    """
    if is_raw and as_json:
        raise click.UsageError("expected --raw or --json, got both")
    origin = str(Origin.from_url(url))
    keys = await _keys_of(store, {origin})
    entries = [(key, await store.get(key) or b"") for key in keys]
    if not entries:
        raise click.ClickException(f"the store has no entry for {origin}")
    if is_raw:
        files = [one for entry in entries if (one := file_in_entry(*entry)) is not None]
        if not files:
            access = entry_as_dict(*entries[0])["access"] or _UNREADABLE
            message = f"the entry for {origin} has no file ({access})"
            raise click.ClickException(message)
        tell_raw(files[0])
        return
    for entry in entries:
        _tell(entry_as_dict(*entry), as_json=as_json)


@cache.command()
@_on_store
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
async def forget(store: ListableStore, *, as_json: bool, urls: tuple[str, ...]) -> None:
    """Delete the entries for each URL's origin."""
    origins = {str(Origin.from_url(url)) for url in urls}
    keys = await _keys_of(store, origins)
    for key in keys:
        await store.delete(key)
    _tell({"deleted": len(keys)}, as_json=as_json)


@cache.command()
@_on_store
async def purge(store: ListableStore, *, as_json: bool) -> None:
    """Delete the entries that are no longer usable."""
    _tell({"deleted": await store.purge(SystemClock().now())}, as_json=as_json)


@cache.command()
@_on_store
async def stats(store: ListableStore, *, as_json: bool) -> None:
    """Count the entries by access result."""
    counts: Counter[str] = Counter()
    async for _, record in _records(store):
        counts[record["access"] or _UNREADABLE] += 1
    _tell({"entries": counts.total(), **dict(sorted(counts.items()))}, as_json=as_json)


async def _keys_of(store: ListableStore, origins: set[str]) -> list[str]:
    keys = [key async for key in store.keys() if key.partition(" ")[0] in origins]  # noqa: SIM118 (not a dict)
    return sorted(keys)


async def _records(store: ListableStore) -> AsyncIterator[tuple[str, dict[str, Any]]]:
    """Each key with its entry, read one at a time."""
    async for key in store.keys():
        data = await store.get(key) or b""  # `None` if it was deleted in the meantime
        yield key, entry_as_dict(key, data)


def _tell(record: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        tell_json(record)
    else:
        tell_table(("what", "value"), list(_rows(with_dates(record))))


def _rows(record: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in record.items():
        if isinstance(value, dict):
            yield from _rows(value, f"{name} ")
        elif value not in (None, "", []):
            yield prefix + name.replace("_", " "), str(value)
