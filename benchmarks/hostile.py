"""How slow hostile files can make an answer, and how long they hold the event loop."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.hostile_files import FAMILIES, FILE_BYTES, PATH_BYTES
from benchmarks.peers import installed_peers
from benchmarks.report import Bar, Measured, Table
from benchmarks.timing import without_collector
from benchmarks.workload import AGENT
from robotsgate import Dialect, RobotsChecker, RobotsTxt
from robotsgate.testing import FakeSite

if TYPE_CHECKING:
    from benchmarks.hostile_files import Family
    from benchmarks.report import Cell
    from benchmarks.workload import Workload

__all__ = ["Stages", "loop_held", "measure", "stages"]

_REPEATS = 3
_PATIENCE_SECONDS = 10
_ORIGIN = "https://www.example.com"

# Often enough to see a hold of milliseconds; seldom enough to cost nothing.
_BEAT_SECONDS = 0.001

# For a first look: one of each kind.
_WHEN_QUICK = frozenset(
    {
        "14,000 agents share all rules",
        "/*a*a*a*a*a*bN",
        "needles a…ba…, all lengths, below /a",
        "each rule the start of the next",
        "lines of :",
    }
)


class Stages(NamedTuple):
    """Seconds for each thing that is done with a file.

    Attributes:
        parse: `RobotsTxt.parse`.
        first: the first `can_fetch`.
        second: the same question again.
        match: `match`, which names the rule.
    """

    parse: float
    first: float
    second: float
    match: float


def measure(work: Workload) -> Measured:
    """Read each family in both dialects, serve it, and give it to the peers."""
    families = [
        family for family in FAMILIES if not work.is_quick or family.name in _WHEN_QUICK
    ]
    peers = [] if work.is_quick else list(installed_peers())
    repeats = 1 if work.is_quick else _REPEATS
    found = {family.name: stages(family, repeats=repeats) for family in families}
    held = {family.name: loop_held(family, repeats=repeats) for family in families}
    rows: list[tuple[Cell, ...]] = [
        (
            family.name,
            *(seconds * 1e3 for seconds in found[family.name]),
            held[family.name] * 1e3,
            *(_of_peer(family, key) for key in peers),
        )
        for family in families
    ]
    table = Table(
        name="hostile",
        title="Hostile files",
        columns=(
            "family",
            "parse, ms",
            "first can_fetch, ms",
            "second can_fetch, ms",
            "match, ms",
            "event loop held, ms",
            *(f"{key}, ms" for key in peers),
        ),
        rows=tuple(rows),
        notes=(
            (
                f"Files of {FILE_BYTES:,} bytes, URLs with a path of {PATH_BYTES:,};"
                f" the best of {repeats}, then the worse of the two dialects."
            ),
            "A peer parses and answers once, in a process of its own.",
        ),
    )
    return Measured(tables=(table,), bars=_bars(found, held))


def _bars(found: dict[str, Stages], held: dict[str, float]) -> tuple[Bar, ...]:
    def worst(
        what: str, seconds: dict[str, float], bar: float, stretch: float | None = None
    ) -> Bar:
        name, value = max(seconds.items(), key=lambda item: item[1])
        return Bar(
            what=f"worst hostile file, {what} ({name})",
            value=value * 1e3,
            bar=bar,
            stretch=stretch,
            unit="ms",
            is_ceiling=True,
        )

    first = {name: each.parse + each.first for name, each in found.items()}
    later = {name: max(each.second, each.match) for name, each in found.items()}
    return (
        worst("parse and first can_fetch", first, 200, 50),
        worst("second can_fetch, or match", later, 200, 50),
        worst("event loop held by a cold can_fetch", held, 50),
    )


def stages(family: Family, *, repeats: int) -> Stages:
    """The best of each stage, then the worse of the two dialects."""
    body = family.body()
    best = [
        [min(each) for each in zip(*runs, strict=True)]
        for runs in (
            [_stages_once(body, family.path, dialect) for _ in range(repeats)]
            for dialect in Dialect
        )
    ]
    return Stages(*(max(each) for each in zip(*best, strict=True)))


def _stages_once(body: bytes, path: str, dialect: Dialect) -> Stages:
    with without_collector():
        began = perf_counter()
        robots_txt = RobotsTxt.parse(body, dialect=dialect)
        parsed = perf_counter()
        robots_txt.can_fetch(AGENT, path)
        first = perf_counter()
        robots_txt.can_fetch(AGENT, path)
        second = perf_counter()
        robots_txt.match(AGENT, path)
        matched = perf_counter()
    return Stages(parsed - began, first - parsed, second - first, matched - second)


def loop_held(family: Family, *, repeats: int) -> float:
    """The longest time, seconds, that a cold `can_fetch` lets nobody else run."""
    body = family.body()
    return min(asyncio.run(_loop_held(body, family.path)) for _ in range(repeats))


async def _loop_held(body: bytes, path: str) -> float:
    site = FakeSite()
    site.serve(_ORIGIN, body)
    loop = asyncio.get_running_loop()
    gaps: list[float] = []

    async def beat() -> None:
        last = loop.time()
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            now = loop.time()
            gaps.append(now - last - _BEAT_SECONDS)
            last = now

    async with RobotsChecker(client=site) as checker:
        beating = asyncio.create_task(beat())
        await asyncio.sleep(5 * _BEAT_SECONDS)
        with without_collector():
            await asyncio.sleep(2 * _BEAT_SECONDS)
            gaps.clear()
            await checker.can_fetch(AGENT, _ORIGIN + path)
            await asyncio.sleep(2 * _BEAT_SECONDS)
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating
    return max(gaps)


def _of_peer(family: Family, key: str) -> Cell:
    """Milliseconds of a parse and an answer, in a process that may be given up.

    Or what the peer raised.
    """
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.hostile_peer", key, family.name],
            cwd=Path(__file__).parents[1],
            timeout=_PATIENCE_SECONDS,
            check=True,
            capture_output=True,
        )
    except subprocess.TimeoutExpired:
        return f"> {_PATIENCE_SECONDS * 1_000:,}"
    found: float | str = json.loads(done.stdout)
    return found if isinstance(found, str) else found * 1e3
