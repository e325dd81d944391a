"""Serializes a host's record for a store. Pure.

The bytes are a version (1 byte), a CRC-32 of what follows (4 bytes), and doubles: when
the record was written, the fields of the pace, those of the record, the number of open
turns and their start times, and the pairs in the queue.
"""

from __future__ import annotations

import struct
import zlib

from robotsgate.politeness._host_record import HostRecord, Pace

_VERSION = b"\x01"
_FRAME = struct.Struct(">cI")
_BYTES_OF_A_NUMBER = 8
_NUMBERS_BEFORE_TURNS = 15


class RecordError(ValueError):
    """Bytes that are not a record, or that another version has written."""


def encode(record: HostRecord, now: float) -> bytes:
    """Serialize `record`, written at `now` by its own clock."""
    pace, ended_at, turns, *fields, queue, turn_seconds = record
    numbers = [
        now,
        pace.delay,
        pace.max_at_once,
        pace.max_delay,
        pace.max_turn_seconds,
        pace.delay_factor,
        ended_at,
        *fields,
        turn_seconds,
        len(turns),
        *turns,
        *(number for place in queue for number in place),
    ]
    body = struct.pack(f">{len(numbers)}d", *numbers)
    return _FRAME.pack(_VERSION, zlib.crc32(body)) + body


def decode(data: bytes) -> tuple[float, HostRecord]:
    """When a record was written, and the record.

    Raises:
        RecordError: `data` is damaged, or `encode` of this version has not written it.
    """
    body = data[_FRAME.size :]
    count, rest = divmod(len(body), _BYTES_OF_A_NUMBER)
    is_whole = not rest and count >= _NUMBERS_BEFORE_TURNS
    if not is_whole or data[: _FRAME.size] != _FRAME.pack(_VERSION, zlib.crc32(body)):
        raise RecordError(f"expected a host's record, got {data[:20]!r}")
    try:
        return _record_in(struct.unpack(f">{count}d", body))
    except (ValueError, OverflowError) as error:
        raise RecordError(f"expected a host's record: {error}") from error


def _record_in(numbers: tuple[float, ...]) -> tuple[float, HostRecord]:
    written_at, delay, max_at_once, max_delay, max_turn_seconds = numbers[:5]
    delay_factor, ended_at, fetch_began_at, rest_until, incident_at = numbers[5:10]
    blocked_until, back_off, slowed_delay, turn_seconds, turns = numbers[10:15]
    first_place = _NUMBERS_BEFORE_TURNS + int(turns)
    places = numbers[first_place:]
    record = HostRecord(
        Pace(
            delay=delay,
            max_at_once=int(max_at_once),
            max_delay=max_delay,
            max_turn_seconds=max_turn_seconds,
            delay_factor=delay_factor,
        ),
        ended_at,
        numbers[_NUMBERS_BEFORE_TURNS:first_place],
        fetch_began_at,
        rest_until,
        incident_at,
        blocked_until,
        back_off,
        slowed_delay,
        tuple(zip(map(int, places[::2]), places[1::2], strict=True)),
        turn_seconds,
    )
    return written_at, record
