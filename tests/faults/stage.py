"""Servers that play one fault, and count the bytes that they get rid of."""

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

from robotsgate.stores._sqlite_file import connect, prepare
from tests.servers.loopback import Connection, LoopbackServer

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from tests.servers.loopback import Answer, Request

# So little may wait in the sending system: what was sent is then about what was
# read, and not what a generous buffer took from the server.
_SEND_BUFFER_BYTES = 32_768

# A sent piece is counted whole, so it must be small.
_PIECE_BYTES = 16_384


# In a process of its own: SQLite closes no file of a process that has a lock on it.
_LOCK = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print(flush=True)
sys.stdin.read()
"""


class Stage:
    """Starts servers, and locks files, until its `with` block ends.

    Attributes:
        servers: in the order in which they were started.
        has_tls: whether any of them speaks TLS.
    """

    def __init__(self) -> None:
        """Start nothing yet."""
        self.servers: list[LoopbackServer] = []
        self.has_tls = False
        self._exits = ExitStack()
        self._counting = threading.Lock()
        self._sent = 0

    def __enter__(self) -> Self:
        """Servers may be started now."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Stop all servers, and end all locks."""
        self._exits.close()

    def serve(
        self,
        answer: Answer,
        *,
        host: str = "127.0.0.1",
        ssl_context: ssl.SSLContext | None = None,
        reads_requests: bool = True,
    ) -> LoopbackServer:
        """A server that answers with `answer`; the rest as for `LoopbackServer`."""
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
        """A port where connections are taken by the system and by nobody else."""
        listener = self._exits.enter_context(socket.create_server((host, 0)))
        port: int = listener.getsockname()[1]
        return port

    def locked_file(self, *, is_store: bool) -> Path:
        """A file that nobody else may write: a store of ours, or a new one."""
        folder = self._exits.enter_context(tempfile.TemporaryDirectory())
        path = Path(folder, "robots.db")
        if is_store:
            with closing(connect(str(path))) as connection:
                prepare(connection, str(path))
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
        """Bytes of HTTP that the servers sent until now."""
        with self._counting:
            return self._sent

    @property
    def asked(self) -> tuple[str, ...]:
        """The targets of all requests, server by server."""
        return tuple(target for server in self.servers for target in server.targets)

    def is_left_alone(self) -> bool:
        """Whether all connections end, soon if not yet."""
        return all(server.is_left_alone() for server in self.servers)

    def _answer(self, answer: Answer, request: Request, connection: Connection) -> None:
        answer(request, _Counted(connection, self._count))

    def _count(self, size: int) -> None:
        with self._counting:
            self._sent += size


class _Counted(Connection):
    """Another connection, with each byte counted that leaves."""

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
        left = memoryview(data)
        while left:
            sent = self._socket.send(left[:_PIECE_BYTES])
            self._count(sent)
            left = left[sent:]

    def send_for_ever(self, data: bytes) -> None:
        while True:
            self.send(data)
