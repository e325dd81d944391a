from __future__ import annotations

from bisect import bisect_right

import pytest

from robotsgate.robotstxt._packed_strings import compact

MANY = [f"/{number:04}" for number in range(500)]


@pytest.mark.parametrize("count", [0, 1, 128, 129, 500])
def test_compact_strings_are_the_strings(count: int) -> None:
    strings = MANY[:count]

    packed = compact(strings)

    assert list(packed) == strings
    assert len(packed) == count
    assert list(packed[3:7]) == strings[3:7]


def test_packed_strings_can_be_searched() -> None:
    packed = compact(MANY)

    assert bisect_right(packed, "/0123x") == 124
    assert packed[123] == "/0123"
    with pytest.raises(IndexError):
        packed[500]


def test_packed_strings_may_be_empty_and_hold_any_text() -> None:
    strings = ["", "\u00e9", "a\nb"] * 100

    assert list(compact(strings)) == strings
