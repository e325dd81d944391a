"""What each store costs: latency, throughput, room, a cold start and a sweep.

    python -m benchmarks.stores --page docs/explanation/how-stores-compare.md

Needs the extras `redis` and `test`, whose Valkey server it starts on this machine.
Needs no peers and draws no charts.
"""

from __future__ import annotations

import argparse
import sqlite3
import tempfile
import tracemalloc
from contextlib import nullcontext
from dataclasses import dataclass, replace
from importlib import metadata
from itertools import cycle
from math import ceil
from pathlib import Path
from random import Random
from statistics import mean, median
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

import anyio

from benchmarks.corpus import SEED, made_up_corpus, real_corpus
from benchmarks.page import rewritten
from benchmarks.report import Cell, Table, plain_text
from benchmarks.run import Run
from benchmarks.surroundings import surroundings
from benchmarks.timing import least, take_turns, without_collector
from benchmarks.workload import AGENT
from robotsgate import MemoryStore, Policy, RobotsChecker, SQLiteStore
from robotsgate.caching._codec import encoded
from robotsgate.caching._outcome import Answered
from robotsgate.caching._plan import entry_after
from robotsgate.stores.redis import RedisStore
from robotsgate.testing import FakeSite, ManualClock
from tests.servers.valkey import running_valkey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from robotsgate import Entry, Store
    from tests.servers.valkey import Valkey

    Opener = Callable[[], AbstractAsyncContextManager[Store]]

__all__ = ["STORES", "Figures", "main", "tables"]

Figures = dict[str, float]
"""What was measured of one store: seconds, bytes and numbers, by name."""

_MEMORY, _SQLITE = "MemoryStore", "SQLiteStore"
_ENTERED, _NOT_ENTERED = "RedisStore, entered", "RedisStore, not entered"

STORES = (_MEMORY, _SQLITE, _ENTERED, _NOT_ENTERED)
"""What is measured, by the names in the tables."""

_LOOPS = ("asyncio", "trio")

_FILES = 2_000
_ORIGINS = 100_000
_SECONDS = 1.0
_TURNS = 3
_TASKS = 100
_MOST_SAMPLES = 50_000
_STARTS = 25
_KNOWN = 1_000
_PLENTY = 2**50  # bytes: what is measured here is not bounded by them
_PATH = "/articles/stores-compared?page=2"

_POLICY = Policy()
_FAR_FUTURE = 2.0**40

_TIMES = "×: how many times what a MemoryStore takes."

_Argument = TypeVar("_Argument")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """What the stores are given, and where they keep it.

    Attributes:
        entries: one for each origin.
        seconds: how long each kind of call is timed in each turn.
        file: of the SQLiteStore.
        server: of the RedisStores.
        has_start: whether cold starts and sweeps are measured as well.
    """

    entries: Sequence[Entry]
    seconds: float
    file: Path
    server: Valkey
    has_start: bool

    def openers(self) -> dict[str, Opener]:
        """For each of `STORES` what opens it; the one in memory stays the same."""
        memory = MemoryStore(max_entries=len(self.entries), max_bytes=_PLENTY)
        url = self.server.url
        return {
            _MEMORY: lambda: nullcontext(memory),
            _SQLITE: lambda: SQLiteStore(self.file, max_bytes=_PLENTY),
            _ENTERED: lambda: RedisStore(url),
            _NOT_ENTERED: lambda: nullcontext(RedisStore(url)),
        }

    def urls(self) -> list[str]:
        """One of each of some origins, in no order."""
        count = len(self.entries)
        chosen = Random(SEED).sample(range(count), min(_KNOWN, count))
        return [_origin(number) + _PATH for number in chosen]


def main(words: Sequence[str] | None = None) -> None:
    """Do as the command line says."""
    given = _arguments().parse_args(words)
    corpora = {"made up": made_up_corpus(min(_FILES, given.origins))}
    if given.corpus is not None:
        corpora["real files"] = real_corpus(given.corpus, _FILES)
    templates = {kind: _templates(bodies) for kind, bodies in corpora.items()}
    about = _surroundings(given.origins, len(corpora["made up"]))
    print("\n".join(f"{what}: {which}" for what, which in about.items()))
    entries = [
        replace(template, origin=_origin(number))
        for number, template in zip(
            range(given.origins), cycle(templates["made up"]), strict=False
        )
    ]
    found = {loop: _found(entries, loop=loop, seconds=given.seconds) for loop in _LOOPS}
    sizes = {
        kind: [len(encoded(entry)) for entry in those]
        for kind, those in templates.items()
    }
    run = Run(surroundings=about, tables=tables(found, sizes), bars=())
    for table in run.tables:
        print("\n" + plain_text(table))
    if given.json is not None:
        given.json.write_text(run.as_json(), encoding="utf-8")
    if given.page is not None:
        page = given.page.read_text(encoding="utf-8")
        given.page.write_text(rewritten(page, run.parts()), encoding="utf-8")


