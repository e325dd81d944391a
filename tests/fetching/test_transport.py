"""One connection for each request, closed whatever happens."""

from __future__ import annotations

import gc
import ssl
from functools import partial
from typing import TYPE_CHECKING

import anyio
import httpx
import pytest
import trustme

from robotsgate.caching._outcome import Answered, BrokenRedirect, Failed, FailureKind
from robotsgate.caching._policy import Policy
from robotsgate.fetching._transport import GUARD_EXTENSION, OneRequestTransport
from tests.fetching.fetches import PATIENCE_SECONDS, fetched, guard
from tests.servers.answers import Raw, Reply, Routes, chunked, endless, redirect
from tests.servers.loopback import Connection, dead_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import LoopbackServer

    Serve = Callable[..., LoopbackServer]

pytestmark = pytest.mark.anyio

RULES = b"User-agent: *\nDisallow: /private\n"

CHUNKED_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def get(url: str, *, timeout: float = 5.0) -> httpx.Request:
    extensions = {
        "timeout": dict.fromkeys(("connect", "read", "write", "pool"), timeout),
        GUARD_EXTENSION: guard(),
    }
    return httpx.Request("GET", url, extensions=extensions)


async def body_of(response: httpx.Response) -> bytes:
    body = b""
    async for chunk in response.stream:
        body += chunk
    await response.aclose()
    return body


async def test_each_request_has_a_connection_of_its_own(serve: Serve) -> None:
    server = serve(Reply(body=RULES))
    transport = OneRequestTransport()

    for _ in range(3):
        response = await transport.handle_async_request(get(f"{server.url}/x?y"))
        assert await body_of(response) == RULES

    assert server.accepted == 3
    assert server.targets == ["/x?y"] * 3
    assert server.is_left_alone()


async def test_response_has_status_headers_and_body(serve: Serve) -> None:
    body = chunked(b"one", b"two")
    headers = {"Transfer-Encoding": "chunked", "X-Is": "here"}
    server = serve(Reply(status=203, headers=headers, body=body))

    response = await OneRequestTransport().handle_async_request(get(server.url))

    assert response.status_code == 203
    assert response.headers["x-is"] == "here"
    assert await body_of(response) == b"onetwo"


@pytest.mark.parametrize(
    "answer",
    [
        Reply(status=404, body=b"x" * 1_000),
        Reply(status=302, headers={"Location": "/robots.txt"}),
        Raw(b"HTTP/1.1 404 Not Found\r\n\r\n" + b"x" * 1_000, Connection.hang),
        Raw(b"rubbish\r\n\r\n", Connection.hang),
        Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"),
        Raw(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
            Connection.hang,
        ),
        Raw(b"", Connection.close),
    ],
    ids=[
        "unread body",
        "redirect",
        "unread body without an end",
        "rubbish",
        "truncated",
        "wrong chunk",
        "no answer",
    ],
)
async def test_connection_is_closed_after(serve: Serve, answer: object) -> None:
    server = serve(answer)

    await fetched(server.url)

    assert server.accepted == 1
    assert server.is_left_alone()


async def test_response_that_is_closed_unread_closes_the_connection(
    serve: Serve,
) -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    server = serve(Raw(head, lambda connection: connection.send_for_ever(b"x" * 999)))

    response = await OneRequestTransport().handle_async_request(get(server.url))
    await response.aclose()
    await response.aclose()

    assert server.is_left_alone()


async def test_body_that_is_not_read_to_its_end_leaves_no_generator_behind(
    serve: Serve,
) -> None:
    """On trio a generator that is dropped half-way is a ResourceWarning."""
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    server = serve(Raw(head, lambda connection: connection.send_for_ever(b"x" * 999)))

    outcome = await fetched(server.url)
    gc.collect()

    assert outcome == Answered(status=200, body=b"x" * 512_001)
    assert server.is_left_alone()


FAILURES: dict[str, tuple[object, type[httpx.TransportError]]] = {
    "no answer": (Raw(b""), httpx.RemoteProtocolError),
    "reset": (Raw(b"", Connection.reset), httpx.ReadError),
    "half a head": (Raw(b"HTTP/1.1 200 OK\r\nX: "), httpx.RemoteProtocolError),
    "half a head and a reset": (
        Raw(b"HTTP/1.1 200 OK\r\nX: ", Connection.reset),
        httpx.ReadError,
    ),
    "rubbish": (Raw(b"\x00\x01\x02\r\n\r\n"), httpx.RemoteProtocolError),
}


