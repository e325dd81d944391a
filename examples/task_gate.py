"""One gate for each process of a task queue; the other examples of queues use it.

pip install '.[redis,requests]'
"""

from __future__ import annotations

import os
from functools import cache

import requests

from robotsgate import RedisLedger
from robotsgate.sync import PolitenessGate, RobotsChecker

REDIS = os.environ.get("REDIS", "redis://localhost:6379/0")
PROCESSES = 2
USER_AGENT = "ExampleBot/1.0 (+https://example.org/bot)"


@cache
def opened_gate() -> PolitenessGate:
    """The gate of this process, made by its first task, because processes fork."""
    checker = RobotsChecker(user_agent=USER_AGENT, store=REDIS)
    ledger = RedisLedger(REDIS, workers=PROCESSES)
    return PolitenessGate(checker, "ExampleBot", ledger=ledger)


def get(url: str) -> requests.Response:
    """The response, if the turn of its host comes within two seconds."""
    with opened_gate().turn(url, patience=2) as turn:
        response = requests.get(
            url,
            headers={"User-Agent": USER_AGENT},
            allow_redirects=False,  # the target needs a turn, too
            timeout=10,
        )
        turn.report(response)
    return response
