"""A process that asks one question with a store, and ends.

    python -m tests.fleet.asker sqlite:////folder/file http://127.0.0.1:80/x 1800000000

Its clock stands at the last argument. Writes its answer as JSON.
"""

from __future__ import annotations

import json
import sys

import anyio

from robotsgate import RobotsChecker
from robotsgate.testing import ManualClock


async def answer(store: str, url: str, now: float) -> dict[str, object]:
    """What a new checker says about `url`, and whence."""
    async with RobotsChecker(
        user_agent="Bot", store=store, clock=ManualClock(now)
    ) as checker:
        verdict = await checker.check("ExampleBot", url)
        return {
            "allowed": verdict.allowed,
            "stale": verdict.is_stale,
            "fetches": checker.stats.fetches,
        }


if __name__ == "__main__":
    _, given_store, given_url, given_now = sys.argv
    found = anyio.run(answer, given_store, given_url, float(given_now))
    sys.stdout.write(json.dumps(found))
