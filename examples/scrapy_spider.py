"""Let Scrapy obey robots.txt with robotsgate, on a small site on this machine.

    pip install 'robotsgate[scrapy]'
    python examples/scrapy_spider.py

The site asks for half a second between two requests, and keeps its diary to itself.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import scrapy
from scrapy.crawler import AsyncCrawlerProcess

from robotsgate import DisallowedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from scrapy.http import Response
    from twisted.python.failure import Failure

# --- The spider -------------------------------------------------------------------

SETTINGS = {
    "USER_AGENT": "ExampleBot/1.0 (+https://example.org/bot)",
    "ROBOTSTXT_OBEY": True,
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
        "robotsgate.integrations.scrapy.RobotsGateMiddleware": 100,
    },
    "ROBOTSGATE_STORE": "memory:",  # or sqlite:///robots.db, for the next crawl too
    "LOG_LEVEL": "ERROR",
}


class ExampleSpider(scrapy.Spider):
    """Visits every page that can be reached and may be fetched."""

    name = "example"

    async def start(self) -> AsyncIterator[scrapy.Request]:
        """Begin with the start page."""
        for url in self.start_urls:
            yield scrapy.Request(url, callback=self.visit, errback=self.refused)

    def visit(self, response: Response) -> Iterator[scrapy.Request]:
        """Follow the links of a page."""
        print(f"got {response.url}")
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, callback=self.visit, errback=self.refused)

    def refused(self, failure: Failure) -> None:
        """Say why a page was not fetched."""
        reason = getattr(failure.value, "__cause__", None)
        if isinstance(reason, DisallowedError):
            print(f"not fetched: {reason.verdict}")


# --- The site ---------------------------------------------------------------------

PAGES = {
    "/robots.txt": "User-agent: *\nDisallow: /diary\nCrawl-delay: 0.5\n",
    "/": '<a href="/about">About</a> <a href="/diary/monday">Diary</a>',
    "/about": '<a href="/">Home</a>',
}


class Handler(BaseHTTPRequestHandler):
    """Serves `PAGES`."""

    def do_GET(self) -> None:
        """Answer with the page, or with a 404."""
        page = PAGES.get(self.path)
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write((page or "").encode())

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serving() -> Iterator[str]:
    """The origin of the site, which runs until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    with serving() as origin:
        process = AsyncCrawlerProcess(SETTINGS)
        crawl = process.crawl(ExampleSpider, start_urls=[f"{origin}/"])
        process.start()
