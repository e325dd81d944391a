"""Crawl two small sites on this machine; needs the extra `examples`."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin, urlsplit

import anyio
import httpx
from example_site import DOWN, PAGES, serving
from selectolax.lexbor import LexborHTMLParser

from robotsgate import PolitenessGate, RobotsChecker, RobotsError
from robotsgate.events import URLSkipped

if TYPE_CHECKING:
    from collections.abc import Callable

    from example_site import Pages

    from robotsgate.events import GateEvent

USER_AGENT = "ExampleBot/1.0 (+https://example.org/bot)"

# --- The crawler ------------------------------------------------------------------


async def crawl(
    gate: PolitenessGate,
    client: httpx.AsyncClient,
    *start: str,
    tell: Callable[[str, str], object] = print,
) -> None:
    """Visit every page reachable from `start`, with a turn for each request."""
    schedule = gate.schedule()
    tries: Counter[str] = Counter()

    def add(url: str, most: int = 1) -> None:
        if tries[url] < most:
            tries[url] += 1
            schedule.add(url)

    async def work() -> None:
        async for url, turn in schedule:
            try:
                async with turn:
                    page = await client.get(str(url))
                    turn.report(page)
                    if page.status_code == httpx.codes.TOO_MANY_REQUESTS:
                        add(str(url), most=5)  # when the host is ready again
                    for link in links(page):
                        add(link)
                tell(str(url), str(page.status_code))
            except (httpx.HTTPError, httpx.InvalidURL, RobotsError) as error:
                tell(str(url), f"failed: {error}")

    for url in start:
        add(url)
    async with anyio.create_task_group() as tasks:
        for _ in range(20):  # concurrent requests
            tasks.start_soon(work)


# --- The links, and the sites -----------------------------------------------------


def links(page: httpx.Response) -> list[str]:
    """The URLs that a page, a sitemap or a redirect points to."""
    if page.next_request is not None:
        return [str(page.next_request.url)]
    tree = LexborHTMLParser(page.text)
    hrefs = [link.attributes["href"] or "" for link in tree.css("a[href]")]
    urls = []
    for href in hrefs + [location.text() for location in tree.css("loc")]:
        with suppress(ValueError):  # a link like http://[
            urls.append(urldefrag(urljoin(str(page.url), href)).url)
    return urls


def pages(other_site: str) -> Pages:
    """The pages of a site that links to `other_site`."""
    about = (
        f'<a href="/#top">Home</a> <a href="{other_site}/">Friends</a> <a href="//[">'
    )
    return {**PAGES, "/about": about}


async def main(start: str) -> None:
    """Crawl from `start`, and print the outcome for each URL."""

    def on_event(event: GateEvent) -> None:
        if isinstance(event, URLSkipped):
            print(event.error)
            if event.ready_at is not None:
                print(f"    try it again at epoch second {event.ready_at:.0f}")

    async with (
        httpx.AsyncClient(headers={"User-Agent": USER_AGENT}) as client,
        RobotsChecker(user_agent=USER_AGENT) as checker,
        PolitenessGate(
            checker,
            "ExampleBot",
            default_delay=0.05,  # use at least a second on real sites
            host_of=lambda url: urlsplit(url).netloc,  # each port plays a host
            on_event=on_event,
        ) as gate,
    ):
        await crawl(gate, client, start)


if __name__ == "__main__":
    with serving(DOWN) as other_site, serving(pages(other_site)) as site:
        anyio.run(main, f"{site}/")
