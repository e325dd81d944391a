"""How much memory many origins take, and what they cost: a million stored, many live.

    python -m benchmarks.scale --page docs/explanation/how-large.md

Each measurement has a process of its own, so that no other has used its memory
before. Needs no peers and draws no charts.
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
import zlib
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from random import Random
from statistics import mean
from time import perf_counter, process_time
from typing import TYPE_CHECKING

import anyio.to_thread

from benchmarks.corpus import SEED, made_up_corpus, real_corpus
from benchmarks.page import rewritten
from benchmarks.report import Cell, Table, plain_text
from benchmarks.run import Run
from benchmarks.surroundings import surroundings
from benchmarks.timing import (
    least_in_slices,
    seconds_of_each,
    slices,
    take_turns,
    without_collector,
)
from benchmarks.workload import AGENT, URLS_PER_FILE, Workload
from robotsgate import AccessResult, MemoryStore, Policy, RobotsChecker
from robotsgate._clock import SystemClock
from robotsgate.caching._entry import Copy, Entry
from robotsgate.caching._outcome import Answered
from robotsgate.caching._plan import entry_after
from robotsgate.testing import FakeSite

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

__all__ = [
    "BYTES_PER_LIVE_ORIGIN",
    "Costs",
    "Figures",
    "Files",
    "main",
    "measured",
    "tables",
]

Figures = dict[str, float]
"""What one process measured: bytes and seconds, by name."""

BYTES_PER_LIVE_ORIGIN = 32 * 1024
"""What live origins may weigh together, for each of `max_origins`."""

_FILES = 2_000
_ORIGINS = 1_000_000
_STORED = (10_000, 100_000)
_LIVE = (10_000, 100_000)
_EXAMPLES = (
    (10_000, 10_000),
    (10_000, 100_000),
    (10_000, 1_000_000),
    (100_000, 1_000_000),
    (1_000_000, 1_000_000),
)

_ASKED = 200_000
_TURNS = 3
_PLENTY = 2**50  # bytes: what is measured here is not bounded by them

_BEAT_SECONDS = 0.001

# asyncio drops the timers of time-outs that did not fire in its next rounds.
_ROUNDS_OF_THE_LOOP = 10

_HOW_TIMED = (
    f"What is asked is timed by the clock, the best of {_TURNS} turns; so is the hold"
    " of the event loop, once; all else by the processor's time, once."
)

_DAY = 24 * 60 * 60.0
_NOW = 1_800_000_000.0
_POLICY = Policy()
_STATM = Path("/proc/self/statm")
_KIB, _MIB, _GIB = 2**10, 2**20, 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What a machine must have, in bytes.

    Attributes:
        base: of a process that has answered one question.
        per_live: of a live origin beside its entry, which is counted as stored.
        per_stored: of an entry in a `MemoryStore`, after each was fetched anew.
    """

    base: float
    per_live: float
    per_stored: float

    def memory(self, *, live: int, stored: int) -> float:
        """Of a process with so many origins; `stored` counts those that are live."""
        return self.base + live * self.per_live + stored * self.per_stored


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files that origins have, made ready by another process.

    What that takes would otherwise be freed in the process that is measured, and
    what is measured would fit into it.

    Attributes:
        packed: the bodies, compressed as in a `Copy`.
        paths: for each body those that are asked about.
    """

    packed: list[bytes]
    paths: list[list[str]]

    @classmethod
    def of(cls, bodies: Sequence[bytes]) -> Files:
        """Those of `bodies`."""
        entries = (
            entry_after(
                None,
                Answered(status=200, body=body),
                origin=_origin(0),
                now=_NOW,
                policy=_POLICY,
            )
            for body in bodies
        )
        return cls(
            packed=[entry.copy.packed for entry in entries if entry.copy is not None],
            paths=Workload(bodies=bodies).paths,
        )


def main(words: Sequence[str] | None = None) -> None:
    """Do as the command line says."""
    given = _arguments().parse_args(words)
    if given.part is not None:
        with given.files.open("rb") as file:
            files: Files = pickle.load(file)  # noqa: S301 (written by `_found`)
        print(json.dumps(measured(given.part, given.origins, files)))
        return
    files = min(_FILES, given.origins)
    if given.corpus is None:
        bodies, kind = made_up_corpus(files), "made up"
    else:
        bodies, kind = real_corpus(given.corpus, files), "real"
    about = surroundings() | {
        "packages": ", ".join(
            f"{name} {metadata.version(name)}"
            for name in ("robotsgate", "httpx", "anyio", "cachetools")
        ),
        "resident memory by": str(_STATM) if _STATM.exists() else "ru_maxrss, its peak",
        "files": f"{len(bodies):,}, {kind}, repeated",
    }
    print("\n".join(f"{what}: {which}" for what, which in about.items()))
    found = _found(given.origins, Files.of(bodies))
    run = Run(surroundings=about, tables=tables(found), bars=())
    for table in run.tables:
        print("\n" + plain_text(table))
    if given.json is not None:
        given.json.write_text(run.as_json(), encoding="utf-8")
    if given.page is not None:
        page = given.page.read_text(encoding="utf-8")
        given.page.write_text(rewritten(page, run.parts()), encoding="utf-8")


def measured(part: str, count: int, files: Files) -> Figures:
    """What `part` finds with `count` origins that have `files`, repeated."""
    return asyncio.run(_PARTS[part](count, files))


def _found(origins: int, files: Files) -> dict[str, dict[int, Figures]]:
    """For each part its figures, by the number of origins."""
    most_live = min(origins, _LIVE[-1])
    live = [*(count for count in _LIVE if count < most_live), most_live]
    counts = {
        "process": [1],
        "stored": [*(count for count in _STORED if count < origins), origins],
        "without a copy": [most_live],
        "default store": [min(2 * origins, 4 * _LIVE[-1])],
        "live": live,
        "fetched": live[:1],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "files")
        path.write_bytes(pickle.dumps(files))
        return {
            part: {count: _in_own_process(part, count, path) for count in those}
            for part, those in counts.items()
        }


def _in_own_process(part: str, count: int, files: Path) -> Figures:
    words = ["--part", part, "--origins", str(count), "--files", str(files)]
    began = perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", *words],
        cwd=Path(__file__).parents[1],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    print(f"[{part}, {count:,}: {perf_counter() - began:.0f} s]", file=sys.stderr)
    figures: Figures = json.loads(done.stdout)
    return figures


# --- what is measured -----------------------------------------------------------


async def _process(_: int, files: Files) -> Figures:
    """A process that has answered one question."""
    site = FakeSite()
    site.serve(_origin(0), zlib.decompress(files.packed[0]))
    async with RobotsChecker(client=site) as checker:
        await checker.can_fetch(AGENT, f"{_origin(0)}/")
        return {"bytes": _resident()}


async def _stored(count: int, files: Files) -> Figures:
    """A store that is filled, asked, renewed, used at its bound, and swept."""
    numbers = list(range(count))
    Random(SEED).shuffle(numbers)
    store = MemoryStore(max_entries=count, max_bytes=_PLENTY)
    found: Figures = {"packed": mean(map(len, files.packed))}
    before = _resident()
    new = (_entry(number, files, now=_NOW - _DAY) for number in numbers)
    found["put new"], found["longest put new"] = await _put(store, new)
    found["bytes"] = _resident() - before
    found["collect"] = _seconds_of_collection()
    found |= await _asked(store, count)
    again = (
        _entry(number, files, now=_NOW + number / count * _DAY) for number in numbers
    )
    found["put renewed"], found["longest put renewed"] = await _put(store, again)
    found["bytes renewed"] = _resident() - before
    others = (
        _entry(count + number, files, now=_NOW + number / count * _DAY)
        for number in numbers
    )
    found["put at the bound"], found["longest put at the bound"] = await _put(
        store, others
    )
    if len(store) != count:
        raise RuntimeError("an entry was let go, so its memory was not counted")
    found |= await _swept(store, count)
    found["bytes emptied"] = _resident() - before
    return found


async def _without_copy(count: int, _: Files) -> Figures:
    """A store of origins without a robots.txt."""
    store = MemoryStore(max_entries=count, max_bytes=_PLENTY)
    before = _resident()
    for number in range(count):
        now = _NOW + number
        await store.put(
            entry_after(
                None,
                Answered(status=404),
                origin=_origin(number),
                now=now,
                policy=_POLICY,
            )
        )
    return {"bytes": _resident() - before}


async def _default_store(count: int, files: Files) -> Figures:
    """A store as it comes, which is given more than it can hold."""
    store = MemoryStore()
    before = _resident()
    for number in range(count):
        await store.put(_entry(number, files, now=_NOW + number))
    return {"bytes": _resident() - before, "held": len(store)}


async def _live(count: int, files: Files) -> Figures:
    """Origins that a store knows, made live by questions and then asked."""
    clock = SystemClock()
    newcomers = min(len(files.packed), count)
    store = MemoryStore(max_entries=count + newcomers, max_bytes=_PLENTY)
    for number in range(count + newcomers):
        await store.put(_entry(number, files, now=clock.now()))
    firsts = [_url(files, number, 0) for number in range(count + newcomers)]
    urls = [
        _url(files, number, place)
        for number in range(count)
        for place in range(URLS_PER_FILE)
    ]
    checker = RobotsChecker(client=FakeSite(), store=store, max_origins=count)
    await anyio.to_thread.run_sync(gc.collect)  # starts the thread for large files
    await checker.can_fetch(AGENT, firsts[0])
    before = _resident()
    ask = _asker(checker)
    await ask(firsts[1 : count - newcomers])
    found = {"admit": await _seconds_of(ask(firsts[count - newcomers : count]))}
    found["admit"] /= newcomers
    await ask(urls)
    found["bytes"] = (_resident() - before) / (count - 1) * count
    found["collect"] = _seconds_of_collection()
    some = Random(SEED).sample(urls, min(len(urls), _ASKED))

    async def shuffled() -> list[float]:
        return await seconds_of_each(ask(part) for part in slices(some))

    turns = await take_turns({"question": shuffled}, repeats=_TURNS)
    found["question"] = least_in_slices(turns)["question"] / len(some)
    # All have been asked since their place came up, and now one has to go.
    await ask(urls[::URLS_PER_FILE])
    found["first eviction"] = await _seconds_of(ask(firsts[count : count + 1]))
    others = firsts[count + 1 :]
    found["evict"] = await _seconds_of(ask(others)) / max(1, len(others))
    if checker.stats.fetches or checker.stats.live_origins != count:
        raise RuntimeError("an origin was fetched or let go, so it was not counted")
    return found


async def _fetched(count: int, files: Files) -> Figures:
    """Origins that a checker has fetched: live, and in its store as well."""
    site = FakeSite()
    bodies = list(map(zlib.decompress, files.packed))
    for number in range(count):
        site.serve(_origin(number), bodies[number % len(bodies)])
    urls = [
        [_url(files, number, place) for place in range(URLS_PER_FILE)]
        for number in range(count)
    ]
    checker = RobotsChecker(
        client=site,
        store=MemoryStore(max_entries=count, max_bytes=_PLENTY),
        max_origins=count,
    )
    await anyio.to_thread.run_sync(gc.collect)  # starts the thread for large files
    await checker.can_fetch(AGENT, urls[0][0])
    before = _resident()
    ask = _asker(checker)
    for those in urls[1:]:
        await ask(those)
        site.requests.clear()
    for _ in range(_ROUNDS_OF_THE_LOOP):
        await asyncio.sleep(0)
    if checker.stats.live_origins != count:
        raise RuntimeError("an origin was let go, so its memory was not counted")
    return {"bytes": (_resident() - before) / max(1, count - 1) * count}


_PARTS: dict[str, Callable[[int, Files], Awaitable[Figures]]] = {
    "process": _process,
    "stored": _stored,
    "without a copy": _without_copy,
    "default store": _default_store,
    "live": _live,
    "fetched": _fetched,
}


async def _put(store: MemoryStore, entries: Iterable[Entry]) -> tuple[float, float]:
    """Seconds of a `put`: the mean, and the longest."""
    total = longest = 0.0
    count = 0
    with without_collector():
        for entry in entries:
            began = process_time()
            await store.put(entry)
            took = process_time() - began
            total += took
            longest = max(longest, took)
            count += 1
    return total / count, longest


async def _asked(store: MemoryStore, count: int) -> Figures:
    """Seconds of a `get`, of known and of unknown origins in no order."""
    chance = Random(SEED)
    asked = min(_ASKED, 20 * count)

    async def get(keys: Sequence[str]) -> None:
        for key in keys:
            await store.get(key)

    def turn(first: int) -> Callable[[], Awaitable[list[float]]]:
        async def of_new_strings() -> list[float]:
            # A string that was hashed before would be found faster.
            keys = [_origin(first + chance.randrange(count)) for _ in range(asked)]
            return await seconds_of_each(get(part) for part in slices(keys))

        return of_new_strings

    turns = {"get": turn(0), "get unknown": turn(count)}
    best = least_in_slices(await take_turns(turns, repeats=_TURNS))
    return {name: seconds / asked for name, seconds in best.items()}


async def _swept(store: MemoryStore, count: int) -> Figures:
    """Seconds of a sweep that drops nothing, a tenth, and then the rest.

    And how long the longest of them lets nobody else run.
    """
    retained = _POLICY.default_lifetime + _POLICY.stale_window
    found = {}
    held = []
    for name, now, drops in (
        ("purge nothing", _NOW, 0),
        ("purge a tenth", _NOW + retained + 0.1 * _DAY, round(0.1 * count)),
        ("purge the rest", _NOW + retained + 2 * _DAY, count - round(0.1 * count)),
    ):
        before = len(store)

        async def sweep(now: float = now) -> None:
            await store.purge(now)

        found[name], hold = await _hold(sweep)
        held.append(hold)
        if abs(before - len(store) - drops) > 1:
            raise RuntimeError(f"expected {drops} entries to go, {len(store)} are left")
    return found | {"held": max(held)}


async def _hold(work: Callable[[], Awaitable[object]]) -> tuple[float, float]:
    """The processor's seconds of `work`, and by the clock how long nobody else ran."""
    gaps: list[float] = []

    async def beat() -> None:
        last = perf_counter()
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            now = perf_counter()
            gaps.append(now - last - _BEAT_SECONDS)
            last = now

    beating = asyncio.create_task(beat())
    with without_collector():
        await asyncio.sleep(2 * _BEAT_SECONDS)
        gaps.clear()
        began = process_time()
        await work()
        seconds = process_time() - began
        await asyncio.sleep(2 * _BEAT_SECONDS)
    beating.cancel()
    with suppress(asyncio.CancelledError):
        await beating
    return seconds, max(gaps)


