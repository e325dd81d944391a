"""Stored octets: the same for ever, or refused."""

from __future__ import annotations

import dataclasses
import math
import struct
import sys
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robotsgate.caching import _codec
from robotsgate.caching._access import AccessResult
from robotsgate.caching._codec import (
    CodecError,
    UnknownVersionError,
    decoded,
    encoded,
)
from robotsgate.caching._entry import Copy, Entry
from robotsgate.caching._outcome import FailureKind

from .builders import DAY, NOW, ORIGIN

OTHER_ORIGIN = "https://example.org"

# Nothing but what an entry must have, and a response.
MISSING = Entry(
    origin=ORIGIN,
    access=AccessResult.UNAVAILABLE,
    checked_at=NOW,
    next_fetch_at=NOW + DAY,
    retain_until=NOW + DAY,
    status=404,
)
FETCHED = Entry(
    origin=ORIGIN,
    access=AccessResult.SUCCESSFUL,
    checked_at=NOW + 0.5,
    next_fetch_at=NOW + DAY + 0.5,
    retain_until=math.inf,
    status=200,
    redirects=2,
    copy=Copy(
        # Deflate's "stored" block, which every zlib makes alike.
        packed=bytes.fromhex("7801 010c00f3ff")
        + b"Disallow: /\n"
        + bytes.fromhex("1c9703d3"),
        fetched_at=NOW + 0.5,
        fresh_until=NOW + DAY + 0.5,
    ),
)
FAILED = Entry(
    origin="http://[::1]:8080",
    access=AccessResult.UNREACHABLE,
    checked_at=-1.5,
    next_fetch_at=0.0,
    retain_until=1e9,
    failure=FailureKind.TIMEOUT,
    failures=300,
    unreachable_since=-2.5,
    error="na“n\ud800",
)
FULL = dataclasses.replace(
    FAILED, origin=ORIGIN, status=599, redirects=5, copy=FETCHED.copy
)
FIRST_SIGHT = dataclasses.replace(FAILED, is_first_sight=True)
GUARDED = dataclasses.replace(MISSING, terms="off: 10.0.0.0/8", unreachable_since=0.0)
ENTRIES = {
    "missing": MISSING,
    "fetched": FETCHED,
    "failed": FAILED,
    "full": FULL,
    "guarded": GUARDED,
    "since first sight": FIRST_SIGHT,
}

GOLDEN = {
    "missing": """
        01 f992f42b  01 01
        41dad27480000000 41dad2c8e0000000 41dad2c8e0000000  00 00
        9403
    """,
    "fetched": """
        01 792a2cd4  11 00
        41dad27480200000 41dad2c8e0200000 7ff0000000000000  02 00
        c801
        41dad27480200000 41dad2c8e0200000
        7801 010c00f3ff 446973616c6c6f773a202f0a 1c9703d3
    """,
    "failed": """
        01 fbbb07e5  0e 02
        bff8000000000000 0000000000000000 41cdcd6500000000  00 ac02
        03
        c004000000000000
        09 6e61 e2809c 6e eda080
    """,
    "full": """
        01 da3cb387  1f 02
        bff8000000000000 0000000000000000 41cdcd6500000000  05 ac02
        d704
        03
        c004000000000000
        09 6e61 e2809c 6e eda080
        41dad27480200000 41dad2c8e0200000
        7801 010c00f3ff 446973616c6c6f773a202f0a 1c9703d3
    """,
    "since first sight": """
        01973904ac4e02bff8000000000000000000000000000041cdcd650000000000
        ac0203c004000000000000096e61e2809c6eeda080
    """,
    "guarded": """
        01 95f972e5  25 01
        41dad27480000000 41dad2c8e0000000 41dad2c8e0000000  00 00
        9403
        0000000000000000
        0f 6f66663a2031302e302e302e302f38
    """,
}


