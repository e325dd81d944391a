"""Which targets one pattern matches (RFC 9309 §2.2.3)."""

from __future__ import annotations

import pytest
from hypothesis import given

from robotsgate.robotstxt._pattern import as_prefix, matches, telling_part
from tests.robotstxt import reference
from tests.robotstxt.strategies import PATTERNS, TARGETS, steady

_NO_PREFIXES = PATTERNS.map(
    lambda pattern: pattern if as_prefix(pattern) is None else f"{pattern}$"
)


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [
        pytest.param("/a", "/a", id="plain text"),
        pytest.param("", "", id="nothing"),
        pytest.param("*", "", id="a star alone"),
        pytest.param("/a*", "/a", id="a final star"),
        pytest.param("/a***", "/a", id="final stars"),
        pytest.param("/a$b", "/a$b", id="a dollar inside"),
        pytest.param("/a$*", "/a$", id="a dollar before final stars"),
        pytest.param("/a$", None, id="an end"),
        pytest.param("/a*$", None, id="a star before the end"),
        pytest.param("/a*b", None, id="a star inside"),
        pytest.param("/a*b*", None, id="a star inside and a final one"),
        pytest.param("*a", None, id="a star first"),
        pytest.param("$", None, id="a dollar alone"),
    ],
)
def test_prefix_is_all_that_some_patterns_ask_for(
    pattern: str, prefix: str | None
) -> None:
    assert as_prefix(pattern) == prefix


@steady(200)
@given(PATTERNS, TARGETS)
def test_pattern_that_is_a_prefix_matches_what_begins_with_it(
    pattern: str, target: str
) -> None:
    prefix = as_prefix(pattern)

    assert prefix is None or (
        target.startswith(prefix) is reference.matches(pattern, target)
    )


@steady(200)
@given(_NO_PREFIXES, TARGETS)
def test_pattern_that_is_no_prefix_matches_as_by_the_reference(
    pattern: str, target: str
) -> None:
    assert matches(pattern, target) is reference.matches(pattern, target)


@pytest.mark.parametrize(
    ("pattern", "part"),
    [
        pytest.param("/*.pdf", ".pdf", id="the part behind the star"),
        pytest.param("/*.pdf$", ".pdf", id="the end"),
        pytest.param("/downloads/*.pdf", ".pdf", id="not the start, although longer"),
        pytest.param("/a*sid=*b", "sid=", id="the longest part"),
        pytest.param("/a*one*two", "two", id="the last of the longest"),
        pytest.param("/downloads/*b", "/downloads/", id="the start of short parts"),
        pytest.param("/*/*?", "?", id="not a start that is as short"),
        pytest.param("/a$", "/a", id="the start where there is no star"),
        pytest.param("/a$b*c", "/a$b", id="a dollar inside"),
        pytest.param("*$", "", id="nothing"),
    ],
)
def test_telling_part_is_one_that_few_targets_hold(pattern: str, part: str) -> None:
    assert telling_part(pattern) == part


@steady(200)
@given(PATTERNS, TARGETS)
def test_telling_part_is_in_each_target_that_matches(pattern: str, target: str) -> None:
    part = telling_part(pattern)

    assert part in pattern.removesuffix("$").split("*")
    assert part in target or not reference.matches(pattern, target)
