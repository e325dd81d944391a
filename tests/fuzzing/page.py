"""Fuzzes page directives, from HTML and from X-Robots-Tag headers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from robotsgate.page import PageDirectives
from robotsgate.robotstxt._octets import wide_encoding
from tests.fuzzing.target import Target, as_header, fields, in_time, joined

if TYPE_CHECKING:
    from collections.abc import Callable

_NOW = 1_800_000_000.0


def check_html(data: bytes) -> None:
    """Read a page, as bytes and as text."""
    label, html = fields(data, 2)
    encoding = label.decode("latin-1") or None
    own = _read("a page", lambda: PageDirectives.from_html(html, "bot"))
    _read("a page", lambda: PageDirectives.from_html(html, "bot", encoding=encoding))
    fallback = PageDirectives.from_html(html, "*")
    assert _is_no_wider(own, fallback)
    if wide_encoding(html) is None:
        utf8 = PageDirectives.from_html(html, "bot", encoding="utf-8")
        text = PageDirectives.from_html(html.decode("utf-8", "replace"), "bot")
        assert text == utf8


def check_robots_tag(data: bytes) -> None:
    """Read two headers, separately and together."""
    first, second = (("X-Robots-Tag", as_header(one)) for one in fields(data, 2))
    one = _read("a header", lambda: PageDirectives.from_headers([first], "bot"))
    other = _read("a header", lambda: PageDirectives.from_headers([second], "bot"))
    both = PageDirectives.from_headers([first, second], "bot")
    assert both.directives == one.combined(other).directives
    assert _is_no_wider(both, one)
    assert _is_no_wider(both, other)
    assert _is_no_wider(both, PageDirectives.from_headers([first, second], "*"))


def _read(what: str, read: Callable[[], PageDirectives]) -> PageDirectives:
    """Check that directives can be read, explained and serialized."""
    page = in_time(f"reading {what}", read)
    assert page.explain()
    assert json.dumps(page.as_dict(), allow_nan=False)
    assert all(name == one.name for name, one in page.directives.items())
    assert len(page.diagnostics) <= 103
    return page


def _is_no_wider(page: PageDirectives, other: PageDirectives) -> bool:
    """Whether `page` allows only what `other` allows."""
    lost = other.directives.keys() - page.directives.keys()
    return (
        lost <= {"index", "follow", "archive"}
        and page.may_index(_NOW) <= other.may_index(_NOW)
        and page.may_follow <= other.may_follow
    )


_DIRECTIVES = (
    b"all", b"none", b"noindex", b"nofollow", b"index", b"noarchive", b"noai",
    b"max-snippet:", b"max-image-preview:", b"max-video-preview:", b"large", b"-1",
    b"unavailable_after:", b"1 Jan 2020 10:00:00 GMT", b"Friday, 02-Jan-70 00:00:00",
    b" PST",
    b"2020-01-01", b"T00:00:00Z", b"+23:59", b"0001", b"9999", b"99999999999", b"bot",
    b"robots", b"*", b":", b",", b" ", b"\t",
)  # fmt: skip

HTML = Target(
    check=check_html,
    seeds=(
        joined(b"", b'<meta name="robots" content="noindex,max-snippet:1"></head>'),
        joined(b"utf-16", "\ufeff<meta name=bot content=none>".encode("utf-16-le")),
        joined(b"", b"<meta charset=shift_jis><title><meta></title><meta name=robots>"),
        joined(b"", b"<meta name=tdm-reservation content=1><meta name=tdm-policy>"),
        joined(b"x", b"<![x><!--[if IE]><!--><script></script><noscript><p>"),
        joined(b"", b"<meta name=robots content='n&#111;ai, all' content=none/><p>"),
    ),
    words=(
        *_DIRECTIVES, b"<", b">", b"</", b"/>", b"<!--", b"-->", b"--!>", b"<![",
        b"<?", b"<!doctype", b"<meta", b"<head>", b"</head>", b"<body>", b"<title>",
        b"</title>", b"<script>", b"</script>", b"<noscript>", b"</noscript>",
        b"<template>", b"</template>", b"name=", b"content=", b"charset=", b"'", b'"',
        b"=", b"&", b"&#x6e;", b"&comma;", b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff",
        b"\0", b"utf-8", b"utf-16", b"iso-2022-jp", b"gb18030", b"punycode", b"\x1b$B",
    ),
    max_length=1_024,
)  # fmt: skip

ROBOTS_TAG = Target(
    check=check_robots_tag,
    seeds=(
        joined(b"noindex, nofollow", b"bot: noai, other: none"),
        joined(b"unavailable_after: Fri, 02 Jan 1970 00:00:00 GMT", b"max-snippet:1"),
        joined(b"bot: unavailable_after: 2020-01-01T00:00+01:00", b"max-foo: 3, none"),
    ),
    words=_DIRECTIVES,
    max_length=512,
)  # fmt: skip
