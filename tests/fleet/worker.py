"""One worker of a fleet: checks pages of all sites in each round.

    python -m tests.fleet.worker '{"name": …}'

Prints "ready". For each line that it reads, it runs a round and prints the results as
a line of JSON.
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

# So that later rounds are not only answered from memory.
_ROUNDS_PER_CHECKER = 2


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """What a worker has to do.

    Attributes:
        name: its User-Agent, in lower case.
        store: the URL of its store.
        port: the port of all sites.
        sites: the number of sites.
        rounds: the number of rounds.
        fetch_deadline: for the policy.
        store_timeout: for the policy.
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
    """The results of one round.

    Attributes:
        verdicts: the number of verdicts.
        wrong: the number of wrong verdicts.
        store_failures: the number of failed store operations.
        store_skips: the number of skipped store operations.
    """

    verdicts: int
    wrong: int
    store_failures: int
    store_skips: int


async def work(assignment: Assignment) -> None:
    """Run all rounds."""
    chance = Random(assignment.name)  # noqa: S311 (reproducible, no secret)
    policy = Policy(
        fetch_deadline=assignment.fetch_deadline,
        store_timeout=assignment.store_timeout,
    )
    await _print_line("ready")
    number = 0
    while number < assignment.rounds:
        async with AsyncExitStack() as stack:
            checker = RobotsChecker(
                user_agent=assignment.name, store=assignment.store, policy=policy
            )
            await stack.enter_async_context(checker)
            for _ in range(min(_ROUNDS_PER_CHECKER, assignment.rounds - number)):
                number += 1
                await anyio.to_thread.run_sync(sys.stdin.readline)
                results = await run_round(checker, assignment, chance)
                await _print_line(json.dumps(asdict(results)))


async def run_round(
    checker: RobotsChecker, assignment: Assignment, chance: Random
) -> Round:
    """Check all pages of all sites concurrently."""
    sites = chance.sample(range(assignment.sites), assignment.sites)
    before = checker.stats
    verdicts: list[bool] = []

    async def check(site: int) -> None:
        for page in range(PAGES):
            url = f"http://{host_of(site)}:{assignment.port}/page-{page}"
            answer = await checker.can_fetch(assignment.name, url)
            verdicts.append(answer == expected(site, page))

    async with anyio.create_task_group() as tasks:
        for site in sites:
            tasks.start_soon(check, site)
    after = checker.stats
    return Round(
        verdicts=len(verdicts),
        wrong=verdicts.count(False),
        store_failures=after.store_failures - before.store_failures,
        store_skips=after.store_skips - before.store_skips,
    )


async def _print_line(line: str) -> None:
    def write() -> None:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    await anyio.to_thread.run_sync(write)


if __name__ == "__main__":
    # Nobody reads the log, and a full pipe would block the worker.
    logging.disable()
    anyio.run(work, Assignment(**json.loads(sys.argv[1])))
