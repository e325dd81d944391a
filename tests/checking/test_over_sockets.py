"""A checker and real servers: how often they are asked, and who waits for whom."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import httpx
import pytest

from robotsgate import Policy, RobotsChecker
from tests.servers.answers import Crowd, Held, Raw, Reply, redirect
from tests.servers.loopback import Connection, LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Callable

    Serve = Callable[..., LoopbackServer]

RULES = b"User-agent: *\nDisallow: /private\n"

# Far more than anything here takes.
PATIENCE_SECONDS = 10.0


@pytest.mark.anyio
async def test_500_impatient_callers_make_one_get_and_peek_has_its_result(
    serve: Serve,
) -> None:
    held = Held(Reply(body=RULES))
    server = serve(held)
    url = f"{server.url}/private"

    async with RobotsChecker(user_agent="Bot") as checker:
        async with anyio.create_task_group() as tasks:
            for _ in range(500):
                tasks.start_soon(checker.can_fetch, "ExampleBot", url)
            assert await anyio.to_thread.run_sync(server.has_accepted, 1)
            tasks.cancel_scope.cancel()
        unknown = checker.peek("ExampleBot", url)
        held.release()
        await checker.prefetch([url])
        stats = checker.stats

        assert (unknown, checker.peek("ExampleBot", url)) == (None, False)
    assert server.targets == ["/robots.txt"]
    assert stats.fetches == 1


@pytest.mark.anyio
async def test_close_ends_the_connection_of_a_fetch(serve: Serve) -> None:
    hanging = serve(Raw(b"", Connection.hang))
    checker = RobotsChecker(user_agent="Bot")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, "ExampleBot", hanging.url)
        assert await anyio.to_thread.run_sync(hanging.has_accepted, 1)
        tasks.cancel_scope.cancel()
    with anyio.fail_after(PATIENCE_SECONDS):
        await checker.aclose()

    assert hanging.is_left_alone()


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["can_fetch", "can_fetch_many", "prefetch"])
async def test_so_many_fetches_run_at_once_and_no_more(serve: Serve, way: str) -> None:
    crowd = Crowd(3, Reply(body=RULES))
    servers = [serve(crowd) for _ in range(12)]
    urls = [f"{server.url}/private" for server in servers]

    async with RobotsChecker(user_agent="Bot", max_concurrent_fetches=3) as checker:
        async with anyio.create_task_group() as tasks:
            if way == "can_fetch":
                for url in urls:
                    tasks.start_soon(checker.can_fetch, "ExampleBot", url)
            if way == "prefetch":
                tasks.start_soon(checker.prefetch, urls)
            if way == "can_fetch_many":
                tasks.start_soon(checker.can_fetch_many, "ExampleBot", urls)
        answers = [checker.peek("ExampleBot", url) for url in urls]

    assert answers == [False] * 12
    assert crowd.peak == 3
    assert [server.accepted for server in servers] == [1] * 12


@pytest.mark.anyio
async def test_client_is_used_by_200_callers_and_left_open(serve: Serve) -> None:
    second = serve(Reply(body=RULES))
    first = serve(redirect(f"{second.url}/robots.txt"))

    async with httpx.AsyncClient() as client:
        async with RobotsChecker(user_agent="Bot", client=client) as checker:
            async with anyio.create_task_group() as tasks:
                for _ in range(200):
                    tasks.start_soon(checker.can_fetch, "ExampleBot", first.url)
            allowed = await checker.can_fetch("ExampleBot", f"{first.url}/private")
        is_closed = client.is_closed

    assert not allowed
    assert not is_closed
    assert (len(first.requests), len(second.requests)) == (1, 1)


@pytest.mark.asyncio
async def test_plain_asyncio_code_can_use_a_checker(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply(body=RULES))
    hanging = serve(Raw(b"", Connection.hang))

    async with RobotsChecker(
        user_agent="Bot", policy=Policy(fetch_deadline=5)
    ) as checker:
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
        async with asyncio.timeout(PATIENCE_SECONDS):
            verdict = await checker.check("ExampleBot", f"{server.url}/public")

    assert answers == [False] * 50
    assert verdict.allowed
    assert server.accepted == 1
    assert hanging.is_left_alone()
