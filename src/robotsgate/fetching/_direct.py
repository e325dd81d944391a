"""The default fetcher: each GET opens its own connection, on asyncio and trio.

Each origin needs only one request, so a pool or HTTP/2 would not help. A host is
resolved once, the guard checks its addresses, and the connection is made to one of
them, so nobody can change the address between the check and the connection (DNS
rebinding). The socket is non-blocking. A usual response is read by `plain_response`,
and anything unusual by h11, from the same bytes.

A GET is one method after another in `Exchange`:

    dial ──► shake hands (https) ──► send ──► read … ──► the response
      │          └─ each wait for bytes has a timer, because cancel scopes are slow
      └─ in a cancel scope

After a deadline, `receive` reads once more, because bytes may have arrived while the
event loop was busy.
"""

from __future__ import annotations

import math
import os
import re
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import anyio
import anyio.lowlevel
import h11

from robotsgate._flights import asyncio_loop
from robotsgate.caching._hops import USED_HEADERS
from robotsgate.caching._outcome import FailureKind
from robotsgate.fetching._body import (
    ERROR_PAGE_SECONDS,
    PIECES_BETWEEN_CHECKPOINTS,
    Body,
)
from robotsgate.fetching._fetcher import (
    FetchedResponse,
    FetchFailedError,
    as_pairs,
    own_fetch,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Sequence

    from robotsgate.fetching._fetcher import OwnFetch
    from robotsgate.urls._address_class import IPAddress

Resolve = Callable[["OwnFetch"], Awaitable[Awaitable["Sequence[IPAddress]"]]]
"""Begins to resolve the host of a fetch; the addresses can then be awaited."""

Connect = Callable[[str, int], Awaitable["SocketStream"]]
"""Connects to an IP address and a port."""

_Result = TypeVar("_Result")

# RFC 8305 §8: the recommended delay between two attempts.
_ATTEMPT_DELAY_SECONDS = 0.25

MOST_ADDRESSES = 8
"""How many of a name's addresses to try; trying all could contact too many hosts."""

# While this much is being decrypted and parsed, no other task runs.
_MOST_BYTES_AT_ONCE = 16 * 1024

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

# A whole header section in printable ASCII, without folded lines or bare line feeds.
_PLAIN_HEAD = re.compile(
    rb"HTTP/1\.[01] ([2-9][0-9]{2})(?: [ -~]*)?\r\n"
    rb"(?:[-!#$%&'*+.^_`|~0-9A-Za-z]+:[ -~]*\r\n)*\r\n"
)
_USED_FIELDS = re.compile(
    rb"\r\n(%s): *((?:[!-~]+(?: +[!-~]+)*)?)" % "|".join(USED_HEADERS).encode(),
    re.IGNORECASE,
)
_PLAIN_LENGTH = re.compile(rb"[0-9]{1,15}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_FRAMING = {b"content-length", b"transfer-encoding"}
_NO_CONTENT = {204, 304}

_BROKEN = (OSError, anyio.EndOfStream)

# Libraries that mock requests by patching httpx's transports. Tracers and recorders
# patch the same methods, but only observe requests.
_MOCKS = {"respx", "pytest_httpx"}
_MOCKED = (("httpcore", "AsyncConnectionPool"), ("httpx", "AsyncHTTPTransport"))


async def resolve(fetch: OwnFetch) -> Awaitable[Sequence[IPAddress]]:
    """Begin to resolve the host of `fetch`, as soon as a thread is free.

    Awaiting the result returns the addresses in the system's order of preference, or
    raises an OSError or a UnicodeError.
    """
    host, port = fetch.dialled_host, fetch.origin.port
    with suppress(ValueError):
        return _at_once([ip_address(host)])
    return await fetch.begin(partial(_look_up, host, port))


async def _at_once(addresses: Sequence[IPAddress]) -> Sequence[IPAddress]:
    return addresses


def _look_up(host: str, port: int) -> Sequence[IPAddress]:
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(place[0]) for *_, place in infos))