def sealed(payload: bytes, *, origin: str = ORIGIN) -> bytes:
    """`payload` as an entry whose version and checksum are right."""
    checksum = zlib.crc32(origin.encode() + payload)
    return struct.pack(">BI", 1, checksum) + payload


def payload_of(
    *, parts: int = 0, access: int = 1, counts: bytes = b"\x00\x00", rest: bytes = b""
) -> bytes:
    """A payload written by hand."""
    return struct.pack(">BBddd", parts, access, NOW, NOW, NOW) + counts + rest


# --- what is written ---------------------------------------------------------------


@pytest.mark.parametrize("name", ENTRIES)
def test_entry_is_written_as_it_always_was(name: str) -> None:
    """Files and servers are full of these: a change needs another version."""
    assert encoded(ENTRIES[name]).hex() == "".join(GOLDEN[name].split())


@pytest.mark.parametrize("name", ENTRIES)
def test_octets_are_read_as_they_always_were(name: str) -> None:
    entry = ENTRIES[name]

    assert decoded(bytes.fromhex(GOLDEN[name]), origin=entry.origin) == entry


@pytest.mark.parametrize(
    ("access", "number"),
    [
        (AccessResult.SUCCESSFUL, 0),
        (AccessResult.UNAVAILABLE, 1),
        (AccessResult.UNREACHABLE, 2),
        (AccessResult.RESTRICTED, 3),
    ],
)
def test_access_result_has_the_number_it_always_had(
    access: AccessResult, number: int
) -> None:
    octets = encoded(dataclasses.replace(FULL, access=access))

    assert octets[6] == number


@pytest.mark.parametrize(
    ("failure", "number"),
    [
        (FailureKind.NAME_RESOLUTION, 0),
        (FailureKind.CONNECT, 1),
        (FailureKind.TLS, 2),
        (FailureKind.TIMEOUT, 3),
        (FailureKind.TRANSFER, 4),
        (FailureKind.PROTOCOL, 5),
        (FailureKind.CODING, 6),
        (FailureKind.ADDRESS_REFUSED, 7),
        (FailureKind.OTHER, 8),
        (FailureKind.POOL, 9),
    ],
)
def test_failure_has_the_number_it_always_had(
    failure: FailureKind, number: int
) -> None:
    octets = encoded(dataclasses.replace(MISSING, status=None, failure=failure))

    assert octets[-1] == number


def test_every_access_result_and_failure_has_one_number() -> None:
    """Whoever adds a member gives it the next number, and a line above."""
    assert sorted(access.name for access in _codec._ACCESS_RESULTS) == sorted(
        AccessResult.__members__
    )
    assert sorted(failure.name for failure in _codec._FAILURES) == sorted(
        FailureKind.__members__
    )


# --- what comes back ---------------------------------------------------------------

TIMES = st.floats(allow_nan=False)
COUNTS = st.integers(0, 2**63 - 1)
TEXTS = st.text(st.characters(), max_size=40)
COPIES = st.builds(
    Copy, packed=st.binary(max_size=80), fetched_at=TIMES, fresh_until=TIMES
)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    """Any entry there can be."""
    access = draw(st.sampled_from(AccessResult))
    may_lack_copy = access is not AccessResult.SUCCESSFUL
    return Entry(
        origin=draw(TEXTS),
        access=access,
        checked_at=draw(TIMES),
        next_fetch_at=draw(TIMES),
        retain_until=draw(TIMES),
        status=draw(st.none() | COUNTS),
        redirects=draw(COUNTS),
        error=draw(st.none() | TEXTS),
        failure=draw(st.none() | st.sampled_from(FailureKind)),
        copy=draw(st.none() | COPIES if may_lack_copy else COPIES),
        unreachable_since=draw(st.none() | TIMES),
        failures=draw(COUNTS),
        terms=draw(TEXTS | st.sampled_from(["redirects", "off", ""])),
        is_first_sight=draw(st.booleans()),
    )


