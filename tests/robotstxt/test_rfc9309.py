"""The default dialect, and the specifications' examples in both dialects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotsgate.errors import InvalidURLError
from robotsgate.robotstxt import Dialect, RobotsTxt
from robotsgate.robotstxt._dialect import (
    RFC9309,
    as_octets,
    normalised_patterns,
    normalised_targets,
    readable,
)
from robotsgate.urls._url import split_url
from tests.robotstxt.reference import pattern_spelling, spelling
from tests.tables import cases

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
def test_path_example_from_googles_specification(
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


_GOOGLE_AGENTS = """\
user-agent: googlebot-news
disallow: /group-1

user-agent: *
disallow: /group-2

user-agent: googlebot
disallow: /group-3
"""


@cases("agent group", {
    "its own group": ("Googlebot-News", "googlebot-news"),
    "not a longer token's group": ("Googlebot", "googlebot"),
    "the second agent in a list": (["Googlebot-Image", "Googlebot"], "googlebot"),
    "no second agent unless listed": ("Googlebot-Image", "*"),
    "not a token within a token": ("Storebot-Google", "*"),
    "any other agent": ("Otherbot", "*"),
    "any agent": ("*", "*"),
})  # fmt: skip
def test_most_specific_group_is_used(agent: str | list[str], group: str) -> None:
    """The user-agent precedence example from Google's specification."""
    robots = RobotsTxt.parse(_GOOGLE_AGENTS)
    number = {"googlebot-news": 1, "*": 2, "googlebot": 3}[group]

    blocked = [n for n in (1, 2, 3) if not robots.can_fetch(agent, f"/group-{n}")]

    assert robots.match(agent, "/").group == group
    assert blocked == [number]


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
@cases("body agent allowed disallowed", {
    "for all agents": (_SIMPLE, "otherbot",
        ["/publications/a", "/publications/a.gif", "/a.gifs", "/example"],
        ["/a.gif", "/example/page.html"]),
    "foobot": (_SIMPLE, "foobot", ["/example/page.html", "/example/allowed.gif"],
        ["/", "/publications/", "/example/other.gif"]),
    "barbot": (_SIMPLE, "barbot", ["/a.gif"], ["/example/page.html"]),
    "bazbot": (_SIMPLE, "bazbot", ["/a.gif"], ["/example/page.html"]),
    "quxbot": (_SIMPLE, "quxbot", ["/example/page.html", "/a.gif"], []),
    "the longest match": (_LONGEST, "foobot",
        ["/example/page/", "/example/page/allowed.gif"],
        ["/example/page/disallowed.gif"]),
    "no group": (_LONGEST, "otherbot", ["/example/page/disallowed.gif"], []),
})  # fmt: skip
def test_example_from_rfc_9309(
    body: str, agent: str, allowed: list[str], disallowed: list[str], dialect: Dialect
) -> None:
    """RFC 9309 §5.1, §5.2."""
    robots = RobotsTxt.parse(body, dialect=dialect)

    assert all(robots.can_fetch(agent, _HOST + path) for path in allowed)
    assert not any(robots.can_fetch(agent, _HOST + path) for path in disallowed)


@cases("rule path", {
    "plain text": ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
    "reserved characters, encoded on both sides":
        ("/foo/bar?baz=https%3A%2F%2Ffoo.bar", "/foo/bar?baz=https%3A%2F%2Ffoo.bar"),
    "reserved characters, literal on both sides":
        ("/foo/bar?baz=https://foo.bar", "/foo/bar?baz=https://foo.bar"),
    "outside ASCII on both sides": ("/foo/bar/ツ", "/foo/bar/ツ"),
    "encoded in the URL": ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
    "encoded in the file": ("/foo/bar/%E3%83%84", "/foo/bar/ツ"),
    "lower-case hex digits": ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
    "unreserved, encoded in the file": ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
    "unreserved, encoded in the URL": ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
    "an encoded star matches a star in the URL":
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html"),
    "an encoded dollar matches a dollar": ("/path/foo-%24", "/path/foo-$"),
    "encoded on both sides": ("/path/foo-%24", "/path/foo-%24"),
    "a star matches an encoded star": ("/path/*", "/path/%2A"),
    "a space is sent encoded": ("/a b", "/a%20b"),
    "a space in the URL": ("/a%20b", "/a b"),
    "characters not allowed in a URI": ('/"<>', "/%22%3C%3E"),
    "a lone percent sign": ("/100%", "/100%25"),
    "a dollar inside": ("/a$b", "/a$b"),
    "a dollar inside, encoded in the URL": ("/a$b", "/a%24b"),
    "dot segments that change nothing": ("/a", "/a/./c/../b"),
    "dots in a query stay": ("/?a=/../b", "/?a=/../b"),
})  # fmt: skip
def test_rule_matches_every_spelling_of_its_path(rule: str, path: str) -> None:
    """RFC 9309 §2.2.2, §2.2.3."""
    robots = RobotsTxt.parse(f"User-agent: a\nAllow: {rule}\nDisallow: /")

    match = robots.match("a", _HOST + path)

    assert match.allowed
    assert match.rule is not None
    assert match.rule.pattern == rule
    assert robots.can_fetch("a", path)


