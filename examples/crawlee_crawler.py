"""Crawl a small site with crawlee.

pip install '.[crawlee]' 'crawlee[beautifulsoup]'
python examples/crawlee_crawler.py
"""

from __future__ import annotations

import asyncio

from crawlee import ConcurrencySettings
from crawlee.crawlers import BeautifulSoupCrawler, BeautifulSoupCrawlingContext
from crawlee.http_clients import ImpitHttpClient
from crawlee.storage_clients import MemoryStorageClient
from example_site import PAGES, serving

from robotsgate import RobotsChecker
from robotsgate.integrations.crawlee import obey_robots

USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"


async def main(origin: str) -> None:
    """Follow the links on a site."""
    crawler = BeautifulSoupCrawler(
        # Otherwise, the client sends a browser's headers.
        http_client=ImpitHttpClient(browser=None, headers={"User-Agent": USER_AGENT}),
        concurrency_settings=ConcurrencySettings(
            max_concurrency=1, desired_concurrency=1
        ),
        storage_client=MemoryStorageClient(),
        configure_logging=False,
    )

    @crawler.router.default_handler
    async def handle(context: BeautifulSoupCrawlingContext) -> None:
        print(f"{context.request.url.removeprefix(origin)}: {context.soup.text}")
        await context.enqueue_links()

    @crawler.on_skipped_request
    async def note_skip(url: str, reason: str) -> None:
        print(f"{url.removeprefix(origin)}: skipped ({reason})")

    async with RobotsChecker(user_agent=USER_AGENT) as checker:
        skipped = obey_robots(crawler, checker, "ExampleBot")
        await crawler.run([f"{origin}/", f"{origin}/today"])
        print({reason.value: count for reason, count in skipped.items() if reason})


if __name__ == "__main__":
    with serving(PAGES) as site:
        asyncio.run(main(site))
