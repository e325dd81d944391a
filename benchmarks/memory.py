"""How much memory an origin takes while it is known."""

from __future__ import annotations

import asyncio
import gc
import tracemalloc
from typing import TYPE_CHECKING, Any

import httpx

from benchmarks.peers import installed_peers
from benchmarks.report import Bar, Measured, Table
from benchmarks.workload import AGENT
from robotsgate import RobotsChecker

if TYPE_CHECKING:
    from benchmarks.peers import Peer
    from benchmarks.workload import Workload

__all__ = ["measure"]

_AFTER_ONE = "a live origin, after can_fetch of one URL"
_AFTER_TEN = "a live origin, after can_fetch of ten URLs"
_AFTER_CHECK = "a live origin, after check of ten URLs"

# asyncio drops the timers of time-outs that did not fire in its next rounds.
_ROUNDS_OF_THE_LOOP = 10


class _Sites(httpx.AsyncBaseTransport):
    """Serves a new copy of a body each time, so that whoever keeps it pays for it."""

    def __init__(self, bodies: dict[str, bytes]) -> None:
        self._bodies = bodies

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer with the body of the host."""
        return httpx.Response(
            200, content=bytes(bytearray(self._bodies[request.url.host]))
        )


def measure(work: Workload) -> Measured:
    """Count what is allocated and still held."""
    ours = asyncio.run(_of_checker(work))
    peers = {
        peer.key: (peer, _of_peer(peer, work))
        for peer in installed_peers().values()
        if peer.keeps_rules
    }
    rows: list[tuple[str | float | None, ...]] = [
        (name, found, found / ours[_AFTER_TEN]) for name, found in ours.items()
    ]
    for peer, (parsed, asked) in peers.values():
        rows.append((f"{peer.name}, parsed", parsed, parsed / ours[_AFTER_TEN]))
        rows.append((f"{peer.name}, after ten URLs", asked, asked / ours[_AFTER_TEN]))
    table = Table(
        name="memory",
        title="Memory of a known origin",
        columns=("held", "mean, bytes", f"× of {_AFTER_TEN}"),
        rows=tuple(rows),
        notes=(
            (
                "A live origin is all that the checker holds for it: the entry in its"
                " store with the packed body, and the rules of one agent."
            ),
            "A parsed file of a peer is only that, without a URL, a time or a body.",
        ),
    )
    protego = peers["protego"][1][0] if "protego" in peers else None
    return Measured(
        tables=(table,),
        bars=tuple(
            Bar(
                what=f"{held}, as a share of protego's parsed object (mean)",
                value=None if protego is None else ours[held] / protego,
                bar=1 / 4,
                stretch=1 / 6,
                is_ceiling=True,
            )
            for held in (_AFTER_TEN, _AFTER_CHECK)
        ),
    )


async def _of_checker(work: Workload) -> dict[str, float]:
    """Bytes for each origin, at three moments."""
    hosts = [origin.removeprefix("https://") for origin in work.origins]
    sites = _Sites(dict(zip(hosts, work.bodies, strict=True)))
    questions = work.questions
    firsts = [
        origin + paths[0]
        for origin, paths in zip(work.origins, work.paths, strict=True)
    ]
    # What is made once for all origins is made before.
    warm_up = RobotsChecker(client=sites)
    await warm_up.check(AGENT, firsts[0])
    await warm_up.aclose()
    held = {}
    gc.collect()
    tracemalloc.start()
    checker = RobotsChecker(client=sites, max_origins=2 * len(hosts))
    for url in firsts:
        await checker.can_fetch(AGENT, url)
    held[_AFTER_ONE] = await _held()
    for question in questions:
        await checker.can_fetch(AGENT, question.url)
    held[_AFTER_TEN] = await _held()
    for question in questions:
        await checker.check(AGENT, question.url)
    held[_AFTER_CHECK] = await _held()
    tracemalloc.stop()
    if checker.stats.live_origins != len(hosts):
        raise RuntimeError("an origin was let go, so its memory was not counted")
    await checker.aclose()
    return {name: count / len(hosts) for name, count in held.items()}


async def _held() -> int:
    for _ in range(_ROUNDS_OF_THE_LOOP):
        await asyncio.sleep(0)
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def _of_peer(peer: Peer, work: Workload) -> tuple[float, float]:
    """Bytes for each file, parsed and after questions."""
    peer.answer(peer.prepared(work.bodies[0]), work.questions[0].url)
    gc.collect()
    tracemalloc.start()
    files: list[Any] = [peer.prepared(body) for body in work.bodies]
    gc.collect()
    parsed = tracemalloc.get_traced_memory()[0]
    for question in work.questions:
        peer.answer(files[question.file], question.url)
    gc.collect()
    asked = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return parsed / len(files), asked / len(files)
