"""Measures the memory and time that a million stored and many live origins take.

    python -m benchmarks.scale --page docs/explanation/how-large.md

Each measurement runs in a separate process, so that no other has used its memory.
Needs no peers.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import pickle
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random
from statistics import mean
from time import perf_counter, process_time
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.corpus import SEED, robots_files
from benchmarks.entries import LIFETIME, PLENTY, Sites, entries_of, fill, origin
from benchmarks.hostile import hold
from benchmarks.page import Table, about, publish
from benchmarks.timing import (
    best_of_turns,
    seconds_of_each,
    slices,
    without_collector,
)
from benchmarks.workload import AGENT, Workload
from robotsgate import MemoryStore, RobotsChecker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

Figures = dict[str, float]
"""The figures from one process, in bytes and seconds, by name."""

_FILES = 2_000
_ORIGINS = 1_000_000
_STEPS = (10_000, 100_000)
_EXAMPLES = (
    (10_000, 10_000),
    (10_000, 100_000),
    (10_000, 1_000_000),
    (100_000, 1_000_000),
    (1_000_000, 1_000_000),
)
_BYTES_PER_LIVE_ORIGIN = 32 * 1024
_LOOKUPS = 200_000
_TURNS = 3
_NOW = 1_800_000_000.0
_STATM = Path("/proc/self/statm")
_MIB, _GIB = 2**20, 2**30


class Files(NamedTuple):
    """The files of the origins, with the entry and the paths for each."""

    bodies: list[bytes]
    entries: list[bytes]
    paths: list[list[str]]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = _parser().parse_args(arguments)
    if options.part is not None:
        with options.files.open("rb") as file:
            files: Files = pickle.load(file)  # noqa: S301 (written by `_figures`)
        print(json.dumps(asyncio.run(_PARTS[options.part](options.origins, files))))
        return
    bodies, kind = robots_files(min(_FILES, options.origins), options.corpus)
    run = about("robotsgate", "httpx", "anyio", "cachetools")
    run["files"] = f"{kind}, repeated"
    publish(_tables(_figures(options.origins, bodies)), run, page=options.page)


def _figures(origins: int, bodies: list[bytes]) -> dict[str, dict[int, Figures]]:
    """The figures of each part, by number of origins."""
    live = min(origins, _STEPS[-1])
    counts = {
        "process": [1],
        "stored": [*(count for count in _STEPS if count < origins), origins],
        "live": [*(count for count in _STEPS if count < live), live],
    }
    entries = asyncio.run(entries_of(bodies))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "files")
        files = Files(bodies, entries, Workload(bodies=bodies).paths)
        path.write_bytes(pickle.dumps(files))
        return {
            part: {count: _run_process(part, count, path) for count in those}
            for part, those in counts.items()
        }


def _run_process(part: str, count: int, files: Path) -> Figures:
    options = ["--part", part, "--origins", str(count), "--files", str(files)]
    began = perf_counter()
    process = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", *options],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    print(f"[{part}, {count:,}: {perf_counter() - began:.0f} s]", file=sys.stderr)
    figures: Figures = json.loads(process.stdout)
    return figures


# --- what is measured -----------------------------------------------------------


async def _process(_: int, files: Files) -> Figures:
    """A process that has answered one lookup."""
    async with RobotsChecker(user_agent=AGENT, client=Sites(files.bodies)) as checker:
        await checker.can_fetch(AGENT, f"{origin(0)}/")
        return {"bytes": _resident()}


async def _stored(count: int, files: Files) -> Figures:
    """A store that is filled, read, updated, used at its limit, and purged."""
    numbers = Random(SEED).sample(range(count), count)
    store = MemoryStore(max_entries=count, max_bytes=PLENTY)
    figures: Figures = {"entry": mean(map(len, files.entries))}
    before = _resident()
    figures |= await _put(store, numbers, files, "new")
    figures["bytes"] = _resident() - before
    figures["collect"] = _seconds_of_collection()
    for name, first in (("get", 0), ("get unknown", count)):
        figures[name] = await _seconds_of_get(store, first, count)
    figures |= await _put(store, numbers, files, "renewed")
    figures["bytes renewed"] = _resident() - before
    others = [count + number for number in numbers]
    figures |= await _put(store, others, files, "at the bound")
    for name, now in (("purge nothing", _NOW), ("purge all", _NOW + 2 * LIFETIME)):

        async def sweep(name: str = name, now: float = now) -> None:
            began = process_time()
            await store.purge(now)
            figures[name] = process_time() - began

        figures[f"{name}, held"] = await hold(sweep())
    figures["bytes emptied"] = _resident() - before
    return figures


async def _live(count: int, files: Files) -> Figures:
    """Stored origins that are made live and then looked up."""
    extra = min(len(files.bodies), count)
    store = MemoryStore(max_entries=count + extra, max_bytes=PLENTY)
    await fill(store, files.bodies, count + extra)
    urls = [
        [origin(number) + path for path in files.paths[number % len(files.paths)]]
        for number in range(count + extra)
    ]
    every = [url for those in urls[:count] for url in those]
    sites = Sites(files.bodies)
    checker = RobotsChecker(
        user_agent=AGENT, client=sites, store=store, max_origins=count
    )

    async def ask(urls: Iterable[str]) -> None:
        for url in urls:
            await checker.can_fetch(AGENT, url)

    before = _resident()
    figures = {"admit": await _seconds_of(ask(first for first, *_ in urls[:count]))}
    figures["admit"] /= count
    await ask(every)
    figures["bytes"] = _resident() - before
    figures["collect"] = _seconds_of_collection()
    some = Random(SEED).sample(every, min(len(every), _LOOKUPS))

    async def shuffled() -> list[float]:
        return await seconds_of_each(map(ask, slices(some)))

    best = await best_of_turns({"question": shuffled}, repeats=_TURNS)
    figures["question"] = sum(best["question"]) / len(some)
    # Every live origin has been used since its last turn for eviction.
    await ask(first for first, *_ in urls[:count])
    firsts = [first for first, *_ in urls[count:]]
    figures["first eviction"] = await _seconds_of(ask(firsts[:1]))
    figures["evict"] = await _seconds_of(ask(firsts[1:])) / max(1, extra - 1)
    if sites.requests or checker.stats.live_origins != count:
        raise RuntimeError("an origin was fetched or evicted, so it was not counted")
    await checker.aclose()
    return figures


_PARTS: dict[str, Callable[[int, Files], Awaitable[Figures]]] = {
    "process": _process,
    "stored": _stored,
    "live": _live,
}


async def _put(
    store: MemoryStore, numbers: Iterable[int], files: Files, name: str
) -> Figures:
    """Seconds of an `update`: the mean and the maximum."""
    seconds = []
    with without_collector():
        for number in numbers:
            # A copy, so that no two entries share memory.
            entry = bytes(bytearray(files.entries[number % len(files.entries)]))
            kept = (entry, _NOW + LIFETIME)
            key = origin(number)
            began = process_time()
            await store.update(key, lambda _, kept=kept: kept)
            seconds.append(process_time() - began)
    return {f"update, {name}": mean(seconds), f"longest update, {name}": max(seconds)}


async def _seconds_of_get(store: MemoryStore, first: int, count: int) -> float:
    rng = Random(SEED)
    lookups = min(_LOOKUPS, 20 * count)

    async def get(keys: Sequence[str]) -> None:
        for key in keys:
            await store.get(key)

    async def turn() -> list[float]:
        # New strings, because a string that has been hashed is found faster.
        keys = [origin(first + rng.randrange(count)) for _ in range(lookups)]
        return await seconds_of_each(map(get, slices(keys)))

    best = await best_of_turns({"get": turn}, repeats=_TURNS)
    return sum(best["get"]) / lookups


def _seconds_of_collection() -> float:
    gc.collect()
    began = process_time()
    gc.collect()
    return process_time() - began


async def _seconds_of(work: Awaitable[object]) -> float:
    """The processor time of `work`, which other programs do not affect."""
    (seconds,) = await seconds_of_each([work], clock=process_time)
    return seconds


def _resident() -> int:
    """The resident memory of this process in bytes; Linux only."""
    gc.collect()
    pages = int(_STATM.read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


# --- what is shown --------------------------------------------------------------

_STORE_ROWS = {
    "get, µs": ("get", 1e6),
    "get, unknown origin, µs": ("get unknown", 1e6),
    "update, new entry, µs": ("update, new", 1e6),
    "update, existing entry, µs": ("update, renewed", 1e6),
    "update that evicts another entry, µs": ("update, at the bound", 1e6),
    "longest update, new entry, ms": ("longest update, new", 1e3),
    "longest update, existing entry, ms": ("longest update, renewed", 1e3),
    "longest update that evicts another entry, ms": (
        "longest update, at the bound",
        1e3,
    ),
    "purge that drops nothing, ms": ("purge nothing", 1e3),
    "event loop blocked by this purge, ms": ("purge nothing, held", 1e3),
    "purge that drops everything, ms": ("purge all", 1e3),
    "event loop blocked by that purge, ms": ("purge all, held", 1e3),
    "full garbage collection, ms": ("collect", 1e3),
}
_LIVE_ROWS = {
    "can_fetch, shuffled URLs, µs": ("question", 1e6),
    "can_fetch, stored but not live, µs": ("admit", 1e6),
    "the same, evicting another origin, µs": ("evict", 1e6),
    "the same, once, if all live origins had been used, ms": ("first eviction", 1e3),
    "full garbage collection, ms": ("collect", 1e3),
}


def _tables(figures: Mapping[str, Mapping[int, Figures]]) -> list[Table]:
    stored, live = figures["stored"], figures["live"]
    most_stored, most_live = max(stored), max(live)
    largest = stored[most_stored]
    base = figures["process"][1]["bytes"]
    # From the largest runs, where rounding to pages matters least.
    per_live = live[most_live]["bytes"] / most_live
    per_stored = largest["bytes renewed"] / most_stored
    memory = [
        *(("stored", count, each["bytes"]) for count, each in stored.items()),
        ("stored, each fetched again", most_stored, largest["bytes renewed"]),
        (
            "resident after all entries were dropped",
            most_stored,
            largest["bytes emptied"],
        ),
        *(
            ("live, next to the store", count, each["bytes"])
            for count, each in live.items()
        ),
    ]
    rows = [
        (kept, f"{count:,}", size / _MIB, size / count) for kept, count, size in memory
    ]
    parts = [
        ("base", _size(base)),
        ("a, per live origin", f"{per_live:,.0f}"),
        ("b, per stored origin", f"{per_stored:,.0f}"),
    ]
    machines = [
        (
            *(f"{live:,}", f"{stored:,}"),
            _size(base + live * per_live + stored * per_stored),
            _size(live * _BYTES_PER_LIVE_ORIGIN),
        )
        for live, stored in _EXAMPLES
    ]
    note = f"The mean size of an entry is {largest['entry']:,.0f} bytes."
    columns = ("live", "stored", "memory", "limit for the live ones")
    return [
        Table("memory", ("kept", "origins", "MiB", "bytes per origin"), rows, [note]),
        Table("formula", ("part", "bytes"), parts),
        Table("machines", columns, machines),
        _costs("store", "stored", stored, _STORE_ROWS),
        _costs("live", "live", live, _LIVE_ROWS),
    ]


def _costs(
    name: str,
    kind: str,
    figures: Mapping[int, Figures],
    rows: Mapping[str, tuple[str, float]],
) -> Table:
    cells = [
        (row, *(each[key] * unit for each in figures.values()))
        for row, (key, unit) in rows.items()
    ]
    notes = (
        f"get, and can_fetch with shuffled URLs: wall-clock time, best of {_TURNS}.",
        "Event loop blocked: wall-clock time, once; all others: processor time, once.",
    )
    columns = ("operation", *(f"{count:,} {kind}" for count in figures))
    return Table(name, columns, cells, notes)


def _size(count: float) -> str:
    """Bytes in readable form."""
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count / _MIB:.0f} MiB"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--origins", type=int, default=_ORIGINS, help="maximum number of stored origins"
    )
    add("--corpus", type=Path, metavar="DIR", help="a folder of real robots.txt files")
    add("--page", type=Path, metavar="FILE", help="write the tables to this page")
    # Run one measurement in this process and print JSON.
    add("--part", choices=_PARTS, help=argparse.SUPPRESS)
    add("--files", type=Path, help=argparse.SUPPRESS)
    return parser


if __name__ == "__main__":
    main()
