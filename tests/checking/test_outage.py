"""A long outage as seen by a checker that is replaced every other day.

The tables of the phases are tested in tests/caching; these tests check the page that
documents them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from robotsgate import (
    AccessResult,
    AfterUnreachableLimit,
    MemoryStore,
    Policy,
)
from robotsgate.testing import ManualClock

from .builders import (
    AGENT,
    DAY,
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

ANSWERS = {
    (False, False): "nothing",
    (False, True): "the copy",
    (True, True): "everything",
}
"""Keyed by whether the private page and the public one may be fetched."""

PAGE = Path(__file__).parents[2] / "docs/how-to/choose-a-policy.md"
ROW = re.compile(r"\| `([\w.()]+)` \| (.+) \|")
POLICIES = {
    "Policy()": Policy(),
    "Policy.google_today()": Policy.google_today(),
    "Policy.google_2021()": Policy.google_2021(),
    "Policy.rfc9309()": Policy.rfc9309(),
    "Policy.strict()": Policy.strict(),
    "monthly": Policy(stale_window=90 * DAY, unreachable_limit_without_copy=90 * DAY),
    "archive": Policy(unreachable_limit=0,
        after_unreachable_limit=AfterUnreachableLimit.ALLOW,
        on_too_many_requests=AccessResult.UNAVAILABLE),
}  # fmt: skip
FAILURES: dict[str, list[int | bytes | Exception]] = {
    "5xx": [500, 503],
    '500 "Not Found"': [b"<title>Not Found</title>"],
    "429": [429],
    "no connection": [httpx.ConnectError("no connection")],
}
PAUSES = {
    "a copy": 20 * DAY,
    "an expired copy": 40 * DAY,
    "nothing known": None,
}
"""The time without lookups since the last answer, for each table in the page."""


def documented_cases() -> Iterator[Any]:
    """A test case for each policy, failure and pause in the page's tables."""
    _, *tables = PAGE.read_text(encoding="utf-8").split("\n| policy | what ")
    for (known, pause), table in zip(PAUSES.items(), tables, strict=True):
        for name, cells in ROW.findall(table):
            kinds, *expected = cells.split(" | ")
            for kind in kinds.split(", "):
                yield pytest.param(
                    POLICIES[name],
                    FAILURES[kind],
                    pause,
                    expected,
                    id=f"{name}, {kind}, {known}",
                )


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # no phase depends on the loop
@pytest.mark.parametrize(
    ("policy", "failures", "pause", "expected"), list(documented_cases())
)
async def test_outage_proceeds_as_documented(
    policy: Policy,
    failures: list[int | bytes | Exception],
    pause: float | None,
    expected: list[str],
) -> None:
    clock, site, store = ManualClock(), site_of(), MemoryStore()
    answers: list[str] = []

    async def look_up(checker: RobotsChecker) -> str:
        assert await checker.can_fetch(AGENT, ROBOTS_TXT)
        private = await checker.can_fetch(AGENT, PRIVATE)
        return ANSWERS[private, await checker.can_fetch(AGENT, PUBLIC)]

    def new_checker() -> RobotsChecker:
        return checker_of(site, store=store, policy=policy, clock=clock)

    if pause is not None:
        assert await look_up(new_checker()) == "the copy"
        clock.advance(pause)

    for day in range(32):
        failure = failures[day % len(failures)]
        if isinstance(failure, Exception):
            site.fail(ORIGIN, failure)
        elif isinstance(failure, bytes):
            site.serve(ORIGIN, failure, status=500)
        else:
            site.serve(ORIGIN, status=failure)
        if day % 2 == 0:
            checker = new_checker()
        answers.append(await look_up(checker))
        clock.advance(DAY)

    steady = set(answers[1:30])
    assert [answers[0], *steady, answers[31]] == expected
    site.serve(ORIGIN, RULES)
    clock.advance(DAY)
    assert await look_up(new_checker()) == "the copy"


def test_page_documents_every_policy_and_failure() -> None:
    rows = [row.id for row in documented_cases()]

    assert len(rows) == len(set(rows)) == (6 * len(PAUSES) + 1) * len(FAILURES)
