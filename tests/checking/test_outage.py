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
ROW = re.compile(r"\| `([\w.()]+)` \| (.+) \| (.+) \| (.+) \|")
POLICIES = {
    "Policy()": Policy(),
    "Policy.google_today()": Policy.google_today(),
    "Policy.google_2021()": Policy.google_2021(),
    "Policy.rfc9309()": Policy.rfc9309(),
    "Policy.strict()": Policy.strict(),
    "archive": Policy(unreachable_limit=0,
        after_unreachable_limit=AfterUnreachableLimit.ALLOW,
        on_too_many_requests=AccessResult.UNAVAILABLE),
}  # fmt: skip
MONTHLY = Policy(stale_window=90 * DAY, unreachable_limit_without_copy=90 * DAY)
FAILURES: dict[str, list[int | bytes | Exception]] = {
    "5xx": [500, 503],
    '500 "Not Found"': [b"<title>Not Found</title>"],
    "429": [429],
    "no connection": [httpx.ConnectError("no connection")],
}
COPY_PAUSE, EXPIRED_COPY_PAUSE = 20 * DAY, 40 * DAY
"""The times without lookups since the last answer."""

PHASES = {"12 hours": 1, "30 days": 2}
"""The first of the days 0, 1 and 31 on which a change in the table applies."""


def days(cell: str) -> list[str]:
    """What is allowed on day 0, on days 1 to 29 and on day 31, as a cell says."""
    first, *changes = cell.split(", after ")
    allowed = [first] * 3
    for change in changes:
        number, unit, then = change.split(" ", maxsplit=2)
        start = PHASES[f"{number} {unit}"]
        allowed[start:] = [then] * (3 - start)
    return allowed


def documented_cases() -> Iterator[Any]:
    """A test case for each policy, failure and pause in the page's table."""
    for name, kinds, copy, no_copy in ROW.findall(PAGE.read_text(encoding="utf-8")):
        policy = POLICIES[name]
        is_kept = policy.after_unreachable_limit is AfterUnreachableLimit.LAST_COPY
        for kind in FAILURES if kinds == "any of these" else kinds.split(", "):
            for known, pause, cell in (
                ("a copy", COPY_PAUSE, copy),
                ("an expired copy", EXPIRED_COPY_PAUSE, copy if is_kept else no_copy),
                ("nothing known", None, no_copy),
            ):
                yield pytest.param(
                    policy,
                    FAILURES[kind],
                    pause,
                    days(cell),
                    id=f"{name}, {kind}, {known}",
                )
    for kind, failures in FAILURES.items():
        yield pytest.param(
            MONTHLY,
            failures,
            EXPIRED_COPY_PAUSE,
            ["the copy"] * 3,
            id=f"monthly, {kind}",
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

    assert len(rows) == len(set(rows)) == (3 * len(POLICIES) + 1) * len(FAILURES)
