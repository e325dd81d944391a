"""Serves a robots.txt on COUNT loopback ports, and prints the ports as JSON.

    python -m benchmarks.origin_server COUNT BYTES FRAMING [AUTHORITY]

FRAMING is plain or chunked. AUTHORITY is for https: the certificate of a new authority,
which has certified localhost, is written to this file. Exits at the end of its input.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from importlib import import_module
from typing import cast

_COUNT, _SIZE, _FRAMING, *_AUTHORITY = sys.argv[1:]
_RULES = "".join(f"Disallow: /section-{number}/private/\n" for number in range(10_000))
_END = "\n\nUser-agent: OtherBot\nDisallow: /\n"
_BODY = (f"User-agent: *\n{_RULES}"[: int(_SIZE) - len(_END)] + _END).encode()
_FRAMED = {
    "plain": b"Content-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY),
    "chunked": b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n"
    % (len(_BODY), _BODY),
}
_RESPONSE = (
    b"HTTP/1.1 200 OK\r\n"
    b"Date: Sat, 21 Nov 2026 08:00:00 GMT\r\n"
    b"Server: loopback\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\n"
    b"Cache-Control: max-age=86400\r\n"
    b"%b" % _FRAMED[_FRAMING]
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


async def _serve(context: ssl.SSLContext | None) -> None:
    loop = asyncio.get_running_loop()
    ports = []
    for _ in range(int(_COUNT)):
        server = await loop.create_server(
            _Responder, "127.0.0.1", 0, backlog=16, ssl=context
        )
        ports.append(server.sockets[0].getsockname()[1])
    print(json.dumps(ports), flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def _context() -> ssl.SSLContext:
    """A context for localhost, and its authority for the clients."""
    authority = import_module("trustme").CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(_AUTHORITY[0])
    return context


if __name__ == "__main__":
    asyncio.run(_serve(_context() if _AUTHORITY else None))
