"""Finds the rule that decides about a target (RFC 9309 §2.2.2, §2.2.3).

Works on patterns and targets that are in one spelling already, and knows no
dialect. No regular expressions: nothing here can backtrack.

The question "is it allowed?" is answered in two steps. First, does any disallow
rule match at all, and does any allow rule? Mostly that is enough, and it is found
without looking at the rules one by one. Only when both kinds match, the most
specific rule is searched for.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple, cast

from robotsgate.robotstxt._pattern import as_prefix, matches, telling_part
from robotsgate.robotstxt._ranking import Ranking

if TYPE_CHECKING:
    from collections.abc import Iterable

# Up to here trying each prefix in turn is faster than a binary search.
_FEW_PREFIXES = 32

# Measured on CPython 3.11: a rule without the characters of its pattern, and with
# its place in the ranking.
_BYTES_OF_A_RULE = 300

# How many characters of wildcard patterns times characters of a target are compared
# at once. At worst each pair is: that takes some ten milliseconds.
_QUICK_WORK = 8_000_000

# So many rules are put into order within some milliseconds.
_QUICKLY_RANKED = 2_000


# Half a megabyte at the most. A third of the characters of real rules are in it.
_COMMON: dict[str, str] = {}
_MANY_COMMON = 4_096
_LONGEST_COMMON = 40
_MANY_OF_A_FILE = 128


class RuleLines(NamedTuple):
    """The rules of one kind, in the order of the file.

    Attributes:
        patterns: in the spelling that targets have; may be empty. Those that
            begin with neither "/" nor "*" match nothing, as all targets begin
            with "/".
        lines: where each stands.
        written: the patterns as the file has them.
    """

    patterns: list[str]
    lines: list[int]
    written: list[str]


NO_RULES = RuleLines([], [], [])


class RuleSet:
    """The allow and disallow rules of one agent, ready to be asked.

    A rule is known by its number: the disallow rules come first, then the allow
    rules.

    Attributes:
        quick_length: targets up to this length, in characters, are answered
            within some ten milliseconds, however hostile the rules are.
    """

    __slots__ = ("_allows", "_disallows", "_prefixes", "_ranking", "quick_length")

    def __init__(
        self, disallows: RuleLines = NO_RULES, allows: RuleLines = NO_RULES
    ) -> None:
        """Take over rules."""
        self._disallows = _Side(disallows)
        self._disallows.prepare()
        # Not prepared yet: most files are never asked what they allow.
        self._allows = _Side(allows) if allows.patterns else _NONE
        # For the quickest answer: nearly half of all files disallow few prefixes.
        self._prefixes = self._disallows.few_prefixes
        self._ranking: Ranking | None = None
        wild = self._disallows.wild_characters + self._allows.wild_characters
        self.quick_length = _QUICK_WORK // (wild + 1)
        if self._allows.patterns and len(self) > _QUICKLY_RANKED:
            self._rank()

    def __len__(self) -> int:
        """The number of rules."""
        return len(self._disallows.patterns) + len(self._allows.patterns)

    @property
    def weight(self) -> int:
        """About how many bytes of memory the rules take when all is built."""
        characters = sum(
            len(pattern)
            for side in (self._disallows, self._allows)
            for pattern in side.patterns
        )
        return 2 * characters + _BYTES_OF_A_RULE * len(self)

    def allows(self, target: str) -> bool:
        """Whether the rules let `target` be fetched; a target no rule matches is."""
        answer = self.allows_at_once(target)
        if answer is None:
            number = self.decisive(target)
            return number is None or self.is_allow(number)
        return answer

    def allows_at_once(self, target: str) -> bool | None:
        """As `allows`; `None` for a target longer than `quick_length`."""
        if self._prefixes is not None:
            if not target.startswith(self._prefixes):
                return True
        elif len(target) > self.quick_length:
            return None
        elif not self._disallows.has_match(target):
            return True
        if self._allows is _NONE:
            return False
        if len(target) > self.quick_length:
            return None
        if not self._allows.is_ready:
            self._allows.prepare()
        if not self._allows.has_match(target):
            return False
        return self.is_allow(cast("int", self.decisive(target)))  # some rule matches

    def decisive(self, target: str) -> int | None:
        """The number of the most specific rule that matches `target`.

        The longest pattern wins, then allow over disallow, then the first line.
        """
        ranking = self._ranking or self._rank()
        is_quick = len(target) <= self.quick_length
        return ranking.first_match(target, is_quick=is_quick)

    def decides_quickly(self, target: str) -> bool:
        """Whether `decisive` answers within some ten milliseconds."""
        is_ranked = self._ranking is not None or len(self) <= _QUICKLY_RANKED
        return is_ranked and len(target) <= self.quick_length

    def _rank(self) -> Ranking:
        disallows, allows = self._disallows, self._allows
        if not allows.is_ready:
            allows.prepare()
        wildcards = (*disallows.wildcards, *allows.wildcards)
        anchors = (*disallows.anchors, *allows.anchors)
        telling_parts = dict(zip(wildcards, anchors, strict=True))
        self._ranking = Ranking(disallows.patterns, allows.patterns, telling_parts)
        return self._ranking

    def is_allow(self, number: int) -> bool:
        """Whether the rule of this number allows."""
        return number >= len(self._disallows.patterns)

    def as_written(self, number: int) -> tuple[str, bool, int]:
        """The rule of this number: pattern in the file, whether it allows, line."""
        if not self.is_allow(number):
            side = self._disallows
            return side.written[number], False, side.lines[number]
        number -= len(self._disallows.patterns)
        return self._allows.written[number], True, self._allows.lines[number]

    def is_same(self, other: RuleSet) -> bool:
        """Whether `other`, made of the same file, holds the same lines."""
        return (
            self._disallows.lines == other._disallows.lines
            and self._allows.lines == other._allows.lines
        )


class _Side:
    """The rules of one kind, to be asked whether any matches.

    Attributes:
        patterns: those of all rules, without empty ones.
        lines: where each stands.
        written: as the file has them.
        wild_characters: how long those are together that are more than plain text.
        is_ready: whether the attributes that follow are there.
        prefixes: what a target must begin with to be matched by a rule without
            wildcards: a tuple of few, or a sorted list of many, none of them
            beginning with another.
        wildcards: the other patterns, each once.
        anchors: for each of `wildcards` a text that a target must hold.
    """

    __slots__ = (
        "anchors",
        "is_ready",
        "lines",
        "patterns",
        "prefixes",
        "wild_characters",
        "wildcards",
        "written",
    )

    def __init__(self, rules: RuleLines) -> None:
        rules = _without_empty(rules)
        self.patterns = _shared(rules.patterns)
        self.lines = array("I", rules.lines)
        is_written_so = rules.written is rules.patterns
        self.written = self.patterns if is_written_so else _shared(rules.written)
        self.wild_characters = sum(
            len(one) for one in self.patterns if "*" in one or one.endswith("$")
        )
        self.is_ready = False

    def prepare(self) -> None:
        """Sort the patterns out."""
        prefixes = self.patterns
        self.wildcards: tuple[str, ...] = ()
        if self.wild_characters:
            prefixes, self.wildcards = _by_shape(self.patterns)
        self.prefixes: tuple[str, ...] | list[str] = prefixes
        if len(prefixes) > _FEW_PREFIXES:
            self.prefixes = _shortest(prefixes)
        self.anchors = _shared([*map(telling_part, self.wildcards)])
        self.is_ready = True

    @property
    def few_prefixes(self) -> tuple[str, ...] | None:
        """All that there is to match, where that is a few prefixes."""
        is_few = type(self.prefixes) is tuple and not self.anchors
        return cast("tuple[str, ...]", self.prefixes) if is_few else None

    def has_match(self, target: str) -> bool:
        """Whether any rule matches `target`."""
        prefixes = self.prefixes
        if type(prefixes) is tuple:
            if target.startswith(prefixes):
                return True
        else:
            before = bisect_right(prefixes, target)
            if before and target.startswith(prefixes[before - 1]):
                return True
        for anchor in self.anchors:
            if anchor in target:
                return self._has_wildcard_match(target)
        return False

    def _has_wildcard_match(self, target: str) -> bool:
        for anchor, pattern in zip(self.anchors, self.wildcards, strict=True):
            if anchor in target and matches(pattern, target):
                return True
        return False


def _shared(strings: list[str]) -> tuple[str, ...]:
    """`strings`, the first thousands of all files ("/wp-admin/") held once for all."""
    if len(_COMMON) < _MANY_COMMON:
        for string in strings[:_MANY_OF_A_FILE]:
            if len(string) <= _LONGEST_COMMON:
                _COMMON.setdefault(string, string)
    return tuple(map(_COMMON.get, strings, strings))


def _without_empty(rules: RuleLines) -> RuleLines:
    """Without the patterns of no characters, which match nothing."""
    if "" not in rules.patterns:
        return rules
    kept = [rule for rule in zip(*rules, strict=True) if rule[0]]
    return RuleLines(*map(list, zip(*kept, strict=True))) if kept else NO_RULES


def _by_shape(patterns: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What mere prefixes ask for, and the other patterns, each once."""
    prefixes: list[str] = []
    wildcards: dict[str, None] = {}
    for pattern in patterns:
        if "*" not in pattern and not pattern.endswith("$"):
            prefixes.append(pattern)
            continue
        prefix = as_prefix(pattern)
        if prefix is None:
            wildcards[pattern] = None
        else:
            prefixes.append(prefix)
    return tuple(prefixes), tuple(wildcards)


def _shortest(prefixes: Iterable[str]) -> list[str]:
    """`prefixes` sorted, without those that begin with another one of them.

    In such a list only the last element that sorts before a target can be a
    prefix of it.
    """
    shortest: list[str] = []
    for prefix in sorted(prefixes):
        if not shortest or not prefix.startswith(shortest[-1]):
            shortest.append(prefix)
    return shortest


_NONE = _Side(NO_RULES)
_NONE.prepare()