async def connect_to_any(
    addresses: Sequence[IPAddress], port: int, connect: Connect
) -> SocketStream:
    """Connect to the first of `addresses` that accepts (RFC 8305, Happy Eyeballs).

    The next address is tried once the previous one has failed, or has gone 0.25 s
    without responding.
    """
    if len(addresses) == 1:
        return await connect(str(addresses[0]), port)
    winners: list[SocketStream] = []
    errors: list[OSError] = []

    async def attempt(address: str, ended_event: anyio.Event) -> None:
        try:
            winners.append(await connect(address, port))
            attempts.cancel_scope.cancel()
        except OSError as error:
            errors.append(error)
        finally:
            ended_event.set()

    try:
        async with anyio.create_task_group() as attempts:
            for address in _families_in_turn(addresses)[:MOST_ADDRESSES]:
                ended_event = anyio.Event()
                attempts.start_soon(attempt, str(address), ended_event)
                with anyio.move_on_after(_ATTEMPT_DELAY_SECONDS):
                    await ended_event.wait()
        if winners:
            return winners.pop(0)
    finally:  # even a cancellation must not leave a socket open
        for late in winners:
            late.close()
    group = ExceptionGroup("no address accepted a connection", errors)
    raise ConnectionError(str(errors[0])) from group


def _families_in_turn(addresses: Sequence[IPAddress]) -> list[IPAddress]:
    """Alternate IPv4 and IPv6, keeping the first address first (RFC 8305 §4)."""
    version = addresses[0].version
    first = [one for one in addresses if one.version == version]
    second = [one for one in addresses if one.version != version]
    in_turn = chain.from_iterable(zip_longest(first, second))
    return [address for address in in_turn if address is not None]


async def is_readable(connection: socket.socket, deadline: float) -> bool:
    """Wait for bytes; whether there are any before `deadline`, by the loop's clock.

    On asyncio, this takes a third as long as `anyio.wait_readable` in a scope.
    """
    loop = asyncio_loop()
    if loop is None or sys.platform == "win32":  # whose usual loop has no `add_reader`
        with anyio.CancelScope(deadline=deadline):
            await anyio.wait_readable(connection)
            return True
        return False
    ended: asyncio.Future[bool] = loop.create_future()

    def end(*, has_bytes: bool = True) -> None:
        if not ended.done():
            ended.set_result(has_bytes)

    timer = loop.call_at(deadline, partial(end, has_bytes=False))
    number = connection.fileno()  # asyncio would describe a socket, which is slow
    loop.add_reader(number, end)
    try:
        return await ended and loop.time() < deadline
    finally:
        loop.remove_reader(number)
        timer.cancel()


class SocketStream:
    """A connected, non-blocking socket that only one task reads and writes.

    Attributes:
        bytes_left: how many more bytes may be received.
    """

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self.bytes_left = math.inf
        self.wait_until(math.inf)

    def wait_until(self, deadline: float) -> None:
        """Set the deadline of the next waits, by the event loop's clock."""
        self._deadline = deadline
        self._is_late = False

    async def receive(self) -> bytes:
        """Receive the next bytes, letting other tasks run first.

        After a deadline, the bytes that have arrived are received once.
        """
        while not self._is_late:
            self._is_late = not await is_readable(self._socket, self._deadline)
            try:
                data = self._socket.recv(_MOST_BYTES_AT_ONCE)
            except BlockingIOError:  # a spurious wakeup, or none
                continue
            if not data:
                raise anyio.EndOfStream
            self.bytes_left -= len(data)
            if self.bytes_left < 0:
                raise h11.RemoteProtocolError(_TOO_MANY_BYTES)
            return data
        raise TimeoutError

    async def send(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                with anyio.fail_after(self._deadline - anyio.current_time()):
                    await anyio.wait_writable(self._socket)

    def close(self) -> None:
        self._socket.close()


class TLSStream:
    """TLS over a `SocketStream`."""

    def __init__(
        self, connection: SocketStream, context: ssl.SSLContext, host: str
    ) -> None:
        self._connection = connection
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_hostname=host
        )

    async def shake_hands(self) -> None:
        try:
            await self._result_of(self._tls.do_handshake)
        except anyio.EndOfStream:
            raise ConnectionError("the TLS handshake was cut off") from None
        # `send` sends the last message along with its own data.

    async def receive(self) -> bytes:
        data = await self._result_of(partial(self._tls.read, _MOST_BYTES_AT_ONCE))
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, data: bytes) -> None:
        self._tls.write(data)
        await self._connection.send(self._outgoing.read())

    async def _result_of(self, step: Callable[[], _Result]) -> _Result:
        while True:
            with suppress(ssl.SSLWantReadError):
                return step()
            if self._outgoing.pending:
                await self._connection.send(self._outgoing.read())
            self._incoming.write(await self._connection.receive())


async def connect(address: str, port: int) -> SocketStream:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    dialling = socket.socket(family, socket.SOCK_STREAM)
    try:
        dialling.setblocking(False)  # noqa: FBT003 (positional only)
        with suppress(BlockingIOError):
            dialling.connect((address, port))
        await anyio.wait_writable(dialling)
    except BaseException:  # even a cancellation must not leave a socket open
        dialling.close()
        raise
    number = dialling.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if number:
        dialling.close()
        raise OSError(number, os.strerror(number))
    return SocketStream(dialling)


