"""Fuzzes stored entries: they survive a round trip or are rejected."""

from __future__ import annotations

import zlib

from robotsgate.caching._codec import VERSION, CodecError, decode, encode
from robotsgate.caching._entry import Answer, Entry, Outage, PackedBody, key_of
from robotsgate.caching._outcome import AccessResult, FailureKind
from tests.fuzzing.target import Target, as_text, fields, in_time, joined

_ORIGIN = "https://example.com"
_CHECKED_FROM = 5
_MAX_BYTES = 512_000


def check(data: bytes) -> None:
    """Decode bytes as they are, with a valid checksum, and as the head of an entry."""
    origin, terms, stored = fields(data, 3)
    key = as_text(origin), as_text(terms)
    _check_bytes(stored, key)
    head, _, packed = stored[_CHECKED_FROM + 4 :].partition(b"}}")
    written = head + b"}}"
    for checked in (
        stored[_CHECKED_FROM:],
        len(written).to_bytes(4, "big") + written + packed,
    ):
        entry = _check_bytes(_with_checksum(checked, key), key)
        if entry is not None:
            _check_damage(encode(entry), key, position=zlib.crc32(data))


def _read(data: bytes, key: tuple[str, str]) -> Entry:
    origin, terms = key
    return decode(data, origin=origin, terms=terms, max_bytes=_MAX_BYTES)


def _check_bytes(data: bytes, key: tuple[str, str]) -> Entry | None:
    """Decode `data`; an entry must survive a round trip."""
    try:
        entry = in_time("reading", lambda: _read(data, key))
    except CodecError:
        return None
    assert (entry.origin, entry.terms) == key
    if entry.answer is not None and entry.answer.packed is not None:
        assert len(entry.answer.packed.body) <= _MAX_BYTES
    encoded = in_time("writing", lambda: encode(entry))
    copy = _read(encoded, key)
    assert copy == entry
    assert repr(copy) == repr(entry)
    assert encode(copy) == encoded
    return entry


def _check_damage(data: bytes, key: tuple[str, str], *, position: int) -> None:
    """Check that a changed bit, a missing end and a different key are detected."""
    origin, terms = key
    changed = bytearray(data)
    changed[position // 8 % len(data)] ^= 1 << position % 8
    for damaged, other_key in (
        (bytes(changed), key),
        (data[: position % len(data)], key),
        (data, (origin + "/", terms)),
        (data, (origin, terms + "x")),
    ):
        try:
            entry = _read(damaged, other_key)
        except CodecError:
            continue
        raise AssertionError(f"damaged bytes were read as {entry!r}")


def _with_checksum(checked: bytes, key: tuple[str, str]) -> bytes:
    """`checked` with a version and a valid checksum for `key`."""
    seed = zlib.crc32(key_of(*key).encode("utf-8", "surrogatepass"))
    return bytes([VERSION]) + zlib.crc32(checked, seed).to_bytes(4, "big") + checked


def _seed(entry: Entry) -> bytes:
    return joined(entry.origin.encode(), entry.terms.encode(), encode(entry))


_FETCHED = Answer(
    access=AccessResult.SUCCESSFUL,
    answered_at=1_800_000_000.5,
    fresh_until=1_800_086_400.5,
    status=200,
    packed=PackedBody.of(b"Disallow: /"),
)

TARGET = Target(
    check=check,
    seeds=(
        _seed(Entry(origin=_ORIGIN, answer=_FETCHED)),
        _seed(
            Entry(
                origin=_ORIGIN,
                terms="guard=off",
                answer=Answer(
                    access=AccessResult.UNAVAILABLE,
                    answered_at=1_800_000_000.0,
                    fresh_until=1_800_086_400.0,
                    status=404,
                    redirects=(("https://example.com/a", 301),) * 5,
                ),
            )
        ),
        _seed(
            Entry(
                origin="http://[::1]:8080",
                answer=_FETCHED,
                outage=Outage(
                    since=-2.5,
                    last_attempt_at=-1.5,
                    retry_at=1e300,
                    attempts=2**63,
                    evidence_since=-2.5,
                    last_evidence_at=0.0,
                    days=300,
                    failure=FailureKind.TIMEOUT,
                    error="it said “no”\ud800",
                ),
            )
        ),
        _seed(
            Entry(
                origin="",
                outage=Outage(
                    since=0.0, last_attempt_at=0.0, retry_at=0.0, attempts=0, status=503
                ),
            )
        ),
    ),
    words=(
        b"\x00", b"\x01", b"\x02", b"\x03", b"\xff", b"\xfe", b"{", b"}", b"}}", b"[",
        b"]", b":", b",", b'"', b"null", b"true", b"NaN", b"Infinity", b"-0.0", b"-1",
        b"1e999", b"9" * 30, b'"\\ud800"', b'"answer":', b'"outage":', b'"access":',
        b'"packed":', b'"since":', b'"days":', b'"error":', b'"failure":', b'"tls"',
        b'"refused"', b'"successful"', b'"unreachable"', b"x\x9c",
        b"\x03\x00\x00\x00\x00\x01",
    ),
    max_length=512,
)  # fmt: skip
