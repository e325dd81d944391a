"""Compares the stores: latency, throughput, size, cold start and purge.

    python -m benchmarks.stores --page docs/contributing/how-stores-compare.md

Needs the extras `redis` and `test`, whose Valkey server it starts on this machine.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import tracemalloc
from contextlib import nullcontext
from functools import partial
from itertools import cycle
from pathlib import Path
from random import Random
from statistics import mean, median, quantiles
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import anyio

from benchmarks.corpus import SEED, robots_files
from benchmarks.entries import LIFETIME, PLENTY, Sites, entries_of, origin
from benchmarks.page import Cell, Table, about, publish
from benchmarks.timing import best_of_turns, seconds_of_each, without_collector
from benchmarks.workload import AGENT
from robotsgate import MemoryStore, RedisStore, RobotsChecker, SQLiteStore
from tests.servers.valkey import running_valkey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from robotsgate import Store
    from tests.servers.valkey import Valkey

    Opener = Callable[[], AbstractAsyncContextManager[Store]]

Figures = dict[str, float]
"""The figures of one store, in seconds, bytes and counts, by name."""

_MEMORY, _SQLITE = "MemoryStore", "SQLiteStore"
_ENTERED, _NOT_ENTERED = "RedisStore, entered", "RedisStore, not entered"

_FILES = 2_000
_ORIGINS = 100_000
_SECONDS = 1.0
_TURNS = 3
_TASKS = 100
_MAX_SAMPLES = 50_000
_STARTS = 25
_LOOKUPS = 1_000
_NOW = 1_800_000_000.0


class _Case(NamedTuple):
    """The contents and locations of the stores.

    `entries` are the stored bytes for `bodies`, which are repeated for `count` origins;
    each kind of call is timed for `seconds` in each turn.
    """

    bodies: Sequence[bytes]
    entries: Sequence[bytes]
    count: int
    seconds: float
    file: Path
    server: Valkey

    def openers(self) -> dict[str, Opener]:
        """Functions that open each store; the one in memory is always the same."""
        memory = MemoryStore(max_entries=self.count, max_bytes=PLENTY)
        url = self.server.url
        return {
            _MEMORY: lambda: nullcontext(memory),
            _SQLITE: lambda: SQLiteStore(self.file, max_bytes=PLENTY),
            _ENTERED: lambda: RedisStore(url),
            _NOT_ENTERED: lambda: nullcontext(RedisStore(url)),
        }

    async def put(self, store: Store, number: int) -> None:
        """Replace the entry of an origin with a new copy."""
        entry = bytes(bytearray(self.entries[number % len(self.entries)]))
        await store.update(origin(number), lambda _: (entry, _NOW + LIFETIME))

    async def get(self, store: Store, number: int) -> None:
        """Get the entry of an origin."""
        await store.get(origin(number))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = _parser().parse_args(arguments)
    bodies, kind = robots_files(min(_FILES, options.origins), options.corpus)
    entries = anyio.run(entries_of, bodies)
    run = about("robotsgate", "anyio", "trio", "coredis", "cachetools")
    run["SQLite"] = sqlite3.sqlite_version
    run |= {"origins": f"{options.origins:,}", "files": f"{kind}, repeated"}
    tables = []
    for loop in ("asyncio", "trio"):
        with tempfile.TemporaryDirectory() as folder, running_valkey() as server:
            version = _info(server, "server", "valkey_version")
            run["server"] = f"Valkey {version}, on the same machine, nothing saved"
            case = _Case(
                bodies,
                entries,
                options.origins,
                options.seconds,
                Path(folder, "robots.db"),
                server,
            )
            tables += anyio.run(_measure, case, loop, backend=loop)
    publish([*tables, _encoded_table(entries)], run, page=options.page)


# --- what is measured -----------------------------------------------------------


async def _measure(case: _Case, loop: str) -> list[Table]:
    openers = case.openers()
    sizes = {_MEMORY: await _bytes_in_memory(case)}
    await _put_all(case, openers[_MEMORY])
    await _put_all(case, openers[_SQLITE])
    sizes[_SQLITE] = case.file.stat().st_size
    before = int(_info(case.server, "memory", "used_memory"))
    await _put_all(case, openers[_ENTERED])
    sizes[_ENTERED] = int(_info(case.server, "memory", "used_memory")) - before
    sizes[_NOT_ENTERED] = sizes[_ENTERED]
    turns = {name: partial(_turn, case, opener) for name, opener in openers.items()}
    best = await best_of_turns(turns, repeats=_TURNS)
    names = ("get", "get 99th", "get at once", "put", "put 99th", "put at once")
    figures = {
        name: dict(zip(names, values, strict=True)) for name, values in best.items()
    }
    for each in figures.values():
        each["get rate"] = 1 / each["get at once"]
        each["put rate"] = 1 / each["put at once"]
    tables = [
        _table(f"latency on {loop}", figures, _LATENCY),
        _table(f"throughput on {loop}", figures, _THROUGHPUT),
    ]
    if loop == "asyncio":
        start = await _measure_start(case, openers)
        share = {name: {"bytes": size / case.count} for name, size in sizes.items()}
        tables += [_table("start", start, _START), _table("room", share, _SIZE)]
    return tables


async def _put_all(case: _Case, opener: Opener) -> None:
    remaining = iter(range(case.count))
    async with opener() as store, anyio.create_task_group() as tasks:

        async def put() -> None:
            for number in remaining:
                await case.put(store, number)

        for _ in range(_TASKS):
            tasks.start_soon(put)


async def _bytes_in_memory(case: _Case) -> int:
    tracemalloc.start()
    try:
        store = MemoryStore(max_entries=case.count, max_bytes=PLENTY)
        for number in range(case.count):
            await case.put(store, number)
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


async def _turn(case: _Case, opener: Opener) -> list[float]:
    """For `get` and `update`: median, 99th percentile, and time with many at once."""
    numbers = cycle(Random(SEED).sample(range(case.count), case.count))
    figures = []
    async with opener() as store:
        for call in (case.get, case.put):

            async def step(call: Callable[..., Awaitable[None]] = call) -> None:
                await call(store, next(numbers))

            await step()  # connects, if the store needs a connection
            each = await _seconds_one_by_one(step, case.seconds)
            figures += [median(each), quantiles(each, n=100)[98]]
            figures.append(await _seconds_at_once(step, case.seconds))
    return figures


async def _seconds_one_by_one(
    step: Callable[[], Awaitable[None]], seconds: float
) -> list[float]:
    each: list[float] = []
    with without_collector():
        now = perf_counter()
        end = now + seconds
        while len(each) < _MAX_SAMPLES and (now < end or len(each) < 2):
            began = perf_counter()
            await step()
            now = perf_counter()
            each.append(now - began)
    return each


async def _seconds_at_once(
    step: Callable[[], Awaitable[None]], seconds: float
) -> float:
    """Seconds per call while many tasks make calls."""
    done = 0

    async def work() -> None:
        nonlocal done
        while True:
            await step()
            done += 1
            if perf_counter() >= end:
                return

    with without_collector():
        began = perf_counter()
        end = began + seconds
        async with anyio.create_task_group() as tasks:
            for _ in range(_TASKS):
                tasks.start_soon(work)
        return (perf_counter() - began) / done


async def _measure_start(
    case: _Case, openers: Mapping[str, Opener]
) -> dict[str, Figures]:
    """Seconds to open a full store, look up URLs with a new checker, and purge."""
    # A checker uses an entry only for the origin it was created for.
    numbers = range(len(case.entries))
    sample = Random(SEED).sample(numbers, min(_LOOKUPS, len(numbers)))
    urls = [f"{origin(number)}/articles/compared?page=2" for number in sample]
    figures: dict[str, Figures] = {}
    for name, opener in openers.items():
        opened, first = [], []
        for url in urls[:_STARTS]:
            began = perf_counter()
            async with opener() as store:
                opened.append(perf_counter() - began)
                first.append(await _seconds_per_lookup(case, store, [url]))
        figures[name] = {"open": median(opened), "first": median(first)}

    async def known(opener: Opener) -> list[float]:
        async with opener() as store:
            return [await _seconds_per_lookup(case, store, urls)]

    turns = {name: partial(known, opener) for name, opener in openers.items()}
    for name, (seconds,) in (await best_of_turns(turns, repeats=_TURNS)).items():
        figures[name]["known"] = seconds
    del figures[_MEMORY]["open"]  # it was never closed
    for name in (_MEMORY, _SQLITE):
        async with openers[name]() as store:
            purge = store.purge(_NOW + 2 * LIFETIME)
            (figures[name]["purge"],) = await seconds_of_each([purge])
    return figures


async def _seconds_per_lookup(case: _Case, store: Store, urls: Sequence[str]) -> float:
    """The mean time of lookups by a new checker, for origins that are stored."""
    sites = Sites(case.bodies)
    async with RobotsChecker(user_agent=AGENT, client=sites, store=store) as checker:

        async def ask() -> None:
            for url in urls:
                await checker.can_fetch(AGENT, url)

        (seconds,) = await seconds_of_each([ask()])
    if sites.requests:
        raise RuntimeError("an origin was fetched instead of read from the store")
    return seconds / len(urls)


def _info(server: Valkey, section: str, name: str) -> str:
    """A value from the server's INFO."""
    lines = str(server.ask("INFO", section)).splitlines()
    (value,) = (line.split(":", 1)[1] for line in lines if line.startswith(f"{name}:"))
    return value


