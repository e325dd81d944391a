"""The tests shown in docs/how-to/test-your-crawler.md."""

from collections.abc import AsyncIterator

import anyio
import httpx
import pytest
from crawler import crawl

from robotsgate import PolitenessGate, RobotsChecker, Verdict
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


# --- Outages and errors
@pytest.mark.anyio
async def test_rules_still_apply_while_the_shop_is_down(
    checker: RobotsChecker, web: FakeSite, clock: ManualClock
) -> None:
    web.serve("https://shop.example", "User-agent: *\nDisallow: /basket")
    assert not await checker.can_fetch("ExampleBot", "https://shop.example/basket")

    web.serve("https://shop.example", status=503)
    clock.advance(25 * 3_600)
    verdict = await checker.check("ExampleBot", "https://shop.example/basket")

    assert not verdict.allowed
    assert verdict.is_stale


# --- Sequences and delays
@pytest.mark.anyio
async def test_robots_txt_is_fetched_again_after_retry_after(
    checker: RobotsChecker, web: FakeSite, clock: ManualClock
) -> None:
    busy = httpx.Response(503, headers={"Retry-After": "120"})
    rules = httpx.Response(200, text="User-agent: *\nDisallow: /basket")
    web.serve("https://shop.example", [busy, rules], delay=5)

    first = await checker.check("ExampleBot", "https://shop.example/")
    await clock.wait(130)
    second = await checker.check("ExampleBot", "https://shop.example/")

    assert [first.status, second.status] == [503, 200]
    assert clock.monotonic() == 140


# --- Moving the clock
@pytest.mark.anyio
async def test_slow_response_takes_five_seconds() -> None:
    clock = ManualClock()
    web = FakeSite(clock=clock)
    web.serve("https://shop.example", delay=5)
    verdicts: list[Verdict] = []

    async def check() -> None:
        async with RobotsChecker(client=web, clock=clock) as checker:
            verdicts.append(await checker.check("ExampleBot", "https://shop.example/"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(check)
        await clock.pass_time(4)
        assert verdicts == []

        await clock.pass_time(1)
        assert [verdict.status for verdict in verdicts] == [200]
