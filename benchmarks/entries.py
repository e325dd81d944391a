"""What a checker writes into its store: the bytes that benchmarks of stores keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from benchmarks.workload import AGENT
from robotsgate import MemoryStore, RobotsChecker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate import Store

PLENTY = 2**50
"""Bytes: what is measured is not bounded by them."""

LIFETIME = 31 * 24 * 60 * 60.0
"""How long an entry can be of use: fresh for a day, then a stale copy."""


class Sites(httpx.AsyncBaseTransport):
    """Serves `bodies`, repeated, at as many origins as anybody asks for.

    Each time a new copy, so that whoever keeps it pays for it.
    """

    dials_nothing = True  # there is no address for a guard to see

    def __init__(self, bodies: Sequence[bytes]) -> None:
        """Serve nothing else."""
        self._bodies = bodies
        self.requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer with the file of the host."""
        self.requests += 1
        number = int(request.url.host.removeprefix("www.site").partition(".")[0])
        body = self._bodies[number % len(self._bodies)]
        return httpx.Response(200, content=bytes(bytearray(body)))


def origin(number: int) -> str:
    """The URL of an origin that `Sites` serves."""
    return f"https://www.site{number}.example"


async def fill(store: Store, bodies: Sequence[bytes], count: int) -> None:
    """Let a checker fetch `count` origins into `store`, and keep nothing itself."""
    sites = Sites(bodies)
    async with RobotsChecker(
        user_agent=AGENT, client=sites, store=store, max_origins=1
    ) as checker:
        for number in range(count):
            await checker.can_fetch(AGENT, f"{origin(number)}/")


async def entries_of(bodies: Sequence[bytes]) -> list[bytes]:
    """The bytes of an entry for each of `bodies`."""
    store = MemoryStore(max_entries=len(bodies), max_bytes=PLENTY)
    await fill(store, bodies, len(bodies))
    entries = [await store.get(origin(number)) for number in range(len(bodies))]
    if None in entries:
        raise RuntimeError("expected the key of an entry to be its origin")
    return [entry for entry in entries if entry is not None]