def _asker(checker: RobotsChecker) -> Callable[[Sequence[str]], Awaitable[None]]:
    async def ask(urls: Sequence[str]) -> None:
        for url in urls:
            await checker.can_fetch(AGENT, url)

    return ask


def _entry(number: int, files: Files, *, now: float) -> Entry:
    """An entry as a fetch makes it, which shares no bytes with any other."""
    fresh_until = now + _POLICY.default_lifetime
    packed = files.packed[number % len(files.packed)]
    return Entry(
        origin=_origin(number),
        access=AccessResult.SUCCESSFUL,
        checked_at=now,
        next_fetch_at=fresh_until,
        retain_until=fresh_until + _POLICY.stale_window,
        status=200,
        copy=Copy(
            packed=bytes(bytearray(packed)), fetched_at=now, fresh_until=fresh_until
        ),
    )


def _origin(number: int) -> str:
    return f"https://www.site{number}.example"


def _url(files: Files, number: int, place: int) -> str:
    return _origin(number) + files.paths[number % len(files.paths)][place]


def _seconds_of_collection() -> float:
    gc.collect()
    began = process_time()
    gc.collect()
    return process_time() - began


async def _seconds_of(work: Awaitable[object]) -> float:
    """The processor's time for what is done once: others may run meanwhile."""
    with without_collector():
        began = process_time()
        await work
        return process_time() - began


