"""One connection for each GET, closed whatever happens."""

from __future__ import annotations

import errno
import gc
import ssl
from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import ANY

import anyio
import anyio.to_thread
import httpx
import pytest
import respx
import trustme

from robotsgate.caching._outcome import Answered, Failed, FailureKind
from robotsgate.caching._policy import Policy
from robotsgate.fetching._direct import DirectExchange
from robotsgate.fetching._sockets import SocketStream, connect
from tests.fetching.fetches import RULES, fetched
from tests.servers.answers import Raw, Reply, endless
from tests.servers.loopback import Connection, dead_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import LoopbackServer

    Serve = Callable[..., LoopbackServer]

pytestmark = pytest.mark.anyio

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED_HEAD = OK + b"Transfer-Encoding: chunked\r\n\r\n"
FOUND = Answered(status=200, body=RULES)


async def test_each_get_has_a_connection_of_its_own(serve: Serve) -> None:
    server, client = serve(Reply(body=RULES)), DirectExchange()

    for _ in range(3):
        assert await fetched(server.url, client=client) == FOUND

    assert server.accepted == 3
    assert server.is_left_alone()


HANG, RESET = Connection.hang, Connection.reset
BROKEN: dict[str, tuple[Raw, FailureKind]] = {
    "no answer": (Raw(b""), FailureKind.PROTOCOL),
    "a reset": (Raw(b"", RESET), FailureKind.TRANSFER),
    "half a head": (Raw(OK + b"X: "), FailureKind.PROTOCOL),
    "half a body and a reset": (
        Raw(OK + b"Content-Length: 9\r\n\r\nx", RESET),
        FailureKind.TRANSFER,
    ),
    "half a chunk": (Raw(CHUNKED_HEAD + b"ff\r\nUser"), FailureKind.PROTOCOL),
    "rubbish": (Raw(b"\x00\x01\x02\r\n\r\n", HANG), FailureKind.PROTOCOL),
    "a final 101": (
        Raw(b"HTTP/1.1 101 X\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
        FailureKind.PROTOCOL,
    ),
}


@pytest.mark.parametrize(("answer", "kind"), BROKEN.values(), ids=BROKEN)
async def test_failure_is_told_apart_and_closes_the_connection(
    serve: Serve, answer: Raw, kind: FailureKind
) -> None:
    server = serve(answer)

    assert await fetched(server.url) == Failed(kind=kind, error=ANY)
    assert server.accepted == 1
    assert server.is_left_alone()


async def test_body_that_is_not_read_to_its_end_leaves_no_generator_behind(
    serve: Serve,
) -> None:
    """On trio a generator that is dropped half-way is a ResourceWarning."""
    server = serve(Raw(OK + b"\r\n", endless(b"x" * 999)))

    outcome = await fetched(server.url)
    gc.collect()

    assert outcome == Answered(status=200, body=b"x" * 512_001)


async def test_dead_port_is_a_failure_that_quotes_the_system() -> None:
    outcome = await fetched(f"http://127.0.0.1:{dead_port()}")

    assert outcome == Failed(kind=FailureKind.CONNECT, error=ANY)
    assert outcome.error.endswith("Connection refused")


async def test_answer_that_comes_before_the_request_was_taken_counts(
    serve: Serve,
) -> None:
    """Some servers refuse without listening; httpcore reads what they say."""

    class Unheard(SocketStream):
        async def send(self, item: bytes) -> None:
            raise BrokenPipeError(errno.EPIPE, f"{len(item)} bytes")

    async def connect_unheard(address: str, port: int) -> SocketStream:
        return Unheard((await connect(address, port))._socket)

    server = serve(Raw(b"HTTP/1.1 403 No\r\n\r\n"), reads_requests=False)

    outcome = await fetched(server.url, client=DirectExchange(connect=connect_unheard))

    assert outcome == Answered(status=403)


async def test_ipv6_origin_is_dialled(serve: Serve) -> None:
    server = serve(Reply(body=RULES), host="::1")

    assert await fetched(server.url) == FOUND
    assert server.requests[0].headers["host"] == f"[::1]:{server.port}"


async def test_proxy_of_the_environment_is_ignored(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(Reply(body=RULES))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{dead_port()}")

    assert await fetched(server.url) == FOUND


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_respx_sees_the_request(scheme: str) -> None:
    with respx.mock:
        route = respx.get(f"{scheme}://example.com/robots.txt").respond(content=RULES)
        outcome = await fetched(f"{scheme}://example.com")

    assert outcome == FOUND
    assert route.calls.last.request.headers["accept-encoding"] == "gzip, deflate"


# --- bytes without end ----------------------------------------------------------


async def test_body_in_very_many_pieces_is_given_up(serve: Serve) -> None:
    server = serve(Raw(CHUNKED_HEAD, endless(b"1\r\n#\r\n" * 500)))

    outcome = await fetched(server.url)

    assert outcome == Failed(kind=FailureKind.CODING, error=ANY)
    assert "bytes in 3158 pieces" in outcome.error


@pytest.mark.parametrize(
    "data",
    [
        b"1;" + b"x" * 16_000 + b"\r\nx\r\n",
        b"0\r\n" + b"a:\r\n" * 24_000 + b"\r\n",
    ],
    ids=["extensions of chunks", "trailers"],
)
async def test_response_with_more_framing_than_any_needs_is_given_up(
    serve: Serve, data: bytes
) -> None:
    """Trailers that came to an end were once read, for a tenth of a second."""
    server = serve(Raw(CHUNKED_HEAD, endless(data)))

    outcome = await fetched(server.url)

    assert outcome == Failed(kind=FailureKind.PROTOCOL, error=ANY)
    assert "more bytes than any answer needs" in outcome.error
    assert server.is_left_alone()


@pytest.mark.parametrize(
    ("piece", "times"), [(b"Disallow: /a/b/c/d/e\n", 24_000), (b"#", 3_000)]
)
async def test_file_may_come_line_by_line_or_small_byte_by_byte(
    serve: Serve, piece: bytes, times: int
) -> None:
    body = b"%x\r\n%b\r\n" % (len(piece), piece)
    server = serve(Raw(CHUNKED_HEAD + body * times + b"0\r\n\r\n", HANG))

    assert await fetched(server.url) == Answered(status=200, body=piece * times)


# --- TLS ------------------------------------------------------------------------


async def test_certificate_of_an_unknown_authority_is_a_tls_failure(
    serve: Serve,
) -> None:
    """By default the authorities are the usual ones."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(context)
    server = serve(Reply(body=RULES), ssl_context=context)

    outcome = await fetched(server.url)

    assert outcome == Failed(kind=FailureKind.TLS, error=ANY)
    assert "certificate verify failed" in outcome.error
    assert server.requests == []


async def test_concurrent_first_fetches_over_https_make_one_context(
    serve: Serve, server_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, client = serve(Reply(), ssl_context=server_tls), DirectExchange()
    contexts = []
    create_ssl_context = httpx.create_ssl_context

    def counting() -> ssl.SSLContext:
        contexts.append(create_ssl_context())
        return contexts[-1]

    monkeypatch.setattr(httpx, "create_ssl_context", counting)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(partial(fetched, server.url, client=client))
    await fetched(server.url, client=client)

    assert len(contexts) == 1


async def test_missing_authorities_are_a_mistake_and_no_failure_of_an_origin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")

    with pytest.raises(RuntimeError, match="expected certificate authorities"):
        await fetched("https://127.0.0.1/")


HANDSHAKES: dict[str, tuple[Raw, set[FailureKind]]] = {
    "plain HTTP": (Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), {FailureKind.TLS}),
    "an end": (Raw(b""), {FailureKind.TLS, FailureKind.CONNECT}),
    "a reset": (Raw(b"", RESET), {FailureKind.TLS, FailureKind.CONNECT}),
    "an alert": (Raw(b"\x15\x03\x03\x00\x02\x02\x28"), {FailureKind.TLS}),
    "silence": (Raw(b"", HANG), {FailureKind.TIMEOUT}),
}


@pytest.mark.parametrize(("answer", "kinds"), HANDSHAKES.values(), ids=HANDSHAKES)
async def test_handshake_that_the_server_breaks_off_is_a_failure(
    serve: Serve, client_tls: ssl.SSLContext, answer: Raw, kinds: set[FailureKind]
) -> None:
    def hear_and_answer(request: object, connection: Connection) -> None:
        connection.receive()
        answer(request, connection)  # type: ignore[arg-type]  # passed on

    server = serve(hear_and_answer, reads_requests=False)
    url = server.url.replace("http:", "https:")

    outcome = await fetched(
        url,
        client=DirectExchange(ssl_context=client_tls),
        policy=Policy(connect_timeout=0.3),
    )

    assert isinstance(outcome, Failed)
    assert outcome.kind in kinds
    assert server.is_left_alone()


HELLO_REQUESTS = b"\x16\x03\x03\x40\x00" + bytes(0x4000)


async def test_handshake_without_an_end_is_given_up(
    serve: Serve, client_tls: ssl.SSLContext
) -> None:
    """Requests to begin again, which OpenSSL ignores, once went on for ever."""
    server = serve(Raw(b"", endless(HELLO_REQUESTS)), reads_requests=False)
    url = server.url.replace("http:", "https:")

    outcome = await fetched(url, client=DirectExchange(ssl_context=client_tls))

    assert outcome == Failed(kind=FailureKind.PROTOCOL, error=ANY)
    assert "more bytes than any answer needs" in outcome.error


async def test_session_tickets_without_an_end_are_given_up(
    serve: Serve, certificate_authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    """They come below HTTP, where bytes were once not counted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate_authority.issue_cert("127.0.0.1").configure_cert(context)
    context.num_tickets = 1_000
    server = serve(Reply(body=RULES), ssl_context=context)

    outcome = await fetched(server.url, client=DirectExchange(ssl_context=client_tls))

    assert outcome == Failed(kind=FailureKind.PROTOCOL, error=ANY)
    assert "more bytes than any answer needs" in outcome.error


@pytest.mark.parametrize("size", [27, 100_000], ids=["lines", "all at once"])
async def test_file_in_records_of_any_usual_size_is_read(
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

    outcome = await fetched(server.url, client=DirectExchange(ssl_context=client_tls))

    assert outcome == Answered(status=200, body=b"Disallow: /a/b/c/d/e\n" * 3_200)


OVER_TLS: dict[str, tuple[Raw, FailureKind]] = {
    "silence": (Raw(b"", HANG), FailureKind.TIMEOUT),
    "an end in the body": (Raw(CHUNKED_HEAD + b"f\r\nUser"), FailureKind.PROTOCOL),
    "a reset before the answer": (Raw(b"", RESET), FailureKind.TRANSFER),
}


@pytest.mark.parametrize(("answer", "kind"), OVER_TLS.values(), ids=OVER_TLS)
async def test_failure_after_a_good_handshake_is_no_tls_failure(
    serve: Serve,
    server_tls: ssl.SSLContext,
    client_tls: ssl.SSLContext,
    answer: Raw,
    kind: FailureKind,
) -> None:
    """An SSLWantReadError in the context of what failed later is no failure."""
    server = serve(answer, ssl_context=server_tls)

    outcome = await fetched(
        server.url,
        client=DirectExchange(ssl_context=client_tls),
        policy=Policy(read_timeout=0.3),
    )

    assert outcome == Failed(kind=kind, error=ANY)
    assert "did not complete" not in outcome.error
    assert server.is_left_alone()