@cases("rule path", {
    "an encoded slash is not a slash": ("/a%2Fb", "/a/b"),
    "a slash is not an encoded slash": ("/a/b", "/a%2Fb"),
    "an encoded question mark": ("/a%3Fb", "/a?b"),
    "an encoded colon": ("/a%3Ab", "/a:b"),
    "an encoded star is not a wildcard": ("/a%2A", "/ab"),
    "an encoded dollar is not an end": ("/a%24", "/a"),
    "nothing is decoded twice": ("/a%2561", "/aa"),
    "case matters after decoding": ("/A", "/%61"),
    "UTF-8 is not latin-1": ("/é", "/%e9"),
    "a pattern must begin with a slash": ("%2Fa", "/a"),
    "a pattern without a slash": ("a", "/a"),
    "a lone percent sign is not the letter after it": ("/*%", "/ab"),
    "a lone percent sign is not the escape of a letter": ("/*%", "/%61b"),
    "an escape's first digit is not another": ("/*%2", "/%3F"),
    "a lone percent sign at the end is the URL's end": ("/*%$", "/a%20b"),
})  # fmt: skip
def test_rule_does_not_match_a_different_path(rule: str, path: str) -> None:
    robots = RobotsTxt.parse(f"User-agent: a\nDisallow: {rule}")

    assert robots.can_fetch("a", path)


@given(
    st.lists(
        st.lists(
            st.sampled_from(
                ["%", "4", "1", "f", "%41", "%2a", "%24", "\xe9", "$", "*", "/"]
            )
        ),
        min_size=1,
    )
)
def test_spelling_of_patterns_agrees_with_the_reference(
    values: list[list[str]],
) -> None:
    """Neither an escape nor a final "$" extends past the end of a line."""
    patterns = ["".join(value) for value in values]

    spelt = RFC9309.spelling("\n".join(patterns))

    expected = [pattern_spelling(pattern.encode("latin-1")) for pattern in patterns]
    assert spelt.split("\n") == expected


@cases("rule path", {
    "any escape": ("/*%", "/a%20b"),
    "any escape, before a star": ("/%*b", "/%20b"),
    "any escape in a query": ("/*?q=%", "/search?q=%22a%22"),
    "the first digit of an escape": ("/*%2", "/a%2Fb"),
    "its first digit in lower case": ("/*%d", "/%D9%85"),
    "after a whole escape": ("/*%D9%", "/%d9%85"),
    "the end of the URL": ("/100%$", "/100%"),
    "with text after it": ("/100%-off", "/100%-off?x"),
    "the same, escaped": ("/100%25-off", "/100%-off"),
    "twice": ("/%a%a", "/%a%a"),
    "before a letter in lower case": ("/x%d", "/x%dog"),
    "before a dollar": ("/%$x", "/%$x"),
    "before an escape that is decoded": ("/%%41", "/%%41"),
    "escaped, with dot segments": ("/a%25/b", "/a%/./b"),
})  # fmt: skip
def test_percent_sign_without_two_digits_matches(rule: str, path: str) -> None:
    """It used to mean `%25`, so `/*%` did not match `/a%20b`."""
    robots = RobotsTxt.parse(f"User-agent: *\nDisallow: {rule}")

    assert not robots.can_fetch("a", path)


@cases("rules allowed", {
    "in both readings": ("Allow: /100%\nDisallow: /", True),
    "only as it is": ("Allow: /100%$\nDisallow: /", False),
    "only as %25": ("Allow: /100%25\nDisallow: /", False),
    "by a rule that is as long": ("Allow: /100*\nDisallow: /*00%", True),
    "by a shorter rule": ("Allow: /100\nDisallow: /*00%", False),
})  # fmt: skip
def test_url_with_a_lone_percent_sign_must_be_allowed_in_both_readings(
    rules: str, *, allowed: bool
) -> None:
    """Clients send it as it is, or as `%25`."""
    robots = RobotsTxt.parse(f"User-agent: *\n{rules}")

    assert robots.can_fetch("a", "/100%") is allowed
    assert robots.match("a", "/100%").allowed is allowed


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="%")))
def test_target_is_plain_ascii_and_has_one_spelling(text: str) -> None:
    for reading in RFC9309.readings(f"/{text}"):
        assert reading.startswith("/")
        assert reading.isascii()
        assert not set(reading) & set(' *$#"<>\\^`{|}')
        assert RFC9309.readings(reading)[0] == reading


