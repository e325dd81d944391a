"""Decides how much of a body matters, and decodes it with a bound on what comes out.

Takes only codings that were asked for: gzip, deflate, or none (RFC 9110 §8.4.1). A few
kilobytes can decode to gigabytes, so each step has a limit of decoded bytes.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from robotsgate.caching._access_result import BYTES_TO_READ, is_server_error
from robotsgate.fetching._fetcher import own_fetch
from robotsgate.robotstxt._headers import header_values

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Sequence

    from robotsgate.fetching._fetcher import FetchedResponse

ACCEPT_ENCODING = "gzip, deflate"

# Limits the coded bytes, because bytes that decode to nothing could go on for ever.
# Neither coding makes a body much longer than it is.
_RAW_SLACK = 2
_RAW_BYTES_AT_LEAST = 65_536

# Each piece takes ten to twenty microseconds, whatever is in it. A server may send a
# file one line at a time, and the lines of real files have 23 bytes or more on average.
_LEAST_BYTES_OF_A_PIECE = 20
_PIECES_OF_ANY_LENGTH = 3_000

PIECES_BETWEEN_CHECKPOINTS = 256
"""Thousands of pieces may come in one segment, and no other task runs between them."""

ERROR_PAGE_SECONDS = 5.0
"""How long an error page may take to show its title."""

_GZIP_MAGIC = b"\x1f\x8b"
_WINDOW_GZIP = 31
_WINDOW_ZLIB = 15
_WINDOW_RAW = -15


class CodingError(ValueError):
    """A content coding that is unknown, chained, broken or cut off."""


def bytes_worth_reading(status: int, max_bytes: int) -> int:
    """How many decoded bytes of the body matter in a response with `status`."""
    if 200 <= status <= 299:  # noqa: PLR2004
        return max_bytes
    fetch = own_fetch.get(None)
    if is_server_error(status) and (fetch is None or fetch.policy.detect_missing_page):
        return BYTES_TO_READ
    return 0


class Body:
    """As much of the decoded body of one response as matters with its status.

    Feed it what comes until it is over. Does no I/O itself.

    Attributes:
        is_error_page: whether a failure to read it changes nothing, because the
            status is enough.
        is_over: whether no more bytes matter.
        raw_bytes: how many coded bytes have come.
    """

    def __init__(
        self, status: int, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> None:
        """Begin.

        Args:
            status: that of the response.
            headers: those of the response, of which the content coding matters; none
                for a body that need not be decoded.
            max_bytes: the most decoded bytes that matter with any status.
        """
        self._max_bytes = bytes_worth_reading(status, max_bytes)
        self.is_error_page = is_server_error(status)
        self.is_over = not self._max_bytes
        self.raw_bytes = 0
        self._coding = ", ".join(header_values(headers, "content-encoding"))
        self._decoder: _Inflate | None = None
        self._pieces = 0
        self._decoded = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Take coded bytes as they come over the wire.

        Raises:
            CodingError: the coding is not one that was asked for; or the body is not
                in it, decodes to hardly anything, or comes in very many pieces.
        """
        self._pieces += 1
        if self._pieces > (
            _PIECES_OF_ANY_LENGTH + self.raw_bytes // _LEAST_BYTES_OF_A_PIECE
        ):
            raise CodingError(
                f"too many pieces: {self._pieces} for {self.raw_bytes} bytes"
            )
        if chunk and not self.raw_bytes:  # an empty body needs no coding
            self._decoder = _decoder(self._coding)
        self.raw_bytes += len(chunk)
        if self._decoder is None:
            self._decoded += chunk[: self._max_bytes - len(self._decoded)]
        else:
            self._decoder.decode(chunk, self._decoded, self._max_bytes)
            self.is_over = self._decoder.is_over
        self.is_over |= len(self._decoded) >= self._max_bytes
        most_bytes = _RAW_SLACK * self._max_bytes + _RAW_BYTES_AT_LEAST
        if self.raw_bytes > most_bytes and not self.is_over:
            raise CodingError(
                f"{self.raw_bytes} compressed bytes decode to almost nothing"
            )

    def finish(self) -> None:
        """End the body, of which nothing more comes.

        Raises:
            CodingError: it ends too early.
        """
        if not self.is_over:
            self.is_over = True
            if self._decoder is not None:
                self._decoder.finish()

    def __bytes__(self) -> bytes:
        """What has been decoded so far."""
        return bytes(self._decoded)


