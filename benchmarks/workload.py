"""The files that are asked about, and the URLs: what every measurement works on.

The URLs of a file are a mix of what a crawler finds there: some below the paths
that the file itself names, most of them ordinary, some with a query, and a few with
percent-escapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from benchmarks.corpus import SEED
from benchmarks.words import slug, word
from robotsgate import RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate import Rule

__all__ = ["AGENT", "URLS_PER_FILE", "Question", "Workload"]

AGENT = "ExampleBot"
"""Named in no file, so the group for all agents counts."""

URLS_PER_FILE = 10

_FROM_OWN_RULES = 2  # of the ten; none where the file has no rules
_ROUNDS_OF_MEDIAN_FILE = 100
_SHARE_WITH_QUERY = 0.30
_SHARE_WITH_ESCAPES = 0.05
_ESCAPES = ("caf%C3%A9", "%e4%b8%ad%e6%96%87", "new%20items", "a%2Fb", "%7Euser")

# What quote() leaves as it is in a path made from a pattern.
_SAFE = "/%?=&:;,@!~+()'-._"


class Question(NamedTuple):
    """One URL, and which file decides about it.

    Attributes:
        file: its place in the corpus, from 0.
        url: absolute.
    """

    file: int
    url: str


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A corpus and how long it is measured.

    Attributes:
        bodies: the robots.txt files, one for each origin.
        repeats: of each measurement, ≥ 1.
        is_quick: whether the dear measurements are cut down, for a first look.
    """

    bodies: Sequence[bytes]
    repeats: int = 7
    is_quick: bool = False

    @cached_property
    def origins(self) -> list[str]:
        """One for each file."""
        return [f"https://www.site{file}.example" for file in range(len(self.bodies))]

    @cached_property
    def rules(self) -> list[tuple[Rule, ...]]:
        """For each file the rules that count for `AGENT`."""
        return [
            tuple(
                rule
                for group in RobotsTxt.parse(body).groups
                if "*" in group.tokens
                for rule in group.rules
                if rule.pattern
            )
            for body in self.bodies
        ]

    @cached_property
    def paths(self) -> list[list[str]]:
        """For each file `URLS_PER_FILE` paths with their queries."""
        chance = Random(SEED)
        return [_paths(rules, chance) for rules in self.rules]

    @cached_property
    def questions(self) -> list[Question]:
        """All URLs, in the order of the files."""
        return [
            Question(file, self.origins[file] + path)
            for file, paths in enumerate(self.paths)
            for path in paths
        ]

    @cached_property
    def shuffled(self) -> list[Question]:
        """All URLs in no order."""
        return Random(SEED).sample(self.questions, len(self.questions))

    def questions_about(self, file: int) -> list[Question]:
        """The URLs of one file."""
        return self.questions[file * URLS_PER_FILE : (file + 1) * URLS_PER_FILE]

    @cached_property
    def questions_about_median_file(self) -> list[Question]:
        """Many more URLs of one file, so that the mix is what it should be."""
        chance = Random(SEED)
        file = self.median_file
        return [
            Question(file, self.origins[file] + path)
            for _ in range(_ROUNDS_OF_MEDIAN_FILE)
            for path in _paths(self.rules[file], chance)
        ]

    @cached_property
    def median_file(self) -> int:
        """The file that "median file" means.

        Of those with the median number of rules, all literal, the one whose size
        is nearest to the median size.
        """
        with_rules = sorted(len(rules) for rules in self.rules if rules)
        middle = with_rules[len(with_rules) // 2] if with_rules else 0
        size = sorted(map(len, self.bodies))[len(self.bodies) // 2]

        def distance(file: int) -> tuple[bool, int, int]:
            rules = self.rules[file]
            has_wildcards = any(set("*$") & set(rule.pattern) for rule in rules)
            off = abs(len(rules) - middle)
            return has_wildcards, off, abs(len(self.bodies[file]) - size)

        return min(range(len(self.bodies)), key=distance)


def _paths(rules: tuple[Rule, ...], chance: Random) -> list[str]:
    own = _FROM_OWN_RULES if rules else 0
    paths = [_below(chance.choice(rules).pattern, chance) for _ in range(own)]
    paths += [_ordinary(chance) for _ in range(URLS_PER_FILE - own)]
    return paths


def _below(pattern: str, chance: Random) -> str:
    """A path that a pattern matches."""
    path = pattern.replace("*", word(chance))
    if path.endswith("$"):
        path = path[:-1]
    elif chance.random() < 0.5:
        path += f"{slug(chance)}.html"
    return quote("/" + path.lstrip("/"), safe=_SAFE)


def _ordinary(chance: Random) -> str:
    """A path of an article, a product or a list."""
    parts = [slug(chance) for _ in range(chance.randint(1, 4))]
    if chance.random() < _SHARE_WITH_ESCAPES:
        parts.append(chance.choice(_ESCAPES))
    if chance.random() < 0.4:
        parts[-1] += f"-{chance.randint(1, 99_999)}"
    path = "/" + "/".join(parts) + chance.choice(["", "/", ".html"])
    if chance.random() < _SHARE_WITH_QUERY:
        path += f"?{word(chance)}={chance.randint(1, 500)}"
        path += f"&{word(chance)}={word(chance)}" * (chance.random() < 0.5)
    return path
