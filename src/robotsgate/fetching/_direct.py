"""Sends each GET over a connection of its own, with httpcore.

robots.txt is one request per origin, so a pool has nothing to keep. And the pool of
httpcore loses slots for ever when requests that wait for one are cancelled
(encode/httpcore#1093). HTTP/2 is off, because it does not help a single request.
The GET goes through `httpcore.AsyncHTTPConnection`, where respx looks for requests.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import anyio
import anyio.to_thread
import httpcore
from anyio.streams.tls import TLSStream

from robotsgate.fetching._body import Chunks, bytes_worth_reading, read_worthwhile
from robotsgate.fetching._dialling import connect_to_any, resolve
from robotsgate.fetching._fetcher import FetchedResponse
from robotsgate.fetching._headers import as_pairs
from robotsgate.fetching._sockets import TooManyBytesError, connect
from robotsgate.robotstxt._headers import header_values

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterable, Iterable, Iterator, Sequence

    from anyio.abc import ByteStream

    from robotsgate.caching._policy import Policy
    from robotsgate.fetching._address_guard import FetchGuard
    from robotsgate.fetching._dialling import Connect, Resolve
    from robotsgate.fetching._hop import Hop
    from robotsgate.fetching._sockets import SocketStream

# All of a response but its body: the head, informational responses, the framing of
# chunks, trailers, and one read that is not parsed yet. The longest head that other
# clients take is 16 KiB (Node.js) to 100 KiB (httpx). A chunk of one line may add half
# of its length.
_MOST_BYTES_BESIDE_THE_BODY = 64 * 1024

# What TLS may add: a handshake takes 2 to 20 KiB, each record 22 bytes or more. Session
# tickets of 20 bytes take ten microseconds each.
_MOST_BYTES_OF_TLS = 64 * 1024

_TOO_MANY_BYTES = "more bytes than any answer needs"

_BROKEN = (
    OSError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
)


class DirectExchange:
    """Sends each GET over a connection of its own, on asyncio and trio.

    Ignores the proxies of the environment; a caller that needs a proxy gives the
    checker a client.
    """

    is_blind = False

    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext | None = None,
        resolve: Resolve = resolve,
        connect: Connect = connect,
    ) -> None:
        """Prepare; nothing is opened.

        Args:
            ssl_context: for https; `None`: httpx's own, which is made once, when
                the first https origin is fetched, and obeys SSL_CERT_FILE and
                SSL_CERT_DIR.
            resolve: finds the addresses of a host; the system's way by default.
            connect: opens connections to literal addresses.
        """
        self._ssl_context = ssl_context
        self._making_context = anyio.Lock()
        self._resolve = resolve
        self._connect = connect

    async def get(self, hop: Hop) -> FetchedResponse:
        """As `Exchange.get`.

        Raises:
            httpcore.NetworkError: or another exception of httpcore: the network or
                the server failed.
        """
        line = _Line(hop.guard, self._resolve, self._connect)
        try:
            response = await self._send(hop, line)
            headers = as_pairs(response.headers)
            body = b""
            if bytes_worth_reading(response.status, hop.policy):
                body = await self._body(response, headers, line, hop.policy)
        finally:  # a cancellation, too, must not leave a socket open
            line.close()
        return FetchedResponse(
            status=response.status, headers=headers, body=body, is_decoded=True
        )

    async def _send(self, hop: Hop, line: _Line) -> httpcore.Response:
        scheme = hop.origin.scheme
        url = httpcore.URL(
            scheme=scheme.encode(),
            host=hop.origin.host.strip("[]").encode(),
            port=hop.origin.port,
            target=hop.target.encode(),
        )
        timeouts = {
            "connect": hop.policy.connect_timeout,
            "read": hop.policy.read_timeout,
        }
        connection = httpcore.AsyncHTTPConnection(
            origin=url.origin,
            ssl_context=await self._context() if scheme == "https" else None,
            network_backend=line,
        )
        return await connection.handle_async_request(
            httpcore.Request(
                method="GET",
                url=url,
                headers=[("Host", hop.host), *hop.headers],
                extensions={"timeout": timeouts},
            )
        )

    async def _body(
        self,
        response: httpcore.Response,
        headers: Sequence[tuple[str, str]],
        line: _Line,
        policy: Policy,
    ) -> bytes:
        coding = ", ".join(header_values(headers, "content-encoding"))
        chunks = Chunks(cast("AsyncIterable[bytes]", response.stream))
        line.body = chunks
        try:
            return await read_worthwhile(response.status, chunks, coding, policy)
        finally:
            line.close()
            await chunks.drain()

    async def _context(self) -> ssl.SSLContext:
        async with self._making_context:
            # In a thread, because to read all root certificates takes 0.1 s.
            if self._ssl_context is None:
                from httpx import create_ssl_context  # noqa: PLC0415 (for https only)

                try:
                    self._ssl_context = await anyio.to_thread.run_sync(
                        create_ssl_context
                    )
                except OSError as error:  # which is not the fault of an origin
                    raise RuntimeError(
                        f"expected certificate authorities: {error}"
                    ) from error
            return self._ssl_context


class _Line(httpcore.AsyncNetworkBackend, httpcore.AsyncNetworkStream):
    """The connection of one GET: dials for httpcore, which then reads and writes it.

    Remembers its socket, because httpcore forgets one whose TLS handshake is cancelled.
    Limits the bytes that are not part of the body, because they could go on for ever:
    informational responses, the extensions of chunks, trailers, and the messages of
    TLS.

    Attributes:
        body: that of the response; `None` until it is read.
    """

    def __init__(self, guard: FetchGuard, resolve: Resolve, connect: Connect) -> None:
        self._guard = guard
        self._resolve = resolve
        self._connect = connect
        self._socket: SocketStream | None = None
        self._stream: ByteStream | None = None
        self._bytes = 0
        self.body: Chunks | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the name is httpcore's)
        local_address: str | None = None,  # noqa: ARG002 (never given)
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,  # noqa: ARG002 (never given)
    ) -> httpcore.AsyncNetworkStream:
        with _httpcore_errors(), anyio.fail_after(timeout):
            addresses = self._guard.permit(host, await self._resolve(host, port))
            self._socket = await connect_to_any(addresses, port, self._connect)
        return self

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 (the name is httpcore's)
    ) -> httpcore.AsyncNetworkStream:
        dialled, _ = self._socket_and_stream()
        dialled.bytes_left = _MOST_BYTES_OF_TLS
        with _httpcore_errors(), anyio.fail_after(timeout):
            self._stream = await TLSStream.wrap(
                dialled,
                hostname=server_hostname,
                ssl_context=ssl_context,
                standard_compatible=False,
                server_side=False,
            )
        return self

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 (the name is httpcore's)
        dialled, stream = self._socket_and_stream()
        try:
            with anyio.fail_after(timeout):
                data = await stream.receive(max_bytes)
        except anyio.EndOfStream:
            return b""
        except TimeoutError as error:
            raise httpcore.ReadTimeout from error
        except TooManyBytesError as error:
            raise httpcore.RemoteProtocolError(_TOO_MANY_BYTES) from error
        except _BROKEN as error:
            raise httpcore.ReadError(str(error)) from error
        # Each byte of data allows for one more of TLS: half of a record that holds one
        # line is framing.
        dialled.bytes_left += 2 * len(data)
        self._bytes += len(data)
        of_body = 0 if self.body is None else self.body.bytes
        if self._bytes > _MOST_BYTES_BESIDE_THE_BODY + 1.5 * of_body:
            raise httpcore.RemoteProtocolError(_TOO_MANY_BYTES)
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002, ASYNC109 (only the deadline ends it)
        try:
            _, stream = self._socket_and_stream()
            await stream.send(buffer)
        except _BROKEN as error:
            raise httpcore.WriteError(str(error)) from error

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()

    def get_extra_info(self, info: str) -> None:
        """Nothing: httpcore asks only whether the connection is HTTP/2."""

    def _socket_and_stream(self) -> tuple[SocketStream, ByteStream]:
        """The socket, and the stream to read and write: that socket, or TLS over it."""
        assert self._socket is not None  # noqa: S101 (httpcore dials first)
        return self._socket, self._stream or self._socket


@contextmanager
def _httpcore_errors() -> Iterator[None]:
    """Turn errors before the request into those that httpcore raises."""
    try:
        yield
    except TimeoutError as error:
        raise httpcore.ConnectTimeout(str(error)) from error
    except TooManyBytesError as error:
        raise httpcore.RemoteProtocolError(_TOO_MANY_BYTES) from error
    except (*_BROKEN, UnicodeError) as error:
        raise httpcore.ConnectError(str(error)) from error
