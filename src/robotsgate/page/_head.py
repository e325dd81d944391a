"""Finds the META tags in a page's head, and single elements.

Follows the HTML standard's rules for tags and the head (as of 2026). It does not use
`html.parser`, which gives different answers in different Python versions.
"""

from __future__ import annotations

import codecs
import re
from html import unescape
from html.entities import html5
from typing import TYPE_CHECKING

from robotsgate.robotstxt._dialect import wide_encoding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MAX_BYTES = 2_000_000
"""How many bytes of a page are read: the same as Googlebot (2026)."""

# HTML §4.2.5.4: the encoding is declared within this many bytes.
_BYTES_WITH_CHARSET = 1_024
_CHARSET = re.compile(
    rb"""<meta[^>]{0,512}?charset\s*=\s*["']?\s*([\w.:-]{1,40})""", re.IGNORECASE
)

_WIDE_STARTS = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}

_DEFAULT_ENCODING = "cp1252"

# The codecs of the encodings that browsers support. Some of Python's other codecs take
# quadratic time, or do not return text.
_ENCODINGS = {
    "ascii", "big5", "big5hkscs", "cp866", "cp874", "cp932", "cp949", "cp1250",
    "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258",
    "euc_jp", "euc_kr", "gb18030", "gb2312", "gbk", "iso2022_jp", "iso8859-1",
    "iso8859-2", "iso8859-3", "iso8859-4", "iso8859-5", "iso8859-6", "iso8859-7",
    "iso8859-8", "iso8859-9", "iso8859-10", "iso8859-11", "iso8859-13", "iso8859-14",
    "iso8859-15", "iso8859-16", "koi8-r", "koi8-u", "mac-cyrillic", "mac-roman",
    "shift_jis", "utf-8", "utf-16-be", "utf-16-le",
}  # fmt: skip

# HTML §13.2.5.32 to 39: a name, and a value in any quotes.
_ATTRIBUTE = (
    r"[\s/]*([^\s/>][^\s/>=]*)"
    r"""(?:\s*=\s*(?:"([^"]*)"?|'([^']*)'?|([^\s>]*)))?"""
)

# A comment, a bogus comment or a tag (HTML §13.2.5.6 to 53). If it is unfinished, it
# extends to the end of the page: every part after a repetition is optional, so no match
# backtracks. Attributes are limited because each takes memory during the match.
_TAG = re.compile(
    rf"""
    <(?: !--(?:-?>|.*?(?:--!?>|\Z))
       | (?:[!?]|/(?![a-z]))[^>]*
       | (?P<slash>/?)(?P<name>[a-z][^\s/>]*)
         (?P<attributes>(?:{_ATTRIBUTE}){{0,1000}})[\s/]*(?P<close>>?)
    )""",
    re.ASCII | re.DOTALL | re.IGNORECASE | re.VERBOSE,
)

# HTML §13.2.5.73: a named reference without ";" is text if "=" or a letter follows. The
# digits are limited because Python raises ValueError for 5,000 of them.
_REFERENCE = re.compile(
    r"&(?:#x?[0-9a-f]{1,20};?|[a-z0-9]+(?:;|(?![a-z0-9=])))", re.ASCII | re.IGNORECASE
)

# Elements that may be in a head, or between "</head>" and the body; any other element
# ends it (HTML §13.2.6.4.4 and 6).
_OF_HEAD = {
    "base", "basefont", "bgsound", "head", "html", "link", "meta", "noframes",
    "noscript", "script", "style", "template", "title",
}  # fmt: skip

# Elements whose content is text, or not part of the page.
_WITH_TEXT = {
    "iframe", "noembed", "noframes", "script", "style", "template", "textarea", "title",
    "xmp",
}  # fmt: skip

# Elements whose end tag begins the body.
_OF_BODY = {"body", "br", "html"}


