"""What origins cost that are not known yet, over real sockets.

Compared with the least a crawler could write: a loop that GETs the same files with
httpx and reads their bodies, without parsing, keeping or deciding anything.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from benchmarks.report import Bar, Measured, Table
from benchmarks.timing import least, seconds_of, take_turns
from benchmarks.workload import AGENT
from robotsgate import RobotsChecker

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from benchmarks.workload import Workload

__all__ = ["measure"]

_AT_ONCE = 100
_ORIGINS = 500  # below the 1,024 open files that systems commonly allow
_ORIGINS_WHEN_QUICK = 60

_BARE = "bare httpx loop"
_OURS = "await can_fetch"
_MANY = "can_fetch_many"


def measure(work: Workload) -> Measured:
    """Ask all origins, with a new checker or client each time."""
    count = min(len(work.bodies), _ORIGINS_WHEN_QUICK if work.is_quick else _ORIGINS)
    with _origins(count) as origins:
        best = asyncio.run(_seconds(origins, work.repeats))
    bare = best[_BARE]
    table = Table(
        name="cold",
        title="Origins that are not known yet, over loopback sockets",
        columns=("asked by", "an origin, µs", f"× of the {_BARE}"),
        rows=tuple(
            (name, seconds / count * 1e6, seconds / bare)
            for name, seconds in best.items()
        ),
        notes=(
            (
                f"{count} origins, {_AT_ONCE} at once, plain HTTP, a server process of"
                " its own; the client or checker is new each time, made and closed"
                " outside of the time."
            ),
        ),
    )
    return Measured(
        tables=(table,),
        bars=(
            Bar(
                what="cold origins over real sockets, time of can_fetch by that of a"
                " bare httpx loop",
                value=best[_OURS] / bare,
                bar=1.3,
                stretch=1.1,
                is_ceiling=True,
            ),
        ),
    )


@contextmanager
def _origins(count: int) -> Iterator[list[str]]:
    """As many origins, served until the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.origin_server", str(count)],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        if server.stdout is None:
            raise RuntimeError("expected a pipe from the server")
        ports = json.loads(server.stdout.readline())
        yield [f"http://127.0.0.1:{port}" for port in ports]
        # Leaving closes the server's input, which ends it.


async def _seconds(origins: list[str], repeats: int) -> dict[str, float]:
    files = [f"{origin}/robots.txt" for origin in origins]
    pages = [f"{origin}/news/article-17.html" for origin in origins]

    async def bare() -> float:
        client = httpx.AsyncClient(trust_env=False)

        async def get(url: str) -> None:
            response = await client.get(url)
            if not response.content:
                raise RuntimeError("the server sent no robots.txt")

        seconds = await seconds_of(_all_of(files, get))
        await client.aclose()
        return seconds

    async def ours(ask: Callable[[RobotsChecker], Awaitable[object]]) -> float:
        checker = RobotsChecker(max_concurrent_fetches=_AT_ONCE)
        seconds = await seconds_of(ask(checker))
        if checker.stats.successful != len(origins):
            raise RuntimeError("not all origins were fetched")
        await checker.aclose()
        return seconds

    async def one_by_one(checker: RobotsChecker) -> None:
        await _all_of(pages, partial(checker.can_fetch, AGENT))

    async def in_one_call(checker: RobotsChecker) -> None:
        await checker.can_fetch_many(AGENT, pages)

    turns: dict[str, Callable[[], Awaitable[float]]] = {
        _BARE: bare,
        _OURS: partial(ours, one_by_one),
        _MANY: partial(ours, in_one_call),
    }
    return least(await take_turns(turns, repeats=repeats))


async def _all_of(urls: list[str], ask: Callable[[str], Awaitable[object]]) -> None:
    """Ask all `urls`, `_AT_ONCE` at a time."""
    waiting = iter(urls)

    async def work() -> None:
        for url in waiting:
            await ask(url)

    await asyncio.gather(*(work() for _ in range(_AT_ONCE)))
