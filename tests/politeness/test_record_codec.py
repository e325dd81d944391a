from __future__ import annotations

import struct
import zlib

import pytest

from robotsgate.politeness._host_record import (
    HostRecord,
    Pace,
    decode,
    encode,
)
from tests.tables import cases

from .builders import NOW, pace

FULL = HostRecord(
    Pace(
        delay=0.1,
        max_at_once=2,
        max_delay=3.0,
        max_turn_seconds=4.0,
        delay_factor=0.5,
    ),
    ended_at=NOW + 0.1,
    turns=(NOW + 0.2, NOW + 0.3),
    fetch_began_at=NOW + 0.4,
    rest_until=NOW + 0.5,
    incident_at=NOW + 0.6,
    blocked_until=NOW + 0.7,
    back_off=60.0,
    slowed_delay=4.0,
    queue=((2**53 - 1, NOW + 0.8), (0, NOW + 0.9)),
    turn_seconds=0.25,
)


def framed(*numbers: float) -> bytes:
    """Numbers with a correct checksum."""
    body = struct.pack(f">{len(numbers)}d", *numbers)
    return b"\x01" + zlib.crc32(body).to_bytes(4, "big") + body


@pytest.mark.parametrize(
    "record", [FULL, HostRecord(pace())], ids=["everything", "nothing known"]
)
def test_record_is_decoded_as_it_was(record: HostRecord) -> None:
    assert decode(encode(record, NOW)) == (NOW, record)


@cases("data", {
    "nothing": (b"",),
    "text": (b"1 2 3",),
    "another version": (b"\x02" + encode(FULL, NOW)[1:],),
    "the last byte is missing": (encode(FULL, NOW)[:-1],),
    "a byte has changed": (encode(FULL, NOW)[:-1] + b"x",),
    "no numbers": (framed(),),
    "too few numbers": (framed(*[1.0] * 14),),
    "half a place in the queue": (framed(*[1.0] * 17),),
    "endless turns": (framed(*[1.0] * 14, float("inf")),),
})  # fmt: skip
def test_other_bytes_are_refused(data: bytes) -> None:
    assert decode(data) is None
