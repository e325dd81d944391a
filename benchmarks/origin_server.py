"""Serves a small robots.txt on many loopback ports: each port is an origin.

    python -m benchmarks.origin_server COUNT

Prints the ports as a JSON list in one line, and serves until its input ends. In a
process of its own, so that what it costs is not counted to who asks.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import cast

__all__ = ["main"]

_BODY = b"""\
User-agent: *
Disallow: /admin/
Disallow: /cart
Disallow: /checkout
Disallow: /login
Disallow: /search?q=
Disallow: /tmp/
Disallow: /*.pdf$
Allow: /tmp/public/

User-agent: OtherBot
Disallow: /

Sitemap: https://www.example.com/sitemap.xml
"""
_RESPONSE = (
    b"HTTP/1.1 200 OK\r\n"
    b"Date: Sat, 21 Nov 2026 08:00:00 GMT\r\n"
    b"Server: loopback\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n"
    b"Cache-Control: max-age=86400\r\n"
    b"Content-Length: " + str(len(_BODY)).encode() + b"\r\n"
    b"\r\n" + _BODY
)
_BACKLOG = 16


class _Answerer(asyncio.Protocol):
    """Gives the one response to each request; keeps the connection, as HTTP/1.1."""

    def __init__(self) -> None:
        self._transport: asyncio.WriteTransport | None = None
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember whom to answer."""
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer each head that is complete."""
        self._received += data
        *heads, self._received = self._received.split(b"\r\n\r\n")
        if self._transport is not None:
            for _ in heads:
                self._transport.write(_RESPONSE)


async def _serve(count: int) -> None:
    loop = asyncio.get_running_loop()
    servers = [
        await loop.create_server(_Answerer, "127.0.0.1", 0, backlog=_BACKLOG)
        for _ in range(count)
    ]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    print(json.dumps(ports), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    for server in servers:
        server.close()


def main() -> None:
    """Serve as many ports as the command line says."""
    asyncio.run(_serve(int(sys.argv[1])))


if __name__ == "__main__":
    main()
