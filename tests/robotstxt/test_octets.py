"""The one spelling of paths and patterns (RFC 9309 §2.2.2)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotsgate.robotstxt._octets import (
    as_octets,
    is_plain,
    normalised_patterns,
    normalised_target,
    readable,
    with_escapes_upper,
)
from robotsgate.urls._path import without_dots
from tests.robotstxt.reference import spelling
from tests.robotstxt.strategies import steady

_ESCAPES = st.lists(
    st.sampled_from(["%", "4", "1", "a", "F", "%41", "%2f", "\xe9", "/", " ", "~", "$"])
).map("".join)


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        pytest.param("/plain?a=b", "/plain?a=b", id="plain text stays"),
        pytest.param("%41%7a%30%2d%2E%5f%7E", "Az0-._~", id="unreserved is decoded"),
        pytest.param("%2f%3a%c3", "%2F%3A%C3", id="other digits become upper-case"),
        pytest.param("%25%32%31", "%2521", id="nothing is decoded twice"),
        pytest.param("\xc3\xa9", "%C3%A9", id="octets outside ASCII are encoded"),
        pytest.param(' "<>\\^`{|}', "%20%22%3C%3E%5C%5E%60%7B%7C%7D", id="no URI char"),
        pytest.param("\0\x7f\t", "%00%7F%09", id="controls are encoded"),
        pytest.param("%", "%25", id="a lone percent sign"),
        pytest.param("%4", "%254", id="one digit"),
        pytest.param("%zz%4g", "%25zz%254g", id="no digits"),
        pytest.param("%%41", "%25A", id="a percent sign before an escape"),
        pytest.param("*$:/?#[]@!&'()+,;=", "*$:/?#[]@!&'()+,;=", id="reserved stays"),
    ],
)
def test_normalised_gives_each_octet_one_spelling(octets: str, expected: str) -> None:
    assert normalised_patterns(octets) == expected


@pytest.mark.parametrize("octet", range(256))
def test_each_escape_has_one_spelling(octet: int) -> None:
    is_unreserved = chr(octet).isascii() and (
        chr(octet).isalnum() or chr(octet) in "-._~"
    )
    spelt = chr(octet) if is_unreserved else f"%{octet:02X}"

    for escape in (f"%{octet:02X}", f"%{octet:02x}"):
        assert normalised_target(f"/{escape}") == f"/{spelt}"


@steady(400)
@given(
    st.one_of(
        _ESCAPES,
        st.text(st.characters(max_codepoint=255, exclude_characters="\r\n")),
    )
)
def test_normalised_equals_the_reference_and_is_its_own_fixed_point(
    octets: str,
) -> None:
    once = normalised_patterns(octets)

    assert once == spelling(octets.encode("latin-1"))
    assert normalised_patterns(once) == once


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        pytest.param("/a%", "/a%", id="a lone percent sign stays"),
        pytest.param("%aa%Ab%4g", "%AA%AB%4g", id="digits become upper-case"),
        pytest.param("%41", "%41", id="nothing is decoded"),
        pytest.param(
            "\xc3\xa9 ", "%C3%A9 ", id="only octets outside ASCII are encoded"
        ),
        pytest.param("/a b", "/a b", id="plain text stays"),
    ],
)
def test_with_escapes_upper_does_only_what_google_does(
    octets: str, expected: str
) -> None:
    assert with_escapes_upper(octets) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/a/b", "/a/b"),
        ("/a/./b", "/a/b"),
        ("/a/../b", "/b"),
        ("/a/b/..", "/a/"),
        ("/a/b/.", "/a/b/"),
        ("/..", "/"),
        ("/.", "/"),
        ("/../../a", "/a"),
        ("/a//../b", "/a/b"),
        ("/...", "/..."),
        ("/.a/..b", "/.a/..b"),
        ("//..//", "//"),
        ("/a/%2e%2E/b", "/b"),
        ("/a/.%2e", "/"),
        ("/a/%2e", "/a/"),
        ("/a/b/%2e%2e/../c", "/c"),
        ("/%2ea/%2e.b", "/%2ea/%2e.b"),
    ],
)
def test_dot_segments_are_removed(path: str, expected: str) -> None:
    """RFC 3986 §5.2.4, as clients do before they dial."""
    assert without_dots(path) == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("/", True),
        ("/a/b.html?c=d&e=f;g", True),
        ("/a%41", False),
        ("/é", False),
        ("/a/../b", False),
        ("/.well-known", False),
        ("/a*", False),
        ("/a$", False),
        ("/a#b", False),
        ("/a b", False),
        ("/a\\b", False),
    ],
)
def test_is_plain_is_true_only_of_what_nothing_changes(
    target: str, *, expected: bool
) -> None:
    assert is_plain(target) is expected


@steady(200)
@given(st.text())
def test_octets_of_a_text_read_as_that_text(text: str) -> None:
    octets = as_octets(text)

    assert all(ord(character) < 256 for character in octets)
    assert octets.encode("latin-1") == text.encode("utf-8", "surrogatepass")
    assert readable(octets) == text


def test_octets_that_are_no_utf8_read_as_replacement_characters() -> None:
    assert readable("/\xff\xe9") == "/��"


def test_lone_surrogate_becomes_octets() -> None:
    assert as_octets("\ud800") == "\xed\xa0\x80"
