"""FTP servers on loopback ports: a real one and a scripted one."""

from __future__ import annotations

import socket
import threading
import warnings
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.servers.loopback import Request

_REPLIES = {
    "USER": b"331 password please",
    "PASS": b"230 welcome",
    "TYPE": b"200 binary",
    "RETR": b"150 here it comes",
}


class FtpServer:
    """A pyftpdlib server in a thread, until its `with` block ends.

    Attributes:
        url: the URL of its origin, without a final slash.
    """

    def __init__(self, folder: Path, *, host: str = "127.0.0.1") -> None:
        with warnings.catch_warnings():
            # It uses asyncore, which Python 3.11 deprecates.
            warnings.simplefilter("ignore", DeprecationWarning)
            from pyftpdlib import authorizers, handlers, servers  # noqa: PLC0415
        users = authorizers.DummyAuthorizer()
        users.add_anonymous(str(folder))

        class Handler(handlers.FTPHandler):  # type: ignore[misc]  # has no types
            authorizer = users

        self._server: Any = servers.FTPServer((host, 0), Handler)
        name = f"[{host}]" if ":" in host else host
        self.url = f"ftp://{name}:{self._server.address[1]}"
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._is_stopping.set()
        self._thread.join()

    def _serve(self) -> None:
        while not self._is_stopping.is_set():
            self._server.serve_forever(timeout=0.02, blocking=False)
        self._server.close_all()


@dataclass(frozen=True, slots=True, kw_only=True)
class FtpPart:
    """A scripted server: an `Answer` for a `LoopbackServer` that reads no requests.

    Attributes:
        greeting: sent immediately.
        replies: by command, replacing the default ones; a function is called with the
            control connection.
        host: the host in the reply to PASV, with commas.
        data: called with the data connection.
        end: the reply after the data.
    """

    greeting: bytes = b"220 hello"
    replies: Mapping[str, bytes | Callable[[Connection], None]] = field(
        default_factory=dict
    )
    host: str = "127,0,0,1"
    data: Callable[[Connection], None] = Connection.close
    end: bytes = b"226 done"

    def __call__(self, _request: Request, connection: Connection) -> None:
        connection.send(self.greeting + b"\r\n")
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.settimeout(10)
            high, low = divmod(listener.getsockname()[1], 256)
            defaults = {**_REPLIES, "PASV": f"227 ({self.host},{high},{low})".encode()}
            while line := connection.receive():
                command = line.split()[0].decode()
                reply = self.replies.get(command, defaults.get(command, b"500 what?"))
                if callable(reply):
                    reply(connection)
                    continue
                connection.send(reply + b"\r\n")
                if command == "RETR" and reply.startswith(b"1"):
                    with closing(connection.accept(listener)) as data:
                        self.data(data)
                    connection.send(self.end + b"\r\n")
