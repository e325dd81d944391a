"""One GET through a transport, or through a client of the caller."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import httpx
import pytest

from robotsgate import RobotsChecker
from robotsgate.caching._outcome import Answered, BrokenRedirect, Failed, FailureKind
from robotsgate.caching._policy import Policy
from robotsgate.fetching._exchange import (
    AsyncClientLike,
    AsyncTransportLike,
    ClientExchange,
    TransportExchange,
)
from robotsgate.fetching._transport import OneRequestTransport
from tests.fetching.fetches import USER_AGENT, fetched, guard
from tests.servers.answers import Raw, Reply, Routes, chunked, redirect
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import LoopbackServer

pytestmark = pytest.mark.anyio

RULES = b"User-agent: *\nDisallow: /private\n"


def test_httpx_clients_and_transports_are_told_apart() -> None:
    client, transport = httpx.AsyncClient, httpx.MockTransport(lambda _: None)

    assert isinstance(client(transport=transport), AsyncClientLike)
    assert not isinstance(client(transport=transport), AsyncTransportLike)
    assert isinstance(transport, AsyncTransportLike)
    assert not isinstance(transport, AsyncClientLike)


async def test_transport_is_asked_with_these_headers_and_timeouts() -> None:
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(204)

    policy = Policy(connect_timeout=2, read_timeout=3, fetch_deadline=4)
    exchange = TransportExchange(httpx.MockTransport(answer), policy)

    response = await exchange.get(
        "http://example.com/robots.txt", {"X-Is": "here"}, guard()
    )

    assert response.status_code == 204
    assert requests[0].method == "GET"
    assert str(requests[0].url) == "http://example.com/robots.txt"
    assert requests[0].headers.raw == [(b"Host", b"example.com"), (b"X-Is", b"here")]
    assert requests[0].extensions == {
        "timeout": {"connect": 2, "read": 3, "write": 3, "pool": 2}
    }


async def test_client_sends_neither_cookies_nor_credentials(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply(body=RULES))

    async with httpx.AsyncClient(
        cookies={"session": "secret"},
        auth=("user", "secret"),
        headers={"Authorization": "Bearer secret", "Cookie": "other=secret"},
    ) as client:
        outcome = await fetched(server.url, client=client)

    assert outcome == Answered(status=200, body=RULES)
    assert b"secret" not in server.requests[0].head.lower()
    assert not {"cookie", "authorization"} & server.requests[0].headers.keys()


async def test_client_sends_no_cookie_that_a_redirect_set(
    serve: Callable[..., LoopbackServer],
) -> None:
    headers = {"Location": "/b", "Set-Cookie": "session=secret; Path=/"}
    first = Reply(status=302, headers=headers)
    server = serve(Routes({"/robots.txt": first, "/b": Reply(body=RULES)}))

    async with httpx.AsyncClient() as client:
        outcome = await fetched(server.url, client=client)

    assert outcome == Answered(status=200, body=RULES, redirects=1)
    assert "cookie" not in server.requests[1].headers


async def test_client_sends_no_credentials_of_an_earlier_url(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply(status=401, headers={"WWW-Authenticate": "Basic"}))

    async with httpx.AsyncClient(auth=httpx.DigestAuth("user", "secret")) as client:
        outcome = await fetched(server.url, client=client)

    assert outcome == Answered(status=401)
    assert len(server.requests) == 1


async def test_client_keeps_its_other_headers_but_not_its_user_agent(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply(body=RULES))

    async with httpx.AsyncClient(
        headers={
            "User-Agent": "Other/1.0",
            "Accept": "text/html",
            "Accept-Encoding": "br, zstd",
            "X-Crawl": "42",
        }
    ) as client:
        await fetched(server.url, client=client)

    headers = server.requests[0].headers
    assert headers["user-agent"] == USER_AGENT
    assert headers["accept"] == "text/plain, */*;q=0.1"
    assert headers["accept-encoding"] == "gzip, deflate"
    assert headers["x-crawl"] == "42"


@pytest.mark.parametrize(
    "name", ["If-None-Match", "If-Modified-Since", "If-Range", "Range"]
)
async def test_get_through_a_client_is_unconditional(
    serve: Callable[..., LoopbackServer], name: str
) -> None:
    """A default header of the client would turn the file into a 304 or a part."""
    server = serve(Reply(body=RULES))

    async with httpx.AsyncClient(headers={name: '"x"'}) as client:
        await fetched(server.url, client=client)

    assert name.lower() not in server.requests[0].headers


async def test_default_parameters_of_a_client_are_not_sent(
    serve: Callable[..., LoopbackServer],
) -> None:
    """They may be the key of an API, and /robots.txt?key=1 is another resource."""
    server = serve(Reply(body=RULES))

    async with httpx.AsyncClient(params={"key": "secret"}) as client:
        await fetched(server.url, client=client)

    assert server.targets == ["/robots.txt"]


async def test_client_that_follows_redirects_does_not_follow_these(
    serve: Callable[..., LoopbackServer],
) -> None:
    hops = {f"/{number}": redirect(f"/{number + 1}") for number in range(6)}
    server = serve(Routes({"/robots.txt": redirect("/0"), **hops}))

    async with httpx.AsyncClient(follow_redirects=True) as client:
        outcome = await fetched(server.url, client=client)

    assert isinstance(outcome, BrokenRedirect)
    assert outcome.redirects == 5
    assert server.targets == ["/robots.txt", "/0", "/1", "/2", "/3", "/4"]


async def test_client_with_a_base_url_asks_the_origin(
    serve: Callable[..., LoopbackServer],
) -> None:
    other, server = serve(Reply(status=500)), serve(Reply(body=RULES))

    async with httpx.AsyncClient(base_url=f"{other.url}/api/") as client:
        outcome = await fetched(server.url, client=client)

    assert outcome == Answered(status=200, body=RULES)
    assert server.targets == ["/robots.txt"]
    assert other.requests == []


UNUSABLE_LOCATIONS = {
    "a port out of range": "http://example.com:99999/",
    "a port that is no number": "http://example.com:x/",
    "an open bracket": "http://[::1/",
    "a control character": "/a\x01b",
    "a host with a control character": "http://a\x01b/",
    "a host with a space": "http://a b/",
    "mailto": "mailto:webmaster@example.com",
    "about": "about:blank",
    "javascript": "javascript:alert(1)",
    "data": "data:text/plain,Disallow",
    "ftp": "ftp://example.com/robots.txt",
    "file": "file:///robots.txt",
    "no host": "http://:80/",
    "a fragment only": "#top",
}
TOO_LONG = {"too long to follow": "/" + "x" * 20_000}
TOO_LONG_FOR_HTTPX = {"too long for a URL": "/" + "x" * 70_000}


@pytest.mark.parametrize(
    "location",
    (UNUSABLE_LOCATIONS | TOO_LONG).values(),
    ids=UNUSABLE_LOCATIONS | TOO_LONG,
)
async def test_unusable_location_is_a_broken_redirect(
    serve: Callable[..., LoopbackServer], location: str
) -> None:
    server = serve(redirect(location, status=301))

    outcome = await fetched(server.url)

    assert isinstance(outcome, BrokenRedirect)
    assert (outcome.status, outcome.redirects) == (301, 0)
    assert server.targets == ["/robots.txt"]


@pytest.mark.parametrize(
    "location",
    (UNUSABLE_LOCATIONS | TOO_LONG_FOR_HTTPX).values(),
    ids=UNUSABLE_LOCATIONS | TOO_LONG_FOR_HTTPX,
)
async def test_location_that_a_client_cannot_read_is_a_failure(
    serve: Callable[..., LoopbackServer], location: str
) -> None:
    """What httpx cannot read, others can: it must not count as "no file"."""
    server = serve(redirect(location, status=301))

    async with httpx.AsyncClient() as client:
        outcome = await fetched(server.url, client=client)

    assert isinstance(outcome, BrokenRedirect | Failed)
    assert isinstance(outcome, BrokenRedirect) or "URL" in outcome.error
    assert server.targets == ["/robots.txt"]


async def test_location_that_httpx_refuses_and_browsers_follow_is_no_full_allow(
    serve: Callable[..., LoopbackServer],
) -> None:
    target = serve(Reply(body=b"User-agent: *\nDisallow: /"))
    server = serve(redirect(target.url.replace("/", "\\") + "\\robots.txt"))
    url = f"{server.url}/page"

    async with httpx.AsyncClient() as client:
        through_client = RobotsChecker(client=client)
        answers = [
            await through_client.can_fetch("ExampleBot", url),
            await RobotsChecker().can_fetch("ExampleBot", url),
        ]

    assert answers == [False, False]


async def test_protocol_error_of_a_client_stays_one() -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        message = "illegal status line"
        raise httpx.RemoteProtocolError(message)

    async with httpx.AsyncClient(transport=httpx.MockTransport(answer)) as client:
        with pytest.raises(httpx.RemoteProtocolError, match="illegal status line"):
            await ClientExchange(client, Policy()).get(
                "http://example.com/robots.txt", {}, guard()
            )


async def test_coded_body_through_a_client_is_decoded_once(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(
        Reply(
            headers={"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"},
            body=chunked(gzip.compress(RULES)[:20], gzip.compress(RULES)[20:]),
        )
    )

    async with httpx.AsyncClient() as client:
        outcome = await fetched(server.url, client=client)

    assert outcome == Answered(status=200, body=RULES)


async def test_hook_of_a_client_may_read_the_body(
    serve: Callable[..., LoopbackServer],
) -> None:
    """Hooks that log bodies call `aread`; the body is still there afterwards."""
    server = serve(Reply(body=RULES))

    async def read(response: httpx.Response) -> None:
        await response.aread()

    hooks = {"response": [read]}
    async with httpx.AsyncClient(event_hooks=hooks, timeout=0.3) as client:
        outcome = await fetched(server.url, client=client)

    assert outcome == Answered(status=200, body=RULES)


async def test_time_out_of_a_client_is_told_without_internals_of_the_event_loop(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Raw(b"", Connection.hang))

    async with httpx.AsyncClient(timeout=0.1) as client:
        outcome = await fetched(server.url, client=client)

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.TIMEOUT
    assert outcome.error.startswith("ReadTimeout")
    assert "scope" not in outcome.error
    assert "cancelled" not in outcome.error.lower()


async def test_hook_of_a_client_that_raises_for_status_is_a_failed_fetch(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply(status=404))

    async def raise_for_status(response: httpx.Response) -> None:
        response.raise_for_status()

    async with httpx.AsyncClient(
        event_hooks={"response": [raise_for_status]}
    ) as client:
        outcome = await fetched(server.url, client=client)

    assert "404" in str(outcome)


class ForeignError(Exception):
    """The error of a client that has nothing to do with httpx but its shape."""


@pytest.mark.parametrize(
    "error",
    [ForeignError(), EOFError(), ExceptionGroup("several", [OSError("reset")])],
    ids=["of its own", "end of file", "a group"],
)
async def test_error_of_a_client_that_is_only_shaped_like_httpx_is_an_answer(
    error: Exception,
) -> None:
    attempts = []

    class ForeignClient:
        def build_request(self, *_: object, **__: object) -> httpx.Request:
            return httpx.Request("GET", "http://example.com/robots.txt")

        async def send(self, *_: object, **__: object) -> httpx.Response:
            attempts.append(1)
            raise error

    async with RobotsChecker(client=ForeignClient()) as checker:
        verdicts = [await checker.check("ExampleBot", "http://example.com/")] * 2

    assert [verdict.allowed for verdict in verdicts] == [False, False]
    assert len(attempts) == 1


def test_synchronous_client_is_refused_when_it_is_handed_over() -> None:
    with httpx.Client() as client, pytest.raises(TypeError, match="AsyncClient"):
        RobotsChecker(client=client)


@pytest.mark.parametrize(
    "client", [object(), "http://proxy", 5], ids=["object", "URL", "5"]
)
def test_what_is_no_client_is_refused(client: object) -> None:
    with pytest.raises(TypeError, match=r"expected an httpx\.AsyncClient"):
        RobotsChecker(client=client)


async def test_client_is_not_closed_and_its_connections_go_back(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply(body=RULES))

    async with httpx.AsyncClient() as client:
        async with RobotsChecker(client=client) as checker:
            await checker.can_fetch("ExampleBot", server.url)
        assert not client.is_closed
        response = await client.get(server.url)

    assert response.status_code == 200


async def test_client_with_one_connection_can_be_used_again_and_again(
    serve: Callable[..., LoopbackServer],
) -> None:
    """Every response is closed, read or not: none keeps the only connection."""
    routes = {
        "/robots.txt": redirect("/1"),
        "/1": redirect("/2", status=308),
        "/2": Reply(status=503, body=b"x" * 100_000),
    }
    server = serve(Routes(routes))
    limits = httpx.Limits(max_connections=1)

    async with httpx.AsyncClient(limits=limits, timeout=2) as client:
        outcomes = [await fetched(server.url, client=client) for _ in range(3)]

    assert outcomes == [Answered(status=503, body=b"x" * 4_096, redirects=2)] * 3


async def test_transport_is_not_closed() -> None:
    class ClosingTransport(httpx.MockTransport):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    transport = ClosingTransport(lambda _: httpx.Response(200, content=RULES))

    async with RobotsChecker(client=transport) as checker:
        allowed = await checker.can_fetch("ExampleBot", "http://example.com/private")

    assert not allowed
    assert transport.closed == 0


async def test_own_transport_can_be_handed_over(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply(body=RULES))

    async with RobotsChecker(
        client=OneRequestTransport(), policy=Policy(fetch_deadline=5)
    ) as checker:
        allowed = await checker.can_fetch("ExampleBot", f"{server.url}/private")

    assert not allowed


@pytest.mark.parametrize("own", [None, 0.5, 60.0])
async def test_client_waits_for_its_pool_for_less_than_the_deadline(
    own: float | None,
) -> None:
    """A deadline that passes meanwhile would be blamed on the origin."""
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(204)

    timeout = httpx.Timeout(7.0, pool=own)
    transport = httpx.MockTransport(answer)
    async with httpx.AsyncClient(transport=transport, timeout=timeout) as client:
        await fetched("http://a.test", client=client, policy=Policy(fetch_deadline=4))

    assert requests[0].extensions["timeout"] == {
        "connect": 7.0,
        "read": 7.0,
        "write": 7.0,
        "pool": 0.5 if own == 0.5 else 2.0,
    }


async def test_full_pool_of_a_transport_is_not_blamed_on_the_origin(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply(body=RULES))
    other = serve(Raw(b"HTTP/1.1 200 OK\r\n\r\n", Connection.hang))
    limits = httpx.Limits(max_connections=1)

    async with httpx.AsyncHTTPTransport(limits=limits) as transport:
        taken = await transport.handle_async_request(httpx.Request("GET", other.url))
        outcome = await fetched(
            server.url, client=transport, policy=Policy(fetch_deadline=0.2)
        )
        await taken.aclose()

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.POOL
