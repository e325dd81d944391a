"""A matcher that is plainly right and slow: what the fast one is measured by.

It follows RFC 9309 §2.2.2 and §2.2.3 word by word: each rule is tried on its own,
and a pattern is followed octet by octet with the set of places where it may stand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = [
    "Record", "allows", "decisive", "matches", "matching", "pattern_spelling",
    "spelling",
]  # fmt: skip

Record = tuple[bool, str]
"""Whether a rule allows, and its pattern."""

_HEX = "0123456789abcdefABCDEF"
_UNRESERVED = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
_RESERVED = ":/?#[]@!$&'()*+,;="


def matches(pattern: str, target: str) -> bool:
    """Whether `pattern` matches a start of `target`, or all of it before a "$"."""
    is_anchored = pattern.endswith("$")
    if is_anchored:
        pattern = pattern[:-1]
    places = {0}
    for character in pattern:
        if character == "*":
            places = set(range(min(places), len(target) + 1))
        else:
            places = {
                place + 1 for place in places if target[place : place + 1] == character
            }
        if not places:
            return False
    return len(target) in places if is_anchored else True


def decisive(rules: Iterable[Record], target: str) -> int | None:
    """The number of the rule that decides: the longest, then allow, then the first."""
    return next(iter(matching(rules, target)), None)


def matching(rules: Iterable[Record], target: str) -> list[int]:
    """The numbers of the rules that match, that which decides first."""
    ranked = [
        (-len(pattern), not is_allow, number)
        for number, (is_allow, pattern) in enumerate(rules)
        if pattern and matches(pattern, target)
    ]
    return [number for _, _, number in sorted(ranked)]


def allows(rules: Sequence[Record], target: str) -> bool:
    """Whether `target` may be fetched; what no rule matches may."""
    number = decisive(rules, target)
    return number is None or rules[number][0]


def spelling(octets: bytes) -> str:
    """Octets with every percent-encoding in one form (RFC 9309 §2.2.2)."""
    written = ""
    place = 0
    while place < len(octets):
        digits = octets[place + 1 : place + 3].decode("latin-1")
        if octets[place] == ord("%") and len(digits) == 2 and set(digits) <= set(_HEX):
            decoded = chr(int(digits, 16))
            written += decoded if decoded in _UNRESERVED else f"%{digits.upper()}"
            place += 3
        else:
            character = chr(octets[place])
            is_kept = character in _UNRESERVED + _RESERVED
            written += character if is_kept else f"%{octets[place]:02X}"
            place += 1
    return written


def pattern_spelling(octets: bytes) -> str:
    """A pattern in the form of `spelling`; "$" is special only at the end."""
    pattern = spelling(octets)
    end = "$" if pattern.endswith("$") else ""
    return pattern.removesuffix("$").replace("$", "%24") + end
