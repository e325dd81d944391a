"""Matches targets against patterns (RFC 9309 §2.2.3).

In a pattern, "*" matches any characters, and a "$" at its end matches the end of the
target. Everything else is literal. No regular expressions are used, so nothing can
backtrack.

Searching a long target for thousands of parts, one by one, may take time proportional
to the product of their lengths, and a hostile robots.txt may be designed to cause this.
So an `IndexedTarget` records the last occurrence of each short piece of the target.
Almost every pattern in such a file contains a piece that does not occur in the target,
or occurs too early, so no search is needed.
"""

from __future__ import annotations

import re

_SHORT_PART = 2

_STARS = re.compile(r"\*\*+")

# Longer parts are looked up piece by piece.
_LONGEST_PIECE = 8

# An index takes about 1 KB per character. No server accepts longer URLs.
_LONGEST_INDEXED = 32_768

# In a text of less than 30,000 characters, a search by CPython may take time
# proportional to the product of both lengths; in longer texts, to their sum
# (fastsearch.h, since 3.10). No pattern contains "#", because that starts a comment.
_FILLER = "#" * 30_000

# Takes at most half a megabyte; in real files, a fifth of all patterns are shared.
_COMMON: dict[str, str] = {}
_MANY_COMMON = 4_096
_LONGEST_COMMON = 40
_MANY_OF_A_FILE = 128


def as_prefix(pattern: str) -> str | None:
    """The prefix that targets must have, or `None` if `pattern` requires more.

    `pattern` ends with a star.
    """
    prefix = pattern.rstrip("*")
    return None if "*" in prefix else prefix


def parts(pattern: str) -> list[str]:
    """The strings between the stars in `pattern`, without "$"; "**" counts as "*"."""
    if "**" in pattern:
        pattern = _STARS.sub("*", pattern)
    return pattern.removesuffix("$").split("*")


def telling_part(pattern: str) -> str:
    """A string that every matching target contains, but few other targets do.

    The start of `pattern`, which many rules in a file share, is used only if the other
    parts are very short.
    """
    start, *others = parts(pattern)
    longest = ""
    for part in others:
        if len(part) >= len(longest):
            longest = part
    if len(longest) > _SHORT_PART or len(longest) >= len(start):
        return longest
    return start


def matches(pattern: str, target: str) -> bool:
    """Whether `pattern` matches `target`.

    Each part is matched at its first occurrence, because a later one would leave less
    room for the following parts.
    """
    start, *others = parts(pattern)
    has_end = pattern.endswith("$")
    if not others:
        return target == start if has_end else target.startswith(start)
    if not target.startswith(start):
        return False
    end = others.pop() if has_end else ""
    position = len(start)
    for part in others:
        position = target.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return len(target) - len(end) >= position and target.endswith(end)


class IndexedTarget:
    """A target to be matched against many patterns."""

    def __init__(self, target: str) -> None:
        """Store `target`; pieces of each length are indexed when first needed."""
        self._target = target
        self._searched = target + _FILLER
        self._indexes: list[dict[str, int] | None] = [None] * (_LONGEST_PIECE + 1)
        self._is_indexed = len(target) <= _LONGEST_INDEXED

    def matches(self, pattern: str) -> bool:
        """Like the function `matches`."""
        target = self._target
        has_end = pattern.endswith("$")
        # A quick check that excludes most rules in a hostile file.
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
        """The last index where `part` may start; negative if it does not occur."""
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
        """For each piece of the given length, the index of its last occurrence."""
        known = self._indexes[length]
        if known is None:
            target = self._target
            known = self._indexes[length] = {
                target[start : start + length]: start
                for start in range(len(target) - length + 1)
            }
        return known


def share(strings: list[str]) -> tuple[str, ...]:
    """`strings` as a tuple; the first 4,096 short strings ever passed are interned."""
    if len(_COMMON) >= _MANY_COMMON or len(strings) > _MANY_OF_A_FILE:
        return tuple(map(_COMMON.get, strings, strings))
    return tuple(
        [
            _COMMON.setdefault(one, one) if len(one) <= _LONGEST_COMMON else one
            for one in strings
        ]
    )
