"""What the wraps of clients share."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from robotsgate import PolitenessGate, Reason, RobotsChecker, sync
from robotsgate.integrations._wrapping import TurnOfResponse
from robotsgate.integrations.aiohttp import robots_middleware
from robotsgate.integrations.httpx import RobotsTransport, robots_hook
from tests.checking.builders import AGENT, PRIVATE, PUBLIC, site_of


@pytest.mark.anyio
async def test_refusal_counts_as_one_check() -> None:
    async with RobotsChecker(user_agent=AGENT, client=site_of()) as checker:
        answers = [
            await checker.refusal(AGENT, url) is None
            for url in (PRIVATE, PRIVATE, PUBLIC)
        ]

    assert answers == [False, False, True]
    assert checker.stats.disallowed == {Reason.DISALLOWED_BY_RULE: 2}
    assert checker.stats.checks == 3


@pytest.mark.anyio
async def test_turn_of_a_response_that_is_closed_twice_ends_once() -> None:
    checker = RobotsChecker(user_agent=AGENT, client=site_of())
    async with checker, PolitenessGate(checker, AGENT, default_delay=0) as gate:
        turn = await TurnOfResponse.begun(gate, PUBLIC)
        turn.report(status=500, retry_after=None)

        await turn.aclose()
        await turn.aclose()

        assert gate.stats.under_way == 0


def test_refusal_of_a_blocking_checker_counts_as_one_check() -> None:
    with sync.RobotsChecker(user_agent=AGENT, client=site_of()) as checker:
        for url in (PUBLIC, PRIVATE, PRIVATE, PUBLIC):
            checker.refusal(AGENT, url)

        assert checker.stats.disallowed == {Reason.DISALLOWED_BY_RULE: 2}
        assert checker.stats.checks == 4


@pytest.mark.parametrize("wrap", [robots_hook, RobotsTransport, robots_middleware])
def test_arguments_that_are_swapped_are_refused_at_once(wrap: Any) -> None:  # noqa: ANN401 (each has other arguments)
    with pytest.raises(TypeError, match=r"a robotsgate\.RobotsChecker, got 'Example"):
        wrap(AGENT, RobotsChecker(client=site_of()))


@pytest.mark.parametrize("wrap", [RobotsTransport, robots_middleware])
def test_other_object_than_a_gate_is_refused_at_once(wrap: Any) -> None:  # noqa: ANN401 (each has other arguments)
    checker = RobotsChecker(client=site_of())

    with pytest.raises(TypeError, match="gate to be a PolitenessGate, got <robotsgate"):
        wrap(checker, AGENT, gate=checker)


@pytest.mark.anyio
async def test_hook_for_responses_is_refused() -> None:
    checker = RobotsChecker(client=site_of())
    hooks = {"response": [robots_hook(checker, AGENT)]}

    async with httpx.AsyncClient(transport=site_of(), event_hooks=hooks) as client:
        with pytest.raises(TypeError, match="a hook for requests, got a response"):
            await client.get(PUBLIC)
