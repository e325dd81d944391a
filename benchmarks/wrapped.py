"""Measures the overhead that the hook adds to an httpx request.

pip install -e '.[bench]'
python -m benchmarks.wrapped --page docs/explanation/how-fast.md
"""

from __future__ import annotations

import argparse
import asyncio
from functools import partial
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING

import httpx

from benchmarks.cold import loopback_origins
from benchmarks.page import Bar, Table, about, publish
from benchmarks.timing import best_of_turns, without_collector
from benchmarks.workload import AGENT
from robotsgate import RobotsChecker
from robotsgate.integrations.httpx import robots_hook

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

_REQUESTS, _REPEATS = 200, 20

_BARE, _HOOKED, _HOOK = "a bare request", "a request with the hook", "the hook alone"


async def _turn(
    ask: Callable[[str], Awaitable[object]], urls: Sequence[str]
) -> tuple[float]:
    """Processor seconds for `urls`, one after the other."""
    with without_collector():
        began = process_time()
        for url in urls:
            await ask(url)
        return (process_time() - began,)


async def _measure(urls: Sequence[str], repeats: int) -> dict[str, float]:
    """Processor seconds for all `urls`, by kind of request."""
    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        httpx.AsyncClient(trust_env=False) as bare,
        httpx.AsyncClient(trust_env=False) as hooked,
    ):
        hook = robots_hook(checker, AGENT)
        hooked.event_hooks = {"request": [hook]}

        async def ask(url: str) -> None:
            await hook(requests[url])

        requests = {url: httpx.Request("GET", url) for url in urls}
        turns = {
            _BARE: partial(_turn, bare.get, urls),
            _HOOKED: partial(_turn, hooked.get, urls),
            _HOOK: partial(_turn, ask, urls),
        }
        best = await best_of_turns(turns, repeats=repeats)
    return {name: seconds for name, (seconds,) in best.items()}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wrapped")
    add = parser.add_argument
    add("--requests", type=int, default=_REQUESTS)
    add("--repeats", type=int, default=_REPEATS)
    add("--page", type=Path, metavar="FILE", help="write tables here")
    options = parser.parse_args(arguments)
    with loopback_origins(1) as [origin]:
        paths = (f"/news/article-{number}.html" for number in range(options.requests))
        best = asyncio.run(_measure([origin + path for path in paths], options.repeats))
    table = Table(
        name="wrapped",
        columns=("what", "µs"),
        rows=[
            (name, seconds / options.requests * 1e6) for name, seconds in best.items()
        ],
        notes=(
            "Mean processor time, for a known origin that allows the pages.",
            "The server is another process on this machine; the connection stays open.",
        ),
    )
    bar = Bar(
        what="the hook for httpx, compared with a bare request on loopback (mean)",
        value=best[_HOOK] / best[_BARE],
        bar=0.03,
    )
    run = about("robotsgate", "httpx", "httpcore")
    run |= {"turns": f"the best of {options.repeats}"}
    publish([table, bar], run, page=options.page, prefix="wrapped ")


if __name__ == "__main__":
    main()
