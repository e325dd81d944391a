"""The servers of a soak, in a process of their own: each origin plays its script.

    python -m benchmarks._soak_servers --seed 0 --origins 2000 --faults 0.2

Talks JSON, one line for each thing: it says where it listens; then it is told which
round it is and says when the round may begin; it ends when its input does. Each
origin listens at an address of 127.1.0.0/16, which Linux has without being told.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import socket
import struct
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from benchmarks._soak_script import Script, body

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

__all__ = ["ANSWERS", "NETWORK", "REFUSES", "Servers"]

NETWORK = "127.1.0.0/16"
"""Where origins are; all else of this machine is inside."""

REFUSES = "refuses the connection"
"""The kind of origin that has no answer."""

_INSIDE = "127.0.0.1"
_HOSTS = 250
_BACKLOG = 512
_SPARE_FILES = 1_000

_DRIP_SECONDS = 0.05
_LONGEST_SECONDS = 60.0
_END_SECONDS = 30.0
_PIECE = 16_384
_MEBIBYTE = 2**20


class Servers:
    """A process with all servers, until the `with` block ends.

    Attributes:
        origins: the URL of each origin, without a final slash.
    """

    def __init__(self, script: Script) -> None:
        """Start the process, and wait until it listens."""
        words = [f"--{name}={getattr(script, name)}" for name in _SCRIPT]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks._soak_servers", *words],
            cwd=Path(__file__).parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            self.origins: list[str] = self._next_line()["origins"]
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        """The servers, which listen already."""
        return self

    def __exit__(self, *exc_info: object) -> None:
        """End the process."""
        self.close()

    def begin(self, round_: int) -> int:
        """Let all origins do what they do in a round.

        Returns:
            How many connections came to the address inside until now.
        """
        assert self._process.stdin is not None  # noqa: S101 (it is a pipe)
        self._process.stdin.write(f"{round_}\n")
        self._process.stdin.flush()
        knocks: int = self._next_line()["knocks"]
        return knocks

    def close(self) -> None:
        """End the process, and wait until it has ended."""
        try:
            self._process.communicate(timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()

    def _next_line(self) -> dict[str, Any]:
        assert self._process.stdout is not None  # noqa: S101 (it is a pipe)
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the servers of the soak have ended, see above")
        said: dict[str, Any] = json.loads(line)
        return said


# --- answers --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Visit:
    """A request, and what it takes to answer.

    Attributes:
        target: of the request line.
        rules: the robots.txt of the origin in this round.
        origin: its number.
        places: where else something listens, or does not: URLs by name.
        reader: what the client says after the request.
        writer: what it hears.
    """

    target: str
    rules: bytes
    origin: int
    places: Mapping[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


async def _end(_: _Visit) -> None:
    """Leave it to the caller to close."""


async def _hang(visit: _Visit) -> None:
    while await visit.reader.read(_PIECE):
        pass


async def _reset(visit: _Visit) -> None:
    await visit.writer.drain()
    accepted = visit.writer.get_extra_info("socket")
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    visit.writer.transport.abort()


def _endless(octets: bytes) -> Callable[[_Visit], Awaitable[None]]:
    async def send(visit: _Visit) -> None:
        while not visit.writer.is_closing():
            visit.writer.write(octets)
            await visit.writer.drain()

    return send


def _dripping(octets: bytes) -> Callable[[_Visit], Awaitable[None]]:
    async def send(visit: _Visit) -> None:
        while not visit.writer.is_closing():
            visit.writer.write(octets)
            await visit.writer.drain()
            await asyncio.sleep(_DRIP_SECONDS)

    return send


def _says(
    octets: Callable[[_Visit], bytes] | bytes,
    then: Callable[[_Visit], Awaitable[None]] = _end,
) -> Callable[[_Visit], Awaitable[None]]:
    """Sends octets, which may depend on the visit, and does what comes then."""

    async def answer(visit: _Visit) -> None:
        visit.writer.write(octets if isinstance(octets, bytes) else octets(visit))
        await then(visit)

    return answer


def _head(status: str, *lines: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def _sized(status: str, *lines: str, content: bytes = b"") -> bytes:
    """A whole answer that says how long it is."""
    return _head(status, *lines, f"Content-Length: {len(content)}") + content


def _file(*lines: str) -> Callable[[_Visit], bytes]:
    """The robots.txt, below header lines."""
    return lambda visit: _sized("200 OK", *lines, content=visit.rules)


def _chunked(content: bytes) -> bytes:
    half = len(content) // 2
    pieces = (content[:half], content[half:])
    coded = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"".join([*coded, b"0\r\n\r\n"])


def _gzipped(
    change: Callable[[bytes], bytes] = bytes,
) -> Callable[[_Visit], bytes]:
    """The robots.txt as gzip, with something done to that."""

    def answer(visit: _Visit) -> bytes:
        content = change(gzip.compress(visit.rules))
        return _sized("200 OK", "Content-Encoding: gzip", content=content)

    return answer


def _redirect(
    location: Callable[[_Visit], str],
) -> Callable[[_Visit], Awaitable[None]]:
    """To another place, where the file is if it comes back here."""

    def answer(visit: _Visit) -> bytes:
        return _sized("302 Found", f"Location: {location(visit)}")

    return _says(answer)


async def _redirect_within(visit: _Visit) -> None:
    if visit.target == "/robots.txt":
        await _redirect(lambda _: "/moved.txt")(visit)
    else:
        await _says(_file())(visit)


def _there_and_back(visit: _Visit) -> str:
    return "/there" if visit.target == "/robots.txt" else "/robots.txt"


def _one_further(visit: _Visit) -> str:
    return f"/{int(visit.target[1:]) + 1}" if visit.target[1:].isdigit() else "/1"


_BOMB = gzip.compress(b"#" * _MEBIBYTE) * 64  # 64 KiB, all of them one comment
_CHUNKED = _head("200 OK", "Transfer-Encoding: chunked")
_CODED = _head("200 OK", "Content-Encoding: gzip")
_NOT_FOUND = b"<html><title>404 Not Found</title></html>"
_HINTS = _head("103 Early Hints", "Link: </style.css>; rel=preload")

ANSWERS: Mapping[str, Callable[[_Visit], Awaitable[None]]] = {
    "sends a file": _says(_file()),
    "sends a file and keeps the connection": _says(_file(), _hang),
    "sends a file without a length": _says(lambda v: _head("200 OK") + v.rules),
    "sends chunks": _says(lambda v: _CHUNKED + _chunked(v.rules), _hang),
    "sends gzip": _says(_gzipped()),
    "sends gzip in chunks": _says(
        lambda v: (
            _head("200 OK", "Content-Encoding: gzip", "Transfer-Encoding: chunked")
            + _chunked(gzip.compress(v.rules))
        )
    ),
    "sends early hints first": _says(lambda v: _HINTS * 3 + _file()(v)),
    "says `max-age=60`": _says(_file("Cache-Control: max-age=60")),
    "says `max-age=600`, with an age of 300": _says(
        _file("Cache-Control: max-age=600", "Age: 300")
    ),
    "says `no-store`": _says(_file("Cache-Control: no-store")),
    "says `max-age` of a year": _says(_file("Cache-Control: max-age=31536000")),
    "redirects within itself": _redirect_within,
    "redirects to another origin": _redirect(
        lambda v: f"{v.places['elsewhere']}/{v.origin}"
    ),
    "answers 404": _says(_sized("404 Not Found", content=_NOT_FOUND)),
    "answers 410, with `max-age=60`": _says(
        _sized("410 Gone", "Cache-Control: max-age=60")
    ),
    "answers 403": _says(_sized("403 Forbidden")),
    "closes where the answer should come": _end,
    "resets where the answer should come": _reset,
    "says nothing": _hang,
    "falls silent within the head": _says(b"HTTP/1.1 200 OK\r\nX: ", _hang),
    "falls silent within the body": _says(lambda v: _file()(v)[:-9], _hang),
    "drips its head": _says(b"HTTP/1.1 200 OK\r\nX: ", _dripping(b"x")),
    "drips its body": _says(lambda v: _head("200 OK") + v.rules, _dripping(b"#")),
    "drips `100 Continue`": _dripping(_head("100 Continue")),
    "resets within the head": _says(b"HTTP/1.1 200 OK\r\nX: ", _reset),
    "resets within the body": _says(lambda v: _file()(v)[:-9], _reset),
    "announces more than it sends": _says(lambda v: _file()(v)[:-9]),
    "announces a negative length": _says(
        lambda v: _head("200 OK", "Content-Length: -1") + v.rules
    ),
    "sends a broken chunk": _says(lambda v: _CHUNKED + b"9\r\n" + v.rules, _hang),
    "closes before the last chunk": _says(lambda v: _CHUNKED + _chunked(v.rules)[:-5]),
    "sends chunks of one octet, for ever": _says(
        lambda v: _CHUNKED + _chunked(v.rules)[:-5], _endless(b"1\r\n#\r\n" * 999)
    ),
    "sends header lines for ever": _says(
        b"HTTP/1.1 200 OK\r\n", _endless(b"X-Header: x\r\n" * 999)
    ),
    "sends `103 Early Hints` for ever": _endless(_HINTS * 64),
    "sends zeros for ever": _endless(bytes(_PIECE)),
    "greets as SSH does": _says(b"SSH-2.0-OpenSSH_9.9\r\n"),
    "sends the file without any head": _says(lambda v: v.rules),
    "answers 429": _says(_sized("429 Too Many Requests")),
    "answers 429, with `Retry-After`": _says(
        _sized("429 Too Many Requests", "Retry-After: 86400")
    ),
    "answers 500": _says(_sized("500 Internal Server Error", content=b"Oops")),
    "answers 503": _says(_sized("503 Service Unavailable")),
    "answers 503, with `Retry-After`": _says(
        _sized("503 Service Unavailable", "Retry-After: 120")
    ),
    "answers 999": _says(lambda v: _sized("999 No", content=v.rules)),
    "sends gzip that ends too early": _says(_gzipped(lambda coded: coded[:-12])),
    "sends gzip with a wrong checksum": _says(
        _gzipped(lambda coded: coded[:-8] + bytes(4) + coded[-4:])
    ),
    "sends a coding that nobody knows": _says(_file("Content-Encoding: snappy")),
    "sends empty members of gzip for ever": _says(
        _CODED, _endless(gzip.compress(b"") * 800)
    ),
    "redirects to a closed port": _redirect(lambda v: v.places["closed"]),
    "sends gzip that becomes 64 MiB": _says(_gzipped(lambda coded: coded + _BOMB)),
    "sends a body for ever": _says(
        lambda v: _head("200 OK") + v.rules, _endless(b"#" * _PIECE)
    ),
    "announces a terabyte, and starts to send it": _says(
        lambda v: _head("200 OK", f"Content-Length: {2**40}") + v.rules,
        _endless(b"#" * _PIECE),
    ),
    "answers 500 with a page that says not found": _says(
        _sized("500 Internal Server Error", content=_NOT_FOUND)
    ),
    "redirects in a loop": _redirect(_there_and_back),
    "redirects on and on": _redirect(_one_further),
    "redirects to another scheme": _redirect(lambda _: "mailto:hello@example.com"),
    "redirects to an address inside": _redirect(lambda v: v.places["inside"]),
    "redirects to a name of an address inside": _redirect(
        lambda v: v.places["inside"].replace(_INSIDE, "localhost")
    ),
    "redirects to a service of the cloud": _redirect(
        lambda _: "http://169.254.169.254/latest/meta-data/"
    ),
}
"""How an origin answers, for each kind but `REFUSES`."""


# --- the process ----------------------------------------------------------------

_SCRIPT = {"seed": int, "origins": int, "faults": float}


class _Door:
    """The port of one origin, which is its own even while it is closed."""

    def __init__(self, host: str, answer: Callable[..., Awaitable[None]]) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        self._socket = _bound(host, 0)
        self._address: tuple[str, int] = self._socket.getsockname()
        self.url = "http://{}:{}".format(*self._address)

    async def open(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(
                self._answer, sock=self._socket, backlog=_BACKLOG
            )

    def close(self) -> None:
        """Refuse connections from now on, and let nobody else take the port."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._socket = _bound(*self._address)