@pytest.mark.parametrize(("answer", "error"), FAILURES.values(), ids=FAILURES)
async def test_failure_before_a_response_is_an_httpx_error(
    serve: Serve, answer: object, error: type[httpx.TransportError]
) -> None:
    server = serve(answer)

    with pytest.raises(error) as caught:
        await OneRequestTransport().handle_async_request(get(server.url))

    assert type(caught.value) is error
    assert caught.value.__cause__ is not None or str(caught.value)
    assert server.is_left_alone()


async def test_failure_in_a_body_is_an_httpx_error(serve: Serve) -> None:
    server = serve(Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"))

    response = await OneRequestTransport().handle_async_request(get(server.url))
    with pytest.raises(httpx.RemoteProtocolError):
        await body_of(response)
    await response.aclose()

    assert server.is_left_alone()


async def test_dead_port_is_a_connect_error_with_its_cause() -> None:
    url = f"http://127.0.0.1:{dead_port()}"

    with pytest.raises(httpx.ConnectError) as caught:
        await OneRequestTransport().handle_async_request(get(url))

    causes: list[BaseException] = [caught.value]
    while causes[-1].__cause__ is not None:
        causes.append(causes[-1].__cause__)
    assert any(isinstance(cause, OSError) for cause in causes)


async def test_read_that_takes_too_long_is_an_httpx_error(serve: Serve) -> None:
    server = serve(Raw(b"", Connection.hang))

    with pytest.raises(httpx.ReadTimeout):
        await OneRequestTransport().handle_async_request(get(server.url, timeout=0.1))

    assert server.is_left_alone()


async def test_ipv6_origin_is_dialled(serve: Serve) -> None:
    server = serve(Reply(body=RULES), host="::1")

    outcome = await fetched(server.url)

    assert outcome == Answered(status=200, body=RULES)
    assert server.requests[0].headers["host"] == f"[::1]:{server.port}"


async def test_proxy_of_the_environment_is_ignored(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(Reply(body=RULES))
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{dead_port()}")

    outcome = await fetched(server.url)

    assert outcome == Answered(status=200, body=RULES)


# --- octets without end ---------------------------------------------------------

ENDLESS_HEADS = {
    "informational responses": b"HTTP/1.1 103 Early Hints\r\n\r\n",
    "informational responses with headers": (
        b"HTTP/1.1 103 Early Hints\r\n" + b"Link: </style.css>\r\n" * 99 + b"\r\n"
    ),
}


@pytest.mark.parametrize("octets", ENDLESS_HEADS.values(), ids=ENDLESS_HEADS)
async def test_head_without_end_is_given_up_early(serve: Serve, octets: bytes) -> None:
    server = serve(Raw(b"", endless(octets)))

    with pytest.raises(httpx.RemoteProtocolError, match="more octets than any answer"):
        await OneRequestTransport().handle_async_request(get(server.url))

    assert server.is_left_alone()


ENDLESS_BODIES = {
    "extensions of chunks": b"1;" + b"x" * 30_000 + b"\r\nx\r\n",
    "chunks of one octet": b"1\r\nx\r\n",
}


@pytest.mark.parametrize("octets", ENDLESS_BODIES.values(), ids=ENDLESS_BODIES)
async def test_body_that_is_mostly_framing_is_given_up(
    serve: Serve, octets: bytes
) -> None:
    server = serve(Raw(CHUNKED_HEAD, endless(octets)))
    transport = OneRequestTransport(max_bytes=200_000)

    response = await transport.handle_async_request(get(server.url))
    with pytest.raises(httpx.RemoteProtocolError, match="more octets than any answer"):
        await body_of(response)
    await response.aclose()

    assert server.is_left_alone()


async def test_file_of_the_largest_size_may_come_line_by_line(serve: Serve) -> None:
    """Framing is shorter than the body then, and no attack."""
    line = b"Disallow: /a/b/c/d/e\n"
    lines = 512_000 // len(line)
    body = (b"%x\r\n" % len(line) + line + b"\r\n") * lines + b"0\r\n\r\n"
    server = serve(Raw(CHUNKED_HEAD + body, Connection.hang))

    outcome = await fetched(server.url)

    assert outcome == Answered(status=200, body=line * lines)


async def test_small_file_may_come_octet_by_octet(serve: Serve) -> None:
    body = b"1\r\n#\r\n" * 5_000 + b"0\r\n\r\n"
    server = serve(Raw(CHUNKED_HEAD + body, Connection.hang))

    assert await fetched(server.url) == Answered(status=200, body=b"#" * 5_000)


async def test_body_in_very_many_pieces_is_given_up(serve: Serve) -> None:
    server = serve(Raw(CHUNKED_HEAD, endless(b"1\r\n#\r\n" * 500)))

    outcome = await fetched(server.url)

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.CODING
    assert "octets in 5556 pieces" in outcome.error
    assert server.is_left_alone()


@pytest.mark.parametrize("header", [b"Set-Cookie: a=b; Path=/", b"Link: </x>; rel=y"])
async def test_five_hundred_headers_of_one_name_do_not_matter(
    serve: Serve, header: bytes
) -> None:
    head = b"HTTP/1.1 200 OK\r\n" + (header + b"\r\n") * 500
    server = serve(Raw(head + b"Content-Length: %d\r\n\r\n" % len(RULES) + RULES))

    assert await fetched(server.url) == Answered(status=200, body=RULES)


# --- cancellation ---------------------------------------------------------------


async def cancelled_when(is_there: Callable[[], bool], url: str, **tls: object) -> None:
    """Fetch from `url`, and be cancelled as soon as the server `is_there`."""
    transport = OneRequestTransport(**tls)  # type: ignore[arg-type]  # passed on
    was_cancelled = False

    async def fetch() -> None:
        nonlocal was_cancelled
        try:
            await fetched(url, client=transport)
        except anyio.get_cancelled_exc_class():
            was_cancelled = True
            raise

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetch)
            assert await anyio.to_thread.run_sync(is_there)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
    assert was_cancelled


async def test_cancelled_in_the_handshake_no_socket_stays_open(
    serve: Serve, client_tls: ssl.SSLContext
) -> None:
    server = serve(Raw(b"", Connection.hang), reads_requests=False)
    url = server.url.replace("http:", "https:")

    await cancelled_when(lambda: server.has_accepted(1), url, ssl_context=client_tls)

    assert server.is_left_alone()


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nUser-agent",
        b"HTTP/1.1 503 Service Unavailable\r\n\r\n<title>",
    ],
    ids=["no answer", "half a head", "half a body", "half an error page"],
)
async def test_cancelled_while_it_waits_no_socket_stays_open(
    serve: Serve, octets: bytes
) -> None:
    server = serve(Raw(octets, Connection.hang))

    await cancelled_when(lambda: server.has_accepted(1), server.url)

    assert server.is_left_alone()


