"""The test shown in docs/how-to/test-your-crawler.md."""

from collections.abc import AsyncIterator

import httpx
import pytest
from crawler import crawl

from robotsgate import PolitenessGate, RobotsChecker
from robotsgate.testing import FakeSite, ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(autojump_threshold=0)


@pytest.fixture
def web(clock: ManualClock) -> FakeSite:
    return FakeSite(clock=clock)


@pytest.fixture
async def checker(web: FakeSite, clock: ManualClock) -> AsyncIterator[RobotsChecker]:
    async with RobotsChecker(client=web, clock=clock) as checker:
        yield checker


@pytest.mark.anyio
async def test_crawl_obeys_robots_txt(
    checker: RobotsChecker, web: FakeSite, clock: ManualClock
) -> None:
    rules = "User-agent: *\nCrawl-delay: 10\nDisallow: /basket"
    links = '<a href="/basket">Basket</a> <a href="/shoes">Shoes</a>'
    web.serve("https://shop.example", rules)
    web.serve_page("https://shop.example/", links)
    web.serve_page("https://shop.example/shoes", "<h1>Shoes</h1>")

    async with (
        httpx.AsyncClient(transport=web) as client,
        PolitenessGate(checker, "ExampleBot") as gate,
    ):
        await crawl(gate, client, "https://shop.example/")

    assert web.requests == [
        "https://shop.example/robots.txt",
        "https://shop.example/",
        "https://shop.example/shoes",
    ]
    assert clock.monotonic() == 20
