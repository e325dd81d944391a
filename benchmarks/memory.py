"""How much memory an origin takes while it is known."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import TYPE_CHECKING

from benchmarks.entries import Sites
from benchmarks.page import Bar, Table
from benchmarks.peers import installed_peers
from benchmarks.workload import AGENT
from robotsgate import RobotsChecker

if TYPE_CHECKING:
    from benchmarks.peers import Peer
    from benchmarks.workload import Workload

_AFTER_TEN = "a live origin, after can_fetch of ten URLs"

# asyncio drops the timers of time-outs that did not fire in its next rounds.
_ROUNDS_OF_THE_LOOP = 10


def measure(work: Workload) -> list[Table | Bar]:
    """Count what is allocated and still held."""
    held = asyncio.run(_of_checker(work))
    protego = None
    for key, peer in installed_peers().items():
        if peer.keeps_rules:
            parsed, asked = asyncio.run(_of_peer(peer, work))
            held[f"{peer.name}, parsed"] = parsed
            held[f"{peer.name}, after ten URLs"] = asked
            protego = parsed if key == "protego" else protego
    table = Table(
        name="memory",
        columns=("in memory", "mean, bytes", f"× of {_AFTER_TEN}"),
        rows=[(name, count, count / held[_AFTER_TEN]) for name, count in held.items()],
        notes=(
            (
                "A live origin is all that the checker holds for it: the entry in its"
                " store with the packed body, and the rules of one agent."
            ),
            "For other libraries, a parsed file is just the rules, without a body.",
        ),
    )
    bar = Bar(
        what=f"{_AFTER_TEN}, as a share of protego's parsed object (mean)",
        value=None if protego is None else held[_AFTER_TEN] / protego,
        bar=1 / 3.3,
        stretch=1 / 5,
    )
    return [table, bar]


async def _of_checker(work: Workload) -> dict[str, float]:
    """Bytes for each origin, at three moments."""
    sites = Sites(work.bodies)
    questions = [url for _, url in work.questions]
    firsts = [
        origin + paths[0]
        for origin, paths in zip(work.origins, work.paths, strict=True)
    ]
    # What is made once for all origins is made before.
    async with RobotsChecker(user_agent=AGENT, client=sites) as warm_up:
        await warm_up.check(AGENT, firsts[0])
    gc.collect()
    tracemalloc.start()
    async with RobotsChecker(
        user_agent=AGENT, client=sites, max_origins=2 * len(firsts)
    ) as checker:
        held = {}
        for name, ask, urls in (
            ("a live origin, after can_fetch of one URL", checker.can_fetch, firsts),
            (_AFTER_TEN, checker.can_fetch, questions),
            ("a live origin, after check of ten URLs", checker.check, questions),
        ):
            for url in urls:
                await ask(AGENT, url)
            held[name] = await _held() / len(firsts)
        if checker.stats.live_origins != len(firsts):
            raise RuntimeError("an origin was let go, so its memory was not counted")
    tracemalloc.stop()
    return held


async def _of_peer(peer: Peer, work: Workload) -> tuple[float, float]:
    """Bytes for each file, parsed and after questions."""
    await peer.ask([(peer.read(work.bodies[0]), work.questions[0].url)])
    gc.collect()
    tracemalloc.start()
    files = [peer.read(body) for body in work.bodies]
    parsed = await _held()
    await peer.ask((files[file], url) for file, url in work.questions)
    asked = await _held()
    tracemalloc.stop()
    return parsed / len(files), asked / len(files)


async def _held() -> int:
    for _ in range(_ROUNDS_OF_THE_LOOP):
        await asyncio.sleep(0)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