def _resident() -> int:
    """Bytes of this process that are in memory; where unknown, at their peak."""
    gc.collect()
    if _STATM.exists():
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    import resource  # noqa: PLC0415 (there is none on Windows)

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * _KIB


# --- what is shown --------------------------------------------------------------


def tables(found: Mapping[str, Mapping[int, Figures]]) -> tuple[Table, ...]:
    """The figures of all parts.

    Args:
        found: for each part its figures, by the number of origins, rising.
    """
    costs = _costs(found)
    return (
        _memory_table(found),
        _formula_table(costs),
        _machines_table(costs),
        _store_table(found["stored"]),
        _live_table(found["live"]),
    )


def _costs(found: Mapping[str, Mapping[int, Figures]]) -> Costs:
    """Those of the largest runs, where rounding to pages counts least."""
    live, stored = max(found["live"]), max(found["stored"])
    return Costs(
        base=found["process"][1]["bytes"],
        per_live=found["live"][live]["bytes"] / live,
        per_stored=found["stored"][stored]["bytes renewed"] / stored,
    )


def _memory_table(found: Mapping[str, Mapping[int, Figures]]) -> Table:
    rows: list[tuple[Cell, ...]] = []

    def add(held: str, count: int, resident: float) -> None:
        rows.append((held, f"{count:,}", resident / _MIB, resident / count))

    stored, live = found["stored"], found["live"]
    most = max(stored)
    for count, figures in stored.items():
        add("stored, with a copy", count, figures["bytes"])
    for count, figures in found["without a copy"].items():
        add("stored, without a copy", count, figures["bytes"])
    add("stored, after each was fetched anew", most, stored[most]["bytes renewed"])
    add("still resident when all were dropped", most, stored[most]["bytes emptied"])
    for given, figures in found["default store"].items():
        what = f"MemoryStore() that was given {given:,}"
        add(what, round(figures["held"]), figures["bytes"])
    for count, figures in live.items():
        add("live, beside the entry in the store", count, figures["bytes"])
    for count, figures in found["fetched"].items():
        add("fetched: live and stored", count, figures["bytes"])
    return Table(
        name="memory",
        title="Resident memory",
        columns=("held", "origins", "MiB", "bytes for each"),
        rows=tuple(rows),
        notes=(f"A packed copy has {stored[most]['packed']:,.0f} bytes in the mean.",),
    )


