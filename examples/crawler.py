"""Crawl a small site on this machine, obeying its robots.txt and its crawl-delay."""

from __future__ import annotations

import re
from urllib.parse import urljoin

import anyio
import httpx
from example_site import serving

from robotsgate import DisallowedError, RobotsChecker, RobotsError

# --- The crawler ------------------------------------------------------------------

AGENT = "ExampleBot"
USER_AGENT = "ExampleBot/1.0 (+https://example.org/bot)"
DEFAULT_DELAY = 0.05  # a second or more on the real web


async def crawl(start: str) -> None:
    """Visit every page that can be reached from `start` and may be fetched."""
    async with (
        httpx.AsyncClient(headers={"User-Agent": USER_AGENT}) as client,
        RobotsChecker(user_agent=USER_AGENT) as checker,
    ):
        waiting, seen = [start], {start}
        while waiting:
            url = waiting.pop(0)
            try:
                links = await visit(client, checker, url)
            except DisallowedError as error:
                print(f"not {url}: {error.verdict}")
            except RobotsError as error:
                print(f"no page: {error}")
            else:
                print(f"got {url}")
                new_links = dict.fromkeys(link for link in links if link not in seen)
                waiting += new_links
                seen.update(new_links)


async def visit(
    client: httpx.AsyncClient, checker: RobotsChecker, url: str
) -> list[str]:
    """The links of the page at `url`, after the pause that its origin asks for.

    Raises:
        DisallowedError: robots.txt does not let us.
        RobotsError: `url` is no web address.
    """
    verdict = await checker.check(AGENT, url)
    if not verdict:
        raise DisallowedError(verdict)
    delay = await checker.crawl_delay(AGENT, url)
    await anyio.sleep(DEFAULT_DELAY if delay is None else delay)
    page = await client.get(url)
    return [urljoin(url, link) for link in re.findall(r'href="([^"]+)"', page.text)]


# --- The site ---------------------------------------------------------------------

PAGES = {
    "/robots.txt": "User-agent: *\nDisallow: /diary\nCrawl-delay: 0.1\n",
    "/": '<a href="/about">About</a> <a href="/diary/monday">Diary</a>',
    "/about": '<a href="/">Home</a> <a href="mailto:me@example.com">Write</a>',
}


if __name__ == "__main__":
    with serving(PAGES) as origin:
        anyio.run(crawl, f"{origin}/")
