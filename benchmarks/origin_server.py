"""Serves a robots.txt at COUNT loopback addresses and prints their URLs as JSON.

    python -m benchmarks.origin_server COUNT RULES

Exits at the end of its input. Needs Linux, which accepts all of 127.0.0.0/8.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import cast

_NUMBERS = range(int(sys.argv[2]))
_RULES = "".join(f"Disallow: /section-{number}/private/\n" for number in _NUMBERS)
_BODY = f"User-agent: *\n{_RULES}\nUser-agent: OtherBot\nDisallow: /\n".encode()
_RESPONSE = (
    b"HTTP/1.1 200 OK\r\n"
    b"Date: Sat, 21 Nov 2026 08:00:00 GMT\r\n"
    b"Server: loopback\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n"
    b"Cache-Control: max-age=86400\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)
)


class _Responder(asyncio.Protocol):
    """Sends the same response to every request, and keeps the connection open."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the transport."""
        self._transport = cast("asyncio.WriteTransport", transport)
        self._received = b""

    def data_received(self, data: bytes) -> None:
        """Respond to every complete head."""
        self._received += data
        *heads, self._received = self._received.split(b"\r\n\r\n")
        self._transport.write(_RESPONSE * len(heads))


async def _serve(count: int) -> None:
    loop = asyncio.get_running_loop()
    origins = []
    for number in range(count):
        host = f"127.1.{number // 250}.{number % 250 + 1}"
        server = await loop.create_server(_Responder, host, 0, backlog=16)
        origins.append("http://{}:{}".format(*server.sockets[0].getsockname()))
    print(json.dumps(origins), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(int(sys.argv[1])))
