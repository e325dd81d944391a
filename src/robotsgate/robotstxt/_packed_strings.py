"""Holds many short strings in the memory that their characters take.

A `str` of twenty characters takes seventy bytes. Most files have too few rules for
that to matter; a few have tens of thousands.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import overload

__all__ = ["compact"]

# Packed strings cost a slice at each look: not worth it for an average file.
_FEW_STRINGS = 128


def compact(strings: list[str]) -> Sequence[str]:
    """`strings` as a tuple, or packed where they are many."""
    if len(strings) <= _FEW_STRINGS:
        return tuple(strings)
    return _PackedStrings(strings)


class _PackedStrings(Sequence[str]):
    """The strings one behind the other in one, and where each ends."""

    __slots__ = ("_characters", "_ends")

    def __init__(self, strings: Sequence[str]) -> None:
        self._characters = "".join(strings)
        self._ends = array("I", accumulate(map(len, strings), initial=0))

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        if index >= len(self):  # how iteration over a sequence ends
            raise IndexError(index)
        return self._characters[self._ends[index] : self._ends[index + 1]]
