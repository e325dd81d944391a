"""What the wraps of clients share."""

from __future__ import annotations

import pytest

from robotsgate import Reason, RobotsChecker, sync
from robotsgate.integrations._refusal import refusal
from tests.checking.builders import AGENT, PRIVATE, PUBLIC, site_of


@pytest.mark.anyio
async def test_refusal_counts_as_one_check() -> None:
    async with RobotsChecker(user_agent=AGENT, client=site_of()) as checker:
        answers = [
            await refusal(checker, AGENT, url) is None
            for url in (PRIVATE, PRIVATE, PUBLIC)
        ]

    assert answers == [False, False, True]
    assert checker.stats.disallowed == {Reason.DISALLOWED_BY_RULE: 2}
    assert checker.stats.checks == 3


def test_refusal_of_a_blocking_checker_counts_as_one_check() -> None:
    with sync.RobotsChecker(user_agent=AGENT, client=site_of()) as checker:
        for url in (PUBLIC, PRIVATE, PRIVATE, PUBLIC):
            checker._refusal(AGENT, url)

        assert checker.stats.disallowed == {Reason.DISALLOWED_BY_RULE: 2}
        assert checker.stats.checks == 4
