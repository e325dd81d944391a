"""Fetches a robots.txt over FTP: anonymous login, passive mode, RETR (RFC 959).

The standard library's `ftplib` is blocking, so it runs in threads. This module must
never decide what a reply means; `caching` does that.
"""

from __future__ import annotations

import ftplib
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from robotsgate.caching._outcome import FTP_NO_FILE, FTP_RETRIEVED, FailureKind
from robotsgate.fetching._body import Body
from robotsgate.fetching._direct import MOST_ADDRESSES, resolve
from robotsgate.fetching._fetcher import FetchedResponse, FetchFailedError, own_fetch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.caching._policy import Policy
    from robotsgate.fetching._direct import Resolve
    from robotsgate.urls._address_class import IPAddress

# Relative to the directory after the login (RFC 1738 §3.2.2).
_RETRIEVE = "RETR robots.txt"

# For all replies in a session together. Some servers greet clients with a page of text.
_MOST_BYTES_OF_REPLIES = 64 * 1024

# How much of a reply is kept; the numbers in a PASV reply are at its start.
_LONGEST_REPLY = 300

_CHUNK_BYTES = 16 * 1024


class FtpFetcher:
    """Fetches each file over a new connection, without a proxy."""

    def __init__(self, *, resolve: Resolve = resolve) -> None:
        self._resolve = resolve

    async def get(
        self,
        url: str,
        headers: Sequence[tuple[str, str]],  # noqa: ARG002 (FTP has none)
        *,
        max_bytes: int,
    ) -> FetchedResponse:
        """See `Fetcher.get`. The status is the FTP reply code, 226 or 550."""
        fetch = own_fetch.get()
        addresses = await (await self._resolve(fetch))
        addresses = fetch.guard.permit(fetch.dialled_host, addresses)
        session = _Session(addresses, fetch.origin.port, fetch.policy, max_bytes)
        try:
            body = await (await fetch.begin(session.retrieve))
        except (ftplib.Error, ValueError, OverflowError) as error:
            raise FetchFailedError(url, kind=FailureKind.PROTOCOL) from error
        except (EOFError, ConnectionResetError, BrokenPipeError) as error:
            raise FetchFailedError(url, kind=FailureKind.TRANSFER) from error
        finally:
            session.end()
        status = FTP_NO_FILE if body is None else FTP_RETRIEVED
        return FetchedResponse(
            status=status, headers=(), body=body or b"", is_decoded=True
        )


class _Session(ftplib.FTP):
    """One control connection, used in one thread; another thread may end it.

    Since Python 3.9, `ftplib` opens the data connection to the address of the control
    connection, ignoring the address in a PASV reply.
    """

    def __init__(
        self, addresses: Sequence[IPAddress], port: int, policy: Policy, max_bytes: int
    ) -> None:
        super().__init__(encoding="latin-1")
        self._addresses = addresses[:MOST_ADDRESSES]
        self._port = port
        self._policy = policy
        self._max_bytes = max_bytes
        self._bytes_left = _MOST_BYTES_OF_REPLIES
        self._command = ""
        self._is_ended = False
        self._data: socket.socket | None = None

    def retrieve(self) -> bytes | None:
        """The file, up to the size limit; `None` if there is none."""
        try:
            self._connect_to_any().settimeout(self._policy.read_timeout)
            self.timeout = self._policy.read_timeout  # for the data connection
            self.login()
            self.voidcmd("TYPE I")
            try:
                data = self.transfercmd(_RETRIEVE)
            except ftplib.error_perm as error:
                is_answer = self._command == _RETRIEVE  # not to PASV
                if is_answer and str(error).startswith(str(FTP_NO_FILE)):
                    return None
                raise
            return self._read(data)
        finally:
            self.close()

    def end(self) -> None:
        """Tell the thread to finish soon. Can be called at any time."""
        # First, because the thread checks it after each new socket.
        self._is_ended = True
        for one in (self.sock, self._data):
            if one is not None:
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)

    def putcmd(self, line: str) -> None:
        self._command = line
        super().putcmd(line)

    def getline(self) -> str:
        if self._is_ended:
            raise EOFError
        line = super().getline()
        self._bytes_left -= len(line)
        if self._bytes_left < 0:
            raise ValueError("the FTP replies are too long")
        return line

    def getmultiline(self) -> str:
        return super().getmultiline()[:_LONGEST_REPLY]

    def _connect_to_any(self) -> socket.socket:
        *others, last = map(str, self._addresses)
        for address in others:
            with suppress(OSError):
                return self._connect(address)
            self.close()
        return self._connect(last)

    def _connect(self, address: str) -> socket.socket:
        self.connect(address, self._port, self._policy.connect_timeout)
        return cast("socket.socket", self.sock)  # `connect` has set it

    def _read(self, data: socket.socket) -> bytes:
        body = Body(FTP_RETRIEVED, (), max_bytes=self._max_bytes)
        with data:
            self._data = data
            while not self._is_ended and (chunk := data.recv(_CHUNK_BYTES)):
                body.feed(chunk)
                if body.is_over:
                    return bytes(body)
        self.voidresp()  # an interrupted transfer raises an error here
        return bytes(body)
