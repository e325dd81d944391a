"""Decodes a content coding with a bound on what comes out.

Takes only codings that were asked for: gzip, deflate, or none (RFC 9110 §8.4.1). A few
kilobytes can decode to gigabytes, so each step has a limit of decoded bytes.
"""

from __future__ import annotations

import zlib
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, Self

import anyio
import anyio.lowlevel

from robotsgate.caching._access_result import BYTES_TO_READ, is_server_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from robotsgate.caching._policy import Policy

ACCEPT_ENCODING = "gzip, deflate"

# Limits the coded bytes, because bytes that decode to nothing could go on for ever.
# Neither coding makes a body much longer than it is.
_RAW_SLACK = 2
_RAW_BYTES_AT_LEAST = 65_536

# Each piece takes ten to twenty microseconds, whatever is in it. A server may send a
# file one line at a time, and the lines of real files have 23 bytes or more on average.
_LEAST_BYTES_OF_A_PIECE = 20
_PIECES_OF_ANY_LENGTH = 3_000

# Thousands of pieces may come in one segment, and no other task runs between them.
_PIECES_BETWEEN_CHECKPOINTS = 256

# More than can wait in the buffers of a closed connection.
_MOST_PIECES_TO_DRAIN = 20_000

ERROR_PAGE_SECONDS = 5.0
"""How long an error page may take to show its title."""

_GZIP_MAGIC = b"\x1f\x8b"
_WINDOW_GZIP = 31
_WINDOW_ZLIB = 15
_WINDOW_RAW = -15


class CodingError(ValueError):
    """A content coding that is unknown, chained, broken or cut off."""


def bytes_worth_reading(status: int, policy: Policy) -> int:
    """How many decoded bytes of the body matter in a response with `status`."""
    if 200 <= status <= 299:  # noqa: PLR2004
        # One byte more than counts shows whether the last line was cut.
        return policy.max_body_bytes + 1
    if is_server_error(status) and policy.detect_missing_page:
        return BYTES_TO_READ
    return 0


async def read_worthwhile(
    status: int, chunks: Chunks, content_encoding: str, policy: Policy
) -> bytes:
    """The decoded body of a response, as far as it matters.

    A failure to read an error page changes nothing, because its status is known.

    Raises:
        CodingError: as for `read_body`, if the status is 2xx.
    """
    max_bytes = bytes_worth_reading(status, policy)
    if not is_server_error(status):
        return await read_body(chunks, content_encoding, max_bytes=max_bytes)
    page = bytearray()
    left = anyio.current_effective_deadline() - anyio.current_time()
    with anyio.move_on_after(min(ERROR_PAGE_SECONDS, left / 2)), suppress(Exception):
        await read_body(chunks, content_encoding, max_bytes=max_bytes, into=page)
    return bytes(page)


class Chunks:
    """A body that lets other tasks run and can be cancelled, however it arrives.

    Attributes:
        bytes: how many coded bytes have come.
    """

    def __init__(self, chunks: AsyncIterable[bytes]) -> None:
        """Give the pieces of `chunks`."""
        self._chunks = aiter(chunks)
        self._pieces = 0
        self.bytes = 0
        self._is_over = False

    def __aiter__(self) -> Self:
        """Itself."""
        return self

    async def __anext__(self) -> bytes:
        """The next piece."""
        self._pieces += 1
        if self._pieces % _PIECES_BETWEEN_CHECKPOINTS == 0:
            await anyio.lowlevel.checkpoint()
        try:
            chunk = await anext(self._chunks)
        except BaseException:
            self._is_over = True
            raise
        self.bytes += len(chunk)
        return chunk

    async def drain(self) -> None:
        """Read to the end of a body whose connection is closed.

        On trio, a generator of httpcore that is left half-way causes a warning.
        """
        with suppress(Exception):
            for _ in range(_MOST_PIECES_TO_DRAIN):
                if self._is_over:
                    return
                await anext(self)


