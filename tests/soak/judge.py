"""Says what a checker must answer, from what an origin did until now.

Worked out without the code of robotsgate, so that one is the judge of the other.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from robotsgate import AccessResult
from tests.soak.servers import Comes, groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROBOTS_TXT = "/robots.txt"

ROUND_DAYS = 8
"""Between two rounds: longer than anything is fresh, so each round fetches again."""

# Of the policy as it comes.
_LIMIT_DAYS = 30
_DAYS_OF_EVIDENCE = 5


class Effect(enum.Enum):
    """What may be fetched from an origin."""

    RULES = "what the rules allow"
    EVERYTHING = "everything"
    NOTHING = "nothing but the robots.txt"
    NOTHING_AT_ALL = "nothing, nor the robots.txt"


class Standing(NamedTuple):
    """What is in force for an origin in a round, and what its fetches come to.

    Attributes:
        effect: what may be fetched.
        edition: the round whose rules are in force, for `Effect.RULES`.
        access: of each fetch in this round.
    """

    effect: Effect
    edition: int
    access: AccessResult

    def allows(self, *, origin: int, agent: str, path: str) -> bool:
        """Whether `agent` may fetch `path`: the longest prefix of its group decides."""
        if self.effect is Effect.EVERYTHING:
            return True
        if self.effect is Effect.NOTHING_AT_ALL:
            return False
        if path == ROBOTS_TXT or self.effect is Effect.NOTHING:
            return path == ROBOTS_TXT
        rules = groups(origin, self.edition)
        group = rules.get(agent.partition("/")[0], rules["*"])
        prefixes = [prefix for prefix in group if path.startswith(prefix)]
        return group[max(prefixes, key=len)] if prefixes else True


_ANSWERS = {
    Comes.RULES: (Effect.RULES, AccessResult.SUCCESSFUL),
    Comes.NO_FILE: (Effect.EVERYTHING, AccessResult.UNAVAILABLE),
    Comes.REFUSAL: (Effect.NOTHING_AT_ALL, AccessResult.REFUSED),
}


def standings(fetches: Sequence[Comes]) -> Iterator[Standing]:
    """What is in force round by round, if each round asks about the origin.

    An answer counts until the next one. An outage serves the last copy for 30 days,
    and opens an origin only on evidence.
    """
    effect, edition = Effect.NOTHING, 0
    failing_since: int | None = None
    evidence: list[int] = []
    for round_, fetch in enumerate(fetches):
        comes = fetch
        if comes is Comes.MISSING_PAGE:
            comes = Comes.ERROR if effect is Effect.RULES else Comes.NO_FILE
        if comes in _ANSWERS:
            effect, access = _ANSWERS[comes]
            edition, failing_since, evidence = round_, None, []
            yield Standing(effect, edition, access)
            continue
        if failing_since is None:
            failing_since = round_
            if effect is Effect.EVERYTHING:  # that there is no file is forgotten
                effect = Effect.NOTHING
        if comes is Comes.ERROR:
            evidence.append(round_)
        yield Standing(
            _effect_of_outage(effect, round_, failing_since, evidence),
            edition,
            AccessResult.UNREACHABLE,
        )


def _effect_of_outage(
    last: Effect, round_: int, failing_since: int, evidence: Sequence[int]
) -> Effect:
    rounds = _LIMIT_DAYS / ROUND_DAYS
    if last is Effect.NOTHING_AT_ALL or round_ - failing_since < rounds:
        return last
    is_open = (
        len(evidence) >= _DAYS_OF_EVIDENCE
        and evidence[-1] == round_
        and round_ - evidence[0] >= rounds
    )
    return Effect.EVERYTHING if is_open else Effect.NOTHING
