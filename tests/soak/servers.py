"""The servers of a soak, in a process of their own: each origin plays its script.

    python -m tests.soak.servers --seed 0 --origins 2000 --faults 0.2

Talks JSON, one line for each thing: it says where it listens; then it is told which
round it is and says when the round may begin; it ends when its input does. All is
drawn from a seed, so that the servers and the checker's judge agree without a word.
Each origin listens at an address of 127.1.0.0/16, which Linux has without being told.
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
"""Where origins are; all else of this machine is inside."""

_INSIDE = "127.0.0.1"
_HOSTS = 250
_BACKLOG = 512
_SPARE_FILES = 1_000
_DRIP_SECONDS = 0.05
_LONGEST_SECONDS = 60.0
_PIECE = 16_384
_ROUNDS_OF_AN_OUTAGE = (1, 2, 6)


class Comes(enum.Enum):
    """What a fetch comes to."""

    RULES = "the file"
    NO_FILE = "no file"
    REFUSAL = "refused"
    NOTHING = "unreachable, without a status"
    ERROR = "unreachable, with a status"
    MISSING_PAGE = "no file; unreachable where there was a file"


class Script(NamedTuple):
    """What origins do."""

    seed: int
    origins: int
    faults: float

    def kind(self, origin: int, round_: int) -> str:
        """What `origin` does in a round: a key of `SOUND` or of `FAULTS`."""
        # The origins stand on a circle that turns, some of them faster than others,
        # below a window that is as wide as the share.
        chance = Random(f"outages {self.seed} {origin}")
        place = chance.random()
        step = self.faults / chance.choice(_ROUNDS_OF_AN_OUTAGE)
        is_unwell = (place + round_ * step) % 1 < self.faults
        kinds = FAULTS if is_unwell else SOUND
        return Random(f"kind {self.seed} {origin} {round_}").choice([*kinds])


def groups(origin: int, edition: int) -> dict[str, dict[str, bool]]:
    """Whether what begins with a prefix is allowed, for each group of an origin.

    Another one for each round; no other origin has the same paths.
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
    """The process with all servers, as `running_servers` gives it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Wait until it listens."""
        self._process = process
        self.origins: list[str] = self._next_line()["origins"]

    def begin(self, round_: int) -> int:
        """Let all origins do what they do in a round.

        Returns:
            How many connections came to the address inside until now.
        """
        print(round_, file=self._process.stdin, flush=True)
        knocks: int = self._next_line()["knocks"]
        return knocks

    def _next_line(self) -> dict[str, Any]:
        line = next(iter(self._process.stdout or ()), "")
        if not line:
            raise RuntimeError("the servers of the soak have ended, see above")
        said: dict[str, Any] = json.loads(line)
        return said


@contextmanager
def running_servers(script: Script) -> Iterator[Servers]:
    """A process that serves until the end of the block."""
    words = [f"--{name}={value}" for name, value in script._asdict().items()]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.soak.servers", *words],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Servers(process)
        # Leaving closes its input, which ends it.


# --- answers --------------------------------------------------------------------


class _Visit(NamedTuple):
    """A request, and what it takes to answer.

    Attributes:
        origin: the number of the one that was asked.
        target: of the request line.
        rules: the robots.txt of the origin in this round.
        places: where else something listens, or does not: URLs by name.
        reader: what the client says after the request.
        writer: what it hears.
    """

    origin: int
    target: str
    rules: bytes
    places: Mapping[str, str]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


_Act = "Callable[[_Visit], Awaitable[None]]"
_Text = "bytes | Callable[[_Visit], bytes]"


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


def _endless(piece: bytes, *, pause: float = 0.0) -> _Act:
    async def send(visit: _Visit) -> None:
        while not visit.writer.is_closing():
            visit.writer.write(piece)
            await visit.writer.drain()
            await asyncio.sleep(pause)

    return send


