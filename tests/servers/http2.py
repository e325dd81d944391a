"""HTTP/2 for a `LoopbackServer`; its answers still write HTTP/1.1."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived

from tests.servers.loopback import Connection

if TYPE_CHECKING:
    import socket
    import ssl


class HTTP2Connection(Connection):
    """Reads each request from an HTTP/2 stream, and sends its response there."""

    def __init__(self, accepted: socket.socket) -> None:
        super().__init__(accepted)
        self._http2 = H2Connection(H2Configuration(client_side=False))
        self._streams: deque[int] = deque()

    def shake_hands(self, context: ssl.SSLContext) -> None:
        """Switch to TLS, and to HTTP/2 inside it."""
        super().shake_hands(context)
        self._http2.initiate_connection()
        super().send(self._http2.data_to_send())

    def receive(self) -> bytes:
        """The heads of the next requests; empty once the client has disconnected."""
        heads = b""
        while not heads and (data := super().receive()):
            for event in self._http2.receive_data(data):
                if isinstance(event, RequestReceived):
                    self._streams.append(event.stream_id)
                    fields = dict(event.headers)
                    heads += b"%b %b HTTP/2\r\n\r\n" % (
                        fields[b":method"],
                        fields[b":path"],
                    )
            super().send(self._http2.data_to_send())
        return heads

    def send(self, octets: bytes) -> None:
        """Send the HTTP/1.1 response `octets`, if not empty, on its stream."""
        if not octets:
            return
        head, _, body = octets.partition(b"\r\n\r\n")
        status_line, *lines = head.split(b"\r\n")
        fields = [(b":status", status_line.split(b" ")[1])]
        fields += [tuple(line.lower().split(b": ", 1)) for line in lines]
        stream = self._streams.popleft()
        self._http2.send_headers(stream, fields)
        self._http2.send_data(stream, body, end_stream=True)
        super().send(self._http2.data_to_send())
