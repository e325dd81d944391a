"""What each origin of a soak does in each round, and what may be fetched from it then.

Pure: all is drawn from a seed, so that the servers and whoever asks them agree
without a word. Knows what robotsgate promises, and must never import it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, assert_never

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AGENTS",
    "FAULTS",
    "KINDS",
    "ROUND_DAYS",
    "SOUND",
    "Comes",
    "Effect",
    "Script",
    "Standing",
    "allows",
    "body",
    "paths",
]

ROUND_DAYS = 8
"""Between two rounds: longer than anything is fresh, so each round fetches anew."""

AGENTS = ("SoakBot/1.0 (+https://crawler.example)", "OtherBot", "SoakBot")
"""Who asks; the first and the last have a group of their own, the second has none."""

_STALE_WINDOW_DAYS = 30
_ROUNDS_OF_AN_OUTAGE = (1, 2, 6)
_ROBOTS_TXT = "/robots.txt"


class Comes(enum.Enum):
    """What a fetch comes to."""

    TO_RULES = "the file"
    TO_NO_FILE = "no file"
    TO_NOTHING = "unreachable"
    TO_A_REFUSAL = "refused"


SOUND: Mapping[str, Comes] = {
    "sends a file": Comes.TO_RULES,
    "sends a file and keeps the connection": Comes.TO_RULES,
    "sends a file without a length": Comes.TO_RULES,
    "sends chunks": Comes.TO_RULES,
    "sends gzip": Comes.TO_RULES,
    "sends gzip in chunks": Comes.TO_RULES,
    "sends early hints first": Comes.TO_RULES,
    "says `max-age=60`": Comes.TO_RULES,
    "says `max-age=600`, with an age of 300": Comes.TO_RULES,
    "says `no-store`": Comes.TO_RULES,
    "says `max-age` of a year": Comes.TO_RULES,
    "redirects within itself": Comes.TO_RULES,
    "redirects to another origin": Comes.TO_RULES,
    "answers 404": Comes.TO_NO_FILE,
    "answers 410, with `max-age=60`": Comes.TO_NO_FILE,
    "answers 403": Comes.TO_NO_FILE,
}
"""What origins do that are well, and what that comes to."""

FAULTS: Mapping[str, Comes] = {
    "refuses the connection": Comes.TO_NOTHING,
    "closes where the answer should come": Comes.TO_NOTHING,
    "resets where the answer should come": Comes.TO_NOTHING,
    "says nothing": Comes.TO_NOTHING,
    "falls silent within the head": Comes.TO_NOTHING,
    "falls silent within the body": Comes.TO_NOTHING,
    "drips its head": Comes.TO_NOTHING,
    "drips its body": Comes.TO_NOTHING,
    "drips `100 Continue`": Comes.TO_NOTHING,
    "resets within the head": Comes.TO_NOTHING,
    "resets within the body": Comes.TO_NOTHING,
    "announces more than it sends": Comes.TO_NOTHING,
    "announces a negative length": Comes.TO_NOTHING,
    "sends a broken chunk": Comes.TO_NOTHING,
    "closes before the last chunk": Comes.TO_NOTHING,
    "sends chunks of one octet, for ever": Comes.TO_NOTHING,
    "sends header lines for ever": Comes.TO_NOTHING,
    "sends `103 Early Hints` for ever": Comes.TO_NOTHING,
    "sends zeros for ever": Comes.TO_NOTHING,
    "greets as SSH does": Comes.TO_NOTHING,
    "sends the file without any head": Comes.TO_NOTHING,
    "answers 429": Comes.TO_NOTHING,
    "answers 429, with `Retry-After`": Comes.TO_NOTHING,
    "answers 500": Comes.TO_NOTHING,
    "answers 503": Comes.TO_NOTHING,
    "answers 503, with `Retry-After`": Comes.TO_NOTHING,
    "answers 999": Comes.TO_NOTHING,
    "sends gzip that ends too early": Comes.TO_NOTHING,
    "sends gzip with a wrong checksum": Comes.TO_NOTHING,
    "sends a coding that nobody knows": Comes.TO_NOTHING,
    "sends empty members of gzip for ever": Comes.TO_NOTHING,
    "redirects to a closed port": Comes.TO_NOTHING,
    "sends gzip that becomes 64 MiB": Comes.TO_RULES,
    "sends a body for ever": Comes.TO_RULES,
    "announces a terabyte, and starts to send it": Comes.TO_RULES,
    "answers 500 with a page that says not found": Comes.TO_NO_FILE,
    "redirects in a loop": Comes.TO_NO_FILE,
    "redirects on and on": Comes.TO_NO_FILE,
    "redirects to another scheme": Comes.TO_NO_FILE,
    "redirects to an address inside": Comes.TO_A_REFUSAL,
    "redirects to a name of an address inside": Comes.TO_A_REFUSAL,
    "redirects to a service of the cloud": Comes.TO_A_REFUSAL,
}
"""What origins do that are not well, and what that comes to."""

KINDS: Mapping[str, Comes] = {**SOUND, **FAULTS}


class Effect(enum.Enum):
    """What may be fetched from an origin."""

    RULES = "what the rules allow"
    EVERYTHING = "everything"
    NOTHING = "nothing but the robots.txt"
    NOTHING_AT_ALL = "nothing, nor the robots.txt"


@dataclass(frozen=True, slots=True)
class Standing:
    """What is in force for an origin in a round.

    Attributes:
        effect: what may be fetched.
        edition: the round whose rules are in force, for `Effect.RULES`.
    """

    effect: Effect
    edition: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """What origins do.

    Attributes:
        seed: from which all is drawn.
        origins: how many there are, > 0.
        faults: the share of them that is not well at any time, 0 to 1.
    """

    seed: int
    origins: int
    faults: float

    def kind(self, origin: int, round_: int) -> str:
        """What `origin` does in a round; one of `KINDS`."""
        kinds = FAULTS if self._is_unwell(origin, round_) else SOUND
        return Random(f"kind {self.seed} {origin} {round_}").choice([*kinds])

    def standings(self, origin: int, rounds: int) -> list[Standing]:
        """What is in force for `origin`, round by round, if each asks about it."""
        known = _Known()
        return [
            known.after(KINDS[self.kind(origin, round_)], round_)
            for round_ in range(rounds)
        ]

    def _is_unwell(self, origin: int, round_: int) -> bool:
        """Whether it is the turn of `origin` to be not well.

        The origins stand on a circle that turns, some of them faster than others,
        below a window that is as wide as the share.
        """
        chance = Random(f"outages {self.seed} {origin}")
        place = chance.random()
        step = self.faults / chance.choice(_ROUNDS_OF_AN_OUTAGE)
        return (place + round_ * step) % 1 < self.faults


@dataclass(slots=True)
class _Known:
    """What a checker with the policy as it comes knows about an origin."""

    edition: int | None = None
    failing_since: int | None = None

    def after(self, comes: Comes, round_: int) -> Standing:
        """What is in force once the fetch of a round came to something."""
        match comes:
            case Comes.TO_RULES:
                self.edition, self.failing_since = round_, None
                return Standing(Effect.RULES, round_)
            case Comes.TO_NO_FILE:
                self.edition = self.failing_since = None
                return Standing(Effect.EVERYTHING)
            case Comes.TO_A_REFUSAL:
                self.edition = self.failing_since = None
                return Standing(Effect.NOTHING_AT_ALL)
            case Comes.TO_NOTHING:
                return self._after_failure(round_)
            case _:
                assert_never(comes)

    def _after_failure(self, round_: int) -> Standing:
        if self.failing_since is None:
            self.failing_since = round_
        if (round_ - self.failing_since) * ROUND_DAYS > _STALE_WINDOW_DAYS:
            self.edition = None
            return Standing(Effect.EVERYTHING)
        if self.edition is None:
            return Standing(Effect.NOTHING)
        return Standing(Effect.RULES, self.edition)


def body(origin: int, edition: int) -> bytes:
    """The robots.txt of an origin in a round; no other one has the same paths."""
    lines = [f"# {origin}, {edition}"]
    for group, rules in _groups(origin, edition).items():
        lines.append(f"User-agent: {group}")
        for prefix, is_allowed in rules.items():
            lines.append(f"{'Allow' if is_allowed else 'Disallow'}: {prefix}")
    return "\n".join([*lines, ""]).encode()


def paths(origin: int, edition: int) -> list[str]:
    """Those about which the rules of an edition have something to say."""
    groups = _groups(origin, edition).values()
    return [f"{prefix}page" for rules in groups for prefix in rules]


def allows(standing: Standing, *, origin: int, agent: str, path: str) -> bool:
    """Whether `agent` may fetch `path` from `origin`."""
    match standing.effect:
        case Effect.RULES:
            return path == _ROBOTS_TXT or _rules_allow(
                _groups(origin, standing.edition), agent, path
            )
        case Effect.EVERYTHING:
            return True
        case Effect.NOTHING:
            return path == _ROBOTS_TXT
        case Effect.NOTHING_AT_ALL:
            return False
        case _:
            assert_never(standing.effect)


def _rules_allow(
    groups: Mapping[str, Mapping[str, bool]], agent: str, path: str
) -> bool:
    """The longest prefix decides, in the group of the agent or in that for all."""
    rules = groups.get(agent.partition("/")[0], groups["*"])
    found = [prefix for prefix in rules if path.startswith(prefix)]
    return rules[max(found, key=len)] if found else True


def _groups(origin: int, edition: int) -> dict[str, dict[str, bool]]:
    """Whether what begins with a prefix is allowed, for each group."""
    mark = f"{origin}-{edition}"
    return {
        "*": {f"/all-{mark}/": False, f"/all-{mark}/open/": True},
        "SoakBot": {f"/own-{mark}/": False, f"/own-{mark}/open/": True},
    }
