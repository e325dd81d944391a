"""Clients whose requests wait for their turns, against real servers."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import aiohttp
import anyio
import httpx
import httpx2
import pytest

from robotsgate import DisallowedError, PolitenessGate, RobotsChecker
from robotsgate.testing import ManualClock
from tests.checking.builders import AGENT, RULES, let_others_run
from tests.fetching.fetches import PATIENCE_SECONDS
from tests.servers.answers import Raw, Reply, Routes, redirect
from tests.servers.loopback import Connection

from .gated import GATED, aiohttp_session

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from tests.integrations.gated import Send
    from tests.servers.loopback import Answer, LoopbackServer, Request

pytestmark = pytest.mark.anyio

HALF = Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf", Connection.hang)


@pytest.fixture(params=GATED.values(), ids=GATED)
def client(request: pytest.FixtureRequest) -> tuple[str, Any]:
    client: tuple[str, Any] = request.param
    return client


@pytest.fixture
def anyio_backend(client: tuple[str, Any]) -> str:
    return client[0]


@pytest.fixture
def site(serve: Callable[..., LoopbackServer]) -> Callable[..., LoopbackServer]:
    def start(page: Answer) -> LoopbackServer:
        robots = Reply(body=RULES.encode())
        answers = {"/robots.txt": robots, "/page": page, "/other": Reply(body=b"page")}
        return serve(Routes(answers))

    return start


@asynccontextmanager
async def opened(client: tuple[str, Any]) -> AsyncIterator[tuple[Send, PolitenessGate]]:
    """Yield a function that sends requests, and its gate, with no delay."""
    with anyio.fail_after(PATIENCE_SECONDS):
        async with (
            RobotsChecker(user_agent=AGENT) as checker,
            PolitenessGate(checker, AGENT, default_delay=0) as gate,
            client[1](checker, gate) as send,
        ):
            yield send, gate


async def test_turn_lasts_until_the_response_is_closed(
    client: tuple[str, Any], site: Callable[..., LoopbackServer]
) -> None:
    server = site(HALF)

    async with opened(client) as (send, gate):
        async with send(f"{server.url}/page"):
            assert gate.stats.under_way == 1
        async with send(f"{server.url}/other"):
            pass

        assert gate.stats.under_way == 0
        assert gate.stats.turns == 2


async def test_turn_of_a_response_may_be_followed_by_one_from_the_gate(
    client: tuple[str, Any], site: Callable[..., LoopbackServer]
) -> None:
    """The first turn had not started to end, so the gate reported a deadlock."""
    server = site(HALF)

    async with opened(client) as (send, gate):
        async with send(f"{server.url}/page"):
            pass
        async with gate.turn(f"{server.url}/other"):
            pass

        assert gate.stats.turns == 2


async def test_each_hop_of_a_redirect_has_a_turn(
    client: tuple[str, Any], site: Callable[..., LoopbackServer]
) -> None:
    server = site(redirect("/other"))

    async with opened(client) as (send, gate), send(f"{server.url}/page"):
        assert gate.stats.turns == 2

    assert server.targets == ["/robots.txt", "/page", "/other"]


async def test_gate_backs_off_after_a_503_with_retry_after(
    client: tuple[str, Any], site: Callable[..., LoopbackServer]
) -> None:
    server = site(Reply(status=503, headers={"Retry-After": "99"}))

    async with opened(client) as (send, gate):
        before = gate.ready_at(server.url)
        async with send(f"{server.url}/page"):
            pass

        with anyio.move_on_after(0.05):
            async with send(f"{server.url}/other"):
                pass

        assert gate.ready_at(server.url) > before + 90
    assert "/other" not in server.targets


async def test_failed_request_ends_its_turn_as_an_incident(
    client: tuple[str, Any], site: Callable[..., LoopbackServer]
) -> None:
    # Not a closed connection: aiohttp would resend the request.
    server = site(Raw(b"rubbish\r\n\r\n"))

    async with opened(client) as (send, gate):
        with pytest.raises(
            (httpx.TransportError, httpx2.TransportError, aiohttp.ClientError)
        ):
            async with send(f"{server.url}/page"):
                pass

        assert (gate.stats.incidents, gate.stats.under_way) == (1, 0)


async def test_cancelled_request_ends_its_turn(
    client: tuple[str, Any], site: Callable[..., LoopbackServer]
) -> None:
    server = site(Raw(b"", Connection.hang))

    async with opened(client) as (send, gate):

        async def get() -> None:
            async with send(f"{server.url}/page"):
                pass

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(get)
            while "/page" not in server.targets:
                await let_others_run()
            tasks.cancel_scope.cancel()

        assert gate.stats.turns == 1
        assert (gate.stats.incidents, gate.stats.under_way) == (0, 0)


async def test_disallowed_page_has_no_turn(
    client: tuple[str, Any], site: Callable[..., LoopbackServer]
) -> None:
    server = site(Reply())

    async with opened(client) as (send, gate):
        with pytest.raises(DisallowedError) as refusal:
            async with send(f"{server.url}/private"):
                pass

        assert gate.stats.turns == 0
    assert type(refusal.value).__name__ == "RobotsDisallowedError"
    assert server.targets == ["/robots.txt"]


@pytest.mark.parametrize("client", [GATED["aiohttp"]])
class TestGetResentByAiohttp:
    """aiohttp resends a GET if the connection closes before the response."""

    @pytest.fixture
    def server(self, serve: Callable[..., LoopbackServer]) -> LoopbackServer:
        """Resets a reused connection on its second request."""

        def reset_once(_request: Request, connection: Connection) -> None:
            answers["/page"] = Reply()
            connection.reset()

        answers: dict[str, Answer] = {"/other": Reply(), "/page": reset_once}
        return serve(Routes(answers))

    async def test_stays_in_the_turn_around_an_unwrapped_session(
        self, client: tuple[str, Any], server: LoopbackServer
    ) -> None:
        async with opened(client) as (_, gate), aiohttp.ClientSession() as session:
            for path in ("/other", "/page"):
                url = f"{server.url}{path}"
                async with gate.turn(url) as turn, session.get(url) as response:
                    turn.report(response)

            assert (gate.stats.turns, gate.stats.incidents) == (2, 0)
        assert server.targets == ["/robots.txt", "/other", "/page", "/page"]

    @pytest.mark.usefixtures("client")
    async def test_waits_for_its_own_turn_with_the_middleware(
        self, server: LoopbackServer
    ) -> None:
        clock = ManualClock()
        with anyio.fail_after(PATIENCE_SECONDS):
            async with (
                RobotsChecker(user_agent=AGENT, clock=clock) as checker,
                PolitenessGate(checker, AGENT, default_delay=0) as gate,
                aiohttp_session(checker, gate) as send,
                anyio.create_task_group() as tasks,
            ):

                async def get(path: str) -> None:
                    async with send(f"{server.url}{path}") as response:
                        assert response.status == 200

                await get("/other")
                tasks.start_soon(get, "/page")
                while not gate.stats.waiting:
                    await let_others_run()
                before = server.targets
                await clock.pass_time(120)

        assert before == ["/robots.txt", "/other", "/page"]
        assert server.targets == [*before, "/page"]
        assert (gate.stats.turns, gate.stats.incidents) == (3, 1)