def _bound(host: str, port: int) -> socket.socket:
    door = socket.socket()
    door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    door.bind((host, port))
    return door


class _Town:
    """All origins, and the places beside them."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._round = 0
        self._knocks = 0
        self._doors = [
            _Door(_host(number), partial(self._serve, number))
            for number in range(script.origins)
        ]
        self._elsewhere = _Door(_host(-1), partial(self._serve, None))
        self._inside = _Door(_INSIDE, self._knocked)
        self._closed = _Door(_host(-1), self._knocked)
        self._places = {
            "elsewhere": self._elsewhere.url,
            "inside": f"{self._inside.url}/robots.txt",
            "closed": f"{self._closed.url}/robots.txt",
        }

    async def live(self) -> None:
        """Do as the standard input says, until it ends."""
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
        )
        await self._elsewhere.open()
        await self._inside.open()
        _say(origins=[door.url for door in self._doors])
        while line := await lines.readline():
            self._round = int(line)
            for number, door in enumerate(self._doors):
                if self._script.kind(number, self._round) == REFUSES:
                    door.close()
                else:
                    await door.open()
            _say(knocks=self._knocks)

    async def _serve(
        self,
        number: int | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Answer the one request of a connection."""
        try:
            # OSError, EOFError: the client has left.
            with suppress(OSError, EOFError, TimeoutError):
                async with asyncio.timeout(_LONGEST_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    target = head.split(b" ", 2)[1].decode()
                    await self._answer(number, target, reader, writer)
        finally:
            writer.close()

    async def _answer(
        self,
        number: int | None,
        target: str,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        kind = "sends a file"
        if number is None:
            number = int(target[1:])
        else:
            kind = self._script.kind(number, self._round)
        visit = _Visit(
            target=target,
            rules=body(number, self._round),
            origin=number,
            places=self._places,
            reader=reader,
            writer=writer,
        )
        # Who was given up on before a door was closed may still come in.
        await ANSWERS.get(kind, _end)(visit)

    async def _knocked(
        self, _: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._knocks += 1
        writer.close()


def _host(number: int) -> str:
    return f"127.1.0.{number % _HOSTS + 1}"


def _say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def _raise_limit(files: int) -> None:
    """Let the process have so many open files, if the system does."""
    import resource  # noqa: PLC0415 (there is none on Windows)

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < files:
        most = files if hard == resource.RLIM_INFINITY else min(files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m benchmarks._soak_servers")
    for name, kind in _SCRIPT.items():
        arguments.add_argument(f"--{name}", type=kind, required=True)
    script = Script(**vars(arguments.parse_args()))
    _raise_limit(script.origins + _SPARE_FILES)
    asyncio.run(_Town(script).live())


if __name__ == "__main__":
    _main()