@pytest.mark.parametrize(("url", "target"), [
    ("/a", "/a"), ("//a/b", "//a/b"), ("/a#b", "/a"), ("/#", "/"), ("/a?b#c", "/a?b"),
    ("https://h", "/"), ("https://h?q", "/?q"), ("https://h/a#b", "/a"),
    ("https://h/a;p?q", "/a;p?q"), ("https://h/a/..", "/a/.."), ("/%2e%7e", "/.~"),
])  # fmt: skip
def test_target_is_path_and_query(url: str, target: str) -> None:
    assert RFC9309.readings(url)[0] == target


@pytest.mark.parametrize(
    "url", ["https://h", "https://h/é?a/../b#c", "https://h/a/../b*$", "http://h/\\a"]
)
def test_split_url_has_the_same_readings_as_the_url(url: str) -> None:
    assert RFC9309.readings_of(split_url(url)[1]) == RFC9309.readings(url)


@pytest.mark.parametrize("url", ["", "page", "h/page", "gopher://h/", b"/page", None])
def test_url_that_is_neither_absolute_nor_a_path_raises(url: object) -> None:
    robots = RobotsTxt.parse("User-agent: a\nDisallow: /")

    for method in (robots.can_fetch, robots.match):
        with pytest.raises(InvalidURLError) as caught:
            method("a", url)
        assert caught.value.url is url


@pytest.mark.parametrize(("url", "is_robots_txt"), [
    ("https://h/robots.txt", True), ("/robots.txt", True), ("/robots.txt#x", True),
    ("/%72obots.txt", True), ("/a/../robots.txt", False), ("/robots.txt?x", False),
    ("/./robots.txt", False), ("/%2e/robots.txt", False), ("/\\robots.txt", False),
    ("/Robots.txt", False), ("/robots.txt/", False), ("/a/robots.txt", False),
])  # fmt: skip
def test_robots_txt_itself_is_allowed(url: str, *, is_robots_txt: bool) -> None:
    """RFC 9309 §2.2.2."""
    robots = RobotsTxt.parse("User-agent: *\nDisallow: /")

    match = robots.match("a", url)

    assert match.allowed is match.is_robots_txt is is_robots_txt
    assert (match.rule is None) is is_robots_txt
    assert match.group == "*"
    assert robots.can_fetch("a", url) is is_robots_txt


@cases("path line", {
    "literal, resolved": ("/public/../private/x", 2),
    "escaped, resolved": ("/public/%2e%2E/private/x", 2),
    "half escaped, resolved": ("/public/.%2e/private/x", 2),
    "not resolved": ("/private/%2e%2e/public", 2),
    "only the literal dots resolved": ("/x/../odd/%2e%2e/public", 3),
    "all resolved": ("/x/../y/%2e%2e/private/x", 2),
    "backslashes read as slashes": ("/public\\..\\private\\x", 2),
    "a literal backslash": ("/back\\slash", 4),
    "allowed in all readings": ("/public/../open/%2e/x\\y", None),
    "the first disallowed reading": ("/odd/../private/", 3),
    "with a tab, which clients drop": ("/pri\tvate/x", 2),
    "with a line end between dots": ("/x/.\n./private/x", 2),
})  # fmt: skip
def test_url_is_allowed_only_if_all_its_readings_are(
    path: str, line: int | None
) -> None:
    """Clients differ in which one they send, and servers in which one they serve."""
    robots = RobotsTxt.parse(
        "User-agent: *\nDisallow: /private/\nDisallow: /odd/\nDisallow: /back%5Cs"
    )

    match = robots.match("a", _HOST + path)

    assert (match.rule and match.rule.line) == line
    assert robots.can_fetch("a", path) is match.allowed is (line is None)
    assert [rule.line for rule in robots.matches("a", path)] == [line] * bool(line)


def test_only_the_first_hundred_headers_of_a_file_are_read() -> None:
    """Thousands of different headers used to take 0.2 s."""
    lines = [f"User-agent: Mozilla/5.0 (compatible; Bot{n}/1.0)" for n in range(101)]
    body = "\n".join([*lines, "User-agent: LaterBot/1.0", "Disallow: /"])

    robots = RobotsTxt.parse(body)

    assert not robots.can_fetch("Bot99", "/")
    assert robots.can_fetch("Bot100", "/")
    assert not robots.can_fetch("LaterBot", "/")


