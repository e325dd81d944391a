"""Says which targets one pattern matches (RFC 9309 §2.2.3).

In a pattern, "*" stands for any characters, and a "$" at its end for the end of the
target. The rest is plain text. No regular expressions: nothing here can backtrack.
"""

from __future__ import annotations

import re

_SHORT_PART = 2

_STARS = re.compile(r"\*\*+")


def as_prefix(pattern: str) -> str | None:
    """The prefix that targets must have, or `None` if `pattern` asks for more."""
    if pattern.endswith("$"):
        return None
    prefix = pattern.rstrip("*")
    return None if "*" in prefix else prefix


def parts(pattern: str) -> list[str]:
    """The texts between the stars of `pattern`, without "$"; a run is one star."""
    if "**" in pattern:
        pattern = _STARS.sub("*", pattern)
    return pattern.removesuffix("$").split("*")


def telling_part(pattern: str) -> str:
    """A text that every matching target holds, and few other targets do.

    Not the start of `pattern`, which many rules of a file share, unless its other
    parts are very short.
    """
    start, *others = parts(pattern)
    longest = max(reversed(others), key=len, default="")
    if len(longest) > _SHORT_PART or len(longest) >= len(start):
        return longest
    return start


def matches(pattern: str, target: str) -> bool:
    """Whether `pattern` matches `target`.

    Each part is taken where it first fits, because a later place would leave less
    room for the parts that follow.
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
