"""Answers that forward: all bytes of a connection, or requests like a proxy."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress
from http.client import HTTPConnection
from queue import SimpleQueue
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from robotsgate import SystemClock
from tests.fetching.fetches import PATIENCE_SECONDS
from tests.servers.answers import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import Connection, Request

__all__ = ["forward_proxy", "pass_on"]

_RECEIVE_BYTES = 65_536


def forward_proxy(request: Request, connection: Connection) -> None:
    """An `Answer` of a proxy, for http, and for https through CONNECT."""
    if request.head.startswith(b"CONNECT "):
        host, _, port = request.target.rpartition(":")
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        pass_on(connection, (host, int(port)))
        return
    url = urlsplit(request.target)
    with closing(HTTPConnection(url.netloc, timeout=PATIENCE_SECONDS)) as upstream:
        upstream.request("GET", url.path, headers=request.headers)
        response = upstream.getresponse()
        headers = dict(response.getheaders())
        reply = Reply(status=response.status, headers=headers, body=response.read())
    reply(request, connection)


def pass_on(
    connection: Connection, address: tuple[str, int], *, latency: float = 0.0
) -> None:
    """Forward bytes to and from `address` until one side disconnects.

    Args:
        connection: the client's connection.
        address: where to connect.
        latency: the additional delay in each direction, in seconds.
    """
    with socket.create_connection(address) as plain:

        def answer() -> bytes:
            return plain.recv(_RECEIVE_BYTES)

        back = threading.Thread(target=_carry, args=(answer, connection.send, latency))
        back.start()
        _carry(connection.receive, plain.sendall, latency)
        with suppress(OSError):
            plain.shutdown(socket.SHUT_RDWR)
        back.join(PATIENCE_SECONDS)
    connection.close()


def _carry(
    receive: Callable[[], bytes], send: Callable[[bytes], object], latency: float
) -> None:
    """Send what is received, `latency` seconds later, until one side disconnects."""
    pieces: SimpleQueue[tuple[float, bytes]] = SimpleQueue()

    def deliver() -> None:
        with suppress(OSError):
            while (piece := pieces.get())[1]:
                threading.Event().wait(piece[0] - SystemClock().monotonic())
                send(piece[1])

    sender = threading.Thread(target=deliver)
    sender.start()
    with suppress(OSError):
        while data := receive():
            pieces.put((SystemClock().monotonic() + latency, data))
    pieces.put((0.0, b""))
    sender.join(PATIENCE_SECONDS)