@settings(max_examples=500, derandomize=True, database=None, deadline=None)
@given(entry=entries())
def test_any_entry_comes_back_as_it_was(entry: Entry) -> None:
    found = decoded(encoded(entry), origin=entry.origin)

    assert found == entry
    assert repr(found) == repr(entry)  # which tells -0.0 from 0.0 as well


@settings(max_examples=100, derandomize=True, database=None, deadline=None)
@given(entry=entries())
def test_entry_is_written_alike_each_time(entry: Entry) -> None:
    octets = encoded(entry)

    assert encoded(decoded(octets, origin=entry.origin)) == octets


def test_time_that_is_an_int_comes_back_as_an_equal_float() -> None:
    entry = dataclasses.replace(MISSING, checked_at=1_800_000_000)

    assert decoded(encoded(entry), origin=ORIGIN) == entry


def test_time_that_is_no_number_comes_back_as_none() -> None:
    """Whoever uses the entry refuses it; the codec keeps what it is given."""
    entry = dataclasses.replace(MISSING, checked_at=math.nan)

    assert math.isnan(decoded(encoded(entry), origin=ORIGIN).checked_at)


def test_large_copy_comes_back_as_it_was() -> None:
    copy = Copy(packed=bytes(range(256)) * 4_000, fetched_at=NOW, fresh_until=NOW)
    entry = dataclasses.replace(FULL, copy=copy)

    assert decoded(encoded(entry), origin=ORIGIN) == entry


# --- what cannot be written --------------------------------------------------------

TOO_LARGE = 10**400  # for any float
NO_COUNTS = {
    "below 0": -1,
    "far below 0": -(2**70),
    "64 bits": 2**63,
    "huge": TOO_LARGE,
}


@pytest.mark.parametrize("field", ["status", "redirects", "failures"])
@pytest.mark.parametrize("number", NO_COUNTS.values(), ids=NO_COUNTS)
def test_count_out_of_range_is_refused(field: str, number: int) -> None:
    entry = dataclasses.replace(FULL, **{field: number})

    with pytest.raises(CodecError, match="numbers in range"):
        encoded(entry)


@pytest.mark.parametrize(
    "field", ["checked_at", "next_fetch_at", "retain_until", "unreachable_since"]
)
@pytest.mark.parametrize("number", [TOO_LARGE, -TOO_LARGE], ids=["future", "past"])
def test_time_that_no_float_holds_is_refused(field: str, number: int) -> None:
    entry = dataclasses.replace(FULL, **{field: number})

    with pytest.raises(CodecError, match="numbers in range"):
        encoded(entry)


@pytest.mark.parametrize("field", ["fetched_at", "fresh_until"])
def test_time_of_a_copy_that_no_float_holds_is_refused(field: str) -> None:
    copy = dataclasses.replace(FETCHED.copy, **{field: TOO_LARGE})

    with pytest.raises(CodecError, match="numbers in range"):
        encoded(dataclasses.replace(FETCHED, copy=copy))


@pytest.mark.parametrize("field", ["failures", "checked_at"])
def test_number_too_long_to_be_printed_is_refused(field: str) -> None:
    number = 10 ** sys.get_int_max_str_digits()
    entry = dataclasses.replace(FULL, **{field: number})

    with pytest.raises(CodecError, match="numbers in range"):
        encoded(entry)


def test_refusal_does_not_quote_the_copy() -> None:
    """What a stranger's server sent goes into no message and no log."""
    copy = Copy(packed=b"stranger" * 10_000, fetched_at=NOW, fresh_until=NOW)

    with pytest.raises(CodecError) as refusal:
        encoded(dataclasses.replace(FULL, copy=copy, failures=-1))

    assert ORIGIN in str(refusal.value)
    assert "stranger" not in str(refusal.value)


