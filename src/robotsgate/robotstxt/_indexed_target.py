"""Matches one long target against very many patterns.

To search a text for thousands of parts, one by one, takes the product of their
lengths at worst, and a robots.txt may be written to be that worst. Here it is known
for each short piece of the target where it last occurs; nearly all patterns of such
a file hold a piece that occurs nowhere, or too early, and are done with at once.
"""

from __future__ import annotations

from robotsgate.robotstxt._pattern import parts

# Longer parts are looked up by their pieces.
_LONGEST_PIECE = 8

# An index takes about 1 KB a character. No server takes such a URL.
_LONGEST_INDEXED = 32_768

# CPython searches texts of less than 30,000 characters in a way whose worst case is
# the product of both lengths; longer ones in their sum (its fastsearch.h, since
# 3.10). No pattern holds a "#": comments begin with it.
_FILLER = "#" * 30_000


class IndexedTarget:
    """A target that is asked about more than once."""

    def __init__(self, target: str) -> None:
        """Take over `target`; pieces are indexed when they are first asked for."""
        self._target = target
        self._searched = target + _FILLER
        self._indexes: list[dict[str, int] | None] = [None] * (_LONGEST_PIECE + 1)
        self._is_indexed = len(target) <= _LONGEST_INDEXED

    def matches(self, pattern: str) -> bool:
        """As `robotsgate.robotstxt._pattern.matches`."""
        target = self._target
        has_end = pattern.endswith("$")
        # Seen at a glance, and enough for most of the rules that a hostile file has.
        final = "" if has_end else pattern[pattern.rfind("*") + 1 :]
        if self._latest_start(final) < 0:
            return False
        if len(pattern) - pattern.count("*") - 1 > len(target):
            return False
        start, *others = parts(pattern)
        if not others:
            return target == start if has_end else target.startswith(start)
        end = others.pop() if has_end else ""
        if not (target.startswith(start) and target.endswith(end)):
            return False
        latest = []
        for part in others:
            last = self._latest_start(part)
            if last < 0:
                return False
            latest.append(last)
        position = len(start)
        for part, last in zip(others, latest, strict=True):
            if last < position:
                return False
            position = self._searched.find(part, position)
            if position < 0:
                return False
            position += len(part)
        return len(target) - len(end) >= position

    def _latest_start(self, part: str) -> int:
        """No place after this one holds `part`; negative where none does."""
        if not self._is_indexed:
            return len(self._target) - len(part)
        if len(part) <= _LONGEST_PIECE:
            return self._last_starts(len(part)).get(part, -1)
        last_starts = self._last_starts(_LONGEST_PIECE)
        final = len(part) - _LONGEST_PIECE
        latest = last_starts.get(part[final:], -1) - final
        for offset in range(0, final, _LONGEST_PIECE):
            if latest < 0:
                break
            piece = part[offset : offset + _LONGEST_PIECE]
            latest = min(latest, last_starts.get(piece, -1) - offset)
        return latest

    def _last_starts(self, length: int) -> dict[str, int]:
        """Where each piece of this length begins last."""
        known = self._indexes[length]
        if known is None:
            target = self._target
            known = self._indexes[length] = {
                target[start : start + length]: start
                for start in range(len(target) - length + 1)
            }
        return known
