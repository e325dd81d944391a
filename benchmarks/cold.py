"""Measures lookups for unknown origins: connect, GET, parse, answer.

Measures processor time over real sockets, compared with other clients and protego. Bare
sockets show the minimum: no deadlines, no limits, and nobody checks the framing.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import ssl
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import anyio
import httpx

from benchmarks.page import Bar, Table
from benchmarks.timing import best_of_turns, seconds_of_each
from benchmarks.workload import AGENT
from robotsgate import RobotsChecker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    from benchmarks.workload import Workload

    _Answer = Callable[[str, str], bool]
    _Lookup = Callable[[str], Awaitable[bool]]
    _Opener = Callable[[], AbstractAsyncContextManager[_Lookup]]
    _Send = Callable[[bytes], Awaitable[None]]
    _Receive = Callable[[], Awaitable[bytes]]

_AT_ONCE = 50
_ORIGINS, _ORIGINS_WHEN_QUICK = 250, 60
_PAGE = "/news/article-17.html"
_ENDS_OF_RESPONSES = (b"\nDisallow: /\n", b"\r\n0\r\n\r\n")

_OURS, _AIOHTTP = "RobotsChecker", "aiohttp + protego"
_MOST_TIMES_OF_AIOHTTP = {1_438: 1.0, 500: 1.1}  # by the size of the file

_LOOPS: dict[str, dict[str, Any]] = {  # the arguments of `anyio.run`, by module
    "asyncio": {"backend": "asyncio"},
    "uvloop": {"backend": "asyncio", "backend_options": {"use_uvloop": True}},
    "trio": {"backend": "trio"},
}


_KINDS = {  # all of a URL but the port, and the framing of responses
    "http": ("http://127.0.0.1", "plain"),
    "chunked": ("http://127.0.0.1", "chunked"),
    "by name": ("http://localhost", "plain"),
    "https": ("https://localhost", "plain"),
}

_NOTES = (
    "Processor time per lookup: connect, GET, parse, match.",
    "By name and https: localhost, with the system's resolver.",
    "The server is another process; the time includes a new client or checker.",
)


def measure(work: Workload) -> list[Table | Bar]:
    """Look up all origins on each loop, with a new checker or client each time."""
    loops = filter(find_spec, _LOOPS)
    return [figure for loop in loops for figure in _measure(work, loop)]


def _measure(work: Workload, loop: str) -> Iterator[Table | Bar]:
    count = _ORIGINS_WHEN_QUICK if work.is_quick else _ORIGINS
    best = {}
    rows: dict[str, list[list[str | float]]] = {"": [], ", one at a time": []}
    for name, kind in _KINDS.items():
        for size, bar in _MOST_TIMES_OF_AIOHTTP.items():
            with loopback_origins(count, size, *kind) as origins:
                turns = {
                    peer: partial(_turn, opener, origins)
                    for peer, opener in _openers(loop)
                }
                run = partial(best_of_turns, turns, repeats=work.repeats)
                best = anyio.run(run, **_LOOPS[loop])
            label = f"{name}, {size:,} bytes"
            ours = best.pop(_OURS)
            for index, table in enumerate(rows.values()):
                ratios = [ours[index] / theirs[index] for theirs in best.values()]
                table.append([label, ours[index] / count * 1e6, *ratios])
            if _AIOHTTP in best:
                yield Bar(
                    what=f"cold on {loop}: {label}, processor time of {_AIOHTTP}",
                    value=max(map(float.__truediv__, ours, best[_AIOHTTP])),
                    bar=1.05 if name == "https" else bar,
                )
    for which, table in rows.items():
        yield Table(
            name=f"cold on {loop}{which}",
            columns=("robots.txt", "µs", *(f"× of {peer}" for peer in best)),
            rows=table,
            notes=_NOTES,
        )


async def _turn(opener: _Opener, origins: list[str]) -> list[float]:
    """Processor seconds for all `origins`: many at once, and one at a time."""
    works = [_look_up_all(opener, origins, at_once) for at_once in (_AT_ONCE, 1)]
    return await seconds_of_each(works, clock=process_time)


async def _look_up_all(opener: _Opener, origins: list[str], at_once: int) -> None:
    remaining = iter(origins)

    async def work() -> None:
        for origin in remaining:
            if not await look_up(origin):
                raise RuntimeError(f"expected the page of {origin} to be allowed")

    async with opener() as look_up, anyio.create_task_group() as tasks:
        for _ in range(at_once):
            tasks.start_soon(work)


@contextmanager
def loopback_origins(
    count: int,
    size: int = 1_438,
    site: str = "http://127.0.0.1",
    framing: str = "plain",
) -> Iterator[list[str]]:
    """Serve `count` origins, with files of `size` bytes, until the end of the block."""
    program = [sys.executable, "-m", "benchmarks.origin_server"]
    program += [str(count), str(size), framing]
    with TemporaryDirectory() as folder:
        authority = f"{folder}/authority.pem"
        program += [authority] * site.startswith("https")
        with (
            patch.dict(os.environ, SSL_CERT_FILE=authority),
            subprocess.Popen(
                program,
                cwd=Path(__file__).parents[1],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            ) as server,
        ):
            if server.stdout is None:
                raise RuntimeError("expected a pipe from the server")
            yield [f"{site}:{port}" for port in json.loads(server.stdout.readline())]
            # Leaving the block closes the server's input, which ends it.


def _openers(loop: str) -> Iterator[tuple[str, _Opener]]:
    """The installed contenders, with a function that opens each."""
    yield _OURS, _checker
    with suppress(ImportError):
        parse = import_module("protego").Protego.parse

        def answer(text: str, origin: str) -> bool:
            return bool(parse(text).can_fetch(origin + _PAGE, AGENT))

        yield "httpx + protego", partial(_httpx, answer)
        if loop != "trio":
            yield "bare sockets + protego", partial(_sockets, answer)
            yield _AIOHTTP, partial(_aiohttp, import_module("aiohttp"), answer)


@asynccontextmanager
async def _checker() -> AsyncIterator[_Lookup]:
    async with RobotsChecker(user_agent=AGENT) as checker:
        yield lambda origin: checker.can_fetch(AGENT, origin + _PAGE)


def _context() -> ssl.SSLContext:
    """A client's own context, which trusts the same authority as the checker's."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with suppress(FileNotFoundError):  # plain HTTP
        context.load_verify_locations(os.environ["SSL_CERT_FILE"])
    return context


