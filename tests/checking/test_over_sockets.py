"""A checker with real servers: its connections, and what closing it ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from robotsgate import RobotsChecker
from tests.servers.answers import Raw, Reply
from tests.servers.loopback import Connection, LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Callable

    Serve = Callable[..., LoopbackServer]

RULES = b"User-agent: *\nDisallow: /private\n"

# Far longer than anything here takes.
TIMEOUT_SECONDS = 10.0


@pytest.mark.anyio
async def test_closing_the_checker_ends_the_connection_of_a_fetch(serve: Serve) -> None:
    hanging = serve(Raw(b"", Connection.hang))
    checker = RobotsChecker(user_agent="Bot")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, "ExampleBot", hanging.url)
        assert await anyio.to_thread.run_sync(hanging.has_accepted, 1)
        tasks.cancel_scope.cancel()
    with anyio.fail_after(TIMEOUT_SECONDS):
        await checker.aclose()

    assert hanging.is_left_alone()


@pytest.mark.asyncio
async def test_plain_asyncio_code_can_use_a_checker(serve: Serve) -> None:
    server = serve(Reply(body=RULES))
    hanging = serve(Raw(b"", Connection.hang))

    async with RobotsChecker(user_agent="Bot") as checker:
        waiting = asyncio.create_task(checker.can_fetch("ExampleBot", hanging.url))
        answers = await asyncio.gather(
            *(
                checker.can_fetch("ExampleBot", f"{server.url}/private/{number}")
                for number in range(50)
            )
        )
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        async with asyncio.timeout(TIMEOUT_SECONDS):
            verdict = await checker.check("ExampleBot", f"{server.url}/public")

    assert answers == [False] * 50
    assert verdict.allowed
    assert server.accepted == 1
    assert hanging.is_left_alone()
