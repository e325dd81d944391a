"""The default dialect, and the examples of the specifications in both dialects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotsgate.errors import InvalidURLError
from robotsgate.robotstxt import Dialect, RobotsTxt
from robotsgate.robotstxt._octets import as_octets
from robotsgate.robotstxt._rfc9309 import RFC9309
from robotsgate.urls._origin import split_url
from tests.robotstxt.reference import pattern_spelling
from tests.robotstxt.strategies import steady

_HOST = "https://example.com"
_DIALECTS = pytest.mark.parametrize("dialect", Dialect, ids=lambda one: one.value)

_PATH_EXAMPLES = {
    "/": (["/", "/fish", "/?q", "/a/b.php?c"], []),
    "/*": (["/", "/fish", "/?q", "/a/b.php?c"], []),
    "/$": (["/"], ["/fish", "/?q", "/a/b.php?c"]),
    "/fish": (
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads",
         "/fishheads/yummy.html", "/fish.php?id=anything"],
        ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    "/fish*": (
        ["/fish", "/fish.html", "/fish/salmon.html", "/fishheads",
         "/fishheads/yummy.html", "/fish.php?id=anything"],
        ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
    ),
    "/fish/": (
        ["/fish/", "/fish/?id=anything", "/fish/salmon.htm"],
        ["/fish", "/fish.html", "/animals/fish/", "/Fish/Salmon.asp"],
    ),
    "/*.php": (
        ["/index.php", "/filename.php", "/folder/filename.php",
         "/folder/filename.php?parameters", "/folder/any.php.file.html",
         "/filename.php/"],
        ["/", "/windows.PHP"],
    ),
    "/*.php$": (
        ["/filename.php", "/folder/filename.php"],
        ["/filename.php?parameters", "/filename.php/", "/filename.php5",
         "/windows.PHP"],
    ),
    "/fish*.php": (
        ["/fish.php", "/fishheads/catfish.php?parameters"],
        ["/Fish.PHP"],
    ),
}  # fmt: skip


@_DIALECTS
@pytest.mark.parametrize(
    ("pattern", "path", "is_match"),
    [
        pytest.param(pattern, path, is_match, id=f"{pattern} {verb} {path}")
        for pattern, (matching, others) in _PATH_EXAMPLES.items()
        for paths, is_match, verb in (
            (matching, True, "matches"),
            (others, False, "does not match"),
        )
        for path in paths
    ],
)
def test_path_example_of_googles_specification(
    pattern: str, path: str, dialect: Dialect, *, is_match: bool
) -> None:
    disallowing = RobotsTxt.parse(
        f"User-agent: a\nDisallow: {pattern}", dialect=dialect
    )
    allowing = RobotsTxt.parse(
        f"User-agent: a\nDisallow: /\nAllow: /{pattern[1:]}", dialect=dialect
    )

    assert disallowing.can_fetch("a", _HOST + path) is not is_match
    assert allowing.can_fetch("a", _HOST + path) is is_match


@_DIALECTS
@pytest.mark.parametrize(
    ("path", "allow", "disallow", "is_allowed"),
    [
        pytest.param("/page", "/p", "/", True, id="the longer allow wins"),
        pytest.param("/folder/page", "/folder", "/folder", True, id="allow wins a tie"),
        pytest.param("/page.htm", "/page", "/*.htm", False, id="the longer star wins"),
        pytest.param(
            "/page.php5", "/page", "/*.ph", True, id="allow wins a star's tie"
        ),
        pytest.param("/", "/$", "/", True, id="the root alone is allowed"),
        pytest.param("/page.htm", "/$", "/", False, id="the rest of it is not"),
    ],
)
def test_precedence_example_of_googles_specification(
    path: str, allow: str, disallow: str, dialect: Dialect, *, is_allowed: bool
) -> None:
    rules = [f"Allow: {allow}", f"Disallow: {disallow}"]

    for lines in (rules, rules[::-1]):
        body = "\n".join(["User-agent: a", *lines])
        robots = RobotsTxt.parse(body, dialect=dialect)

        assert robots.can_fetch("a", _HOST + path) is is_allowed


_GOOGLE_AGENTS = """\
user-agent: googlebot-news
disallow: /group-1

