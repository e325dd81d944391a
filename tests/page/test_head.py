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
    "line ends in the tag": ("<meta\nname='robots\n'\r\ncontent='\nnoindex\n'\n>",),
    "between the head and the body": (f"<head></head>{NOINDEX}<body>",),
    "after text": (f"<head>lost words {NOINDEX}",),
    "after a script": (f"<script async>if (a </b> c) '<p>'</script>{NOINDEX}",),
    "after a style and a link": (f"<style>p>a{{}}</style><link rel=x>{NOINDEX}",),
    "after a tracking pixel": (f"<noscript><img src=x><p></noscript>{NOINDEX}",),
    "in a noscript element": (f"<noscript>{NOINDEX}</noscript>",),
    "after a comment": (f"<!-- > <p> -->{NOINDEX}",),
    "after an empty comment": (f"<!-->{NOINDEX}",),
    "after a comment with one dash": (f"<!--->{NOINDEX}",),
    "after a comment that ends with --!>": (f"<!-- --!>{NOINDEX}",),
    "after conditional comments":
        (f"<![if IE]><![endif]><!--[if IE]><p><![endif]-->{NOINDEX}",),
    "after 33 KB of script": (f"<script>{33_000 * '<'}</script>{NOINDEX}",),
    "after 33 KB of style": (f"<style>{33_000 * 'p'}</style>{NOINDEX}",),
    "after 33 KB of title": (f"<title>{33_000 * 'a'}</title>{NOINDEX}",),
    "after 33 KB of comment": (f"<!--{33_000 * '-'}-->{NOINDEX}",),
    "after 33 KB of icon":
        (f"<link rel=icon href='data:image/png,{33_000 * 'A'}'>{NOINDEX}",),
    "after 33 KB of text": (33_000 * "&" + NOINDEX,),
    "in 33 KB of tag": (f"{NOINDEX[:-1]} title='{33_000 * '>'}'>",),
    "after CDATA, which ends at >": (f"<![CDATA[ > {NOINDEX} ]]>",),
    "after a long end tag": (f"<script></script/ x='>'>{NOINDEX}",),
    "after a self-closing title": (f"<title/></title>{NOINDEX}",),
    "after a tag in a value": (f"<link title='<p>'>{NOINDEX}",),
    "with a stray quote": ('<meta name="robots"" content="noindex">',),
    "without spaces": ('<meta name="robots"content="noindex">',),
    "with a slash": ("<meta charset/name=robots content=noindex>",),
    "with spaces": ("<meta name = robots content = 'noindex' />",),
    "after rubbish": (f"<![x><!x></ ></x></><? >&<{NOINDEX}",),
    "at the limit": (" " * (MAX_BYTES - len(NOINDEX)) + NOINDEX,),
})  # fmt: skip
def test_tag_in_the_head_is_read(html: str) -> None:
    assert is_read(html)
    assert is_read(html.encode())


@cases("html", {
    "after an unclosed noscript element": (f"<noscript></head><p>{NOINDEX}",),
    "in the body": (f"<body>{NOINDEX}",),
    "after a body element": (f"<head><div></div>{NOINDEX}</head>",),
    "after the end of the page": (f"</html>{NOINDEX}",),
    "in a comment": (f"<!-- {NOINDEX} -->",),
    "in an unclosed comment": (f"<!-- > {NOINDEX}",),
    "in a comment with a space in its end": (f"<!-- -- > {NOINDEX} -->",),
    "in a title": (f"<title>{NOINDEX}</title>",),
    "in a script": (f"<script>{NOINDEX}</script>",),
    "in a script with another end tag": (f"<script></scripts>{NOINDEX}</script>",),
    "in an unclosed script": (f"<script>{NOINDEX}",),
    "in a value": (f"<link title='{NOINDEX}'>",),
    "in an unclosed value": (f"<link title='> {NOINDEX}",),
    "in a textarea": (f"<textarea>{NOINDEX}</textarea>",),
    "in a template": (f"<template>{NOINDEX}</template>",),
    "cut off": (NOINDEX[:-1],),
    "with another name": ('<meta name="description" content="noindex">',),
    "a property": ('<meta property="robots" content="noindex">',),
    "with a no-break space": ("<meta name=robots\xa0content=noindex>",),
    "without content": ('<meta name="robots">',),
    "beyond the limit": (" " * MAX_BYTES + NOINDEX,),
    "cut off by the limit": (" " * (MAX_BYTES - len(NOINDEX) + 1) + NOINDEX,),
    "with over a thousand attributes": (NOINDEX[:-1] + 1_000 * " x" + ">",),
})  # fmt: skip
def test_tag_elsewhere_is_not_read(html: str) -> None:
    assert not is_read(html)


@pytest.mark.parametrize("start", ["", "<meta ", "<script>"])
@pytest.mark.parametrize("piece", ["<", "<a ", "</a ", "<!--", "<![", " ", "x ", "x='"])
def test_hostile_page_is_read_in_linear_time(start: str, piece: str) -> None:
    """In quadratic time, one of these pages takes minutes."""
    assert not is_read(start + piece * (MAX_BYTES // len(piece)))


@cases("content text", {
    "numbers": ("&#110;&#x6F&#105ndex", "noindex"),
    "names": ("a &lt;&LT; &nbsp &copy", "a << \xa0 ©"),
    "an unknown name": ("&robots; &robots", "&robots; &robots"),
    "parameters of a URL": ("/?a&copy=1&notx=1&notit;", "/?a&copy=1&notx=1&notit;"),
    "a number of 5,000 digits": (f"&#{5_000 * '1'};", f"\ufffd{4_980 * '1'};"),
})  # fmt: skip
def test_character_references_are_read(content: str, text: str) -> None:
    tags, _ = meta_tags(f"<meta name=x content='{content}'>", {"x"}, encoding=None)

    assert tags == [("x", text)]


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
    "a name that is not ASCII": (b"<meta name=x content=\xe9>", "utf\u20138", "é"),
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
