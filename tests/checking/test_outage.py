"""A long outage through the whole checker, with a new one each day.

The tables of the phases are in tests/caching; here the page is kept that promises
them.
"""

from __future__ import annotations

import re
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
FAILURES: dict[str, list[int | Exception]] = {
    "5xx": [500, 503],
    "429": [429],
    "no connection": [httpx.ConnectError("no connection")],
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
    clock, site, store = ManualClock(), site_of(), MemoryStore()
    answers: list[str] = []

    async def ask(checker: RobotsChecker) -> str:
        assert await checker.can_fetch(AGENT, ROBOTS_TXT)
        private = await checker.can_fetch(AGENT, PRIVATE)
        return ANSWERS[private, await checker.can_fetch(AGENT, PUBLIC)]

    def new_checker() -> RobotsChecker:
        return checker_of(site, store=store, policy=policy, clock=clock)

    if has_copy:
        assert await ask(new_checker()) == "the copy"
        clock.advance(DAY)

    for quarter in range(4 * 31 + 1):
        failure = failures[quarter % len(failures)]
        if isinstance(failure, Exception):
            site.fail(ORIGIN, failure)
        else:
            site.serve(ORIGIN, status=failure)
        if quarter % 4 == 0:
            checker = new_checker()
        answers.append(await ask(checker))
        clock.advance(6 * HOUR)

    steady = set(answers[4 : 4 * 29 + 1])
    assert [answers[0], *steady, answers[4 * 31]] == expected
    site.serve(ORIGIN, RULES)
    clock.advance(DAY)
    assert await ask(new_checker()) == "the copy"


def test_page_promises_something_for_every_policy_and_failure() -> None:
    rows = [row.id for row in promises()]

    assert len(rows) == len(set(rows)) == 5 * len(FAILURES) * 2
