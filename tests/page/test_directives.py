"""Which META tags and headers of a page are read, and what they permit."""

from __future__ import annotations

import email
import json
from typing import TYPE_CHECKING, Any

import httpx
import multidict
import pytest

from robotsgate import InvalidProductTokenError
from robotsgate.page import PageDirectives
from robotsgate.page._directives import MAX_BYTES, _meta_tags
from robotsgate.robotstxt import Preference
from tests.tables import cases

if TYPE_CHECKING:
    from robotsgate.robotstxt._headers import HeadersLike

DAY = 86_400.0
TAG = '<meta name="robots">'


def from_meta(
    *contents: str, agent: str = "bot", name: str = "robots"
) -> PageDirectives:
    tags = "".join(f'<meta name="{name}" content="{content}">' for content in contents)
    return PageDirectives.from_html(f"<html><head>{tags}</head>", agent)


def from_header(*values: str, agent: str = "bot") -> PageDirectives:
    return PageDirectives.from_headers(
        [("X-Robots-Tag", value) for value in values], agent
    )


@cases("content may_index may_follow", {
    "nothing": ("", True, True),
    "all": ("all", True, True),
    "none": ("none", False, False),
    "index": ("index", True, True),
    "noindex": ("noindex", False, True),
    "nofollow": ("nofollow", True, False),
    "both": ("NOINDEX,FOLLOW", False, True),
    "letter case and spaces": ("  NoIndex ,\tnofollow ", False, False),
    "contradiction": ("index, noindex", False, True),
    "all and one": ("all, nofollow", True, False),
    "none and all": ("none, all", False, False),
    "without commas": ("noindex nofollow", True, True),
    "others": ("noarchive, noai, foo", True, True),
})  # fmt: skip
def test_directives_decide_what_an_agent_may_do(
    content: str, *, may_index: bool, may_follow: bool
) -> None:
    for page in (from_meta(content), from_header(content)):
        assert (page.may_index(now=0), page.may_follow) == (may_index, may_follow)


@cases("content names", {
    "flags":
        ("noarchive,nosnippet,notranslate,noimageindex,noai,noimageai,follow",
         ["noarchive", "nosnippet", "notranslate", "noimageindex", "noai",
          "noimageai", "follow"]),
    "from Google, Bing, Yandex and Mojeek, in use or not":
        ("nocache,noodp,noyaca,nositelinkssearchbox,noml,archive",
         ["nocache", "noodp", "noyaca", "nositelinkssearchbox", "noml", "archive"]),
    "a permission and its opposite": ("archive, noarchive", ["noarchive"]),
    "an exception": ("noindex, indexifembedded", ["noindex", "indexifembedded"]),
    "after an invalid date": ("unavailable_after: soon, noindex", ["noindex"]),
    "aliases": ("none, all", ["noindex", "nofollow"]),
    "values":
        ("max-snippet:5, MAX-Video-Preview : 0", ["max-snippet", "max-video-preview"]),
})  # fmt: skip
def test_directives_are_listed_by_name(content: str, names: list[str]) -> None:
    assert list(from_meta(content).directives) == names


@cases("content name value", {
    "characters": ("max-snippet:50", "max-snippet", 50),
    "no limit": ("max-snippet: -1", "max-snippet", -1),
    "the largest": (f"max-snippet:{'9' * 5_000}", "max-snippet", 10**9),
    "leading zeros": (f"max-snippet:{'0' * 5_000}50", "max-snippet", 50),
    "the smallest": ("max-snippet:50, max-snippet:20", "max-snippet", 20),
    "a limit and none": ("max-snippet:-1, max-snippet:20", "max-snippet", 20),
    "nothing": ("max-snippet:20, max-snippet:0", "max-snippet", 0),
    "seconds": ("max-video-preview:9", "max-video-preview", 9),
    "an image": ("max-image-preview:Large", "max-image-preview", "large"),
    "the smaller image":
        ("max-image-preview:standard, max-image-preview:none", "max-image-preview",
         "none"),
})  # fmt: skip
def test_smallest_value_applies(content: str, name: str, value: object) -> None:
    assert from_meta(content).directives[name].value == value


