"""A long outage through the whole checker, with a new one for each question too.

The tables of the phases are in tests/caching; here one story is told per preset.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from robotsgate import MemoryStore, Policy
from robotsgate.testing import ManualClock

from .builders import (
    AGENT,
    DAY,
    HOUR,
    ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    checker_of,
    site_of,
)

if TYPE_CHECKING:
    from robotsgate import RobotsChecker

pytestmark = pytest.mark.anyio

NOTHING, COPY, EVERYTHING = (False, False), (False, True), (True, True)
"""Whether the private page and the public one may be fetched."""

# In the first hours, after half a day, and after 30 days: with a copy, and without.
PRESETS = {
    "default": (Policy(), (COPY, COPY, EVERYTHING), (NOTHING, NOTHING, EVERYTHING)),
    "google_today": (
        Policy.google_today(),
        (NOTHING, COPY, EVERYTHING),
        (NOTHING, EVERYTHING, EVERYTHING),
    ),
    "google_2021": (
        Policy.google_2021(),
        (NOTHING, NOTHING, COPY),
        (NOTHING, NOTHING, EVERYTHING),
    ),
    "rfc9309": (
        Policy.rfc9309(),
        (NOTHING, NOTHING, COPY),
        (NOTHING, NOTHING, EVERYTHING),
    ),
    "strict": (Policy.strict(), (COPY, COPY, NOTHING), (NOTHING, NOTHING, NOTHING)),
}


class Crawl:
    """Questions of one checker, or of a new one each time, over one store."""

    def __init__(self, policy: Policy, *, is_restarted: bool) -> None:
        self.clock = ManualClock()
        self.site = site_of()
        self._policy = policy
        self._store = MemoryStore()
        self._is_restarted = is_restarted
        self._checker = self._new_checker()

    async def answers(self) -> tuple[bool, bool]:
        if self._is_restarted:
            await self._checker.aclose()
            self._checker = self._new_checker()
        private = await self._checker.check(AGENT, PRIVATE)
        public = await self._checker.check(AGENT, PUBLIC)
        assert await self._checker.can_fetch(AGENT, ROBOTS_TXT)
        return private.allowed, public.allowed

    def _new_checker(self) -> RobotsChecker:
        return checker_of(
            self.site, store=self._store, policy=self._policy, clock=self.clock
        )


@pytest.mark.parametrize("is_restarted", [False, True], ids=["one", "new each time"])
@pytest.mark.parametrize("has_copy", [True, False], ids=["a copy", "none"])
@pytest.mark.parametrize(
    ("policy", "with_a_copy", "without"), PRESETS.values(), ids=PRESETS
)
async def test_outage_of_31_days_follows_the_policy(
    policy: Policy,
    with_a_copy: tuple[tuple[bool, bool], ...],
    without: tuple[tuple[bool, bool], ...],
    *,
    has_copy: bool,
    is_restarted: bool,
) -> None:
    crawl = Crawl(policy, is_restarted=is_restarted)
    if has_copy:
        assert await crawl.answers() == COPY
        crawl.clock.advance(DAY)
    crawl.site.serve(ORIGIN, status=503)
    at_first, meanwhile, afterwards = with_a_copy if has_copy else without

    for quarter in range(4 * 31):
        expected = at_first if quarter < 2 else meanwhile
        if quarter >= 4 * 30:
            expected = afterwards
        assert await crawl.answers() == expected, quarter
        crawl.clock.advance(6 * HOUR)
    crawl.site.serve(ORIGIN, "User-agent: *\nDisallow: /public\n")

    assert await crawl.answers() == (True, False)


async def test_fetches_of_an_outage_come_after_longer_and_longer_spans() -> None:
    clock, site = ManualClock(), site_of(status=503)
    checker = checker_of(site, clock=clock)
    began_at = clock.now()
    fetches: list[float] = []

    for _ in range(4 * 60):
        requests_before = len(site.requests)
        await checker.can_fetch(AGENT, PUBLIC)
        if len(site.requests) > requests_before:
            fetches.append(clock.now() - began_at)
        clock.advance(60)

    # 30 s, doubled up to an hour, a tenth of jitter at the most, and whole minutes.
    spans = [after - before for before, after in pairwise(fetches)]
    assert len(spans) > 7
    for number, span in enumerate(spans):
        least = min(30 * 2**number, HOUR)
        assert least <= span < 1.1 * least + 60


async def test_copy_that_nobody_could_use_any_more_is_not_used() -> None:
    crawl = Crawl(Policy(), is_restarted=True)
    await crawl.answers()
    crawl.site.serve(ORIGIN, status=503)
    crawl.clock.advance(32 * DAY)

    assert await crawl.answers() == NOTHING


async def test_retry_after_goes_before_the_schedule() -> None:
    clock, site = ManualClock(), site_of(status=503, retry_after="36000")
    checker = checker_of(site, clock=clock)
    hours = []

    for hour in range(31):
        requests_before = len(site.requests)
        await checker.can_fetch(AGENT, PUBLIC)
        hours += [hour] * (len(site.requests) - requests_before)
        clock.advance(HOUR)

    assert hours == [0, 10, 20, 30]
