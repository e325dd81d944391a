"""Serializes entries for a store without using pickle. Pure.

The bytes are:

- a version (1 byte)
- a CRC-32 of the key and everything that follows (4 bytes)
- the length of the head (4 bytes)
- the head, a JSON object with the fields of `Answer` and `Outage` that are set
- the packed body

The checksum detects bytes that are damaged or belong to another key. Later versions
must keep the first two parts, because the checksum also tells them apart from garbage.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from enum import Enum
from typing import TYPE_CHECKING, Any

from robotsgate._public import set_module
from robotsgate.caching._entry import Answer, Entry, Outage, Packed, key_of, unpack
from robotsgate.caching._outcome import FailureKind
from robotsgate.caching._policy import AccessResult
from robotsgate.robotstxt._model import as_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.caching._outcome import Redirects

# Versions 1 and 2 were used before the first release.
VERSION = 3

_FRAME = struct.Struct(">BI")
_BYTES_BEFORE_HEAD = _FRAME.size + 4

# Real heads are a few kilobytes long. Reading this much JSON takes 10 ms.
_LONGEST_HEAD = 512 * 1024

# A checker never stores a longer file, so a longer one must be damaged.
_LONGEST_BODY = 2**28

# One more than this, and far more, can still be stored as JSON.
_LARGEST_COUNT = 2**53


class CodecError(ValueError):
    """Bytes that are not an entry or belong to another key."""


class LaterVersionError(CodecError):
    """Bytes written by a later version of robotsgate."""


def encode(entry: Entry) -> bytes:
    parts = {"answer": _fields(entry.answer), "outage": _fields(entry.outage)}
    head = json.dumps(
        {name: fields for name, fields in parts.items() if fields},
        separators=(",", ":"),
        allow_nan=False,
    ).encode()
    body = b"" if entry.packed is None else entry.packed
    checked = len(head).to_bytes(4, "big") + head
    checksum = zlib.crc32(checked, _seed(entry.origin, entry.terms))
    checksum = zlib.crc32(body, checksum)
    return b"".join((_FRAME.pack(VERSION, checksum), checked, body))


def decode(data: bytes, *, origin: str, terms: str, max_bytes: int) -> Entry:
    """Deserialize an entry stored under this origin and terms.

    `max_bytes` is the maximum size of the decompressed body.

    Raises:
        LaterVersionError: `data` must not be overwritten.
        CodecError: `data` is damaged, was written by an earlier version, or belongs to
            another key.
    """
    try:
        head, packed = _parts(data, _seed(origin, terms))
        return _entry(json.loads(head.decode()), packed, origin, terms, max_bytes)
    except CodecError:
        raise
    except (
        struct.error,
        zlib.error,
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise CodecError(
            f"expected a complete entry for {origin}: {error!r}"
        ) from error


@set_module("robotsgate.caching")
def entry_as_dict(key: str, data: bytes) -> dict[str, Any]:
    """A stored entry as JSON-compatible types, without the robots.txt itself.

    Args:
        key: a key from `ListableStore.keys`.
        data: the result of `Store.get` for that key.

    Returns:
        The key's `origin` and `terms`; `access`; `checked_at` and `next_fetch_at`, in
        epoch seconds; and the fields of `answer` and `outage`, with `body_bytes` in
        place of the file. Everything after `terms` is `None` if the bytes are
        unreadable.
    """
    origin, _, terms = key.partition(" ")
    try:
        entry = decode(data, origin=origin, terms=terms, max_bytes=_LONGEST_BODY)
    except CodecError:
        names = ("access", "checked_at", "next_fetch_at", "answer", "outage")
        return {"origin": origin, "terms": terms, **dict.fromkeys(names)}
    return {
        "origin": origin,
        "terms": terms,
        "access": entry.access.value,
        "checked_at": entry.checked_at,
        "next_fetch_at": entry.next_fetch_at,
        "answer": _all_fields(entry.answer),
        "outage": _all_fields(entry.outage),
    }


@set_module("robotsgate.caching")
def file_in_entry(key: str, data: bytes) -> bytes | None:
    """The robots.txt in a stored entry, decoded; the arguments of `entry_as_dict`.

    `None` if the entry has none, or the bytes are unreadable.
    """
    origin, _, terms = key.partition(" ")
    try:
        entry = decode(data, origin=origin, terms=terms, max_bytes=_LONGEST_BODY)
    except CodecError:
        return None
    packed = entry.packed
    return None if packed is None else unpack(packed)


def _parts(data: bytes, seed: int) -> tuple[bytes, Packed | None]:
    """The head and packed body, if any, of `data`, which must be undamaged."""
    version, checksum = _FRAME.unpack_from(data)
    if checksum != zlib.crc32(memoryview(data)[_FRAME.size :], seed):
        raise CodecError("expected bytes that match their checksum")
    if version != VERSION:
        kind = LaterVersionError if version > VERSION else CodecError
        raise kind(f"expected an entry of version {VERSION}, got {version}")
    length = int.from_bytes(data[_FRAME.size : _BYTES_BEFORE_HEAD], "big")
    if length > _LONGEST_HEAD:
        raise CodecError(f"expected a head of at most {_LONGEST_HEAD} bytes")
    end = _BYTES_BEFORE_HEAD + length
    packed = Packed(data[end:]) if end < len(data) else None
    return data[_BYTES_BEFORE_HEAD:end], packed


def _fields(value: Answer | Outage | None) -> dict[str, Any]:
    if value is None:
        return {}
    return {
        name: field.value if isinstance(field, Enum) else field
        for name in value.__slots__
        if name != "packed" and (field := getattr(value, name)) is not None
    }


def _all_fields(value: Answer | Outage | None) -> dict[str, Any] | None:
    if value is None:
        return None
    fields = {name: as_json(getattr(value, name)) for name in value.__slots__}
    fields.pop("packed", None)
    if isinstance(value, Answer) and value.packed is not None:
        fields["body_bytes"] = len(unpack(value.packed))
    return fields


def _entry(
    head: dict[str, Any],
    packed: Packed | None,
    origin: str,
    terms: str,
    max_bytes: int,
) -> Entry:
    answer = outage = None
    if "answer" in head or packed is not None:
        answer = Answer(**_read(head["answer"]), packed=packed)
    if packed is not None:
        _check_body(packed, max_bytes)
    if "outage" in head:
        outage = Outage(**_read(head["outage"]))
    return Entry(origin=origin, terms=terms, answer=answer, outage=outage)


def _read(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: _READERS[name](field) for name, field in fields.items()}


def _check_body(packed: Packed, max_bytes: int) -> None:
    """Decompress the body once, so that later reads can assume it is intact."""
    unpacking = zlib.decompressobj()
    body = unpacking.decompress(packed, max_bytes + 1)
    if len(body) > max_bytes or not unpacking.eof or unpacking.unused_data:
        raise CodecError(f"expected a body of at most {max_bytes} bytes")


def _seed(origin: str, terms: str) -> int:
    return zlib.crc32(key_of(origin, terms).encode("utf-8", "surrogatepass"))


def _time(value: object) -> float:
    # JSON's true becomes a bool, which is an int in Python.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise CodecError(f"expected epoch seconds, got {value!r}")
    if not math.isfinite(value):
        raise CodecError(f"expected finite epoch seconds, got {value!r}")
    return float(value)


def _count(value: object) -> int:
    if (
        not isinstance(value, int)
        or isinstance(value, bool)
        or not 0 <= value <= _LARGEST_COUNT
    ):
        raise CodecError(f"expected a count, got {value!r}")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise CodecError(f"expected text, got {value!r}")
    return value


def _redirects(value: object) -> Redirects:
    if not isinstance(value, list):
        raise CodecError(f"expected redirects, got {value!r}")
    return tuple((_text(url), _count(status)) for url, status in value)


_READERS: dict[str, Callable[[Any], object]] = {
    "access": AccessResult,
    "answered_at": _time,
    "fresh_until": _time,
    "since": _time,
    "last_attempt_at": _time,
    "retry_at": _time,
    "evidence_since": _time,
    "last_evidence_at": _time,
    "attempts": _count,
    "days": _count,
    "status": _count,
    "redirects": _redirects,
    "failure": FailureKind,
    "error": _text,
}
