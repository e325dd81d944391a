"""Reads numbers written by others: in headers, robots.txt, pages and archives.

Pure. Nothing here raises, however long the text is: `int` raises for more than 4,300
digits, and for superscripts, which `str.isdigit` accepts. Only ASCII digits are read,
without a sign, exponent or separators.
"""

from __future__ import annotations


def decimal_number(text: str) -> float | None:
    """The number in `text`, such as "7", "0.5" or ".5", otherwise `None`.

    It is infinite if a float cannot hold it.
    """
    digits = text.replace(".", "", 1)
    return float(text) if digits.isascii() and digits.isdigit() else None


def whole_number(text: str, *, most: int) -> int | None:
    """The number in `text`, such as "7" or "007", otherwise `None`.

    It is `most` (≤ 2^53) if it is larger.
    """
    is_whole = text.isascii() and text.isdigit()
    return int(min(float(text), most)) if is_whole else None
