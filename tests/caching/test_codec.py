"""Serialized entries: the format never changes, and bad bytes are refused."""

from __future__ import annotations

import dataclasses
import json
import math
import tracemalloc
import zlib
from dataclasses import replace
from typing import Any

import pytest

from robotsgate.caching._codec import CodecError, LaterVersionError, decode, encode
from robotsgate.caching._entry import Entry, Packed, unpack
from robotsgate.caching._outcome import FailureKind
from robotsgate.caching._policy import AccessResult

from .builders import HOPS, NOW, ORIGIN, RULES, answer, entry, outage

MAX_BYTES = 512_000

MISSING = entry(answer(AccessResult.UNAVAILABLE, status=404, redirects=HOPS))
FETCHED = Entry(
    origin=ORIGIN,
    terms="guard=off",
    answer=answer(
        status=200,
        # Deflate's "stored" block, which is the same from every zlib.
        packed=Packed(
            bytes.fromhex("7801 010c00f3ff")
            + b"Disallow: /\n"
            + bytes.fromhex("1c9703d3")
        ),
    ),
    outage=outage(
        NOW + 0.5, status=None, failure=FailureKind.TIMEOUT, error="na“n\ud800"
    ),
)
FAILED = entry(
    None,
    outage(-1.5, evidence_since=None, last_evidence_at=None, days=0, status=429),
)
ENTRIES = {"missing": MISSING, "fetched": FETCHED, "failed": FAILED}

GOLDEN = {
    "missing": b"\x03\xc4\x94\xce\xe8\0\0\0\xb2"
    b'{"answer":{"access":"unavailable","answered_at":1800000000.0,'
    b'"fresh_until":1800086400.0,"status":404,"redirects":['
    b'["https://example.com/a",302],["https://other.example/b",301]]}}',
    "fetched": b"\x03\x8f\xdb>\xad\0\0\x01\\"
    b'{"answer":{"access":"successful","answered_at":1800000000.0,'
    b'"fresh_until":1800086400.0,"status":200,"redirects":[]},'
    b'"outage":{"since":1800000000.5,"last_attempt_at":1800000000.5,'
    b'"retry_at":1800000060.5,"attempts":1,"evidence_since":1800000000.5,'
    b'"last_evidence_at":1800000000.5,"days":1,"failure":"timeout","redirects":[],'
    b'"error":"na\\u201cn\\ud800"}}'
    b"x\x01\x01\x0c\0\xf3\xffDisallow: /\n\x1c\x97\x03\xd3",
    "failed": b"\x03\x08WA \0\0\0r"
    b'{"outage":{"since":-1.5,"last_attempt_at":-1.5,"retry_at":58.5,"attempts":1,'
    b'"days":0,"status":429,"redirects":[]}}',
}


def read(data: bytes, known: Entry, *, max_bytes: int = MAX_BYTES) -> Entry:
    return decode(data, origin=known.origin, terms=known.terms, max_bytes=max_bytes)


