"""Cancelled at whatever place, a question leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
import gzip
import threading
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from robotsgate import Policy, RobotsChecker
from robotsgate.fetching._transport import OneRequestTransport
from robotsgate.testing import ManualClock
from tests.cancellation import cancelled_at
from tests.fetching.fetches import PATIENCE_SECONDS
from tests.servers.answers import Reply, Routes, chunked, redirect

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Callable

    from tests.servers.loopback import LoopbackServer

    Serve = Callable[..., LoopbackServer]

pytestmark = pytest.mark.anyio

RULES = b"User-agent: *\nDisallow: /private\n"
LARGE = RULES + b"# \n" * 40_000

# A fetch suspends 30 to 90 times; more than that would be a loop.
MOST_CHECKPOINTS = 1_000


def tasks_of_loop() -> int:
    """How many tasks there are, as far as the loop tells."""
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:  # on trio, which lets no task outlive its nursery
        return 0


async def cancelled_everywhere(
    make: Callable[[], RobotsChecker],
    question: Callable[[RobotsChecker], Awaitable[object]],
    *servers: LoopbackServer,
) -> int:
    """Cancel `question` at each of its checkpoints, and look at what is left.

    Returns:
        How many checkpoints there were.
    """
    tasks = tasks_of_loop()
    for number in range(1, MOST_CHECKPOINTS):
        async with make() as checker:
            with anyio.fail_after(PATIENCE_SECONDS):
                was_cancelled = await cancelled_at(number, lambda: question(checker))
            assert checker.stats.fetches_under_way == 0
            assert not checker._renewals._under_way._scopes
            # The place and the origin are free: the same question is answered.
            with anyio.fail_after(PATIENCE_SECONDS):
                assert await question(checker)
            assert checker._renewals._fetcher._slots.value == 1  # type: ignore[union-attr]  # made by now
        assert tasks_of_loop() == tasks
        for server in servers:
            assert server.is_left_alone()
        if not was_cancelled:
            return number - 1
    raise AssertionError(f"{MOST_CHECKPOINTS} checkpoints and no end")


def one_at_a_time(**arguments: object) -> Callable[[], RobotsChecker]:
    """Checkers with one place for fetches, so that a lost one is noticed."""
    return lambda: RobotsChecker(max_concurrent_fetches=1, **arguments)  # type: ignore[arg-type]  # those of the checker


async def test_cancelled_anywhere_over_http(serve: Serve) -> None:
    body = chunked(gzip.compress(LARGE)[:900], gzip.compress(LARGE)[900:])
    coded = {"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"}
    server = serve(
        Routes(
            {
                "/robots.txt": redirect("/a"),
                "/a": redirect("/b"),
                "/b": Reply(headers=coded, body=body),
            }
        )
    )

    checkpoints = await cancelled_everywhere(
        one_at_a_time(), lambda checker: checker.can_fetch("Bot", server.url), server
    )

    assert checkpoints > 10


async def test_cancelled_anywhere_over_tls(
    serve: Serve, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    server = serve(Reply(body=RULES), ssl_context=server_tls)
    url = f"https://localhost:{server.port}/"
    transport = OneRequestTransport(ssl_context=client_tls)

    checkpoints = await cancelled_everywhere(
        one_at_a_time(client=transport),
        lambda checker: checker.can_fetch("Bot", url),
        server,
    )

    assert checkpoints > 6


async def test_cancelled_anywhere_with_many_origins_at_once(serve: Serve) -> None:
    servers = [serve(Reply(body=RULES)) for _ in range(3)]
    urls = [f"{server.url}/page" for server in servers]

    checkpoints = await cancelled_everywhere(
        one_at_a_time(),
        lambda checker: checker.can_fetch_many("Bot", urls),
        *servers,
    )

    assert checkpoints >= 1


async def test_cancelled_anywhere_in_a_missing_page(serve: Serve) -> None:
    page = b"<title>Not found</title>" + b"x" * 100_000
    server = serve(Reply(status=500, body=page))

    await cancelled_everywhere(
        one_at_a_time(), lambda checker: checker.can_fetch("Bot", server.url), server
    )


async def test_closed_while_fetches_are_under_way_everybody_is_told_at_once(
    serve: Serve,
) -> None:
    may_answer = threading.Event()

    def silent(*_: object) -> None:
        may_answer.wait(PATIENCE_SECONDS)

    servers = [serve(silent) for _ in range(3)]
    told: list[str] = []

    async def ask(checker: RobotsChecker, server: LoopbackServer) -> None:
        with pytest.raises(RuntimeError, match="the checker is closed"):
            await checker.can_fetch("Bot", server.url)
        told.append(server.url)

    checker = RobotsChecker(max_concurrent_fetches=2)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            for server in servers:
                for _ in range(4):
                    group.start_soon(ask, checker, server)
            while sum(server.accepted for server in servers) < 2:
                await anyio.lowlevel.checkpoint()
            await checker.aclose()
            assert checker.stats.fetches_under_way == 0

    may_answer.set()
    assert len(told) == 12
    assert all(server.is_left_alone() for server in servers)
    gc.collect()


class HangingStore:
    """A store that never answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.ended = 0

    async def _hang(self, name: str) -> None:
        self.asked.append(name)
        try:
            await anyio.sleep_forever()
        finally:
            self.ended += 1

    async def get(self, origin: str) -> None:
        await self._hang(f"get {origin}")

    async def put(self, _entry: object) -> None:
        await self._hang("put")

    async def delete(self, _origin: str) -> None:
        await self._hang("delete")

    async def purge(self, _now: float) -> int:
        await self._hang("purge")
        return 0

    async def aclose(self) -> None:
        await self._hang("aclose")


async def test_store_that_hangs_is_done_without(serve: Serve) -> None:
    """And left alone for a while, because waiting for it costs each question."""
    server, store, clock = serve(Reply(body=RULES)), HangingStore(), ManualClock()
    policy = Policy(store_timeout=0.05)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with RobotsChecker(store=store, policy=policy, clock=clock) as checker:
            assert await checker.can_fetch("Bot", f"{server.url}/page")
            assert not await checker.can_fetch("Bot", f"{server.url}/private")
            await checker.forget(server.url)

            assert checker.stats.store_failures == 1
            assert checker.stats.store_skips == 2
            clock.advance(31)
            await checker.forget(server.url)

            assert checker.stats.store_failures == 2
    assert store.asked == [f"get {server.url}", "delete"]
    assert store.ended == 2


async def test_checker_that_is_closed_waits_for_no_store(serve: Serve) -> None:
    server, store = serve(Reply(body=RULES)), HangingStore()

    async def ask(checker: RobotsChecker) -> None:
        with pytest.raises(RuntimeError, match="the checker is closed"):
            await checker.can_fetch("Bot", server.url)

    checker = RobotsChecker(store=store)
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as group:
            group.start_soon(ask, checker)
            await anyio.wait_all_tasks_blocked()
            await checker.aclose()

    assert store.ended == 1
    assert server.accepted == 0
