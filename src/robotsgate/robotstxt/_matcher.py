"""Finds the rule that decides about a target (RFC 9309 §2.2.2, §2.2.3).

Works on patterns and targets that are in one spelling already, and knows no
dialect. No regular expressions: nothing here can backtrack.

The question "is it allowed?" is answered in two steps. First, does any disallow
rule match at all? Mostly none does, and that is found without looking at the
rules one by one. Only then the most specific rule is searched for.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from robotsgate.robotstxt._packed_strings import compact

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["RuleSet"]

# Up to here trying each prefix in turn is faster than a binary search.
_FEW_PREFIXES = 16

# Measured on CPython 3.11: a rule without the characters of its pattern, and with
# its place in the ranking.
_BYTES_OF_A_RULE = 300


class RuleSet:
    """The allow and disallow rules of one agent, ready to be asked.

    A rule is known by its number: its place among the rules it was made of.
    """

    __slots__ = (
        "_anchors",
        "_blocking_prefixes",
        "_blocking_wildcards",
        "_has_allow",
        "_marks",
        "_patterns",
        "_ranking",
        "_written",
    )

    def __init__(self, rules: Iterable[tuple[str, bool, int, str]]) -> None:
        """Take over rules.

        Args:
            rules: (pattern, whether it allows, its line, the pattern as the file
                writes it); patterns that begin with neither "/" nor "*" match
                nothing and are left out.
        """
        usable = [rule for rule in rules if rule[0].startswith(("/", "*"))]
        self._patterns = compact([rule[0] for rule in usable])
        # The line, times two, plus one for allow: one array is smaller than two.
        self._marks = array("I", [rule[2] * 2 + rule[1] for rule in usable])
        self._has_allow = any(rule[1] for rule in usable)
        is_rewritten = any(rule[0] is not rule[3] for rule in usable)
        self._written = (
            compact([rule[3] for rule in usable]) if is_rewritten else self._patterns
        )
        self._ranking: _Ranking | None = None
        prefixes: list[str] = []
        wildcards: list[str] = []
        for pattern, is_allow, _, _ in usable:
            if is_allow:
                continue
            if "*" not in pattern and not pattern.endswith("$"):
                prefixes.append(pattern)
                continue
            prefix = _as_prefix(pattern)
            if prefix is None:
                wildcards.append(pattern)
            else:
                prefixes.append(prefix)
        self._blocking_prefixes: Sequence[str] = (
            tuple(prefixes)
            if len(prefixes) <= _FEW_PREFIXES
            else _bisectable(_shortest(prefixes))
        )
        self._blocking_wildcards = compact(list(dict.fromkeys(wildcards)))
        self._anchors = tuple(dict.fromkeys(map(_anchor, wildcards)))

    def __len__(self) -> int:
        """The number of rules that can match anything."""
        return len(self._patterns)

    @property
    def weight(self) -> int:
        """About how many bytes of memory the rules take when all is built."""
        characters = sum(map(len, self._patterns))
        return 2 * characters + _BYTES_OF_A_RULE * len(self._patterns)

    def allows(self, target: str) -> bool:
        """Whether the rules let `target` be fetched; a target no rule matches is."""
        prefixes = self._blocking_prefixes
        if type(prefixes) is tuple:
            is_blocked = target.startswith(prefixes)
        else:
            before = bisect_right(prefixes, target)
            is_blocked = before > 0 and target.startswith(prefixes[before - 1])
        if not is_blocked:
            for anchor in self._anchors:
                if anchor in target:
                    break
            else:
                return True
            wildcards = self._blocking_wildcards
            if not any(_matches(pattern, target) for pattern in wildcards):
                return True
        if not self._has_allow:
            return False
        number = self.decisive(target)
        return number is None or self.is_allow(number)

    def decisive(self, target: str) -> int | None:
        """The number of the most specific rule that matches `target`.

        The longest pattern wins, then allow over disallow, then the first line.
        """
        if self._ranking is None:
            kinds = [mark & 1 for mark in self._marks]
            self._ranking = _Ranking(self._patterns, kinds)
        return self._ranking.first_match(target)

    def is_allow(self, number: int) -> bool:
        """Whether the rule of this number allows."""
        return bool(self._marks[number] & 1)

    def as_written(self, number: int) -> tuple[str, bool, int]:
        """The rule of this number: pattern in the file, whether it allows, line."""
        return self._written[number], self.is_allow(number), self._marks[number] >> 1

    def is_same(self, other: RuleSet) -> bool:
        """Whether `other`, made of the same file, holds the same lines."""
        return self._marks == other._marks


class _Ranking:
    """All rules in order of precedence, searchable.

    A pattern that is a mere prefix is found by binary search: the longest prefix
    of a target is the last one that sorts before it, or a prefix of that one.
    `best[i]` is the winner among prefix i and the prefixes of prefix i.
    """

    __slots__ = ("_best", "_numbers", "_parents", "_prefixes", "_wildcards")

    def __init__(self, patterns: Sequence[str], is_allow: Sequence[int]) -> None:
        self._numbers = sorted(
            range(len(patterns)),
            key=lambda number: (-len(patterns[number]), not is_allow[number]),
        )
        ranks: dict[str, int] = {}
        wildcards: dict[str, int] = {}
        for rank, number in enumerate(self._numbers):
            pattern = patterns[number]
            prefix = _as_prefix(pattern)
            if prefix is None:
                wildcards.setdefault(pattern, rank)
            else:
                ranks.setdefault(prefix, rank)
        self._wildcards = tuple(
            (rank, _anchor(pattern), pattern) for pattern, rank in wildcards.items()
        )
        self._prefixes = compact(sorted(ranks))
        self._parents = array("i")
        self._best = array("I")
        chain: list[int] = []
        for index, prefix in enumerate(self._prefixes):
            while chain and not prefix.startswith(self._prefixes[chain[-1]]):
                chain.pop()
            parent = chain[-1] if chain else -1
            rank = ranks[prefix]
            self._parents.append(parent)
            self._best.append(rank if parent < 0 else min(rank, self._best[parent]))
            chain.append(index)

    def first_match(self, target: str) -> int | None:
        best = len(self._numbers)
        index = bisect_right(self._prefixes, target) - 1
        while index >= 0:
            if target.startswith(self._prefixes[index]):
                best = self._best[index]
                break
            index = self._parents[index]
        for rank, anchor, pattern in self._wildcards:
            if rank > best:
                break
            if anchor in target and _matches(pattern, target):
                best = rank
                break
        return self._numbers[best] if best < len(self._numbers) else None


def _as_prefix(pattern: str) -> str | None:
    """What a target must begin with, where that is all that `pattern` asks for."""
    if pattern.endswith("$"):
        return None
    prefix = pattern.rstrip("*")
    return None if "*" in prefix else prefix


def _anchor(pattern: str) -> str:
    """The longest part of a pattern; where it does not occur, nothing matches."""
    return max(pattern.removesuffix("$").split("*"), key=len)


def _matches(pattern: str, target: str) -> bool:
    """Whether a pattern that `_as_prefix` has no prefix for matches `target`.

    Each part is taken where it first fits: a later place would leave less room for
    the parts that follow.
    """
    start, *parts = pattern.removesuffix("$").split("*")
    if not parts:
        return target == start
    if not target.startswith(start):
        return False
    end = parts.pop() if pattern.endswith("$") else None
    position = len(start)
    for part in parts:
        position = target.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return end is None or (len(target) - len(end) >= position and target.endswith(end))


def _bisectable(prefixes: list[str]) -> Sequence[str]:
    """Never a tuple: that is how `allows` tells few prefixes from many."""
    packed = compact(prefixes)
    return prefixes if type(packed) is tuple else packed


def _shortest(prefixes: list[str]) -> list[str]:
    """`prefixes` sorted, without those that begin with another one of them.

    In such a list only the last element that sorts before a target can be a
    prefix of it.
    """
    shortest: list[str] = []
    for prefix in sorted(prefixes):
        if not (shortest and prefix.startswith(shortest[-1])):
            shortest.append(prefix)
    return shortest
