"""Answer for months: a daily purge, logs, and patience with dead servers.

Two days pass at once here, on a clock and a web that are not real.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import anyio
import httpx

from robotsgate import Reason, RobotsChecker
from robotsgate.testing import FakeSite, ManualClock

if TYPE_CHECKING:
    from robotsgate import Clock, Verdict

# --- The service ------------------------------------------------------------------

AGENT = "ExampleBot"
DAY = 86_400.0


async def decisive_verdict(checker: RobotsChecker, url: str, clock: Clock) -> Verdict:
    """The verdict about `url`, once its server can be reached or a copy answers."""
    verdict = await checker.check(AGENT, url)
    while verdict.reason is Reason.UNREACHABLE and verdict.fresh_until is not None:
        await clock.wait(verdict.fresh_until - clock.now())
        verdict = await checker.check(AGENT, url)
    return verdict


async def purge_daily(checker: RobotsChecker, clock: Clock) -> None:
    """Drop entries that nothing can use any more."""
    while True:
        await clock.wait(DAY)
        print("purged:", await checker.purge())


def log_refusals() -> None:
    """Let the checker tell about each URL that it refuses, and about outages."""
    logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(message)s")
    logging.getLogger("robotsgate.checker").setLevel(logging.DEBUG)


# --- Two days ---------------------------------------------------------------------


async def main() -> None:
    """Ask a shop that is down at first."""
    clock = ManualClock()
    shop = FakeSite()
    rules = httpx.Response(200, text="User-agent: *\nDisallow: /basket")
    shop.serve("https://shop.example", [httpx.Response(503), rules])

    async def ask(path: str) -> None:
        url = f"https://shop.example{path}"
        verdict = await decisive_verdict(checker, url, clock)
        print(f"{clock.monotonic():.0f} s, {path}: {verdict.reason.value}")

    async with (
        RobotsChecker(client=shop, clock=clock) as checker,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(purge_daily, checker, clock)
        tasks.start_soon(ask, "/shoes")
        tasks.start_soon(ask, "/basket")
        await clock.pass_time(2 * DAY)
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    log_refusals()
    anyio.run(main)
