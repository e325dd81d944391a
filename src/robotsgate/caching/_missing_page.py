"""Recognises a "not found" page that was sent with a wrong status.

Google's specification: a 5xx that is really a missing page counts as a 404.
"""

from __future__ import annotations

BYTES_TO_READ = 4_096
"""How much of an error page is looked at; titles and first headings stand early."""

_PLACES = (b"<title", b"<h1")

_PHRASES = (
    b"not found",
    b"page doesn't exist",
    b"page does not exist",
    b"page no longer exists",
    b"no such page",
)

# Everything but letters, digits and dots parts words.
_WORD_OCTETS = bytes(
    octet if octet == ord(".") or chr(octet).isalnum() else ord(" ")
    for octet in range(256)
)


def says_not_found(page: bytes) -> bool:
    """Whether the title or the first heading of an HTML page says that it is missing.

    Args:
        page: the start of it; more than `BYTES_TO_READ` is not looked at.
    """
    start = page[:BYTES_TO_READ].lower().replace(b"\xe2\x80\x99", b"'")
    return any(_speaks_of_absence(_first_element(start, place)) for place in _PLACES)


def _speaks_of_absence(text: bytes) -> bool:
    if any(phrase in text for phrase in _PHRASES):
        return True
    # The number by itself: not 404 as a part of an incident's number.
    words = text.translate(_WORD_OCTETS).split()
    return b"404" in {word.strip(b".") for word in words}


def _first_element(page: bytes, tag: bytes) -> bytes:
    """The text between the first `tag` and the end tag after it; may be empty."""
    _, _, behind = page.partition(tag)
    if behind[:1] not in {b">", b" ", b"\t", b"\r", b"\n"}:
        return b""
    _, _, content = behind.partition(b">")
    text, end, _ = content.partition(b"</" + tag[1:])
    return text if end else b""
