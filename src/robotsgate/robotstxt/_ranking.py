"""Finds the most specific of the patterns that match a target (RFC 9309 §2.2.2)."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from typing import TYPE_CHECKING

from robotsgate.robotstxt._indexed_target import IndexedTarget
from robotsgate.robotstxt._pattern import matches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Ranking:
    """Patterns in order of precedence, searchable.

    A pattern that is a mere prefix is found by binary search: the longest prefix
    of a target is the last one that sorts before it, or a prefix of that one.
    `best[i]` is the winner among prefix i and the prefixes of prefix i.
    """

    __slots__ = ("_best", "_numbers", "_parents", "_prefixes", "_wildcards")

    def __init__(
        self,
        disallows: Sequence[str],
        allows: Sequence[str],
        telling_parts: Mapping[str, str],
    ) -> None:
        """Rank patterns, numbered from 0: first `disallows`, then `allows`.

        Args:
            disallows: patterns, none of them empty.
            allows: patterns, none of them empty.
            telling_parts: of each that is no mere prefix.
        """
        patterns = [*allows, *disallows]
        # Stable: allow stays before disallow, and the first line before later ones.
        order = sorted(
            range(len(patterns)),
            key=[-len(pattern) for pattern in patterns].__getitem__,
        )
        self._numbers = array(
            "I", [(index - len(allows)) % len(patterns) for index in order]
        )
        ranks: dict[str, int] = {}
        wildcards: dict[str, int] = {}
        for rank, index in enumerate(order):
            pattern = patterns[index]
            if pattern in telling_parts:
                wildcards.setdefault(pattern, rank)
            else:
                ranks.setdefault(pattern.rstrip("*"), rank)
        self._wildcards = tuple(
            (rank, telling_parts[pattern], pattern)
            for pattern, rank in wildcards.items()
        )
        self._prefixes = tuple(sorted(ranks))
        self._parents = array("i")
        self._best = array("I")
        chain: list[tuple[int, str]] = []
        for index, prefix in enumerate(self._prefixes):
            while chain and not prefix.startswith(chain[-1][1]):
                chain.pop()
            parent = chain[-1][0] if chain else -1
            rank = ranks[prefix]
            self._parents.append(parent)
            self._best.append(rank if parent < 0 else min(rank, self._best[parent]))
            chain.append((index, prefix))

    def first_match(self, target: str, *, is_quick: bool) -> int | None:
        """The number of the pattern that wins for `target`; `None` if none matches.

        Args:
            target: what patterns are matched against.
            is_quick: whether to try the patterns one by one, which is faster
                unless there are very many for a long target.
        """
        best = len(self._numbers)
        index = bisect_right(self._prefixes, target) - 1
        while index >= 0:
            if target.startswith(self._prefixes[index]):
                best = self._best[index]
                break
            index = self._parents[index]
        indexed = None if is_quick else IndexedTarget(target)
        for rank, part, pattern in self._wildcards:
            if rank > best:
                break
            if (
                part in target and matches(pattern, target)
                if indexed is None
                else indexed.matches(pattern)
            ):
                best = rank
                break
        return self._numbers[best] if best < len(self._numbers) else None
