"""Crawls with real spiders, in this process or, with a Twisted reactor, in another.

A reactor can be installed once in a process and never started again, so the crawls of
this process run without one, as Scrapy allows. The other process is this module, run
as a program: it takes a `Plan` as JSON and prints a `Report`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import scrapy
from scrapy.crawler import AsyncCrawlerProcess, AsyncCrawlerRunner, Crawler

from robotsgate import FetchFailedError
from robotsgate.integrations._scrapy_downloader import DownloaderFetcher

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from scrapy.http import Response
    from twisted.python.failure import Failure

BUILT_IN = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"
MIDDLEWARES: dict[object, int | None] = {
    BUILT_IN: None,
    "robotsgate.integrations.scrapy.RobotsGateMiddleware": 100,
}
"""What a user of ours writes into the settings."""

SETTINGS = {
    "DOWNLOADER_MIDDLEWARES": MIDDLEWARES,
    "LOG_ENABLED": False,
    "ROBOTSTXT_OBEY": True,
    "TELNETCONSOLE_ENABLED": False,
}
_PATIENCE_SECONDS = 60
_MAX_BYTES = 1_000


@dataclass(kw_only=True)
class Plan:
    """What a process of its own is to do.

    Attributes:
        urls: the pages to crawl, all at once.
        settings: as JSON.
        meta: of each request.
        fetches: URLs to get by a `Fetcher` instead, for the ways in which it fails.
    """

    urls: Sequence[str] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    fetches: Sequence[str] = ()


@dataclass(kw_only=True)
class Report:
    """What came of a crawl.

    Attributes:
        pages: URLs of the responses, in order of arrival.
        refused: what the errors say, in the same way.
        fetched: for each of the fetches the status and the size, or where it failed.
        stats: those that are numbers.
        meta_keys: the keys in the meta of all responses.
    """

    pages: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    stats: dict[str, float] = field(default_factory=dict)
    meta_keys: list[str] = field(default_factory=list)


class CrawlSpider(scrapy.Spider):
    """Crawls what it is given; `errors` has the exceptions themselves."""

    name = "spider"

    def __init__(
        self,
        *,
        requests: Sequence[scrapy.Request] = (),
        fetches: Sequence[str] = (),
        listeners: dict[object, Callable[..., object]] | None = None,
        **options: object,
    ) -> None:
        super().__init__(**options)
        self._requests = requests
        self._fetches = fetches
        self.listeners = listeners or {}
        self.report = Report()
        self.errors: list[BaseException] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler, *_: object, **options: Any) -> CrawlSpider:  # noqa: ANN401 (those of __init__)
        spider: CrawlSpider = super().from_crawler(crawler, **options)
        for signal, listener in spider.listeners.items():
            crawler.signals.connect(listener, signal)
        return spider

    async def start(self) -> AsyncIterator[scrapy.Request]:
        fetcher = DownloaderFetcher(self.crawler, seconds=3.0)
        for url in self._fetches:
            try:
                got = await fetcher.get(url, [], max_bytes=_MAX_BYTES)
                size = min(len(got.body), _MAX_BYTES)  # what came at once may be more
                self.report.fetched.append(f"{got.status}, {size} bytes")
            except FetchFailedError as error:
                self.report.fetched.append(error.kind.value)
        for request in self._requests:
            yield request.replace(callback=self.keep, errback=self.keep_error)

    async def keep(self, response: Response) -> None:
        self.report.pages.append(response.url)
        self.report.meta_keys.extend(response.meta)

    def keep_error(self, failure: Failure) -> None:
        self.errors.append(failure.value)
        self.report.refused.append(str(failure.value))


async def crawl(
    *pages: scrapy.Request | str,
    settings: dict[str, Any] | None = None,
    **options: Any,  # noqa: ANN401 (those of the spider)
) -> CrawlSpider:
    """The spider after it has crawled `pages` without a reactor.

    Args:
        pages: all sent at once; a URL may stand for its request.
        settings: beside those that turn our middleware on.
        options: of the spider.
    """
    runner = AsyncCrawlerRunner(
        {**SETTINGS, "TWISTED_REACTOR_ENABLED": False, **(settings or {})}
    )
    crawler = runner.create_crawler(CrawlSpider)
    await runner.crawl(crawler, requests=_requests(pages), **options)
    return _reported(crawler)


def crawl_elsewhere(plan: Plan) -> Report:
    """What comes of `plan` in a process of its own, with the asyncio reactor."""
    done = subprocess.run(  # noqa: S603 (our own words)
        [sys.executable, "-m", __name__],
        cwd=Path(__file__).parents[2],
        input=json.dumps(asdict(plan)),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=_PATIENCE_SECONDS,
    )
    return Report(**json.loads(done.stdout))


def _requests(pages: Sequence[scrapy.Request | str]) -> list[scrapy.Request]:
    return [
        scrapy.Request(page, dont_filter=True) if isinstance(page, str) else page
        for page in pages
    ]


def _reported(crawler: Crawler) -> CrawlSpider:
    spider = crawler.spider
    assert isinstance(spider, CrawlSpider)
    spider.report.stats = {
        name: value
        for name, value in crawler.stats.get_stats().items()
        if isinstance(value, int | float)
    }
    return spider


def _main() -> None:
    plan = Plan(**json.load(sys.stdin))
    process = AsyncCrawlerProcess({**SETTINGS, **plan.settings})
    crawler = process.create_crawler(CrawlSpider)
    requests = [page.replace(meta=plan.meta) for page in _requests(plan.urls)]
    process.crawl(crawler, requests=requests, fetches=plan.fetches)
    process.start()
    json.dump(asdict(_reported(crawler).report), sys.stdout)


if __name__ == "__main__":
    _main()