# --- what is shown --------------------------------------------------------------


_LATENCY = {
    "get, µs": ("get", 1e6),
    "get, 99th, µs": ("get 99th", 1e6),
    "get, ×": ("get", None),
    "update, µs": ("put", 1e6),
    "update, 99th, µs": ("put 99th", 1e6),
    "update, ×": ("put", None),
}
_THROUGHPUT = {
    "get, per second": ("get rate", 1.0),
    "get, ×": ("get at once", None),
    "update, per second": ("put rate", 1.0),
    "update, ×": ("put at once", None),
}
_START = {
    "open, ms": ("open", 1e3),
    "first lookup, µs": ("first", 1e6),
    "first lookup, ×": ("first", None),
    "known origin, µs": ("known", 1e6),
    "known origin, ×": ("known", None),
    "purge of everything, ms": ("purge", 1e3),
    "purge of everything, ×": ("purge", None),
}
_SIZE = {"bytes per origin": ("bytes", 1.0), "×": ("bytes", None)}


def _table(
    name: str,
    stores: Mapping[str, Figures],
    columns: Mapping[str, tuple[str, float | None]],
) -> Table:
    """A table with a row per store and a column per figure.

    A figure without a unit is shown as the ratio to the MemoryStore's.
    """

    def cell(figures: Figures, figure: str, unit: float | None) -> Cell:
        if figure not in figures:
            return None
        return figures[figure] * (unit or 1 / stores[_MEMORY][figure])

    return Table(
        name=name,
        columns=("store", *columns),
        rows=[
            (store, *(cell(figures, *column) for column in columns.values()))
            for store, figures in stores.items()
        ],
        notes=("×: how many times as slow or as large as MemoryStore.",),
    )


def _encoded_table(entries: Sequence[bytes]) -> Table:
    sizes = list(map(len, entries))
    percentile = quantiles(sizes, n=100)[98]
    return Table(
        name="encoded",
        columns=("median", "mean", "99th percentile"),
        rows=[[round(median(sizes)), round(mean(sizes)), round(percentile)]],
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.stores",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--origins", type=int, default=_ORIGINS, help="in each store")
    add(
        "--seconds",
        type=float,
        default=_SECONDS,
        help="for each kind of call in each turn",
    )
    add("--corpus", type=Path, metavar="DIR", help="a folder of real robots.txt files")
    add("--page", type=Path, metavar="FILE", help="write the tables to this page")
    return parser


if __name__ == "__main__":
    main()
