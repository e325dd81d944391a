"""Measures how many pages a schedule crawls in virtual time, and at what cost.

    pip install -e . --group bench
    python -m benchmarks.crawls
    python -m benchmarks.crawls --hosts 100000 --urls 1000000 --seconds 300

The URLs are distributed over the hosts by Zipf's law. Each of 64 workers takes 0.25 s
per request, so 256 requests per second are possible; each host has a delay of one
second. With patience, skipped URLs are fed in again when they are ready. In
the other crawls, one host has a tenth of the URLs and returns 429, or has a crawl-delay
of one hour.
"""

from __future__ import annotations

import argparse
import random
from collections import defaultdict, deque
from functools import partial
from heapq import heappop, heappush
from time import process_time
from typing import TYPE_CHECKING

import anyio

from benchmarks.page import Bar, Table, about, publish
from robotsgate import FetchedResponse, PolitenessGate, RobotsChecker
from robotsgate.events import URLSkipped
from robotsgate.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from robotsgate.events import GateEvent
    from robotsgate.politeness import TurnSchedule

_AGENT = "ExampleBot"
_WORKERS = 64
_REQUEST_SECONDS = 0.25
_SLOW = "slow.example"
_RULES = b"User-agent: *\nDisallow: /private\n"
_HOUR = b"User-agent: *\nCrawl-delay: 3600\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.crawls", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--urls", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=120.0)
    options = parser.parse_args(arguments)
    zipf = _zipf(options.hosts, options.urls)
    mixed = [f"https://h{n % 1_000}.example/{n}" for n in range(18_000)]
    mixed += [f"https://{_SLOW}/{n}" for n in range(2_000)]
    random.Random(1).shuffle(mixed)
    patient = partial(Crawl, seconds=60.0, workers=300, window=1_000, patience=60.0)
    crawls = {
        "Zipf, schedule": Crawl(zipf, options.seconds),
        "Zipf, window 10,000, patience 60": Crawl(
            zipf, options.seconds, window=10_000, patience=60.0
        ),
        "Zipf, schedule_hosts": Crawl(zipf, options.seconds, is_frontier=True),
        "one host answers 429": Crawl(mixed, 60.0, workers=300),
        "one host answers 429, window 1,000, patience 60": patient(mixed),
        "one host asks for an hour": Crawl(mixed, 60.0, workers=300, slow_rules=_HOUR),
        "one host asks for an hour, window 1,000, patience 60": patient(
            mixed, slow_rules=_HOUR
        ),
    }
    rows = [(name, *anyio.run(crawl.figures)) for name, crawl in crawls.items()]
    columns = ("crawl", "pages", "of the possible", "µs a page", "short gaps")
    bars = [
        Bar(
            what=f"{name}: pages of the possible",
            value=share,
            bar=bar,
            is_ceiling=False,
        )
        for (name, _, share, *_), bar in zip(
            rows, (0.95, 0.95, 0.98, 1, 1, 1, 1), strict=True
        )
    ]
    table = Table(name="crawls", columns=columns, rows=rows)
    publish([table, *bars], about("robotsgate", "anyio"), page=None)


class Crawl:
    """A crawl with many workers, and the `Fetcher` that simulates the web for it."""

    dials_nothing = True

    def __init__(
        self,
        urls: Sequence[str],
        seconds: float,
        *,
        window: int = 100_000,
        patience: float | None = None,
        is_frontier: bool = False,
        workers: int = _WORKERS,
        slow_rules: bytes = _RULES,
    ) -> None:
        self._urls = urls
        self._seconds = seconds
        self._window = window
        self._patience = patience
        self._is_frontier = is_frontier
        self._skipped: list[tuple[float, str]] = []
        self._workers = workers
        self._slow_rules = slow_rules
        self._clock = ManualClock()
        self._ended: dict[str, float] = {}
        self._pages = self._short_gaps = 0

    async def figures(self) -> tuple[int, float, float, int]:
        """Pages, share of the possible pages, processor µs per page, short gaps."""
        checker = RobotsChecker(user_agent=_AGENT, client=self, clock=self._clock)
        gate = PolitenessGate(checker, _AGENT, on_event=self._on_event)
        async with checker, gate:
            began = process_time()
            schedule = self._schedule(gate)
            async with anyio.create_task_group() as tasks:
                for _ in range(self._workers):
                    tasks.start_soon(self._work, schedule)
                await self._clock.pass_time(self._seconds)
                tasks.cancel_scope.cancel()
            cost = (process_time() - began) / self._pages * 1e6
            await schedule.aclose()
        good = sum(_SLOW not in url for url in self._urls)
        possible = min(good, self._workers / _REQUEST_SECONDS * self._seconds)
        return self._pages, self._pages / possible, cost, self._short_gaps

    async def get(
        self, url: str, headers: object, *, max_bytes: int
    ) -> FetchedResponse:
        """Return the robots.txt of any host."""
        del headers, max_bytes
        await self._clock.wait(_REQUEST_SECONDS)
        body = self._slow_rules if _SLOW in url else _RULES
        return FetchedResponse(status=200, headers=(), body=body, is_decoded=True)

    def _schedule(self, gate: PolitenessGate) -> TurnSchedule:
        if not self._is_frontier:
            source = self._urls if self._patience is None else self._feed()
            return gate.schedule(source, window=self._window, patience=self._patience)
        frontier: dict[str, deque[str]] = defaultdict(deque)
        for url in self._urls:
            frontier[url.split("/")[2]].append(url)
        return gate.schedule_hosts(list(frontier), partial(_next_url, frontier))

    def _on_event(self, event: GateEvent) -> None:
        if isinstance(event, URLSkipped) and event.ready_at is not None:
            heappush(self._skipped, (event.ready_at, str(event.url)))

    async def _feed(self) -> AsyncIterator[str]:
        """All URLs, and the skipped ones again as soon as they are ready."""
        urls = iter(self._urls)
        while True:
            while self._skipped and self._skipped[0][0] <= self._clock.now():
                yield heappop(self._skipped)[1]
            url = next(urls, None)
            if url is not None:
                yield url
            else:
                await self._clock.wait(1.0)

    async def _work(self, schedule: TurnSchedule) -> None:
        async for url, turn in schedule:
            async with turn:
                host = str(url).split("/")[2]
                gap = self._clock.monotonic() - self._ended.get(host, -1.0)
                self._short_gaps += gap < 1.0 - 1e-6  # allows for rounding errors
                await self._clock.wait(_REQUEST_SECONDS)
                if host == _SLOW:
                    turn.report(status=429, retry_after="3600")
                else:
                    self._pages += 1
                self._ended[host] = self._clock.monotonic()


def _zipf(hosts: int, urls: int) -> list[str]:
    weights = [1 / (number + 1) for number in range(hosts)]
    names = random.Random(1).choices(range(hosts), weights, k=urls)
    return [f"https://h{name}.example/{number}" for number, name in enumerate(names)]


def _next_url(frontier: dict[str, deque[str]], host: str) -> str | None:
    return frontier[host].popleft() if frontier[host] else None


if __name__ == "__main__":
    main()
