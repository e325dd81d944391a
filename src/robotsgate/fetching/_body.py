"""Reads and decompresses as much of a body as is needed, up to a size limit.

`caching._hops` decodes; a client that has decoded the body itself skips that step.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from robotsgate._public import set_module
from robotsgate.caching._hops import CodingError, content_encoding_of, decoder_of
from robotsgate.caching._outcome import BYTES_TO_READ, is_server_error, is_success
from robotsgate.fetching._fetcher import own_fetch

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Sequence

    from robotsgate.caching._hops import Inflate
    from robotsgate.fetching._fetcher import FetchedResponse

# Limits the compressed bytes, because a stream that decodes to nothing could go on
# forever. Neither coding makes a body much longer.
_RAW_SLACK = 2
_RAW_BYTES_AT_LEAST = 65_536

# Each piece takes 10 to 20 microseconds, whatever it contains. A server may send a file
# line by line, and lines in real files average 23 bytes or more.
_LEAST_BYTES_OF_A_PIECE = 20
_PIECES_OF_ANY_LENGTH = 3_000

PIECES_BETWEEN_CHECKPOINTS = 256
"""One segment may contain thousands of pieces, which would keep other tasks waiting."""

ERROR_PAGE_SECONDS = 5.0
"""How long to keep reading an error page to find its title."""


def bytes_worth_reading(status: int, max_bytes: int) -> int:
    """How many decoded body bytes are needed for a response with `status`."""
    if is_success(status):
        return max_bytes
    fetch = own_fetch.get(None)
    if is_server_error(status) and (fetch is None or fetch.policy.detect_missing_page):
        return BYTES_TO_READ
    return 0


@set_module("robotsgate.fetching")
class Body:
    """The decoded body of one response, or as much of it as the status requires.

    Call `feed` until `is_over` is true. This class does no I/O itself.

    Attributes:
        is_error_page: whether failing to read the body has no effect, because the
            status alone is enough.
        is_over: whether no more bytes are needed.
        pieces: the number of chunks received.
        raw_bytes: the number of compressed bytes received.
    """

    def __init__(
        self, status: int, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> None:
        """Start empty.

        Args:
            status: the response status.
            headers: the response headers, which name the content coding; empty for a
                body that is already decoded.
            max_bytes: the maximum number of decoded bytes for any status.
        """
        self._max_bytes = bytes_worth_reading(status, max_bytes)
        self.is_error_page: bool = is_server_error(status)
        self.is_over: bool = not self._max_bytes
        self.pieces: int = 0
        self.raw_bytes: int = 0
        self._coding = content_encoding_of(headers)
        self._decoder: Inflate | None = None
        self._decoded = bytearray()

    def feed(self, chunk: bytes) -> None:
        """Add compressed bytes as they arrive.

        Raises:
            CodingError: the coding was not requested; or the body is not encoded with
                it, decodes to almost nothing, or arrives in too many pieces.
        """
        self.pieces += 1
        most_pieces = _PIECES_OF_ANY_LENGTH + self.raw_bytes // _LEAST_BYTES_OF_A_PIECE
        if self.pieces > most_pieces:
            raise CodingError(
                f"too many pieces: {self.pieces} for {self.raw_bytes} bytes"
            )
        if chunk and not self.raw_bytes:  # an empty body has no coding
            self._decoder = decoder_of(self._coding)
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
        """End the body.

        Raises:
            CodingError: the body is truncated.
        """
        if not self.is_over:
            self.is_over = True
            if self._decoder is not None:
                self._decoder.finish()

    def discard(self) -> None:
        """Drop what has been decoded: the end of an incomplete page is unknown."""
        self._decoded.clear()

    def __bytes__(self) -> bytes:
        """The bytes decoded so far."""
        return bytes(self._decoded)


@set_module("robotsgate.fetching")
async def read_into(body: Body, chunks: AsyncIterable[bytes]) -> None:
    """Feed `body` the chunks it needs; stop reading an error page after a few seconds.

    An error page that cannot be read to its end, or as far as needed, is empty.

    Raises:
        CodingError: as for `Body`, unless the body is an error page.
    """
    if body.is_over:
        return
    if not body.is_error_page:
        await _feed_with(chunks, body)
        return
    left = anyio.current_effective_deadline() - anyio.current_time()
    with anyio.move_on_after(min(ERROR_PAGE_SECONDS, left / 2)), suppress(Exception):
        await _feed_with(chunks, body)
        return
    body.discard()


async def _feed_with(chunks: AsyncIterable[bytes], body: Body) -> None:
    async for chunk in chunks:
        body.feed(chunk)
        if body.is_over:
            return
        if body.pieces % PIECES_BETWEEN_CHECKPOINTS == 0:
            await anyio.lowlevel.checkpoint()
    body.finish()


def decoded_body(response: FetchedResponse, *, max_bytes: int) -> bytes:
    """The decoded body of a response that the caller's client has read.

    The client may stop reading at `max_bytes`, so a body of that length may be
    incomplete.

    Raises:
        CodingError: as for `Body`, unless the body is an error page.
    """
    if response.is_decoded or not response.body:
        return response.body[: bytes_worth_reading(response.status, max_bytes)]
    body = Body(response.status, response.headers, max_bytes=max_bytes)
    if body.is_over:
        return b""
    try:
        body.feed(response.body)
        if len(response.body) < max_bytes:
            body.finish()
    except CodingError:
        if not body.is_error_page:
            raise
        body.discard()
    return bytes(body)
