"""Normalizes paths and patterns before they are compared.

RFC 9309 §2.2.2: non-ASCII bytes are percent-encoded, unreserved characters (RFC 3986
§2.3) are decoded, and hexadecimal digits are upper-case. The RFC does not mention
characters that are invalid in URIs (space, quotes, brackets, controls). These are
encoded as well, because all clients encode them before sending. A "%" without two
digits stays, because in a pattern such as "/*%" or "/*%D" it begins an escape. A target
is also compared with "%25" in its place, because some clients send that.
Text is latin-1 here: one character per byte.
"""

from __future__ import annotations

import re

_UNRESERVED = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
)
_RESERVED = frozenset(":/?#[]@!$&'()*+,;=")
_HEX = "0123456789abcdefABCDEF"

_DECODED = {
    high + low: chr(octet) if chr(octet) in _UNRESERVED else f"%{octet:02X}"
    for high in _HEX
    for low in _HEX
    for octet in (int(high + low, 16),)
}
_UPPER = {pair: f"%{pair.upper()}" for pair in _DECODED}
# A digit that no second one follows.
_DECODED |= {digit: f"%{digit.upper()}" for digit in "abcdef"}

# Finds a "%" that must be changed. Nearly all escapes are left unchanged: they have two
# upper-case digits and do not encode an unreserved character.
_UNUSUAL_ESCAPE = re.compile(
    r"%(?![0189A-F][0-9A-F]|2[0-9ABCF]|3[A-F]|40|5[BCDE]|60|7[BCDF])"
)

LONE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
"""Finds a "%" without two digits."""

_PLAIN = (_UNRESERVED | _RESERVED) - set("#$%*")


def _changed_unless(safe: frozenset[str]) -> bytes:
    """A table for `bytes.translate` that changes every character not in `safe`.

    Translating and comparing is twice as fast as deleting the safe characters and
    looking for others.
    """
    return bytes(octet ^ (chr(octet) not in safe) for octet in range(256))


class _Safe:
    """Translation tables for the characters that need no encoding.

    Attributes:
        changed: a table that changes every other character.
        encoded: a table that percent-encodes every other character. It has an entry for
            each character, because `str.translate` is slow if an entry is missing.
    """

    def __init__(self, characters: frozenset[str]) -> None:
        self.changed = _changed_unless(characters)
        self.encoded = {
            octet: octet if chr(octet) in characters else f"%{octet:02X}"
            for octet in range(256)
        }


# Line ends separate patterns. `_UNUSUAL_ESCAPE` finds the "%" to change.
_IN_PATTERNS = _Safe(_PLAIN | set("#$*%\r\n"))
_IN_TARGETS = _Safe(_PLAIN | set("#%"))

UNLESS_PLAIN_CHANGED = _changed_unless(_PLAIN)
"""A table that changes an ASCII target unless `is_plain` may be true for it."""

_ENCODED_OUTSIDE_ASCII = _Safe(frozenset(map(chr, range(0x80)))).encoded


# UTF-32 first, because one of its marks starts with a UTF-16 mark.
_WIDE_ENCODINGS = {
    b"\xff\xfe\0\0": "utf-32-le",
    b"\0\0\xfe\xff": "utf-32-be",
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
}
_MARKS = (b"\xef\xbb\xbf", *_WIDE_ENCODINGS)

# Every file and every page contains an ASCII word: a field or a tag name. ASCII text
# decoded as a wide encoding contains none.
_WORD = re.compile("[A-Za-z]{4}")


def wide_encoding(body: bytes) -> str | None:
    """The encoding that a UTF-16 or UTF-32 byte order mark indicates, if plausible.

    Otherwise `None`: some editors put such a mark before ASCII text.
    """
    if not body.startswith(_MARKS):  # almost no file has one
        return None
    encoding = _WIDE_ENCODINGS.get(_mark(body))
    if encoding is None:
        return None
    return encoding if _WORD.search(body.decode(encoding, "replace")) else None


def without_mark(body: bytes) -> bytes:
    """`body` without its byte order mark, whatever the encoding."""
    return body[len(_mark(body)) :] if body.startswith(_MARKS) else body


def _mark(body: bytes) -> bytes:
    return next(filter(body.startswith, _MARKS))


def as_octets(text: str) -> str:
    """`text` encoded in UTF-8, with one latin-1 character per byte."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def readable(octets: str) -> str:
    """`octets` decoded as UTF-8, with U+FFFD for invalid bytes."""
    if octets.isascii():
        return octets
    return octets.encode("latin-1").decode("utf-8", "replace")


def is_utf8(octets: str) -> bool:
    """Whether `octets` are valid UTF-8."""
    try:
        octets.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def lower(octets: str) -> str:
    """`octets` with only ASCII letters changed to lower case."""
    if octets.isascii():
        return octets.lower()
    return octets.encode("latin-1").lower().decode("latin-1")


def is_plain(target: str) -> bool:
    """Quickly check whether `target` is already normalized.

    True for most targets on most sites: they neither need nor contain escapes, and
    contain no "." segment, no fragment, and no "*" or "$".
    """
    if "/." in target or not target.isascii():
        return False
    octets = target.encode()
    return octets.translate(UNLESS_PLAIN_CHANGED) == octets


def normalised_patterns(octets: str) -> str:
    """LF-separated patterns, normalized as in `normalised_targets`.

    "*" and "$" are left unchanged.
    """
    if _UNUSUAL_ESCAPE.search(octets):
        octets = _with_escapes(octets, _DECODED)
    return _encoded(octets, _IN_PATTERNS)


def normalised_targets(target: str) -> tuple[str, ...]:
    """Path and query, normalized for comparison with patterns.

    `target` has no fragment; any "*" or "$" in it is an ordinary character. If it has a
    "%" without two digits, there is a second result, with "%25" instead.
    """
    octets = as_octets(target)
    if not _UNUSUAL_ESCAPE.search(octets):
        return (_encoded(octets, _IN_TARGETS),)
    spelt = _encoded(_with_escapes(octets, _DECODED), _IN_TARGETS)
    if not LONE_PERCENT.search(octets):
        return (spelt,)
    return spelt, *normalised_targets(LONE_PERCENT.sub("%25", octets))


def _encoded(octets: str, safe: _Safe) -> str:
    raw = octets.encode("latin-1")
    is_encoded = raw.translate(safe.changed) == raw
    return octets if is_encoded else octets.translate(safe.encoded)


def with_escapes_upper(octets: str) -> str:
    """`octets` with %xx in upper case and non-ASCII bytes encoded.

    Google's parser does not change patterns in any other way.
    """
    if "%" not in octets and octets.isascii():
        return octets
    return _with_escapes(octets, _UPPER).translate(_ENCODED_OUTSIDE_ASCII)


def _with_escapes(octets: str, spellings: dict[str, str]) -> str:
    """`octets` with each "%" and its digits, one or two, replaced by `spellings`."""
    first, *rest = octets.split("%")
    parts = [first]
    for part in rest:
        spelling = spellings.get(part[:2])
        if spelling is not None:
            parts.append(spelling + part[2:])
        elif part[:1] in spellings:
            parts.append(spellings[part[:1]] + part[1:])
        else:
            parts.append("%" + part)
    return "".join(parts)
