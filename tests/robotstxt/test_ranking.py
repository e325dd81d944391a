"""The most specific of the patterns that match, also where there are very many."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotsgate.robotstxt._matcher import NO_RULES, RuleLines, RuleSet
from robotsgate.robotstxt._pattern import as_prefix, telling_part
from robotsgate.robotstxt._ranking import Ranking
from tests.robotstxt import reference
from tests.robotstxt.strategies import PATTERNS, TARGETS, steady

_NOT_EMPTY = PATTERNS.filter(bool)

# Long enough that each target of more than three octets is looked at with an index,
# and itself matched by none.
_HUGE = "/*" + "z" * 2_000_000

# Up to here a set of rules puts them into order when it is first asked for one.
_QUICKLY_RANKED = 2_000


def _ranking(disallows: list[str], allows: list[str]) -> Ranking:
    return Ranking(
        disallows,
        allows,
        {
            pattern: telling_part(pattern)
            for pattern in (*disallows, *allows)
            if as_prefix(pattern) is None
        },
    )


def _rule_lines(patterns: list[str]) -> RuleLines:
    return RuleLines(patterns, list(range(1, len(patterns) + 1)), patterns)


def _rule_set(disallows: list[str], allows: list[str]) -> RuleSet:
    return RuleSet(_rule_lines(disallows), _rule_lines(allows))


def _records(disallows: list[str], allows: list[str]) -> list[reference.Record]:
    return [
        *((False, pattern) for pattern in disallows),
        *((True, pattern) for pattern in allows),
    ]


@pytest.mark.parametrize("is_quick", [True, False])
@pytest.mark.parametrize(
    ("disallows", "allows", "number"),
    [
        pytest.param([], [], None, id="no patterns"),
        pytest.param(["/x"], ["/y"], None, id="none matches"),
        pytest.param(["/x*y"], ["/y$"], None, id="no wildcard matches"),
        pytest.param(["/a", "/ab"], [], 1, id="the longer prefix"),
        pytest.param(["/ab", "/a"], ["/abd"], 0, id="a prefix of what sorts before"),
        pytest.param(["/a"], ["/a"], 1, id="allow wins a tie"),
        pytest.param(["/a", "/a"], [], 0, id="the first of two equals"),
        pytest.param(["/*c"], ["/a"], 0, id="a wildcard is longer"),
        pytest.param(["/*c"], ["/abc"], 1, id="a prefix is longer"),
        pytest.param(["/*c", "/*c"], [], 0, id="the first of two equal wildcards"),
        pytest.param(["/*b"], ["/*c"], 1, id="allow wins a tie of wildcards"),
        pytest.param(["/*x*c", "/*c"], [], 1, id="the first wildcard does not match"),
        pytest.param(["/a**", "/abc"], [], 0, id="final stars count"),
    ],
)
def test_longest_pattern_that_matches_is_found(
    disallows: list[str], allows: list[str], number: int | None, *, is_quick: bool
) -> None:
    ranking = _ranking(disallows, allows)

    assert ranking.first_match("/abc", is_quick=is_quick) == number


@steady(150)
@given(
    st.lists(_NOT_EMPTY, max_size=8),
    st.lists(_NOT_EMPTY, max_size=8),
    st.lists(TARGETS, min_size=1, max_size=4),
)
def test_ranking_equals_the_reference_quick_or_not(
    disallows: list[str], allows: list[str], targets: list[str]
) -> None:
    ranking = _ranking(disallows, allows)

    for target in targets:
        expected = reference.decisive(_records(disallows, allows), target)
        assert ranking.first_match(target, is_quick=True) == expected
        assert ranking.first_match(target, is_quick=False) == expected


@pytest.mark.parametrize("seed", range(3))
def test_ranking_of_many_patterns_equals_the_reference_quick_or_not(seed: int) -> None:
    """Of two letters, so that parts longer than an indexed piece are found."""
    chance = Random(seed)  # noqa: S311 (reproducible, no secret)

    def letters(most: int) -> str:
        return "".join(chance.choices("ab", k=chance.randrange(1, most)))

    def pattern() -> str:
        parts = [letters(11) for _ in range(chance.randrange(1, 4))]
        return f"/{'*'.join(parts)}{chance.choice(['', '$', '*'])}"

    disallows = [pattern() for _ in range(200)]
    allows = [pattern() for _ in range(100)]
    ranking = _ranking(disallows, allows)
    found = set()

    for _ in range(40):
        target = f"/{letters(25)}{letters(25)}"
        expected = reference.decisive(_records(disallows, allows), target)
        assert ranking.first_match(target, is_quick=True) == expected
        assert ranking.first_match(target, is_quick=False) == expected
        found.add(expected)

    assert len(found) > 5


# --- sets of rules that take long to ask ----------------------------------------


@steady(80)
@given(
    disallows=st.lists(PATTERNS, max_size=8),
    allows=st.lists(PATTERNS, max_size=8),
    is_huge_allowed=st.booleans(),
    target=TARGETS.filter(lambda target: len(target) > 3),
)
def test_long_target_is_decided_as_by_the_reference(
    disallows: list[str], allows: list[str], *, is_huge_allowed: bool, target: str
) -> None:
    (allows if is_huge_allowed else disallows).append(_HUGE)
    records = _records(disallows, allows)
    rule_set = _rule_set(disallows, allows)

    is_allowed = rule_set.allows(target)
    number = rule_set.decisive(target)

    expected = reference.decisive(records, target)
    assert len(target) > rule_set.quick_length
    assert is_allowed is reference.allows(records, target)
    assert rule_set.allows_at_once(target) in {None, is_allowed}
    assert (number is None) is (expected is None)
    if number is not None and expected is not None:
        written, is_allow, _ = rule_set.as_written(number)
        assert (is_allow, written) == records[expected]


@pytest.mark.parametrize(
    ("disallows", "allows", "answer"),
    [
        pytest.param(["/*b", _HUGE], [], None, id="hostile disallow rules"),
        pytest.param([_HUGE], ["/b"], None, id="none of them matches"),
        pytest.param(["/a"], [_HUGE], None, id="hostile allow rules"),
        pytest.param(["/b"], [_HUGE], True, id="hostile, but nothing disallows it"),
        pytest.param([], [_HUGE], True, id="hostile, but nothing disallows"),
        pytest.param(["/a"], [], False, id="prefixes only"),
    ],
)
def test_long_target_is_not_decided_at_once_by_hostile_rules(
    disallows: list[str], allows: list[str], *, answer: bool | None
) -> None:
    rule_set = _rule_set(disallows, allows)

    assert rule_set.allows_at_once("/abc") is answer


def test_target_is_long_beyond_the_quick_length_only() -> None:
    rule_set = _rule_set(["/*" + "z" * 200_000], [])
    target = "/" + "a" * (rule_set.quick_length - 1)

    assert rule_set.allows_at_once(target) is True
    assert rule_set.allows_at_once(target + "a") is None
    assert rule_set.allows(target + "a") is True
    assert rule_set.decides_quickly(target)
    assert not rule_set.decides_quickly(target + "a")


def test_rules_without_wildcards_are_quick_for_any_target_a_server_takes() -> None:
    rule_set = _rule_set(["/a"] * 3_000, ["/ab"] * 3_000)

    assert rule_set.quick_length > 1_000_000


@pytest.mark.parametrize(
    ("count", "is_quick"), [(_QUICKLY_RANKED, True), (_QUICKLY_RANKED + 1, False)]
)
def test_many_rules_decide_quickly_once_they_are_ranked(
    count: int, *, is_quick: bool
) -> None:
    rule_set = _rule_set([f"/{number}" for number in range(count)], [])

    before = rule_set.decides_quickly("/7")
    number = rule_set.decisive("/7")

    assert before is is_quick
    assert number == 7
    assert rule_set.decides_quickly("/7")


def test_many_rules_of_both_kinds_are_ranked_when_they_are_made() -> None:
    """Otherwise a question that is answered at once would put them into order."""
    few, many = (
        _rule_set([f"/{number}" for number in range(count)], ["/7/open"])
        for count in (_QUICKLY_RANKED - 1, _QUICKLY_RANKED)
    )

    for rule_set in (few, many):
        assert rule_set.decides_quickly("/7")
        assert rule_set.allows_at_once("/7") is False
        assert rule_set.allows_at_once("/7/open") is True
    assert _rule_set(["/7"], ["/7/open"])._ranking is None
    assert many._ranking is not None


def test_many_rules_that_can_match_nothing_are_no_rules() -> None:
    rule_set = _rule_set([""] * 3_000, [])

    assert len(rule_set) == 0
    assert rule_set.decides_quickly("/")
    assert RuleSet(NO_RULES).decides_quickly("/")
