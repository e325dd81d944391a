"""Crawls over real sockets, timed by the hosts themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .over_sockets import CHAOS, CRAWLS, GOOD, Crawl

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Client = tuple[str, Callable[[Crawl], Awaitable[None]]]

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(params=CRAWLS.values(), ids=CRAWLS)
def client(
    request: pytest.FixtureRequest,
) -> Client:
    client: Client = request.param
    return client


@pytest.fixture
def anyio_backend(client: tuple[str, object]) -> str:
    return client[0]


async def test_no_gap_is_shorter_than_the_delay_however_requests_fail(
    client: Client,
) -> None:
    crawl = Crawl(CHAOS, hosts=20, delay=20, speed=200)

    await client[1](crawl)

    # The pages, robots.txt, and the target of the redirect.
    targets = {len(host.targets) for host in crawl.hosts.values()}
    assert (len(crawl.hosts), targets) == (20, {len(CHAOS) + 2})
    assert crawl.short_gaps == []


@pytest.mark.parametrize("client", [CRAWLS["schedule, httpx on asyncio"]])
async def test_schedule_takes_less_than_three_times_the_ideal_time(
    client: Client,
) -> None:
    crawl = Crawl(GOOD * 20, hosts=50, delay=0.3)

    await client[1](crawl)

    assert crawl.short_gaps == []
    assert crawl.lateness < 2  # on a busy machine
