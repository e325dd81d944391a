"""A clock that jumps, and servers whose clocks are wrong."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from robotsgate import Policy, RobotsChecker
from robotsgate.testing import FakeSite, ManualClock
from tests.checking.builders import AGENT, DAY, HOUR, ORIGIN, PRIVATE, PUBLIC, RULES

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.anyio

YEAR = 365 * DAY

ABSURD_HEADERS: dict[str, dict[str, str]] = {
    "max-age beyond 2^63": {"Cache-Control": "max-age=9223372036854775808"},
    "max-age of a thousand digits": {"Cache-Control": "max-age=" + "9" * 1_000},
    "negative max-age": {"Cache-Control": "max-age=-1"},
    "negative Age": {"Cache-Control": "max-age=3600", "Age": "-99999999"},
    "Age beyond 2^63": {"Cache-Control": "max-age=3600", "Age": "9" * 20},
    "Expires in the year 9999": {"Expires": "Fri, 31 Dec 9999 23:59:59 GMT"},
    "Expires in the year 1": {"Expires": "Mon, 01 Jan 0001 00:00:00 GMT"},
    "Expires beyond all years": {"Expires": "Fri, 31 Dec 99999 23:59:59 GMT"},
    "Expires of 0": {"Expires": "0"},
    "Date in the year 9999": {
        "Date": "Fri, 31 Dec 9999 23:59:59 GMT",
        "Expires": "Sat, 01 Jan 2000 00:00:00 GMT",
    },
    "Date of 1970, Expires of 2100": {
        "Date": "Thu, 01 Jan 1970 00:00:00 GMT",
        "Expires": "Fri, 01 Jan 2100 00:00:00 GMT",
    },
    "Retry-After beyond 2^63": {"Retry-After": "9" * 20},
    "Retry-After in the year 9999": {"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"},
    "Retry-After in the past": {"Retry-After": "Sat, 01 Jan 2000 00:00:00 GMT"},
    "negative Retry-After": {"Retry-After": "-1"},
}
JUMPS = {
    "back by years": -20 * YEAR,
    "back to before 1970": -100 * YEAR,
    "forward by years": 20 * YEAR,
    "forward beyond the year 9999": 9_000 * YEAR,
}


def lifetime_bound(policy: Policy) -> float:
    return max(policy.default_lifetime, policy.max_lifetime)


@pytest.mark.parametrize("status", [200, 404, 429, 503])
@pytest.mark.parametrize("headers", ABSURD_HEADERS.values(), ids=ABSURD_HEADERS)
async def test_absurd_header_keeps_nothing_for_longer_than_the_policy_says(
    headers: Mapping[str, str], status: int
) -> None:
    policy, clock, site = Policy(), ManualClock(), FakeSite()
    site.serve(ORIGIN, RULES, status=status, headers=headers)

    async with RobotsChecker(client=site, clock=clock, policy=policy) as checker:
        verdict = await checker.check(AGENT, PRIVATE)
        shortest = min(policy.min_lifetime, policy.retry_initial_503)
        longest = max(lifetime_bound(policy), policy.retry_after_max)

        assert verdict.allowed is (status == 404)
        assert shortest <= verdict.fresh_until - clock.now() <= longest
        assert str(verdict)


@pytest.mark.parametrize("jump", JUMPS.values(), ids=JUMPS)
@pytest.mark.parametrize("is_down", [False, True])
async def test_jump_of_the_clock_opens_nothing_and_costs_one_fetch(
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
        asked = len(site.requests)

        clock.set(clock.now() + jump)
        assert not await checker.can_fetch(AGENT, PRIVATE)
        assert len(site.requests) == asked + 1
        assert str(await checker.check(AGENT, PRIVATE))

        clock.set(clock.now() - jump)
        assert not await checker.can_fetch(AGENT, PRIVATE)
        assert len(site.requests) <= asked + 2


@pytest.mark.parametrize(
    "jumps", list(itertools.permutations(JUMPS.values(), 3)), ids=str
)
async def test_origin_that_comes_back_after_any_jumps_is_known_again(
    jumps: tuple[float, ...],
) -> None:
    clock, site = ManualClock(), FakeSite()
    site.serve(ORIGIN, RULES)

    async with RobotsChecker(client=site, clock=clock) as checker:
        assert await checker.can_fetch(AGENT, PUBLIC)
        for jump in jumps:
            site.serve(ORIGIN, status=500)
            clock.set(clock.now() + jump)
            assert not await checker.can_fetch(AGENT, PRIVATE)

        site.serve(ORIGIN, RULES)
        clock.advance(2 * HOUR)

        assert await checker.can_fetch(AGENT, PUBLIC)
        assert not await checker.can_fetch(AGENT, PRIVATE)
