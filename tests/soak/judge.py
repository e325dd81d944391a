"""Works out what a checker must answer, from what an origin has done so far.

Uses none of robotsgate's code, so that it can check it.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, NamedTuple

from robotsgate import AccessResult
from tests.soak.servers import Outcome, groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROBOTS_TXT = "/robots.txt"

ROUND_DAYS = 8
"""Days between rounds: longer than any freshness lifetime, so each round fetches."""

# The default policy.
_LIMIT_DAYS = 30
_DAYS_OF_EVIDENCE = 5


class Effect(enum.Enum):
    """What may be fetched from an origin."""

    RULES = "what the rules allow"
    EVERYTHING = "everything"
    NOTHING = "only robots.txt"
    NOTHING_AT_ALL = "nothing, not even robots.txt"


class Expectation(NamedTuple):
    """What applies to an origin in a round, and the result of its fetches.

    Attributes:
        effect: what may be fetched.
        edition: the round whose rules apply, for `Effect.RULES`.
        access: the result of each fetch in this round.
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
    Outcome.RULES: (Effect.RULES, AccessResult.SUCCESSFUL),
    Outcome.NO_FILE: (Effect.EVERYTHING, AccessResult.UNAVAILABLE),
    Outcome.REFUSAL: (Effect.NOTHING_AT_ALL, AccessResult.REFUSED),
}


def expectations(fetches: Sequence[Outcome]) -> Iterator[Expectation]:
    """What applies in each round, if there is a lookup in every round.

    An answer applies until the next one. An outage serves the last copy for 30 days,
    and opens the origin only if there is evidence.
    """
    effect, edition = Effect.NOTHING, 0
    failing_since: int | None = None
    evidence: list[int] = []
    for round_, fetch in enumerate(fetches):
        outcome = fetch
        if outcome is Outcome.MISSING_PAGE:
            outcome = Outcome.ERROR if effect is Effect.RULES else Outcome.NO_FILE
        if outcome in _ANSWERS:
            effect, access = _ANSWERS[outcome]
            edition, failing_since, evidence = round_, None, []
            yield Expectation(effect, edition, access)
            continue
        if failing_since is None:
            failing_since = round_
            if effect is Effect.EVERYTHING:  # a missing file is forgotten
                effect = Effect.NOTHING
        if outcome is Outcome.ERROR:
            evidence.append(round_)
        yield Expectation(
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
