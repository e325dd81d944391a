"""Holds many short strings in about the memory that their characters take.

A `str` of twenty characters takes seventy bytes. Most files have too few rules for
that to matter; a few have tens of thousands.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

if TYPE_CHECKING:
    from collections.abc import Iterator

# Packed strings cost a split at each look: not worth it for an average file.
_FEW_STRINGS = 128

_BLOCK = 16

# Half a megabyte at the most. A third of the characters of real rules are in it.
_COMMON: dict[str, str] = {}
_MANY_COMMON = 4_096
_LONGEST_COMMON = 40


def compact(strings: list[str]) -> Sequence[str]:
    """`strings`, in which there is no LF, as a tuple, or packed where they are many."""
    if len(strings) <= _FEW_STRINGS:
        return shared(strings)
    return _PackedStrings(strings)


def shared(strings: list[str]) -> tuple[str, ...]:
    """`strings` as a tuple; what many files have in common is held once for all.

    The first few thousand strings that come are shared: "/wp-admin/" is among them.
    Those of files with very many are not, for they would leave no room.
    """
    if len(strings) > _FEW_STRINGS:
        return tuple(strings)
    if len(_COMMON) < _MANY_COMMON:
        return tuple(
            [
                _COMMON.setdefault(string, string)
                if len(string) <= _LONGEST_COMMON
                else string
                for string in strings
            ]
        )
    return tuple([_COMMON.get(string, string) for string in strings])


def count_up_to(strings: Sequence[str], text: str) -> int:
    """How many of `strings`, which are sorted, come before `text` or are equal."""
    if type(strings) is _PackedStrings:  # isinstance of an ABC takes a microsecond
        return strings.count_up_to(text)
    return bisect_right(strings, text)


class _PackedStrings(Sequence[str]):
    """The strings joined, block by block, and the first of each block."""

    __slots__ = ("_blocks", "_firsts", "_length")

    def __init__(self, strings: list[str]) -> None:
        self._length = len(strings)
        self._firsts = tuple(strings[::_BLOCK])
        self._blocks = tuple(
            "\n".join(strings[start : start + _BLOCK])
            for start in range(0, len(strings), _BLOCK)
        )

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[str]:
        for block in self._blocks:
            yield from block.split("\n")

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return [self[number] for number in range(self._length)[index]]
        block, place = divmod(index, _BLOCK)
        return self._blocks[block].split("\n")[place]

    def count_up_to(self, text: str) -> int:
        block = bisect_right(self._firsts, text) - 1
        if block < 0:
            return 0
        return block * _BLOCK + bisect_right(self._blocks[block].split("\n"), text)
