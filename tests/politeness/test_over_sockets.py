"""What hosts see of a crawl over real sockets, by their own clock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .over_sockets import CHAOS, CRAWLS, GOOD, Crawl

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Named = tuple[str, Callable[[Crawl], Awaitable[None]]]

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture(params=CRAWLS.values(), ids=CRAWLS)
def named(
    request: pytest.FixtureRequest,
) -> Named:
    named: Named = request.param
    return named


@pytest.fixture
def anyio_backend(named: tuple[str, object]) -> str:
    return named[0]


async def test_host_whose_requests_fail_in_any_way_sees_no_gap_below_its_delay(
    named: Named,
) -> None:
    crawl = Crawl(CHAOS, hosts=20, delay=20, speed=200)

    await named[1](crawl)

    # Besides the pages: the robots.txt, and what one of them leads to.
    targets = {len(host.targets) for host in crawl.hosts.values()}
    assert (len(crawl.hosts), targets) == (20, {len(CHAOS) + 2})
    assert crawl.short_gaps == []


@pytest.mark.parametrize("named", [CRAWLS["schedule, httpx on asyncio"]])
async def test_all_hosts_are_done_in_time(named: Named) -> None:
    crawl = Crawl(GOOD * 20, hosts=50, delay=0.3)

    await named[1](crawl)

    assert crawl.short_gaps == []
    assert crawl.lateness < 2  # on a busy machine
