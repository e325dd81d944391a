"""One GET over its own connection: h11 over sockets, on asyncio and trio.

A GET is a series of steps: connect, TLS handshake (for https), send, and read to the
end. All state is in `Exchange`, so a GET can be interrupted between any two steps and
resumed. All steps share a cancel scope, because scopes are slow to create; each wait
moves the scope's deadline. A scope whose deadline has passed is cancelled permanently,
even if the bytes had arrived and the event loop was just too busy to see them. The
steps then continue in a new scope:

    scope ends in time ── over ────────────────────────────▶ the response
          │ its deadline has passed
          ├─ the deadline of the fetch ────────────────────▶ TimeoutError
          ├─ while waiting for something ──────────────────▶ ConnectTimeout, ReadTimeout
          └─ between two steps, or the bytes are available ▶ a new scope
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, cast

import anyio
import anyio.lowlevel
import h11
from anyio.streams.tls import TLSStream

from robotsgate.fetching._body import (
    ERROR_PAGE_SECONDS,
    PIECES_BETWEEN_CHECKPOINTS,
    Body,
)
from robotsgate.fetching._dialling import TooManyBytesError, connect_to_any
from robotsgate.fetching._fetcher import FetchedResponse, as_pairs

if TYPE_CHECKING:
    import ssl
    from collections.abc import Awaitable, Sequence

    from anyio.abc import ByteStream

    from robotsgate.fetching._dialling import Connect, Resolve, SocketStream
    from robotsgate.fetching._fetcher import OwnFetch
    from robotsgate.urls._address_class import IPAddress

# Everything in a response except its body: the header section, informational responses,
# chunk framing, trailers, and one read that has not been parsed yet. Other clients
# limit the header section to between 16 KiB (Node.js) and 100 KiB (httpx). Framing adds
# half the length of a chunk that contains a single line.
_MOST_BYTES_BESIDE_THE_BODY = 64 * 1024

# TLS overhead: a handshake takes 2 to 20 KiB, and each record 22 bytes or more. Session
# tickets of 20 bytes take 10 microseconds each.
_MOST_BYTES_OF_TLS = 64 * 1024

# As in httpcore. The limit for everything except the body is reached first.
_LONGEST_HEAD = 100 * 1024

_TOO_MANY_BYTES = "the response is too large, apart from its body"

_BROKEN = (
    OSError,
    anyio.BrokenResourceError,
    anyio.ClosedResourceError,
    anyio.EndOfStream,
)


class ConnectTimeout(TimeoutError):  # noqa: N818 (shown in verdicts; httpx's name)
    """The connection could not be made in time."""


class ReadTimeout(TimeoutError):  # noqa: N818 (shown in verdicts; httpx's name)
    """No bytes were received in time."""


class ConnectError(Exception):
    """The connection failed."""


class ReadError(Exception):
    """The connection was lost."""


class Exchange:
    """One GET: its connection, and the response so far."""

    _scope: anyio.CancelScope
    _addresses: Awaitable[Sequence[IPAddress]]

    def __init__(
        self,
        fetch: OwnFetch,
        request: h11.Request,
        *,
        max_bytes: int,
        ssl_context: ssl.SSLContext | None,
        resolve: Resolve,
        connect: Connect,
    ) -> None:
        self._fetch = fetch
        self._ends_at = fetch.deadline
        self._max_bytes = max_bytes
        self._ssl_context = ssl_context
        self._resolve = resolve
        self._connect = connect
        self._h11 = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
        self._request = self._h11.send(request) + self._h11.send(h11.EndOfMessage())
        self._socket: SocketStream | None = None
        self._stream: ByteStream | None = None
        self._is_sent = False
        self._bytes = 0
        self._pieces = 0
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._body: Body | None = None
        self._is_over = False

    async def response(self) -> FetchedResponse:
        """Return the response, with as much of its body as needed."""
        # Outside the scope: no timeout of the origin includes the wait for a thread.
        self._addresses = await self._resolve(self._fetch)
        try:
            while not self._is_over:
                with anyio.CancelScope() as self._scope:
                    while not self._is_over:
                        await self._next_step()
                        if self._scope.cancel_called:
                            break
                if self._scope.cancelled_caught:
                    self._check_time()
        except Exception:
            # If an error page cannot be read, its status is enough.
            if self._body is None or not self._body.is_error_page:
                raise
            self._body.discard()
        return FetchedResponse(
            status=self._status,
            headers=self._headers,
            body=b"" if self._body is None else bytes(self._body),
            is_decoded=True,
        )

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()

    async def _next_step(self) -> None:
        try:
            if self._socket is None:
                await self._dial()
            elif self._stream is None:
                await self._shake_hands(self._socket)
            elif not self._is_sent:
                await self._send(self._stream)
            else:
                await self._read(self._socket, self._stream)
        except TooManyBytesError as error:
            raise h11.RemoteProtocolError(_TOO_MANY_BYTES) from error
        except TimeoutError as error:  # from the operating system
            late = ReadTimeout if self._is_sent else ConnectTimeout
            raise late(str(error)) from error
        except (*_BROKEN, UnicodeError) as error:
            broken = ReadError if self._is_sent else ConnectError
            raise broken(str(error)) from error

    def _begin_wait(self, seconds: float) -> None:
        self._scope.deadline = min(anyio.current_time() + seconds, self._ends_at)

    def _check_time(self) -> None:
        """Raise unless the steps may continue after their scope's deadline."""
        if self._scope.deadline >= self._ends_at:
            raise TimeoutError
        if self._socket is None or not self._is_sent:
            raise ConnectTimeout
        if not self._socket.has_bytes():
            raise ReadTimeout

    async def _dial(self) -> None:
        self._begin_wait(self._fetch.policy.connect_timeout)
        host, port = self._fetch.dialled_host, self._fetch.origin.port
        addresses = self._fetch.guard.permit(host, await self._addresses)
        self._socket = await connect_to_any(addresses, port, self._connect)
        if self._ssl_context is None:
            self._stream = self._socket

    async def _shake_hands(self, socket: SocketStream) -> None:
        assert self._ssl_context is not None  # noqa: S101 (checked in `_dial`)
        self._begin_wait(self._fetch.policy.connect_timeout)
        socket.bytes_left = _MOST_BYTES_OF_TLS
        self._ssl_context.set_alpn_protocols(["http/1.1"])
        self._stream = await TLSStream.wrap(
            socket,
            hostname=self._fetch.dialled_host,
            ssl_context=self._ssl_context,
            standard_compatible=False,
            server_side=False,
        )

    async def _send(self, stream: ByteStream) -> None:
        self._is_sent = True
        # Some servers refuse a request without reading it. Their response is still
        # used.
        with suppress(*_BROKEN):
            await stream.send(self._request)

    async def _read(self, socket: SocketStream, stream: ByteStream) -> None:
        self._begin_wait(self._fetch.policy.read_timeout)
        data = b""
        with suppress(anyio.EndOfStream):
            data = await stream.receive()
        self._count(len(data), socket)
        if not data and self._h11.their_state is h11.SEND_RESPONSE:
            raise h11.RemoteProtocolError(
                "Server disconnected without sending a response."
            )
        self._h11.receive_data(data)
        while not self._is_over:
            event = self._h11.next_event()
            if event is h11.NEED_DATA:
                return
            if isinstance(event, h11.Response | h11.InformationalResponse):
                self._take_head(event)
            else:
                await self._take(event, cast("Body", self._body))  # after its head

    def _count(self, count: int, socket: SocketStream) -> None:
        """Limit everything except the body; otherwise, headers could go on forever."""
        # Each byte of data permits one more byte of TLS overhead: half of a record with
        # a single line is framing.
        socket.bytes_left += 2 * count
        self._bytes += count
        of_body = 0 if self._body is None else self._body.raw_bytes
        if self._bytes > _MOST_BYTES_BESIDE_THE_BODY + 1.5 * of_body:
            raise TooManyBytesError

    def _take_head(self, event: h11.Response | h11.InformationalResponse) -> None:
        if not event.http_version.startswith(b"1."):  # h11 accepts every version
            raise h11.RemoteProtocolError(
                f"expected HTTP/1.1 or HTTP/1.0, got {event.http_version!r}"
            )
        if isinstance(event, h11.InformationalResponse) and event.status_code != 101:  # noqa: PLR2004
            return
        self._status = event.status_code
        self._headers = as_pairs(event.headers.raw_items())
        self._body = Body(self._status, self._headers, max_bytes=self._max_bytes)
        self._is_over = self._body.is_over
        if self._body.is_error_page and not self._is_over:
            now = anyio.current_time()
            seconds = min(ERROR_PAGE_SECONDS, (self._ends_at - now) / 2)
            self._ends_at = now + seconds

    async def _take(self, event: object, body: Body) -> None:
        if not isinstance(event, h11.Data):  # its end
            body.finish()
            self._is_over = True
            return
        body.feed(event.data)
        self._is_over = body.is_over
        self._pieces += 1
        if self._pieces % PIECES_BETWEEN_CHECKPOINTS == 0:
            await anyio.lowlevel.cancel_shielded_checkpoint()
