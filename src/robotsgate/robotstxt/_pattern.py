"""Says which targets one pattern matches (RFC 9309 §2.2.3).

A pattern is plain text but for "*", any characters, and a "$" at its end, the end of
the target. No regular expressions: nothing here can backtrack.
"""

from __future__ import annotations

import re

_SHORT_PART = 2

_STARS = re.compile(r"\*\*+")


def as_prefix(pattern: str) -> str | None:
    """What a target must begin with, where that is all that `pattern` asks for."""
    if pattern.endswith("$"):
        return None
    prefix = pattern.rstrip("*")
    return None if "*" in prefix else prefix


def parts(pattern: str) -> list[str]:
    """The plain texts between the stars of `pattern`; a run of stars is one star."""
    if "**" in pattern:
        pattern = _STARS.sub("*", pattern)
    return pattern.removesuffix("$").split("*")


def telling_part(pattern: str) -> str:
    """A text that a target must hold to be matched, and that few targets hold.

    Not the start, which many rules of a file have in common, unless the others are
    very short.
    """
    start, *others = parts(pattern)
    longest = max(reversed(others), key=len, default="")
    if len(longest) > _SHORT_PART or len(longest) >= len(start):
        return longest
    return start


def matches(pattern: str, target: str) -> bool:
    """Whether `pattern` matches `target`.

    Each part is taken where it first fits: a later place would leave less room for
    the parts that follow.
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
