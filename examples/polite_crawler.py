"""Crawl six sites on this machine politely, and draw what they saw.

    pip install 'robotsgate[examples]'
    python examples/polite_crawler.py

politeness.png has a row for each site and a bar for each request.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

import anyio
import httpx
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from polite_sites import Site, serving
from rich.progress import Progress
from selectolax.lexbor import LexborHTMLParser

from robotsgate import GateEvent, PolitenessGate, RobotsChecker, URLLeftOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate import Turn

USER_AGENT = "ExampleBot/1.0 (+https://example.org/bot)"
DEFAULT_DELAY = 0.2  # a second or more on the real web

PICTURE = Path("politeness.png")
COLOURS = {"robots.txt": "#9a9890", "page": "#2a78d6", "429": "#c6362c"}


class Crawl:
    """Visits all pages that sitemaps and links name, each in the turn of its host."""

    def __init__(self, client: httpx.AsyncClient, progress: Progress) -> None:
        """Know no URL yet."""
        self.client = client
        self.progress = progress
        self.task = progress.add_task("Pages")
        self.seen: set[str] = set()
        self.to_do = 0
        self.frontier, self.urls = anyio.create_memory_object_stream[str](math.inf)

    def add(self, url: str) -> None:
        """Visit `url` too, unless that was done before."""
        if url not in self.seen:
            self.seen.add(url)
            self.to_do += 1
            self.frontier.send_nowait(url)

    def finish_one(self) -> None:
        """One URL is done; after the last one there are no more."""
        self.to_do -= 1
        done = len(self.seen) - self.to_do
        self.progress.update(self.task, completed=done, total=len(self.seen))
        if not self.to_do:
            self.frontier.close()

    def on_event(self, event: GateEvent) -> None:
        """A URL that the gate leaves out is done too."""
        if isinstance(event, URLLeftOut):
            self.progress.console.print(f"{event.url}: {event.error}")
            self.finish_one()

    async def visit(self, url: str, turn: Turn) -> None:
        """Get the page, and follow its links; come back later after a 429."""
        async with turn:
            page = await self.client.get(url)
            retry_after = page.headers.get("Retry-After")
            turn.report(status=page.status_code, retry_after=retry_after)
        if page.status_code == httpx.codes.TOO_MANY_REQUESTS:
            self.seen.discard(url)
            self.add(url)  # in a later turn
        for link in links(page):
            self.add(urljoin(url, link))
        self.finish_one()


async def crawl(sites: Sequence[Site], progress: Progress) -> None:
    """Begin with the sitemaps of `sites`, and end when all is visited."""
    async with (
        httpx.AsyncClient(headers={"User-Agent": USER_AGENT}) as client,
        RobotsChecker(user_agent=USER_AGENT) as checker,
    ):
        crawl = Crawl(client, progress)
        async with (
            PolitenessGate(
                checker,
                "ExampleBot",
                default_delay=DEFAULT_DELAY,
                host_of=lambda url: urlsplit(url).netloc,  # each port plays a host
                on_event=crawl.on_event,
            ) as gate,
            anyio.create_task_group() as tasks,
        ):
            await checker.prefetch([site.url for site in sites])
            for site in sites:
                for sitemap in await checker.sitemaps(site.url):
                    crawl.add(sitemap)
            async for url, turn in gate.schedule(crawl.urls):
                tasks.start_soon(crawl.visit, str(url), turn)


def links(page: httpx.Response) -> list[str]:
    """What a page, or a sitemap, leads to."""
    tree = LexborHTMLParser(page.text)
    hrefs = [link.attributes["href"] or "" for link in tree.css("a[href]")]
    return hrefs + [location.text() for location in tree.css("loc")]


def draw(sites: Sequence[Site], path: Path) -> None:
    """A row for each site: its requests over time, by what it answered."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    axes = figure.subplots()
    first = min(site.log[0].began_at for site in sites)
    for row, site in enumerate(sites):
        for request in site.log:
            axes.barh(
                row,
                request.ended_at - request.began_at,
                left=request.began_at - first,
                color=COLOURS[request.kind],
            )
    axes.set_yticks(range(len(sites)), [site.title for site in sites])
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    handles = [Patch(color=colour, label=kind) for kind, colour in COLOURS.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    figure.savefig(path)


if __name__ == "__main__":
    with serving() as sites, Progress() as progress:
        anyio.run(crawl, sites, progress)
        draw(sites, PICTURE)
        print(f"{PICTURE} shows when each site was asked")
