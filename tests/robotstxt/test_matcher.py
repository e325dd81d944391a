"""Which rule is decisive for a target (RFC 9309 §2.2.2, §2.2.3)."""

from __future__ import annotations

from itertools import chain, zip_longest
from random import Random
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robotsgate.robotstxt import _matcher
from robotsgate.robotstxt._matcher import (
    IndexedTarget,
    RuleLines,
    RuleSet,
    _telling_part,
    matches,
)
from tests.robotstxt import reference
from tests.robotstxt.strategies import PATTERNS, TARGETS
from tests.tables import cases

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


def _decisive_line(rule_set: RuleSet, target: str) -> int | None:
    number = rule_set.decisive(target)
    if number is None:
        return None
    _, is_allow, line = rule_set.as_written(number)
    assert rule_set.is_allow(number) is is_allow
    return line


def _matching_lines(rule_set: RuleSet, target: str) -> list[int]:
    return [rule_set.as_written(number)[2] for number in rule_set.matching(target)]


def _assert_agrees_with_reference(rules: Sequence[Record], *targets: str) -> list[bool]:
    """Check each of `targets`, both as a short target and as a long one."""
    rule_set = _rule_set(rules)
    answers = []
    for quick_length in (rule_set.quick_length, 0):
        rule_set.quick_length = quick_length
        for target in targets:
            allows = rule_set.allows(target)
            line = _decisive_line(rule_set, target)

            expected = reference.decisive(rules, target)
            assert allows is reference.allows(rules, target)
            assert line == (None if expected is None else expected + 1)
            assert _matching_lines(rule_set, target) == [
                number + 1 for number in reference.matching(rules, target)
            ]
            answers.append(allows)
    return answers


@cases("pattern target is_match", {
    "the root matches itself": ("/", "/", True),
    "a star alone matches everything": ("*", "/", True),
    "a star before the end matches everything": ("*$", "/a", True),
    "a star may be empty before the end": ("/*$", "/", True),
    "the end must match the end": ("/$", "/a", False),
    "a dollar inside matches a dollar": ("/a$b", "/a$b", True),
    "a dollar inside is not an end": ("/a$b", "/a", False),
    "only the last dollar is the end": ("/a$$", "/a$", True),
    "the other dollar must match": ("/a$$", "/a", False),
    "two stars": ("/a*b*c", "/aXXbYYc/d", True),
    "parts in the wrong order": ("/a*b*c", "/acb", False),
    "two stars in a row": ("/a**b", "/ab", True),
    "a run of stars before the end": ("/a***$", "/ab", True),
    "parts do not overlap": ("/ab*ba", "/aba", False),
    "parts do not overlap at the end": ("/ab*ba$", "/aba", False),
    "parts that touch": ("/ab*ba$", "/abba", True),
    "the end matches its last occurrence": ("/a*b$", "/abab", True),
    "one letter for two parts": ("/a*b*b$", "/ab", False),
    "a leading star": ("*a", "/xxa", True),
    "a pattern without a slash": ("a", "/a", False),
    "a dollar alone": ("$", "/", False),
    "an empty segment": ("/a/*/c", "/a//c", True),
    "case matters": ("/A", "/a", False),
    "a target shorter than the prefix": ("/aa", "/a", False),
    "the whole target": ("/a$", "/a", True),
    "start and end touch": ("/a*b$", "/ab", True),
    "start and part overlap": ("/ab*ba*", "/aba", False),
    "part and end overlap": ("/a*bc*bc$", "/abc", False),
    "a part only within the start": ("/ab*ab", "/ab", False),
    "empty parts": ("/***a", "/a", True),
    "an empty part at the end": ("/a**$", "/a", True),
    "a dollar that is a part": ("/*$*$", "/a$", True),
    "another end": ("/*b$", "/bc", False),
})  # fmt: skip
def test_pattern_matches(pattern: str, target: str, *, is_match: bool) -> None:
    assert reference.matches(pattern, target) is is_match
    _assert_agrees_with_reference([(False, pattern)], target)


def test_length_counts_non_empty_rules() -> None:
    assert len(_rule_set([(False, "/a"), (True, ""), (False, ""), (True, "*")])) == 2


def test_weight_grows_with_the_number_and_length_of_patterns() -> None:
    none, short, long, two = (
        _rule_set([(False, pattern) for pattern in patterns])
        for patterns in ([], ["/a"], ["/" + "a" * 1_000], ["/a", "/b"])
    )

    assert none.weight == 0
    assert short.weight > len("/a")
    assert long.weight == short.weight + 2 * 999
    assert two.weight == 2 * short.weight


