"""The built-in client: one connection per GET, closed whatever happens."""

from __future__ import annotations

import errno
import ssl
from contextlib import suppress
from functools import partial
from threading import Event, Semaphore
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import ANY

import anyio
import anyio.lowlevel
import anyio.to_thread
import certifi
import httpcore
import httpx
import pytest
import respx
import trustme

from robotsgate import Policy
from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.fetching._direct import (
    DirectFetcher,
    SocketStream,
    connect,
    default_context,
)
from tests.fetching.fetches import PATIENCE_SECONDS, RULES, Followed, fetched
from tests.fetching.switchboard import Switchboard
from tests.servers.answers import Raw, Reply
from tests.servers.loopback import Connection, dead_port

if TYPE_CHECKING:
    from types import ModuleType

    from pytest_httpx import HTTPXMock

    from tests.servers.loopback import Serve

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED_HEAD = OK + b"Transfer-Encoding: chunked\r\n\r\n"
SUCCESS = Outcome(status=200, body=RULES)


async def test_fetch_whose_deadline_has_passed_warns_about_nothing() -> None:
    """On a busy machine, a coroutine with the addresses used to be dropped."""
    policy = Policy(fetch_deadline=1e-9)

    outcome = await fetched("http://127.0.0.1", policy=policy)

    # On uvloop, whose clock counts milliseconds, the connection is refused first.
    assert outcome.failure in {FailureKind.TIMEOUT, FailureKind.CONNECT}


async def test_response_sent_before_the_request_is_read_counts(
    serve: Serve,
) -> None:
    """Some servers refuse without reading the request; httpcore reads the response."""

    class BrokenOnSend(SocketStream):
        async def send(self, data: bytes) -> None:
            raise BrokenPipeError(errno.EPIPE, f"{len(data)} bytes")

    async def connect_broken(address: str, port: int) -> SocketStream:
        return BrokenOnSend((await connect(address, port))._socket)

    server = serve(Raw(b"HTTP/1.1 403 No\r\n\r\n"), reads_requests=False)

    outcome = await fetched(server.url, client=DirectFetcher(connect=connect_broken))

    assert outcome == Outcome(status=403)


async def test_connect_timeout_from_the_operating_system_is_a_timeout() -> None:
    async def connect_late(address: str, port: int) -> SocketStream:
        raise TimeoutError(errno.ETIMEDOUT, f"{address}:{port} does not answer")

    outcome = await fetched(
        "http://127.0.0.1:1", client=DirectFetcher(connect=connect_late)
    )

    assert outcome.failure is FailureKind.TIMEOUT


async def test_robots_txt_is_fetched_over_ipv6(serve: Serve) -> None:
    server = serve(Reply(body=RULES), host="::1")

    assert await fetched(server.url) == SUCCESS
    assert server.requests[0].headers["host"] == f"[::1]:{server.port}"


async def test_proxy_in_the_environment_is_ignored(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(Reply(body=RULES))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{dead_port()}")

    assert await fetched(server.url) == SUCCESS


# --- httpx mocks ----------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_respx_sees_the_request(scheme: str) -> None:
    with respx.mock:
        route = respx.get(f"{scheme}://example.com/robots.txt").respond(content=RULES)
        outcome = await fetched(f"{scheme}://example.com")

    assert outcome == SUCCESS
    assert route.calls.last.request.headers["accept-encoding"] == "gzip, deflate"


async def test_pytest_httpx_sees_the_request(httpx_mock: HTTPXMock) -> None:
    httpx_mock.add_response(url="https://example.com/robots.txt", content=RULES)

    assert await fetched("https://example.com") == SUCCESS


async def test_request_that_a_mock_passes_through_reaches_the_server(
    serve: Serve,
) -> None:
    server = serve(Reply(body=RULES))

    with respx.mock:
        respx.route(host="127.0.0.1").pass_through()
        outcome = await fetched(server.url)

    assert outcome == SUCCESS
    assert server.targets == ["/robots.txt"]


async def test_guard_checks_the_address_before_a_mock_answers() -> None:
    board = Switchboard({"a.test": ["93.184.216.34"], "b.test": ["10.0.0.1"]}, {})

    with respx.mock(assert_all_called=False) as mock:
        location = {"Location": "http://b.test/"}
        mock.get("http://a.test/robots.txt").respond(302, headers=location)
        refused = mock.get("http://b.test/").respond(content=RULES)
        outcome = await fetched("http://a.test", client=board.client())

    assert outcome == Outcome(
        failure=FailureKind.ADDRESS_REFUSED, error=ANY, redirects=Followed(1)
    )
    assert not refused.called


@pytest.mark.parametrize(
    "target",
    [(httpx, "AsyncHTTPTransport"), (httpcore, "AsyncConnectionPool")],
    ids=lambda target: target[1],
)
async def test_tracer_does_not_change_how_a_request_is_sent(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, target: tuple[ModuleType, str]
) -> None:
    """OpenTelemetry replaces the same methods as mocks do."""
    server, traced = serve(Reply(body=RULES)), []
    transport_class = getattr(*target)
    send = transport_class.handle_async_request

    async def trace(self: Any, request: Any) -> Any:  # noqa: ANN401 (either library's)
        traced.append(request)
        return await send(self, request)

    trace.__module__ = "opentelemetry.instrumentation.httpx"
    monkeypatch.setattr(transport_class, "handle_async_request", trace)

    assert await fetched(server.url) == SUCCESS
    assert traced == []


# --- a blocked event loop --------------------------------------------------------


async def test_bytes_that_arrived_while_the_loop_was_blocked_are_not_late(
    serve: Serve,
) -> None:
    """During the second read, it is blocked for longer than the read timeout."""
    may_send, is_sent = Semaphore(0), Semaphore(0)
    seconds = iter([0.0, 1.2, 0.0])

    def send_in_pieces(_: object, connection: Connection) -> None:
        for piece in (OK + b"Content-Length: 3\r\n\r\na", b"b", b"c"):
            may_send.acquire(timeout=PATIENCE_SECONDS)
            connection.send(piece)
            is_sent.release()

    async def block_loop() -> None:
        for _ in range(3):
            await anyio.lowlevel.checkpoint()
        may_send.release()
        assert is_sent.acquire(timeout=PATIENCE_SECONDS)
        Event().wait(next(seconds))

    class Blocked(SocketStream):
        async def receive(self) -> bytes:
            tasks.start_soon(block_loop)
            return await super().receive()

    async def connect_blocked(address: str, port: int) -> SocketStream:
        return Blocked((await connect(address, port))._socket)

    client, policy = DirectFetcher(connect=connect_blocked), Policy(read_timeout=1.0)

    async with anyio.create_task_group() as tasks:
        outcome = await fetched(serve(send_in_pieces).url, client=client, policy=policy)

    assert outcome == Outcome(status=200, body=b"abc")


# --- small chunks ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("piece", "times"), [(b"Disallow: /a/b/c/d/e\n", 24_000), (b"#", 3_000)]
)
async def test_file_may_arrive_line_by_line_or_byte_by_byte_if_small(
    serve: Serve, piece: bytes, times: int
) -> None:
    body = b"%x\r\n%b\r\n" % (len(piece), piece)
    server = serve(Raw(CHUNKED_HEAD + body * times + b"0\r\n\r\n", Connection.hang))

    assert await fetched(server.url) == Outcome(status=200, body=piece * times)


