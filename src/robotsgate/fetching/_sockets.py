"""A TCP connection to a literal address, on asyncio and trio.

A non-blocking socket that anyio waits for takes a third of the time of
`anyio.connect_tcp`, which makes a task group and a task for each connection.
"""

from __future__ import annotations

import math
import os
import socket
from contextlib import suppress

import anyio
import anyio.abc

# While this much is decrypted and parsed, no other task runs.
_MOST_BYTES_AT_ONCE = 16 * 1024


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
