"""A slow, obviously correct matcher to check the fast one against.

It follows RFC 9309 §2.2.2 and §2.2.3 to the letter: each rule is tried on its own,
and a pattern is matched character by character, with the set of positions in the
target that it may have reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Record = tuple[bool, str]
"""Whether a rule allows, and its pattern."""

_HEX = "0123456789abcdefABCDEF"
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_RESERVED = ":/?#[]@!$&'()*+,;="


def matches(pattern: str, target: str) -> bool:
    """Whether `pattern` matches a prefix of `target`, or all of it if it has a "$"."""
    is_anchored = pattern.endswith("$")
    if is_anchored:
        pattern = pattern[:-1]
    positions = {0}
    for character in pattern:
        if character == "*":
            positions = set(range(min(positions), len(target) + 1))
        else:
            positions = {
                position + 1
                for position in positions
                if target[position : position + 1] == character
            }
        if not positions:
            return False
    return len(target) in positions if is_anchored else True


def decisive(rules: Iterable[Record], target: str) -> int | None:
    """The index of the decisive rule: the longest, then allow, then the first."""
    return next(iter(matching(rules, target)), None)


def matching(rules: Iterable[Record], target: str) -> list[int]:
    """The indexes of the matching rules, the decisive one first."""
    ranked = [
        (-len(pattern), not is_allow, index)
        for index, (is_allow, pattern) in enumerate(rules)
        if pattern and matches(pattern, target)
    ]
    return [index for _, _, index in sorted(ranked)]


def allows(rules: Sequence[Record], target: str) -> bool:
    """Whether `target` may be fetched, which it may if no rule matches."""
    index = decisive(rules, target)
    return index is None or rules[index][0]


def spelling(octets: bytes) -> str:
    """Bytes as text, with every percent-encoding in one form (RFC 9309 §2.2.2)."""
    text = ""
    position = 0
    while position < len(octets):
        character = chr(octets[position])
        digits = octets[position + 1 : position + 3].decode("latin-1")
        if character == "%" and len(digits) == 2 and set(digits) <= set(_HEX):
            decoded = chr(int(digits, 16))
            text += decoded if decoded in _UNRESERVED else f"%{digits.upper()}"
            position += 3
        elif character == "%" and digits and digits[0] in _HEX:
            text += f"%{digits[0].upper()}"
            position += 2
        else:
            is_kept = character in _UNRESERVED + _RESERVED + "%"
            text += character if is_kept else f"%{octets[position]:02X}"
            position += 1
    return text


def pattern_spelling(octets: bytes) -> str:
    """A pattern in the form that `spelling` returns; "$" is special only at the end."""
    pattern = spelling(octets)
    end = "$" if pattern.endswith("$") else ""
    return pattern.removesuffix("$").replace("$", "%24") + end