user-agent: *
disallow: /group-2

user-agent: googlebot
disallow: /group-3
"""


@pytest.mark.parametrize(
    ("agent", "group"),
    [
        pytest.param("Googlebot-News", "googlebot-news", id="its own group"),
        pytest.param("Googlebot", "googlebot", id="not a longer token's group"),
        pytest.param(["Googlebot-Image", "Googlebot"], "googlebot", id="the fallback"),
        pytest.param("Googlebot-Image", "*", id="no fallback unless asked for"),
        pytest.param("Storebot-Google", "*", id="not a token within a token"),
        pytest.param("Otherbot", "*", id="any other agent"),
        pytest.param("*", "*", id="any agent"),
    ],
)
def test_most_specific_group_is_used(agent: str | list[str], group: str) -> None:
    """The user-agent precedence example of Google's specification."""
    robots = RobotsTxt.parse(_GOOGLE_AGENTS)
    number = {"googlebot-news": 1, "*": 2, "googlebot": 3}[group]

    blocked = [n for n in (1, 2, 3) if not robots.can_fetch(agent, f"/group-{n}")]

    assert robots.match(agent, "/").group == group
    assert blocked == [number]


_MERGED = """\
user-agent: googlebot-news
disallow: /fish

user-agent: *
disallow: /carrots

user-agent: googlebot-news
disallow: /shrimp
"""

_SHARED = """\
user-agent: a
disallow: /c

user-agent: b
disallow: /d

user-agent: e
user-agent: f
disallow: /g

user-agent: h
"""

_AROUND_A_SITEMAP = """\
user-agent: a
sitemap: https://example.com/sitemap.xml

user-agent: b
disallow: /
"""

_AROUND_A_DELAY = """\
user-agent: a
crawl-delay: 5

user-agent: b
disallow: /
"""


@_DIALECTS
@pytest.mark.parametrize(
    ("body", "agent", "blocked"),
    [
        pytest.param(
            _MERGED, "googlebot-news", ["/fish", "/shrimp"], id="groups are merged"
        ),
        pytest.param(_MERGED, "other", ["/carrots"], id="the star's group is not"),
        pytest.param(_SHARED, "a", ["/c"], id="the first group"),
        pytest.param(_SHARED, "b", ["/d"], id="the second group"),
        pytest.param(_SHARED, "e", ["/g"], id="e of the shared group"),
        pytest.param(_SHARED, "f", ["/g"], id="f of the shared group"),
        pytest.param(_SHARED, "h", [], id="the group without rules"),
        pytest.param(_SHARED, "x", [], id="no group"),
        pytest.param(_AROUND_A_SITEMAP, "a", ["/"], id="before the sitemap"),
        pytest.param(_AROUND_A_SITEMAP, "b", ["/"], id="after the sitemap"),
        pytest.param(_AROUND_A_DELAY, "a", ["/"], id="before the delay"),
        pytest.param(_AROUND_A_DELAY, "b", ["/"], id="after the delay"),
    ],
)
def test_grouping_example_of_googles_specification(
    body: str, agent: str, blocked: list[str], dialect: Dialect
) -> None:
    robots = RobotsTxt.parse(body, dialect=dialect)
    lines = [line.split() for line in body.splitlines()]
    paths = [words[1] for words in lines if words[:1] == ["disallow:"]]

    assert [path for path in paths if not robots.can_fetch(agent, path)] == blocked