def _formula_table(costs: Costs) -> Table:
    return Table(
        name="formula",
        title="The formula",
        columns=("part", "bytes"),
        rows=(
            ("base", f"{costs.base / _MIB:.0f} MiB"),
            ("a, for each live origin", f"{costs.per_live:,.0f}"),
            ("b, for each stored origin", f"{costs.per_stored:,.0f}"),
        ),
    )


def _machines_table(costs: Costs) -> Table:
    return Table(
        name="machines",
        title="Worked examples",
        columns=("live", "stored", "memory", "bound of what the live ones weigh"),
        rows=tuple(
            (
                f"{live:,}",
                f"{stored:,}",
                _size(costs.memory(live=live, stored=stored)),
                _size(live * BYTES_PER_LIVE_ORIGIN),
            )
            for live, stored in _EXAMPLES
        ),
    )


def _store_table(stored: Mapping[int, Figures]) -> Table:
    def row(what: str, name: str, unit: float) -> tuple[Cell, ...]:
        return (what, *(figures[name] * unit for figures in stored.values()))

    return Table(
        name="store",
        title="What a MemoryStore costs",
        columns=("done", *(f"{count:,} stored" for count in stored)),
        notes=(_HOW_TIMED, "Where the longest put is long, it made the tables larger."),
        rows=(
            row("get, µs", "get", 1e6),
            row("get of an unknown origin, µs", "get unknown", 1e6),
            row("put, new, µs", "put new", 1e6),
            row("put, renewed, µs", "put renewed", 1e6),
            row("put, another goes for it, µs", "put at the bound", 1e6),
            row("the longest put, new, ms", "longest put new", 1e3),
            row("the longest put, renewed, ms", "longest put renewed", 1e3),
            row("the longest put, another goes, ms", "longest put at the bound", 1e3),
            row("purge, nothing to drop, ms", "purge nothing", 1e3),
            row("purge, a tenth to drop, ms", "purge a tenth", 1e3),
            row("purge, the rest to drop, ms", "purge the rest", 1e3),
            row("event loop held by the longest purge, ms", "held", 1e3),
            row("a full garbage collection, ms", "collect", 1e3),
        ),
    )