Stream = SocketStream | TLSStream


class ConnectTimeout(TimeoutError):  # noqa: N818 (shown in verdicts; httpx's name)
    """The connection could not be made in time."""


class ReadTimeout(TimeoutError):  # noqa: N818 (shown in verdicts; httpx's name)
    """No bytes were received in time."""


class ConnectError(Exception):
    """The connection failed."""


class ReadError(Exception):
    """The connection was lost."""


class PlainResponse(NamedTuple):
    """The beginning of a usual response.

    `headers` are the `USED_HEADERS`, in order. `content` is what has arrived of its
    content, which is `length` bytes long, perhaps followed by other bytes.
    """

    status: int
    headers: list[tuple[str, str]]
    length: int
    content: bytes


def plain_response(data: bytes) -> PlainResponse | None:
    """The response that begins with `data`; `None` if h11 must parse it.

    h11 would read the same, but takes twenty times as long. Either there is one
    Content-Length, or all chunks have arrived.
    """
    head = _PLAIN_HEAD.match(data)
    if head is None:
        return None
    fields = _USED_FIELDS.findall(data, 0, head.end())
    status, content = int(head[1]), data[head.end() :]
    named = [(name.lower(), value) for name, value in fields]
    framing = [field for field in named if field[0] in _FRAMING]
    if len(framing) != 1 or status in _NO_CONTENT:
        return None
    [(name, value)] = framing
    if name == b"content-length":
        if not _PLAIN_LENGTH.fullmatch(value):
            return None
        length = int(value)
    else:
        whole = _whole_chunks(content) if value.lower() == b"chunked" else None
        if whole is None:
            return None
        length, content = len(whole), whole
    return PlainResponse(status, as_pairs(fields), length, content)


def _whole_chunks(data: bytes) -> bytes | None:
    """The content in `data`; `None` unless it is plain chunks to the last one."""
    chunks: list[bytes] = []
    start = 0
    while (size := _CHUNK_SIZE.match(data, start)) is not None:
        begin = size.end()
        start = begin + int(size[1], 16) + 2
        if data[start - 2 : start] != b"\r\n":
            return None
        if begin + 2 == start:
            return b"".join(chunks) if start == len(data) else None
        chunks.append(data[begin : start - 2])
    return None


