"""The files and URLs that most measurements use.

The URLs of a site are a mix of what a crawler finds there: some match the paths in its
robots.txt, most are ordinary, some have a query, and a few have percent-escapes.
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
"""Named in no file, so the group for all agents applies."""

URLS_PER_FILE = 10

_FROM_OWN_RULES = 2  # of the ten; none if the file has no rules
_SHARE_WITH_QUERY = 0.30
_SHARE_WITH_ESCAPES = 0.05
_ESCAPES = ("caf%C3%A9", "%e4%b8%ad%e6%96%87", "new%20items", "a%2Fb", "%7Euser")

# What quote() leaves unchanged in a path made from a pattern.
_SAFE = "/%?=&:;,@!~+()'-._"


class Question(NamedTuple):
    """An absolute URL, and the index of its robots.txt in the corpus."""

    file: int
    url: str


@dataclass(frozen=True, kw_only=True)
class Workload:
    """Robots.txt files, one per origin, and how often each measurement repeats.

    If `is_quick`, slow measurements are cut down.
    """

    bodies: Sequence[bytes]
    repeats: int = 7
    is_quick: bool = False

    @cached_property
    def origins(self) -> list[str]:
        """One origin per file."""
        return [f"https://www.site{file}.example" for file in range(len(self.bodies))]

    @cached_property
    def rules(self) -> list[tuple[Rule, ...]]:
        """The rules of each file that apply to `AGENT`."""
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
        """For each file, `URLS_PER_FILE` paths, some with queries."""
        rng = Random(SEED)
        return [_paths(rules, rng) for rules in self.rules]

    @cached_property
    def questions(self) -> list[Question]:
        """All URLs in file order."""
        return [
            Question(file, self.origins[file] + path)
            for file, paths in enumerate(self.paths)
            for path in paths
        ]

    @cached_property
    def shuffled(self) -> list[Question]:
        """All URLs in random order."""
        return Random(SEED).sample(self.questions, len(self.questions))

    async def warm_checker(self) -> RobotsChecker:
        """A checker that has answered all questions once; all origins are live."""
        site = FakeSite()
        for origin, body in zip(self.origins, self.bodies, strict=True):
            site.serve(origin, body)
        # Twice as many as needed, so that none is evicted.
        checker = RobotsChecker(
            user_agent=AGENT, client=site, max_origins=2 * len(self.bodies)
        )
        for _, url in self.questions:
            await checker.can_fetch(AGENT, url)
        return checker


def _paths(rules: tuple[Rule, ...], rng: Random) -> list[str]:
    own = _FROM_OWN_RULES if rules else 0
    paths = [_below(rng.choice(rules).pattern, rng) for _ in range(own)]
    paths += [_ordinary(rng) for _ in range(URLS_PER_FILE - own)]
    return paths


def _below(pattern: str, rng: Random) -> str:
    """A path that a pattern matches."""
    path = pattern.replace("*", word(rng))
    if path.endswith("$"):
        path = path[:-1]
    elif rng.random() < 0.5:
        path += f"{slug(rng)}.html"
    return quote("/" + path.lstrip("/"), safe=_SAFE)


def _ordinary(rng: Random) -> str:
    """A path like that of an article, a product or a list."""
    parts = [slug(rng) for _ in range(rng.randint(1, 4))]
    if rng.random() < _SHARE_WITH_ESCAPES:
        parts.append(rng.choice(_ESCAPES))
    if rng.random() < 0.4:
        parts[-1] += f"-{rng.randint(1, 99_999)}"
    path = "/" + "/".join(parts) + rng.choice(["", "/", ".html"])
    if rng.random() < _SHARE_WITH_QUERY:
        path += f"?{word(rng)}={rng.randint(1, 500)}"
        path += f"&{word(rng)}={word(rng)}" * (rng.random() < 0.5)
    return path