@cases("date seconds", {
    "RFC 822": ("02 Jan 70 00:00:00 GMT", DAY),
    "RFC 822 with a zone": ("Fri, 02 Jan 70 01:00:00 +0100", DAY),
    "RFC 850": ("Friday, 02-Jan-70 00:00:00 GMT", DAY),
    "RFC 850 with an American zone": ("Thursday, 01-Jan-70 16:00:00 PST", DAY),
    "RFC 1123": ("Fri, 02 Jan 1970 00:00:00 GMT", DAY),
    "without weekday and zone": ("2 Jan 1970 00:00:00", DAY),
    "ISO 8601": ("1970-01-02T00:00:00Z", DAY),
    "ISO 8601 with a zone": ("1970-01-02T02:00:00+02:00", DAY),
    "ISO 8601 without zone": ("1970-01-02", DAY),
    "a second before 1970": ("1969-12-31T23:59:59Z", -1.0),
})  # fmt: skip
def test_page_may_be_indexed_until_its_date(date: str, seconds: float) -> None:
    content = f"noarchive, unavailable_after: {date}, noai"

    for page in (from_meta(content), from_header(content)):
        assert page.directives["unavailable_after"].value == seconds
        assert list(page.directives) == ["noarchive", "unavailable_after", "noai"]
        assert page.may_index(now=seconds - 0.5)
        assert not page.may_index(now=seconds)


def test_earliest_date_applies_even_one_second_before_1970() -> None:
    """In other directives, -1 means "no limit"."""
    dates = ["2030-01-01", "1969-12-31T23:59:59Z", "2000-01-01"]

    page = from_meta(*(f"unavailable_after: {date}" for date in dates))

    assert page.directives["unavailable_after"].value == -1


@cases("content", {
    "max-snippet": ("max-snippet:x",),
    "max-snippet without value": ("max-snippet",),
    "max-snippet below -1": ("max-snippet:-2",),
    "max-snippet in superscript": ("max-snippet:\u00b2",),
    "max-image-preview": ("max-image-preview:huge",),
    "unavailable_after": ("unavailable_after: soon",),
    "before the year 1": ("unavailable_after: 0001-01-01T00:00+23:59",),
    "a year that is too large": ("unavailable_after: 2 Jan 99999999999 00:00:00",),
    "a flag with a value": ("noindex: 1",),
    "an overlong directive": ("x" * 1_000,),
})  # fmt: skip
def test_directive_that_is_not_understood_is_reported(content: str) -> None:
    page = from_meta(content)

    assert not page.directives
    (diagnostic,) = page.diagnostics
    assert content[:20] in diagnostic
    assert TAG in diagnostic
    assert len(diagnostic) < 200


@cases("page diagnostics", {
    "repeated": (from_meta("noindex, noindex"), [f"'noindex' is repeated in {TAG}"]),
    "contradicted": (from_meta("index", "none"),
        [f"'index' in {TAG} contradicts 'noindex' in {TAG}, which takes precedence"]),
    "contradicted by a header": (from_meta("follow").combined(from_header("nofollow")),
        [(f"'follow' in {TAG} contradicts 'nofollow' in X-Robots-Tag,"
          " which takes precedence")]),
    "in order": (from_meta("index, noindex, max-snippet:1", "noindex", "max-snippet:2"),
        [f"'noindex' is repeated in {TAG}", f"'max-snippet' is repeated in {TAG}",
         f"'index' in {TAG} contradicts 'noindex' in {TAG}, which takes precedence"]),
    "nothing": (from_meta("noindex, follow").combined(from_header("noindex")), []),
})  # fmt: skip
def test_repeated_and_contradictory_directives_are_reported(
    page: PageDirectives, diagnostics: list[str]
) -> None:
    assert list(page.diagnostics) == diagnostics