class Exchange:
    """One GET: its connection, and the response so far."""

    def __init__(
        self,
        fetch: OwnFetch,
        target: str,
        headers: Sequence[tuple[str, str]],
        *,
        max_bytes: int,
        ssl_context: ssl.SSLContext | None,
        connect: Connect,
    ) -> None:
        self._fetch = fetch
        self._ends_at = self._wait_ends_at = fetch.deadline
        self._max_bytes = max_bytes
        self._ssl_context = ssl_context
        self._connect = connect
        self._target = target
        self._request_headers = headers
        self._h11: h11.Connection | None = None  # for an unusual response
        self._length = 0  # of a usual response
        self._socket: SocketStream | None = None
        self._is_sent = False
        self._bytes = 0
        self._status = 0
        self._headers: list[tuple[str, str]] = []
        self._body: Body | None = None

    @property
    def _is_over(self) -> bool:
        return self._body is not None and self._body.is_over

    async def response(
        self, addresses: Awaitable[Sequence[IPAddress]]
    ) -> FetchedResponse:
        try:
            await self._run(addresses)
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
        if self._socket is not None:
            self._socket.close()

    async def _run(self, addresses: Awaitable[Sequence[IPAddress]]) -> None:
        try:
            connection = self._socket = await self._dial(addresses)
            stream = await self._shake_hands(connection)
            await self._send(stream)
            while not self._is_over:
                await self._read(connection, stream)
        except TimeoutError as error:
            if self._wait_ends_at >= self._ends_at:  # a timer can be ahead of the clock
                raise TimeoutError from error
            late = ReadTimeout if self._is_sent else ConnectTimeout
            raise late(str(error)) from error
        except (*_BROKEN, UnicodeError) as error:
            broken = ReadError if self._is_sent else ConnectError
            raise broken(str(error)) from error

    def _deadline(self, seconds: float) -> float:
        """The deadline of a wait that begins now."""
        now = anyio.current_time()
        self._wait_ends_at = min(now + seconds, self._ends_at)
        if now >= self._ends_at:
            raise TimeoutError
        return self._wait_ends_at

    async def _dial(self, addresses: Awaitable[Sequence[IPAddress]]) -> SocketStream:
        # Not `_deadline`, which may raise before `addresses`, a coroutine, is awaited.
        deadline = anyio.current_time() + self._fetch.policy.connect_timeout
        deadline = self._wait_ends_at = min(deadline, self._ends_at)
        host, port = self._fetch.dialled_host, self._fetch.origin.port
        with anyio.CancelScope(deadline=deadline):
            permitted = self._fetch.guard.permit(host, await addresses)
            connection = await connect_to_any(permitted, port, self._connect)
            connection.wait_until(deadline)
            return connection
        raise TimeoutError

    async def _shake_hands(self, connection: SocketStream) -> Stream:
        if self._ssl_context is None:
            return connection
        connection.wait_until(self._deadline(self._fetch.policy.connect_timeout))
        connection.bytes_left = _MOST_BYTES_OF_TLS
        self._ssl_context.set_alpn_protocols(["http/1.1"])
        stream = TLSStream(connection, self._ssl_context, self._fetch.dialled_host)
        await stream.shake_hands()
        return stream

    async def _send(self, stream: Stream) -> None:
        self._is_sent = True
        # Some servers refuse a request without reading it, and their response counts.
        fields = "".join(
            f"{name}: {value}\r\n" for name, value in self._request_headers
        )
        with suppress(*_BROKEN):
            await stream.send(f"GET {self._target} HTTP/1.1\r\n{fields}\r\n".encode())

    async def _read(self, connection: SocketStream, stream: Stream) -> None:
        connection.wait_until(self._deadline(self._fetch.policy.read_timeout))
        data = b""
        with suppress(anyio.EndOfStream):
            data = await stream.receive()
        self._count(len(data), connection)
        if self._h11 is not None:
            await self._parse(self._h11, data)
        elif self._body is not None:
            if not data:
                raise h11.RemoteProtocolError(
                    "the connection ended after"
                    f" {self._body.raw_bytes} of {self._length} bytes"
                )
            self._take_content(data, self._body)
        else:
            plain = plain_response(data)
            if plain is None:
                self._h11 = self._sent_through_h11()
                await self._parse(self._h11, data)
            else:
                self._length = plain.length
                body = self._begin_body(plain.status, plain.headers)
                self._take_content(plain.content, body)

    def _take_content(self, data: bytes, body: Body) -> None:
        if data and not body.is_over:
            body.feed(data[: self._length - body.raw_bytes])
        if body.raw_bytes == self._length:
            body.finish()

    def _sent_through_h11(self) -> h11.Connection:
        parser = h11.Connection(h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
        headers = list(self._request_headers)
        parser.send(h11.Request(method="GET", target=self._target, headers=headers))
        parser.send(h11.EndOfMessage())
        return parser

    async def _parse(self, parser: h11.Connection, data: bytes) -> None:
        if not data and parser.their_state is h11.SEND_RESPONSE:
            raise h11.RemoteProtocolError(
                "Server disconnected without sending a response."
            )
        parser.receive_data(data)
        while not self._is_over:
            event = parser.next_event()
            if event is h11.NEED_DATA:
                return
            if isinstance(event, h11.Response | h11.InformationalResponse):
                self._take_head(event)
            else:
                await self._take(event, cast("Body", self._body))  # after its head

    def _count(self, count: int, connection: SocketStream) -> None:
        """Limit everything except the body; otherwise, headers could go on forever."""
        # Each byte of data permits one more byte of TLS overhead: half of a record with
        # a single line is framing.
        connection.bytes_left += 2 * count
        self._bytes += count
        of_body = 0 if self._body is None else self._body.raw_bytes
        if self._bytes > _MOST_BYTES_BESIDE_THE_BODY + 1.5 * of_body:
            raise h11.RemoteProtocolError(_TOO_MANY_BYTES)

    def _take_head(self, event: h11.Response | h11.InformationalResponse) -> None:
        if not event.http_version.startswith(b"1."):  # h11 accepts every version
            raise h11.RemoteProtocolError(
                f"expected HTTP/1.1 or HTTP/1.0, got {event.http_version!r}"
            )
        if isinstance(event, h11.InformationalResponse) and event.status_code != 101:  # noqa: PLR2004
            return
        self._begin_body(event.status_code, as_pairs(event.headers.raw_items()))

    def _begin_body(self, status: int, headers: list[tuple[str, str]]) -> Body:
        self._status, self._headers = status, headers
        self._body = body = Body(status, headers, max_bytes=self._max_bytes)
        if body.is_error_page and not body.is_over:
            now = anyio.current_time()
            seconds = min(ERROR_PAGE_SECONDS, (self._ends_at - now) / 2)
            self._ends_at = now + seconds
        return body

    async def _take(self, event: object, body: Body) -> None:
        if not isinstance(event, h11.Data):  # its end
            body.finish()
            return
        body.feed(event.data)
        if body.pieces % PIECES_BETWEEN_CHECKPOINTS == 0:
            await anyio.lowlevel.cancel_shielded_checkpoint()


class DirectFetcher:
    """Sends each GET over a new connection, on asyncio and trio.

    Ignores proxies from the environment; to use a proxy, pass a client to the checker.
    """

    guard_setting = None  # the guard sees the addresses

    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext | None = None,
        resolve: Resolve = resolve,
        connect: Connect = connect,
    ) -> None:
        self._ssl_context = ssl_context
        self._making_context = anyio.Lock()
        self._resolve = resolve
        self._connect = connect

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        """See `Fetcher.get`. Ends at the fetch's deadline."""
        fetch = own_fetch.get()
        if _are_requests_mocked():
            return await self._get_through_httpx(url, headers, max_bytes)
        context = None
        if fetch.origin.scheme == "https":
            context = self._ssl_context or await self._shared_context(fetch)
        host, _, path = url.partition("://")[2].partition("/")
        exchange = Exchange(
            fetch,
            f"/{path}",
            [("Host", host), *headers],
            max_bytes=max_bytes,
            ssl_context=context,
            connect=self._connect,
        )
        # Outside the scope: no timeout of the origin includes the wait for a thread.
        addresses = await self._resolve(fetch)
        try:
            return await exchange.response(addresses)
        finally:  # even a cancellation must not leave a socket open
            exchange.close()

    async def _shared_context(self, fetch: OwnFetch) -> ssl.SSLContext:
        with anyio.move_on_after(fetch.deadline - anyio.current_time()):
            async with self._making_context:
                if self._ssl_context is None:
                    self._ssl_context = await _load_context(fetch)
                return self._ssl_context
        raise FetchFailedError(  # not the origin's fault
            "the certificate authorities were not loaded in time",
            kind=FailureKind.LOCAL,
        )

    async def _get_through_httpx(
        self, url: str, headers: Sequence[tuple[str, str]], max_bytes: int
    ) -> FetchedResponse:
        """The response from a mock, or from the server that the mock forwards to."""
        from httpx import AsyncHTTPTransport  # noqa: PLC0415 (only in users' tests)

        from robotsgate.fetching._httpx import TransportFetcher  # noqa: PLC0415 (same)

        fetch = own_fetch.get()
        addresses: Sequence[IPAddress] = ()
        looking_up = await self._resolve(fetch)
        with anyio.fail_after(fetch.deadline - anyio.current_time()):
            # A mock may respond for a name that does not exist.
            with (
                suppress(OSError, UnicodeError),
                anyio.fail_after(fetch.policy.connect_timeout),
            ):
                addresses = await looking_up
            if addresses:
                fetch.guard.permit(fetch.dialled_host, addresses)
            context = self._ssl_context or await self._shared_context(fetch)
            async with AsyncHTTPTransport(verify=context) as transport:
                return await TransportFetcher(transport).get(
                    url, headers, max_bytes=max_bytes
                )


async def _load_context(fetch: OwnFetch) -> ssl.SSLContext:
    # In a thread, because reading all root certificates takes 0.1 s.
    making = await fetch.begin(default_context)
    try:
        return await making
    except OSError as error:  # not the origin's fault
        raise RuntimeError(
            f"cannot load the certificate authorities: {error}"
        ) from error


def default_context() -> ssl.SSLContext:
    """A context that trusts SSL_CERT_FILE, SSL_CERT_DIR or certifi, as httpx does."""
    file, folder = (os.environ.get(f"SSL_CERT_{kind}") for kind in ("FILE", "DIR"))
    if folder and not file:
        return ssl.create_default_context(capath=folder)
    if not file:
        import certifi  # noqa: PLC0415 (only for https)

        file = certifi.where()
    return ssl.create_default_context(cafile=file)


def _are_requests_mocked() -> bool:
    for library, name in _MOCKED:
        kind = getattr(sys.modules.get(library), name, None)
        method = getattr(kind, "handle_async_request", None)
        if str(getattr(method, "__module__", "")).partition(".")[0] in _MOCKS:
            return True
    return False
