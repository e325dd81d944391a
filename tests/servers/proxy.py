"""Servers that pass on: what comes in a connection, or requests as a proxy does."""

from __future__ import annotations

import socket
import threading
from contextlib import closing, suppress
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.servers.answers import Reply

if TYPE_CHECKING:
    from tests.servers.loopback import Connection, Request

__all__ = ["forward_proxy", "pass_on"]

_PATIENCE_SECONDS = 5.0
_RECEIVE_BYTES = 65_536


def forward_proxy(request: Request, connection: Connection) -> None:
    """An answer: of a proxy for http, and by CONNECT for https."""
    if request.head.startswith(b"CONNECT "):
        host, _, port = request.target.rpartition(":")
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        pass_on(connection, (host, int(port)))
        return
    url = urlsplit(request.target)
    with closing(HTTPConnection(url.netloc, timeout=_PATIENCE_SECONDS)) as upstream:
        upstream.request("GET", url.path, headers=request.headers)
        response = upstream.getresponse()
        headers = dict(response.getheaders())
        reply = Reply(status=response.status, headers=headers, body=response.read())
    reply(request, connection)


def pass_on(connection: Connection, address: tuple[str, int]) -> None:
    """Pass on to `address`, and back, what comes until one side leaves."""
    with socket.create_connection(address) as plain:
        back = threading.Thread(target=_pass_back, args=(plain, connection))
        back.start()
        with suppress(OSError):
            while octets := connection.receive():
                plain.sendall(octets)
        with suppress(OSError):
            plain.shutdown(socket.SHUT_RDWR)
        back.join(_PATIENCE_SECONDS)
    connection.close()


def _pass_back(plain: socket.socket, connection: Connection) -> None:
    with suppress(OSError):
        while octets := plain.recv(_RECEIVE_BYTES):
            connection.send(octets)
