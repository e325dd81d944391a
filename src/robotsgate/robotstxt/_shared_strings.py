"""Holds the patterns that many files have ("/wp-admin/") once for all of them."""

from __future__ import annotations

# Half a megabyte at the most. A third of the characters of real rules are in it.
_COMMON: dict[str, str] = {}
_MANY_COMMON = 4_096
_LONGEST_COMMON = 40
_MANY_OF_A_FILE = 128


def shared(strings: list[str]) -> tuple[str, ...]:
    """`strings`, the first thousands of all files held once for all."""
    if len(_COMMON) < _MANY_COMMON:
        for string in strings[:_MANY_OF_A_FILE]:
            if len(string) <= _LONGEST_COMMON:
                _COMMON.setdefault(string, string)
    return tuple(map(_COMMON.get, strings, strings))