def test_rule_sets_from_the_same_lines_are_the_same() -> None:
    first, second = _rule_set([(False, "/a")]), _rule_set([(False, "/a")])
    other = RuleSet(RuleLines(["/a"], [2], ["/a"]))

    assert first.is_same(second)
    assert not first.is_same(other)


@cases("rules number", {
    "longer allow": ([(False, "/a"), (True, "/ab")], 1),
    "longer disallow": ([(True, "/a"), (False, "/ab")], 1),
    "allow wins a tie": ([(False, "/a"), (True, "/a")], 1),
    "allow wins in either order": ([(True, "/a"), (False, "/a")], 0),
    "the first of two equals": ([(False, "/a"), (False, "/a")], 0),
    "a final star counts as length": ([(False, "/a*"), (True, "/a")], 0),
    "a star counts as length": ([(False, "/*b"), (True, "/a")], 0),
    "the end counts as length": ([(False, "/abc$"), (True, "/abc")], 0),
    "final stars beat a longer path": ([(True, "/abc"), (False, "/a****")], 1),
    "stars count as length": ([(False, "/*b*c"), (True, "/abc")], 0),
    "none matches": ([(False, "/x"), (True, "/y")], None),
})  # fmt: skip
def test_longest_pattern_is_decisive(rules: list[Record], number: int | None) -> None:
    assert reference.decisive(rules, "/abc") == number
    _assert_agrees_with_reference(rules, "/abc")


@given(_RULES, TARGETS)
def test_matcher_agrees_with_the_reference(rules: list[Record], target: str) -> None:
    _assert_agrees_with_reference(rules, target)


def test_matcher_with_a_thousand_prefixes_agrees_with_the_reference() -> None:
    """Some are prefixes of others, so both binary searches have chains to climb."""
    rng = Random(0)  # noqa: S311 (reproducible, no secret)

    def path() -> str:
        return "/" + "".join(rng.choices("abc/", k=rng.randrange(4, 9)))

    rules = [(rng.random() < 0.3, path()) for _ in range(900)]
    rules += [(is_allow, f"{path}ab"[:-1]) for is_allow, path in rules[:100]]
    rules += [(rng.random() < 0.3, f"{path()}*{path()}") for _ in range(20)]
    rng.shuffle(rules)
    targets = [
        path()[: rng.randrange(3, 9)] + rng.choice(("", "d", "/ab")) for _ in range(100)
    ]

    assert set(_assert_agrees_with_reference(rules, *targets)) == {True, False}


def test_matcher_with_many_wildcards_agrees_with_the_reference() -> None:
    """With only two letters, even parts longer than an indexed piece occur."""
    rng = Random(0)  # noqa: S311 (reproducible, no secret)

    def letters(most: int) -> str:
        return "".join(rng.choices("ab", k=rng.randrange(1, most)))

    def pattern() -> str:
        parts = [letters(11) for _ in range(rng.randrange(1, 4))]
        return f"/{'*'.join(parts)}{rng.choice(['', '$', '*'])}"

    rules = [(number % 3 == 0, pattern()) for number in range(300)]
    targets = [f"/{letters(25)}{letters(25)}" for _ in range(40)]

    assert set(_assert_agrees_with_reference(rules, *targets)) == {True, False}


@cases("rules target", {
    "stars": (["/" + "*a" * 2_000 + "b"], "/" + "a" * 8_000),
    "many rules": (["/*a*a*a*a*a*b"] * 3_000, "/" + "a" * 8_000),
    "only stars": (["/*" + "*" * 8_000 + "x"], "/" + "a" * 8_000),
})  # fmt: skip
def test_hostile_patterns_are_matched_quickly(rules: list[str], target: str) -> None:
    """A backtracking matcher would never finish."""
    rule_set = _rule_set([(False, rule) for rule in rules])

    assert rule_set.allows(target)
    assert rule_set.decisive(target) is None


# Longer than `allows_at_once` is willing to split.
_HUGE = "/*" + "z" * 100_000


@cases("disallows allows answer", {
    "hostile disallow rules": (["/*b", _HUGE], [], None),
    "none of them matches": ([_HUGE], ["/b"], None),
    "hostile allow rules": (["/a"], [_HUGE], None),
    "hostile, but nothing disallows it": (["/b"], [_HUGE], True),
    "hostile, but without disallow rules": ([], [_HUGE], True),
    "prefixes only": (["/a"], [], False),
})  # fmt: skip
def test_hostile_rules_that_may_be_decisive_give_no_answer_at_once(
    disallows: list[str], allows: list[str], *, answer: bool | None
) -> None:
    rules = [(False, pattern) for pattern in disallows]
    rules += [(True, pattern) for pattern in allows]

    assert _rule_set(rules).allows_at_once("/abc") is answer


