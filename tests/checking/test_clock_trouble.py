"""Checkers with a clock that jumps."""

from __future__ import annotations

import pytest

from robotsgate import RobotsChecker
from robotsgate.testing import FakeSite, ManualClock

from .builders import AGENT, DAY, HOUR, ORIGIN, PRIVATE, PUBLIC, RULES

pytestmark = pytest.mark.anyio

YEAR = 365 * DAY

JUMPS = {
    "back by years": -20 * YEAR,
    "back to before 1970": -100 * YEAR,
    "forward by years": 20 * YEAR,
    "forward beyond the year 9999": 9_000 * YEAR,
}


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
@pytest.mark.parametrize("is_down", [False, True])
async def test_clock_jump_opens_nothing_and_costs_one_fetch(
    jump: float, *, is_down: bool
) -> None:
    clock, site = ManualClock(), FakeSite()
    site.serve(ORIGIN, RULES)

    async with RobotsChecker(client=site, clock=clock) as checker:
        assert not await checker.can_fetch(AGENT, PRIVATE)
        if is_down:
            site.serve(ORIGIN, status=503)
            clock.advance(25 * HOUR)
            assert not await checker.can_fetch(AGENT, PRIVATE)
        requests_before = len(site.requests)

        clock.set(clock.now() + jump)
        assert not await checker.can_fetch(AGENT, PRIVATE)
        assert len(site.requests) == requests_before + 1
        assert str(await checker.check(AGENT, PRIVATE))

        clock.set(clock.now() - jump)
        assert not await checker.can_fetch(AGENT, PRIVATE)
        assert len(site.requests) <= requests_before + 2

        site.serve(ORIGIN, RULES)
        clock.advance(2 * HOUR)
        assert await checker.can_fetch(AGENT, PUBLIC)
