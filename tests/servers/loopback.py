"""An HTTP server on a loopback port that can send any response, valid or not.

It uses real blocking sockets in threads, so its behaviour cannot depend on the event
loop under test. An answer is a plain function of a request and a connection.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from select import select
from typing import TYPE_CHECKING, Self

from tests.fetching.fetches import PATIENCE_SECONDS

if TYPE_CHECKING:
    import ssl

_RECEIVE_BYTES = 65_536

# A broken test must not hang: no step of the server takes longer. A connection that a
# client forgets must stay open until `is_left_alone` has given up on it.
_STEP_SECONDS = 3 * PATIENCE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as received.

    Attributes:
        head: all bytes up to and including the empty line.
        target: the target in the request line.
        headers: values by lower-case name; if a name is repeated, the last value.
    """

    head: bytes
    target: str
    headers: dict[str, str]

    @classmethod
    def of(cls, head: bytes) -> Request:
        """Parse the valid parts of `head`."""
        request_line, *lines = head.decode("latin-1").split("\r\n")
        words = request_line.split(" ")
        pairs = (line.partition(":") for line in lines if line)
        return cls(
            head=head,
            target=words[1] if len(words) > 1 else "",
            headers={name.lower(): value.strip() for name, _, value in pairs},
        )


class Connection:
    """One accepted connection."""

    def __init__(self, accepted: socket.socket) -> None:
        self._socket = accepted
        self.is_closed = False

    def send(self, octets: bytes) -> None:
        """Send all of `octets`; raise OSError if the client has disconnected."""
        self._socket.sendall(octets)

    def send_for_ever(self, octets: bytes) -> None:
        """Send `octets` repeatedly until the client disconnects."""
        while True:
            self._socket.sendall(octets)

    def hang(self) -> None:
        """Send nothing until the client disconnects."""
        with suppress(OSError):
            while self._socket.recv(_RECEIVE_BYTES):
                pass
        self.close()

    def receive(self) -> bytes:
        """The next bytes received; empty once the client has disconnected."""
        return self._socket.recv(_RECEIVE_BYTES)

    def forward(self, upstream: socket.socket) -> None:
        """Carry bytes to and from `upstream` until one side disconnects.

        In one thread, because two threads that use an SSLSocket at once can break it.
        """
        other = {self._socket: upstream, upstream: self._socket}
        while ready := select([*other], [], [], _STEP_SECONDS)[0]:
            for one in ready:
                # More than a TLS record, so that none waits where `select` can't see.
                octets = one.recv(_RECEIVE_BYTES)
                if not octets:
                    return
                other[one].sendall(octets)

    def accept(self, listener: socket.socket) -> Connection:
        """Accept another connection from the same client."""
        return Connection(listener.accept()[0])

    def close(self) -> None:
        """Close the connection normally (FIN)."""
        if not self.is_closed:
            self.is_closed = True
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
            self._socket.close()

    def reset(self) -> None:
        """Abort the connection (RST)."""
        linger = struct.pack("ii", 1, 0)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.is_closed = True
        self._socket.close()

    def interrupt(self) -> None:
        """Wake a thread that is blocked in a call on this connection."""
        # An SSLSocket's own method would remove the TLS layer from under a thread
        # that is reading.
        with suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def shake_hands(self, context: ssl.SSLContext) -> None:
        """Switch to TLS, as the server side."""
        self._socket = context.wrap_socket(
            self._socket, server_side=True, do_handshake_on_connect=False
        )
        self._socket.do_handshake()


Answer = Callable[[Request, Connection], None]
"""Answers one request; afterwards, the next request on the connection is read."""


