from __future__ import annotations

from bisect import bisect_right

import pytest

from robotsgate.robotstxt._packed_strings import _COMMON, compact, count_up_to, shared

MANY = [f"/{number:04}" for number in range(500)]


@pytest.mark.parametrize("count", [0, 1, 128, 129, 500])
def test_compact_strings_are_the_strings(count: int) -> None:
    strings = MANY[:count]

    packed = compact(strings)

    assert list(packed) == strings
    assert len(packed) == count
    assert list(packed[3:7]) == strings[3:7]


@pytest.mark.parametrize("count", [0, 1, 128, 129, 500])
def test_compact_strings_can_be_searched(count: int) -> None:
    strings = MANY[:count]
    packed = compact(strings)

    for text in ["", "/", "/00", *strings, *(f"{one}x" for one in strings), "/9"]:
        assert count_up_to(packed, text) == bisect_right(strings, text)


def test_packed_strings_end() -> None:
    packed = compact(MANY)

    assert packed[499] == "/0499"
    with pytest.raises(IndexError):
        packed[500]


def test_packed_strings_may_be_empty_and_hold_any_other_text() -> None:
    strings = ["", "\u00e9", "a\rb"] * 100

    assert list(compact(strings)) == strings


def test_strings_of_a_file_with_very_many_are_not_held_for_others() -> None:
    """One hostile file would fill the table for good."""
    strings = [f"/never-seen-{number}" for number in range(200)]
    before = len(_COMMON)

    assert shared(strings) == tuple(strings)
    assert len(_COMMON) == before