def _surroundings(origins: int, files: int) -> dict[str, str]:
    with running_valkey() as server:
        valkey = _told(server, "server", "valkey_version")
    packages = ("robotsgate", "anyio", "trio", "coredis", "cachetools")
    return surroundings() | {
        "packages": ", ".join(f"{name} {metadata.version(name)}" for name in packages),
        "SQLite": sqlite3.sqlite_version,
        "server": f"Valkey {valkey}, on the same machine, nothing saved to disk",
        "origins": f"{origins:,}, with {files:,} files that are made up, repeated",
    }


def _templates(bodies: Sequence[bytes]) -> list[Entry]:
    """An entry as a fetch makes it, for each body."""
    return [
        entry_after(
            None,
            Answered(status=200, body=body[: _POLICY.max_body_bytes]),
            origin=_origin(0),
            now=ManualClock().now(),
            policy=_POLICY,
        )
        for body in bodies
    ]


def _origin(number: int) -> str:
    return f"https://www.site{number}.example"


# --- what is measured -----------------------------------------------------------


def _found(
    entries: Sequence[Entry], *, loop: str, seconds: float
) -> dict[str, Figures]:
    """For each store its figures, on the event loop `loop`."""
    with (
        tempfile.TemporaryDirectory() as folder,
        running_valkey() as server,
    ):
        case = _Case(
            entries=entries,
            seconds=seconds,
            file=Path(folder, "robots.db"),
            server=server,
            has_start=loop == _LOOPS[0],
        )
        return anyio.run(_measured, case, backend=loop)


async def _measured(case: _Case) -> dict[str, Figures]:
    openers = case.openers()
    found = await _filled(case, openers)
    for name, figures in (await _turns(case, openers)).items():
        found[name] |= figures
    if not case.has_start:
        return found
    for name, opener in openers.items():
        found[name] |= await _started(case, opener)
    for name, seconds in (await _known(case, openers)).items():
        found[name]["known"] = seconds
    del found[_MEMORY]["open"]  # it was never closed
    for name in (_MEMORY, _SQLITE):
        found[name]["purge"] = await _swept(case, openers[name])
    return found


async def _filled(case: _Case, openers: Mapping[str, Opener]) -> dict[str, Figures]:
    """Bytes for each origin; fills the stores. Both RedisStores see one server."""
    count = len(case.entries)
    found: dict[str, Figures] = {name: {} for name in STORES}
    found[_MEMORY]["bytes"] = await _bytes_in_memory(case.entries) / count
    await _put_all(openers[_MEMORY], case.entries)
    await _put_all(openers[_SQLITE], case.entries)
    found[_SQLITE]["bytes"] = case.file.stat().st_size / count
    before = int(_told(case.server, "memory", "used_memory"))
    await _put_all(openers[_ENTERED], case.entries)
    used = int(_told(case.server, "memory", "used_memory")) - before
    found[_ENTERED]["bytes"] = found[_NOT_ENTERED]["bytes"] = used / count
    return found


async def _put_all(opener: Opener, entries: Sequence[Entry]) -> None:
    left = iter(entries)
    async with opener() as store, anyio.create_task_group() as tasks:

        async def put() -> None:
            for entry in left:
                await store.put(entry)

        for _ in range(_TASKS):
            tasks.start_soon(put)


async def _bytes_in_memory(entries: Sequence[Entry]) -> int:
    """What a MemoryStore of entries takes that share nothing with any other."""
    store = MemoryStore(max_entries=len(entries), max_bytes=_PLENTY)
    tracemalloc.start()
    try:
        for number, entry in enumerate(entries):
            copy = entry.copy
            if copy is not None:
                copy = replace(copy, packed=bytes(bytearray(copy.packed)))
            await store.put(replace(entry, origin=_origin(number), copy=copy))
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


async def _turns(case: _Case, openers: Mapping[str, Opener]) -> dict[str, Figures]:
    """Latency and throughput: the best of some turns, each figure by itself."""

    def turn(opener: Opener) -> Callable[[], Awaitable[Figures]]:
        async def timed() -> Figures:
            async with opener() as store:
                return await _timed(store, case)

        return timed

    turns = {name: turn(opener) for name, opener in openers.items()}
    samples = await take_turns(turns, repeats=_TURNS)
    return {name: _best(those) for name, those in samples.items()}