# --- TLS ------------------------------------------------------------------------


async def test_certificate_from_an_unknown_authority_is_a_tls_failure(
    serve: Serve,
) -> None:
    """By default, only the usual authorities are trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    server = serve(Reply(body=RULES), ssl_context=context)

    outcome = await fetched(server.url)

    assert outcome == Outcome(failure=FailureKind.TLS, error=ANY)
    assert "certificate verify failed" in outcome.error
    assert server.requests == []


async def test_concurrent_first_fetches_over_https_create_one_ssl_context(
    serve: Serve, server_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, client = serve(Reply(), ssl_context=server_tls), DirectFetcher()
    contexts = []
    create_context = ssl.create_default_context

    def create_and_count(**trusted: str) -> ssl.SSLContext:
        contexts.append(create_context(**trusted))
        return contexts[-1]

    monkeypatch.setattr(ssl, "create_default_context", create_and_count)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(partial(fetched, server.url, client=client))
    await fetched(server.url, client=client)

    assert len(contexts) == 1


@pytest.mark.parametrize(
    ("variables", "trusted"),
    [
        ({"SSL_CERT_FILE": "/a.pem"}, {"cafile": "/a.pem"}),
        ({"SSL_CERT_DIR": "/certs"}, {"capath": "/certs"}),
        (
            {"SSL_CERT_FILE": "/a.pem", "SSL_CERT_DIR": "/certs"},
            {"cafile": "/a.pem"},
        ),
        ({"SSL_CERT_FILE": "", "SSL_CERT_DIR": ""}, {"cafile": certifi.where()}),
    ],
)
def test_authorities_come_from_the_environment_or_from_certifi(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], trusted: dict[str, str]
) -> None:
    """They are the ones that httpx trusts."""
    monkeypatch.delenv("SSL_CERT_FILE")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    calls: list[dict[str, str]] = []
    monkeypatch.setattr(ssl, "create_default_context", lambda **kw: calls.append(kw))

    default_context()
    httpx.create_ssl_context()

    assert calls == [trusted, trusted]


async def test_missing_authorities_raise_instead_of_blaming_the_origin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")

    with pytest.raises(RuntimeError, match="cannot load the certificate authorities"):
        await fetched("https://127.0.0.1/")


@pytest.mark.parametrize("size", [27, 100_000], ids=["lines", "all at once"])
async def test_file_in_tls_records_of_any_usual_size_is_read(
    serve: Serve,
    server_tls: ssl.SSLContext,
    client_tls: ssl.SSLContext,
    size: int,
) -> None:
    def send_in_records(_: object, connection: Connection) -> None:
        connection.send(CHUNKED_HEAD)
        data = b"15\r\nDisallow: /a/b/c/d/e\n\r\n" * 3_200
        for start in range(0, len(data), size):
            connection.send(data[start : start + size])
        connection.send(b"0\r\n\r\n")

    server = serve(send_in_records, ssl_context=server_tls)

    outcome = await fetched(server.url, client=DirectFetcher(ssl_context=client_tls))

    assert outcome == Outcome(status=200, body=b"Disallow: /a/b/c/d/e\n" * 3_200)


async def test_body_over_tls_may_end_with_close_notify(
    serve: Serve, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    def send_and_notify(_: object, connection: Connection) -> None:
        connection.send(OK + b"\r\n" + RULES)
        with suppress(OSError):  # the client just closes its side
            cast("ssl.SSLSocket", connection._socket).unwrap()

    server = serve(send_and_notify, ssl_context=server_tls)

    outcome = await fetched(server.url, client=DirectFetcher(ssl_context=client_tls))

    assert outcome == SUCCESS
