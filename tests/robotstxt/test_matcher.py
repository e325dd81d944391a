"""Which rule decides about a target (RFC 9309 §2.2.2, §2.2.3)."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robotsgate.robotstxt._matcher import RuleLines, RuleSet
from tests.robotstxt import reference
from tests.robotstxt.strategies import PATTERNS, TARGETS, steady

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.robotstxt.reference import Record

_RULES = st.lists(st.tuples(st.booleans(), PATTERNS), max_size=12)


def _rule_set(rules: Sequence[Record]) -> RuleSet:
    sides = []
    for kind in (False, True):
        numbered = [
            (pattern, line)
            for line, (is_allow, pattern) in enumerate(rules, 1)
            if is_allow is kind
        ]
        patterns = [pattern for pattern, _ in numbered]
        lines = [line for _, line in numbered]
        sides.append(RuleLines(patterns, lines, patterns))
    return RuleSet(*sides)


def _deciding_line(rule_set: RuleSet, target: str) -> int | None:
    number = rule_set.decisive(target)
    if number is None:
        return None
    _, is_allow, line = rule_set.as_written(number)
    assert rule_set.is_allow(number) is is_allow
    return line


def _assert_as_reference(rules: Sequence[Record], target: str) -> None:
    rule_set = _rule_set(rules)

    allows = rule_set.allows(target)
    line = _deciding_line(rule_set, target)

    expected = reference.decisive(rules, target)
    assert allows is reference.allows(rules, target)
    assert line == (None if expected is None else expected + 1)


@pytest.mark.parametrize(
    ("pattern", "target", "is_match"),
    [
        pytest.param("/", "/", True, id="the root matches itself"),
        pytest.param("*", "/", True, id="a star alone matches all"),
        pytest.param("*$", "/a", True, id="a star to the end matches all"),
        pytest.param("/*$", "/", True, id="a star may be empty before the end"),
        pytest.param("/$", "/a", False, id="the end must be the end"),
        pytest.param("/a$b", "/a$b", True, id="a dollar inside is a dollar"),
        pytest.param("/a$b", "/a", False, id="a dollar inside is no end"),
        pytest.param("/a$$", "/a$", True, id="only the last dollar is the end"),
        pytest.param("/a$$", "/a", False, id="the other dollar must be there"),
        pytest.param("/a*b*c", "/aXXbYYc/d", True, id="two stars"),
        pytest.param("/a*b*c", "/acb", False, id="parts in another order"),
        pytest.param("/a**b", "/ab", True, id="two stars are one"),
        pytest.param("/ab*ba", "/aba", False, id="parts do not overlap"),
        pytest.param("/ab*ba$", "/aba", False, id="parts do not overlap at the end"),
        pytest.param("/ab*ba$", "/abba", True, id="parts that touch"),
        pytest.param("/a*b$", "/abab", True, id="the last place of the end counts"),
        pytest.param("/a*b*b$", "/ab", False, id="one letter for two parts"),
        pytest.param("*a", "/xxa", True, id="a star before everything"),
        pytest.param("a", "/a", False, id="a pattern without a slash"),
        pytest.param("$", "/", False, id="a dollar alone"),
        pytest.param("/a/*/c", "/a//c", True, id="an empty segment"),
        pytest.param("/A", "/a", False, id="case counts"),
        pytest.param("/aa", "/a", False, id="a target shorter than the prefix"),
    ],
)
def test_pattern_matches(pattern: str, target: str, *, is_match: bool) -> None:
    rule_set = _rule_set([(False, pattern)])

    assert rule_set.allows(target) is not is_match
    assert (rule_set.decisive(target) is not None) is is_match
    assert reference.matches(pattern, target) is is_match


def test_rule_set_without_rules_allows() -> None:
    rule_set = RuleSet()

    assert rule_set.allows("/")
    assert rule_set.decisive("/") is None
    assert len(rule_set) == 0


def test_rule_set_without_an_allow_rule_needs_no_ranking() -> None:
    rule_set = _rule_set([(False, "/a"), (False, "/*b$")])

    assert not rule_set.allows("/ab")
    assert not rule_set.allows("/b")
    assert rule_set.allows("/bc")
    assert rule_set._ranking is None


def test_length_counts_rules_that_are_not_empty() -> None:
    assert len(_rule_set([(False, "/a"), (True, ""), (False, ""), (True, "*")])) == 2


def test_weight_grows_with_rules_and_their_patterns() -> None:
    none, short, long, two = (
        _rule_set([(False, pattern) for pattern in patterns])
        for patterns in ([], ["/a"], ["/" + "a" * 1_000], ["/a", "/b"])
    )

    assert none.weight == 0
    assert short.weight > len("/a")
    assert long.weight == short.weight + 2 * 999
    assert two.weight == 2 * short.weight


def test_rule_is_known_as_the_file_writes_it() -> None:
    rule_set = RuleSet(RuleLines(["/%C3%A9"], [7], ["/\xc3\xa9"]))

    assert rule_set.as_written(0) == ("/\xc3\xa9", False, 7)


def test_rule_sets_of_the_same_lines_are_the_same() -> None:
    first, second = _rule_set([(False, "/a")]), _rule_set([(False, "/a")])
    other = RuleSet(RuleLines(["/a"], [2], ["/a"]))

    assert first.is_same(second)
    assert not first.is_same(other)


@pytest.mark.parametrize(
    ("rules", "number"),
    [
        pytest.param([(False, "/a"), (True, "/ab")], 1, id="longer allow"),
        pytest.param([(True, "/a"), (False, "/ab")], 1, id="longer disallow"),
        pytest.param([(False, "/a"), (True, "/a")], 1, id="allow wins a tie"),
        pytest.param([(True, "/a"), (False, "/a")], 0, id="allow wins, in any order"),
        pytest.param([(False, "/a"), (False, "/a")], 0, id="the first of two equals"),
        pytest.param([(False, "/a*"), (True, "/a")], 0, id="a final star is length"),
        pytest.param([(False, "/*b"), (True, "/a")], 0, id="a star is length"),
        pytest.param([(False, "/abc$"), (True, "/abc")], 0, id="the end is length"),
        pytest.param(
            [(True, "/abc"), (False, "/a****")], 1, id="final stars beat a longer path"
        ),
        pytest.param([(False, "/*b*c"), (True, "/abc")], 0, id="stars are length"),
        pytest.param([(False, "/x"), (True, "/y")], None, id="none matches"),
    ],
)
def test_longest_pattern_decides(rules: list[Record], number: int | None) -> None:
    rule_set = _rule_set(rules)

    assert _deciding_line(rule_set, "/abc") == (None if number is None else number + 1)
    assert rule_set.allows("/abc") is (number is None or rules[number][0])


@steady(500)
@given(_RULES, TARGETS)
def test_matcher_equals_the_reference(rules: list[Record], target: str) -> None:
    _assert_as_reference(rules, target)


_DEEP = PATTERNS.map(lambda pattern: f"/ab/{pattern.lstrip('*')}c")


@steady(50)
@given(
    st.lists(st.tuples(st.booleans(), _DEEP), min_size=20, max_size=40),
    st.lists(_DEEP, min_size=1, max_size=8),
)
def test_matcher_of_many_rules_equals_the_reference(
    rules: list[Record], targets: list[str]
) -> None:
    for target in ["/", "/ab/", "/zz", *targets]:
        _assert_as_reference(rules, target)


@pytest.mark.parametrize("seed", range(5))
def test_matcher_of_a_thousand_prefixes_equals_the_reference(seed: int) -> None:
    """Prefixes of one another, so that both binary searches have chains to climb."""
    chance = Random(seed)  # noqa: S311 (reproducible, no secret)

    def path() -> str:
        return "/" + "".join(chance.choices("abc/", k=chance.randrange(4, 9)))

    rules = [(chance.random() < 0.3, path()) for _ in range(900)]
    rules += [(is_allow, f"{path}ab"[:-1]) for is_allow, path in rules[:100]]
    rules += [(chance.random() < 0.3, f"{path()}*{path()}") for _ in range(20)]
    chance.shuffle(rules)
    rule_set = _rule_set(rules)
    answers = []

    for _ in range(100):
        target = path()[: chance.randrange(3, 9)] + chance.choice(("", "d", "/ab"))
        line = _deciding_line(rule_set, target)
        allows = rule_set.allows(target)
        expected = reference.decisive(rules, target)
        assert line == (None if expected is None else expected + 1)
        assert allows is reference.allows(rules, target)
        answers.append((line is None, allows))

    assert set(answers) == {(True, True), (False, True), (False, False)}


@pytest.mark.parametrize(
    ("rules", "target"),
    [
        pytest.param(["/" + "*a" * 2_000 + "b"], "/" + "a" * 8_000, id="stars"),
        pytest.param(["/*a*a*a*a*a*b"] * 3_000, "/" + "a" * 8_000, id="many rules"),
        pytest.param(["/*" + "*" * 8_000 + "x"], "/" + "a" * 8_000, id="only stars"),
    ],
)
def test_hostile_patterns_are_answered_at_once(rules: list[str], target: str) -> None:
    """A matcher that backtracks would not come to an end here."""
    rule_set = _rule_set([(False, rule) for rule in rules])

    assert rule_set.allows(target)
    assert rule_set.decisive(target) is None
