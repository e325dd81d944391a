"""A session of aiohttp as a `Fetcher`, over real sockets."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import aiohttp
import httpx
import pytest

from robotsgate import Policy, RobotsChecker
from robotsgate.caching._outcome import Answered, Failed, FailureKind
from robotsgate.integrations.aiohttp import AiohttpFetcher, robots_middleware
from tests.fetching.fetches import RULES, USER_AGENT, Followed, fetched
from tests.servers.answers import Raw, Reply, Routes, chunked, dripping, endless
from tests.servers.loopback import Connection, dead_port

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from robotsgate.caching._outcome import Outcome
    from tests.servers.loopback import Answer, LoopbackServer

    Serve = Callable[..., LoopbackServer]

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """The only event loop of aiohttp."""
    return "asyncio"


async def fetched_by_session(
    url: str,
    *,
    policy: Policy | None = None,
    **options: Any,  # noqa: ANN401 (those of a session)
) -> Outcome:
    async with aiohttp.ClientSession(**options) as session:
        return await fetched(url, client=AiohttpFetcher(session), policy=policy)


def head(status: str, *lines: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


async def test_session_sends_our_headers_and_nothing_that_identifies(
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

    await fetched_by_session(server.url, cookie_jar=jar, headers=headers)

    sent = server.requests[0].headers
    assert server.targets == ["/robots.txt"]
    assert sent == {
        "host": f"127.0.0.1:{server.port}",
        "user-agent": USER_AGENT,
        "accept": "text/plain, */*;q=0.1",
        "accept-encoding": "gzip, deflate",
        "x-crawl": "42",
    }


async def test_cookie_that_a_redirect_set_is_not_sent(serve: Serve) -> None:
    headers = {"Location": "/a%20b?%22", "Set-Cookie": "session=secret; Path=/"}
    first = Reply(status=302, headers=headers)
    server = serve(Routes({"/robots.txt": first, "/a%20b?%22": Reply(body=RULES)}))

    outcome = await fetched_by_session(
        server.url, cookie_jar=aiohttp.CookieJar(unsafe=True)
    )

    assert outcome == Answered(status=200, body=RULES, redirects=Followed(1))
    assert "cookie" not in server.requests[1].headers


async def test_what_a_session_sends_of_its_own_stays_at_the_first_origin(
    serve: Serve,
) -> None:
    """Custom headers once followed a redirect, and its cookies came into the jar."""
    cookie = {"Set-Cookie": "session=secret; Path=/"}
    other = serve(Reply(body=RULES, headers=cookie))
    location = {"Location": f"{other.url}/a"}
    first = serve(Reply(status=302, headers={**location, **cookie}))
    jar = aiohttp.CookieJar(unsafe=True)

    await fetched_by_session(first.url, cookie_jar=jar, headers={"X-Api-Key": "secret"})

    assert first.requests[0].headers["x-api-key"] == "secret"
    assert b"secret" not in other.requests[0].head
    assert other.requests[0].headers["user-agent"] == USER_AGENT
    assert len(jar) == 0


async def test_middleware_of_a_session_is_not_asked(serve: Serve) -> None:
    """It might sign the request, or wait for the very answer that this brings."""
    server = serve(Reply(body=RULES))
    asked = []

    async def middleware(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        asked.append(request.url)
        return await send(request)

    await fetched_by_session(server.url, middlewares=(middleware,))

    assert asked == []


GZIPPED = gzip.compress(RULES)
PAGE = b"<title>Page not found</title>"
ANSWERS: dict[str, tuple[Answer, Outcome]] = {
    "a file": (Reply(body=RULES), Answered(status=200, body=RULES)),
    "a coded file in chunks": (
        Reply(
            headers={"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"},
            body=chunked(GZIPPED[:20], GZIPPED[20:]),
        ),
        Answered(status=200, body=RULES),
    ),
    "a file without an end": (
        Raw(head("200 OK"), endless(b"#" * 999)),
        Answered(status=200, body=b"#" * 512_001),
    ),
    "a missing file with a page without an end": (
        Raw(head("404 No"), endless(b"x" * 999)),
        Answered(status=404),
    ),
    "an error with a page without an end": (
        Raw(head("500 No"), endless(b"x" * 999)),
        Answered(status=500, body=b"x" * 4_096),
    ),
    "an error with half a page": (
        Raw(head("500 No", "Content-Length: 99") + PAGE),
        Answered(status=500, body=PAGE),
    ),
    "half a file": (
        Raw(head("200 OK", "Content-Length: 99") + RULES),
        Failed(kind=FailureKind.PROTOCOL, error=ANY),
    ),
    "rubbish": (Raw(b"rubbish\r\n\r\n"), Failed(kind=FailureKind.PROTOCOL, error=ANY)),
    "no answer": (Raw(b""), Failed(kind=FailureKind.TRANSFER, error=ANY)),
}


@pytest.mark.parametrize(("answer", "outcome"), ANSWERS.values(), ids=ANSWERS)
async def test_answer_arrives(serve: Serve, answer: Answer, outcome: Outcome) -> None:
    server = serve(answer)

    assert await fetched_by_session(server.url) == outcome
    assert server.is_left_alone()


@pytest.mark.parametrize(
    "answer",
    [Raw(b"", Connection.hang), Raw(head("200 OK"), dripping(b"#"))],
    ids=["head", "body"],
)
async def test_deadline_of_the_checker_ends_a_request(
    serve: Serve, answer: Answer
) -> None:
    server = serve(answer)

    outcome = await fetched_by_session(server.url, policy=Policy(fetch_deadline=0.2))

    assert outcome == Failed(kind=FailureKind.TIMEOUT, error="no response within 0.2 s")
    assert server.is_left_alone()


async def test_time_out_of_the_session_is_one(serve: Serve) -> None:
    server = serve(Raw(b"", Connection.hang))

    timeout = aiohttp.ClientTimeout(sock_read=0.1)
    outcome = await fetched_by_session(server.url, timeout=timeout)

    assert outcome == Failed(kind=FailureKind.TIMEOUT, error=ANY)
    assert outcome.error == "SocketTimeoutError: Timeout on reading data from socket"


async def test_dead_port_is_a_failure_to_connect() -> None:
    outcome = await fetched_by_session(f"http://127.0.0.1:{dead_port()}")

    assert outcome == Failed(kind=FailureKind.CONNECT, error=ANY)


async def test_name_that_does_not_resolve_is_a_failure_of_names() -> None:
    class NoNames(aiohttp.abc.AbstractResolver):
        async def resolve(self, *_: object, **__: object) -> Any:  # noqa: ANN401 (never)
            raise OSError(None, "no such name")

        async def close(self) -> None:
            pass

    connector = aiohttp.TCPConnector(resolver=NoNames())
    outcome = await fetched_by_session("http://a.test", connector=connector)

    assert outcome == Failed(kind=FailureKind.NAME_RESOLUTION, error=ANY)


async def test_certificate_of_an_unknown_authority_is_a_tls_failure(
    serve: Serve, server_tls: ssl.SSLContext
) -> None:
    server = serve(Reply(body=RULES), ssl_context=server_tls)

    outcome = await fetched_by_session(server.url)

    assert outcome == Failed(kind=FailureKind.TLS, error=ANY)


async def test_body_without_an_end_is_read_as_far_as_it_counts(serve: Serve) -> None:
    server = serve(Raw(head("200 OK"), endless(b"#" * 1_000)))

    async with aiohttp.ClientSession() as session:
        response = await AiohttpFetcher(session).get(server.url, [], max_bytes=10_000)

    assert 10_000 <= len(response.body) < 2**20


async def test_scheme_that_a_connector_does_not_know_is_another_failure() -> None:
    class NoHTTP(aiohttp.TCPConnector):
        allowed_protocol_schema_set = frozenset({"tcp"})

    outcome = await fetched_by_session("http://a.test", connector=NoHTTP())

    assert outcome == Failed(kind=FailureKind.OTHER, error=ANY)


async def test_session_that_is_closed_is_a_mistake() -> None:
    session = aiohttp.ClientSession()
    await session.close()

    with pytest.raises(RuntimeError, match="Session is closed"):
        await fetched("http://a.test", client=AiohttpFetcher(session))


def test_other_clients_are_refused() -> None:
    with pytest.raises(TypeError, match=r"an aiohttp\.ClientSession, got <httpx"):
        AiohttpFetcher(httpx.AsyncClient())  # type: ignore[arg-type]


async def test_url_without_a_scheme_does_not_reach_the_proxy_of_a_session(
    serve: Serve,
) -> None:
    """Such a URL went out unasked."""
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
