"""Matches one long target against very many patterns.

To search a text for thousands of parts, one by one, takes up to the product of their
lengths, and a hostile robots.txt may be written to take that long. So an index tells
where each short piece of the target occurs last. Nearly every pattern of such a file
holds a piece that occurs nowhere, or too early, and needs no search.
"""

from __future__ import annotations

from robotsgate.robotstxt._pattern import parts

# Longer parts are looked up piece by piece.
_LONGEST_PIECE = 8

# An index takes about 1 KB for each character. No server takes longer URLs.
_LONGEST_INDEXED = 32_768

# CPython may need time for the product of both lengths to search a text of less than
# 30,000 characters. In a longer text it needs only their sum (fastsearch.h, since
# 3.10). No pattern holds a "#", because that begins a comment.
_FILLER = "#" * 30_000


class IndexedTarget:
    """A target that many patterns are matched against."""

    def __init__(self, target: str) -> None:
        """Keep `target`; each length of pieces is indexed when it is first needed."""
        self._target = target
        self._searched = target + _FILLER
        self._indexes: list[dict[str, int] | None] = [None] * (_LONGEST_PIECE + 1)
        self._is_indexed = len(target) <= _LONGEST_INDEXED

    def matches(self, pattern: str) -> bool:
        """As `robotsgate.robotstxt._pattern.matches`."""
        target = self._target
        has_end = pattern.endswith("$")
        # A quick test, which excludes most of the rules that a hostile file has.
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
        """An index after which `part` does not begin; negative if it never does."""
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
        """For each piece of this length the index where it begins last."""
        known = self._indexes[length]
        if known is None:
            target = self._target
            known = self._indexes[length] = {
                target[start : start + length]: start
                for start in range(len(target) - length + 1)
            }
        return known
