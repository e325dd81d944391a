"""One worker of a polite fleet: sends a number of requests to one host.

python -m tests.fleet.polite_worker '{"name": …}'
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import httpx

from robotsgate import PolitenessGate, RobotsChecker, SharedLedger
from robotsgate.events import LedgerFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from robotsgate.events import LedgerEvent

ALONE = "x-alone"


@dataclass(frozen=True, kw_only=True)
class PoliteAssignment:
    """What a worker has to do.

    Attributes:
        name: its User-Agent.
        store: the URL of the store.
        url: the URL to request.
        workers: the number of workers.
        requests: the number of requests.
        gate: options for the gate.
    """

    name: str
    store: str
    url: str
    workers: int
    requests: int
    gate: dict[str, float]


async def crawl(
    urls: Iterable[str],
    fetch: Callable[[str], Awaitable[httpx.Response]],
    *,
    store: str,
    workers: int,
    on_event: Callable[[LedgerEvent], object],
    options: dict[str, float],
) -> None:
    """Fetch each URL during a turn of its host."""
    async with (
        SharedLedger(store, workers=workers, on_event=on_event) as ledger,
        RobotsChecker(user_agent="ExampleBot/1.0", store=store) as checker,
        PolitenessGate(checker, "ExampleBot", ledger=ledger, **options) as gate,
    ):
        for url in urls:
            async with gate.turn(url) as turn:
                response = await fetch(url)
                turn.report(
                    status=response.status_code,
                    retry_after=response.headers.get("retry-after"),
                )


async def work(assignment: PoliteAssignment) -> None:
    """Send the assigned number of requests."""
    events: list[LedgerEvent] = []
    async with httpx.AsyncClient(headers={"user-agent": assignment.name}) as client:

        async def fetch(url: str) -> httpx.Response:
            is_alone = bool(events) and isinstance(events[-1], LedgerFailed)
            return await client.get(url, headers={ALONE: str(is_alone)})

        await crawl(
            [assignment.url] * assignment.requests,
            fetch,
            store=assignment.store,
            workers=assignment.workers,
            on_event=events.append,
            options=assignment.gate,
        )


if __name__ == "__main__":
    logging.disable()  # nobody reads the log, and a full pipe blocks a worker
    anyio.run(work, PoliteAssignment(**json.loads(sys.argv[1])))
