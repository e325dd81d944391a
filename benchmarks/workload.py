"""The files that are asked about, and the URLs: what most measurements work on.

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

from benchmarks.corpus import SEED, slug, word
from robotsgate import RobotsChecker, RobotsTxt
from robotsgate.testing import FakeSite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate import Rule

AGENT = "ExampleBot"
"""Named in no file, so the group for all agents counts."""

URLS_PER_FILE = 10

_FROM_OWN_RULES = 2  # of the ten; none where the file has no rules
_SHARE_WITH_QUERY = 0.30
_SHARE_WITH_ESCAPES = 0.05
_ESCAPES = ("caf%C3%A9", "%e4%b8%ad%e6%96%87", "new%20items", "a%2Fb", "%7Euser")

# What quote() leaves as it is in a path made from a pattern.
_SAFE = "/%?=&:;,@!~+()'-._"


class Question(NamedTuple):
    """One absolute URL, and the place in the corpus of the file that decides."""

    file: int
    url: str


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Robots.txt files, one for each origin, and how often each measurement repeats.

    For a first look, when `is_quick`, the dear measurements are cut down.
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

    async def known_checker(self) -> RobotsChecker:
        """A checker that knows all origins and has answered all questions once."""
        site = FakeSite()
        for origin, body in zip(self.origins, self.bodies, strict=True):
            site.serve(origin, body)
        # Twice the room: none of the origins may go while it is asked.
        checker = RobotsChecker(
            user_agent=AGENT, client=site, max_origins=2 * len(self.bodies)
        )
        for _, url in self.questions:
            await checker.can_fetch(AGENT, url)
        return checker


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