@cases("body url allowed", {
    "a long line, in full": ("Disallow: /" + "a" * 20_000, "/" + "a" * 19_999, True),
    "a NUL": (b"Disallow: /a\0b", "/a", True),
    "a NUL, escaped in the URL": (b"Disallow: /a\0b", "/a%00b", False),
    "index.html": ("Disallow: /\nAllow: /index.html", "/", False),
    "invalid UTF-8": (b"Disallow: /\xe9", "/%e9t", False),
    "a character that looks like it": (b"Disallow: /\xe9", "/é", True),
    "a lone surrogate": ("Disallow: /\ud800", "/%ED%A0%80", False),
    "an HTML page": ("<p>\nDisallow: /a\n</p>", "/a", False),
})  # fmt: skip
def test_line_is_read_as_it_is(body: bytes | str, url: str, *, allowed: bool) -> None:
    group = "User-agent: a\n" if isinstance(body, str) else b"User-agent: a\n"

    robots = RobotsTxt.parse(group + body)  # type: ignore[operator]  # the same type

    assert robots.can_fetch("a", url) is allowed


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_name_with_letters_outside_ascii_is_not_cut(encoding: str) -> None:
    """It used to be cut before the first one, so the rules applied to "J"."""
    body = "User-agent: Jävla-Foobot/1.0\nDisallow: /".encode(encoding)

    assert RobotsTxt.parse(body).match("J", "/").group is None


@cases("beginning is_read", {
    "no byte order mark": (b"", True),
    "a complete one": (b"\xef\xbb\xbf", True),
    "an incomplete one": (b"\xef\xbb", False),
    "two": (b"\xef\xbb\xbf\xef\xbb\xbf", False),
    "that of UTF-16-LE, before ASCII": (b"\xff\xfe", True),
    "that of UTF-16-BE, before ASCII": (b"\xfe\xff", True),
    "that of UTF-32-LE, before ASCII": (b"\xff\xfe\0\0", True),
    "that of UTF-32-BE, before ASCII": (b"\0\0\xfe\xff", True),
    "that of UTF-16-LE, and a NUL": (b"\xff\xfe# \0\n", True),
})  # fmt: skip
def test_byte_order_mark_is_ignored(beginning: bytes, *, is_read: bool) -> None:
    robots = RobotsTxt.parse(beginning + b"User-agent: a\nDisallow: /")

    assert robots.can_fetch("a", "/") is not is_read


@pytest.mark.parametrize(
    "encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
)
def test_encoding_given_by_a_byte_order_mark_is_read(encoding: str) -> None:
    """No line of such a file used to be understood, so everything was allowed."""
    text = f"\ufeff# {'Ж' * 40}\nUser-agent: a\r\nDisallow: /Ċé\nDisallow: /\n"
    body = text.encode(encoding)
    robots = RobotsTxt.parse(body)

    assert [rule.pattern for rule in robots.groups[0].rules] == ["/Ċé", "/"]
    for limit in range(len(body)):
        cut = RobotsTxt.parse(body, max_bytes=limit)
        assert {rule.pattern for group in cut.groups for rule in group.rules} <= {
            "/Ċé",
            "/",
        }


_ESCAPES = st.lists(
    st.sampled_from(["%", "4", "1", "a", "F", "%41", "%2f", "\xe9", "/", " ", "~", "$"])
).map("".join)


def test_each_escape_has_one_spelling() -> None:
    for octet in range(256):
        is_unreserved = chr(octet).isascii() and (
            chr(octet).isalnum() or chr(octet) in "-._~"
        )
        spelt = chr(octet) if is_unreserved else f"%{octet:02X}"

        for escape in (f"%{octet:02X}", f"%{octet:02x}"):
            assert normalised_targets(f"/{escape}") == (f"/{spelt}",)


@given(
    st.one_of(
        _ESCAPES, st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"))
    )
)
def test_normalizing_agrees_with_the_reference(octets: str) -> None:
    assert normalised_patterns(octets) == spelling(octets.encode("latin-1"))


@given(st.text())
def test_text_converted_to_octets_reads_back_unchanged(text: str) -> None:
    octets = as_octets(text)

    assert all(ord(character) < 256 for character in octets)
    assert octets.encode("latin-1") == text.encode("utf-8", "surrogatepass")
    assert readable(octets) == text


def test_invalid_utf8_reads_as_replacement_characters() -> None:
    assert readable("/\xff\xe9") == "/��"