def meta_tags(
    html: bytes | str, names: Collection[str], *, encoding: str | None
) -> tuple[list[tuple[str, str]], bool]:
    """(name, content) of a page's META tags, and whether its head is complete.

    Only tags whose name is in `names` (lower-case) are included. `encoding` is the
    encoding declared in the response headers. At most `MAX_BYTES` are read.
    """
    page = html[:MAX_BYTES]
    if isinstance(page, bytes):
        page = page.decode(_encoding(page, encoding), "replace")
    metas: list[tuple[str, str]] = []
    is_in_noscript = False
    for tag in _tags(page):
        element = tag["name"].lower()
        if tag["slash"]:
            if element in _OF_BODY:
                return metas, True
            is_in_noscript = is_in_noscript and element not in {"head", "noscript"}
        elif element not in _OF_HEAD and not is_in_noscript:
            return metas, True
        elif element == "noscript":
            is_in_noscript = True  # it may contain a tracking pixel
        elif element == "meta":
            values = _attributes(tag)
            name = values.get("name", "").strip().lower()
            if name in names:
                metas.append((name, values.get("content", "")))
    return metas, len(html) <= MAX_BYTES


def first_element(page: str, name: str) -> str:
    """The HTML inside the first element `name` (lower-case) of a page.

    Empty if there is none, or if it has no end. A tag in a comment, a script or a text
    field is not an element.
    """
    for tag in _tags(page):
        if tag["name"].lower() == name and not tag["slash"]:
            end = _end_tag(page, name, tag.end())
            return page[tag.end() : end.start()] if end else ""
    return ""


def _end_tag(page: str, name: str, position: int) -> re.Match[str] | None:
    return re.compile(rf"</{name}(?=[\s/>])", _TAG.flags).search(page, position)


def _tags(page: str) -> Iterator[re.Match[str]]:
    """All tags, except those in comments and in the content of `_WITH_TEXT`."""
    position = 0
    while tag := _TAG.search(page, position):
        position = tag.end()
        if not tag["close"]:  # a comment, or unfinished
            continue
        yield tag
        element = tag["name"].lower()
        if element in _WITH_TEXT and not tag["slash"]:
            end = _end_tag(page, element, position)
            position = end.start() if end else len(page)


def _attributes(tag: re.Match[str]) -> dict[str, str]:
    """The values by lower-case name; if a name is repeated, the first value is used."""
    attributes = re.findall(_ATTRIBUTE, tag["attributes"], re.ASCII)
    return {
        name.lower(): _REFERENCE.sub(_character, "".join(value))
        for name, *value in reversed(attributes)
    }


def _character(reference: re.Match[str]) -> str:
    name = reference[0][1:]
    return unescape(reference[0]) if name[0] == "#" or name in html5 else reference[0]


def _encoding(html: bytes, declared: str | None) -> str:
    """The codec for a page, chosen in the order prescribed by HTML §13.2.3.2."""
    wide = wide_encoding(html)
    if html.startswith(codecs.BOM_UTF8) or wide:
        return wide or "utf-8"
    codec = _codec(declared or "") or _WIDE_STARTS.get(html[:2])
    if codec is not None:
        return codec
    charset = _CHARSET.search(html, 0, _BYTES_WITH_CHARSET)
    codec = _codec(charset[1].decode("latin-1")) if charset else None
    # A tag that is readable as ASCII is not in a wide encoding.
    is_wide = codec is not None and codec.startswith("utf-16")
    return "utf-8" if is_wide else codec or _DEFAULT_ENCODING


def _codec(label: str) -> str | None:
    """The name of the codec for `label`, or `None` if browsers do not support it."""
    if not label.isascii():  # Python 3.15 warns about them
        return None
    try:
        name = codecs.lookup(label.strip()).name
    except (LookupError, ValueError):
        return None
    if name == "utf-16":  # without a byte order mark, or it would have been seen
        return "utf-16-le"
    return name if name in _ENCODINGS else None
