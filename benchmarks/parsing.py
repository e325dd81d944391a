"""Measures parsing a file and answering two lookups for one agent."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.page import Bar, Table
from benchmarks.peers import installed_peers
from benchmarks.timing import best_of_turns, median_ratio, seconds_of_each
from benchmarks.workload import AGENT
from robotsgate import RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from benchmarks.peers import Peer
    from benchmarks.workload import Workload

_OURS = "RobotsTxt"


def measure(work: Workload) -> list[Table | Bar]:
    """Read the whole corpus with each contender in turn."""
    files = [
        (body, [origin + path for path in paths[:2]])
        for body, origin, paths in zip(
            work.bodies, work.origins, work.paths, strict=True
        )
    ]

    async def ours(body: bytes, urls: list[str]) -> None:
        robots_txt = RobotsTxt.parse(body)
        for url in urls:
            robots_txt.can_fetch(AGENT, url)

    async def theirs(peer: Peer, body: bytes, urls: list[str]) -> None:
        kept = peer.read(body)
        await peer.ask([(kept, url) for url in urls])

    async def turn(read: Callable[..., Awaitable[None]]) -> list[float]:
        return await seconds_of_each(read(*file) for file in files)

    peers = installed_peers()
    turns = {_OURS: partial(turn, ours)}
    for peer in peers.values():
        turns[peer.name] = partial(turn, partial(theirs, peer))
    by_file = asyncio.run(best_of_turns(turns, repeats=work.repeats))
    pooled = {name: sum(seconds) for name, seconds in by_file.items()}
    table = Table(
        name="parsing",
        columns=(
            "contender",
            "pooled mean, µs",
            f"× of {_OURS}",
            "file by file, median of ratios, ×",
        ),
        rows=[
            (
                name,
                pooled[name] / len(files) * 1e6,
                pooled[name] / pooled[_OURS],
                median_ratio(by_file[name], by_file[_OURS]),
            )
            for name in turns
        ],
    )
    protego = pooled[peers["protego"].name] if "protego" in peers else None
    bar = Bar(
        what="parse and two answers, one agent, faster than protego (pooled mean)",
        value=None if protego is None else protego / pooled[_OURS],
        bar=2.4,
        stretch=4,
        is_ceiling=False,
    )
    return [table, bar]
