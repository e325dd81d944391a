from __future__ import annotations

import dataclasses
import math

import pytest

from robotsgate.caching._entry import (
    Answer,
    BackOff,
    Entry,
    Outage,
    PackedBody,
    PlainBody,
    current_until_for,
)
from robotsgate.caching._outcome import FailureKind
from robotsgate.caching._policy import AccessResult
from tests.tables import cases

from .builders import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    ORIGIN,
    RULES,
    answer,
    answered,
    attempt,
    entry,
    no_evidence,
    outage,
)

SKEW = 5 * MINUTE
MISSING = answer(AccessResult.UNAVAILABLE)
FAILING = outage(NOW + DAY)


@pytest.mark.parametrize("body", [
    b"", RULES, bytes(range(256)) * 8, b"\xef\xbb\xbf\x00\xff\r\n",
], ids=["an empty file", "a typical file", "every byte value", "garbage"])  # fmt: skip
def test_compressed_body_is_restored_exactly(body: bytes) -> None:
    last = attempt(None, answered(body=body)).answer

    assert last is not None
    assert last.packed is not None
    assert last.packed.body == body
    assert last.packed.body_within(max(len(body), 1)) == body


@pytest.mark.parametrize("size", [65_536, 65_537])
def test_body_is_compressed_fast_and_decompressed_up_to_a_limit(size: int) -> None:
    """This blocks the event loop. The second byte is zlib's compression level."""
    packed = PackedBody.of(b"x" * size)

    assert bytes(packed)[1:2] == b"\x01"
    assert packed.body_within(65_536) == (b"x" * size if size <= 65_536 else None)


@pytest.mark.parametrize(("limit", "within"), [(1, None), (2, b"xy"), (3, b"xy")])
def test_plain_body_is_returned_unchanged(limit: int, within: bytes | None) -> None:
    plain = PlainBody(b"xy")

    assert plain.body == b"xy"
    assert plain.body_within(limit) == within


def test_repetitive_body_is_stored_compactly() -> None:
    last = attempt(None, answered(body=RULES * 1_000)).answer

    assert last is not None
    assert last.packed is not None
    assert len(last.packed) < len(RULES) * 20
    assert "packed" not in repr(last)  # it may appear in a log


@pytest.mark.parametrize(("access", "packed"), [
    (AccessResult.SUCCESSFUL, None), (AccessResult.UNAVAILABLE, PackedBody(b"")),
    (AccessResult.RESTRICTED, PackedBody(b"x")),
    (AccessResult.REFUSED, PackedBody(b"x")), (AccessResult.UNREACHABLE, None),
    (AccessResult.UNREACHABLE, PackedBody(b"x")),
])  # fmt: skip
def test_answer_must_have_a_body_if_and_only_if_successful(
    access: AccessResult, packed: PackedBody | None
) -> None:
    """An empty file would allow everything."""
    with pytest.raises(ValueError, match="expected"):
        answer(access, packed=packed)


def test_empty_entry_is_refused() -> None:
    with pytest.raises(ValueError, match=f"an answer or an outage for '{ORIGIN}'"):
        Entry(origin=ORIGIN)


@cases("known access checked_at next_fetch_at", {
    "no file": (entry(MISSING), AccessResult.UNAVAILABLE, NOW, NOW + DAY),
    "a file": (entry(answer()), AccessResult.SUCCESSFUL, NOW, NOW + DAY),
    "an outage after an answer": (entry(MISSING, FAILING), AccessResult.UNREACHABLE,
        NOW + DAY, NOW + DAY + MINUTE),
    "an outage alone":
        (entry(None, FAILING), AccessResult.UNREACHABLE, NOW + DAY, NOW + DAY + MINUTE),
})  # fmt: skip
def test_properties_of_an_entry_describe_the_latest_fetch(
    known: Entry, access: AccessResult, checked_at: float, next_fetch_at: float
) -> None:
    assert known.access is access
    assert known.checked_at == checked_at
    assert known.next_fetch_at == next_fetch_at


@pytest.mark.parametrize("known", [entry(MISSING), entry(MISSING, outage(NOW))])
def test_entry_is_current_from_five_minutes_early_to_the_next_fetch(
    known: Entry,
) -> None:
    start, end = NOW - SKEW, known.next_fetch_at

    assert known.is_current(start)
    assert not known.is_current(math.nextafter(start, 0))
    assert known.is_current(math.nextafter(end, 0))
    assert not known.is_current(end)


RETRY = NOW + MINUTE
STALE = answer(fresh_until=NOW - DAY)
NO_RESPONSE = {
    "no connection": no_evidence(NOW, status=None, failure=FailureKind.CONNECT),
    "407": no_evidence(NOW, status=407),
}


@pytest.mark.parametrize("failure", NO_RESPONSE.values(), ids=NO_RESPONSE)
@cases("last own current_from current_until", {
    "a checker that has not tried": (STALE, None, 0, 0),
    "without an answer": (None, None, 0, 0),
    "after a fresh answer": (answer(), None, NOW, RETRY),
    "the checker's own attempt": (STALE, BackOff(NOW, RETRY), NOW, RETRY),
    "its own attempt a little earlier":
        (STALE, BackOff(NOW - 20, RETRY - 20), NOW, RETRY - 20),
    "its own attempt a little earlier, with a shorter back-off":
        (STALE, BackOff(NOW - 20, NOW + 10), NOW, NOW + 10),
    "its own attempt a little earlier, in a longer outage":
        (STALE, BackOff(NOW - 20, NOW + HOUR), NOW, RETRY - 20),
    "its own attempt long ago": (STALE, BackOff(NOW - MINUTE, NOW), 0, 0),
    "its own attempt before its clock was set back":
        (STALE, BackOff(NOW + HOUR, NOW + 2 * HOUR), 0, 0),
})  # fmt: skip
def test_failure_without_a_response_is_current_for_its_own_checker_only(
    last: Answer | None,
    own: BackOff | None,
    current_from: float,
    current_until: float,
    failure: Outage,
) -> None:
    known = entry(last, failure)

    for seconds in (0, 9, 10, 39, 40, 59, 60):
        now = NOW + seconds
        expected = current_from <= now < current_until
        assert (now < current_until_for(known, now, own)) is expected


def test_failure_with_a_response_is_current_for_all_checkers() -> None:
    for status in (206, 429, 500, 503):
        known = entry(STALE, outage(NOW, status=status))

        assert current_until_for(known, NOW, None) == RETRY
        assert current_until_for(known, RETRY, None) < NOW


def test_answer_is_fresh_from_five_minutes_early_until_it_expires() -> None:
    start, end = NOW - SKEW, NOW + DAY

    assert MISSING.is_fresh(start)
    assert not MISSING.is_ahead(start)
    assert not MISSING.is_fresh(math.nextafter(start, 0))
    assert MISSING.is_ahead(math.nextafter(start, 0))
    assert MISSING.is_fresh(math.nextafter(end, 0))
    assert not MISSING.is_fresh(end)


@pytest.mark.parametrize("value", [MISSING, FAILING, entry(MISSING)], ids=type)
def test_values_are_frozen_and_have_no_dict(value: Answer) -> None:
    """Ten thousand of them may be live at once."""
    name = dataclasses.fields(value)[0].name

    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(value, name, None)
    assert not hasattr(value, "__dict__")
