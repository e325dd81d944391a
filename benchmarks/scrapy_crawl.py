"""Measures what obeying robots.txt costs in Scrapy, with its middleware and ours.

    pip install -e '.[bench]'
    python -m benchmarks.scrapy_crawl --page docs/explanation/how-fast.md

Each turn is a separate crawl without a Twisted reactor, which could be started only
once per process.
"""

from __future__ import annotations

import argparse
import asyncio
from functools import partial
from pathlib import Path
from time import process_time
from typing import TYPE_CHECKING, ClassVar

import scrapy
from scrapy.crawler import AsyncCrawlerRunner
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware

from benchmarks.cold import loopback_origins
from benchmarks.page import Bar, Table, about, publish
from benchmarks.timing import best_of_turns, without_collector
from robotsgate.integrations.scrapy import RobotsGateMiddleware

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

# Many short turns, so that at least one is undisturbed.
_PAGES, _REPEATS = 100, 30

_NONE, _THEIRS, _OURS = "no middleware", "Scrapy's own", "RobotsGateMiddleware"
_SETTINGS: dict[str, dict[str, object]] = {
    _NONE: {},
    _THEIRS: {"ROBOTSTXT_OBEY": True},
    _OURS: {
        "ROBOTSTXT_OBEY": True,
        "DOWNLOADER_MIDDLEWARES": {
            RobotsTxtMiddleware: None,
            RobotsGateMiddleware: 100,
        },
    },
}


class _Spider(scrapy.Spider):
    """Calls only the middleware for every page, then crawls all pages."""

    name = "benchmark"
    urls: ClassVar[Sequence[str]] = ()

    async def start(self) -> AsyncIterator[scrapy.Request]:
        self.middleware_seconds = 0.0
        for kind in (RobotsTxtMiddleware, RobotsGateMiddleware):
            middleware = self.crawler.get_downloader_middleware(kind)
            if middleware is not None:
                requests = [scrapy.Request(url) for url in self.urls]
                await middleware.process_request(requests[0])
                began = process_time()
                for request in requests:
                    await middleware.process_request(request)
                self.middleware_seconds = process_time() - began
        self.began = process_time()
        for url in self.urls:
            yield scrapy.Request(url)

    def parse(self, response: scrapy.http.Response) -> None:
        """Ignore the page."""

    def closed(self, _reason: str) -> None:
        self.crawl_seconds = process_time() - self.began


async def _turn(settings: dict[str, object], urls: Sequence[str]) -> tuple[float, ...]:
    """Processor seconds for the pages, and for the middleware alone."""
    common = {"LOG_ENABLED": False, "TWISTED_REACTOR_ENABLED": False}
    runner = AsyncCrawlerRunner({**common, **settings})
    crawler = runner.create_crawler(_Spider)
    with without_collector():
        await runner.crawl(crawler, urls=urls)
    count = crawler.stats.get_value("response_received_count")
    if count < len(urls):
        raise RuntimeError(f"expected {len(urls)} pages, got {count}")
    return crawler.spider.crawl_seconds, crawler.spider.middleware_seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scrapy_crawl")
    add = parser.add_argument
    add("--pages", type=int, default=_PAGES)
    add("--repeats", type=int, default=_REPEATS)
    add("--page", type=Path, metavar="FILE", help="write tables here")
    options = parser.parse_args(arguments)
    with loopback_origins(1) as [origin]:
        urls = [
            f"{origin}/news/article-{number}.html" for number in range(options.pages)
        ]
        turns = {
            name: partial(_turn, settings, urls) for name, settings in _SETTINGS.items()
        }
        best = asyncio.run(best_of_turns(turns, repeats=options.repeats))
    table = Table(
        name="crawl",
        columns=("robots.txt by", "a page, µs", "middleware alone, µs"),
        rows=[
            (name, *(seconds / options.pages * 1e6 for seconds in figures))
            for name, figures in best.items()
        ],
        notes=(
            "Processor time of a crawl of one known origin, and of one question in it.",
        ),
    )
    bar = Bar(
        what="a question about a known origin, compared with Scrapy's own middleware",
        value=best[_OURS][1] / best[_THEIRS][1],
        bar=1,
    )
    run = about("robotsgate", "scrapy", "protego", "aiohttp")
    run |= {"turns": f"the best of {options.repeats}"}
    publish([table, bar], run, page=options.page, prefix="scrapy ")


if __name__ == "__main__":
    main()
