"""What META robots and X-Robots-Tag let an agent do with a page."""

from __future__ import annotations

import email
import json
from typing import TYPE_CHECKING, Any

import httpx
import multidict
import pytest

from robotsgate import InvalidProductTokenError, Preference
from robotsgate.page import PageDirectives
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
