"""The servers of a soak test, run in a separate process; each origin has a script.

    python -m tests.soak.servers --seed 0 --origins 2000 --faults 0.2

Prints JSON lines: first the URLs of all origins; then, for each round number read from
standard input, a line when the round may begin. Exits at the end of its input.
Everything is derived from a seed, so the servers and the judge need not communicate.
Each origin listens at an address in 127.1.0.0/16, which Linux needs no setup for.
"""

from __future__ import annotations

import argparse
import asyncio
import enum
import gzip
import json
import resource
import socket
import struct
import subprocess
import sys
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping

NETWORK = "127.1.0.0/16"
"""The network of the origins; all other local addresses are internal."""

_INSIDE = "127.0.0.1"
_HOSTS = 250
_BACKLOG = 512
_SPARE_FILES = 1_000
_DRIP_SECONDS = 0.05
_MAX_SECONDS = 60.0
_PIECE = 16_384
_OUTAGE_ROUNDS = (1, 2, 6)


class Outcome(enum.Enum):
    """The result of a fetch."""

    RULES = "the file"
    NO_FILE = "no file"
    REFUSAL = "refused"
    NOTHING = "unreachable, without a status"
    ERROR = "unreachable, with a status"
    MISSING_PAGE = "no file; unreachable if there was one before"


class Script(NamedTuple):
    """What each origin does in each round."""

    seed: int
    origins: int
    faults: float

    def kind(self, origin: int, round_: int) -> str:
        """What `origin` does in a round: a key of `SOUND` or `FAULTS`."""
        # The origins move around a circle at different speeds, and are faulty within a
        # window as wide as the share of faults.
        rng = Random(f"outages {self.seed} {origin}")
        position = rng.random()
        step = self.faults / rng.choice(_OUTAGE_ROUNDS)
        is_faulty = (position + round_ * step) % 1 < self.faults
        kinds = FAULTS if is_faulty else SOUND
        return Random(f"kind {self.seed} {origin} {round_}").choice([*kinds])


def groups(origin: int, edition: int) -> dict[str, dict[str, bool]]:
    """Whether paths with a prefix are allowed, for each group of an origin.

    The prefixes are unique to the origin and the edition.
    """
    mark = f"{origin}-{edition}"
    return {
        "*": {f"/all-{mark}/": False, f"/all-{mark}/open/": True},
        "SoakBot": {f"/own-{mark}/": False, f"/own-{mark}/open/": True},
    }


def _body(origin: int, edition: int) -> bytes:
    lines = []
    for group, rules in groups(origin, edition).items():
        lines.append(f"User-agent: {group}")
        for prefix, is_allowed in rules.items():
            lines.append(f"{'Allow' if is_allowed else 'Disallow'}: {prefix}")
    return "\n".join([*lines, ""]).encode()


class Servers:
    """The process that runs all servers; see `running_servers`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Wait until the process listens."""
        self._process = process
        self.origins: list[str] = self._next_line()["origins"]

    def begin(self, round_: int) -> int:
        """Begin a round.

        Returns:
            How many connections the internal address has received so far.
        """
        print(round_, file=self._process.stdin, flush=True)
        breaches: int = self._next_line()["breaches"]
        return breaches

    def _next_line(self) -> dict[str, Any]:
        line = next(iter(self._process.stdout or ()), "")
        if not line:
            raise RuntimeError("the soak servers have ended; see above")
        message: dict[str, Any] = json.loads(line)
        return message


@contextmanager
def running_servers(script: Script) -> Iterator[Servers]:
    """Run the servers until the end of the block."""
    options = [f"--{name}={value}" for name, value in script._asdict().items()]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.soak.servers", *options],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Servers(process)
        # Leaving the block closes its input, which ends the process.


# --- answers --------------------------------------------------------------------


