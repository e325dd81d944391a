"""Measures how hostile files slow down answers and block the event loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise
from time import process_time
from typing import TYPE_CHECKING

from benchmarks.hostile_files import FAMILIES, FILE_BYTES, PATH_BYTES
from benchmarks.page import Bar, Cell, Table
from benchmarks.timing import without_collector
from benchmarks.workload import AGENT
from robotsgate import Dialect, RobotsChecker, RobotsTxt
from robotsgate.testing import FakeSite

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from benchmarks.hostile_files import Family
    from benchmarks.workload import Workload

_REPEATS = 3
_ORIGIN = "https://www.example.com"

# Short enough to see a block of milliseconds; long enough to cost nothing.
_BEAT_SECONDS = 0.001

# For a quick run: every tenth family.
_STEP_WHEN_QUICK = 10

_STAGES = ("parse", "first can_fetch", "second can_fetch", "match")
_HOLDS = ("held, cold", "held, warm")


def measure(work: Workload) -> list[Table | Bar]:
    """Read each family in both dialects, and through a checker."""
    families = FAMILIES[:: _STEP_WHEN_QUICK if work.is_quick else 1]
    ours = {family.name: seconds(family) for family in families}
    rows: list[tuple[Cell, ...]] = [
        (name, *(each * 1e3 for each in seconds_of_stages.values()))
        for name, seconds_of_stages in ours.items()
    ]
    table = Table(
        name="hostile",
        columns=("family", *(f"{name}, ms" for name in (*_STAGES, *_HOLDS))),
        rows=rows,
        notes=(
            (
                f"Files of {FILE_BYTES:,} bytes, URLs with a path of {PATH_BYTES:,};"
                f" the best of {_REPEATS}, then the worse of the two dialects."
            ),
            "Processor time, except for how long the event loop is blocked.",
        ),
    )
    first = {
        name: each["parse"] + each["first can_fetch"] for name, each in ours.items()
    }
    warm = {name: each["held, warm"] for name, each in ours.items()}
    return [
        table,
        _worst("parse and first answer", first, 40, 20),
        _worst("event loop blocked by one warm lookup", warm, 20, 5),
    ]


def _worst(what: str, figures: dict[str, float], bar: float, stretch: float) -> Bar:
    name, value = max(figures.items(), key=lambda item: item[1])
    return Bar(
        what=f"worst hostile file, {what} ({name})",
        value=value * 1e3,
        bar=bar,
        stretch=stretch,
        unit="ms",
    )


def seconds(family: Family, *, repeats: int = _REPEATS) -> dict[str, float]:
    """Seconds of each stage of reading a file, and how long the loop is blocked.

    The best of `repeats`, then the worse of the two dialects.
    """
    body = family.body()
    turns = range(repeats)
    stages = [
        _least([_stages(body, family.path, dialect) for _ in turns])
        for dialect in Dialect
    ]
    holds = _least([asyncio.run(_holds(body, family.path)) for _ in turns])
    worst = map(max, *stages)
    return dict(zip((*_STAGES, *_HOLDS), (*worst, *holds), strict=True))


def _least(turns: Sequence[Sequence[float]]) -> list[float]:
    return [min(figures) for figures in zip(*turns, strict=True)]


def _stages(body: bytes, path: str, dialect: Dialect) -> list[float]:
    with without_collector():
        times = [process_time()]
        robots_txt = RobotsTxt.parse(body, dialect=dialect)
        times.append(process_time())
        for lookup in (robots_txt.can_fetch, robots_txt.can_fetch, robots_txt.match):
            lookup(AGENT, path)
            times.append(process_time())
    return [end - began for began, end in pairwise(times)]


async def _holds(body: bytes, path: str) -> tuple[float, float]:
    """The longest time for which a cold and a warm lookup block the event loop."""
    site = FakeSite()
    site.serve(_ORIGIN, body)
    async with RobotsChecker(user_agent=AGENT, client=site) as checker:
        cold = await hold(checker.can_fetch(AGENT, _ORIGIN + path))
        await checker.check(AGENT, _ORIGIN + path)
        # Other URLs, whose answers cannot have been cached.
        warm = [
            await hold(checker.can_fetch(AGENT, f"{_ORIGIN}{path[:-1]}c")),
            await hold(checker.check(AGENT, f"{_ORIGIN}{path[:-1]}d")),
        ]
    return cold, max(warm)


async def hold(work: Awaitable[object]) -> float:
    """The longest time, in seconds, for which `work` blocks the event loop."""
    loop = asyncio.get_running_loop()
    gaps: list[float] = []

    async def beat() -> None:
        last = loop.time()
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            now = loop.time()
            gaps.append(now - last - _BEAT_SECONDS)
            last = now

    beat_task = asyncio.create_task(beat())
    with without_collector():
        await asyncio.sleep(5 * _BEAT_SECONDS)
        gaps.clear()
        await work
        await asyncio.sleep(2 * _BEAT_SECONDS)
    beat_task.cancel()
    with suppress(asyncio.CancelledError):
        await beat_task
    return max(gaps)
