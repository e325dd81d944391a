"""What docs/how-to/test-your-crawler.md shows."""

from collections.abc import AsyncIterator

import anyio
import httpx
import pytest

from robotsgate import RobotsChecker, Verdict
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


# --- Sequences and delays
@pytest.mark.anyio
async def test_busy_shop_is_asked_again_after_its_pause(
    checker: RobotsChecker, web: FakeSite, clock: ManualClock
) -> None:
    busy = httpx.Response(503, headers={"Retry-After": "120"})
    rules = httpx.Response(200, text="User-agent: *\nDisallow: /basket")
    web.serve("https://shop.example", [busy, rules], delay=5)
    verdicts: list[Verdict] = []

    async def ask() -> None:
        verdicts.append(await checker.check("ExampleBot", "https://shop.example/"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await clock.pass_time(5)
        assert [verdict.status for verdict in verdicts] == [503]

        await clock.pass_time(130)
        tasks.start_soon(ask)
        await clock.pass_time(5)
        assert [verdict.status for verdict in verdicts] == [503, 200]
