"""Crawl the hosts of some URLs; needs the extra `examples`.

python examples/crawler.py https://shop.example/

Ctrl-C stops it. Without arguments, it continues with the URLs in frontier.txt.
"""

import signal
import sys
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urldefrag, urljoin, urlsplit

import anyio
import httpx
from selectolax.lexbor import LexborHTMLParser

from robotsgate import (
    PolitenessGate,
    RetriesExhaustedError,
    RobotsChecker,
    RobotsError,
)
from robotsgate.events import GateEvent, URLSkipped
from robotsgate.politeness import TurnSchedule

USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"

frontier: dict[str, None] = {}  # the URLs that are not done yet


def links(page: httpx.Response) -> list[str]:
    """The URLs that a page, a sitemap or a redirect points to."""
    if page.is_error:
        return []
    if page.next_request is not None:
        return [str(page.next_request.url)]
    tree = LexborHTMLParser(page.text)
    hrefs = [link.attributes["href"] or "" for link in tree.css("a[href]")]
    urls = []
    for href in hrefs + [location.text() for location in tree.css("loc")]:
        with suppress(ValueError):  # a link like http://[bad
            urls.append(urldefrag(urljoin(str(page.url), href)).url)
    return [url for url in urls if url.startswith("http")]


async def crawl(
    gate: PolitenessGate,
    client: httpx.AsyncClient,
    *start: str,
    tell: Callable[[int, str], object] = print,
) -> None:
    """Visit every page that is reachable from `start`, on the same hosts."""
    schedule = gate.schedule(start, retries=3)
    seen = set(start)
    frontier.update(dict.fromkeys(start))
    hosts = {urlsplit(url).netloc for url in start}

    async def work() -> None:
        async for url, turn in schedule:
            try:
                async with turn:
                    page = await client.get(str(url))
                    turn.report(page)
                    for link in links(page):
                        if link not in seen and urlsplit(link).netloc in hosts:
                            seen.add(link)
                            frontier[link] = None
                            schedule.add(link)
                if page.status_code not in {429, 503}:
                    frontier.pop(str(url), None)
                tell(page.status_code, str(url))
            except (httpx.HTTPError, httpx.InvalidURL, RobotsError) as error:
                print("failed:", url, repr(error))

    await run_workers(schedule, work)


async def run_workers(
    schedule: TurnSchedule, work: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Run 20 workers until `schedule` ends, and close it at Ctrl-C or SIGTERM."""

    async def stop_at_signal() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
            await anext(signals)
            await schedule.aclose()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop_at_signal)
        async with anyio.create_task_group() as workers:
            for _ in range(20):  # concurrent requests
                workers.start_soon(work)
        tasks.cancel_scope.cancel()


def note_skipped(event: GateEvent) -> None:
    """Keep only the URLs that another run can try again."""
    if isinstance(event, URLSkipped):
        print("skipped:", event.error or f"{event.url} was still waiting")
        has_failed = isinstance(event.error, RetriesExhaustedError)
        if not has_failed and event.ready_at is None:
            frontier.pop(str(event.url), None)


async def main(*start: str) -> None:
    """Crawl from `start`."""
    async with (
        httpx.AsyncClient(headers={"User-Agent": USER_AGENT}, timeout=30) as client,
        RobotsChecker(user_agent=USER_AGENT) as checker,
        PolitenessGate(checker, "ExampleBot", on_event=note_skipped) as gate,
    ):
        await crawl(gate, client, *start)


if __name__ == "__main__":
    file = Path("frontier.txt")
    file.touch()  # there is none before the first run
    urls = sys.argv[1:] or file.read_text(encoding="utf-8").split()
    try:
        anyio.run(main, *urls)
    finally:
        file.write_text("\n".join(frontier), encoding="utf-8")
