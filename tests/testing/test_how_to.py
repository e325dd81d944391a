"""What docs/how-to/test-your-crawler.md shows."""

from collections.abc import AsyncIterator

import pytest

from robotsgate import RobotsChecker
from robotsgate.testing import FakeSite, ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def web(clock: ManualClock) -> FakeSite:
    return FakeSite(clock=clock)


@pytest.fixture
async def checker(web: FakeSite, clock: ManualClock) -> AsyncIterator[RobotsChecker]:
    async with RobotsChecker(client=web, clock=clock) as checker:
        yield checker


@pytest.mark.anyio
async def test_shoes_are_fetched_while_the_shop_is_down(
    checker: RobotsChecker, web: FakeSite, clock: ManualClock
) -> None:
    web.serve("https://shop.example", "User-agent: *\nDisallow: /basket")
    assert await checker.can_fetch("ExampleBot", "https://shop.example/shoes")

    web.serve("https://shop.example", status=503)
    clock.advance(25 * 3_600)
    verdict = await checker.check("ExampleBot", "https://shop.example/shoes")

    assert verdict.allowed
    assert verdict.is_stale
    assert web.requests == ["https://shop.example/robots.txt"] * 2
