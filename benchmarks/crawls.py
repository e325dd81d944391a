"""Measures how much of a crawl a schedule does in virtual time, and what that costs.

    pip install -e '.[bench]'
    python -m benchmarks.crawls
    python -m benchmarks.crawls --hosts 100000 --urls 1000000 --seconds 300

The URLs of the hosts follow Zipf's law. 64 workers take 0.25 s for each request, so
they could do 256 in a second; the delay of each host is a second. With patience, URLs
that were left out are fed in again when they are ready. Then one host has a tenth of
the URLs, and answers 429 or asks for an hour between requests.
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
from robotsgate import FetchedResponse, PolitenessGate, RobotsChecker, URLLeftOut
from robotsgate.testing import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from robotsgate import GateEvent, TurnSchedule

_AGENT = "ExampleBot"
_WORKERS = 64
_REQUEST_SECONDS = 0.25
_SLOW = "slow.example"
_RULES = b"User-agent: *\nDisallow: /private\n"
_HOUR = b"User-agent: *\nCrawl-delay: 3600\n"


def main(words: Sequence[str] | None = None) -> None:
    """Do as the command line says."""
    arguments = argparse.ArgumentParser(
        prog="python -m benchmarks.crawls", description=__doc__.partition("\n")[0]
    )
    arguments.add_argument("--hosts", type=int, default=10_000)
    arguments.add_argument("--urls", type=int, default=100_000)
    arguments.add_argument("--seconds", type=float, default=120.0)
    given = arguments.parse_args(words)
    zipf = _zipf(given.hosts, given.urls)
    still = [f"https://h{n % 1_000}.example/{n}" for n in range(18_000)]
    still += [f"https://{_SLOW}/{n}" for n in range(2_000)]
    random.Random(1).shuffle(still)
    patient = partial(Crawl, seconds=60.0, workers=300, window=1_000, patience=60.0)
    crawls = {
        "Zipf, schedule": Crawl(zipf, given.seconds),
        "Zipf, window 10,000, patience 60": Crawl(
            zipf, given.seconds, window=10_000, patience=60.0
        ),
        "Zipf, schedule_hosts": Crawl(zipf, given.seconds, is_frontier=True),
        "one host answers 429": Crawl(still, 60.0, workers=300),
        "one host answers 429, window 1,000, patience 60": patient(still),
        "one host asks for an hour": Crawl(still, 60.0, workers=300, slow_rules=_HOUR),
        "one host asks for an hour, window 1,000, patience 60": patient(
            still, slow_rules=_HOUR
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
    """A crawl by many workers; also the web that it sees, as a `Fetcher`."""

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
        self._left_out: list[tuple[float, str]] = []
        self._workers = workers
        self._slow_rules = slow_rules
        self._clock = ManualClock()
        self._ended: dict[str, float] = {}
        self._pages = self._short_gaps = 0

    async def figures(self) -> tuple[int, float, float, int]:
        """Pages, their share of the possible, µs of the processor each, short gaps."""
        checker = RobotsChecker(user_agent=_AGENT, client=self, clock=self._clock)
        gate = PolitenessGate(checker, _AGENT, on_event=self._keep)
        async with checker, gate:
            began = process_time()
            schedule = self._schedule(gate)
            async with anyio.create_task_group() as tasks:
                for _ in range(self._workers):
                    tasks.start_soon(self._work, schedule)
                await self._clock.pass_time(self._seconds)
                tasks.cancel_scope.cancel()
            await schedule.aclose()
        good = sum(_SLOW not in url for url in self._urls)
        possible = min(good, self._workers / _REQUEST_SECONDS * self._seconds)
        cost = (process_time() - began) / self._pages * 1e6
        return self._pages, self._pages / possible, cost, self._short_gaps

    async def get(
        self, url: str, headers: object, *, max_bytes: int
    ) -> FetchedResponse:
        """The robots.txt of any host."""
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

    def _keep(self, event: GateEvent) -> None:
        if isinstance(event, URLLeftOut) and event.ready_at is not None:
            heappush(self._left_out, (event.ready_at, str(event.url)))

    async def _feed(self) -> AsyncIterator[str]:
        """The URLs, and those that were left out when they are ready."""
        urls = iter(self._urls)
        while True:
            while self._left_out and self._left_out[0][0] <= self._clock.now():
                yield heappop(self._left_out)[1]
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
                self._short_gaps += gap < 1.0 - 1e-6  # a second, and rounding
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
