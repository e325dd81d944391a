"""Store entries for the benchmarks, as a checker writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx

from benchmarks.workload import AGENT
from robotsgate import MemoryStore, RobotsChecker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate import Store

PLENTY = 2**50
"""A limit in bytes that is never reached."""

LIFETIME = 31 * 24 * 60 * 60.0
"""How long an entry can be used: fresh for a day, then as a stale copy."""


class Sites(httpx.AsyncBaseTransport):
    """Serves `bodies`, repeated, at any number of origins.

    Each response is a new copy, so that keeping it costs memory.
    """

    dials_nothing = True  # no connections, so a guard has nothing to check

    def __init__(self, bodies: Sequence[bytes]) -> None:
        self._bodies = bodies
        self.requests = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the host's file."""
        self.requests += 1
        number = int(request.url.host.removeprefix("www.site").partition(".")[0])
        body = self._bodies[number % len(self._bodies)]
        return httpx.Response(200, content=bytes(bytearray(body)))


def origin(number: int) -> str:
    """The URL of an origin that `Sites` serves."""
    return f"https://www.site{number}.example"


async def fill(store: Store, bodies: Sequence[bytes], count: int) -> None:
    """Let a checker fetch `count` origins into `store`, keeping none in memory."""
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
