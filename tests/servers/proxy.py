"""Answers that forward: all bytes of a connection, or requests like a proxy."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.fetching.fetches import PATIENCE_SECONDS
from tests.servers.answers import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import Connection, Request

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


def pass_on(connection: Connection, address: tuple[str, int]) -> None:
    """Forward bytes to and from `address` until one side disconnects."""
    with socket.create_connection(address) as plain:

        def answer() -> bytes:
            return plain.recv(_RECEIVE_BYTES)

        back = threading.Thread(target=_carry, args=(answer, connection.send))
        back.start()
        _carry(connection.receive, plain.sendall)
        with suppress(OSError):
            plain.shutdown(socket.SHUT_RDWR)
        back.join(PATIENCE_SECONDS)
    connection.close()


def _carry(receive: Callable[[], bytes], send: Callable[[bytes], object]) -> None:
    with suppress(OSError):
        while data := receive():
            send(data)
