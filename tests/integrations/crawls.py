"""Crawls with real spiders: in this process, or in another with a Twisted reactor.

A reactor cannot be restarted within a process, so crawls in this process run without
one, which Scrapy allows. The other process runs this module as a program: it reads a
`Plan` as JSON and prints a `Report`.
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

from robotsgate import Policy
from robotsgate.fetching import failure_kind
from robotsgate.integrations.scrapy import DownloaderFetcher

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from scrapy.http import Response
    from twisted.python.failure import Failure

BUILT_IN = "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware"

SETTINGS = {
    "ADDONS": {"robotsgate.integrations.scrapy.RobotsGateAddon": 0},
    "LOG_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
}
_TIMEOUT_SECONDS = 60
_MAX_BYTES = 1_000


@dataclass(kw_only=True)
class Plan:
    """The work for the other process.

    Attributes:
        urls: the pages to crawl, all requested at once.
        settings: Scrapy's; must be serializable as JSON.
        meta: each request's meta.
        fetches: URLs to get with a `Fetcher` instead, to see how it fails, with the
            seconds that each may take.
    """

    urls: Sequence[str] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    meta: dict[str, Any] = field(default_factory=dict)
    fetches: dict[str, float] = field(default_factory=dict)


@dataclass(kw_only=True)
class Report:
    """The outcome of a crawl.

    Attributes:
        pages: URLs of the responses, in order of arrival.
        refused: error messages, in order of arrival.
        fetched: for each fetch, the status and size, or the kind of failure.
        stats: the numeric ones.
        meta_keys: the keys of all responses' meta.
    """

    pages: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    stats: dict[str, float] = field(default_factory=dict)
    meta_keys: list[str] = field(default_factory=list)


class CrawlSpider(scrapy.Spider):
    """Crawls the given requests; `errors` contains the exceptions themselves."""

    name = "spider"

    def __init__(
        self,
        *,
        requests: Sequence[scrapy.Request] = (),
        fetches: dict[str, float] | None = None,
        listeners: dict[object, Callable[..., object]] | None = None,
        **options: object,
    ) -> None:
        super().__init__(**options)
        self._requests = requests
        self._fetches = fetches or {}
        self.listeners = listeners or {}
        self.report = Report()
        self.errors: list[BaseException] = []

    @classmethod
    def from_crawler(cls, crawler: Crawler, *_: object, **options: Any) -> CrawlSpider:  # noqa: ANN401 (__init__'s)
        spider: CrawlSpider = super().from_crawler(crawler, **options)
        for signal, listener in spider.listeners.items():
            crawler.signals.connect(listener, signal)
        return spider

    async def start(self) -> AsyncIterator[scrapy.Request]:
        for url, seconds in self._fetches.items():
            fetcher = DownloaderFetcher(self.crawler, Policy(fetch_deadline=seconds))
            try:
                response = await fetcher.get(url, [], max_bytes=_MAX_BYTES)
                size = min(len(response.body), _MAX_BYTES)  # a fetcher may return more
                self.report.fetched.append(f"{response.status}, {size} bytes")
            except Exception as error:  # noqa: BLE001 (Scrapy's have no common base)
                self.report.fetched.append(failure_kind(error).value)
        for request in self._requests:
            yield request.replace(callback=self.record_page, errback=self.record_error)

    async def record_page(self, response: Response) -> None:
        self.report.pages.append(response.url)
        self.report.meta_keys.extend(response.meta)

    def record_error(self, failure: Failure) -> None:
        self.errors.append(failure.value)
        self.report.refused.append(str(failure.value))


async def crawl(
    *pages: scrapy.Request | str,
    settings: dict[str, Any] | None = None,
    **options: Any,  # noqa: ANN401 (the spider's)
) -> CrawlSpider:
    """Crawl `pages` without a reactor, and return the spider.

    Args:
        pages: requests or URLs, all sent at once.
        settings: in addition to those that enable our middleware.
        options: the spider's.
    """
    runner = AsyncCrawlerRunner(
        {**SETTINGS, "TWISTED_REACTOR_ENABLED": False, **(settings or {})}
    )
    crawler = runner.create_crawler(CrawlSpider)
    await runner.crawl(crawler, requests=_requests(pages), **options)
    return _finished_spider(crawler)


def crawl_in_subprocess(plan: Plan) -> Report:
    """Run `plan` in another process, with the asyncio reactor."""
    completed = subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-m", __name__],
        cwd=Path(__file__).parents[2],
        input=json.dumps(asdict(plan)),
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=_TIMEOUT_SECONDS,
    )
    return Report(**json.loads(completed.stdout))


def _requests(pages: Sequence[scrapy.Request | str]) -> list[scrapy.Request]:
    return [
        scrapy.Request(page, dont_filter=True) if isinstance(page, str) else page
        for page in pages
    ]


def _finished_spider(crawler: Crawler) -> CrawlSpider:
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
    json.dump(asdict(_finished_spider(crawler).report), sys.stdout)


if __name__ == "__main__":
    _main()