def from_tdm(*tags: tuple[str, str]) -> PageDirectives:
    html = "".join(f'<meta name="{name}" content="{value}">' for name, value in tags)
    return PageDirectives.from_html(html, "bot")


def from_tdm_headers(*headers: tuple[str, str]) -> PageDirectives:
    return PageDirectives.from_headers(headers, "bot")


@cases("page reservation source", {
    "a tag": (from_tdm(("TDM-Reservation", " 1 ")), Preference.DISALLOW,
        '<meta name="tdm-reservation">'),
    "a header": (from_tdm_headers(("TDM-Reservation", "1")), Preference.DISALLOW,
        "the header tdm-reservation"),
    "none reserved": (from_tdm(("tdm-reservation", "0")), Preference.ALLOW,
        '<meta name="tdm-reservation">'),
    "a tag overrides a header": (
        from_tdm_headers(("tdm-reservation", "1")).combined(
            from_tdm(("tdm-reservation", "0"))),
        Preference.ALLOW, '<meta name="tdm-reservation">'),
    "of two tags, the one that reserves":
        (from_tdm(("tdm-reservation", "0"), ("tdm-reservation", "1")),
        Preference.DISALLOW, '<meta name="tdm-reservation">'),
    "two headers joined by a client": (from_tdm_headers(("tdm-reservation", "0, 1")),
        Preference.DISALLOW, "the header tdm-reservation"),
    "another value": (from_tdm(("tdm-reservation", "yes")), Preference.UNKNOWN, None),
    "in META robots": (from_meta("tdm-reservation: 1"), Preference.UNKNOWN, None),
})  # fmt: skip
def test_page_can_reserve_text_and_data_mining(
    page: PageDirectives, reservation: Preference, source: str | None
) -> None:
    """TDMRep (2024): HTTP headers, HTML metadata, and "Processing priority"."""
    stated = page.directives.get("tdm-reservation")

    assert page.tdm_reservation is reservation
    assert (stated and stated.source) == source


def test_policy_for_text_and_data_mining_is_kept_as_written() -> None:
    page = from_tdm(("tdm-reservation", "1"), ("tdm-policy", "https://e.com/a,b.json"))

    assert page.directives["tdm-policy"].value == "https://e.com/a,b.json"
    assert page.explain() == (
        'tdm-reservation: 1 in <meta name="tdm-reservation">;'
        ' tdm-policy: https://e.com/a,b.json in <meta name="tdm-policy">'
    )


def test_number_of_diagnostics_for_a_hostile_page_is_limited() -> None:
    assert len(from_meta(",".join(map(str, range(100_000)))).diagnostics) == 100


@cases("agent names", {
    "by name": ("Googlebot", ["noindex", "nofollow"]),
    "by a header": ("Mozilla/5.0 (compatible; Googlebot/2.1)", ["noindex", "nofollow"]),
    "another agent's": ("OtherBot", ["nofollow"]),
    "any agent": ("*", ["nofollow"]),
    "one of several": (["Googlebot-News", "Googlebot"], ["noindex", "nofollow"]),
    "longer": ("Googlebot-News", ["nofollow"]),
})  # fmt: skip
def test_tags_for_all_agents_and_for_the_agent_both_apply(
    agent: str, names: list[str]
) -> None:
    html = '<meta NAME=GoogleBot content=noindex><meta name="ROBOTS" content=nofollow>'

    assert list(PageDirectives.from_html(html, agent).directives) == names


