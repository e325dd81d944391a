"""A checker and real servers: how often they are asked, and who waits for whom."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import httpx
import pytest

from robotsgate import MemoryStore, Policy, RobotsChecker, RobotsTxtFetched
from robotsgate.testing import ManualClock
from tests.fetching.fetches import PATIENCE_SECONDS
from tests.servers.answers import Crowd, Held, Raw, Reply, redirect
from tests.servers.loopback import Connection, LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Callable

    Serve = Callable[..., LoopbackServer]

RULES = b"User-agent: *\nDisallow: /private\n"
DAY = 86_400.0


@pytest.mark.anyio
async def test_200_questions_about_a_cold_origin_make_one_get(serve: Serve) -> None:
    held = Held(Reply(body=RULES))
    server = serve(held)
    answers: list[bool] = []

    async with RobotsChecker() as checker:

        async def ask(number: int) -> None:
            path = "public" if number % 2 else "private"
            url = f"{server.url}/{path}/{number}"
            answers.append(await checker.can_fetch("ExampleBot", url))

        async with anyio.create_task_group() as tasks:
            for number in range(200):
                tasks.start_soon(ask, number)
            assert await anyio.to_thread.run_sync(server.has_accepted, 1)
            await anyio.wait_all_tasks_blocked()
            held.release()
        stats = checker.stats

    assert sorted(answers) == [False] * 100 + [True] * 100
    assert server.targets == ["/robots.txt"]
    assert server.accepted == 1
    assert (stats.fetches, stats.joined, stats.checks) == (1, 199, 200)


@pytest.mark.anyio
async def test_first_of_200_callers_cancelled_makes_one_get_more_at_most(
    serve: Serve,
) -> None:
    held = Held(Reply(body=RULES))
    server = serve(held)
    answers: list[bool] = []
    first = anyio.CancelScope()

    async with RobotsChecker() as checker:

        async def ask(scope: anyio.CancelScope) -> None:
            with scope:
                url = f"{server.url}/private"
                answers.append(await checker.can_fetch("ExampleBot", url))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, first)
            assert await anyio.to_thread.run_sync(server.has_accepted, 1)
            for _ in range(199):
                tasks.start_soon(ask, anyio.CancelScope())
            await anyio.wait_all_tasks_blocked()
            first.cancel()
            assert await anyio.to_thread.run_sync(server.has_accepted, 2)
            held.release()
        stats = checker.stats

    assert first.cancelled_caught
    assert answers == [False] * 199
    assert server.accepted == 2
    assert stats.fetches == 1
    assert stats.fetches_under_way == 0


@pytest.mark.anyio
async def test_all_callers_cancelled_leave_an_origin_that_can_be_asked(
    serve: Serve,
) -> None:
    held = Held(Reply(body=RULES))
    server = serve(held)

    async with RobotsChecker() as checker:
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(checker.can_fetch, "ExampleBot", server.url)
            assert await anyio.to_thread.run_sync(server.has_accepted, 1)
            tasks.cancel_scope.cancel()
        held.release()
        allowed = await checker.can_fetch("ExampleBot", f"{server.url}/private")
        stats = checker.stats

    assert not allowed
    assert server.is_left_alone()
    assert (stats.fetches, stats.fetches_under_way) == (1, 0)


@pytest.mark.anyio
async def test_200_questions_about_a_dead_port_make_one_attempt() -> None:
    with LoopbackServer(Reply()) as server:
        url = server.url
    events: list[object] = []
    verdicts = []

    async with RobotsChecker(on_event=events.append, clock=ManualClock()) as checker:

        async def ask() -> None:
            verdicts.append(await checker.check("ExampleBot", url))

        async with anyio.create_task_group() as tasks:
            for _ in range(200):
                tasks.start_soon(ask)
        again = await checker.can_fetch("ExampleBot", url)
        stats = checker.stats

    assert len(set(verdicts)) == 1
    assert not verdicts[0].allowed
    assert not again
    assert len(events) == 1
    assert isinstance(events[0], RobotsTxtFetched)
    assert (stats.fetches, stats.unreachable, stats.joined) == (1, 1, 199)
    assert server.accepted == 0


@pytest.mark.anyio
async def test_200_questions_about_a_failing_origin_make_one_get(
    serve: Serve,
) -> None:
    server = serve(Raw(b"", Connection.reset))

    async with RobotsChecker() as checker, anyio.create_task_group() as tasks:
        for _ in range(200):
            tasks.start_soon(checker.can_fetch, "ExampleBot", server.url)

    assert server.accepted == 1


@pytest.mark.anyio
async def test_expired_file_is_fetched_once_for_200_callers(serve: Serve) -> None:
    server, clock = serve(Reply(body=RULES)), ManualClock()

    async with RobotsChecker(clock=clock) as checker:
        await checker.can_fetch("ExampleBot", server.url)
        clock.advance(DAY)
        async with anyio.create_task_group() as tasks:
            for _ in range(200):
                tasks.start_soon(checker.can_fetch, "ExampleBot", server.url)

    assert server.accepted == 2


@pytest.mark.anyio
async def test_origins_do_not_wait_for_each_other(serve: Serve) -> None:
    hanging, prompt = serve(Raw(b"", Connection.hang)), serve(Reply(body=RULES))

    async with RobotsChecker() as checker, anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, "ExampleBot", hanging.url)
        assert await anyio.to_thread.run_sync(hanging.has_accepted, 1)
        with anyio.fail_after(PATIENCE_SECONDS):
            allowed = await checker.can_fetch("ExampleBot", f"{prompt.url}/private")
        under_way = checker.stats.fetches_under_way
        tasks.cancel_scope.cancel()

    assert not allowed
    assert under_way == 1
    assert hanging.is_left_alone()


@pytest.mark.anyio
@pytest.mark.parametrize("way", ["can_fetch", "can_fetch_many", "prefetch"])
async def test_so_many_fetches_run_at_once_and_no_more(serve: Serve, way: str) -> None:
    crowd = Crowd(3, Reply(body=RULES))
    servers = [serve(crowd) for _ in range(12)]
    urls = [f"{server.url}/private" for server in servers]

    async with RobotsChecker(max_concurrent_fetches=3) as checker:
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
async def test_many_urls_of_many_origins_make_one_get_for_each(serve: Serve) -> None:
    closed, opened = serve(Reply(body=RULES)), serve(Reply(status=404))
    urls = [
        f"{server.url}/{path}"
        for path in ("private", "public")
        for server in (closed, opened, closed)
    ]

    async with RobotsChecker() as checker:
        answers = await checker.can_fetch_many("ExampleBot", urls)

    assert answers == [False, True, False, True, True, True]
    assert (closed.accepted, opened.accepted) == (1, 1)


@pytest.mark.anyio
async def test_ports_are_origins_of_their_own(serve: Serve) -> None:
    one, other = serve(Reply(body=RULES)), serve(Reply())

    async with RobotsChecker() as checker:
        answers = [
            await checker.can_fetch("ExampleBot", f"{server.url}/private")
            for server in (one, other)
        ]

    assert answers == [False, True]


@pytest.mark.anyio
async def test_known_origin_is_not_asked_again(serve: Serve) -> None:
    server, clock = serve(Reply(body=RULES)), ManualClock()

    async with RobotsChecker(clock=clock) as checker:
        for _ in range(5):
            await checker.can_fetch("ExampleBot", server.url)
            await checker.sitemaps(server.url)
            await checker.crawl_delay("OtherBot", f"{server.url}/x")
            clock.advance(DAY / 10)

    assert server.accepted == 1


@pytest.mark.anyio
async def test_forced_refresh_and_forgetting_ask_again(serve: Serve) -> None:
    server = serve(Reply(body=RULES))

    async with RobotsChecker() as checker:
        await checker.can_fetch("ExampleBot", server.url)
        await checker.refresh(server.url)
        await checker.forget(server.url)
        unknown = checker.peek("ExampleBot", server.url)
        await checker.can_fetch("ExampleBot", server.url)

    assert unknown is None
    assert server.accepted == 3


@pytest.mark.anyio
async def test_store_that_was_handed_over_empty_is_used(serve: Serve) -> None:
    """An empty MemoryStore has the length 0 and so is false."""
    server, store = serve(Reply(body=RULES)), MemoryStore()

    for _ in range(2):
        async with RobotsChecker(store=store) as checker:
            allowed = await checker.can_fetch("ExampleBot", f"{server.url}/private")
            stats = checker.stats

        assert not allowed
        assert stats.store_failures == 0
        assert len(store) == 1

    assert server.accepted == 1
    assert stats.store_hits == 1


@pytest.mark.anyio
async def test_cancelled_question_leaves_the_checker_as_it_was(serve: Serve) -> None:
    held = Held(Reply(body=RULES))
    server, clock = serve(Reply(body=RULES)), ManualClock()
    slow = serve(held)

    async with RobotsChecker(clock=clock) as checker:
        await checker.can_fetch("ExampleBot", server.url)
        with anyio.move_on_after(0.05):
            await checker.can_fetch_many("ExampleBot", [server.url, slow.url])
        held.release()
        stats = checker.stats
        known = checker.peek("ExampleBot", f"{server.url}/private")

    assert known is False
    assert (stats.fetches, stats.fetches_under_way) == (1, 0)
    assert slow.is_left_alone()


@pytest.mark.anyio
async def test_client_is_used_by_200_callers_and_left_open(serve: Serve) -> None:
    second = serve(Reply(body=RULES))
    first = serve(redirect(f"{second.url}/robots.txt"))

    async with httpx.AsyncClient() as client:
        async with RobotsChecker(client=client) as checker:
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

    async with RobotsChecker(policy=Policy(fetch_deadline=5)) as checker:
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
