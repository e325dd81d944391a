"""Brings paths and patterns to one spelling before they are compared.

RFC 9309 §2.2.2: octets outside ASCII are percent-encoded, unreserved characters
(RFC 3986 §2.3) are decoded, hexadecimal digits are upper-case.
Beyond its letter, characters that no URI may hold (space, quotes, brackets,
controls, a "%" without two digits) are encoded as well, because every client
encodes them before it sends them.
Text is latin-1 here: one character for each octet.
"""

from __future__ import annotations

__all__ = [
    "as_octets",
    "is_normalised",
    "is_plain",
    "is_utf8",
    "lower",
    "normalised",
    "readable",
    "with_escapes_upper",
    "without_dots",
]

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

_PLAIN = "".join(sorted((_UNRESERVED | _RESERVED) - set("#$%*"))).encode("ascii")

_LEFT_ALONE = _PLAIN + b"#$*"
_SAFE = _LEFT_ALONE + b"%"

_ENCODED = {
    octet: f"%{octet:02X}"
    for octet in range(256)
    if chr(octet) not in _UNRESERVED | _RESERVED | {"%"}
}
_ENCODED_OUTSIDE_ASCII = {octet: f"%{octet:02X}" for octet in range(0x80, 0x100)}


def as_octets(text: str) -> str:
    """`text` in UTF-8, one latin-1 character for each octet."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogatepass").decode("latin-1")


def readable(octets: str) -> str:
    """The text that `octets` are in UTF-8, U+FFFD where they are none."""
    if octets.isascii():
        return octets
    return octets.encode("latin-1").decode("utf-8", "replace")


def is_utf8(octets: str) -> bool:
    """Whether `octets` are a text in UTF-8."""
    try:
        octets.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def lower(octets: str) -> str:
    """`octets` with ASCII letters in lower case, and no others changed."""
    if octets.isascii():
        return octets.lower()
    return octets.encode("latin-1").lower().decode("latin-1")


def is_plain(target: str) -> bool:
    """Whether `target` is in its one spelling already, seen at a glance.

    True for most targets of most sites: then nothing is escaped, nothing needs
    to be, there are no "." segments, no fragment and no "*" or "$".
    """
    return (
        "/." not in target
        and target.isascii()
        and not target.encode().translate(None, _PLAIN)
    )


def is_normalised(octets: str) -> bool:
    """Whether `normalised` would surely give `octets` as they are."""
    return not octets.encode("latin-1").translate(None, _LEFT_ALONE)


def normalised(octets: str) -> str:
    """`octets` with each percent-encoding in the one form of this module.

    "*" and "$" are left alone: what they mean depends on the side.
    """
    if is_normalised(octets):
        return octets
    joined = _with_escapes(octets, _DECODED, lone="%25")
    return joined.translate(_ENCODED) if _has_unsafe(joined) else joined


def _has_unsafe(octets: str) -> bool:
    return bool(octets.encode("latin-1").translate(None, _SAFE))


def with_escapes_upper(octets: str) -> str:
    """`octets` with %xx in upper case and octets outside ASCII encoded.

    What Google's parser does to a pattern, and all that it does.
    """
    if "%" not in octets and octets.isascii():
        return octets
    upper = _with_escapes(octets, _UPPER, lone="%")
    return upper.translate(_ENCODED_OUTSIDE_ASCII)


def _with_escapes(octets: str, spellings: dict[str, str], *, lone: str) -> str:
    """`octets` with each %xx as `spellings` has it, and other "%" as `lone`."""
    first, *rest = octets.split("%")
    parts = [first]
    for part in rest:
        spelling = spellings.get(part[:2])
        parts.append(lone + part if spelling is None else spelling + part[2:])
    return "".join(parts)


def without_dots(path: str) -> str:
    """`path` without "." and ".." segments (RFC 3986 §5.2.4), as it is dialled.

    Args:
        path: begins with "/"; without query.
    """
    if "/." not in path and "%2e" not in path.lower():
        return path
    kept: list[str] = []
    for segment in path.split("/")[1:]:
        dots = segment.lower().replace("%2e", ".")
        if dots == "..":
            del kept[-1:]
        elif dots != ".":
            kept.append(segment)
    if path.lower().replace("%2e", ".").endswith(("/.", "/..")):
        kept.append("")
    return "/" + "/".join(kept)
