"""Recognises a "not found" page that was sent with a wrong status.

Google's specification: a 5xx that is really a missing page counts as a 404.
"""

from __future__ import annotations

import html
import re

BYTES_TO_READ = 4_096
"""How much of an error page is looked at; titles and first headings stand early."""

_PLACES = (b"<title", b"<h1")
_TAG = re.compile(r"<[^<>]*>")

# What stands between a phrase, a status and the name of a site.
_BETWEEN_PARTS = re.compile(
    r"[|:;,!?()/\u00ab\u00b7\u00bb\u2013\u2014\u2022]|\s-\s|\.(?=\s|$)"
)

_PHRASES = (
    "404",
    "not found",
    "not be found",
    "page doesn't exist",
    "page does not exist",
    "page no longer exists",
    "no such page",
)

# Among others than these a phrase speaks of something else: a backend, a host, a key.
_WORDS_BESIDE = frozenset({
    "404", "a", "be", "can", "could", "error", "file", "http", "oops", "page",
    "requested", "sorry", "status", "that", "the", "this", "url", "was",
})  # fmt: skip


def says_not_found(page: bytes) -> bool:
    """Whether the title or the first heading of an HTML page says that it is missing.

    It must consist of such a phrase, with a status or the name of the site at most:
    pages of an outage, too, tell of something that was not found.

    Args:
        page: the start of it; more than `BYTES_TO_READ` is not looked at.
    """
    start = page[:BYTES_TO_READ].lower()
    return any(_speaks_of_absence(_first_element(start, place)) for place in _PLACES)


def _speaks_of_absence(element: bytes) -> bool:
    text = html.unescape(_TAG.sub(" ", element.decode("utf-8", "replace")))
    parts = [part.split() for part in _BETWEEN_PARTS.split(text.replace("\u2019", "'"))]
    others = [words for words in parts if not _is_beside_a_name(words)]
    return len(others) <= 1 and any(map(_is_phrase, parts))


def _is_beside_a_name(words: list[str]) -> bool:
    """Whether `words` are a phrase, a status or an apology, and so not a name."""
    spoken = [word for word in words if not word.isdigit()]
    return _is_phrase(words) or _WORDS_BESIDE.issuperset(spoken)


def _is_phrase(words: list[str]) -> bool:
    text = f" {' '.join(words)} "
    return any(
        f" {phrase} " in text
        and _WORDS_BESIDE.issuperset(text.replace(f" {phrase} ", " ").split())
        for phrase in _PHRASES
    )


def _first_element(page: bytes, tag: bytes) -> bytes:
    """What is between the first `tag` and the end tag after it; may be empty."""
    _, _, behind = page.partition(tag)
    if behind[:1] not in {b">", b" ", b"\t", b"\r", b"\n"}:
        return b""
    _, _, content = behind.partition(b">")
    text, end, _ = content.partition(b"</" + tag[1:])
    return text if end else b""