def test_only_a_target_beyond_the_quick_length_gets_no_answer_at_once() -> None:
    rule_set = _rule_set([(False, "/*" + "z" * 90_000)])
    target = "/" + "a" * (rule_set.quick_length - 1)

    assert rule_set.allows_at_once(target) is True
    assert rule_set.allows_at_once(target + "a") is None


def test_rules_without_wildcards_are_quick_for_any_realistic_target() -> None:
    rules = [(False, "/a"), (True, "/ab")] * 3_000

    assert _rule_set(rules).quick_length > 1_000_000


@pytest.mark.parametrize(("count", "is_quick"), [(2_000, True), (2_001, False)])
def test_too_many_wildcards_give_no_answer_at_once(
    count: int, *, is_quick: bool
) -> None:
    """Splitting each pattern takes long, however short the target is."""
    rule_set = _rule_set([(number % 2 == 0, f"/*{number}$") for number in range(count)])

    assert (rule_set.allows_at_once("/7") is not None) is is_quick
    assert rule_set.allows("/7") is False
    assert _decisive_line(rule_set, "/7") == 8


@pytest.mark.parametrize(("count", "is_ready"), [(2_000, False), (2_001, True)])
def test_many_allow_rules_are_prepared_when_the_rule_set_is_created(
    count: int, *, is_ready: bool
) -> None:
    """Otherwise `allows_at_once` would have to prepare them."""
    rules = [(True, f"/{number}") for number in range(count)]

    rule_set = _rule_set([(False, "/"), *rules])

    assert rule_set._allows.is_ready is is_ready
    assert rule_set.allows_at_once("/a") is False
    assert rule_set.allows_at_once("/7") is True


@cases("pattern part", {
    "not the start, even if it is longer": ("/downloads/*.pdf$", ".pdf"),
    "the last of equally long parts": ("/a*one*two", "two"),
    "the start, if the other parts are short": ("/downloads/*b", "/downloads/"),
})  # fmt: skip
def test_telling_part_is_one_that_few_targets_contain(pattern: str, part: str) -> None:
    assert _telling_part(pattern) == part


@cases("count length bound is_shared", {
    "an ordinary file": (1, 10, 4_096, True),
    "a file with very many rules": (200, 10, 4_096, False),
    "a long pattern": (1, 50, 4_096, False),
    "a full table": (1, 10, 0, False),
})  # fmt: skip
def test_short_patterns_of_ordinary_files_are_shared(
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    length: int,
    bound: int,
    *,
    is_shared: bool,
) -> None:
    """One hostile file must not fill the table for good."""
    monkeypatch.setattr(_matcher, "_COMMON", {})
    monkeypatch.setattr(_matcher, "_MANY_COMMON", bound)

    last = [
        RuleSet(RuleLines([f"/{number:0{length}}" for number in range(count)], [], []))
        ._disallows.patterns[-1]
        for _ in range(2)
    ]  # fmt: skip

    assert (last[0] is last[1]) is is_shared


# Longer targets are searched without an index.
_LONGEST_INDEXED = 16_384

# Only two letters, so that pieces of long parts occur in many places.
_LETTERS = st.lists(st.text("ab", max_size=24), min_size=1, max_size=5)


@st.composite
def _nearly_matching(draw: st.DrawFn) -> tuple[str, str]:
    """A pattern and a target that contains its parts, mostly in order."""
    start, *parts = draw(_LETTERS)
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


_MANY = "a" * 700


@cases("pattern target answer", {
    "a part in many places": (f"/*{'a' * 9}*b", f"/{_MANY}b", True),
    "not after the last of them": (f"/*b*{'a' * 9}", f"/{_MANY}b", False),
    "its start alone is in many places": (f"/*{'a' * 9}b*c", f"/{_MANY}bc", True),
    "its end alone is in many places": (f"/*b{'a' * 9}*c", f"/b{_MANY}c", True),
    "its start and end are elsewhere": (f"/*b{'a' * 8}c*", f"/b{_MANY}c", False),
})  # fmt: skip
def test_long_part_of_a_pattern_is_found_wherever_it_is(
    pattern: str, target: str, *, answer: bool
) -> None:
    assert _assert_all_agree(pattern, target) is answer


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
