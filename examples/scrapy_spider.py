"""Make Scrapy obey robots.txt with robotsgate, on a small site on this machine.

    pip install '.[scrapy]'
    python examples/scrapy_spider.py

The site asks for half a second between requests, and disallows its diary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import scrapy
from example_site import serving
from scrapy.crawler import AsyncCrawlerProcess

from robotsgate import DisallowedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response
    from twisted.python.failure import Failure

# --- The spider -------------------------------------------------------------------

SETTINGS = {
    "USER_AGENT": "ExampleBot/1.0 (+https://example.com/bot)",
    "ADDONS": {"robotsgate.integrations.scrapy.RobotsGateAddon": 0},
    "ROBOTSGATE_STORE": "memory:",  # or sqlite:///robots.db, to keep the entries
    "LOG_LEVEL": "ERROR",
}


class ExampleSpider(scrapy.Spider):
    """Visits every reachable page that may be fetched."""

    name = "example"

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Request the start URLs."""
        for url in self.start_urls:
            yield scrapy.Request(url, callback=self.visit, errback=self.refused)

    def visit(self, response: Response) -> Iterator[scrapy.Request]:
        """Follow the links on a page."""
        print(f"got {response.url}")
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, callback=self.visit, errback=self.refused)

    def refused(self, failure: Failure) -> None:
        """Print why a page was not fetched."""
        reason = getattr(failure.value, "__cause__", None)
        if isinstance(reason, DisallowedError):
            print(f"not fetched: {reason.verdict}")


# --- The site ---------------------------------------------------------------------

PAGES = {
    "/robots.txt": "User-agent: *\nDisallow: /diary\nCrawl-delay: 0.5\n",
    "/": '<a href="/about">About</a> <a href="/diary/monday">Diary</a>',
    "/about": '<a href="/">Home</a>',
}


if __name__ == "__main__":
    with serving(PAGES) as origin:
        process = AsyncCrawlerProcess(SETTINGS)
        crawl = process.crawl(ExampleSpider, start_urls=[f"{origin}/"])
        process.start()