@asynccontextmanager
async def _httpx(answer: _Answer) -> AsyncIterator[_Lookup]:
    async with httpx.AsyncClient(verify=_context(), trust_env=False) as client:

        async def look_up(origin: str) -> bool:
            response = await client.get(f"{origin}/robots.txt")
            return answer(response.text, origin)

        yield look_up


@asynccontextmanager
async def _aiohttp(aiohttp: Any, answer: _Answer) -> AsyncIterator[_Lookup]:  # noqa: ANN401 (imported only if it is installed)
    connector = aiohttp.TCPConnector(ssl=_context())
    async with aiohttp.ClientSession(connector=connector) as session:

        async def look_up(origin: str) -> bool:
            async with session.get(f"{origin}/robots.txt") as response:
                return answer(await response.text(), origin)

        yield look_up


@asynccontextmanager
async def _sockets(answer: _Answer) -> AsyncIterator[_Lookup]:
    loop, context = asyncio.get_running_loop(), _context()

    async def look_up(origin: str) -> bool:
        scheme, host, port = re.split("://|:", origin)
        request = f"GET /robots.txt HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
        with socket.socket() as connection:
            connection.setblocking(False)  # noqa: FBT003 (positional only)
            await loop.sock_connect(connection, (host, int(port)))
            send = partial(loop.sock_sendall, connection)
            receive = partial(loop.sock_recv, connection, 65_536)
            if scheme == "https":
                send, receive = await _over_tls(context, host, send, receive)
            await send(request)
            data = b""
            while not data.endswith(_ENDS_OF_RESPONSES):
                data += await receive()
        return answer(data.decode().partition("\r\n\r\n")[2], origin)

    yield look_up


async def _over_tls(
    context: ssl.SSLContext, host: str, send: _Send, receive: _Receive
) -> tuple[_Send, _Receive]:
    """Shake hands, and return what sends and receives over TLS."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname=host)

    async def result(step: Callable[[], Any]) -> Any:  # noqa: ANN401 (of any step)
        while True:
            with suppress(ssl.SSLWantReadError):
                return step()
            if outgoing.pending:
                await send(outgoing.read())
            incoming.write(await receive())

    async def send_encrypted(data: bytes) -> None:
        tls.write(data)
        await send(outgoing.read())

    await result(tls.do_handshake)
    return send_encrypted, partial(result, partial(tls.read, 65_536))
