"""Finds the META tags in a page's head, without reading beyond it.

Follows the HTML standard's rules for the head (as of 2026).
"""

from __future__ import annotations

import codecs
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

from robotsgate.robotstxt._octets import wide_encoding

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

MAX_BYTES = 2_000_000
"""How many bytes of a page are read: the same as Googlebot (2026)."""

# Each chunk is as long as all previous chunks together, because the parser rescans an
# unfinished comment from the start.
_FIRST_CHUNK = 16_384

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

# HTML §13.2.5.43: a comment may also end immediately, or with "--!>".
_COMMENT = re.compile(r"<!--(?:-?>|.*?--!?>)", re.DOTALL)

# Elements that may be in a head; any other element ends it (HTML §13.2.6.4.4).
_OF_HEAD = {
    "base", "basefont", "bgsound", "head", "html", "link", "meta", "noframes",
    "noscript", "script", "style", "template", "title",
}  # fmt: skip

# Elements whose content is text, or not part of the page.
_WITH_TEXT = {"noframes", "script", "style", "template", "title"}

# Elements whose end tag ends the head.
_AROUND_HEAD = {"body", "br", "head", "html"}


def meta_tags(
    html: bytes | str, names: Collection[str], *, encoding: str | None
) -> tuple[list[tuple[str, str]], bool]:
    """(name, content) of a page's META tags, and whether its head is complete.

    Only tags whose name is in `names` (lower-case) are included. `encoding` is the
    encoding declared in the response headers. At most `MAX_BYTES` are read.
    """
    reader = _HeadReader(names)
    try:
        for chunk in _chunks(html, encoding):
            reader.feed(chunk)
    except _EndOfHeadError:
        return reader.tags, True
    # `close` is not called: it would try to parse a tag without ">", which takes time
    # quadratic in its length, and such a tag is ignored.
    return reader.tags, len(html) <= MAX_BYTES


class _EndOfHeadError(Exception):
    """The parser has reached something that is not part of the head."""


class _HeadReader(HTMLParser):
    """Collects (lower-case name, content) of META tags whose name is in `names`."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__()
        self._names = names
        self._is_in_noscript = False
        self.tags: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if (
            tag not in _OF_HEAD and not self._is_in_noscript
        ):  # a noscript element may contain a tracking pixel
            raise _EndOfHeadError
        if tag == "noscript":
            self._is_in_noscript = True
        elif tag in _WITH_TEXT:
            self.set_cdata_mode(tag)
        elif tag == "meta":
            values = dict(reversed(attrs))  # the first one of each name is used
            name = (values.get("name") or "").strip().lower()
            if name in self._names:
                self.tags.append((name, values.get("content") or ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)  # HTML reads `<head/>` as `<head>`

    def handle_endtag(self, tag: str) -> None:
        if tag == "noscript":
            self._is_in_noscript = False
        elif tag in _AROUND_HEAD:
            raise _EndOfHeadError

    def parse_comment(self, i: int, report: bool = True) -> int:  # noqa: ARG002, FBT001, FBT002 (inherited signature)
        """Parse a comment as browsers do, on every Python version."""
        comment = _COMMENT.match(self.rawdata, i)
        return comment.end() if comment else -1

    def parse_marked_section(self, i: int, report: bool = True) -> int:  # noqa: FBT001, FBT002 (inherited signature)
        """Parse `<![x` as browsers do; the standard library raises AssertionError."""
        return self.parse_bogus_comment(i, report)


def _chunks(html: bytes | str, encoding: str | None) -> Iterator[str]:
    """The first `MAX_BYTES` of a page as text, in chunks."""
    start, end = 0, _FIRST_CHUNK
    name = _encoding(html, encoding) if isinstance(html, bytes) else "utf-8"
    decoder = codecs.getincrementaldecoder(name)("replace")
    while start < min(len(html), MAX_BYTES):
        chunk = html[start : min(end, MAX_BYTES)]
        yield chunk if isinstance(chunk, str) else decoder.decode(chunk)
        start, end = end, 2 * end


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
    try:
        name = codecs.lookup(label.strip()).name
    except (LookupError, ValueError):
        return None
    if name == "utf-16":  # without a byte order mark, or it would have been seen
        return "utf-16-le"
    return name if name in _ENCODINGS else None
