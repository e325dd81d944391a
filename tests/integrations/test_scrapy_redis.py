"""Our middleware with scrapy-redis's scheduler; both share one Redis server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.integrations.crawls import crawl
from tests.servers.answers import Reply, Routes, redirect

if TYPE_CHECKING:
    from tests.servers.loopback import Serve
    from tests.servers.valkey import Valkey


pytest.importorskip("scrapy_redis", reason="scrapy-redis is not installed")


@pytest.mark.anyio
@pytest.mark.filterwarnings("ignore::scrapy.exceptions.ScrapyDeprecationWarning")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_requests_from_the_redis_queue_are_checked(
    serve: Serve, valkey: Valkey
) -> None:
    rules = Reply(body=b"User-agent: *\nDisallow: /private\n")
    pages = {f"/{name}": Reply() for name in ("public", "private")}
    site = serve(Routes({"/robots.txt": rules, "/to": redirect("/private"), **pages}))

    spider = await crawl(
        *(f"{site.url}/{name}" for name in ("public", "private", "to")),
        settings={
            "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
            "REDIS_URL": valkey.url,
            "ROBOTSGATE_STORE": valkey.url,
            "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        },
    )

    assert sorted(site.targets) == ["/public", "/robots.txt", "/to"]
    assert spider.report.pages == [f"{site.url}/public"]
    assert spider.report.stats["scheduler/dequeued/redis"] == 4