_SIMPLE = """\
User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""

_LONGEST = """\
User-Agent: foobot
Allow: /example/page/
Disallow: /example/page/disallowed.gif
"""


@_DIALECTS
@pytest.mark.parametrize(
    ("body", "agent", "path", "is_allowed"),
    [
        (_SIMPLE, "otherbot", "/publications/a", True),
        (_SIMPLE, "otherbot", "/a.gif", False),
        (_SIMPLE, "otherbot", "/a.gifs", True),
        (_SIMPLE, "otherbot", "/publications/a.gif", True),
        (_SIMPLE, "otherbot", "/example/page.html", False),
        (_SIMPLE, "otherbot", "/example", True),
        (_SIMPLE, "foobot", "/", False),
        (_SIMPLE, "foobot", "/publications/", False),
        (_SIMPLE, "foobot", "/example/page.html", True),
        (_SIMPLE, "foobot", "/example/allowed.gif", True),
        (_SIMPLE, "foobot", "/example/other.gif", False),
        (_SIMPLE, "barbot", "/example/page.html", False),
        (_SIMPLE, "bazbot", "/example/page.html", False),
        (_SIMPLE, "barbot", "/a.gif", True),
        (_SIMPLE, "quxbot", "/example/page.html", True),
        (_SIMPLE, "quxbot", "/a.gif", True),
        (_LONGEST, "foobot", "/example/page/", True),
        (_LONGEST, "foobot", "/example/page/disallowed.gif", False),
        (_LONGEST, "foobot", "/example/page/allowed.gif", True),
        (_LONGEST, "otherbot", "/example/page/disallowed.gif", True),
    ],
)
def test_example_of_rfc_9309(
    body: str, agent: str, path: str, dialect: Dialect, *, is_allowed: bool
) -> None:
    """RFC 9309 §5.1, §5.2."""
    robots = RobotsTxt.parse(body, dialect=dialect)

    assert robots.can_fetch(agent, _HOST + path) is is_allowed


@pytest.mark.parametrize(
    "field", ["User-agent", "user-agent", "USER-AGENT", "UsEr-AgEnT"]
)
@pytest.mark.parametrize("token", ["ExampleBot", "examplebot", "EXAMPLEBOT"])
@_DIALECTS
def test_fields_and_tokens_have_no_case(
    field: str, token: str, dialect: Dialect
) -> None:
    """RFC 9309 §2.2.1."""
    robots = RobotsTxt.parse(f"{field}: {token}\nDisallow: /", dialect=dialect)

    assert not robots.can_fetch("ExampleBot", "/")


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        pytest.param("/foo/bar?baz=quz", "/foo/bar?baz=quz", id="plain text"),
        pytest.param(
            "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
            "/foo/bar?baz=https%3A%2F%2Ffoo.bar",
            id="reserved characters, encoded on both sides",
        ),
        pytest.param(
            "/foo/bar?baz=https://foo.bar",
            "/foo/bar?baz=https://foo.bar",
            id="reserved characters, as they are on both sides",
        ),
        pytest.param("/foo/bar/ツ", "/foo/bar/ツ", id="outside ASCII on both sides"),
        pytest.param("/foo/bar/ツ", "/foo/bar/%E3%83%84", id="encoded in the URL"),
        pytest.param("/foo/bar/%E3%83%84", "/foo/bar/ツ", id="encoded in the file"),
        pytest.param(
            "/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84", id="lower-case digits"
        ),
        pytest.param("/foo/bar/%62%61%7A", "/foo/bar/baz", id="unreserved, encoded"),
        pytest.param("/foo/bar/baz", "/foo/bar/%62%61%7A", id="unreserved, in the URL"),
        pytest.param(
            "/path/file-with-a-%2A.html",
            "/path/file-with-a-*.html",
            id="an encoded star is a star of the URL",
        ),
        pytest.param(
            "/path/foo-%24", "/path/foo-$", id="an encoded dollar is a dollar"
        ),
        pytest.param("/path/foo-%24", "/path/foo-%24", id="encoded on both sides"),
        pytest.param("/path/*", "/path/%2A", id="a star matches an encoded star"),
        pytest.param("/a b", "/a%20b", id="a space is sent encoded"),
        pytest.param("/a%20b", "/a b", id="a space of the URL"),
        pytest.param('/"<>', "/%22%3C%3E", id="what no URI may hold"),
        pytest.param("/100%", "/100%25", id="a lone percent sign"),
        pytest.param("/a$b", "/a$b", id="a dollar inside"),
        pytest.param("/a$b", "/a%24b", id="a dollar inside, encoded in the URL"),
        pytest.param("/a/b", "/a/./c/../b", id="dot segments"),
        pytest.param("/a/b", "/a/%2e%2E/a/b", id="encoded dot segments"),
        pytest.param("/a/b", "/c/%2e%2e/../a/b", id="encoded dots before plain ones"),
        pytest.param("/a/b", "/a/c/d/%2e%2e/../b", id="encoded dots are segments"),
        pytest.param("/?a=/../b", "/?a=/../b", id="dots in a query stay"),
    ],
)
def test_rule_matches_each_spelling_of_its_path(rule: str, path: str) -> None:
    """RFC 9309 §2.2.2, §2.2.3."""
    robots = RobotsTxt.parse(f"User-agent: a\nAllow: {rule}\nDisallow: /")

    match = robots.match("a", _HOST + path)

    assert match.allowed
    assert match.rule is not None
    assert match.rule.pattern == rule
    assert robots.can_fetch("a", path)


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        pytest.param("/a%2Fb", "/a/b", id="an encoded slash is no slash"),
        pytest.param("/a/b", "/a%2Fb", id="a slash is no encoded slash"),
        pytest.param("/a%3Fb", "/a?b", id="an encoded question mark"),
        pytest.param("/a%3Ab", "/a:b", id="an encoded colon"),
        pytest.param("/a%2A", "/ab", id="an encoded star is no star"),
        pytest.param("/a%24", "/a", id="an encoded dollar is no end"),
        pytest.param("/a%2561", "/aa", id="nothing is decoded twice"),
        pytest.param("/A", "/%61", id="case counts after decoding"),
        pytest.param("/é", "/%e9", id="UTF-8 is not latin-1"),
        pytest.param("%2Fa", "/a", id="a pattern must begin with a slash"),
        pytest.param("a", "/a", id="a pattern without a slash"),
    ],
)
def test_rule_does_not_match_another_path(rule: str, path: str) -> None:
    robots = RobotsTxt.parse(f"User-agent: a\nDisallow: {rule}")

    assert robots.can_fetch("a", path)


def test_octets_outside_utf8_match_their_escapes() -> None:
    robots = RobotsTxt.parse(b"User-agent: a\nDisallow: /\xe9")

    assert not robots.can_fetch("a", "/%e9t%e9")
    assert robots.can_fetch("a", "/é")


@steady(300)
@given(
    st.lists(
        st.sampled_from(
            ["%", "4", "1", "f", "%41", "%2a", "%24", "é", "$", "*", "a", "/"]
        )
    ).map("".join)
)
def test_pattern_has_the_spelling_of_the_reference(value: str) -> None:
    octets = as_octets(value)

    pattern = RFC9309.spelt(octets)

    assert pattern == pattern_spelling(octets.encode("latin-1"))


@steady(100)
@given(st.lists(st.lists(st.sampled_from(["%", "4", "1", "$", "*", "/"])), min_size=1))
def test_many_patterns_are_spelt_as_each_by_itself(values: list[list[str]]) -> None:
    """Neither an escape nor a final "$" reaches over the end of a line."""
    patterns = ["".join(value) for value in values]

    spelt = RFC9309.spelt("\n".join(patterns))

    assert spelt.split("\n") == [RFC9309.spelt(pattern) for pattern in patterns]


@steady(300)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_target_is_plain_ascii_and_has_one_spelling(text: str) -> None:
    once = RFC9309.target(f"/{text}")

    assert once.startswith("/")
    assert once.isascii()
    assert not set(once) & set(' *$#"<>\\^`{|}')
    assert RFC9309.target(once) == once


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("/a", "/a"),
        ("//a/b", "//a/b"),
        ("/a#b", "/a"),
        ("/#", "/"),
        ("/a?b#c", "/a?b"),
        ("https://h", "/"),
        ("https://h?q", "/?q"),
        ("https://h/a#b", "/a"),
        ("https://h/a;p?q", "/a;p?q"),
        ("https://h/a/..", "/"),
        ("https://h/a/%2e%2e", "/"),
        ("/a/%2e%2e/b?c/../d", "/b?c/../d"),
    ],
)
def test_target_is_path_and_query(url: str, target: str) -> None:
    assert RFC9309.target(url) == target


@pytest.mark.parametrize(
    "url", ["https://h", "https://h/é?a/../b#c", "https://h/a/../b*$", "http:\\\\h\\a"]
)
def test_target_of_a_split_url_is_that_of_the_url(url: str) -> None:
    assert RFC9309.target_of_path(split_url(url)[1]) == RFC9309.target(url)


@pytest.mark.parametrize("url", ["", "page", "h/page", "gopher://h/", b"/page", None])
def test_url_that_is_neither_absolute_nor_a_path_raises(url: object) -> None:
    robots = RobotsTxt.parse("User-agent: a\nDisallow: /")

    for ask in (robots.can_fetch, robots.match):
        with pytest.raises(InvalidURLError) as caught:
            ask("a", url)
        assert caught.value.url is url


@pytest.mark.parametrize(
    ("url", "is_robots_txt"),
    [
        ("https://h/robots.txt", True),
        ("/robots.txt", True),
        ("/robots.txt#x", True),
        ("/%72obots.txt", True),
        ("/a/../robots.txt", True),
        ("/robots.txt?x", False),
        ("/Robots.txt", False),
        ("/robots.txt/", False),
        ("/a/robots.txt", False),
    ],
)
def test_robots_txt_itself_is_allowed(url: str, *, is_robots_txt: bool) -> None:
    """RFC 9309 §2.2.2."""
    robots = RobotsTxt.parse("User-agent: *\nDisallow: /")

    match = robots.match("a", url)

    assert match.allowed is match.is_robots_txt is is_robots_txt
    assert (match.rule is None) is is_robots_txt
    assert match.group == "*"
    assert robots.can_fetch("a", url) is is_robots_txt


@pytest.mark.parametrize(
    "line",
    [
        "disalow: /",
        "dissallow: /",
        "disallowed: /",
        "disallow /",
        "disallow\t/",
        "site-map: http://h/",
    ],
)
def test_misspelt_line_is_no_rule(line: str) -> None:
    robots = RobotsTxt.parse(f"User-agent: a\n{line}")

    assert robots.can_fetch("a", "/")
    assert robots.groups[0].rules == ()


@pytest.mark.parametrize("line", ["useragent: a", "user agent: a", "user-agents: a"])
def test_misspelt_user_agent_line_begins_no_group(line: str) -> None:
    assert RobotsTxt.parse(f"{line}\nDisallow: /").groups == ()


@pytest.mark.parametrize(
    "value", ["MJ12bot", "008", "sitecheck.internetseer.com", "my_bot-1.0"]
)
def test_tokens_may_hold_digits_and_dots(value: str) -> None:
    robots = RobotsTxt.parse(f"User-agent: {value}\nDisallow: /")

    assert robots.groups[0].tokens == (value.lower(),)
    assert not robots.can_fetch(value, "/")
    assert robots.can_fetch(value[:2], "/")


@pytest.mark.parametrize("value", ["googlebot/1.2", "googlebot*", "Googlebot (x)"])
def test_token_ends_before_the_first_other_character(value: str) -> None:
    robots = RobotsTxt.parse(f"User-agent: {value}\nDisallow: /")

    assert not robots.can_fetch("Googlebot", "/")


def test_line_of_any_length_counts_whole() -> None:
    path = "/" + "a" * 20_000
    robots = RobotsTxt.parse(f"User-agent: a\nDisallow: {path}")

    assert not robots.can_fetch("a", path)
    assert robots.can_fetch("a", path[:-1])


def test_nul_is_an_octet_like_any_other() -> None:
    robots = RobotsTxt.parse(b"User-agent: a\0b\nDisallow: /a\0b")

    assert not robots.can_fetch("a", "/a%00b")
    assert robots.can_fetch("a", "/a")


def test_index_html_means_only_itself() -> None:
    robots = RobotsTxt.parse("User-agent: a\nDisallow: /\nAllow: /index.html")

    assert robots.can_fetch("a", "/index.html")
    assert not robots.can_fetch("a", "/")


@pytest.mark.parametrize(
    ("beginning", "is_read"),
    [
        pytest.param(b"", True, id="none"),
        pytest.param(b"\xef\xbb\xbf", True, id="a whole one"),
        pytest.param(b"\xef\xbb", False, id="half of one"),
        pytest.param(b"\xef\xbb\xbf\xef\xbb\xbf", False, id="two"),
        pytest.param(b"\xff\xfe", False, id="another encoding's"),
    ],
)
def test_byte_order_mark_is_ignored(beginning: bytes, *, is_read: bool) -> None:
    robots = RobotsTxt.parse(beginning + b"User-agent: a\nDisallow: /")

    assert robots.can_fetch("a", "/") is not is_read
