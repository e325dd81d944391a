"""The servers of one fault, which count the bytes they send."""

from __future__ import annotations

import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from robotsgate.stores.sqlite import _connect, _prepare
from tests.servers.loopback import Connection, LoopbackServer

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from tests.servers.loopback import Answer, Request

# With a small send buffer, the bytes sent are about as many as the client read; a
# large one would accept far more from the server.
_SEND_BUFFER_BYTES = 32_768

# A piece is counted only once all of it is sent, so it must be small.
_PIECE_BYTES = 16_384


# Runs in its own process: SQLite closes no file that the same process has locked.
_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print(flush=True)
sys.stdin.read()
"""


class Stage:
    """Runs servers and locks files until its `with` block ends.

    Attributes:
        servers: in the order they were started.
        has_tls: whether any server uses TLS.
    """

    def __init__(self) -> None:
        self.servers: list[LoopbackServer] = []
        self.has_tls = False
        self._exits = ExitStack()
        self._counting = threading.Lock()
        self._sent = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Stop all servers and release all locks."""
        self._exits.close()

    def serve(
        self,
        answer: Answer,
        *,
        host: str = "127.0.0.1",
        ssl_context: ssl.SSLContext | None = None,
        reads_requests: bool = True,
    ) -> LoopbackServer:
        """Start a server that answers with `answer`; options as in `LoopbackServer`."""
        server = LoopbackServer(
            partial(self._answer, answer),
            host=host,
            ssl_context=ssl_context,
            reads_requests=reads_requests,
        )
        self.has_tls |= ssl_context is not None
        self.servers.append(server)
        return self._exits.enter_context(server)

    def bind(self, *, host: str = "127.0.0.1") -> int:
        """A port that queues connections without ever accepting them."""
        listener = self._exits.enter_context(socket.create_server((host, 0)))
        port: int = listener.getsockname()[1]
        return port

    def locked_file(self, *, is_store: bool) -> Path:
        """A file locked by another process: an existing store, or a new file."""
        folder = self._exits.enter_context(tempfile.TemporaryDirectory())
        path = Path(folder, "robots.db")
        if is_store:
            with closing(_connect(str(path))) as connection:
                _prepare(connection, str(path))
        other = subprocess.Popen(  # noqa: S603 (this very interpreter)
            [sys.executable, "-c", _LOCK, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._exits.enter_context(other)
        assert other.stdout is not None
        other.stdout.readline()
        return path

    @property
    def sent(self) -> int:
        """The bytes that the servers have sent so far, counted above TLS."""
        with self._counting:
            return self._sent

    @property
    def requested(self) -> tuple[str, ...]:
        """The targets of all requests, server by server."""
        return tuple(target for server in self.servers for target in server.targets)

    def is_left_alone(self) -> bool:
        """Whether all connections end within a while."""
        return all(server.is_left_alone() for server in self.servers)

    def _answer(self, answer: Answer, request: Request, connection: Connection) -> None:
        answer(request, _Counted(connection, self._count))

    def _count(self, size: int) -> None:
        with self._counting:
            self._sent += size


class _Counted(Connection):
    """Wraps a connection and counts the bytes it sends."""

    def __init__(self, connection: Connection, count: Callable[[int], None]) -> None:
        self._connection = connection
        self._count = count
        super().__init__(connection._socket)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)

    @property
    def is_closed(self) -> bool:
        return self._connection.is_closed

    @is_closed.setter
    def is_closed(self, value: bool) -> None:
        self._connection.is_closed = value

    def accept(self, listener: socket.socket) -> Connection:
        return _Counted(super().accept(listener), self._count)

    def send(self, data: bytes) -> None:
        unsent = memoryview(data)
        while unsent:
            sent = self._socket.send(unsent[:_PIECE_BYTES])
            self._count(sent)
            unsent = unsent[sent:]

    def send_for_ever(self, data: bytes) -> None:
        while True:
            self.send(data)