class _Request(NamedTuple):
    """A request, and what is needed to answer it.

    Attributes:
        origin: the number of the origin.
        target: the request target.
        rules: the origin's robots.txt in this round.
        urls: the URLs of other listeners and of a closed port, by name.
        reader: what the client sends after the request.
        writer: sends to the client.
    """

    origin: int
    target: str
    rules: bytes
    urls: Mapping[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


_Action = "Callable[[_Request], Awaitable[None]]"
_Text = "bytes | Callable[[_Request], bytes]"


async def _end(_: _Request) -> None:
    """Do nothing; the caller closes the connection."""


async def _hang(request: _Request) -> None:
    while await request.reader.read(_PIECE):
        pass


async def _reset(request: _Request) -> None:
    await request.writer.drain()
    accepted = request.writer.get_extra_info("socket")
    accepted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    request.writer.transport.abort()


def _endless(piece: bytes, *, pause: float = 0.0) -> _Action:
    async def send(request: _Request) -> None:
        while not request.writer.is_closing():
            request.writer.write(piece)
            await request.writer.drain()
            await asyncio.sleep(pause)

    return send


def _head(status: str, *lines: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def _with_length(status: str, *lines: str, content: bytes = b"") -> bytes:
    """A complete response with a Content-Length."""
    return _head(status, *lines, f"Content-Length: {len(content)}") + content


def _file(*lines: str) -> Callable[[_Request], bytes]:
    """The robots.txt, with additional header lines."""
    return lambda request: _with_length("200 OK", *lines, content=request.rules)


def _without_length(*lines: str) -> Callable[[_Request], bytes]:
    return lambda request: _head("200 OK", *lines) + request.rules


def _truncated(request: _Request) -> bytes:
    return _file()(request)[:-9]


def _chunked(content: bytes) -> bytes:
    half = len(content) // 2
    pieces = (content[:half], content[half:])
    coded = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"".join([*coded, b"0\r\n\r\n"])


def _chunks(*lines: str, until: int | None = None, coded: bool = False) -> _Text:
    def text(request: _Request) -> bytes:
        content = gzip.compress(request.rules) if coded else request.rules
        return _head("200 OK", _CHUNKED, *lines) + _chunked(content)[:until]

    return text


def _gzipped(change: Callable[[bytes], bytes] = bytes) -> Callable[[_Request], bytes]:
    """The robots.txt as gzip, altered by `change`."""
    return lambda request: _with_length(
        "200 OK", _GZIP, content=change(gzip.compress(request.rules))
    )


def _redirect(location: Callable[[_Request], str]) -> Callable[[_Request], bytes]:
    return lambda request: _with_length("302 Found", f"Location: {location(request)}")


def _redirect_within(request: _Request) -> bytes:
    if request.target == "/robots.txt":
        return _redirect(lambda _: "/moved.txt")(request)
    return _file()(request)


def _internal_name(request: _Request) -> str:
    return request.urls["inside"].replace(_INSIDE, "localhost")


def _back_and_forth(request: _Request) -> str:
    return "/there" if request.target == "/robots.txt" else "/robots.txt"


def _next_number(request: _Request) -> str:
    return f"/{int(request.target[1:]) + 1}" if request.target[1:].isdigit() else "/1"


_BOMB = gzip.compress(b"#" * 2**20) * 64  # 64 KiB: one long comment
_CHUNKED = "Transfer-Encoding: chunked"
_GZIP = "Content-Encoding: gzip"
_NOT_FOUND = b"<html><title>404 Not Found</title></html>"
_HINTS = _head("103 Early Hints", "Link: </style.css>; rel=preload")
_BEGUN = b"HTTP/1.1 200 OK\r\nX: "
_HASHES = _endless(b"#" * _PIECE)
_500 = "500 Internal Server Error"


class Kind(NamedTuple):
    """What an origin sends, what it does next, and the result of a fetch."""

    outcome: Outcome
    text: _Text = b""
    then: _Action = _end


_RULES, _NO_FILE, _REFUSAL, _NOTHING, _ERROR, _MISSING_PAGE = Outcome

REFUSES = "refuses the connection"
"""The only kind that accepts no connection."""

# fmt: off
SOUND: Mapping[str, Kind] = {
    "sends a file": Kind(_RULES, _file()),
    "sends a file and keeps the connection": Kind(_RULES, _file(), _hang),
    "sends a file without a length": Kind(_RULES, _without_length()),
    "sends chunks": Kind(_RULES, _chunks(), _hang),
    "sends gzip": Kind(_RULES, _gzipped()),
    "sends gzip in chunks": Kind(_RULES, _chunks(_GZIP, coded=True)),
    "sends early hints first": Kind(_RULES, lambda v: _HINTS * 3 + _file()(v)),
    "sends `max-age=60`": Kind(_RULES, _file("Cache-Control: max-age=60")),
    "sends `max-age=600` with an age of 300": Kind(
        _RULES, _file("Cache-Control: max-age=600", "Age: 300")),
    "sends `no-store`": Kind(_RULES, _file("Cache-Control: no-store")),
    "sends a `max-age` of a year": Kind(
        _RULES, _file("Cache-Control: max-age=31536000")),
    "redirects within itself": Kind(_RULES, _redirect_within),
    "redirects to another origin": Kind(
        _RULES, _redirect(lambda v: f"{v.urls['elsewhere']}/{v.origin}")),
    "returns 404": Kind(_NO_FILE, _with_length("404 Not Found", content=_NOT_FOUND)),
    "returns 410 with `max-age=60`": Kind(
        _NO_FILE, _with_length("410 Gone", "Cache-Control: max-age=60")),
    "returns 403": Kind(_NO_FILE, _with_length("403 Forbidden")),
}
"""What sound origins do."""

FAULTS: Mapping[str, Kind] = {
    REFUSES: Kind(_NOTHING),
    "closes instead of responding": Kind(_NOTHING),
    "resets instead of responding": Kind(_NOTHING, b"", _reset),
    "accepts but never responds": Kind(_NOTHING, b"", _hang),
    "stops in the middle of the head": Kind(_NOTHING, _BEGUN, _hang),
    "stops in the middle of the body": Kind(_NOTHING, _truncated, _hang),
    "sends its head byte by byte": Kind(
        _NOTHING, _BEGUN, _endless(b"x", pause=_DRIP_SECONDS)),
    "sends its body byte by byte": Kind(
        _NOTHING, _without_length(), _endless(b"#", pause=_DRIP_SECONDS)),
    "repeats `100 Continue` slowly": Kind(
        _NOTHING, b"", _endless(_head("100 Continue"), pause=_DRIP_SECONDS)),
    "resets in the middle of the head": Kind(_NOTHING, _BEGUN, _reset),
    "resets in the middle of the body": Kind(_NOTHING, _truncated, _reset),
    "announces more than it sends": Kind(_NOTHING, _truncated),
    "announces a negative length": Kind(
        _NOTHING, _without_length("Content-Length: -1")),
    "sends a broken chunk": Kind(
        _NOTHING, lambda v: _head("200 OK", _CHUNKED) + b"9\r\n" + v.rules, _hang),
    "closes before the last chunk": Kind(_NOTHING, _chunks(until=-5)),
    "sends chunks of one byte forever": Kind(
        _NOTHING, _chunks(until=-5), _endless(b"1\r\n#\r\n" * 999)),
    "sends header lines forever": Kind(
        _NOTHING, b"HTTP/1.1 200 OK\r\n", _endless(b"X-Header: x\r\n" * 999)),
    "sends `103 Early Hints` forever": Kind(_NOTHING, b"", _endless(_HINTS * 64)),
    "sends zeros forever": Kind(_NOTHING, b"", _endless(bytes(_PIECE))),
    "sends an SSH banner": Kind(_NOTHING, b"SSH-2.0-OpenSSH_9.9\r\n"),
    "sends the file without a head": Kind(_NOTHING, lambda v: v.rules),
    "returns 429": Kind(_NOTHING, _with_length("429 Too Many Requests")),
    "returns 429 with `Retry-After`": Kind(
        _NOTHING, _with_length("429 Too Many Requests", "Retry-After: 86400")),
    "returns 500": Kind(_ERROR, _with_length(_500, content=b"Oops")),
    "returns 503": Kind(_ERROR, _with_length("503 Service Unavailable")),
    "returns 503 with `Retry-After`": Kind(
        _ERROR, _with_length("503 Service Unavailable", "Retry-After: 120")),
    "returns 999": Kind(_ERROR, lambda v: _with_length("999 No", content=v.rules)),
    "sends truncated gzip": Kind(
        _NOTHING, _gzipped(lambda zipped: zipped[:-12])),
    "sends gzip with a wrong checksum": Kind(
        _NOTHING, _gzipped(lambda coded: coded[:-8] + bytes(4) + coded[-4:])),
    "sends an unknown coding": Kind(
        _NOTHING, _file("Content-Encoding: snappy")),
    "sends empty gzip members forever": Kind(
        _NOTHING, _head("200 OK", _GZIP), _endless(gzip.compress(b"") * 800)),
    "redirects to a closed port": Kind(
        _NOTHING, _redirect(lambda v: v.urls["closed"])),
    "sends gzip that decompresses to 64 MiB": Kind(
        _RULES, _gzipped(lambda coded: coded + _BOMB)),
    "sends an endless body": Kind(_RULES, _without_length(), _HASHES),
    "announces a terabyte, and starts to send it": Kind(
        _RULES, _without_length(f"Content-Length: {2**40}"), _HASHES),
    "returns 500 with a page that says not found": Kind(
        _MISSING_PAGE, _with_length(_500, content=_NOT_FOUND)),
    "redirects in a loop": Kind(_NO_FILE, _redirect(_back_and_forth)),
    "redirects to a new path each time": Kind(_NO_FILE, _redirect(_next_number)),
    "redirects to another scheme": Kind(
        _ERROR, _redirect(lambda _: "mailto:hello@example.com")),
    "redirects to an internal address": Kind(
        _REFUSAL, _redirect(lambda v: v.urls["inside"])),
    "redirects to a name that resolves to an internal address": Kind(
        _REFUSAL, _redirect(_internal_name)),
    "redirects to a cloud metadata service": Kind(
        _REFUSAL, _redirect(lambda _: "http://169.254.169.254/latest/meta-data/")),
}
"""What faulty origins do."""
# fmt: on

KINDS: Mapping[str, Kind] = {**SOUND, **FAULTS}


# --- the process ----------------------------------------------------------------


class _Listener:
    """The listener of one origin, which keeps its port even while it is closed."""

    def __init__(self, number: int, answer: Callable[..., Awaitable[None]]) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        host = _INSIDE if number < 0 else f"127.1.0.{number % _HOSTS + 1}"
        self._socket = _bound_socket(host, 0)
        self._address: tuple[str, int] = self._socket.getsockname()
        self.url = "http://{}:{}".format(*self._address)

    async def open(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(
                self._answer, sock=self._socket, backlog=_BACKLOG
            )

    def close(self) -> None:
        """Refuse connections, but keep the port."""
        if self._server is not None:
            self._server.close()
            self._server = None
            self._socket = _bound_socket(*self._address)


def _bound_socket(host: str, port: int) -> socket.socket:
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    return listener


class _Origins:
    """All origins, and the other listeners."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._round = 0
        self._breaches = 0
        count = script.origins
        self._listeners = [
            _Listener(number, partial(self._serve, number)) for number in range(count)
        ]
        self._elsewhere = _Listener(count, partial(self._serve, None))
        self._inside = _Listener(-1, self._count_breach)
        closed = _Listener(count + 1, self._count_breach)
        self._urls = {
            "elsewhere": self._elsewhere.url,
            "inside": f"{self._inside.url}/robots.txt",
            "closed": f"{closed.url}/robots.txt",
        }
        self._closed = closed  # keeps its port

    async def run(self) -> None:
        """Serve the rounds read from standard input, until it ends."""
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
        )
        await self._elsewhere.open()
        await self._inside.open()
        print(
            json.dumps({"origins": [listener.url for listener in self._listeners]}),
            flush=True,
        )
        while line := await lines.readline():
            self._round = int(line)
            for number, listener in enumerate(self._listeners):
                if self._script.kind(number, self._round) == REFUSES:
                    listener.close()
                else:
                    await listener.open()
            print(json.dumps({"breaches": self._breaches}), flush=True)

    async def _serve(
        self,
        number: int | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Answer one request; if `number` is `None`, the path gives the origin."""
        try:
            # OSError, EOFError: the client has disconnected.
            with suppress(OSError, EOFError, TimeoutError):
                async with asyncio.timeout(_MAX_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    target = head.split(b" ", 2)[1].decode()
                    origin = int(target[1:]) if number is None else number
                    kind = SOUND["sends a file"]
                    if number is not None:
                        kind = KINDS[self._script.kind(number, self._round)]
                    rules = _body(origin, self._round)
                    request = _Request(
                        origin, target, rules, self._urls, reader, writer
                    )
                    text = kind.text
                    writer.write(text if isinstance(text, bytes) else text(request))
                    await kind.then(request)
        finally:
            writer.close()

    async def _count_breach(
        self, _: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._breaches += 1
        writer.close()


def _raise_limit(files: int) -> None:
    """Raise the limit on open files, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < files:
        limit = files if hard == resource.RLIM_INFINITY else min(files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


def _main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tests.soak.servers")
    for name, kind in (("seed", int), ("origins", int), ("faults", float)):
        arguments.add_argument(f"--{name}", type=kind, required=True)
    script = Script(**vars(arguments.parse_args()))
    _raise_limit(script.origins + _SPARE_FILES)
    asyncio.run(_Origins(script).run())


if __name__ == "__main__":
    _main()
