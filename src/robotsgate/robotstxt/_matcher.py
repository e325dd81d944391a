"""Finds the most specific rule for a target (RFC 9309 §2.2.2, §2.2.3).

Works on normalized patterns and targets, whatever the dialect. In a pattern, "*"
matches any characters, and a "$" at its end matches the end of the target. Everything
else is literal. No regular expressions are used, so nothing can backtrack.

Think of it this way: a `RuleSet` has two sides, the disallow rules and the allow rules.
For each side, it first checks whether any rule matches. This does not require trying
every rule, and is enough for most targets:

    disallow side: any match? ── no ──▶ allowed
              │ yes
    allow side: any match? ── no ──▶ disallowed
              │ yes
    the side with the longest match applies; allow wins a tie

Each side sorts its patterns by how they are matched:

    /private    prefixes   all at once by `startswith` if few, or a binary search
    /private*   starred    like the prefix before the star
    /*.pdf$     searched   one by one, if the target contains its anchor, ".pdf"

Each side must be prepared before use (`prepare`): the disallow side immediately, the
allow side on first use, because it is never needed for most files.

With a hostile file, matching a target longer than `quick_length` may take a long time:
searching it for thousands of parts, one by one, may take time proportional to the
product of their lengths. For such a target, `allows_at_once` returns `None`, and
`allows` uses an `IndexedTarget`, which records every occurrence of each piece of the
target, so that almost no search is needed.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


ROBOTS_TXT_PATH = "/robots.txt"

# Up to this number, trying each prefix is faster than a binary search.
_FEW_PREFIXES = 32

# Measured on CPython 3.11, not counting the characters of the pattern.
_BYTES_OF_A_RULE = 300

# The total length of all wildcard patterns times the length of a target that is matched
# directly. In the worst case, every pair of characters is compared, which takes a few
# milliseconds.
_QUICK_WORK = 4_000_000

# Splitting this many wildcard patterns, with this many characters, takes a few
# milliseconds. The maximum in 2,156 real files, for all agents, is 582 patterns with
# 24,726 characters.
_MANY_WILDCARDS = 2_000
_MANY_WILD_CHARACTERS = 100_000

# Preparing this many rules takes a few milliseconds.
_QUICKLY_PREPARED = 2_000

_SHORT_PART = 2

_STARS = re.compile(r"\*\*+")

# Pieces of the target have up to 8 characters, or 16, 32 or 64: two of them, which may
# overlap, are all of a part of up to 128 characters.
_SHORT_PIECE = 8
_LONGEST_PIECE = 64

# Trying this many places takes as long as a search.
_MANY_PLACES = 300

# An index takes up to 2 KB per character. No server accepts longer URLs.
_LONGEST_INDEXED = 32_768

# In a text of less than 30,000 characters, a search by CPython may take time
# proportional to the product of both lengths; in longer texts, to their sum
# (fastsearch.h, since 3.10). No pattern contains "#", because that starts a comment.
_FILLER = "#" * 30_000

# Takes at most half a megabyte; in real files, a fifth of all patterns are shared.
_COMMON: dict[str, str] = {}
_MANY_COMMON = 4_096
_LONGEST_COMMON = 40
_MANY_OF_A_FILE = 128


class RuleLines(NamedTuple):
    """The rules of one kind, in file order.

    Attributes:
        patterns: the patterns, normalized like targets; a pattern may be empty.
            Patterns that do not start with "/" or "*" match nothing, because all
            targets start with "/".
        lines: the line number of each rule.
        written: the patterns as written in the file.
    """

    patterns: list[str]
    lines: list[int]
    written: list[str]

    def without_empty(self) -> RuleLines:
        """These rules, minus empty patterns, which match nothing."""
        if "" not in self.patterns:
            return self
        kept = [rule for rule in zip(*self, strict=True) if rule[0]]
        return RuleLines(*map(list, zip(*kept, strict=True))) if kept else NO_RULES


NO_RULES = RuleLines([], [], [])


class RuleSet:
    """The allow and disallow rules for one agent.

    Methods refer to a rule by its number. Rules are numbered from 0, the disallow rules
    before the allow rules.

    Attributes:
        implied: the target that is allowed whatever the rules: /robots.txt (RFC 9309
            §2.2.2), or `None`.
        quick_length: a target of up to this many characters, or several targets of
            that total length, can be matched within about 10 milliseconds, even with
            hostile rules.
    """

    __slots__ = ("_allows", "_disallows", "_prefixes", "implied", "quick_length")

    def __init__(
        self,
        disallows: RuleLines = NO_RULES,
        allows: RuleLines = NO_RULES,
        *,
        implied: str | None = ROBOTS_TXT_PATH,
    ) -> None:
        self.implied: str | None = implied
        self._disallows = _Side(disallows)
        # Not prepared yet, because most files never need it.
        self._allows = _Side(allows) if allows.patterns else _NONE
        wildcards = (*self._disallows.wildcards, *self._allows.wildcards)
        wild = sum(map(len, wildcards))
        is_quick = len(wildcards) <= _MANY_WILDCARDS and wild <= _MANY_WILD_CHARACTERS
        self.quick_length: int = _QUICK_WORK // (wild + 1) if is_quick else 0
        self._disallows.prepare()
        # A fast path: nearly half of all files disallow only a few prefixes.
        self._prefixes = self._disallows.few_prefixes
        if len(self._allows.patterns) > _QUICKLY_PREPARED:
            self._allows.prepare()

    def __len__(self) -> int:
        return len(self._disallows.patterns) + len(self._allows.patterns)

    @property
    def weight(self) -> int:
        """Approximate memory use of the rules when fully prepared, in bytes."""
        characters = sum(map(len, self._disallows.patterns))
        characters += sum(map(len, self._allows.patterns))
        return 2 * characters + _BYTES_OF_A_RULE * len(self)

    def allows(self, target: str) -> bool:
        answer = self.allows_at_once(target)
        return self._allow_is_longest(target) if answer is None else answer

    def allows_at_once(self, target: str) -> bool | None:
        """Like `allows`, but `None` for a target longer than `quick_length`."""
        if self._prefixes is not None:
            if not target.startswith(self._prefixes):
                return True
        elif len(target) > self.quick_length:
            return target == self.implied or None
        elif not self._disallows.has_match(target):
            return True
        if target == self.implied:
            return True
        if self._allows is _NONE:
            return False
        if len(target) > self.quick_length:
            return None
        if not self._allows.is_ready:
            self._allows.prepare()
        return self._allows.has_match(target) and self._allow_is_longest(target)

    def decisive(self, target: str) -> int | None:
        """The number of the most specific rule that matches `target`.

        The longest pattern wins, then allow, then the first line.
        """
        disallow, allow = self._longest(target)
        if not (disallow or allow):
            return None
        if len(disallow) > len(allow):
            return self._disallows.patterns.index(disallow)
        return len(self._disallows.patterns) + self._allows.patterns.index(allow)

    def matching(self, target: str) -> list[int]:
        """The numbers of all rules that match `target`, most specific first.

        Empty for the implied target, whatever the rules.
        """
        if target == self.implied:
            return []
        matcher = IndexedTarget(target)
        patterns = [*self._allows.patterns, *self._disallows.patterns]
        count = len(self._allows.patterns)
        order = [
            index for index, pattern in enumerate(patterns) if matcher.matches(pattern)
        ]
        # The sort is stable: allow stays before disallow, and both stay in file order.
        order.sort(key=lambda index: -len(patterns[index]))
        return [(index - count) % len(patterns) for index in order]

    def _allow_is_longest(self, target: str) -> bool:
        disallow, allow = self._longest(target)
        return len(allow) >= len(disallow)

    def _longest(self, target: str) -> tuple[str, str]:
        """The longest matching disallow pattern and allow pattern, each "" if none.

        Both are "" for the implied target.
        """
        if target == self.implied:
            return "", ""
        if not self._allows.is_ready:
            self._allows.prepare()
        is_quick = len(target) <= self.quick_length
        indexed = None if is_quick else IndexedTarget(target)
        disallow = self._disallows.longest(target, indexed)
        has_allows = self._allows is not _NONE
        return disallow, self._allows.longest(target, indexed) if has_allows else ""

    def is_allow(self, number: int) -> bool:
        return number >= len(self._disallows.patterns)

    def as_written(self, number: int) -> tuple[str, bool, int]:
        """Rule `number` as (pattern as written, whether it is an allow rule, line)."""
        if not self.is_allow(number):
            side = self._disallows
            return side.written[number], False, side.lines[number]
        number -= len(self._disallows.patterns)
        return self._allows.written[number], True, self._allows.lines[number]

    def is_same(self, other: RuleSet) -> bool:
        """Whether `other`, a rule set from the same file, has the same lines."""
        return (
            self._disallows.lines == other._disallows.lines
            and self._allows.lines == other._allows.lines
        )


class _Side:
    """The rules of one kind, sorted as explained in the module docstring.

    Attributes:
        patterns, lines, written: as in `RuleLines`, without empty patterns.
        wildcards: the patterns with wildcards, without duplicates, longest first;
            `searched` is the subset that is not in `starred`.
        is_ready: whether `prepare` has set the attributes below.
        starred: starred patterns by prefix; empty if there are very many wildcards.
        prefixes: the plain patterns, and the keys of `starred`.
        shortest: the prefixes that do not start with another prefix, sorted; `None` if
            there are only a few.
        anchors: the anchor of each `searched` pattern; empty if there are very many
            wildcards.
    """

    __slots__ = (
        "anchors",
        "is_ready",
        "lines",
        "patterns",
        "prefixes",
        "searched",
        "shortest",
        "starred",
        "wildcards",
        "written",
    )

    def __init__(self, rules: RuleLines) -> None:
        rules = rules.without_empty()
        self.patterns = _share(rules.patterns)
        self.lines = _in_little_memory(rules.lines)
        is_written_so = rules.written is rules.patterns
        self.written = self.patterns if is_written_so else _share(rules.written)
        joined = "".join(self.patterns)
        self.wildcards: tuple[str, ...] = ()
        if "*" in joined or "$" in joined:
            wildcards = [one for one in self.patterns if "*" in one or one[-1] == "$"]
            unique = dict.fromkeys(wildcards)
            self.wildcards = tuple(sorted(unique, key=len, reverse=True))
        self.is_ready = False

    def prepare(self) -> None:
        """Set the remaining attributes; concurrent threads set the same values."""
        prefixes = self.patterns
        starred, searched = _NONE_STARRED, self.wildcards
        is_quick = len(self.wildcards) <= _MANY_WILDCARDS
        if self.wildcards:
            kept = {*self.wildcards}
            prefixes = tuple([one for one in prefixes if one not in kept])
        if self.wildcards and is_quick:
            prefix_of = {one: one.rstrip("*") for one in searched if one[-1] == "*"}
            # Among patterns with the same prefix, the longest one comes last.
            starred = {
                prefix: one
                for one, prefix in reversed(prefix_of.items())
                if "*" not in prefix
            }
            searched = tuple(
                [one for one in searched if prefix_of.get(one) not in starred]
            )
            prefixes += tuple(starred)
        is_few = len(prefixes) <= _FEW_PREFIXES
        self.prefixes = prefixes
        self.shortest = None if is_few else _shortest(prefixes)
        self.starred, self.searched = starred, searched
        self.anchors = _share([*map(_telling_part, searched)]) if is_quick else ()
        self.is_ready = True

    @property
    def few_prefixes(self) -> tuple[str, ...] | None:
        """The prefixes, if there are few and no other patterns; otherwise `None`."""
        is_few = self.shortest is None and not self.searched
        return self.prefixes if is_few else None

    def has_match(self, target: str) -> bool:
        if self.shortest is None:
            if target.startswith(self.prefixes):
                return True
        elif _begins_with_one(target, self.shortest):
            return True
        for anchor in self.anchors:
            if anchor in target:
                return self._longest_wildcard(target) != ""
        return False

    def longest(self, target: str, indexed: IndexedTarget | None) -> str:
        """The longest pattern that matches `target`, or ""; on a tie, the first one.

        Pass `indexed` if trying every wildcard pattern on the target may be slow.
        """
        prefix = self._longest_prefix(target)
        best = self.starred.get(prefix, prefix)
        for prefix, pattern in self.starred.items():
            if target.startswith(prefix):
                best = self._longer(best, pattern)
        if not self.searched:
            return best
        if indexed is None:
            return self._longer(best, self._longest_wildcard(target))
        return self._longer(best, next(filter(indexed.matches, self.searched), ""))

    def _longer(self, one: str, other: str) -> str:
        """The longer pattern; on a tie, the first one in the file."""
        if len(one) != len(other):
            return one if len(one) > len(other) else other
        return one if one == other else min(one, other, key=self.patterns.index)

    def _longest_prefix(self, target: str) -> str:
        if self.shortest and not _begins_with_one(target, self.shortest):
            return ""
        return max(filter(target.startswith, self.prefixes), key=len, default="")

    def _longest_wildcard(self, target: str) -> str:
        for anchor, pattern in zip(self.anchors, self.searched, strict=True):
            if anchor in target and matches(pattern, target):
                return pattern
        return ""


def _in_little_memory(lines: list[int]) -> Sequence[int]:
    """`lines` as a range if consecutive (as in most files), otherwise as an array."""
    if lines and lines[-1] - lines[0] == len(lines) - 1:
        run = range(lines[0], lines[-1] + 1)
        if [*run] == lines:  # one line may imply two rules
            return run
    return array("I", lines)


def _begins_with_one(target: str, shortest: Sequence[str]) -> bool:
    before = bisect_right(shortest, target)
    return before > 0 and target.startswith(shortest[before - 1])


def _shortest(prefixes: Sequence[str]) -> tuple[str, ...]:
    """`prefixes`, sorted, minus any that start with another prefix in the list.

    Only one prefix in the result can match a target: the last one that sorts before the
    target.
    """
    last, *others = sorted(prefixes)
    shortest = [last]
    for prefix in others:
        if not prefix.startswith(last):
            shortest.append(prefix)
            last = prefix
    return tuple(shortest)


def _share(strings: list[str]) -> tuple[str, ...]:
    """`strings` as a tuple; the first 4,096 short strings ever passed are interned."""
    if len(_COMMON) >= _MANY_COMMON or len(strings) > _MANY_OF_A_FILE:
        return tuple(map(_COMMON.get, strings, strings))
    return tuple(
        [
            _COMMON.setdefault(one, one) if len(one) <= _LONGEST_COMMON else one
            for one in strings
        ]
    )


def _parts(pattern: str) -> list[str]:
    """The strings between the stars in `pattern`, without "$"; "**" counts as "*"."""
    if "**" in pattern:
        pattern = _STARS.sub("*", pattern)
    return pattern.removesuffix("$").split("*")


def _telling_part(pattern: str) -> str:
    """A string that every matching target contains, but few other targets do.

    The start of `pattern`, which many rules in a file share, is used only if the other
    parts are very short.
    """
    start, *others = _parts(pattern)
    longest = ""
    for part in others:
        if len(part) >= len(longest):
            longest = part
    if len(longest) > _SHORT_PART or len(longest) >= len(start):
        return longest
    return start


def matches(pattern: str, target: str, index: IndexedTarget | None = None) -> bool:
    """Whether `pattern` matches `target`; pass its `index` if searching it may be slow.

    Each part is matched at its first occurrence, because a later one would leave less
    room for the following parts.
    """
    start, *others = _parts(pattern)
    has_end = pattern.endswith("$")
    if not others:
        return target == start if has_end else target.startswith(start)
    end = others.pop() if has_end else ""
    if not target.startswith(start) or (has_end and not target.endswith(end)):
        return False
    if index is not None:
        position = index.end_of(others, len(start))
        return 0 <= position <= len(target) - len(end)
    position = len(start)
    for part in others:
        position = target.find(part, position)
        if position < 0:
            return False
        position += len(part)
    return position <= len(target) - len(end)


class IndexedTarget:
    """A target to be matched against many patterns."""

    def __init__(self, target: str) -> None:
        """Store `target`; pieces of each length are indexed when first needed."""
        self._target = target
        self._searched = target + _FILLER
        self._starts: dict[str, list[int]] = {}
        self._indexed_lengths: set[int] = set()
        self._is_indexed = len(target) <= _LONGEST_INDEXED

    def matches(self, pattern: str) -> bool:
        # Quick checks that exclude most rules in a hostile file.
        final = "" if pattern[-1:] == "$" else pattern[pattern.rfind("*") + 1 :]
        if self._starts_of(final) == []:
            return False
        length = len(self._target)
        if len(pattern) > length and len(pattern) - pattern.count("*") - 1 > length:
            return False
        return matches(pattern, self._target, self)

    def end_of(self, parts: list[str], position: int) -> int:
        """Where `parts` end, one after another from `position`; -1 if they do not fit.

        Each is matched at its first occurrence.
        """
        for part in parts:
            starts = self._starts_of(part)
            if starts is None:
                position = self._searched.find(part, position)
            else:
                number = bisect_left(starts, position)
                position = starts[number] if number < len(starts) else -1
            if position < 0:
                return -1
            position += len(part)
        return position

    def _starts_of(self, part: str) -> list[int] | None:
        """Every index where `part` starts; `None` if too many places must be tried."""
        starts = self._starts.get(part, _NOWHERE)
        return self._found_starts(part) if starts is _NOWHERE else starts

    def _found_starts(self, part: str) -> list[int] | None:
        length = len(part)
        if not self._is_indexed or not length:
            return None
        if length > _SHORT_PIECE:
            length = min(1 << (length.bit_length() - 1), _LONGEST_PIECE)
        if length not in self._indexed_lengths:
            self._index(length)
        firsts = self._starts.get(part[:length], _NOWHERE)
        final = len(part) - length
        if not final or not firsts:
            return firsts
        lasts = self._starts.get(part[final:], _NOWHERE)
        if min(len(firsts), len(lasts)) > _MANY_PLACES:
            return None
        if len(firsts) > len(lasts):
            firsts = [start - final for start in lasts if start >= final]
        starts = [start for start in firsts if self._target.startswith(part, start)]
        self._starts[part] = starts
        return starts

    def _index(self, length: int) -> None:
        """Note the indexes where each piece of the given length starts."""
        self._indexed_lengths.add(length)
        for start in range(len(self._target) - length + 1):
            piece = self._target[start : start + length]
            self._starts.setdefault(piece, []).append(start)


_NOWHERE: list[int] = []
_NONE_STARRED: dict[str, str] = {}
_NONE = _Side(NO_RULES)
_NONE.prepare()
