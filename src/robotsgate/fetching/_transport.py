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

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator

__all__ = ["OneRequestTransport"]

# Closing a socket needs no answer of the peer; this only bounds a broken one.
_CLOSE_SECONDS = 2.0

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

    def __init__(self, *, ssl_context: ssl.SSLContext | None = None) -> None:
        """Prepare; nothing is opened.

        Args:
            ssl_context: for https; `None`: httpx's own, which is made once, when
                the first https origin is fetched, and obeys SSL_CERT_FILE and
                SSL_CERT_DIR.
        """
        self._ssl_context = ssl_context
        self._making_context: anyio.Lock | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`; the response's stream must be closed by the caller.

        Raises:
            httpx.TransportError: the network or the server failed.
        """
        url = httpcore.URL(
            scheme=request.url.raw_scheme,
            host=request.url.raw_host,
            port=request.url.port,
            target=request.url.raw_path,
        )
        backend = _RememberingBackend()
        connection = httpcore.AsyncHTTPConnection(
            origin=url.origin,
            ssl_context=await self._context_for(request.url.scheme),
            network_backend=backend,
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
            await backend.aclose()
            raise
        return httpx.Response(
            status_code=response.status,
            headers=response.headers,
            stream=_Stream(cast("AsyncIterable[bytes]", response.stream), backend),
        )

    async def _context_for(self, scheme: str) -> ssl.SSLContext | None:
        if scheme == "https" and self._ssl_context is None:
            await self._make_context()
        return self._ssl_context

    async def _make_context(self) -> None:
        if self._making_context is None:
            self._making_context = anyio.Lock()
        async with self._making_context:
            # In a thread, because reading all roots takes a tenth of a second.
            self._ssl_context = self._ssl_context or await anyio.to_thread.run_sync(
                httpx.create_ssl_context
            )


class _RememberingBackend(httpcore.AnyIOBackend):
    """Dials, and remembers the socket, so that it is closed whatever happens.

    httpcore forgets a socket that is cancelled in its TLS handshake.
    """

    def __init__(self) -> None:
        self._stream: httpcore.AsyncNetworkStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the name is httpcore's)
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        self._stream = await super().connect_tcp(
            host, port, timeout, local_address, socket_options
        )
        return self._stream

    async def aclose(self) -> None:
        if self._stream is not None:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await self._stream.aclose()


class _Stream(httpx.AsyncByteStream):
    """The raw body; closing it closes the connection."""

    def __init__(
        self, stream: AsyncIterable[bytes], backend: _RememberingBackend
    ) -> None:
        self._stream = stream
        self._backend = backend

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _httpx_errors():
            async for chunk in self._stream:
                yield chunk

    async def aclose(self) -> None:
        await self._backend.aclose()


@contextmanager
def _httpx_errors() -> Iterator[None]:
    """Raise what httpcore raises as the httpx exception that stands for it."""
    try:
        yield
    except tuple(_ERRORS) as error:
        raise _ERRORS[type(error)](str(error)) from error
