from __future__ import annotations

import dataclasses

import pytest

from robotsgate.caching._access import AccessResult
from robotsgate.caching._entry import Copy, Entry

from .builders import NOW, RULES, answered, first_entry


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="an empty file"),
        pytest.param(RULES, id="a usual file"),
        pytest.param(bytes(range(256)) * 8, id="every octet there is"),
        pytest.param(b"\xef\xbb\xbf\x00\xff\r\n", id="byte order mark and rubbish"),
        pytest.param(b"a" * 512_001, id="one byte beyond the limit"),
    ],
)
def test_body_comes_out_as_it_went_in(body: bytes) -> None:
    copy = Copy.of(body, fetched_at=NOW, fresh_until=NOW + 60)

    assert copy.body == body
    assert copy.fetched_at == NOW
    assert copy.fresh_until == NOW + 60


def test_copy_is_smaller_than_a_repetitive_body() -> None:
    body = RULES * 1_000

    copy = Copy.of(body, fetched_at=NOW, fresh_until=NOW)

    assert len(copy.packed) < len(body) / 50


def test_copies_of_one_body_are_equal() -> None:
    one = Copy.of(RULES, fetched_at=NOW, fresh_until=NOW)
    other = Copy.of(RULES, fetched_at=NOW, fresh_until=NOW)

    assert one == other
    assert hash(one) == hash(other)


def test_copy_is_frozen() -> None:
    copy = Copy.of(RULES, fetched_at=NOW, fresh_until=NOW)

    with pytest.raises(dataclasses.FrozenInstanceError):
        copy.fresh_until = NOW + 1  # type: ignore[misc]  # what must not work


def test_entry_is_frozen() -> None:
    entry = first_entry(answered())

    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.next_fetch_at = NOW  # type: ignore[misc]  # what must not work


def test_values_have_no_dict_for_ten_thousand_live_at_once() -> None:
    entry = first_entry(answered())

    assert not hasattr(entry, "__dict__")
    assert not hasattr(entry.copy, "__dict__")


def test_successful_entry_without_a_copy_is_refused() -> None:
    """It would mean an empty file, and so allow everything."""
    with pytest.raises(ValueError, match=r"copy .* 'https://example\.com'"):
        Entry(
            origin="https://example.com",
            access=AccessResult.SUCCESSFUL,
            checked_at=NOW,
            next_fetch_at=NOW + 60,
            retain_until=NOW + 60,
        )
