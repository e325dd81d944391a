"""One worker of a fleet: asks all sites in each round, and says what came of it.

    python -m tests.fleet.worker '{"name": …}'

Writes "ready", and after each line that it reads, one round as a line of JSON.
"""

from __future__ import annotations

import json
import logging
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from random import Random

import anyio
import anyio.to_thread

from robotsgate import Policy, RobotsChecker
from tests.fleet.page import PAGES, expected, host_of

# So that later rounds are not answered from memory only.
_ROUNDS_OF_A_CHECKER = 2


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """What a worker is to do.

    Attributes:
        name: its User-Agent, in lower case.
        store: the URL of its store.
        port: of all sites.
        sites: how many there are.
        rounds: how often they are all asked.
        fetch_deadline: of the policy.
        store_timeout: of the policy.
    """

    name: str
    store: str
    port: int
    sites: int
    rounds: int
    fetch_deadline: float
    store_timeout: float


@dataclass(frozen=True, kw_only=True)
class Round:
    """What came of one round.

    Attributes:
        verdicts: how many were given.
        wrong: how many of them were wrong.
        store_failures: how many there were.
        store_skips: how many operations were not tried.
    """

    verdicts: int
    wrong: int
    store_failures: int
    store_skips: int


async def work(assignment: Assignment) -> None:
    """Do all rounds."""
    chance = Random(assignment.name)  # noqa: S311 (reproducible, no secret)
    policy = Policy(
        fetch_deadline=assignment.fetch_deadline,
        store_timeout=assignment.store_timeout,
    )
    await _say("ready")
    number = 0
    while number < assignment.rounds:
        async with AsyncExitStack() as stack:
            checker = RobotsChecker(
                user_agent=assignment.name, store=assignment.store, policy=policy
            )
            await stack.enter_async_context(checker)
            for _ in range(min(_ROUNDS_OF_A_CHECKER, assignment.rounds - number)):
                number += 1
                await anyio.to_thread.run_sync(sys.stdin.readline)
                done = await one_round(checker, assignment, chance)
                await _say(json.dumps(asdict(done)))


async def one_round(
    checker: RobotsChecker, assignment: Assignment, chance: Random
) -> Round:
    """Ask about all pages of all sites at once."""
    sites = chance.sample(range(assignment.sites), assignment.sites)
    before = checker.stats
    verdicts: list[bool] = []

    async def ask(site: int) -> None:
        for page in range(PAGES):
            url = f"http://{host_of(site)}:{assignment.port}/page-{page}"
            answer = await checker.can_fetch(assignment.name, url)
            verdicts.append(answer == expected(site, page))

    async with anyio.create_task_group() as tasks:
        for site in sites:
            tasks.start_soon(ask, site)
    after = checker.stats
    return Round(
        verdicts=len(verdicts),
        wrong=verdicts.count(False),
        store_failures=after.store_failures - before.store_failures,
        store_skips=after.store_skips - before.store_skips,
    )


async def _say(line: str) -> None:
    def write() -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    await anyio.to_thread.run_sync(write)


if __name__ == "__main__":
    # Nobody reads what it says about a store that fails, and a full pipe stops it.
    logging.disable()
    anyio.run(work, Assignment(**json.loads(sys.argv[1])))