async def read_into(body: Body, chunks: AsyncIterable[bytes]) -> None:
    """Feed `body` with `chunks` as far as they matter; an error page for some seconds.

    Raises:
        CodingError: as for `Body`, unless it is an error page.
    """
    if body.is_over:
        return
    if not body.is_error_page:
        await _feed_with(chunks, body)
        return
    left = anyio.current_effective_deadline() - anyio.current_time()
    with anyio.move_on_after(min(ERROR_PAGE_SECONDS, left / 2)), suppress(Exception):
        await _feed_with(chunks, body)


async def _feed_with(chunks: AsyncIterable[bytes], body: Body) -> None:
    pieces = 0
    async for chunk in chunks:
        body.feed(chunk)
        if body.is_over:
            return
        pieces += 1
        if pieces % PIECES_BETWEEN_CHECKPOINTS == 0:
            await anyio.lowlevel.checkpoint()
    body.finish()


def decoded_body(response: FetchedResponse, *, max_bytes: int) -> bytes:
    """As much of the body as matters, decoded, that a client of the caller has read.

    The client may stop at `max_bytes`, so a body of that length need not be whole.

    Raises:
        CodingError: as for `Body`, unless it is an error page.
    """
    if response.is_decoded or not response.body:
        return response.body[: bytes_worth_reading(response.status, max_bytes)]
    body = Body(response.status, response.headers, max_bytes=max_bytes)
    if not body.is_over:
        with suppress(*[CodingError] if body.is_error_page else []):
            body.feed(response.body)
            if len(response.body) < max_bytes:
                body.finish()
    return bytes(body)


def check_coding(content_encoding: str) -> None:
    """Refuse a content coding that was not asked for.

    Raises:
        CodingError: it is not gzip, deflate or identity.
    """
    _decoder(content_encoding)


def _decoder(content_encoding: str) -> _Inflate | None:
    """What undoes a content coding; `None` if there is nothing to undo."""
    coding = content_encoding.strip().lower()
    if coding in {"", "identity"}:
        return None
    if coding in {"gzip", "x-gzip"}:
        return _Inflate(is_gzip=True)
    if coding == "deflate":
        return _Inflate(is_gzip=False)
    raise CodingError(
        f"expected the content coding gzip or deflate, got {coding[:80]!r}"
    )


class _Inflate:
    """gzip with any number of members, or deflate with or without a zlib header.

    Bytes after the end of the coding are ignored, as in all browsers.
    """

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._waiting = b""
        self._inflate: zlib._Decompress | None = None
        self._is_after_member = False
        self.is_over = False

    def decode(self, chunk: bytes, decoded: bytearray, max_bytes: int) -> None:
        """Add what `chunk` brings to `decoded`, up to `max_bytes` in all."""
        self._waiting += chunk
        while len(decoded) < max_bytes and not self.is_over:
            if self._inflate is None and not self._begin():
                return
            piece = self._next_piece(max_bytes - len(decoded))
            if not piece and not self._waiting:
                return
            decoded += piece

    def finish(self) -> None:
        """End the input; raises CodingError if the coding has not ended."""
        is_started = self._waiting and not self._is_after_member
        if not self.is_over and (self._inflate is not None or is_started):
            raise CodingError("the compressed body is cut off")

    def _begin(self) -> bool:
        """Begin a member, if its first two bytes are there; whether it has begun."""
        if len(self._waiting) < 2:  # noqa: PLR2004
            return False
        if self._is_after_member and self._waiting[:2] != _GZIP_MAGIC:
            self.is_over, self._waiting = True, b""
            return False
        window = _WINDOW_GZIP
        if not self._is_gzip:
            first, second = self._waiting[:2]
            is_zlib = first & 0x0F == zlib.DEFLATED and (first << 8 | second) % 31 == 0
            window = _WINDOW_ZLIB if is_zlib else _WINDOW_RAW
        self._inflate = zlib.decompressobj(window)
        return True

    def _next_piece(self, max_bytes: int) -> bytes:
        inflate = self._inflate
        assert inflate is not None  # noqa: S101 (`take` has begun)
        try:
            piece = inflate.decompress(self._waiting, max_bytes)
        except zlib.error as error:
            raise CodingError(f"the compressed body is corrupt: {error}") from error
        self._waiting = inflate.unconsumed_tail
        if inflate.eof:
            self._inflate = None
            self.is_over = not self._is_gzip
            self._is_after_member = True
            self._waiting = b"" if self.is_over else inflate.unused_data
        return piece
