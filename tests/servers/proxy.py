"""Answers that forward: all bytes of a connection, or requests like a proxy."""

from __future__ import annotations

import socket
from contextlib import closing, suppress
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.fetching.fetches import PATIENCE_SECONDS
from tests.servers.answers import Reply

if TYPE_CHECKING:
    from tests.servers.loopback import Connection, Request


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
    with socket.create_connection(address) as upstream, suppress(OSError):
        connection.forward(upstream)
    connection.close()