@cases("values names", {
    "one agent": (["bot: noindex, nofollow"], ["noindex", "nofollow"]),
    "another agent": (["other: noindex, nofollow"], []),
    "all, then an agent": (["noai, bot: noindex"], ["noai", "noindex"]),
    "all, then another": (["noai, other: noindex"], ["noai"]),
    "two agents": (["other: noindex, BOT: nofollow, noai"], ["nofollow", "noai"]),
    "several headers": (["other: noindex", "nofollow"], ["nofollow"]),
    "all agents": (["robots: noindex", "*: noai"], ["noindex", "noai"]),
    "an agent with a date":
        (["bot: unavailable_after: Fri, 02 Jan 1970 00:00:00 GMT, noai"],
         ["unavailable_after", "noai"]),
    "an unknown directive with a value": (["max-foo: 3, noindex"], ["noindex"]),
    "a value": (["max-snippet: 3, noindex"], ["max-snippet", "noindex"]),
})  # fmt: skip
def test_agent_in_a_header_applies_until_the_next_agent(
    values: list[str], names: list[str]
) -> None:
    assert list(from_header(*values).directives) == names


@cases("headers names", {
    "httpx":
        (httpx.Headers([("x-robots-tag", "other: noindex"), ("X-Robots-Tag", "noai")]),
         ["noai"]),
    "multidict":
        (multidict.CIMultiDict([("X-Robots-Tag", "noindex"), ("x-robots-tag", "noai")]),
         ["noindex", "noai"]),
    "urllib": (
        email.message_from_string("X-Robots-Tag: noindex\nx-robots-tag: noai\n"),
        ["noindex", "noai"]),
    "a dict": ({"x-robots-tag": "noai", "Server": "x"}, ["noai"]),
    "pairs": (iter([("X-ROBOTS-TAG", "noai")]), ["noai"]),
    "none": ([], []),
})  # fmt: skip
def test_headers_may_come_from_any_client(
    headers: HeadersLike, names: list[str]
) -> None:
    assert list(PageDirectives.from_headers(headers, "bot").directives) == names


def test_most_restrictive_directive_of_all_sources_wins() -> None:
    html = from_meta("index, follow, max-snippet:9, unavailable_after: 1970-01-03")
    headers = from_header("noindex, max-snippet:5, max-image-preview:none")
    more = from_header("unavailable_after: 1970-01-02, max-snippet:-1")

    for page in (
        html.combined(headers, more),
        PageDirectives.combined(more, headers, html),
    ):
        assert {name: each.value for name, each in page.directives.items()} == {
            "noindex": None,
            "follow": None,
            "max-snippet": 5,
            "max-image-preview": "none",
            "unavailable_after": DAY,
        }
        assert page.directives["noindex"].source == "X-Robots-Tag"


def test_explanation_names_each_directive_and_its_source() -> None:
    headers = from_header("bot: unavailable_after: 1970-01-02")

    page = from_meta("none, max-snippet:5").combined(headers)

    assert page.explain() == (
        f"noindex in {TAG}; nofollow in {TAG}; max-snippet: 5 in {TAG};"
        " unavailable_after: 1970-01-02T00:00:00+00:00 in X-Robots-Tag: bot"
    )
    assert from_meta().explain() == "no directives"


def test_page_directives_as_dict_are_json() -> None:
    as_dict = from_header("max-snippet:5, x").as_dict()

    assert json.loads(json.dumps(as_dict)) == {
        "directives": {
            "max-snippet": {"name": "max-snippet", "value": 5, "source": "X-Robots-Tag"}
        },
        "diagnostics": ["unknown directive 'x' in X-Robots-Tag"],
    }


@cases("html agent error", {
    "no page": (None, "bot", TypeError),
    "a URL as the agent": ("", "https://e.com/", InvalidProductTokenError),
    "a browser's header": ("", "Mozilla/5.0", InvalidProductTokenError),
})  # fmt: skip
def test_wrong_arguments_raise(html: Any, agent: str, error: type[Exception]) -> None:  # noqa: ANN401
    with pytest.raises(error):
        PageDirectives.from_html(html, agent)


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
    tags, _ = _meta_tags(f"<meta name=x content='{content}'>", {"x"}, encoding=None)

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

    tags, _ = _meta_tags(html.encode(encoding), {"x", "robots"}, encoding=declared)

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
    tags, _ = _meta_tags(html, {"x"}, encoding=encoding)

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
