"""One long target against many patterns."""

from __future__ import annotations

from itertools import chain, zip_longest

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from robotsgate.robotstxt._indexed_target import IndexedTarget
from robotsgate.robotstxt._pattern import as_prefix, matches
from tests.robotstxt import reference
from tests.robotstxt.strategies import PATTERNS, TARGETS, steady

# Longer targets are searched without an index.
_LONGEST_INDEXED = 32_768

_NO_PREFIXES = PATTERNS.map(
    lambda pattern: pattern if as_prefix(pattern) is None else f"{pattern}$"
)

# Of two letters, so that the pieces of long parts occur in many places.
_PARTS = st.lists(st.text("ab", max_size=24), min_size=1, max_size=5)


@st.composite
def _nearly_matching(draw: st.DrawFn) -> tuple[str, str]:
    """A pattern, and a target that holds its parts, mostly in their order."""
    start, *parts = draw(_PARTS)
    end = draw(st.sampled_from(["$", "*$", "", "*x"]))
    pattern = "/" + "*".join([start, *parts]) + end
    assume(as_prefix(pattern) is None)
    order = draw(st.one_of(st.just(parts), st.permutations(parts)))
    gaps = draw(st.lists(st.text("abc", max_size=9), max_size=len(parts) + 1))
    pieces = chain.from_iterable(zip_longest(gaps, order, fillvalue=""))
    target = "/" + start + "".join(pieces)
    lost = draw(st.integers(-len(target), len(target)))  # for half of them, nothing
    return pattern, target if lost <= 0 else target[:lost] + target[lost + 1 :]


def _assert_all_agree(pattern: str, target: str) -> bool:
    expected = reference.matches(pattern, target)
    assert matches(pattern, target) is expected
    assert IndexedTarget(target).matches(pattern) is expected
    return expected


@steady(300)
@given(_nearly_matching())
def test_target_of_two_letters_is_matched_as_by_the_reference(
    case: tuple[str, str],
) -> None:
    _assert_all_agree(*case)


@steady(200)
@given(_NO_PREFIXES, TARGETS)
def test_any_target_is_matched_as_by_the_reference(pattern: str, target: str) -> None:
    _assert_all_agree(pattern, target)


@steady(100)
@given(st.lists(_NO_PREFIXES, max_size=8), TARGETS)
def test_target_that_is_asked_again_answers_the_same(
    patterns: list[str], target: str
) -> None:
    indexed = IndexedTarget(target)

    answers = [indexed.matches(pattern) for pattern in (*patterns, *patterns[::-1])]

    expected = [reference.matches(pattern, target) for pattern in patterns]
    assert answers == [*expected, *expected[::-1]]


@steady(40)
@given(_nearly_matching(), st.sampled_from([0, 1, 30_000]))
def test_target_beyond_the_limit_is_matched_as_by_the_reference(
    case: tuple[str, str], more: int
) -> None:
    pattern, short = case
    place = len(short) // 2
    room = _LONGEST_INDEXED - len(short) + more
    target = short[:place] + "c" * room + short[place:]

    _assert_all_agree(pattern, target)


@pytest.mark.parametrize(
    ("pattern", "target", "is_match"),
    [
        pytest.param("/a$", "/a", True, id="the whole target"),
        pytest.param("/a$", "/ab", False, id="more than the whole"),
        pytest.param("/a*b$", "/ab", True, id="start and end touch"),
        pytest.param("/ab*ba$", "/aba", False, id="start and end overlap"),
        pytest.param("/ab*ba*", "/aba", False, id="start and part overlap"),
        pytest.param("/a*b*c$", "/abc", True, id="all parts touch"),
        pytest.param("/a*bc*bc$", "/abc", False, id="part and end overlap"),
        pytest.param("/*ab*cd", "/cdab", False, id="a part that occurs too early"),
        pytest.param("/ab*ab", "/ab", False, id="a part only within the start"),
        pytest.param("/***a", "/a", True, id="empty parts"),
        pytest.param("/a**$", "/a", True, id="an empty part at the end"),
        pytest.param("*$", "/", True, id="nothing but empty parts"),
        pytest.param("/*$*$", "/a$", True, id="a dollar that is a part"),
        pytest.param("/*$*$", "/a", False, id="a dollar that is missing"),
        pytest.param("/*a", "/#a", True, id="behind a number sign"),
        pytest.param("/b*a", "/a", False, id="another start"),
        pytest.param("/*b$", "/bc", False, id="another end"),
        pytest.param("/*abababab", "/abababab", True, id="a part of one piece"),
        pytest.param("/*ababababa", "/ababababa", True, id="a part of two pieces"),
        pytest.param("/*ababababb", "/ababababa", False, id="its last piece is wrong"),
        pytest.param(
            "/*babababab", "/aabababab", False, id="its first piece is not there"
        ),
        pytest.param(
            "/*aaaaaaaabbbbbbbbc",
            "/bbbbbbbbcaaaaaaaa",
            False,
            id="its pieces in another order",
        ),
        pytest.param(
            "/*aaaaaaaabbbbbbbbb",
            "/aaaaaaaacbbbbbbbbb",
            False,
            id="its pieces apart",
        ),
        pytest.param(
            "/aaaaaaaabb*aaaaaaaabb",
            "/aaaaaaaabbaaaaaaaab",
            False,
            id="a long part that occurs too early",
        ),
        pytest.param("/*" + "a" * 40, "/" + "a" * 39, False, id="longer than all"),
    ],
)
def test_pattern_matches(pattern: str, target: str, *, is_match: bool) -> None:
    assert _assert_all_agree(pattern, target) is is_match


@pytest.mark.parametrize("room", [_LONGEST_INDEXED - 40, _LONGEST_INDEXED])
@pytest.mark.parametrize(
    ("pattern", "start", "end", "is_match"),
    [
        pytest.param("/a*b$", "/a", "b", True, id="start and end"),
        pytest.param("/*ab", "/", "ab", True, id="a part at the end"),
        pytest.param("/*ab", "/ab", "", True, id="a part at the start"),
        pytest.param("/*ab*ab", "/ab", "", False, id="a part that is needed twice"),
        pytest.param("/*ab*ba", "/ba", "ab", False, id="a part that is too early"),
        pytest.param("/*abc*", "/ab", "", True, id="a part that the room completes"),
        pytest.param("/*cab*b", "/", "ab", False, id="a part within another"),
        pytest.param("/*x", "/", "", False, id="a part that is not there"),
        pytest.param("/*aaaaaaaaaab", "/", "aaaaaaaaab", False, id="one too few"),
    ],
)
def test_target_around_the_limit_is_matched(
    pattern: str, start: str, end: str, room: int, *, is_match: bool
) -> None:
    target = f"{start}{'c' * room}{end}"

    assert _assert_all_agree(pattern, target) is is_match
