"""Crawl two small sites on this machine; this needs `robotsgate[examples]`."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urldefrag, urljoin, urlsplit

import anyio
import httpx
from example_site import DOWN, PAGES, serving
from selectolax.lexbor import LexborHTMLParser

from robotsgate import (
    DisallowedError,
    PolitenessGate,
    Reason,
    RobotsChecker,
    RobotsError,
    URLLeftOut,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from example_site import Pages

    from robotsgate import GateEvent, Turn

USER_AGENT = "ExampleBot/1.0 (+https://example.org/bot)"

# --- The crawler ------------------------------------------------------------------


class Crawl:
    """Visits every page that links lead to, each in the turn of its host."""

    def __init__(
        self, client: httpx.AsyncClient, tell: Callable[[str, str], object] = print
    ) -> None:
        """Know no URL yet; `tell` gets each URL with the result of its visit."""
        self.client = client
        self.tell = tell
        self.seen: set[str] = set()
        self.to_do = 0
        self.frontier, self.urls = anyio.create_memory_object_stream[str](math.inf)
        self.pool = anyio.Semaphore(20)  # requests at once
        self.again_at: dict[str, float] = {}

    async def run(self, gate: PolitenessGate) -> None:
        """Visit what was added, and what it links to."""
        async with self.urls, anyio.create_task_group() as tasks:
            async for url, turn in gate.schedule(self.urls):
                await self.pool.acquire()
                tasks.start_soon(self.visit, str(url), turn)

    async def visit(self, url: str, turn: Turn) -> None:
        """Get the page, and follow its links."""
        try:
            async with turn:
                page = await self.client.get(url)
                retry_after = page.headers.get("Retry-After")
                turn.report(status=page.status_code, retry_after=retry_after)
        except (httpx.HTTPError, httpx.InvalidURL, RobotsError) as error:
            self.finish(url, f"failed: {error}")
        else:
            if page.status_code == httpx.codes.TOO_MANY_REQUESTS:
                self.seen.discard(url)
                self.add(url)  # in a later turn
            for link in links(page):
                self.add(link)
            self.finish(url, str(page.status_code))
        finally:
            self.pool.release()

    def on_event(self, event: GateEvent) -> None:
        """Finish a URL that the gate leaves out."""
        if isinstance(event, URLLeftOut):
            result = str(event.error)
            if isinstance(event.error, DisallowedError):
                verdict = event.error.verdict
                result = str(verdict)
                if verdict.reason is Reason.UNREACHABLE and verdict.fresh_until:
                    self.again_at[event.url] = verdict.fresh_until
            self.finish(event.url, result)

    def add(self, url: str) -> None:
        """Visit `url`, too, unless it was added before."""
        if url not in self.seen:
            self.seen.add(url)
            self.to_do += 1
            self.frontier.send_nowait(url)

    def finish(self, url: str, result: str) -> None:
        """Tell the result for `url`; end the crawl after the last URL."""
        self.tell(url, result)
        self.to_do -= 1
        if not self.to_do:
            self.frontier.close()


async def crawl(start: str) -> dict[str, float]:
    """Crawl from `start`; returns when to ask again for which URLs, epoch seconds."""
    async with (
        httpx.AsyncClient(headers={"User-Agent": USER_AGENT}) as client,
        RobotsChecker(user_agent=USER_AGENT) as checker,
    ):
        run = Crawl(client)
        run.add(start)
        async with PolitenessGate(
            checker,
            "ExampleBot",
            default_delay=0.05,  # a second or more on the real web
            host_of=lambda url: urlsplit(url).netloc,  # each port plays a host
            on_event=run.on_event,
        ) as gate:
            await run.run(gate)
    return run.again_at


# --- The links, and the sites -----------------------------------------------------


def links(page: httpx.Response) -> list[str]:
    """The URLs that a page, a sitemap or a redirect leads to."""
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
    """The pages of a site that links to another one."""
    about = (
        f'<a href="/#top">Home</a> <a href="{other_site}/">Friends</a> <a href="//[">'
    )
    return {**PAGES, "/about": about}


if __name__ == "__main__":
    with serving(DOWN) as other_site, serving(pages(other_site)) as site:
        for url, moment in anyio.run(crawl, f"{site}/").items():
            print(f"{url}: to be asked about again at epoch second {moment:.0f}")
