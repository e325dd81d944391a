"""One long target against many patterns."""

from __future__ import annotations

from itertools import chain, zip_longest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robotsgate.robotstxt._pattern import IndexedTarget, matches
from tests.robotstxt import reference
from tests.tables import cases

# Longer targets are searched without an index.
_LONGEST_INDEXED = 32_768

# Only two letters, so that pieces of long parts occur in many places.
_PARTS = st.lists(st.text("ab", max_size=24), min_size=1, max_size=5)


@st.composite
def _nearly_matching(draw: st.DrawFn) -> tuple[str, str]:
    """A pattern and a target that contains its parts, mostly in order."""
    start, *parts = draw(_PARTS)
    end = draw(st.sampled_from(["$", "*$", "", "*x"]))
    pattern = "/" + "*".join([start, *parts]) + end
    order = draw(st.one_of(st.just(parts), st.permutations(parts)))
    gaps = draw(st.lists(st.text("abc", max_size=9), max_size=len(parts) + 1))
    pieces = chain.from_iterable(zip_longest(gaps, order, fillvalue=""))
    target = "/" + start + "".join(pieces)
    lost = draw(st.integers(-len(target), len(target)))  # none, half the time
    return pattern, target if lost <= 0 else target[:lost] + target[lost + 1 :]


def _assert_all_agree(pattern: str, target: str) -> bool:
    expected = reference.matches(pattern, target)
    assert matches(pattern, target) is expected
    assert IndexedTarget(target).matches(pattern) is expected
    return expected


@given(_nearly_matching())
def test_matching_agrees_with_the_reference(
    case: tuple[str, str],
) -> None:
    _assert_all_agree(*case)


@settings(max_examples=40)
@given(_nearly_matching(), st.sampled_from([0, 1, 30_000]))
def test_matching_around_the_index_limit_agrees_with_the_reference(
    case: tuple[str, str], extra: int
) -> None:
    pattern, short = case
    middle = len(short) // 2
    padding = _LONGEST_INDEXED - len(short) + extra
    target = short[:middle] + "c" * padding + short[middle:]

    _assert_all_agree(pattern, target)


@cases("pattern target is_match", {
    "a part of one piece": ("/*abababab", "/abababab", True),
    "a part of two pieces": ("/*ababababa", "/ababababa", True),
    "its last piece is wrong": ("/*ababababb", "/ababababa", False),
    "its first piece is missing": ("/*babababab", "/aabababab", False),
    "its pieces in wrong order": ("/*aaaaaaaabbbbbbbbc", "/bbbbbbbbcaaaaaaaa", False),
    "its pieces apart": ("/*aaaaaaaabbbbbbbbb", "/aaaaaaaacbbbbbbbbb", False),
    "a long part that occurs too early":
        ("/aaaaaaaabb*aaaaaaaabb", "/aaaaaaaabbaaaaaaaab", False),
    "a part longer than the target": ("/*" + "a" * 40, "/" + "a" * 39, False),
})  # fmt: skip
def test_pattern_matches(pattern: str, target: str, *, is_match: bool) -> None:
    assert _assert_all_agree(pattern, target) is is_match


@pytest.mark.parametrize("padding", [_LONGEST_INDEXED - 40, _LONGEST_INDEXED])
@cases("pattern start end is_match", {
    "a part at the start": ("/*ab", "/ab", "", True),
    "a part needed twice": ("/*ab*ab", "/ab", "", False),
    "a part completed by the padding": ("/*abc*", "/ab", "", True),
    "one letter too few": ("/*aaaaaaaaaab", "/", "aaaaaaaaab", False),
})  # fmt: skip
def test_pattern_matches_target_around_the_index_limit(
    pattern: str, start: str, end: str, padding: int, *, is_match: bool
) -> None:
    target = f"{start}{'c' * padding}{end}"

    assert _assert_all_agree(pattern, target) is is_match
