from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.servers.answers import Raw, Reply, Routes, chunked, redirect
from tests.servers.loopback import Connection, LoopbackServer, dead_port

if TYPE_CHECKING:
    import ssl


def ask(server: LoopbackServer, octets: bytes) -> bytes:
    """All that comes back for `octets`, the client's side closed after them."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=2) as client:
        client.sendall(octets)
        client.shutdown(socket.SHUT_WR)
        received = b""
        while octets := client.recv(65_536):
            received += octets
    return received


def test_two_requests_of_one_connection_are_answered_and_kept_whole() -> None:
    head = b"GET /a HTTP/1.1\r\nHost: x\r\nX-Is: here\r\n\r\n"

    with LoopbackServer(Routes({"/a": Reply(body=b"hello")})) as server:
        received = ask(server, head + b"GET /b HTTP/1.1\r\n\r\n")

    assert received == (
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
    )
    assert server.requests[0].head == head
    assert server.requests[0].headers == {"host": "x", "x-is": "here"}
    assert server.targets == ["/a", "/b"]
    assert server.accepted == 1


def test_rubbish_is_sent_as_it_is() -> None:
    with LoopbackServer(Raw(b"\x00rubbish"), reads_requests=False) as server:
        received = ask(server, b"")

    assert received == b"\x00rubbish"


def test_connection_that_is_reset_tells_the_client() -> None:
    """Without `ask`, whose shutdown fails otherwise where the reset comes first."""
    with (
        LoopbackServer(Raw(b"", Connection.reset)) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=2) as client,
    ):
        client.sendall(b"GET / HTTP/1.1\r\n\r\n")

        with pytest.raises(ConnectionResetError):
            client.recv(1)


def test_server_that_ends_cuts_connections_that_hang() -> None:
    server = LoopbackServer(Raw(b"", Connection.hang))

    with socket.socket() as client:
        with server:
            client.connect(("127.0.0.1", server.port))
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert server.has_accepted(1)
        rest = client.recv(1)

    assert rest == b""
    assert server.is_left_alone()


def test_failed_handshake_is_kept(server_tls: ssl.SSLContext) -> None:
    with LoopbackServer(Reply(), ssl_context=server_tls) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(b"GET / HTTP/1.1\r\n\r\n")
            client.recv(65_536)
        assert server.is_left_alone()

    assert len(server.handshake_errors) == 1


def test_nothing_listens_at_a_dead_port() -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", dead_port()))


def test_chunked_coding_ends_with_an_empty_chunk() -> None:
    assert chunked(b"ab", b"c" * 16) == (
        b"2\r\nab\r\n10\r\n" + b"c" * 16 + b"\r\n0\r\n\r\n"
    )


def test_redirect_names_its_location() -> None:
    assert redirect("/x", status=307).octets == (
        b"HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\nLocation: /x\r\n\r\n"
    )
