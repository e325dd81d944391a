"""Says which targets one pattern matches (RFC 9309 §2.2.3).

A pattern is plain text but for "*", any characters, and a "$" at its end, the end of
the target. No regular expressions: nothing here can backtrack.
"""

from __future__ import annotations

_SHORT_PART = 2


def as_prefix(pattern: str) -> str | None:
    """What a target must begin with, where that is all that `pattern` asks for."""
    if pattern.endswith("$"):
        return None
    prefix = pattern.rstrip("*")
    return None if "*" in prefix else prefix


def telling_part(pattern: str) -> str:
    """A text that a target must hold to be matched, and that few targets hold.

    Not the start, which many rules of a file have in common, unless the others are
    very short.
    """
    start, _, rest = pattern.removesuffix("$").partition("*")
    longest = max(reversed(rest.split("*")), key=len) if "*" in rest else rest
    if len(longest) > _SHORT_PART or len(longest) >= len(start):
        return longest
    return start


def matches(pattern: str, target: str) -> bool:
    """Whether a pattern that `as_prefix` has no prefix for matches `target`.

    Each part is taken where it first fits: a later place would leave less room for
    the parts that follow.
    """
    start, *parts = pattern.removesuffix("$").split("*")
    if not parts:
        return target == start
    if not target.startswith(start):
        return False
    end = parts.pop() if pattern.endswith("$") else None
    position = len(start)
    for part in parts:
        position = target.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return end is None or (len(target) - len(end) >= position and target.endswith(end))
