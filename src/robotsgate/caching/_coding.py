"""Content codings (RFC 9110 §8.4.1): which one a header names, and decoding it.

Pure. A few kilobytes can decompress to gigabytes, so each step limits the number of
decoded bytes.
"""

from __future__ import annotations

import re
import zlib
from typing import TYPE_CHECKING

from robotsgate.robotstxt._headers import header_values
from robotsgate.robotstxt._robots_txt import has_rules

if TYPE_CHECKING:
    from robotsgate.robotstxt._headers import HeadersLike

ACCEPT_ENCODING = "gzip, deflate"

_GZIP_MAGIC = b"\x1f\x8b"
_WINDOW_GZIP = 31
_WINDOW_ZLIB = 15
_WINDOW_RAW = -15

# zlib copies the rest of its input after each gzip member, and members can be tiny.
_PIECE = 4_096

_GZIP = frozenset({"gzip", "x-gzip"})

# IANA's registry of content codings, without identity. Servers also send labels such as
# "UTF-8", "none" and "aws-chunked", which most clients ignore.
_REGISTERED = _GZIP | {
    *("aes128gcm", "br", "compress", "dcb", "dcz", "deflate", "exi"),
    *("pack200-gzip", "x-compress", "zstd"),
}
_NO_CODING = frozenset({"", "identity"})

# The first line of a body whose chunks were not removed: their size, and perhaps a
# signature (aws-chunked).
_CHUNK_HEAD = re.compile(rb"\s*[0-9A-Fa-f]+[ \t]*(?:;|[\r\n]|$)")


class CodingError(ValueError):
    """A content coding that was not requested, or a corrupt or truncated body."""


def content_encoding_of(headers: HeadersLike) -> str:
    """The value of Content-Encoding; "" if it is missing."""
    return ", ".join(header_values(headers, "content-encoding"))


def decoder_of(content_encoding: str) -> Inflate | None:
    """The decoder for a Content-Encoding; `None` if there is nothing to decode.

    Members that are not registered codings are ignored; see `file_in`.

    Raises:
        CodingError: a registered coding other than gzip and deflate, or several.
    """
    codings = [one for one in _members(content_encoding) if one in _REGISTERED]
    if not codings:
        return None
    if len(codings) == 1 and codings[0] in _GZIP:
        return Inflate(is_gzip=True)
    if codings == ["deflate"]:
        return Inflate(is_gzip=False)
    raise CodingError(
        f"expected the content coding gzip or deflate, got {content_encoding[:80]!r}"
    )


def file_in(body: bytes, content_encoding: str, *, max_bytes: int) -> bytes:
    """The robots.txt in the decoded `body` of a successful response.

    Some servers send a compressed file without saying so; text never begins like gzip,
    so one such layer is decompressed. If `content_encoding` has a member that is not a
    registered coding, the body may be encoded in an unknown way, so it must contain
    rules.

    Args:
        body: at most `max_bytes`, or cut off there.
        content_encoding: the header's value; "" for an archived body.
        max_bytes: the maximum number of decoded bytes.

    Raises:
        CodingError: there is another layer, the layer is corrupt or truncated, or the
            body of an unregistered coding is not a robots.txt.
    """
    if body.startswith(_GZIP_MAGIC):
        body = _gzip_content(body, max_bytes)
        if body.startswith(_GZIP_MAGIC):
            raise CodingError("the body is compressed more than once")
    if _REGISTERED.issuperset(_members(content_encoding)):
        return body
    if _CHUNK_HEAD.match(body) or not has_rules(body, max_bytes=max_bytes):
        raise CodingError(
            "expected a robots.txt despite the unknown content coding"
            f" {content_encoding[:80]!r}"
        )
    return body


def _gzip_content(body: bytes, max_bytes: int) -> bytes:
    """The content of a gzip `body`, up to `max_bytes`."""
    content = bytearray()
    layer = Inflate(is_gzip=True)
    layer.decode(body, content, max_bytes)
    if len(content) < max_bytes:
        layer.finish()
    return bytes(content)


def _members(content_encoding: str) -> list[str]:
    """The lower-case members of a Content-Encoding, without empty ones and identity."""
    members = [one.strip().lower() for one in content_encoding.split(",")]
    return [one for one in members if one not in _NO_CODING]


class Inflate:
    """Decodes multi-member gzip, and deflate with or without a zlib header.

    Call `decode` until `is_over` is true, then `finish`.

    Bytes after the end of the compressed data are ignored, as in all browsers.
    """

    def __init__(self, *, is_gzip: bool) -> None:
        self._is_gzip = is_gzip
        self._waiting = b""
        self._inflate: zlib._Decompress | None = None
        self._is_after_member = False
        self.is_over = False

    def decode(self, chunk: bytes, decoded: bytearray, max_bytes: int) -> None:
        """Decode `chunk` into `decoded`, up to a total of `max_bytes`."""
        for start in range(0, len(chunk), _PIECE):
            self._decode_piece(chunk[start : start + _PIECE], decoded, max_bytes)
            if self.is_over or len(decoded) >= max_bytes:
                return

    def _decode_piece(self, piece: bytes, decoded: bytearray, max_bytes: int) -> None:
        self._waiting += piece
        while len(decoded) < max_bytes and not self.is_over:
            if self._inflate is None and not self._begin():
                return
            content = self._next_content(max_bytes - len(decoded))
            if not content and not self._waiting:
                return
            decoded += content

    def finish(self) -> None:
        """End the input; raise a CodingError if it is truncated."""
        is_started = self._waiting and not self._is_after_member
        if not self.is_over and (self._inflate is not None or is_started):
            raise CodingError("the compressed body is cut off")

    def _begin(self) -> bool:
        """Start a member if its first two bytes have arrived; return whether it did."""
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

    def _next_content(self, max_bytes: int) -> bytes:
        inflate = self._inflate
        assert inflate is not None  # noqa: S101 (`decode` has begun)
        try:
            content = inflate.decompress(self._waiting, max_bytes)
        except zlib.error as error:
            raise CodingError(f"the compressed body is corrupt: {error}") from error
        self._waiting = inflate.unconsumed_tail
        if inflate.eof:
            self._inflate = None
            self.is_over = not self._is_gzip
            self._is_after_member = True
            self._waiting = b"" if self.is_over else inflate.unused_data
        return content
