"""What reading a file costs, up to its first answer, for one agent."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.peers import ProtegoPeer, installed_peers
from benchmarks.report import Bar, Measured, Table
from benchmarks.timing import (
    least_of_each,
    median_ratio,
    seconds_of_each,
    take_turns,
)
from benchmarks.workload import AGENT
from robotsgate import RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from benchmarks.peers import Peer
    from benchmarks.workload import Workload

__all__ = ["measure"]

_OURS = "RobotsTxt.parse, then can_fetch"


def measure(work: Workload) -> Measured:
    """Read the whole corpus in turns."""
    return asyncio.run(_measured(work))


async def _measured(work: Workload) -> Measured:
    turns = _turns(work)
    samples = await take_turns(turns, repeats=work.repeats)
    by_file = least_of_each(samples)
    pooled = {name: sum(seconds) for name, seconds in by_file.items()}
    table = Table(
        name="parsing",
        title="A file, up to its first answer",
        columns=(
            "contender",
            "pooled mean, µs",
            "× of RobotsTxt",
            "file by file, median of ratios, ×",
        ),
        rows=tuple(
            (
                name,
                pooled[name] / len(work.bodies) * 1e6,
                pooled[name] / pooled[_OURS],
                median_ratio(by_file[name], by_file[_OURS]),
            )
            for name in turns
        ),
        notes=(
            (
                "RobotsTxt begins with octets; where only a parse is timed the text is"
                " already decoded; all others begin with octets."
            ),
        ),
    )
    protego = next((name for name in pooled if name.endswith("only its parse")), None)
    return Measured(
        tables=(table,),
        bars=(
            Bar(
                what="parse, compile and first match, one agent, faster than protego's"
                " parse alone (pooled mean)",
                value=pooled[protego] / pooled[_OURS] if protego else None,
                bar=4,
                stretch=5,
            ),
        ),
    )


def _turns(work: Workload) -> dict[str, Callable[[], Awaitable[list[float]]]]:
    asked = [
        (body, origin + paths[0])
        for body, origin, paths in zip(
            work.bodies, work.origins, work.paths, strict=True
        )
    ]
    texts = [body.decode("utf-8", "replace") for body in work.bodies]

    async def ours(body: bytes, url: str) -> None:
        RobotsTxt.parse(body).can_fetch(AGENT, url)

    async def one_shot(peer: Peer, body: bytes, url: str) -> None:
        peer.answer(peer.prepared(body), url)

    async def only_parse(peer: ProtegoPeer, text: str) -> None:
        peer.parse(text)

    async def turn(
        read: Callable[..., Awaitable[None]], files: Sequence[tuple[object, ...]]
    ) -> list[float]:
        return await seconds_of_each(read(*file) for file in files)

    turns: dict[str, Callable[[], Awaitable[list[float]]]] = {
        _OURS: partial(turn, ours, asked)
    }
    for peer in installed_peers().values():
        if isinstance(peer, ProtegoPeer):
            turns[f"{peer.name}, only its parse"] = partial(
                turn, partial(only_parse, peer), [(text,) for text in texts]
            )
        turns[f"{peer.name}, parse and answer"] = partial(
            turn, partial(one_shot, peer), asked
        )
    return turns
