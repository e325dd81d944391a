"""Measures lookups for unknown origins: connect, GET, parse, answer.

Measures processor time over real sockets, and compares it with the minimum that a
crawler could do: a GET with its own client, then protego.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, Any, TypeAlias

import httpx

from benchmarks.page import Bar, Table
from benchmarks.timing import best_of_turns, seconds_of_each
from benchmarks.workload import AGENT
from robotsgate import RobotsChecker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from benchmarks.workload import Workload

    _Lookup = Callable[[str], Awaitable[bool]]
    _Opener = Callable[[], AbstractAsyncContextManager[_Lookup]]

_Imported: TypeAlias = Any
"""Modules and names that are imported only if they are installed."""

_AT_ONCE = 50
_ORIGINS = 500  # below the 1,024 open files that systems commonly allow
_ORIGINS_WHEN_QUICK = 60
_RULES, _RULES_OF_500_BYTES = 45, 15
_PAGE = "/news/article-17.html"

_OURS = "RobotsChecker"
_OURS_BY_AIOHTTP = "RobotsChecker, AiohttpFetcher"
_AIOHTTP = "aiohttp + protego"


def measure(work: Workload) -> list[Table | Bar]:
    """Look up all origins, with a new checker or client each time."""
    return [
        *_measure(work, "cold", _RULES, bar=1.15),
        *_measure(work, "cold, a file of 500 bytes", _RULES_OF_500_BYTES, bar=1.5),
    ]


def _measure(work: Workload, kind: str, rules: int, *, bar: float) -> list[Table | Bar]:
    count = _ORIGINS_WHEN_QUICK if work.is_quick else _ORIGINS
    with loopback_origins(count, rules) as origins:
        turns = {name: partial(_turn, opener, origins) for name, opener in _openers()}
        best = asyncio.run(best_of_turns(turns, repeats=work.repeats))
    table = Table(
        name=kind,
        columns=(
            *("client", f"{_AT_ONCE} at once, µs", f"× of {_AIOHTTP}"),
            *("one at a time, µs", f"× of {_AIOHTTP}"),
        ),
        rows=[
            (
                name,
                *(at_once / count * 1e6, _ratio(best, name, 0)),
                *(one_by_one / count * 1e6, _ratio(best, name, 1)),
            )
            for name, (at_once, one_by_one) in best.items()
        ],
        notes=(
            "Processor time per lookup on asyncio: connect, GET, parse, match.",
            f"{count} origins, each on its own loopback address, plain HTTP.",
            "The server is another process; the time includes a new client or checker.",
        ),
    )
    what = f"{kind}: {_AT_ONCE} at once, processor time compared with {_AIOHTTP}"
    return [
        table,
        Bar(what=what, value=_ratio(best, _OURS, 0), bar=bar, stretch=1.0),
        Bar(
            what=f"{what}, through AiohttpFetcher",
            value=_ratio(best, _OURS_BY_AIOHTTP, 0),
            bar=1.1,
        ),
    ]


def _ratio(best: dict[str, list[float]], name: str, index: int) -> float | None:
    if name in best and _AIOHTTP in best:
        return best[name][index] / best[_AIOHTTP][index]
    return None


async def _turn(opener: _Opener, origins: list[str]) -> list[float]:
    """Processor seconds for all `origins`: many at once, and one at a time."""
    works = [_look_up_all(opener, origins, at_once) for at_once in (_AT_ONCE, 1)]
    return await seconds_of_each(works, clock=process_time)


async def _look_up_all(opener: _Opener, origins: list[str], at_once: int) -> None:
    remaining = iter(origins)
    async with opener() as look_up:

        async def work() -> None:
            for origin in remaining:
                if not await look_up(origin):
                    raise RuntimeError(f"expected the page of {origin} to be allowed")

        await asyncio.gather(*(work() for _ in range(at_once)))


@contextmanager
def loopback_origins(count: int, rules: int = _RULES) -> Iterator[list[str]]:
    """Serve `count` origins with `rules` rules each until the end of the block."""
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.origin_server", str(count), str(rules)],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        if server.stdout is None:
            raise RuntimeError("expected a pipe from the server")
        yield json.loads(server.stdout.readline())
        # Leaving the block closes the server's input, which ends it.


def _openers() -> Iterator[tuple[str, _Opener]]:
    """The installed contenders, with a function that opens each."""
    yield _OURS, _checker
    with suppress(ImportError):
        ours = import_module("robotsgate.integrations.aiohttp")
        aiohttp = import_module("aiohttp")
        yield _OURS_BY_AIOHTTP, partial(_checker_by_aiohttp, aiohttp, ours)
    with suppress(ImportError):
        protego = import_module("protego").Protego
        yield "httpx + protego", partial(_httpx, protego)
        aiohttp = import_module("aiohttp")
        yield _AIOHTTP, partial(_aiohttp, aiohttp, protego)


@asynccontextmanager
async def _checker(client: object = None) -> AsyncIterator[_Lookup]:
    async with RobotsChecker(user_agent=AGENT, client=client) as checker:

        async def look_up(origin: str) -> bool:
            return await checker.can_fetch(AGENT, origin + _PAGE)

        yield look_up
        if checker.stats.fetches != checker.stats.successful:
            raise RuntimeError("not all origins were fetched")


@asynccontextmanager
async def _checker_by_aiohttp(
    aiohttp: _Imported, ours: _Imported
) -> AsyncIterator[_Lookup]:
    async with (
        aiohttp.ClientSession() as session,
        _checker(ours.AiohttpFetcher(session)) as look_up,
    ):
        yield look_up


@asynccontextmanager
async def _httpx(protego: _Imported) -> AsyncIterator[_Lookup]:
    async with httpx.AsyncClient(trust_env=False) as client:

        async def look_up(origin: str) -> bool:
            response = await client.get(f"{origin}/robots.txt")
            return bool(protego.parse(response.text).can_fetch(origin + _PAGE, AGENT))

        yield look_up


@asynccontextmanager
async def _aiohttp(aiohttp: _Imported, protego: _Imported) -> AsyncIterator[_Lookup]:
    async with aiohttp.ClientSession() as session:

        async def look_up(origin: str) -> bool:
            async with session.get(f"{origin}/robots.txt") as response:
                text = await response.text()
            return bool(protego.parse(text).can_fetch(origin + _PAGE, AGENT))

        yield look_up
