"""A process that checks one URL with a store, and exits.

    python -m tests.fleet.asker sqlite:////folder/file http://127.0.0.1:80/x 1800000000

The last argument is the time. Prints the result as JSON.
"""

from __future__ import annotations

import json
import sys

import anyio

from robotsgate import RobotsChecker
from robotsgate.testing import ManualClock


async def check(store: str, url: str, now: float) -> dict[str, object]:
    """Check `url` with a new checker; say whether the answer is stale or fetched."""
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
    _, store_argument, url_argument, now_argument = sys.argv
    result = anyio.run(check, store_argument, url_argument, float(now_argument))
    sys.stdout.write(json.dumps(result))
