"""Numbers that others wrote: read within bounds, and without raising."""

from __future__ import annotations

import math

import pytest

from robotsgate._numbers import decimal_number, whole_number
from tests.tables import cases

ZEROS = "0" * 5_000
NINES = "9" * 5_000

# `int` accepts some of these and raises for others; `str.isdigit` accepts the last row.
NOT_NUMBERS = (
    "", " ", "-1", "+1", " 1", "1 ", "1 0", "1_0", "1,5", "1e3", "0x10", "10s", "nan",
    "inf", "one", "1\x00", "\n1",
    "\u0661", "\uff11", "\u00bd",
    "\u00b2", "\u00b3\u00b9", "1\u00b2", "\u2074", "\u2460",
)  # fmt: skip


@cases("text number", {
    "zero": ("0", 0),
    "a number": ("600", 600),
    "leading zeros": ("007", 7),
    "more zeros than `int` accepts digits": (f"{ZEROS}600", 600),
    "only zeros": (ZEROS, 0),
    "one below the limit": ("999", 999),
    "the limit": ("1000", 1_000),
    "above the limit": ("1001", 1_000),
    "more digits than a float holds": ("9" * 400, 1_000),
    "more digits than `int` accepts": (NINES, 1_000),
})  # fmt: skip
def test_whole_number_is_bounded(text: str, number: int) -> None:
    assert whole_number(text, most=1_000) == number


@pytest.mark.parametrize("most", [2**31, 2**53])
def test_whole_number_is_exact_up_to_its_limit(most: int) -> None:
    numbers = [whole_number(str(most + step), most=most) for step in (-1, 0, 1)]

    assert numbers == [most - 1, most, most]


@cases("text number", {
    "a whole number": ("10", 10.0),
    "a fraction": ("0.5", 0.5),
    "no digit before the point": (".5", 0.5),
    "no digit after the point": ("5.", 5.0),
    "more zeros than `int` accepts digits": (f"{ZEROS}0.5", 0.5),
    "a long fraction": (f"0.5{ZEROS}1", 0.5),
    "more digits than a float holds": (NINES, math.inf),
})  # fmt: skip
def test_decimal_number_may_have_a_fraction(text: str, number: float) -> None:
    assert decimal_number(text) == number


@pytest.mark.parametrize("text", NOT_NUMBERS, ids=ascii)
def test_text_that_is_not_a_number_is_refused(text: str) -> None:
    assert whole_number(text, most=9) is None
    assert decimal_number(text) is None


@pytest.mark.parametrize("text", [".", "..", "1.2.3", "1..2", "-0.5", "1.5e3"])
def test_text_with_a_point_that_is_not_a_decimal_is_refused(text: str) -> None:
    assert decimal_number(text) is None


@pytest.mark.parametrize("text", ["1.", "1.0", ".1"])
def test_whole_number_has_no_point(text: str) -> None:
    assert whole_number(text, most=9) is None