def _best(turns: Sequence[Figures]) -> Figures:
    """The least of each figure, or the most where more is better."""
    return {
        name: (max if name.endswith("rate") else min)(turn[name] for turn in turns)
        for name in turns[0]
    }


async def _timed(store: Store, case: _Case) -> Figures:
    """One turn: `get` and `put` of known origins in no order."""
    shuffled = Random(SEED).sample(case.entries, len(case.entries))
    numbers = Random(SEED).sample(range(len(shuffled)), len(shuffled))
    # A string that was hashed before would be found faster.
    keys = map(_origin, cycle(numbers))
    return await _timed_calls("get", store.get, keys, case.seconds) | (
        await _timed_calls("put", store.put, cycle(shuffled), case.seconds)
    )


async def _timed_calls(
    name: str,
    call: Callable[[_Argument], Awaitable[object]],
    arguments: Iterator[_Argument],
    seconds: float,
) -> Figures:
    await call(next(arguments))  # who connects, connects here
    each = sorted(await _seconds_of_each(call, arguments, seconds))
    return {
        name: median(each),
        f"{name} 99th": _percentile(each, 0.99),
        f"{name} rate": await _per_second(call, arguments, seconds),
    }


async def _seconds_of_each(
    call: Callable[[_Argument], Awaitable[object]],
    arguments: Iterator[_Argument],
    seconds: float,
) -> list[float]:
    """Of calls one after the other."""
    found: list[float] = []
    with without_collector():
        end = now = perf_counter()
        end += seconds
        while len(found) < _MOST_SAMPLES and (now < end or not found):
            argument = next(arguments)
            began = perf_counter()
            await call(argument)
            now = perf_counter()
            found.append(now - began)
    return found


async def _per_second(
    call: Callable[[_Argument], Awaitable[object]],
    arguments: Iterator[_Argument],
    seconds: float,
) -> float:
    """How many calls many tasks get done together, each of them one or more."""
    done = 0

    async def work() -> None:
        nonlocal done
        while True:
            await call(next(arguments))
            done += 1
            if perf_counter() >= end:
                return

    with without_collector():
        began = perf_counter()
        end = began + seconds
        async with anyio.create_task_group() as tasks:
            for _ in range(_TASKS):
                tasks.start_soon(work)
        return done / (perf_counter() - began)


async def _started(case: _Case, opener: Opener) -> Figures:
    """Seconds to open a full store, and of the first question."""
    opened, first = [], []
    with without_collector():
        for url in case.urls()[:_STARTS]:
            began = perf_counter()
            async with opener() as store:
                opened.append(perf_counter() - began)
                first.append(await _asked(store, [url]))
    return {"open": median(opened), "first": median(first)}


async def _known(case: _Case, openers: Mapping[str, Opener]) -> dict[str, float]:
    """Seconds of a question about an origin that the store has; the best turn."""
    urls = case.urls()

    def turn(opener: Opener) -> Callable[[], Awaitable[float]]:
        async def timed() -> float:
            async with opener() as store:
                with without_collector():
                    return await _asked(store, urls)

        return timed

    turns = {name: turn(opener) for name, opener in openers.items()}
    best = least(await take_turns(turns, repeats=_TURNS))
    return {name: seconds / len(urls) for name, seconds in best.items()}


async def _asked(store: Store, urls: Sequence[str]) -> float:
    """Seconds of a question about each of `urls`, by a new checker."""
    site = FakeSite()
    async with RobotsChecker(client=site, store=store, clock=ManualClock()) as checker:
        began = perf_counter()
        for url in urls:
            await checker.can_fetch(AGENT, url)
        seconds = perf_counter() - began
    if site.requests:
        raise RuntimeError(f"fetched instead of found in the store: {site.requests}")
    return seconds


async def _swept(case: _Case, opener: Opener) -> float:
    """Seconds of a sweep that drops everything."""
    async with opener() as store:
        with without_collector():
            began = perf_counter()
            dropped = await store.purge(_FAR_FUTURE)
            seconds = perf_counter() - began
    if dropped != len(case.entries):
        raise RuntimeError(f"expected all entries to go, {dropped} did")
    return seconds


def _told(server: Valkey, section: str, name: str) -> str:
    """What the server says about itself under `name`."""
    lines = str(server.ask("INFO", section)).splitlines()
    (value,) = (line.split(":", 1)[1] for line in lines if line.startswith(f"{name}:"))
    return value


def _percentile(rising: Sequence[float], share: float) -> float:
    return rising[max(ceil(share * len(rising)) - 1, 0)]


