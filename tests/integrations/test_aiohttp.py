"""An aiohttp session as a `Fetcher`, over real sockets."""

from __future__ import annotations

import gzip
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import aiohttp
import anyio
import httpx
import pytest

from robotsgate import PolitenessGate, RobotsChecker, TurnDeadlockError
from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.integrations.aiohttp import AiohttpFetcher, robots_middleware
from robotsgate.testing import ManualClock
from tests.checking.builders import let_others_run
from tests.fetching.fetches import RULES, USER_AGENT, Followed, fetched
from tests.servers.answers import Raw, Reply, Routes, chunked, endless
from tests.servers.loopback import Connection
from tests.tables import cases

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from tests.servers.loopback import Answer, Request, Serve


pytestmark = pytest.mark.anyio

HALF = Raw(b"HTTP/1.1 500 OK\r\nContent-Length: 99\r\n\r\nhalf", Connection.hang)


@pytest.fixture
def anyio_backend() -> str:
    """aiohttp supports only asyncio."""
    return "asyncio"


async def fetch_with_session(url: str, **options: Any) -> Outcome:  # noqa: ANN401 (the session's)
    async with aiohttp.ClientSession(**options) as session:
        return await fetched(url, client=AiohttpFetcher(session))


async def test_session_sends_our_headers_without_cookies_or_credentials(
    serve: Serve,
) -> None:
    server = serve(Reply(body=RULES))
    jar = aiohttp.CookieJar(unsafe=True)
    jar.update_cookies({"session": "secret"})
    headers = {
        "User-Agent": "Other/1.0",
        "Accept-Encoding": "br",
        "Authorization": "Bearer secret",
        "If-None-Match": "secret",
        "X-Crawl": "42",
    }

    await fetch_with_session(server.url, cookie_jar=jar, headers=headers)

    sent = server.requests[0].headers
    assert server.targets == ["/robots.txt"]
    assert sent == {
        "host": f"127.0.0.1:{server.port}",
        "user-agent": USER_AGENT,
        "accept": "text/plain, */*;q=0.1",
        "accept-encoding": "gzip, deflate",
        "x-crawl": "42",
    }


async def test_cookie_set_by_a_redirect_is_not_sent(serve: Serve) -> None:
    headers = {"Location": "/a%20b?%22", "Set-Cookie": "session=secret; Path=/"}
    first = Reply(status=302, headers=headers)
    server = serve(Routes({"/robots.txt": first, "/a%20b?%22": Reply(body=RULES)}))

    outcome = await fetch_with_session(
        server.url, cookie_jar=aiohttp.CookieJar(unsafe=True)
    )

    assert outcome == Outcome(status=200, body=RULES, redirects=Followed(1))
    assert "cookie" not in server.requests[1].headers


async def test_custom_session_headers_are_sent_to_the_first_origin_only(
    serve: Serve,
) -> None:
    """A redirect used to receive them, and its cookies ended up in the jar."""
    cookie = {"Set-Cookie": "session=secret; Path=/"}
    other = serve(Reply(body=RULES, headers=cookie))
    location = {"Location": f"{other.url}/a"}
    first = serve(Reply(status=302, headers={**location, **cookie}))
    jar = aiohttp.CookieJar(unsafe=True)

    await fetch_with_session(first.url, cookie_jar=jar, headers={"X-Api-Key": "secret"})

    assert first.requests[0].headers["x-api-key"] == "secret"
    assert b"secret" not in other.requests[0].head
    assert other.requests[0].headers["user-agent"] == USER_AGENT
    assert len(jar) == 0


