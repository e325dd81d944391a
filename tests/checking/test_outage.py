"""A long outage through the whole checker, with a new one for each question too.

The tables of the phases are in tests/caching; here the page is kept that promises
them, and the histories in which an outage may open an origin.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
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
    RULES,
    checker_of,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from robotsgate import RobotsChecker

pytestmark = pytest.mark.anyio

ANSWERS = {
    (False, False): "nothing",
    (False, True): "the copy",
    (True, True): "everything",
}
"""By whether the private page and the public one may be fetched."""

PAGE = Path(__file__).parents[2] / "docs/how-to/choose-a-policy.md"
ROW = re.compile(r"\| `Policy(?:\.(\w+))?\(\)` \| (.+) \|")
NETWORK = httpx.ConnectError("no connection")
FAILURES: dict[str, list[int | Exception]] = {
    "5xx": [500, 503],
    "429": [429],
    "no connection": [NETWORK],
}


def promises() -> Iterator[Any]:
    """What the tables of the page say: one each for a policy, a failure and a copy."""
    _, copy, nothing = PAGE.read_text(encoding="utf-8").split("\n| policy | what ")
    for has_copy, table in ((True, copy), (False, nothing)):
        for preset, cells in ROW.findall(table):
            policy = getattr(Policy, preset)() if preset else Policy()
            kinds, *expected = cells.split(" | ")
            for kind in kinds.split(", "):
                known = "a copy" if has_copy else "nothing known"
                yield pytest.param(
                    policy,
                    FAILURES[kind],
                    has_copy,
                    expected,
                    id=f"{preset or 'default'}, {kind}, {known}",
                )


class Crawl:
    """Questions about one origin; each day another checker asks, with one store."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.clock = ManualClock()
        self.site = site_of()
        self._policy = policy or Policy()
        self._store = MemoryStore()
        self._checkers: dict[float, RobotsChecker] = {}

    def fail(self, failure: int | Exception) -> None:
        """From now on the origin answers with this status, or not at all."""
        if isinstance(failure, Exception):
            self.site.fail(ORIGIN, failure)
        else:
            self.site.serve(ORIGIN, status=failure)

    async def answer(self) -> str:
        """What may be fetched now."""
        day = self.clock.now() // DAY
        if day not in self._checkers:
            self._checkers[day] = checker_of(
                self.site, store=self._store, policy=self._policy, clock=self.clock
            )
        checker = self._checkers[day]
        assert await checker.can_fetch(AGENT, ROBOTS_TXT)
        private = await checker.can_fetch(AGENT, PRIVATE)
        return ANSWERS[private, await checker.can_fetch(AGENT, PUBLIC)]

    async def learn_the_rules(self) -> None:
        """Fetch a robots.txt, and wait until it is stale."""
        assert await self.answer() == "the copy"
        self.clock.advance(DAY)


@pytest.mark.parametrize(
    ("policy", "failures", "has_copy", "expected"), list(promises())
)
async def test_outage_goes_as_the_page_promises(
    policy: Policy,
    failures: list[int | Exception],
    expected: list[str],
    *,
    has_copy: bool,
) -> None:
    crawl = Crawl(policy)
    if has_copy:
        await crawl.learn_the_rules()
    answers = []

    for quarter in range(4 * 31 + 1):
        crawl.fail(failures[quarter % len(failures)])
        answers.append(await crawl.answer())
        crawl.clock.advance(6 * HOUR)

    steady = set(answers[4 : 4 * 29 + 1])
    assert [answers[0], *steady, answers[4 * 31]] == expected
    crawl.site.serve(ORIGIN, RULES)
    crawl.clock.advance(DAY)
    assert await crawl.answer() == "the copy"


def test_page_promises_something_for_every_policy_and_failure() -> None:
    rows = [row.id for row in promises()]

    assert len(rows) == len(set(rows)) == 5 * len(FAILURES) * 2


Attempts = list[tuple[float, int]]
"""Days since the first of them, each with the status that comes then."""


def quarters(status: int, first: float, last: float) -> Attempts:
    """An attempt every six hours, from day `first` to day `last`."""
    return [(first + n / 4, status) for n in range(round(4 * (last - first)) + 1)]


HISTORIES: dict[str, tuple[Attempts, bool, float, str]] = {
    "attempts at 0, 15 and 30.5 days open nothing": (
        [(0, 500), (15, 500), (30.5, 500)],
        False,
        30.5,
        "nothing",
    ),
    "a limit that ends between two attempts opens nothing": (
        [*quarters(500, 0, 29.75), (29.99, 500)],
        False,
        30.01,
        "nothing",
    ),
    "a stale window that ends between two attempts opens nothing": (
        [*quarters(500, 0, 29.75), (29.99, 500)],
        True,
        30.01,
        "nothing",
    ),
    "33 days of 500 open": (quarters(500, 0, 33), False, 33, "everything"),
    "40 days of 429 never open": (quarters(429, 0, 40), False, 40, "nothing"),
    "five days of 500 and 429 after them never open": (
        [*quarters(500, 0, 5), *quarters(429, 5.25, 40)],
        False,
        40,
        "nothing",
    ),
}


@pytest.mark.parametrize(
    ("attempts", "has_copy", "asked_on_day", "expected"),
    HISTORIES.values(),
    ids=HISTORIES,
)
async def test_no_becomes_yes_on_evidence_alone(
    attempts: Attempts, asked_on_day: float, expected: str, *, has_copy: bool
) -> None:
    crawl = Crawl()
    if has_copy:
        await crawl.learn_the_rules()
    began_at = crawl.clock.now()
    requests_before = len(crawl.site.requests)

    for day, status in attempts:
        crawl.clock.set(began_at + day * DAY)
        crawl.fail(status)
        await crawl.answer()
    crawl.clock.set(began_at + asked_on_day * DAY)

    assert await crawl.answer() == expected
    assert len(crawl.site.requests) == requests_before + len(attempts)


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
    crawl = Crawl()
    await crawl.learn_the_rules()
    crawl.fail(503)
    crawl.clock.advance(31 * DAY)

    assert await crawl.answer() == "nothing"


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


async def test_short_retry_after_does_not_go_before_the_schedule() -> None:
    """With `Retry-After: 1` an origin was asked each minute, 5,760 times."""
    clock, site = ManualClock(), site_of(status=503, retry_after="1")
    checker = checker_of(site, clock=clock)

    for _ in range(4 * 24 * 60):
        await checker.can_fetch(AGENT, PUBLIC)
        clock.advance(60)

    assert 4 * 22 < len(site.requests) < 4 * 24 + 10