def _live_table(live: Mapping[int, Figures]) -> Table:
    def row(what: str, name: str, unit: float) -> tuple[Cell, ...]:
        return (what, *(figures[name] * unit for figures in live.values()))

    return Table(
        name="live",
        title="What live origins cost",
        columns=("done", *(f"{count:,} live" for count in live)),
        notes=(_HOW_TIMED,),
        rows=(
            row("can_fetch, shuffled, µs", "question", 1e6),
            row("can_fetch, stored but not live, µs", "admit", 1e6),
            row("the same, another goes for it, µs", "evict", 1e6),
            row("the same, all were asked before, once, ms", "first eviction", 1e3),
            row("a full garbage collection, ms", "collect", 1e3),
        ),
    )


def _size(count: float) -> str:
    """Bytes as a person says them."""
    return f"{count / _GIB:.1f} GiB" if count >= _GIB else f"{count / _MIB:.0f} MiB"


def _arguments() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = arguments.add_argument
    add("--origins", type=int, default=_ORIGINS, help="stored at the most")
    add("--corpus", type=Path, metavar="DIR", help="a folder of real robots.txt files")
    add("--json", type=Path, metavar="FILE", help="write all figures to it")
    add("--page", type=Path, metavar="FILE", help="put the tables into this Markdown")
    # One measurement in this very process, as JSON.
    add("--part", choices=_PARTS, help=argparse.SUPPRESS)
    add("--files", type=Path, help=argparse.SUPPRESS)
    return arguments


if __name__ == "__main__":
    main()