async def read_body(
    chunks: AsyncIterable[bytes],
    content_encoding: str,
    *,
    max_bytes: int,
    into: bytearray | None = None,
) -> bytes:
    """The first `max_bytes` of the decoded body; reads no further.

    Args:
        chunks: the body as it comes over the wire.
        content_encoding: the header's value; empty for none.
        max_bytes: > 0.
        into: gets the decoded bytes as they come, so that a caller has them after a
            failure, too.

    Raises:
        CodingError: the coding is not one that was asked for; or the body is not in
            it, ends too early, decodes to hardly anything, or comes in very many
            pieces.
    """
    decoder: _Decoder = _Identity()
    body = bytearray() if into is None else into
    raw_bytes = 0
    pieces = 0
    async for chunk in chunks:
        pieces += 1
        if pieces > _PIECES_OF_ANY_LENGTH + raw_bytes // _LEAST_BYTES_OF_A_PIECE:
            raise CodingError(f"{raw_bytes} bytes in {pieces} pieces")
        if chunk and not raw_bytes:  # an empty body needs no coding
            decoder = _decoder(content_encoding)
        raw_bytes += len(chunk)
        decoder.feed(chunk)
        _take_into(body, decoder, max_bytes)
        if len(body) >= max_bytes or decoder.is_over:
            return bytes(body)
        if raw_bytes > _RAW_SLACK * max_bytes + _RAW_BYTES_AT_LEAST:
            raise CodingError(f"{raw_bytes} coded bytes that decode to hardly anything")
    decoder.finish()
    return bytes(body)


def decoded_body(raw: bytes, content_encoding: str, *, max_bytes: int) -> bytes:
    """The first `max_bytes` of a body, decoded, that a client of the caller has read.

    The client may stop at `max_bytes`, so a body of that length need not be whole.

    Raises:
        CodingError: as for `read_body`.
    """
    if not raw:
        return raw
    decoder = _decoder(content_encoding)
    body = bytearray()
    decoder.feed(raw)
    _take_into(body, decoder, max_bytes)
    if len(body) < max_bytes and len(raw) < max_bytes:
        decoder.finish()
    return bytes(body)


def _take_into(body: bytearray, decoder: _Decoder, max_bytes: int) -> None:
    """Let `body` grow by what `decoder` has, to at most `max_bytes`."""
    while len(body) < max_bytes:
        piece = decoder.take(max_bytes - len(body))
        if not piece:
            break
        body += piece


class _Decoder(Protocol):
    is_over: bool
    """Whether the coding has ended, so that later bytes do not count."""

    def feed(self, chunk: bytes) -> None:
        """Add coded bytes."""
        ...

    def take(self, max_bytes: int) -> bytes:
        """At most `max_bytes` decoded bytes; empty if it needs more coded ones."""
        ...

    def finish(self) -> None:
        """End the input; raises CodingError if the coding has not ended."""
        ...


def check_coding(content_encoding: str) -> None:
    """Refuse a content coding that was not asked for.

    Raises:
        CodingError: it is not gzip, deflate or identity.
    """
    _decoder(content_encoding)


def _decoder(content_encoding: str) -> _Decoder:
    coding = content_encoding.strip().lower()
    if coding in {"", "identity"}:
        return _Identity()
    if coding in {"gzip", "x-gzip"}:
        return _Inflate(is_gzip=True)
    if coding == "deflate":
        return _Inflate(is_gzip=False)
    raise CodingError(
        f"expected the content coding gzip or deflate, got {coding[:80]!r}"
    )


class _Identity:
    is_over = False

    def __init__(self) -> None:
        self._waiting = b""

    def feed(self, chunk: bytes) -> None:
        self._waiting = chunk

    def take(self, max_bytes: int) -> bytes:
        piece, self._waiting = self._waiting[:max_bytes], b""
        return piece

    def finish(self) -> None:
        pass


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

    def feed(self, chunk: bytes) -> None:
        self._waiting += chunk

    def take(self, max_bytes: int) -> bytes:
        while not self.is_over:
            if self._inflate is None and not self._begin():
                return b""
            piece = self._next_piece(max_bytes)
            if piece or not self._waiting:
                return piece
        return b""

    def finish(self) -> None:
        is_started = self._waiting and not self._is_after_member
        if not self.is_over and (self._inflate is not None or is_started):
            raise CodingError("the coded body ends too early")

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
            raise CodingError(f"the coded body is broken: {error}") from error
        self._waiting = inflate.unconsumed_tail
        if inflate.eof:
            self._inflate = None
            self.is_over = not self._is_gzip
            self._is_after_member = True
            self._waiting = b"" if self.is_over else inflate.unused_data
        return piece
