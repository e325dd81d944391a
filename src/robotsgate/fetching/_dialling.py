"""Resolves host names, and connects to the addresses that the guard permits.

A host is resolved once, the guard checks its addresses, and the connection is made to
one of them, so nobody can change the address between the check and the connection (DNS
rebinding). If there are several addresses, they are tried as RFC 8305 recommends (Happy
Eyeballs).

A connection is a non-blocking socket that anyio waits for. This takes a third as long
as `anyio.connect_tcp`, which creates a task group and a task per connection.
"""

from __future__ import annotations

import math
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address, ip_address
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

import anyio
import anyio.abc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.fetching._fetcher import OwnFetch
    from robotsgate.urls._address_class import IPAddress

Resolve = Callable[["OwnFetch"], Awaitable[Awaitable["Sequence[IPAddress]"]]]
"""Begins to resolve the host of a fetch; the addresses can then be awaited."""

Connect = Callable[[str, int], Awaitable["SocketStream"]]
"""Connects to an IP address and a port."""

# RFC 8305 §8: the recommended delay between two attempts.
_ATTEMPT_DELAY_SECONDS = 0.25

MOST_ADDRESSES = 8
"""How many of a name's addresses to try; trying all could contact too many hosts."""

# While this much is being decrypted and parsed, no other task runs.
_MOST_BYTES_AT_ONCE = 16 * 1024


async def resolve(fetch: OwnFetch) -> Awaitable[Sequence[IPAddress]]:
    """Begin to resolve the host of `fetch`, as soon as a thread is free.

    Returns:
        The addresses, in the system's order of preference, once they are awaited. That
        raises an OSError or a UnicodeError if the host cannot be resolved.

    Raises:
        FetchFailedError: no thread was free in time.
    """
    host, port = fetch.dialled_host, fetch.origin.port
    with suppress(ValueError):
        return _at_once([ip_address(host)])
    look_up = partial(_look_up, host, port)
    return await fetch.threads.begin(look_up, fetch.queue_timeout())


async def _at_once(addresses: Sequence[IPAddress]) -> Sequence[IPAddress]:
    return addresses


def _look_up(host: str, port: int) -> Sequence[IPAddress]:
    infos = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(ip_address(place[0]) for *_, place in infos))


async def connect_to_any(
    addresses: Sequence[IPAddress], port: int, connect: Connect
) -> SocketStream:
    """Connect to the first of `addresses` that accepts the connection.

    The next address is tried once the previous one has failed, or has gone 0.25 s
    without responding.

    Raises:
        OSError: none of the addresses accepts the connection.
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
    except BaseException:  # even a cancellation must not leave a socket open
        for winner in winners:
            winner.close()
        raise
    for late in winners[1:]:
        late.close()
    if not winners:
        group = ExceptionGroup("no address accepted a connection", errors)
        raise ConnectionError(str(errors[0])) from group
    return winners[0]


def _families_in_turn(addresses: Sequence[IPAddress]) -> list[IPAddress]:
    """Alternate IPv4 and IPv6, keeping the first address first (RFC 8305 §4)."""
    is_first_v4 = isinstance(addresses[0], IPv4Address)
    first = [one for one in addresses if isinstance(one, IPv4Address) == is_first_v4]
    second = [one for one in addresses if isinstance(one, IPv4Address) != is_first_v4]
    in_turn = chain.from_iterable(zip_longest(first, second))
    return [address for address in in_turn if address is not None]


class TooManyBytesError(Exception):
    """The peer has sent too many bytes."""


class SocketStream(anyio.abc.ByteStream):
    """A connected socket that only one task reads and writes.

    Attributes:
        bytes_left: how many more bytes may be received.
    """

    def __init__(self, connected: socket.socket) -> None:
        """Take ownership of `connected`, which must be non-blocking."""
        self._socket = connected
        self.bytes_left = math.inf

    async def receive(self, max_bytes: int = _MOST_BYTES_AT_ONCE) -> bytes:
        """Receive the next bytes, letting other tasks run first.

        Raises:
            TooManyBytesError: more than `bytes_left` were received.
            anyio.EndOfStream: the peer has closed the connection.
            anyio.ClosedResourceError: this side has closed the connection.
            OSError: the connection was lost.
        """
        while self._socket.fileno() >= 0:
            await anyio.wait_readable(self._socket)
            try:
                data = self._socket.recv(min(max_bytes, _MOST_BYTES_AT_ONCE))
            except BlockingIOError:  # a spurious wakeup
                continue
            if not data:
                raise anyio.EndOfStream
            self.bytes_left -= len(data)
            if self.bytes_left < 0:
                raise TooManyBytesError
            return data
        raise anyio.ClosedResourceError

    def has_bytes(self) -> bool:
        """Whether `receive` would return without waiting."""
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except OSError as error:  # `receive` will raise any other error
            return not isinstance(error, BlockingIOError)
        return True

    async def send(self, item: bytes) -> None:
        """Send all of `item`.

        Raises:
            OSError: the connection was lost.
        """
        left = memoryview(item)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                await anyio.wait_writable(self._socket)

    async def send_eof(self) -> None:
        """Close the sending side."""
        self._socket.shutdown(socket.SHUT_WR)

    async def aclose(self) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Close immediately. Can be called more than once."""
        self._socket.close()


async def connect(address: str, port: int) -> SocketStream:
    """Connect to the IP address `address`.

    Raises:
        OSError: the address is unreachable, or does not accept the connection.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    dialling = socket.socket(family, socket.SOCK_STREAM)
    try:
        dialling.setblocking(False)  # noqa: FBT003 (positional only)
        dialling.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
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
