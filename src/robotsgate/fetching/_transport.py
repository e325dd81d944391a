"""An httpx transport that opens one connection for each request.

robots.txt is one request per origin, so a pool has nothing to keep; and httpx's
pool loses slots for ever when requests that wait for one are cancelled
(encode/httpcore#1093). HTTP/2 is off: it has nothing to offer one request.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import anyio
import anyio.to_thread
import httpcore
import httpx

from robotsgate.fetching._dialling import CLOSE_SECONDS, GuardedBackend, resolved

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator

    from robotsgate.fetching._address_guard import FetchGuard
    from robotsgate.fetching._dialling import Resolve

GUARD_EXTENSION = "robotsgate.guard"
"""The extension of a request that holds the guard of its fetch."""

# The longest head that other clients take is 16 KiB (Node.js) to 100 KiB (httpx).
# What is parsed at once holds the event loop meanwhile: some fiftieth of a second for
# 16,000 lines of three octets.
_MOST_BYTES_OF_HEAD = 48 * 1024
_MOST_BYTES_AT_ONCE = 16 * 1024

_ERRORS: dict[type[Exception], type[httpx.TransportError]] = {
    httpcore.ConnectTimeout: httpx.ConnectTimeout,
    httpcore.ReadTimeout: httpx.ReadTimeout,
    httpcore.WriteTimeout: httpx.WriteTimeout,
    httpcore.ConnectError: httpx.ConnectError,
    httpcore.ReadError: httpx.ReadError,
    httpcore.WriteError: httpx.WriteError,
    httpcore.LocalProtocolError: httpx.LocalProtocolError,
    httpcore.RemoteProtocolError: httpx.RemoteProtocolError,
    httpcore.UnsupportedProtocol: httpx.UnsupportedProtocol,
}


class OneRequestTransport(httpx.AsyncBaseTransport):
    """Sends each request over a connection of its own, on asyncio and trio.

    Ignores the proxies of the environment; who needs one hands the checker a
    client that has it.
    """

    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext | None = None,
        max_bytes: int = 8 * 2**20,
        resolve: Resolve = resolved,
        network: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        """Prepare; nothing is opened.

        Args:
            ssl_context: for https; `None`: httpx's own, which is made once, when
                the first https origin is fetched, and obeys SSL_CERT_FILE and
                SSL_CERT_DIR.
            max_bytes: of a response, with all that frames it on the wire, > 0.
            resolve: finds the addresses of a host; the system's way by default.
            network: opens connections to literal addresses; `None`: anyio's.
        """
        self._ssl_context = ssl_context
        self._making_context: anyio.Lock | None = None
        self._max_bytes = max_bytes
        self._resolve = resolve
        self._network = network or httpcore.AnyIOBackend()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`; the response's stream must be closed by the caller.

        The request's extension `GUARD_EXTENSION` is the `FetchGuard` that says
        which addresses may be dialled.

        Raises:
            httpx.TransportError: the network or the server failed.
        """
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        guard: FetchGuard = request.extensions[GUARD_EXTENSION]
        line = _Line(
            GuardedBackend(guard, resolve=self._resolve, network=self._network)
        )
        connection = httpcore.AsyncHTTPConnection(
            origin=url.origin,
            ssl_context=await self._context_for(request.url.scheme),
            network_backend=line,
        )
        try:
            with _httpx_errors():
                response = await connection.handle_async_request(
                    httpcore.Request(
                        method=request.method,
                        url=url,
                        headers=request.headers.raw,
                        extensions=request.extensions,
                    )
                )
        except BaseException:  # a cancellation must not leave a socket open either
            await line.aclose()
            raise
        line.allow(self._max_bytes)
        return httpx.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Stream(cast("AsyncIterable[bytes]", response.stream), line),
        )

    async def _context_for(self, scheme: str) -> ssl.SSLContext | None:
        """What https needs; `None` for http."""
        if scheme != "https":
            return None
        return self._ssl_context or await self._make_context()

    async def _make_context(self) -> ssl.SSLContext:
        if self._making_context is None:
            self._making_context = anyio.Lock()
        async with self._making_context:
            # In a thread, because reading all roots takes a tenth of a second.
            if self._ssl_context is None:
                try:
                    self._ssl_context = await anyio.to_thread.run_sync(
                        httpx.create_ssl_context
                    )
                except OSError as error:  # nothing that an origin could help
                    message = f"expected certificate authorities: {error}"
                    raise RuntimeError(message) from error
            return self._ssl_context


class _Line(httpcore.AsyncNetworkBackend):
    """Dials one connection, and remembers it, so that it is closed whatever happens.

    httpcore forgets a socket that is cancelled in its TLS handshake.
    """

    def __init__(self, dialler: GuardedBackend) -> None:
        self._dialler = dialler
        self._stream: _MeteredStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the name is httpcore's)
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        stream = await self._dialler.connect_tcp(
            host, port, timeout, local_address, socket_options
        )
        self._stream = _MeteredStream(stream, max_bytes=_MOST_BYTES_OF_HEAD)
        return self._stream

    def allow(self, max_bytes: int) -> None:
        """From now on let `max_bytes` more come."""
        if self._stream is not None:  # a mock may have answered instead
            self._stream.bytes_left = max_bytes

    async def aclose(self) -> None:
        if self._stream is not None:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._stream.aclose()


class _MeteredStream(httpcore.AsyncNetworkStream):
    """Gives no more octets than are allowed, whatever they are there for.

    Informational responses, the extensions of chunks and trailers may go on for
    ever without adding anything to a head or a body.
    """

    def __init__(self, stream: httpcore.AsyncNetworkStream, *, max_bytes: int) -> None:
        self._stream = stream
        self.bytes_left = max_bytes

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (the name is httpcore's)
        octets = await self._stream.read(min(max_bytes, _MOST_BYTES_AT_ONCE), timeout)
        self.bytes_left -= len(octets)
        if self.bytes_left < 0:
            raise httpcore.RemoteProtocolError("more octets than any answer needs")
        return octets

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 (the name is httpcore's)
        await self._stream.write(buffer, timeout)

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (the name is httpcore's)
    ) -> httpcore.AsyncNetworkStream:
        self._stream = await self._stream.start_tls(
            ssl_context, server_hostname, timeout
        )
        return self

    async def aclose(self) -> None:
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> object:
        return self._stream.get_extra_info(info)


class _Stream(httpx.AsyncByteStream):
    """The raw body; closing it closes the connection."""

    def __init__(self, stream: AsyncIterable[bytes], line: _Line) -> None:
        self._stream = stream
        self._line = line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors():
            async for chunk in self._stream:
                yield chunk

    async def aclose(self) -> None:
        await self._line.aclose()


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Raise what httpcore raises as the httpx exception that stands for it."""
    try:
        yield
    except tuple(_ERRORS) as error:
        raise _ERRORS[type(error)](str(error)) from error
