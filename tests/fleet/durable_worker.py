"""One worker of `examples/durable_crawl.py`, with shorter delays and leases.

python -m tests.fleet.durable_worker NAME REDIS_URL PAGE_URL
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import anyio
import httpx
from redis.asyncio import Redis

from robotsgate import PolitenessGate, RobotsChecker, SharedLedger

sys.path.append(str(Path(__file__).parents[2] / "examples"))

from durable_crawl import crawl
from redis_frontier import Frontier

LEASE_SECONDS = 5.0
MAX_TURN_SECONDS = 3.0


async def work(name: str, redis_url: str, page_url: str) -> None:
    """Crawl from the page, sharing the work with the other workers."""
    async with (
        Redis.from_url(redis_url, decode_responses=True) as redis,
        httpx.AsyncClient(headers={"User-Agent": name}) as client,
        RobotsChecker(user_agent=name, store=redis_url) as checker,
        SharedLedger(redis_url, workers=3) as ledger,
        PolitenessGate(
            checker,
            "ExampleBot",
            default_delay=0.0,
            max_turn_seconds=MAX_TURN_SECONDS,
            ledger=ledger,
            on_event=(frontier := Frontier(redis, LEASE_SECONDS)).on_event,
        ) as gate,
    ):
        await frontier.add(page_url)
        await crawl(gate, client, frontier, window=2)


if __name__ == "__main__":
    logging.disable()  # nobody reads the log, and a full pipe blocks a worker
    anyio.run(work, *sys.argv[1:])
