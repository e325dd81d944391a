"""Measures the memory that a live origin takes."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import TYPE_CHECKING

import httpx

from benchmarks.page import Bar, Table
from benchmarks.peers import installed_peers
from benchmarks.workload import AGENT
from robotsgate import RobotsChecker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.peers import Peer
    from benchmarks.workload import Workload

_OURS = "a live origin"

# asyncio drops cancelled timers in its next iterations.
_LOOP_ITERATIONS = 10


def measure(work: Workload) -> list[Table | Bar]:
    """Measure memory that is still allocated."""
    sizes = {_OURS: asyncio.run(_of_checker(work))}
    for peer in installed_peers().values():
        if peer.keeps_rules:
            sizes[peer.name] = asyncio.run(_of_peer(peer, work))
    _, ours = sizes[_OURS]
    protego = next(
        (parsed for name, (parsed, _) in sizes.items() if name.startswith("protego")),
        None,
    )
    table = Table(
        name="memory",
        columns=("mean", "parsed, bytes", "after ten URLs, bytes", f"× of {_OURS}"),
        rows=[
            (name, parsed, looked_up, looked_up / ours)
            for name, (parsed, looked_up) in sizes.items()
        ],
        notes=(
            (
                "A live origin is all that the checker holds for it: the entry in its"
                " store with the packed body, and the rules of one agent."
            ),
            "For other libraries, a parsed file is just the rules, without a body.",
        ),
    )
    bar = Bar(
        what=f"{_OURS}, after ten URLs, as a share of protego's parsed object (mean)",
        value=None if protego is None else ours / protego,
        bar=1 / 3.3,
        stretch=1 / 5,
    )
    return [table, bar]


class _Sites(httpx.AsyncBaseTransport):
    """Serves `bodies`; each response is a new copy, so that keeping it costs memory."""

    dials_nothing = True  # no connections, so a guard has nothing to check

    def __init__(self, bodies: Sequence[bytes]) -> None:
        self._bodies = bodies

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the host's file."""
        number = int(request.url.host.removeprefix("www.site").partition(".")[0])
        return httpx.Response(200, content=bytes(bytearray(self._bodies[number])))


async def _of_checker(work: Workload) -> tuple[float, float]:
    """The bytes per origin, after one lookup and after ten."""
    sites = _Sites(work.bodies)
    questions = [url for _, url in work.questions]
    firsts = [
        origin + paths[0]
        for origin, paths in zip(work.origins, work.paths, strict=True)
    ]
    # Allocate beforehand what all origins share.
    async with RobotsChecker(user_agent=AGENT, client=sites) as warm_up:
        await warm_up.check(AGENT, firsts[0])
    gc.collect()
    tracemalloc.start()
    async with RobotsChecker(
        user_agent=AGENT, client=sites, max_origins=2 * len(firsts)
    ) as checker:
        for url in firsts:
            await checker.can_fetch(AGENT, url)
        parsed = await _allocated()
        for url in questions:
            await checker.can_fetch(AGENT, url)
        looked_up = await _allocated()
        if checker.stats.live_origins != len(firsts):
            raise RuntimeError("an origin was evicted, so its memory was not counted")
    tracemalloc.stop()
    return parsed / len(firsts), looked_up / len(firsts)


async def _of_peer(peer: Peer, work: Workload) -> tuple[float, float]:
    """The bytes per file, once parsed and after lookups."""
    await peer.ask([(peer.read(work.bodies[0]), work.questions[0].url)])
    gc.collect()
    tracemalloc.start()
    files = [peer.read(body) for body in work.bodies]
    parsed = await _allocated()
    await peer.ask((files[file], url) for file, url in work.questions)
    looked_up = await _allocated()
    tracemalloc.stop()
    return parsed / len(files), looked_up / len(files)


async def _allocated() -> int:
    for _ in range(_LOOP_ITERATIONS):
        await asyncio.sleep(0)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
