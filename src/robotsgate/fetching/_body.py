"""Decodes a content coding with a bound on what comes out.

Only what was asked for: gzip, deflate, or none (RFC 9110 §8.4.1). A few
kilobytes can decode to gigabytes, so each step is told how much it may give.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

ACCEPT_ENCODING = "gzip, deflate"

# Neither coding makes a body much longer than it is; octets that decode to nothing
# could go on for ever.
_RAW_SLACK = 2
_RAW_BYTES_AT_LEAST = 65_536

# Each piece costs some ten microseconds, whatever is in it. Lines of a robots.txt
# have some twenty octets, and few servers send one line at a time.
_LEAST_OCTETS_OF_A_PIECE = 10
_PIECES_OF_ANY_LENGTH = 5_000

_GZIP_MAGIC = b"\x1f\x8b"
_WINDOW_GZIP = 31
_WINDOW_ZLIB = 15
_WINDOW_RAW = -15


class CodingError(ValueError):
    """A content coding that is unknown, chained, broken or cut off."""


async def read_body(
    chunks: AsyncIterable[bytes],
    content_encoding: str,
    *,
    max_bytes: int,
    into: bytearray | None = None,
) -> bytes:
    """The decoded body, as far as its first `max_bytes`.

    Stops reading as soon as they are there.

    Args:
        chunks: the body as it comes over the wire.
        content_encoding: the header's value; empty for none.
        max_bytes: > 0.
        into: gets the decoded octets as they come, for who wants to keep what
            there was before a failure.

    Raises:
        CodingError: the coding is not one that was asked for, or the body is
            not in it, ends too early, grows by decoding the wrong way, or comes
            in very many pieces.
    """
    decoder: _Decoder = _Identity()
    body = bytearray() if into is None else into
    raw_bytes = 0
    pieces = 0
    async for chunk in chunks:
        pieces += 1
        if pieces > _PIECES_OF_ANY_LENGTH + raw_bytes // _LEAST_OCTETS_OF_A_PIECE:
            message = f"{raw_bytes} octets in {pieces} pieces"
            raise CodingError(message)
        if chunk and not raw_bytes:  # what is empty needs no coding
            decoder = _decoder(content_encoding)
        raw_bytes += len(chunk)
        decoder.feed(chunk)
        while len(body) < max_bytes:
            piece = decoder.take(max_bytes - len(body))
            if not piece:
                break
            body += piece
        if len(body) >= max_bytes or decoder.is_over:
            return bytes(body)
        if raw_bytes > _RAW_SLACK * max_bytes + _RAW_BYTES_AT_LEAST:
            message = f"{raw_bytes} coded octets that decode to hardly anything"
            raise CodingError(message)
    decoder.finish()
    return bytes(body)


class _Decoder(Protocol):
    is_over: bool
    """Whether nothing that follows can count."""

    def feed(self, chunk: bytes) -> None:
        """Take what came."""
        ...

    def take(self, max_bytes: int) -> bytes:
        """At most so much of what it decodes to; empty: feed more."""
        ...

    def finish(self) -> None:
        """Nothing comes any more: raise CodingError if something should."""
        ...


def check_coding(content_encoding: str) -> None:
    """Refuse a content coding that was not asked for.

    Raises:
        CodingError: it is none of gzip, deflate and identity.
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
    message = f"expected the content coding gzip or deflate, got {coding[:80]!r}"
    raise CodingError(message)


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

    What follows the end of the coding is ignored, as all browsers do.
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
            piece = self._inflated(max_bytes)
            if piece or not self._waiting:
                return piece
        return b""

    def finish(self) -> None:
        is_started = self._waiting and not self._is_after_member
        if not self.is_over and (self._inflate is not None or is_started):
            message = "the coded body ends too early"
            raise CodingError(message)

    def _begin(self) -> bool:
        """Choose the window; the first two octets tell."""
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

    def _inflated(self, max_bytes: int) -> bytes:
        inflate = self._inflate
        assert inflate is not None  # noqa: S101 (`take` has begun)
        try:
            piece = inflate.decompress(self._waiting, max_bytes)
        except zlib.error as error:
            message = f"the coded body is broken: {error}"
            raise CodingError(message) from error
        self._waiting = inflate.unconsumed_tail
        if inflate.eof:
            self._inflate = None
            self.is_over = not self._is_gzip
            self._is_after_member = True
            self._waiting = b"" if self.is_over else inflate.unused_data
        return piece
