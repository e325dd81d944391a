"""Fuzzes the octets of stored entries: read whole and lasting, or refused."""

from __future__ import annotations

import struct
import zlib

from robotsgate.caching._access import AccessResult
from robotsgate.caching._codec import CodecError, decoded, encoded
from robotsgate.caching._entry import Copy, Entry
from robotsgate.caching._outcome import FailureKind
from tests.fuzzing.target import Target, as_text, fields, in_time, joined

__all__ = ["TARGET"]

_ORIGIN = "https://example.com"
_HEAD_OCTETS = 5


def check(data: bytes) -> None:
    """Read octets under an origin, as they are and with the right checksum."""
    origin_octets, octets = fields(data, 2)
    origin = as_text(origin_octets)
    _check_octets(octets, origin)
    entry = _check_octets(_sealed(octets, origin), origin)
    if entry is not None:
        _check_damage(encoded(entry), origin, place=zlib.crc32(data))


def _check_octets(octets: bytes, origin: str) -> Entry | None:
    """The entry that `octets` are, if they are one; it must last."""
    try:
        entry = in_time("reading", lambda: decoded(octets, origin=origin))
    except CodecError:
        return None
    assert entry.origin == origin
    assert entry.access is not AccessResult.SUCCESSFUL or entry.copy is not None
    again = in_time("writing", lambda: encoded(entry))
    later = decoded(again, origin=origin)
    assert repr(later) == repr(entry)  # "==" says no where a time is not a number
    assert encoded(later) == again
    # A count may have been written with more octets than it takes.
    assert len(again) <= len(octets)
    return entry


def _check_damage(octets: bytes, origin: str, *, place: int) -> None:
    """One changed bit, a lost end and another origin are noticed."""
    changed = bytearray(octets)
    changed[place // 8 % len(octets)] ^= 1 << place % 8
    for wrong, key in (
        (bytes(changed), origin),
        (octets[: place % len(octets)], origin),
        (octets, origin + "/"),
    ):
        try:
            entry = decoded(wrong, origin=key)
        except CodecError:
            continue
        raise AssertionError(f"damaged octets are {entry!r}")


def _sealed(octets: bytes, origin: str) -> bytes:
    """`octets` with what makes them an entry of `origin`, as far as that goes."""
    payload = octets[_HEAD_OCTETS:]
    named = origin.encode("utf-8", "surrogatepass")
    return struct.pack(">BI", 1, zlib.crc32(named + payload)) + payload


def _seed(entry: Entry) -> bytes:
    return joined(entry.origin.encode(), encoded(entry))


_COPY = Copy(packed=zlib.compress(b"Disallow: /"), fetched_at=1.5, fresh_until=2.5)

TARGET = Target(
    check=check,
    seeds=(
        _seed(
            Entry(
                origin=_ORIGIN,
                access=AccessResult.SUCCESSFUL,
                checked_at=1_800_000_000.5,
                next_fetch_at=1_800_086_400.5,
                retain_until=float("inf"),
                status=200,
                copy=_COPY,
            )
        ),
        _seed(
            Entry(
                origin=_ORIGIN,
                access=AccessResult.UNAVAILABLE,
                checked_at=1_800_000_000.0,
                next_fetch_at=1_800_086_400.0,
                retain_until=1_800_086_400.0,
                status=404,
                redirects=5,
            )
        ),
        _seed(
            Entry(
                origin="http://[::1]:8080",
                access=AccessResult.UNREACHABLE,
                checked_at=-1.5,
                next_fetch_at=0.0,
                retain_until=1e300,
                status=503,
                redirects=2**63 - 1,
                error="it said “no”\ud800",
                failure=FailureKind.TIMEOUT,
                copy=_COPY,
                unreachable_since=-2.5,
                failures=300,
                terms="off",
            )
        ),
        _seed(
            Entry(
                origin="",
                access=AccessResult.RESTRICTED,
                checked_at=0.0,
                next_fetch_at=0.0,
                retain_until=0.0,
                error="",
            )
        ),
    ),
    words=(
        b"\x00", b"\x01", b"\x02", b"\x03", b"\x04", b"\x09", b"\x0a", b"\x1f", b"\x20",
        b"\x3f", b"\x40", b"redirects",
        b"\x7f", b"\x80", b"\x80\x00", b"\xff", b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff", b"\xc8\x01", b"\xfe", b"\xed\xa0\x80",
        b"\xed\xb0\x80", b"\xc3(", b"\x7f\xf0\x00\x00\x00\x00\x00\x00",
        b"\x7f\xf8\x00\x00\x00\x00\x00\x00", b"\x7f\xf0\x00\x00\x00\x00\x00\x01",
        b"\x80\x00\x00\x00\x00\x00\x00\x00", b"\x41\xda\xd2\x74\x80\x00\x00\x00",
    ),
    max_length=256,
)  # fmt: skip
