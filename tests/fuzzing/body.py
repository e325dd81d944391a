"""Fuzzes body decoding: gzip, deflate or none, in chunks, up to a limit."""

from __future__ import annotations

import gzip
import zlib

from robotsgate.caching._coding import CodingError, decoder_of
from robotsgate.fetching._body import Body
from tests.fuzzing.target import Target, in_time

_CODINGS = ("", "gzip", "deflate", "GZip ", "identity", "x-gzip", "br", "gzip, gzip")
_UNKNOWN = frozenset(_CODINGS[-2:])

_GZIP_MAGIC = b"\x1f\x8b"
_WINDOW_GZIP, _WINDOW_ZLIB, _WINDOW_RAW = 31, 15, -15

# More bytes that decode to almost nothing would be refused.
_MAX_CODED_BYTES = 60_000


def check(data: bytes) -> None:
    """Decode what follows the first four bytes, which choose the options."""
    options, rest = data[:4].ljust(4, b"\0"), data[4 : 4 + _MAX_CODED_BYTES]
    coding = _CODINGS[options[0] % len(_CODINGS)]
    wire = _encode(rest, coding) if options[0] >= 128 else rest
    chunk_size = options[1] or max(len(wire), 1)
    max_bytes = 1 + int.from_bytes(options[2:4], "big")
    body, is_refused = in_time(
        "decoding", lambda: _decode(wire, chunk_size, coding, max_bytes)
    )
    expected, is_whole = _decode_slowly(wire, coding)
    assert len(body) <= max_bytes
    assert body == expected[: len(body)]
    if is_refused:
        assert not is_whole
    else:
        assert len(body) == min(len(expected), max_bytes)
        assert is_whole or len(body) == max_bytes
    _check_coding(coding)


def _decode(
    wire: bytes, chunk_size: int, coding: str, max_bytes: int
) -> tuple[bytes, bool]:
    """Decode `wire`; also return whether the rest is refused."""
    body = Body(200, [("content-encoding", coding)], max_bytes=max_bytes)
    try:
        for start in range(0, len(wire), chunk_size):
            body.feed(wire[start : start + chunk_size])
            if body.is_over:
                break
        body.finish()
    except CodingError:
        return bytes(body), True
    return bytes(body), False


def _encode(body: bytes, coding: str) -> bytes:
    if "gzip" in coding.lower():
        return gzip.compress(body, mtime=0)
    return zlib.compress(body) if coding == "deflate" else body


def _decode_slowly(wire: bytes, coding: str) -> tuple[bytes, bool]:
    """Decode byte by byte as far as possible; also return whether that is all."""
    name = coding.strip().lower()
    if not wire or name in {"", "identity"}:
        return wire, True
    if name in _UNKNOWN:
        return b"", False
    if name == "deflate":
        is_zlib = wire[0] & 15 == 8 and int.from_bytes(wire[:2], "big") % 31 == 0
        decoded, is_whole, _ = _member(wire, _WINDOW_ZLIB if is_zlib else _WINDOW_RAW)
        return decoded, is_whole
    everything = b""
    while True:
        decoded, is_whole, wire = _member(wire, _WINDOW_GZIP)
        everything += decoded
        if not is_whole or not wire.startswith(_GZIP_MAGIC):
            return everything, is_whole


def _member(wire: bytes, window: int) -> tuple[bytes, bool, bytes]:
    """Decode one member; also return whether it ends, and what follows it."""
    inflate = zlib.decompressobj(window)
    decoded = bytearray()
    for position in range(len(wire)):
        try:
            decoded += inflate.decompress(wire[position : position + 1])
        except zlib.error:
            return bytes(decoded), False, b""
        if inflate.eof:
            return bytes(decoded), True, wire[position + 1 :]
    return bytes(decoded), False, b""


def _check_coding(coding: str) -> None:
    try:
        decoder_of(coding)
    except CodingError:
        assert coding in _UNKNOWN
    else:
        assert coding not in _UNKNOWN


def _seed(coding: int, wire: bytes, *, chunk_size: int = 0, more: int = 1_000) -> bytes:
    return bytes([coding, chunk_size]) + more.to_bytes(2, "big") + wire


_FILE = b"User-agent: *\nDisallow: /a\n"

TARGET = Target(
    check=check,
    seeds=(
        _seed(0, _FILE, chunk_size=3),
        _seed(1, gzip.compress(_FILE, mtime=0)),
        _seed(1, gzip.compress(_FILE, mtime=0) * 2 + b"\0\0", chunk_size=1),
        _seed(1, gzip.compress(b"a" * 5_000, mtime=0), chunk_size=7, more=4_999),
        _seed(2, zlib.compress(_FILE), chunk_size=2),
        _seed(2, zlib.compress(_FILE, wbits=_WINDOW_RAW)),
        _seed(2, b"\x00\x00\x00\xff\xff" * 20 + b"\x03\x00", chunk_size=4),
        _seed(129, _FILE * 3, chunk_size=5, more=40),
        _seed(130, _FILE),
        _seed(6, b"x"),
        _seed(7, b""),
    ),
    words=(
        b"\x1f\x8b\x08", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", b"\x78\x9c",
        b"\x03\x00", b"\x01\x00\x00\xff\xff", b"\x00\x00\x00\xff\xff", b"\x1f",
        gzip.compress(b"", mtime=0), gzip.compress(b"a", mtime=0), zlib.compress(b""),
        zlib.compress(b"a"), zlib.compress(b"a", wbits=_WINDOW_RAW),
    ),
    max_length=1_024,
)  # fmt: skip