def _head(status: str, *lines: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def _sized(status: str, *lines: str, content: bytes = b"") -> bytes:
    """A whole answer that says how long it is."""
    return _head(status, *lines, f"Content-Length: {len(content)}") + content


def _file(*lines: str) -> Callable[[_Visit], bytes]:
    """The robots.txt, below header lines."""
    return lambda visit: _sized("200 OK", *lines, content=visit.rules)


def _without_length(*lines: str) -> Callable[[_Visit], bytes]:
    return lambda visit: _head("200 OK", *lines) + visit.rules


def _cut(visit: _Visit) -> bytes:
    return _file()(visit)[:-9]


def _chunked(content: bytes) -> bytes:
    half = len(content) // 2
    pieces = (content[:half], content[half:])
    coded = (b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return b"".join([*coded, b"0\r\n\r\n"])


def _chunks(*lines: str, until: int | None = None, coded: bool = False) -> _Text:
    def text(visit: _Visit) -> bytes:
        content = gzip.compress(visit.rules) if coded else visit.rules
        return _head("200 OK", _CHUNKED, *lines) + _chunked(content)[:until]

    return text


def _gzipped(change: Callable[[bytes], bytes] = bytes) -> Callable[[_Visit], bytes]:
    """The robots.txt as gzip, with something done to that."""
    return lambda visit: _sized(
        "200 OK", _GZIP, content=change(gzip.compress(visit.rules))
    )


def _redirect(location: Callable[[_Visit], str]) -> Callable[[_Visit], bytes]:
    return lambda visit: _sized("302 Found", f"Location: {location(visit)}")


def _redirect_within(visit: _Visit) -> bytes:
    if visit.target == "/robots.txt":
        return _redirect(lambda _: "/moved.txt")(visit)
    return _file()(visit)


def _to_name_inside(visit: _Visit) -> str:
    return visit.places["inside"].replace(_INSIDE, "localhost")


def _there_and_back(visit: _Visit) -> str:
    return "/there" if visit.target == "/robots.txt" else "/robots.txt"


def _one_further(visit: _Visit) -> str:
    return f"/{int(visit.target[1:]) + 1}" if visit.target[1:].isdigit() else "/1"


_BOMB = gzip.compress(b"#" * 2**20) * 64  # 64 KiB, all of them one comment
_CHUNKED = "Transfer-Encoding: chunked"
_GZIP = "Content-Encoding: gzip"
_NOT_FOUND = b"<html><title>404 Not Found</title></html>"
_HINTS = _head("103 Early Hints", "Link: </style.css>; rel=preload")
_BEGUN = b"HTTP/1.1 200 OK\r\nX: "
_HASHES = _endless(b"#" * _PIECE)
_500 = "500 Internal Server Error"


class Kind(NamedTuple):
    """What an origin says, what it does then, and what a fetch of that comes to."""

    comes: Comes
    text: _Text = b""
    then: _Act = _end


_RULES, _NO_FILE, _REFUSAL, _NOTHING, _ERROR, _MISSING_PAGE = Comes

REFUSES = "refuses the connection"
"""The kind of origin that has no answer."""

# fmt: off
SOUND: Mapping[str, Kind] = {
    "sends a file": Kind(_RULES, _file()),
    "sends a file and keeps the connection": Kind(_RULES, _file(), _hang),
    "sends a file without a length": Kind(_RULES, _without_length()),
    "sends chunks": Kind(_RULES, _chunks(), _hang),
    "sends gzip": Kind(_RULES, _gzipped()),
    "sends gzip in chunks": Kind(_RULES, _chunks(_GZIP, coded=True)),
    "sends early hints first": Kind(_RULES, lambda v: _HINTS * 3 + _file()(v)),
    "says `max-age=60`": Kind(_RULES, _file("Cache-Control: max-age=60")),
    "says `max-age=600`, with an age of 300": Kind(
        _RULES, _file("Cache-Control: max-age=600", "Age: 300")),
    "says `no-store`": Kind(_RULES, _file("Cache-Control: no-store")),
    "says `max-age` of a year": Kind(_RULES, _file("Cache-Control: max-age=31536000")),
    "redirects within itself": Kind(_RULES, _redirect_within),
    "redirects to another origin": Kind(
        _RULES, _redirect(lambda v: f"{v.places['elsewhere']}/{v.origin}")),
    "answers 404": Kind(_NO_FILE, _sized("404 Not Found", content=_NOT_FOUND)),
    "answers 410, with `max-age=60`": Kind(
        _NO_FILE, _sized("410 Gone", "Cache-Control: max-age=60")),
    "answers 403": Kind(_NO_FILE, _sized("403 Forbidden")),
}
"""How origins answer that are well."""

FAULTS: Mapping[str, Kind] = {
    REFUSES: Kind(_NOTHING),
    "closes where the answer should come": Kind(_NOTHING),
    "resets where the answer should come": Kind(_NOTHING, b"", _reset),
    "says nothing": Kind(_NOTHING, b"", _hang),
    "falls silent within the head": Kind(_NOTHING, _BEGUN, _hang),
    "falls silent within the body": Kind(_NOTHING, _cut, _hang),
    "drips its head": Kind(_NOTHING, _BEGUN, _endless(b"x", pause=_DRIP_SECONDS)),
    "drips its body": Kind(
        _NOTHING, _without_length(), _endless(b"#", pause=_DRIP_SECONDS)),
    "drips `100 Continue`": Kind(
        _NOTHING, b"", _endless(_head("100 Continue"), pause=_DRIP_SECONDS)),
    "resets within the head": Kind(_NOTHING, _BEGUN, _reset),
    "resets within the body": Kind(_NOTHING, _cut, _reset),
    "announces more than it sends": Kind(_NOTHING, _cut),
    "announces a negative length": Kind(
        _NOTHING, _without_length("Content-Length: -1")),
    "sends a broken chunk": Kind(
        _NOTHING, lambda v: _head("200 OK", _CHUNKED) + b"9\r\n" + v.rules, _hang),
    "closes before the last chunk": Kind(_NOTHING, _chunks(until=-5)),
    "sends chunks of one byte, for ever": Kind(
        _NOTHING, _chunks(until=-5), _endless(b"1\r\n#\r\n" * 999)),
    "sends header lines for ever": Kind(
        _NOTHING, b"HTTP/1.1 200 OK\r\n", _endless(b"X-Header: x\r\n" * 999)),
    "sends `103 Early Hints` for ever": Kind(_NOTHING, b"", _endless(_HINTS * 64)),
    "sends zeros for ever": Kind(_NOTHING, b"", _endless(bytes(_PIECE))),
    "greets as SSH does": Kind(_NOTHING, b"SSH-2.0-OpenSSH_9.9\r\n"),
    "sends the file without any head": Kind(_NOTHING, lambda v: v.rules),
    "answers 429": Kind(_NOTHING, _sized("429 Too Many Requests")),
    "answers 429, with `Retry-After`": Kind(
        _NOTHING, _sized("429 Too Many Requests", "Retry-After: 86400")),
    "answers 500": Kind(_ERROR, _sized(_500, content=b"Oops")),
    "answers 503": Kind(_ERROR, _sized("503 Service Unavailable")),
    "answers 503, with `Retry-After`": Kind(
        _ERROR, _sized("503 Service Unavailable", "Retry-After: 120")),
    "answers 999": Kind(_ERROR, lambda v: _sized("999 No", content=v.rules)),
    "sends gzip that ends too early": Kind(
        _NOTHING, _gzipped(lambda zipped: zipped[:-12])),
    "sends gzip with a wrong checksum": Kind(
        _NOTHING, _gzipped(lambda coded: coded[:-8] + bytes(4) + coded[-4:])),
    "sends a coding that nobody knows": Kind(
        _NOTHING, _file("Content-Encoding: snappy")),
    "sends empty members of gzip for ever": Kind(
        _NOTHING, _head("200 OK", _GZIP), _endless(gzip.compress(b"") * 800)),
    "redirects to a closed port": Kind(
        _NOTHING, _redirect(lambda v: v.places["closed"])),
    "sends gzip that becomes 64 MiB": Kind(
        _RULES, _gzipped(lambda coded: coded + _BOMB)),
    "sends a body for ever": Kind(_RULES, _without_length(), _HASHES),
    "announces a terabyte, and starts to send it": Kind(
        _RULES, _without_length(f"Content-Length: {2**40}"), _HASHES),
    "answers 500 with a page that says not found": Kind(
        _MISSING_PAGE, _sized(_500, content=_NOT_FOUND)),
    "redirects in a loop": Kind(_NO_FILE, _redirect(_there_and_back)),
    "redirects on and on": Kind(_NO_FILE, _redirect(_one_further)),
    "redirects to another scheme": Kind(
        _ERROR, _redirect(lambda _: "mailto:hello@example.com")),
    "redirects to an address inside": Kind(
        _REFUSAL, _redirect(lambda v: v.places["inside"])),
    "redirects to a name of an address inside": Kind(
        _REFUSAL, _redirect(_to_name_inside)),
    "redirects to a service of the cloud": Kind(
        _REFUSAL, _redirect(lambda _: "http://169.254.169.254/latest/meta-data/")),
}
"""How origins answer that are not well."""
# fmt: on

KINDS: Mapping[str, Kind] = {**SOUND, **FAULTS}


# --- the process ----------------------------------------------------------------


class _Door:
    """The port of one origin, which is its own even while it is closed."""

    def __init__(self, number: int, answer: Callable[..., Awaitable[None]]) -> None:
        self._answer = answer
        self._server: asyncio.Server | None = None
        host = _INSIDE if number < 0 else f"127.1.0.{number % _HOSTS + 1}"
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
    """All origins, and the places near them."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._round = 0
        self._knocks = 0
        count = script.origins
        self._doors = [
            _Door(number, partial(self._serve, number)) for number in range(count)
        ]
        self._elsewhere = _Door(count, partial(self._serve, None))
        self._inside = _Door(-1, self._knocked)
        closed = _Door(count + 1, self._knocked)
        self._places = {
            "elsewhere": self._elsewhere.url,
            "inside": f"{self._inside.url}/robots.txt",
            "closed": f"{closed.url}/robots.txt",
        }
        self._closed = closed  # its port stays its own

    async def live(self) -> None:
        """Do as the standard input says, until it ends."""
        lines = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(lines), sys.stdin
        )
        await self._elsewhere.open()
        await self._inside.open()
        print(json.dumps({"origins": [door.url for door in self._doors]}), flush=True)
        while line := await lines.readline():
            self._round = int(line)
            for number, door in enumerate(self._doors):
                if self._script.kind(number, self._round) == REFUSES:
                    door.close()
                else:
                    await door.open()
            print(json.dumps({"knocks": self._knocks}), flush=True)

    async def _serve(
        self,
        number: int | None,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        """Answer the one request of a connection; elsewhere, the number is the path."""
        try:
            # OSError, EOFError: the client has left.
            with suppress(OSError, EOFError, TimeoutError):
                async with asyncio.timeout(_LONGEST_SECONDS):
                    head = await reader.readuntil(b"\r\n\r\n")
                    target = head.split(b" ", 2)[1].decode()
                    origin = int(target[1:]) if number is None else number
                    kind = SOUND["sends a file"]
                    if number is not None:
                        kind = KINDS[self._script.kind(number, self._round)]
                    rules = _body(origin, self._round)
                    visit = _Visit(origin, target, rules, self._places, reader, writer)
                    text = kind.text
                    writer.write(text if isinstance(text, bytes) else text(visit))
                    await kind.then(visit)
        finally:
            writer.close()

    async def _knocked(
        self, _: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._knocks += 1
        writer.close()


def _raise_limit(files: int) -> None:
    """Let the process have so many open files, if the system does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < files:
        most = files if hard == resource.RLIM_INFINITY else min(files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _main() -> None:
    arguments = argparse.ArgumentParser(prog="python -m tests.soak.servers")
    for name, kind in (("seed", int), ("origins", int), ("faults", float)):
        arguments.add_argument(f"--{name}", type=kind, required=True)
    script = Script(**vars(arguments.parse_args()))
    _raise_limit(script.origins + _SPARE_FILES)
    asyncio.run(_Town(script).live())


if __name__ == "__main__":
    _main()