# --- what is shown --------------------------------------------------------------


def tables(
    found: Mapping[str, Mapping[str, Figures]], sizes: Mapping[str, Sequence[int]]
) -> tuple[Table, ...]:
    """The figures of all stores.

    Args:
        found: for each event loop the figures of each of `STORES`.
        sizes: for each kind of files the octets of their encoded entries.
    """
    shown: list[Table] = []
    for loop, stores in found.items():
        shown += [_latency_table(loop, stores), _throughput_table(loop, stores)]
    first = next(iter(found.values()))
    return (*shown, _start_table(first), _room_table(first), _encoded_table(sizes))


def _latency_table(loop: str, stores: Mapping[str, Figures]) -> Table:
    return Table(
        name=f"latency on {loop}",
        title=f"One call after the other, on {loop}",
        columns=(
            "store",
            *("get, µs", "get, 99th, µs", "get, ×"),
            *("put, µs", "put, 99th, µs", "put, ×"),
        ),
        rows=_rows(
            stores,
            ("get", 1e6, False),
            ("get 99th", 1e6, False),
            ("get", None, False),
            ("put", 1e6, False),
            ("put 99th", 1e6, False),
            ("put", None, False),
        ),
        notes=(_TIMES,),
    )


def _throughput_table(loop: str, stores: Mapping[str, Figures]) -> Table:
    return Table(
        name=f"throughput on {loop}",
        title=f"{_TASKS} tasks at once, on {loop}",
        columns=("store", "get, per second", "get, ×", "put, per second", "put, ×"),
        rows=_rows(
            stores,
            ("get rate", 1.0, False),
            ("get rate", None, True),
            ("put rate", 1.0, False),
            ("put rate", None, True),
        ),
        notes=(_TIMES,),
    )


def _start_table(stores: Mapping[str, Figures]) -> Table:
    return Table(
        name="start",
        title="A cold start and a sweep, on asyncio",
        columns=(
            *("store", "open, ms", "first question, µs", "first question, ×"),
            *("known origin, µs", "known origin, ×"),
            *("purge of all, ms", "purge of all, ×"),
        ),
        rows=_rows(
            stores,
            ("open", 1e3, False),
            ("first", 1e6, False),
            ("first", None, False),
            ("known", 1e6, False),
            ("known", None, False),
            ("purge", 1e3, False),
            ("purge", None, False),
        ),
        notes=(_TIMES,),
    )


def _room_table(stores: Mapping[str, Figures]) -> Table:
    return Table(
        name="room",
        title="Room for each origin",
        columns=("store", "bytes for each origin", "×"),
        rows=_rows(stores, ("bytes", 1.0, False), ("bytes", None, False)),
        notes=(_TIMES,),
    )


def _encoded_table(sizes: Mapping[str, Sequence[int]]) -> Table:
    return Table(
        name="encoded",
        title="An entry as octets",
        columns=("files", "number", "median", "mean", "99th percentile"),
        rows=tuple(
            (
                kind,
                len(those),
                round(median(those)),
                round(mean(those)),
                round(_percentile(sorted(those), 0.99)),
            )
            for kind, those in sizes.items()
        ),
    )


def _rows(
    stores: Mapping[str, Figures], *columns: tuple[str, float | None, bool]
) -> tuple[tuple[Cell, ...], ...]:
    """A row for each store.

    Args:
        stores: their figures.
        columns: for each a name of a figure, its unit, `None` for a ratio to that
            of the MemoryStore, and whether more is better.
    """
    bar = stores[_MEMORY]
    return tuple(
        (
            store,
            *(
                _cell(figures.get(name), bar.get(name), unit=unit, is_rate=is_rate)
                for name, unit, is_rate in columns
            ),
        )
        for store, figures in stores.items()
    )


def _cell(
    figure: float | None, bar: float | None, *, unit: float | None, is_rate: bool
) -> Cell:
    if figure is None:
        return None
    if unit is not None:
        return figure * unit
    if bar is None:
        return None
    return bar / figure if is_rate else figure / bar


def _arguments() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(
        prog="python -m benchmarks.stores",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = arguments.add_argument
    add("--origins", type=int, default=_ORIGINS, help="in each store")
    add("--seconds", type=float, default=_SECONDS, help="for each call in each turn")
    add("--corpus", type=Path, metavar="DIR", help="real robots.txt files, to encode")
    add("--json", type=Path, metavar="FILE", help="write all figures to it")
    add("--page", type=Path, metavar="FILE", help="put the tables into this Markdown")
    return arguments


if __name__ == "__main__":
    main()
