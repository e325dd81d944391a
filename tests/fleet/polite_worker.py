"""One worker of a polite fleet: sends a number of requests to one host.

python -m tests.fleet.polite_worker NAME STORE URL WORKERS REQUESTS
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import anyio
import httpx

from robotsgate import PolitenessGate, RobotsChecker, SharedLedger
from robotsgate.events import LedgerFailed

if TYPE_CHECKING:
    from robotsgate.events import LedgerEvent

ALONE = "x-alone"
MAX_TURN_SECONDS = 3.0


async def work() -> None:
    """Send all requests, each during a turn of the host."""
    name, store, url, workers, requests = sys.argv[1:]
    events: list[LedgerEvent] = []
    async with (
        SharedLedger(store, workers=int(workers), on_event=events.append) as ledger,
        httpx.AsyncClient(headers={"user-agent": name}) as client,
        RobotsChecker(user_agent="ExampleBot/1.0", store=store) as checker,
        PolitenessGate(
            checker,
            "ExampleBot",
            ledger=ledger,
            default_delay=0.0,
            max_turn_seconds=MAX_TURN_SECONDS,
        ) as gate,
    ):
        for _ in range(int(requests)):
            async with gate.turn(url) as turn:
                is_alone = bool(events) and isinstance(events[-1], LedgerFailed)
                turn.report(await client.get(url, headers={ALONE: str(is_alone)}))


if __name__ == "__main__":
    logging.disable()  # nobody reads the log, and a full pipe blocks a worker
    anyio.run(work)