async def test_session_middleware_is_not_called(serve: Serve) -> None:
    """It might sign the request, or wait for the robots.txt being fetched."""
    server = serve(Reply(body=RULES))
    calls = []

    async def middleware(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        calls.append(request.url)
        return await send(request)

    await fetch_with_session(server.url, middlewares=(middleware,))

    assert (calls, server.targets) == ([], ["/robots.txt"])


@cases("answer outcome", {
    "a compressed file in chunks": (
        Reply(
            headers={"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"},
            body=chunked(gzip.compress(RULES)),
        ),
        Outcome(status=200, body=RULES),
    ),
    "a 500 with half a page": (
        Raw(b"HTTP/1.1 500 No\r\nContent-Length: 99\r\n\r\nhalf"), Outcome(status=500)
    ),
    "half a file": (
        Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"),
        Outcome(failure=FailureKind.PROTOCOL, error=ANY),
    ),
})  # fmt: skip
async def test_response_determines_the_outcome(
    serve: Serve, answer: Answer, outcome: Outcome
) -> None:
    server = serve(answer)

    assert await fetch_with_session(server.url) == outcome
    assert server.is_left_alone()


async def test_endless_body_is_cut_off_soon_after_the_limit(serve: Serve) -> None:
    server = serve(Raw(b"HTTP/1.1 200 OK\r\n\r\n", endless(b"#" * 1_000)))

    async with aiohttp.ClientSession() as session:
        response = await AiohttpFetcher(session).get(server.url, [], max_bytes=10_000)

    assert 10_000 <= len(response.body) < 2**20


async def test_closed_session_raises() -> None:
    session = aiohttp.ClientSession()
    await session.close()

    with pytest.raises(RuntimeError, match="Session is closed"):
        await fetched("http://a.test", client=AiohttpFetcher(session))


def test_other_clients_are_refused() -> None:
    with pytest.raises(TypeError, match=r"an aiohttp\.ClientSession, got <httpx"):
        AiohttpFetcher(httpx.AsyncClient())  # type: ignore[arg-type]


async def test_url_without_a_scheme_does_not_reach_the_session_proxy(
    serve: Serve,
) -> None:
    """Such a URL used to be sent unchecked."""
    proxy = serve(Reply())
    async with (
        RobotsChecker(user_agent=USER_AGENT) as checker,
        aiohttp.ClientSession(
            proxy=proxy.url, middlewares=(robots_middleware(checker, "Bot"),)
        ) as session,
    ):
        with pytest.raises(aiohttp.InvalidURL):
            await session.get("//h.test/private")

    assert proxy.targets == []


async def test_get_resent_by_aiohttp_waits_for_its_own_turn(serve: Serve) -> None:
    """aiohttp resends a request if the server resets a reused connection."""

    def reset_once(_request: Request, connection: Connection) -> None:
        answers["/page"] = Reply()
        connection.reset()

    answers: dict[str, Answer] = {"/other": Reply(), "/page": reset_once}
    server, clock = serve(Routes(answers)), ManualClock()
    async with (
        RobotsChecker(user_agent=USER_AGENT, clock=clock) as checker,
        PolitenessGate(checker, USER_AGENT, default_delay=0) as gate,
        aiohttp.ClientSession(
            middlewares=(robots_middleware(checker, USER_AGENT, gate=gate),)
        ) as session,
        anyio.create_task_group() as tasks,
    ):

        async def get(path: str) -> None:
            async with session.get(f"{server.url}{path}") as response:
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


@cases("answer outcome turns", {
    "body is there": (Reply(status=500, body=b"sorry"), nullcontext(), 2),
    "body is not": (HALF, pytest.raises(TurnDeadlockError, match="/page"), 1),
})  # fmt: skip
async def test_retry_without_a_release_gets_a_turn_if_the(
    serve: Serve, answer: Answer, outcome: AbstractContextManager[object], turns: int
) -> None:
    """Like the retry middlewares in aiohttp's own examples (aiohttp#10976)."""

    async def send_twice(
        request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        response = await handler(request)
        assert response.status == 500
        return await handler(request)

    server = serve(Routes({"/page": answer}))
    async with (
        RobotsChecker(user_agent=USER_AGENT) as checker,
        PolitenessGate(checker, USER_AGENT, default_delay=0) as gate,
        aiohttp.ClientSession(
            middlewares=(send_twice, robots_middleware(checker, USER_AGENT, gate=gate))
        ) as session,
    ):
        with outcome:
            await session.get(f"{server.url}/page")

    assert server.targets.count("/page") == gate.stats.turns == turns