class LoopbackServer:
    """Answers every request with a function, until its `with` block ends.

    Attributes:
        url: the URL of its origin, without a final slash.
        port: the port on which it listens.
    """

    def __init__(
        self,
        answer: Answer,
        *,
        host: str = "127.0.0.1",
        ssl_context: ssl.SSLContext | None = None,
        connection_type: type[Connection] = Connection,
        reads_requests: bool = True,
    ) -> None:
        """Listen.

        Args:
            answer: called for each request, in the connection's thread.
            host: the loopback address to listen on.
            ssl_context: makes it an HTTPS server.
            connection_type: the protocol; HTTP/1.1 by default.
            reads_requests: if `False`, `answer` is called once for each connection,
                before anything is read, with an empty request.
        """
        self._answer = answer
        self._ssl_context = ssl_context
        self._connection_type = connection_type
        self._reads_requests = reads_requests
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family, backlog=512)
        self._address = self._listener.getsockname()[:2]
        self.port: int = self._address[1]
        scheme = "http" if ssl_context is None else "https"
        name = f"[{host}]" if ":" in host else host
        self.url = f"{scheme}://{name}:{self.port}"
        self._changed = threading.Condition()
        self._requests: list[Request] = []
        self._connections: set[Connection] = set()
        self._accepted = 0
        self._threads: list[threading.Thread] = []
        self._is_stopping = False

    def __enter__(self) -> Self:
        self._start(self._accept_all)
        return self

    def __exit__(self, *exc_info: object) -> None:
        with self._changed:
            self._is_stopping = True
            open_connections = list(self._connections)
        # Closing a listener does not wake its accept(), but a connection does.
        with suppress(OSError):
            socket.create_connection(self._address, timeout=_STEP_SECONDS).close()
        for connection in open_connections:
            connection.interrupt()
        for thread in self._threads:
            thread.join(_STEP_SECONDS)
        self._listener.close()

    @property
    def requests(self) -> list[Request]:
        """The requests received so far, in order of arrival."""
        with self._changed:
            return list(self._requests)

    @property
    def targets(self) -> list[str]:
        """The targets of `requests`."""
        return [request.target for request in self.requests]

    @property
    def accepted(self) -> int:
        """How many connections the server has accepted so far."""
        with self._changed:
            return self._accepted

    def is_left_alone(self) -> bool:
        """Whether all clients have closed their connections; waits for that."""
        return self._becomes(lambda: not self._connections)

    def has_accepted(self, count: int) -> bool:
        """Whether `count` connections have been accepted; waits for that."""
        return self._becomes(lambda: self._accepted >= count)

    def _becomes(self, condition: Callable[[], bool]) -> bool:
        with self._changed:
            return self._changed.wait_for(condition, timeout=PATIENCE_SECONDS)

    def _start(self, work: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=work, args=args, name=f"server {self.port}")
        self._threads.append(thread)
        thread.start()

    def _accept_all(self) -> None:
        while True:
            accepted, _ = self._listener.accept()
            connection = self._connection_type(accepted)
            with self._changed:
                if self._is_stopping:
                    break
                accepted.settimeout(_STEP_SECONDS)
                self._accepted += 1
                self._connections.add(connection)
                self._changed.notify_all()
            self._start(self._serve, connection)
        connection.close()

    def _serve(self, connection: Connection) -> None:
        try:
            # OSError: the client has disconnected, or the server was stopped.
            with suppress(OSError):
                if self._ssl_context is not None:
                    connection.shake_hands(self._ssl_context)
                self._answer_all(connection)
        finally:
            connection.close()
            with self._changed:
                self._connections.discard(connection)
                self._changed.notify_all()

    def _answer_all(self, connection: Connection) -> None:
        if not self._reads_requests:
            self._answer(Request.of(b""), connection)
            return
        received = b""
        while not connection.is_closed:
            while b"\r\n\r\n" not in received:
                data = connection.receive()
                if not data:
                    return
                received += data
            head, end, received = received.partition(b"\r\n\r\n")
            request = Request.of(head + end)
            with self._changed:
                self._requests.append(request)
                self._changed.notify_all()
            self._answer(request, connection)


# Bound but not listening, so that no server of another test can take its port.
_DEAD = socket.socket()
_DEAD.bind(("127.0.0.1", 0))


Serve = Callable[..., LoopbackServer]
"""The fixture `serve`; its arguments are those of `LoopbackServer`."""


def dead_port() -> int:
    """A loopback port on which nothing listens while this process runs."""
    port: int = _DEAD.getsockname()[1]
    return port


def free_port() -> int:
    """A loopback port for a server, which another program may take first."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port
