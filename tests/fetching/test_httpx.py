"""GETs through the caller's own client or transport, from httpx and httpx2."""

from __future__ import annotations

import gzip
from dataclasses import replace
from typing import TYPE_CHECKING
from unittest.mock import ANY

import anyio
import httpx
import httpx2
import pytest

from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.caching._policy import Policy
from robotsgate.fetching._fetcher import own_fetch
from robotsgate.fetching._httpx import TransportFetcher
from tests.faults.rows import head
from tests.fetching.fetches import (
    PATIENCE_SECONDS,
    RULES,
    USER_AGENT,
    Followed,
    fetch_of,
    fetched,
)
from tests.servers.answers import Raw, Reply, Routes, chunked, endless, redirect
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from types import ModuleType

    from tests.servers.loopback import Answer, Serve

pytestmark = pytest.mark.anyio

SUCCESS = Outcome(status=200, body=RULES)


HALF_OF_4_000 = pytest.approx(2_000, abs=PATIENCE_SECONDS)


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def library(request: pytest.FixtureRequest) -> ModuleType:
    """httpx or httpx2, which have the same classes."""
    module: ModuleType = request.param
    return module


def recording(
    library: ModuleType,
) -> tuple[list[httpx.Request], httpx.AsyncBaseTransport]:
    """A transport that always returns 204, and the requests that it has got."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> object:
        requests.append(request)
        return library.Response(204)

    return requests, library.MockTransport(answer)


# --- what is sent ---------------------------------------------------------------


async def test_transport_gets_a_request_with_these_headers_and_timeouts(
    library: ModuleType,
) -> None:
    requests, transport = recording(library)
    policy = Policy(connect_timeout=2, read_timeout=3, fetch_deadline=4_000)

    outcome = await fetched("http://example.com", client=transport, policy=policy)

    (request,) = requests
    assert outcome == Outcome(status=204)
    assert type(request) is library.Request
    assert (request.method, str(request.url)) == (
        "GET",
        "http://example.com/robots.txt",
    )
    assert request.headers.raw == [
        (b"Host", b"example.com"),
        (b"User-Agent", USER_AGENT.encode()),
        (b"Accept", b"text/plain, */*;q=0.1"),
        (b"Accept-Encoding", b"gzip, deflate"),
    ]
    timeouts = {"connect": 2, "read": 3, "write": 3, "pool": HALF_OF_4_000}
    assert request.extensions == {"timeout": timeouts}


async def test_client_sends_its_other_headers_but_no_secrets_and_no_conditions(
    serve: Serve, library: ModuleType
) -> None:
    """Nor does it use its base URL, or answer a challenge."""
    challenge = {"WWW-Authenticate": "Basic"}
    server = serve(Reply(status=401, headers=challenge))
    conditions = ("If-None-Match", "If-Modified-Since", "If-Range", "Range")
    headers = {
        "Authorization": "Bearer secret",
        "Cookie": "other=secret",
        "User-Agent": "Other/1.0",
        "Accept": "text/html",
        "Accept-Encoding": "br, zstd",
        "X-Crawl": "42",
        **dict.fromkeys(conditions, '"secret"'),
    }

    async with library.AsyncClient(
        cookies={"session": "secret"},
        auth=library.DigestAuth("user", "secret"),
        params={"key": "secret"},
        headers=headers,
        base_url=f"{server.url}/api/",
    ) as client:
        outcome = await fetched(server.url, client=client)

    assert outcome == Outcome(status=401)
    (request,) = server.requests
    assert request.target == "/robots.txt"
    assert b"secret" not in request.head
    sent = request.headers
    assert sent["user-agent"] == USER_AGENT
    assert sent["accept"] == "text/plain, */*;q=0.1"
    assert sent["accept-encoding"] == "gzip, deflate"
    assert sent["x-crawl"] == "42"


@pytest.mark.parametrize("is_client", [True, False], ids=["client", "transport"])
async def test_international_name_that_idna_2008_rejects_is_used(
    library: ModuleType, *, is_client: bool
) -> None:
    """IDNA 2008 does not allow emoji; browsers and name servers do."""
    requests, transport = recording(library)
    async with library.AsyncClient(transport=transport) as client:
        outcome = await fetched(
            "http://i\u2764.ws:8080", client=client if is_client else transport
        )

    assert outcome == Outcome(status=204)
    (request,) = requests
    assert request.url.raw_host == b"xn--i-7iq.ws"
    assert request.headers["host"] == "xn--i-7iq.ws:8080"


@pytest.mark.parametrize("pool_timeout", [None, 0.5, 6_000.0])
async def test_client_waits_less_than_the_deadline_for_its_pool(
    library: ModuleType, pool_timeout: float | None
) -> None:
    """If the deadline passed meanwhile, the origin would be blamed."""
    requests, transport = recording(library)
    timeout = library.Timeout(7.0, pool=pool_timeout)

    async with library.AsyncClient(transport=transport, timeout=timeout) as client:
        policy = Policy(fetch_deadline=4_000)
        await fetched("http://a.test", client=client, policy=policy)

    assert requests[0].extensions["timeout"] == {
        "connect": 7.0,
        "read": 7.0,
        "write": 7.0,
        "pool": 0.5 if pool_timeout == 0.5 else HALF_OF_4_000,
    }


async def test_second_hop_waits_at_most_half_of_the_time_left_for_a_connection(
    library: ModuleType,
) -> None:
    """After a slow first hop, the deadline passed first, and the origin was blamed."""
    requests, transport = recording(library)
    late = replace(fetch_of("http://a.test"), deadline=anyio.current_time() + 4)
    token = own_fetch.set(late)
    try:
        fetcher = TransportFetcher(transport)
        await fetcher.get("http://a.test/robots.txt", (), max_bytes=1)
    finally:
        own_fetch.reset(token)

    assert requests[0].extensions["timeout"]["pool"] <= 2


# --- what comes back ------------------------------------------------------------


@pytest.fixture(params=["client", "transport"])
async def client(
    library: ModuleType, request: pytest.FixtureRequest
) -> AsyncIterator[object]:
    """A client or a transport, over real sockets."""
    limits = library.Limits(max_connections=1)
    kind = library.AsyncClient
    if request.param == "transport":
        kind = library.AsyncHTTPTransport
    async with kind(limits=limits) as opened:
        yield opened


GZIPPED = gzip.compress(RULES)
ANSWERS: dict[str, tuple[Answer, Outcome]] = {
    "a coded body in chunks": (Reply(headers={"Content-Encoding": "gzip",
        "Transfer-Encoding": "chunked"}, body=chunked(GZIPPED[:20], GZIPPED[20:])),
        SUCCESS),
    "an endless body": (Raw(head("200 OK"), endless(b"#" * 999)),
        Outcome(status=200, body=b"#" * 512_001)),
    "an error with an endless page": (Raw(head("503 No", "Retry-After: 9"),
        endless(b"x" * 999)), Outcome(status=503, headers={"retry-after": "9"},
        body=b"x" * 4_096)),
    "half a body": (Raw(head("200 OK", "Content-Length: 9") + b"x"),
        Outcome(failure=FailureKind.PROTOCOL, error=ANY)),
    "half an error page": (Raw(head("500 No",
        "Content-Length: 99") + b"<title>Not found</title>"), Outcome(status=500)),
    "a reset": (Raw(b"", Connection.reset),
        Outcome(failure=FailureKind.TRANSFER, error=ANY)),
}  # fmt: skip


@pytest.mark.parametrize(("answer", "outcome"), ANSWERS.values(), ids=ANSWERS)
async def test_answer_arrives_each_time_if_only_one_connection_is_allowed(
    serve: Serve, client: object, answer: Answer, outcome: object
) -> None:
    """Every response is closed, read or not, so none keeps the only connection."""
    server = serve(answer)

    for _ in range(2):
        assert await fetched(server.url, client=client) == outcome


async def test_client_that_follows_redirects_leaves_them_to_the_checker(
    serve: Serve, library: ModuleType
) -> None:
    hops = {f"/{number}": redirect(f"/{number + 1}") for number in range(6)}
    server = serve(Routes({"/robots.txt": redirect("/0"), **hops}))

    async with library.AsyncClient(follow_redirects=True) as client:
        outcome = await fetched(server.url, client=client)

    assert outcome == Outcome(
        has_too_many_redirects=True, status=302, error=ANY, redirects=Followed(5)
    )
    assert server.targets == ["/robots.txt", "/0", "/1", "/2", "/3", "/4"]


async def test_client_hook_may_read_the_body(serve: Serve, library: ModuleType) -> None:
    """Hooks that log bodies call `aread`; the body is still there afterwards."""
    server = serve(Reply(body=RULES))

    async def read(response: httpx.Response) -> None:
        await response.aread()

    async with library.AsyncClient(event_hooks={"response": [read]}) as client:
        assert await fetched(server.url, client=client) == SUCCESS


async def test_client_timeout_is_reported_without_event_loop_internals(
    serve: Serve, library: ModuleType
) -> None:
    server = serve(Raw(b"", Connection.hang))

    timeout = library.Timeout(PATIENCE_SECONDS, read=0.1)
    async with library.AsyncClient(timeout=timeout) as client:
        outcome = await fetched(server.url, client=client)

    assert outcome == Outcome(
        failure=FailureKind.TIMEOUT, error="ReadTimeout: no response in time"
    )


async def test_full_pool_is_not_blamed_on_the_origin(
    serve: Serve, library: ModuleType
) -> None:
    server = serve(Reply(body=RULES))
    other = serve(Raw(head("200 OK"), Connection.hang))
    limits = library.Limits(max_connections=1)
    timeout = library.Timeout(PATIENCE_SECONDS, pool=0.1)

    async with (
        library.AsyncClient(limits=limits, timeout=timeout) as client,
        client.stream("GET", other.url),
    ):
        outcome = await fetched(server.url, client=client)

    assert outcome == Outcome(failure=FailureKind.LOCAL, error=ANY)


async def test_endless_body_that_never_suspends_is_a_failure(
    library: ModuleType,
) -> None:
    class EndlessBody(library.AsyncByteStream):  # type: ignore[misc]  # either library's
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                yield b""

    transport = library.MockTransport(
        lambda _: library.Response(200, stream=EndlessBody())
    )

    outcome = await fetched("http://example.com", client=transport)

    assert outcome == Outcome(failure=FailureKind.CODING, error=ANY)


async def test_response_that_cannot_be_closed_still_counts(library: ModuleType) -> None:
    """The body is already complete."""

    class FailsToClose(library.ByteStream):  # type: ignore[misc]  # either library's
        async def aclose(self) -> None:
            raise library.CloseError("already gone")

    transport = library.MockTransport(
        lambda _: library.Response(200, stream=FailsToClose(RULES))
    )

    assert await fetched("http://example.com", client=transport) == SUCCESS


class ForeignError(Exception):
    """The error of a client whose methods only look like those of httpx."""


async def test_error_from_a_client_that_only_looks_like_httpx_is_a_failure() -> None:
    class ForeignClient:
        def build_request(self, *_: object, **__: object) -> httpx.Request:
            return httpx.Request("GET", "http://example.com/robots.txt")

        async def send(self, *_: object, **__: object) -> httpx.Response:
            raise ForeignError

    outcome = await fetched("http://example.com", client=ForeignClient())

    assert outcome == Outcome(failure=FailureKind.OTHER, error=ANY)


async def test_transport_without_a_base_class_gets_an_httpx_request() -> None:
    class ForeignTransport:
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            assert type(request) is httpx.Request
            return httpx.Response(200, content=RULES)

    assert await fetched("http://example.com", client=ForeignTransport()) == SUCCESS