async def test_cancelled_before_it_begins_nothing_is_dialled(serve: Serve) -> None:
    server = serve(Reply(body=RULES))

    with anyio.CancelScope() as scope:
        scope.cancel()
        await fetched(server.url)

    assert scope.cancelled_caught
    assert server.requests == []
    assert server.is_left_alone()


# --- TLS ------------------------------------------------------------------------


async def test_https_is_fetched(
    serve: Serve, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    server = serve(Reply(body=RULES), ssl_context=server_tls)
    transport = OneRequestTransport(ssl_context=client_tls)

    outcome = await fetched(server.url, client=transport)

    assert outcome == Answered(status=200, body=RULES)
    assert server.url.startswith("https:")
    assert server.is_left_alone()


async def test_https_body_that_is_cut_at_the_limit_closes_the_connection(
    serve: Serve, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    head = b"HTTP/1.1 404 Not Found\r\n\r\n"
    answer = Raw(head, lambda connection: connection.send_for_ever(b"x" * 9_999))
    server = serve(answer, ssl_context=server_tls)
    transport = OneRequestTransport(ssl_context=client_tls)

    outcome = await fetched(server.url, client=transport)

    assert outcome == Answered(status=404)
    assert server.is_left_alone()


async def test_redirect_from_http_to_https_and_back_is_followed(
    serve: Serve, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    last = serve(Reply(body=RULES))
    middle = serve(redirect(f"{last.url}/last"), ssl_context=server_tls)
    first = serve(redirect(f"{middle.url}/middle", status=301))
    transport = OneRequestTransport(ssl_context=client_tls)

    outcome = await fetched(first.url, client=transport)

    assert outcome == Answered(status=200, body=RULES, redirects=2)
    assert middle.targets == ["/middle"]
    assert last.targets == ["/last"]


def context_of(certificate: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    return context


async def test_certificate_of_an_unknown_authority_is_a_tls_failure(
    serve: Serve, client_tls: ssl.SSLContext
) -> None:
    stranger = context_of(trustme.CA().issue_cert("127.0.0.1"))
    server = serve(Reply(body=RULES), ssl_context=stranger)

    outcome = await fetched(
        server.url, client=OneRequestTransport(ssl_context=client_tls)
    )

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.TLS
    assert "certificate verify failed" in outcome.error
    assert server.requests == []
    assert server.is_left_alone()


async def test_certificate_is_checked_against_the_usual_authorities_by_default(
    serve: Serve, server_tls: ssl.SSLContext
) -> None:
    server = serve(Reply(body=RULES), ssl_context=server_tls)

    outcome = await fetched(server.url)

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.TLS
    assert server.requests == []


async def test_concurrent_first_fetches_over_https_make_one_context(
    serve: Serve, server_tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(Reply(body=RULES), ssl_context=server_tls)
    transport = OneRequestTransport()
    contexts = []
    create_ssl_context = httpx.create_ssl_context

    def counting() -> ssl.SSLContext:
        contexts.append(create_ssl_context())
        return contexts[-1]

    monkeypatch.setattr(httpx, "create_ssl_context", counting)

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(partial(fetched, server.url, client=transport))
    await fetched(server.url, client=transport)

    assert len(contexts) == 1


async def test_certificate_of_another_host_is_a_tls_failure(
    serve: Serve, certificate_authority: trustme.CA, client_tls: ssl.SSLContext
) -> None:
    certificate = certificate_authority.issue_cert("example.com")
    server = serve(Reply(body=RULES), ssl_context=context_of(certificate))

    outcome = await fetched(
        server.url, client=OneRequestTransport(ssl_context=client_tls)
    )

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.TLS
    assert "IP address mismatch" in outcome.error


@pytest.mark.parametrize(
    ("answer", "kinds"),
    [
        (Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n"), {FailureKind.TLS}),
        (Raw(b""), {FailureKind.TLS, FailureKind.CONNECT}),
        (Raw(b"", Connection.reset), {FailureKind.TLS, FailureKind.CONNECT}),
        (Raw(b"\x15\x03\x03\x00\x02\x02\x28"), {FailureKind.TLS}),
    ],
    ids=["plain HTTP", "end", "reset", "an alert"],
)
async def test_handshake_that_the_server_breaks_off_is_a_failure(
    serve: Serve,
    client_tls: ssl.SSLContext,
    answer: Raw,
    kinds: set[FailureKind],
) -> None:
    def hear_and_answer(request: object, connection: Connection) -> None:
        connection.receive()
        answer(request, connection)  # type: ignore[arg-type]  # passed on

    server = serve(hear_and_answer, reads_requests=False)
    url = server.url.replace("http:", "https:")

    outcome = await fetched(url, client=OneRequestTransport(ssl_context=client_tls))

    assert isinstance(outcome, Failed)
    assert outcome.kind in kinds
    assert server.is_left_alone()


async def test_redirect_to_a_host_with_a_bad_certificate_is_a_failure_after_one(
    serve: Serve, client_tls: ssl.SSLContext
) -> None:
    stranger = context_of(trustme.CA().issue_cert("127.0.0.1"))
    second = serve(Reply(body=RULES), ssl_context=stranger)
    first = serve(redirect(f"{second.url}/x"))
    transport = OneRequestTransport(ssl_context=client_tls)

    outcome = await fetched(first.url, client=transport)

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.TLS
    assert outcome.redirects == 1


async def test_https_that_redirects_to_itself_is_a_loop(
    serve: Serve, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    server = serve(
        Routes({"/robots.txt": redirect("/robots.txt#top")}), ssl_context=server_tls
    )

    outcome = await fetched(
        server.url, client=OneRequestTransport(ssl_context=client_tls)
    )

    assert isinstance(outcome, BrokenRedirect)
    assert outcome.status == 302


FAILURES_OVER_TLS: dict[str, tuple[Raw, FailureKind]] = {
    "a server that says nothing": (Raw(b"", Connection.hang), FailureKind.TIMEOUT),
    "a body that stops": (
        Raw(CHUNKED_HEAD + b"4\r\nUser", Connection.hang),
        FailureKind.TIMEOUT,
    ),
    "an end before the answer": (Raw(b""), FailureKind.PROTOCOL),
    "an end in the body": (Raw(CHUNKED_HEAD + b"f\r\nUser"), FailureKind.PROTOCOL),
    "a reset before the answer": (Raw(b"", Connection.reset), FailureKind.TRANSFER),
    "a reset in the body": (
        Raw(CHUNKED_HEAD + b"f\r\nUser", Connection.reset),
        FailureKind.TRANSFER,
    ),
    "rubbish": (Raw(b"rubbish\r\n\r\n"), FailureKind.PROTOCOL),
}


@pytest.mark.parametrize(
    ("answer", "kind"), FAILURES_OVER_TLS.values(), ids=FAILURES_OVER_TLS
)
async def test_failure_after_a_good_handshake_is_no_tls_failure(
    serve: Serve,
    server_tls: ssl.SSLContext,
    client_tls: ssl.SSLContext,
    answer: Raw,
    kind: FailureKind,
) -> None:
    """An SSLWantReadError in the context of what failed later is no failure."""
    server = serve(answer, ssl_context=server_tls)
    transport = OneRequestTransport(ssl_context=client_tls)

    outcome = await fetched(
        server.url, client=transport, policy=Policy(fetch_deadline=0.3)
    )

    assert isinstance(outcome, Failed)
    assert outcome.kind is kind
    assert "did not complete" not in outcome.error
    assert server.is_left_alone()
