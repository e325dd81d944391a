"""Which META tags of a page are read, and in which encoding."""

from __future__ import annotations

import pytest

from robotsgate.page import PageDirectives
from robotsgate.page._head import MAX_BYTES, meta_tags
from tests.tables import cases

NOINDEX = '<meta name="robots" content="noindex">'


def is_read(html: str | bytes, *, encoding: str | None = None) -> bool:
    """Whether "noindex" is read from `html`."""
    page = PageDirectives.from_html(html, "bot", encoding=encoding)
    return not page.may_index(now=0)


@cases("html", {
    "in a head": (f"<!DOCTYPE html><html><head><title>a</title>{NOINDEX}</head>",),
    "without a head": (NOINDEX,),
    "as XHTML": ('<?xml version="1"?><head/><META NAME="ROBOTS" CONTENT="NOINDEX"/>',),
    "without quotes": ("<meta content=noindex name=robots>",),
    "as an entity": ('<meta name="robots" content="no&#105;ndex">',),
    "name twice": ('<meta name="robots" name="x" content="noindex" content="all">',),
    "line ends in the tag": ("<meta\nname='robots'\r\ncontent='\nnoindex\n'\n>",),
    "after text": (f"<head>lost words {NOINDEX}",),
    "after a script": (f"<script>if (a </b> c) '<p>'</script>{NOINDEX}",),
    "after a style and a link": (f"<style>p>a{{}}</style><link rel=x>{NOINDEX}",),
    "after a tracking pixel": (f"<noscript><img src=x><p></noscript>{NOINDEX}",),
    "in a noscript element": (f"<noscript>{NOINDEX}</noscript>",),
    "after a comment": (f"<!-- > <p> -->{NOINDEX}",),
    "after an empty comment": (f"<!-->{NOINDEX}",),
    "after a comment with one dash": (f"<!--->{NOINDEX}",),
    "after a comment that ends with --!>": (f"<!-- --!>{NOINDEX}",),
    "after conditional comments":
        (f"<![if IE]><![endif]><!--[if IE]><p><![endif]-->{NOINDEX}",),
    "after rubbish": (f"<![x><!x></ ></x><? >&<{NOINDEX}",),
    "at the limit": (" " * (MAX_BYTES - len(NOINDEX)) + NOINDEX,),
})  # fmt: skip
def test_tag_in_the_head_is_read(html: str) -> None:
    assert is_read(html)
    assert is_read(html.encode())


@cases("html", {
    "after the head": (f"<head></head>{NOINDEX}",),
    "in the body": (f"<body>{NOINDEX}",),
    "after a body element": (f"<head><div></div>{NOINDEX}</head>",),
    "after the end of the page": (f"</html>{NOINDEX}",),
    "in a comment": (f"<!-- {NOINDEX} -->",),
    "in an unclosed comment": (f"<!-- {NOINDEX}",),
    "in a comment with a space in its end": (f"<!-- -- > {NOINDEX} -->",),
    "in a title": (f"<title>{NOINDEX}</title>",),
    "in a script": (f"<script>{NOINDEX}</script>",),
    "in a template": (f"<template>{NOINDEX}</template>",),
    "cut off": (NOINDEX[:-1],),
    "with another name": ('<meta name="description" content="noindex">',),
    "a property": ('<meta property="robots" content="noindex">',),
    "without content": ('<meta name="robots">',),
    "beyond the limit": (" " * MAX_BYTES + NOINDEX,),
})  # fmt: skip
def test_tag_elsewhere_is_not_read(html: str) -> None:
    assert not is_read(html)


# In ISO-2022-JP, these words contain the byte for "<".
_WORDS = {
    "utf-8": "naïve Grüße",
    "windows-1252": "naïve Grüße",
    "windows-1251": "Добрый день",
    "shift_jis": "表示しない能力",
    "iso-2022-jp": "表示しない能力。「マーク」",
    "gb18030": "不要收录",
    "utf-16": "naïve 表示",
    "utf-16-le": "naïve 表示",
    "utf-16-be": "naïve 表示",
}


@pytest.mark.parametrize("encoding", _WORDS)
@pytest.mark.parametrize("how", ["declared in the header", "declared in the page"])
def test_page_is_read_in_its_encoding(encoding: str, how: str) -> None:
    text = _WORDS[encoding]
    html = f'<meta charset="{encoding}"><meta name=x content="{text}"> {NOINDEX}'
    declared = encoding if how == "declared in the header" else None

    tags, _ = meta_tags(html.encode(encoding), {"x", "robots"}, encoding=declared)

    assert tags == [("x", text), ("robots", "noindex")]


@cases("html encoding text", {
    "a byte order mark overrides the header":
        (b"\xef\xbb\xbf<meta name=x content=\xc3\xa9>", "cp1252", "é"),
    "UTF-32 with a mark": ("\ufeff<meta name=x content=é>".encode("utf-32"), None, "é"),
    "the header overrides the page":
        (b"<meta charset=utf-8><meta name=x content=\xe9>", "latin1", "é"),
    "UTF-16 without a mark":
        ("<meta name=x content=é>".encode("utf-16-le"), "UTF-16", "é"),
    "http-equiv":
        (b"<meta content='text/html; charset=utf-8'><meta name=x content=\xc3\xa9>",
         None, "é"),
    "none declared": (b"<meta name=x content=\xe9>", None, "é"),
    "unknown": (b"<meta name=x content=\xe9>", "klingon", "é"),
    "not a text encoding": (b"<meta name=x content=\xe9>", "zlib", "é"),
    "slow in Python": (b"<meta name=x content=\xe9>", "punycode", "é"),
    "a name with NUL": (b"<meta name=x content=\xe9>", "utf-8\0", "é"),
    "a false declaration in the page":
        (b"<meta charset=utf-16><meta name=x content=\xc3\xa9>", None, "é"),
    "too late in the page":
        (b" " * 1_024 + b"<meta charset=utf-8><meta name=x content=\xe9>", None, "é"),
    "broken bytes": (b"<meta name=x content=\xff>", "utf-8", "\ufffd"),
})  # fmt: skip
def test_first_known_encoding_is_used(
    html: bytes, encoding: str | None, text: str
) -> None:
    tags, _ = meta_tags(html, {"x"}, encoding=encoding)

    assert tags == [("x", text)]


@pytest.mark.parametrize(
    ("html", "is_whole"),
    [("<head>" + " " * MAX_BYTES, False), ("<p>" + " " * MAX_BYTES, True), ("", True)],
)
def test_head_that_is_too_long_is_reported(html: str, *, is_whole: bool) -> None:
    diagnostics = PageDirectives.from_html(html, "bot").diagnostics

    assert diagnostics == (
        () if is_whole else ("the head is too long: only its beginning is read",)
    )


class CountingBytes(bytes):
    """Counts how many of its bytes are read."""

    bytes_read = 0

    def __getitem__(self, key: slice) -> bytes:  # type: ignore[override]  # slices only
        part = super().__getitem__(key)
        self.bytes_read += len(part)
        return part


def test_large_page_is_read_only_up_to_the_end_of_its_head() -> None:
    page = CountingBytes(f"<head>{NOINDEX}</head>".encode() + b"<p>" * 3_500_000)

    assert is_read(page)
    assert page.bytes_read < 20_000
