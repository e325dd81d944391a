"""A uniform way to run crawlee crawlers; import it only if crawlee is installed."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crawlee import ConcurrencySettings
from crawlee.crawlers import (
    BasicCrawler,
    BeautifulSoupCrawler,
    FileDownloadCrawler,
    HttpCrawler,
)
from crawlee.http_clients import (
    CurlImpersonateHttpClient,
    HttpxHttpClient,
    ImpitHttpClient,
)
from crawlee.request_loaders import ThrottlingRequestManager
from crawlee.storage_clients import MemoryStorageClient
from crawlee.storages import RequestQueue

from robotsgate.integrations.crawlee import obey_robots
from tests.checking.builders import AGENT
from tests.integrations.chromium import LAUNCH_OPTIONS

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Awaitable, Callable

    from crawlee.crawlers import BasicCrawlingContext

    from robotsgate import PolitenessGate, Reason, RobotsChecker

_numbers = itertools.count()


@dataclass(kw_only=True)
class Crawl:
    """A crawler that obeys robots.txt, and the outcome of its requests.

    Attributes:
        skipped: what `obey_robots` returned.
        pages: URLs after redirects, in the order in which they were handled.
        skips: the arguments of the `on_skipped_request` calls, in order.
        failed: URLs that failed.
    """

    crawler: BasicCrawler[Any, Any]
    skipped: Counter[Reason | None]
    pages: list[str] = field(default_factory=list)
    skips: list[tuple[str, str]] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


async def new_crawl(
    kind: str,
    checker: RobotsChecker,
    *,
    gate: PolitenessGate | None = None,
    handle: Callable[[Any], Awaitable[object]] | None = None,
    **options: Any,  # noqa: ANN401 (the crawler's)
) -> Crawl:
    """Prepare a crawl by one of the KINDS; `handle` is called for each page."""
    storage = MemoryStorageClient()
    options.setdefault("request_manager", await new_queue())
    crawler = KINDS[kind](storage_client=storage, configure_logging=False, **options)
    skipped = obey_robots(crawler, checker, AGENT, gate=gate)
    crawl = Crawl(crawler=crawler, skipped=skipped)

    @crawler.router.default_handler
    async def record_page(context: BasicCrawlingContext) -> None:
        crawl.pages.append(context.request.loaded_url or context.request.url)
        if handle is not None:
            await handle(context)

    @crawler.on_skipped_request
    async def record_skip(url: str, reason: str) -> None:
        crawl.skips.append((url, reason))

    @crawler.failed_request_handler
    async def record_failure(context: BasicCrawlingContext, _error: Exception) -> None:
        crawl.failed.append(context.request.url)

    return crawl


async def new_queue(**_options: object) -> RequestQueue:
    """Open a separate queue; options, as for `RequestQueue.open`, are ignored."""
    return await RequestQueue.open(
        alias=f"queue-{next(_numbers)}", storage_client=MemoryStorageClient()
    )


async def throttled_queue(*domains: str) -> ThrottlingRequestManager[RequestQueue]:
    return ThrottlingRequestManager(
        await new_queue(), domains=domains, request_manager_opener=new_queue
    )


def _in_chromium(**options: Any) -> BasicCrawler[Any, Any]:  # noqa: ANN401 (the crawler's)
    from crawlee.crawlers import PlaywrightCrawler  # noqa: PLC0415 (may be missing)

    return PlaywrightCrawler(browser_launch_options=LAUNCH_OPTIONS, **options)


def _with(crawler_type: type, client_type: type, **fixed: object) -> Callable[..., Any]:
    return lambda **options: crawler_type(http_client=client_type(), **fixed, **options)


KINDS = {
    "impit": _with(HttpCrawler, ImpitHttpClient),
    "httpx": _with(BeautifulSoupCrawler, HttpxHttpClient),
    "impit, streams": _with(FileDownloadCrawler, ImpitHttpClient, stream=True),
    "httpx, streams": _with(FileDownloadCrawler, HttpxHttpClient, stream=True),
    "chromium": _in_chromium,
}
CLASSES = {
    "BasicCrawler": BasicCrawler,
    "CurlCrawler": _with(HttpCrawler, CurlImpersonateHttpClient),
}
ONE_AT_A_TIME = ConcurrencySettings(max_concurrency=1, desired_concurrency=1)
