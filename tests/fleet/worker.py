"""One worker of a fleet: checks all pages of all sites in each round.

    python -m tests.fleet.worker NAME STORE PORT SITES ROUNDS DEADLINE

Prints "ready". For each line that it reads, it runs a round and prints, as JSON, the
number of right and wrong answers, and how often the store failed or was skipped.
"""

from __future__ import annotations

import json
import logging
import sys
from random import Random

import anyio
import anyio.to_thread

from robotsgate import Policy, RobotsChecker

PAGES = 6

# So that later rounds are not only answered from memory.
_ROUNDS_OF_A_CHECKER = 2


def host_of(site: int) -> str:
    """The address of `site`, which is 0 or more."""
    return f"127.0.{site // 250 + 1}.{site % 250 + 1}"


def robots_txt(host: str) -> bytes:
    """The robots.txt of the site at the address `host`, which allows one page."""
    allowed = int(host.rpartition(".")[2]) % PAGES
    rules = [f"Disallow: /page-{n}\n" for n in range(PAGES) if n != allowed]
    return "".join(["User-agent: *\n", *rules]).encode()


async def work() -> None:
    """Run all rounds."""
    name, store, port, sites, rounds, deadline = sys.argv[1:]
    policy = Policy(fetch_deadline=float(deadline), store_timeout=2.0)
    _print("ready")
    for _ in range(int(rounds) // _ROUNDS_OF_A_CHECKER):
        async with RobotsChecker(
            user_agent=name, store=store, policy=policy
        ) as checker:
            for _ in range(_ROUNDS_OF_A_CHECKER):
                await anyio.to_thread.run_sync(sys.stdin.readline)
                _print(json.dumps(await _round(checker, name, port, int(sites))))


async def _round(checker: RobotsChecker, name: str, port: str, sites: int) -> list[int]:
    before = checker.stats
    answers: list[bool] = []

    async def check(site: int) -> None:
        host = host_of(site)
        for page in range(PAGES):
            path = f"/page-{page}"
            answer = await checker.can_fetch(name, f"http://{host}:{port}{path}")
            answers.append(answer == (path.encode() + b"\n" not in robots_txt(host)))

    async with anyio.create_task_group() as tasks:
        for site in Random(name).sample(range(sites), sites):  # noqa: S311 (no secret)
            tasks.start_soon(check, site)
    after = checker.stats
    failures = after.store_failures - before.store_failures
    skips = after.store_skips - before.store_skips
    return [answers.count(True), answers.count(False), failures + skips]


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logging.disable()  # nobody reads the log, and a full pipe would block the worker
    anyio.run(work)
