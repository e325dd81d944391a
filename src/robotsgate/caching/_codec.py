"""Writes an entry as octets, and reads it back; without pickle.

Pure. Version 1, numbers big-endian, counts as LEB128 (seven bits an octet, the
lowest first):

    version        1 octet, 1
    checksum       4 octets, CRC-32 of the origin (UTF-8) and all that follows
    parts          1 octet, which of the parts in brackets there are, and
                   whether it is a failure since first sight
    access         1 octet, a number of `_ACCESS_RESULTS`
    checked_at, next_fetch_at, retain_until     8 octets each, IEEE 754
    redirects, failures                         counts
    [status]                                    count
    [failure]                                   1 octet, a number of `_FAILURES`
    [unreachable_since]                         8 octets, IEEE 754
    [error]                                     count of octets, UTF-8
    [terms]                                     the same, where it is not "redirects"
    [copy]         fetched_at, fresh_until: 8 octets each; the packed body: the rest

The origin itself is the key of whoever keeps the octets; the checksum tells when
they are read under another one.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Any

from robotsgate.caching._access import AccessResult
from robotsgate.caching._entry import Copy, Entry
from robotsgate.caching._outcome import FailureKind
from robotsgate.caching._policy import AddressGuard

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = 1

# What stands in stored octets for ever: add to the end, never change.
_ACCESS_RESULTS = (
    AccessResult.SUCCESSFUL,
    AccessResult.UNAVAILABLE,
    AccessResult.UNREACHABLE,
    AccessResult.RESTRICTED,
)
_FAILURES = (
    FailureKind.NAME_RESOLUTION,
    FailureKind.CONNECT,
    FailureKind.TLS,
    FailureKind.TIMEOUT,
    FailureKind.TRANSFER,
    FailureKind.PROTOCOL,
    FailureKind.CODING,
    FailureKind.ADDRESS_REFUSED,
    FailureKind.OTHER,
    FailureKind.POOL,
)

_HAS_STATUS, _HAS_FAILURE, _HAS_SINCE, _HAS_ERROR, _HAS_COPY = 1, 2, 4, 8, 16
_HAS_TERMS = 32
_IS_FIRST_SIGHT = 64
_ALL_PARTS = 127

_USUAL_TERMS = AddressGuard.REDIRECTS.value

_HEAD = struct.Struct(">BI")
_FIXED = struct.Struct(">BBddd")
_TIME = struct.Struct(">d")
_TIMES_OF_COPY = struct.Struct(">dd")

# Counts of up to 63 bits: more are no count of anything.
_MOST_OCTETS_OF_A_COUNT = 9


class CodecError(ValueError):
    """Octets that are no entry, or not one of the origin that was asked for."""


class UnknownVersionError(CodecError):
    """Octets that another version of robotsgate has written.

    Attributes:
        version: which one they name.
    """

    def __init__(self, version: int) -> None:
        super().__init__(f"expected an entry of version {VERSION}, got {version}")
        self.version = version


def encoded(entry: Entry) -> bytes:
    """`entry` as octets.

    Raises:
        CodecError: a number is out of range: a count below 0 or beyond 63 bits,
            a time that no float holds.
    """
    parts = (
        (_HAS_STATUS * (entry.status is not None))
        | (_HAS_FAILURE * (entry.failure is not None))
        | (_HAS_SINCE * (entry.unreachable_since is not None))
        | (_HAS_ERROR * (entry.error is not None))
        | (_HAS_COPY * (entry.copy is not None))
        | (_HAS_TERMS * (entry.terms != _USUAL_TERMS))
        | (_IS_FIRST_SIGHT * entry.is_first_sight)
    )
    try:
        payload = b"".join(_payload(entry, parts))
    except (struct.error, OverflowError, ValueError) as error:
        message = f"expected an entry of {entry.origin} with all numbers in range"
        raise CodecError(message) from error
    return _HEAD.pack(VERSION, _checksum(entry.origin, payload)) + payload


def decoded(octets: bytes, *, origin: str) -> Entry:
    """The entry that `octets` are.

    Args:
        octets: what `encoded` gave.
        origin: under which key they were kept.

    Raises:
        UnknownVersionError: another version has written them.
        CodecError: they are damaged, or of another origin.
    """
    if octets and octets[0] != VERSION:
        raise UnknownVersionError(octets[0])
    try:
        _, checksum = _HEAD.unpack_from(octets)
        payload = octets[_HEAD.size :]
        if checksum != _checksum(origin, payload):
            raise CodecError(f"expected the octets of {origin} unchanged")
        return _entry(_Reader(payload), origin)
    except (struct.error, IndexError, ValueError) as error:
        if isinstance(error, CodecError):
            raise
        raise CodecError(f"expected a whole entry of {origin}: {error}") from error


def _payload(entry: Entry, parts: int) -> Iterable[bytes]:
    yield _FIXED.pack(
        parts,
        _ACCESS_RESULTS.index(entry.access),
        entry.checked_at,
        entry.next_fetch_at,
        entry.retain_until,
    )
    yield _count(entry.redirects) + _count(entry.failures)
    if entry.status is not None:
        yield _count(entry.status)
    if entry.failure is not None:
        yield bytes([_FAILURES.index(entry.failure)])
    if entry.unreachable_since is not None:
        yield _TIME.pack(entry.unreachable_since)
    if entry.error is not None:
        yield _text(entry.error)
    if entry.terms != _USUAL_TERMS:
        yield _text(entry.terms)
    if entry.copy is not None:
        yield _TIMES_OF_COPY.pack(entry.copy.fetched_at, entry.copy.fresh_until)
        yield entry.copy.packed


def _entry(reader: _Reader, origin: str) -> Entry:
    parts, access, checked_at, next_fetch_at, retain_until = reader.unpack(_FIXED)
    if parts & ~_ALL_PARTS:
        raise CodecError(f"expected known parts, got {parts:#x}")
    redirects, failures = reader.count(), reader.count()
    entry = Entry(
        origin=origin,
        access=_ACCESS_RESULTS[access],
        checked_at=checked_at,
        next_fetch_at=next_fetch_at,
        retain_until=retain_until,
        redirects=redirects,
        failures=failures,
        status=reader.count() if parts & _HAS_STATUS else None,
        failure=_FAILURES[reader.octets(1)[0]] if parts & _HAS_FAILURE else None,
        unreachable_since=reader.unpack(_TIME)[0] if parts & _HAS_SINCE else None,
        error=reader.text() if parts & _HAS_ERROR else None,
        terms=reader.text() if parts & _HAS_TERMS else _USUAL_TERMS,
        copy=reader.copy() if parts & _HAS_COPY else None,
        is_first_sight=bool(parts & _IS_FIRST_SIGHT),
    )
    if not reader.is_at_end:
        raise CodecError(f"expected the end of the entry of {origin}")
    return entry


def _checksum(origin: str, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(origin.encode("utf-8", "surrogatepass")))


def _count(number: int) -> bytes:
    """`number` as LEB128."""
    if not 0 <= number < 1 << 7 * _MOST_OCTETS_OF_A_COUNT:
        raise ValueError(f"expected a count, got {number}")
    octets = bytearray()
    while number > 0x7F:  # noqa: PLR2004
        octets.append(number & 0x7F | 0x80)
        number >>= 7
    octets.append(number)
    return bytes(octets)


def _text(text: str) -> bytes:
    """`text` as the count of its octets, and these."""
    octets = text.encode("utf-8", "surrogatepass")
    return _count(len(octets)) + octets


class _Reader:
    """Takes the parts of a payload, one after the other."""

    def __init__(self, payload: bytes) -> None:
        self._payload = payload
        self._position = 0

    @property
    def is_at_end(self) -> bool:
        return self._position == len(self._payload)

    def octets(self, number: int) -> bytes:
        start, self._position = self._position, self._position + number
        found = self._payload[start : self._position]
        if len(found) < number:
            raise CodecError(f"expected {number} octets more, got {len(found)}")
        return found

    def unpack(self, numbers: struct.Struct) -> tuple[Any, ...]:
        return numbers.unpack(self.octets(numbers.size))

    def count(self) -> int:
        number = 0
        for place in range(_MOST_OCTETS_OF_A_COUNT):
            octet = self.octets(1)[0]
            number |= (octet & 0x7F) << 7 * place
            if octet < 0x80:  # noqa: PLR2004
                return number
        raise CodecError("expected a count of at most 63 bits")

    def text(self) -> str:
        return self.octets(self.count()).decode("utf-8", "surrogatepass")

    def copy(self) -> Copy:
        fetched_at, fresh_until = self.unpack(_TIMES_OF_COPY)
        packed = self.octets(len(self._payload) - self._position)
        return Copy(packed=packed, fetched_at=fetched_at, fresh_until=fresh_until)