def sealed(head: object, packed: bytes = b"") -> bytes:
    """A handwritten entry for `ORIGIN` with a correct checksum."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return framed(len(text).to_bytes(4, "big") + text + packed)


def framed(checked: bytes, *, version: int = 3, key: str = ORIGIN) -> bytes:
    """What every version has in common: its number, and a correct checksum."""
    checksum = zlib.crc32(checked, zlib.crc32(key.encode()))
    return bytes([version]) + checksum.to_bytes(4, "big") + checked


ANSWER: dict[str, Any] = {"access": "unavailable", "answered_at": NOW, "fresh_until": 0}
OUTAGE: dict[str, Any] = {
    "since": NOW,
    "last_attempt_at": NOW,
    "retry_at": NOW,
    "attempts": 1,
}
FILE = ANSWER | {"access": "successful"}
PACKED = zlib.compress(RULES)


# --- encoding and decoding ---------------------------------------------------------


@pytest.mark.parametrize("name", ENTRIES)
def test_encoding_never_changes(name: str) -> None:
    """Existing stores are full of these bytes; a change needs a new version."""
    assert encode(ENTRIES[name]) == GOLDEN[name]


@pytest.mark.parametrize("name", ENTRIES)
def test_existing_bytes_can_always_be_decoded(name: str) -> None:
    assert read(GOLDEN[name], ENTRIES[name]) == ENTRIES[name]


def test_names_used_in_stores_never_change() -> None:
    assert [access.value for access in AccessResult] == [
        "successful",
        "unavailable",
        "unreachable",
        "restricted",
        "refused",
    ]
    assert [kind.value for kind in FailureKind] == [
        "name-resolution",
        "connect",
        "tls",
        "timeout",
        "transfer",
        "protocol",
        "coding",
        "address-refused",
        "local",
        "other",
    ]


def test_every_field_of_an_entry_is_decoded() -> None:
    """Without a reader for a newly added field, no entry could be decoded."""
    full = Entry(
        origin=ORIGIN,
        answer=replace(answer(), retry_at=NOW, status=1, error="x"),
        outage=replace(outage(NOW), failure=FailureKind.TLS, error="x"),
    )
    values = dataclasses.asdict(full)

    assert read(encode(full), full) == full
    assert None not in [*values["answer"].values(), *values["outage"].values()]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_non_finite_time_is_never_encoded(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode(entry(answer(fresh_until=number)))


# --- damaged bytes -----------------------------------------------------------------


@pytest.mark.parametrize("known", ENTRIES.values(), ids=ENTRIES)
def test_damaged_bytes_are_refused(known: Entry) -> None:
    data = encode(known)
    flipped = [
        data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]
        for bit in range(8 * len(data))
    ]
    cut = [data[:length] for length in range(len(data))]
    longer = [data + bytes([byte]) for byte in range(256)]

    for damaged in flipped + cut + longer:
        with pytest.raises(CodecError):
            read(damaged, known)


@pytest.mark.parametrize("known", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize(("origin", "terms"), [
    ("https://example.org", ""), ("", ""), ("\ud800", ""),
    (f"{ORIGIN}:8443", "guard=off"), (ORIGIN, "guard=public-only"),
])  # fmt: skip
def test_bytes_from_another_key_are_refused(
    known: Entry, origin: str, terms: str
) -> None:
    with pytest.raises(CodecError, match="checksum"):
        decode(encode(known), origin=origin, terms=terms, max_bytes=MAX_BYTES)


@pytest.mark.parametrize("version", [4, 127, 255])
@pytest.mark.parametrize("checked", [b"", b"x", b"whatever it contains"])
def test_later_version_is_recognized_by_its_checksum(
    version: int, checked: bytes
) -> None:
    data = framed(checked, version=version)

    with pytest.raises(LaterVersionError, match=f"version 3, got {version}"):
        read(data, MISSING)


@pytest.mark.parametrize("data", [
    pytest.param(b"User-agent: *\n", id="text"),
    pytest.param(b"\xff" * 100, id="the same byte again and again"),
    pytest.param(b"\x04", id="only a version"),
    pytest.param(framed(b"x", version=4)[:-1], id="a truncated entry"),
    pytest.param(framed(b"x", version=4, key="http://a.example"), id="another key"),
])  # fmt: skip
def test_damaged_bytes_are_not_a_later_version(data: bytes) -> None:
    """Only the first byte used to count, so garbage was never replaced."""
    with pytest.raises(CodecError) as refusal:
        read(data, MISSING)

    assert not isinstance(refusal.value, LaterVersionError)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_earlier_version_is_refused_with_its_number(version: int) -> None:
    data = bytes([version]) + encode(MISSING)[1:]

    with pytest.raises(CodecError, match=f"version 3, got {version}"):
        read(data, MISSING)


# --- intact bytes that are not an entry --------------------------------------------


def test_handwritten_entry_is_decoded() -> None:
    """This shows that each entry below is refused only because of its one fault."""
    assert read(sealed({"answer": ANSWER}), MISSING).access is AccessResult.UNAVAILABLE
    assert read(sealed({"outage": OUTAGE}), MISSING).access is AccessResult.UNREACHABLE
    fetched = read(sealed({"answer": FILE}, PACKED), MISSING)
    assert fetched.answer is not None
    assert fetched.answer.packed is not None
    assert unpack(fetched.answer.packed) == RULES


NOT_NUMBERS: tuple[object, ...] = ("1", None, True, [])
NOT_STRINGS: tuple[object, ...] = (1, None, True, [])
INVALID: dict[str, bytes] = {
    "not JSON": sealed(b"{"),
    "not UTF-8": sealed(b"\xff"),
    "deep nesting": sealed(b"[" * 100_000),
    "an oversized head": sealed({"answer": ANSWER | {"error": "x" * 600_000}}),
    "a list": sealed([]),
    "a number": sealed(5),
    "null": sealed(None),
    "neither an answer nor an outage": sealed({}),
    "a string for an answer": sealed({"answer": "x"}),
    "null for an answer": sealed({"answer": None}),
    "an answer without its fields": sealed({"answer": {}}),
    "an answer without a time": sealed({"answer": {"access": "refused"}}),
    "an outage without its fields": sealed({"outage": {}}),
    "an unknown field": sealed({"answer": ANSWER | {"x": 1}}),
    "an outage field in an answer": sealed({"answer": ANSWER | {"days": 1}}),
    "a body in the head": sealed({"answer": FILE | {"packed": "x"}}, PACKED),
    "an unknown access result": sealed({"answer": ANSWER | {"access": "x"}}),
    "an unreachable answer": sealed({"answer": ANSWER | {"access": "unreachable"}}),
    "an unknown failure": sealed({"outage": OUTAGE | {"failure": "x"}}),
    **{
        f"{value!r} for a time": sealed({"outage": OUTAGE | {"since": value}})
        for value in NOT_NUMBERS
    },
    **{f"{name} for a time": sealed({"outage": OUTAGE | {"since": value}}) for name,
        value in {"NaN": math.nan, "Infinity": math.inf}.items()},
    "an int too large for a float": sealed({"outage": OUTAGE | {"since": 10**400}}),
    "an infinite float": sealed(
        json.dumps({"outage": OUTAGE | {"since": 7}}).replace("7", "1e999").encode()
    ),
    **{
        f"{value!r} for a count": sealed({"outage": OUTAGE | {"attempts": value}})
        for value in (*NOT_NUMBERS, 1.0, -1)
    },
    "a count that would outgrow JSON": sealed(
        {"outage": OUTAGE | {"attempts": int("9" * 4_300)}}
    ),
    "thousands of digits": sealed(b'{"outage":{"attempts":' + b"9" * 5_000 + b"}}"),
    **{
        f"{value!r} for a string": sealed({"outage": OUTAGE | {"error": value}})
        for value in NOT_STRINGS
    },
    **{
        f"{value!r} for redirects": sealed({"outage": OUTAGE | {"redirects": value}})
        for value in (1, None, ["x"], [["x"]], [["x", "y"]], [[1, 2]], {"x": 1})
    },
    "a file without a body": sealed({"answer": FILE}),
    "a body without a file": sealed({"answer": ANSWER}, PACKED),
    "a body without an answer": sealed({"outage": OUTAGE}, PACKED),
    "an uncompressed body": sealed({"answer": FILE}, RULES),
    "a truncated body": sealed({"answer": FILE}, PACKED[:-1]),
    "a body with trailing bytes": sealed({"answer": FILE}, PACKED + b"\x00"),
    "a body with a wrong checksum": sealed({"answer": FILE}, PACKED[:-1] + b"\x00"),
}  # fmt: skip


@pytest.mark.parametrize("data", INVALID.values(), ids=INVALID)
def test_intact_bytes_that_are_not_an_entry_are_refused(data: bytes) -> None:
    with pytest.raises(CodecError):
        read(data, MISSING)


@pytest.mark.parametrize("size", [0, 1, 1_000])
def test_body_of_max_bytes_is_decoded(size: int) -> None:
    data = sealed({"answer": FILE}, zlib.compress(b"x" * size))

    last = read(data, MISSING, max_bytes=size).answer

    assert last is not None
    assert last.packed is not None
    assert unpack(last.packed) == b"x" * size


@pytest.mark.parametrize(
    ("size", "max_bytes"), [(1, 0), (1_001, 1_000), (100_000_000, 1_000)]
)
def test_body_of_more_than_max_bytes_is_refused(size: int, max_bytes: int) -> None:
    """A few kilobytes in a store may decompress to gigabytes."""
    data = sealed({"answer": FILE}, zlib.compress(b"x" * size))

    tracemalloc.start()
    try:
        with pytest.raises(CodecError, match=f"at most {max_bytes} bytes"):
            read(data, MISSING, max_bytes=max_bytes)
        _, memory = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert memory < 1_000_000
