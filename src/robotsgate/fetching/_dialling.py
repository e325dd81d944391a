"""Finds the addresses of a host, and dials those that the guard permits.

A host is resolved once, the guard checks its addresses, and one of those is dialled. So
nobody can change what the name means between the check and the connection (DNS
rebinding). Several addresses are tried as RFC 8305 (happy eyeballs) proposes.

A connection is a non-blocking socket that anyio waits for: that takes a third of the
time of `anyio.connect_tcp`, which makes a task group and a task for each connection.
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
from anyio.lowlevel import RunVar

from robotsgate._flights import Threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.urls._address_class import IPAddress

Resolve = Callable[[str, int], Awaitable["Sequence[IPAddress]"]]
"""Finds the addresses of a host, for a port."""

Connect = Callable[[str, int], Awaitable["SocketStream"]]
"""Opens a connection to an IP address and a port."""

# RFC 8305 §8: the recommended delay between two attempts.
_ATTEMPT_DELAY_SECONDS = 0.25

MOST_ADDRESSES = 8
"""How many addresses of a name are tried; more would let it send us to many hosts."""

# A name server that does not answer holds a thread for half a minute, and must not
# hold up the look-ups of others. A thread takes some 100 KB.
_MOST_LOOK_UPS = 200

# While this much is decrypted and parsed, no other task runs.
_MOST_BYTES_AT_ONCE = 16 * 1024

_look_ups: RunVar[Threads] = RunVar("robotsgate.look_ups")  # of each event loop


async def resolve(host: str, port: int) -> Sequence[IPAddress]:
    """The addresses of `host`, in the order in which the system prefers them.

    Waits while very many look-ups are under way; abandoned ones count, too.

    Raises:
        OSError: `host` has no address.
    """
    with suppress(ValueError):
        return [ip_address(host)]
    try:
        threads = _look_ups.get()
    except LookupError:
        threads = Threads(_MOST_LOOK_UPS)
        _look_ups.set(threads)
    infos = await threads.result_of(
        partial(socket.getaddrinfo, host.encode(), port, type=socket.SOCK_STREAM)
    )
    return list(dict.fromkeys(ip_address(place[0]) for *_, place in infos))


async def connect_to_any(
    addresses: Sequence[IPAddress], port: int, connect: Connect
) -> SocketStream:
    """A connection to the one of `addresses` that answers first.

    The next one is tried when one has failed, or has not answered for 0.25 s.

    Raises:
        OSError: none answers.
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
    except BaseException:  # a cancellation, too, must not leave a socket open
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
    """IPv4 and IPv6 in turn, beginning with the family of the first (RFC 8305 §4)."""
    is_first_v4 = isinstance(addresses[0], IPv4Address)
    first = [one for one in addresses if isinstance(one, IPv4Address) == is_first_v4]
    second = [one for one in addresses if isinstance(one, IPv4Address) != is_first_v4]
    in_turn = chain.from_iterable(zip_longest(first, second))
    return [address for address in in_turn if address is not None]


class TooManyBytesError(Exception):
    """The peer has sent more than it may."""


class SocketStream(anyio.abc.ByteStream):
    """A connected socket that one task reads and writes.

    Attributes:
        bytes_left: how many bytes may still come.
    """

    def __init__(self, connected: socket.socket) -> None:
        """Own `connected`, which must not block."""
        self._socket = connected
        self.bytes_left = math.inf

    async def receive(self, max_bytes: int = _MOST_BYTES_AT_ONCE) -> bytes:
        """The next bytes; lets other tasks run first.

        Raises:
            TooManyBytesError: more than `bytes_left` have come.
            anyio.EndOfStream: the peer has ended the connection in order.
            anyio.ClosedResourceError: it was closed here.
            OSError: the connection broke.
        """
        while self._socket.fileno() >= 0:
            await anyio.wait_readable(self._socket)
            try:
                data = self._socket.recv(min(max_bytes, _MOST_BYTES_AT_ONCE))
            except BlockingIOError:  # the system was wrong
                continue
            if not data:
                raise anyio.EndOfStream
            self.bytes_left -= len(data)
            if self.bytes_left < 0:
                raise TooManyBytesError
            return data
        raise anyio.ClosedResourceError

    def has_bytes(self) -> bool:
        """Whether `receive` would not have to wait."""
        try:
            self._socket.recv(1, socket.MSG_PEEK)
        except OSError as error:  # `receive` will raise any other
            return not isinstance(error, BlockingIOError)
        return True

    async def send(self, item: bytes) -> None:
        """Send all of `item`.

        Raises:
            OSError: the connection broke.
        """
        left = memoryview(item)
        while left:
            try:
                left = left[self._socket.send(left) :]
            except BlockingIOError:
                await anyio.wait_writable(self._socket)

    async def send_eof(self) -> None:
        """Tell the peer that nothing more comes."""
        self._socket.shutdown(socket.SHUT_WR)

    async def aclose(self) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Close at once; may be called more than once."""
        self._socket.close()


async def connect(address: str, port: int) -> SocketStream:
    """A connection to the IP address `address`.

    Raises:
        OSError: the address cannot be reached, or does not answer.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    dialling = socket.socket(family, socket.SOCK_STREAM)
    try:
        dialling.setblocking(False)  # noqa: FBT003 (positional only)
        dialling.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(BlockingIOError):
            dialling.connect((address, port))
        await anyio.wait_writable(dialling)
    except BaseException:  # a cancellation, too, must not leave a socket open
        dialling.close()
        raise
    number = dialling.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if number:
        dialling.close()
        raise OSError(number, os.strerror(number))
    return SocketStream(dialling)
