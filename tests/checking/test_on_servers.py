"""A checker with a real Valkey server that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from robotsgate.stores.redis import RedisStore
from robotsgate.testing import ManualClock
from tests.checking.builders import (
    AGENT,
    checker_of,
    site_of,
)
from tests.stores.contracts import LATER

if TYPE_CHECKING:
    from robotsgate import RobotsChecker
    from robotsgate.testing import FakeSite
    from tests.servers.valkey import Valkey

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """redis-py runs on asyncio only."""
    return "asyncio"


# The server drops keys by its own clock, which must not be later than the checkers'.
NOW = LATER


SITES = {f"http://{number}.example": number % 2 == 0 for number in range(6)}
"""Whether each site allows everything or nothing."""


def _many_sites() -> FakeSite:
    site = site_of()
    for origin, is_allowed in SITES.items():
        site.serve(origin, "User-agent: *\n" + ("" if is_allowed else "Disallow: /\n"))
    return site


async def _has_right_results(checker: RobotsChecker, *numbers: int) -> bool:
    """Whether `checker` gives the right results for the sites with these numbers."""
    origins = [list(SITES)[number] for number in numbers]
    answers = [await checker.can_fetch(AGENT, f"{origin}/x") for origin in origins]
    return answers == [SITES[origin] for origin in origins]


async def test_checker_uses_a_server_again_after_a_restart(
    own_valkey: Valkey,
) -> None:
    site = _many_sites()

    async with (
        RedisStore(own_valkey.url) as store,
        checker_of(site, store=store, clock=ManualClock(NOW)) as checker,
    ):
        before = await _has_right_results(checker, 0, 1)
        failures_before = checker.stats.store_failures
        own_valkey.stop()
        meanwhile = await _has_right_results(checker, 0, 1, 2, 3)
        failures_meanwhile = checker.stats.store_failures
        own_valkey.start()
        after = await _has_right_results(checker, 0, 1, 2, 3, 4, 5)
        failures_after = checker.stats.store_failures

    keys = own_valkey.ask("KEYS", "*")
    assert isinstance(keys, list)
    assert before
    assert meanwhile
    assert after
    assert len(site.requests) == 6
    assert failures_before == 0
    assert failures_meanwhile == failures_after > 0
    assert sorted(keys) == [f"robotsgate:http://{n}.example" for n in (4, 5)]
