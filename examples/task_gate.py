"""One gate per process of a task queue.

pip install '.[redis,requests]'
"""

from __future__ import annotations

import os
from functools import cache

import requests

from robotsgate import SharedLedger
from robotsgate.sync import PolitenessGate, RobotsChecker

REDIS = os.environ.get("REDIS", "redis://localhost:6379/0")
PROCESSES = 2
USER_AGENT = "ExampleBot/1.0 (+https://example.org/bot)"


@cache
def opened_gate() -> PolitenessGate:
    """This process's gate, created by its first task, because processes fork."""
    checker = RobotsChecker(user_agent=USER_AGENT, store=REDIS)
    ledger = SharedLedger(REDIS, workers=PROCESSES)
    return PolitenessGate(checker, "ExampleBot", ledger=ledger)


def get(url: str) -> requests.Response:
    """The response, if the host's turn comes within two seconds."""
    with opened_gate().turn(url, patience=2) as turn:
        response = requests.get(
            url,
            headers={"User-Agent": USER_AGENT},
            allow_redirects=False,  # the target needs its own turn
            timeout=10,
        )
        turn.report(response)
    return response