# --- what is not read --------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_octets_that_end_too_early_are_refused(entry: Entry) -> None:
    octets = encoded(entry)

    for length in range(len(octets)):
        with pytest.raises(CodecError):
            decoded(octets[:length], origin=entry.origin)


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_octets_with_one_more_are_refused(entry: Entry) -> None:
    octets = encoded(entry)

    for octet in range(256):
        with pytest.raises(CodecError):
            decoded(octets + bytes([octet]), origin=entry.origin)


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_octets_with_one_bit_changed_are_refused(entry: Entry) -> None:
    octets = encoded(entry)

    for place in range(8 * len(octets)):
        changed = bytearray(octets)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(CodecError):
            decoded(bytes(changed), origin=entry.origin)


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
@pytest.mark.parametrize("other", [OTHER_ORIGIN, "", f"{ORIGIN}:8443", "\ud800"])
def test_octets_of_another_origin_are_refused(entry: Entry, other: str) -> None:
    with pytest.raises(CodecError, match="unchanged"):
        decoded(encoded(entry), origin=other)


def test_no_octets_are_refused() -> None:
    with pytest.raises(CodecError, match="expected a whole entry of https://"):
        decoded(b"", origin=ORIGIN)


@pytest.mark.parametrize("version", [0, 2, 127, 255])
def test_another_version_is_refused_and_named(version: int) -> None:
    octets = bytes([version]) + encoded(FULL)[1:]

    with pytest.raises(
        UnknownVersionError, match=f"entry of version 1, got {version}"
    ) as refusal:
        decoded(octets, origin=ORIGIN)

    assert refusal.value.version == version


def test_version_is_told_even_where_nothing_follows() -> None:
    with pytest.raises(UnknownVersionError):
        decoded(b"\x02", origin=ORIGIN)


def test_payload_written_by_hand_is_read() -> None:
    """So that the refusals below are for their one fault."""
    entry = decoded(sealed(payload_of(parts=1, rest=b"\xc8\x01")), origin=ORIGIN)

    assert (entry.access, entry.status) == (AccessResult.UNAVAILABLE, 200)


TIME = struct.pack(">d", NOW)

WRONG_INSIDE = {
    "nothing": b"",
    "an access result without a number": payload_of(access=4),
    "the last of all access results": payload_of(access=255),
    "an unknown part": payload_of(parts=128),
    "known parts and an unknown one": payload_of(parts=0xBF, rest=b"\x00" * 99),
    "no second count": payload_of(counts=b"\x00"),
    "a count that does not end": payload_of(counts=b"\x80" * 9, rest=b"\x00" * 9),
    "a count of 64 bits": payload_of(counts=b"\xff" * 9 + b"\x01\x00"),
    "a part that is not there": payload_of(parts=1),
    "an unknown failure": payload_of(parts=2, rest=b"\x0a"),
    "no failure": payload_of(parts=2),
    "half a time": payload_of(parts=4, rest=TIME[:7]),
    "a text that ends too early": payload_of(parts=8, rest=b"\x03no"),
    "a text longer than memory": payload_of(parts=8, rest=b"\xff" * 8 + b"\x7fno"),
    "a text that is no UTF-8": payload_of(parts=8, rest=b"\x02\xc3("),
    "a guard that ends too early": payload_of(parts=32, rest=b"\x04off"),
    "a guard that is no UTF-8": payload_of(parts=32, rest=b"\x01\xff"),
    "half a copy": payload_of(parts=16, rest=TIME),
    "a successful entry without a copy": payload_of(access=0),
    "a rest behind the end": payload_of(rest=b"\x00"),
    "a rest behind a part": payload_of(parts=4, rest=TIME + b"\x00"),
}


@pytest.mark.parametrize("payload", WRONG_INSIDE.values(), ids=WRONG_INSIDE)
def test_payload_that_is_wrong_inside_is_refused(payload: bytes) -> None:
    with pytest.raises(CodecError):
        decoded(sealed(payload), origin=ORIGIN)


def test_largest_count_is_read() -> None:
    octets = sealed(payload_of(counts=b"\xff" * 8 + b"\x7f\x00"))

    assert decoded(octets, origin=ORIGIN).redirects == 2**63 - 1
