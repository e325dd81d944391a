"""Origins held ready to be asked: their entries, with the rules already parsed.

No network and no clock: the time is an argument.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from robotsgate.caching._plan import Plan, plan
from robotsgate.caching._ruling import Effect, Ruling, ruling, verdict
from robotsgate.robotstxt._matcher import RuleSet
from robotsgate.robotstxt._robots_txt import (
    MAX_KNOWN_AGENTS,
    AgentRules,
    RobotsTxt,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.caching._entry import Entry
    from robotsgate.caching._policy import Policy
    from robotsgate.robotstxt._dialect import Dialect
    from robotsgate.robotstxt._model import Match
    from robotsgate.robotstxt._product_token import ProductToken
    from robotsgate.robotstxt._verdict import Verdict

__all__ = ["Agent", "LiveOrigin", "LiveOrigins"]

AgentName = str | tuple[str, ...]


class Agent(NamedTuple):
    """An agent as a caller names it.

    Attributes:
        name: what its rules are remembered by.
        tokens: its product tokens, most specific first.
    """

    name: AgentName
    tokens: tuple[ProductToken, ...]


# What all live origins together may hold, for each that there may be. The rules
# and the packed copy of an average robots.txt take 8 KiB, all built; those of a
# hostile one, a thousand times as much.
_BYTES_PER_ORIGIN = 32 * 1024

_FULL_ALLOW = AgentRules(group=None, rules=RuleSet(()))
_FULL_DISALLOW = AgentRules(group=None, rules=RuleSet([("/", False, 0, "/")]))


class LiveOrigin:
    """One origin as it stands now.

    Attributes:
        entry: what is known about it.
        effect: what that means, from `usable_from` until `usable_until`.
        usable_from: epoch seconds.
        usable_until: epoch seconds; from then on the entry must be looked at again.
        rules: for each agent that was asked about, what is in force for it.
        weight: about how many bytes the copy and the rules take.
        is_used: whether it was asked about since it was last looked at for a
            place.
    """

    __slots__ = (
        "effect",
        "entry",
        "is_used",
        "rules",
        "usable_from",
        "usable_until",
        "weight",
    )

    def __init__(
        self,
        entry: Entry,
        found: Ruling,
        *,
        now: float,
        rules: dict[AgentName, AgentRules],
    ) -> None:
        """Hold `entry`, which means `found` at `now`; `rules` may be shared."""
        self.entry = entry
        self.effect = found.effect
        self.usable_from = now
        self.usable_until = found.until
        self.rules = rules
        self.weight = _weight_of_copy(entry)
        self.is_used = False

    def is_usable(self, now: float) -> bool:
        """Whether the ruling stands at `now`."""
        return self.usable_from <= now < self.usable_until


class LiveOrigins:
    """The origins that were asked about last, bounded in number and bytes."""

    def __init__(self, *, max_origins: int, policy: Policy, dialect: Dialect) -> None:
        """Hold nothing yet.

        Args:
            max_origins: how many are held, ≥ 1.
            policy: what entries mean.
            dialect: how files are read.
        """
        self._max_origins = max_origins
        self._max_weight = max_origins * _BYTES_PER_ORIGIN
        self._weight = 0
        self._policy = policy
        self._dialect = dialect
        # Full allow and full disallow look the same for all origins.
        self._rules_of_effects: dict[Effect, dict[AgentName, AgentRules]] = {
            Effect.ALLOW: {},
            Effect.DISALLOW: {},
        }
        self.by_origin: OrderedDict[str, LiveOrigin] = OrderedDict()
        """By the key of the origin, in the order in which their places come up."""

    def current(self, origin: str, now: float) -> LiveOrigin | None:
        """The origin, if it can be answered from memory at `now`."""
        live = self.by_origin.get(origin)
        if live is None or plan(live.entry, now) is Plan.FETCH:
            return None
        live.is_used = True
        if live.is_usable(now):
            return live
        return self.admit(live.entry, now)

    def admit(self, entry: Entry, now: float) -> LiveOrigin:
        """Hold `entry` from now on; the origin that waited longest may go for it."""
        self.discard(entry.origin)
        found = ruling(entry, now=now, policy=self._policy)
        shared = self._rules_of_effects.get(found.effect)
        live = LiveOrigin(entry, found, now=now, rules={} if shared is None else shared)
        self.by_origin[entry.origin] = live
        self._weight += live.weight
        live.is_used = True  # so that it does not go for itself
        self._shrink()
        live.is_used = False
        return live

    def discard(self, origin: str) -> None:
        """Hold the origin no longer."""
        live = self.by_origin.pop(origin, None)
        if live is not None:
            self._weight -= live.weight

    def rules_for(self, live: LiveOrigin, agent: Agent) -> AgentRules:
        """What is in force for `agent`, parsed if it was not asked about before."""
        known = live.rules.get(agent.name)
        if known is not None:
            return known
        if len(live.rules) >= MAX_KNOWN_AGENTS:
            self._weigh(live, _weight_of_copy(live.entry) - live.weight)
            live.rules.clear()
        rules = live.rules[agent.name] = self._parsed(live, agent.tokens)
        return rules

    def _parsed(self, live: LiveOrigin, tokens: Sequence[str]) -> AgentRules:
        if live.effect is Effect.ALLOW:
            return _FULL_ALLOW
        if live.effect is Effect.DISALLOW:
            return _FULL_DISALLOW
        found = self.robots_txt(live).rules_for(tokens)
        for other in live.rules.values():
            if other.rules.is_same(found.rules):
                return replace(found, rules=other.rules)
        self._weigh(live, found.rules.weight)
        return found

    def _weigh(self, live: LiveOrigin, more: int) -> None:
        """Take note that `live` has grown; it may be held no longer."""
        live.weight += more
        if self.by_origin.get(live.entry.origin) is live:
            self._weight += more
            self._shrink()

    def verdict(self, live: LiveOrigin, match: Match) -> Verdict:
        """The answer that `match` gives, with what led to it."""
        found = ruling(live.entry, now=live.usable_from, policy=self._policy)
        return verdict(live.entry, found, match)

    def robots_txt(self, live: LiveOrigin) -> RobotsTxt:
        """The file of the copy, parsed anew.

        Not kept: most origins are asked about by one agent, whose rules are.
        """
        body = b"" if live.entry.copy is None else live.entry.copy.body
        return RobotsTxt.parse(
            body, dialect=self._dialect, max_bytes=self._policy.max_body_bytes
        )

    def _shrink(self) -> None:
        """Let go of what has not been used for long, but never of the newest.

        Who was used since its place came up last has a second chance. That is
        nearly "the one used longest ago", for one mark on each use: to move it to
        the end each time would touch its neighbours as well.
        """
        while len(self.by_origin) > self._max_origins or (
            self._weight > self._max_weight and len(self.by_origin) > 1
        ):
            origin, live = self.by_origin.popitem(last=False)
            if live.is_used:
                live.is_used = False
                self.by_origin[origin] = live
            else:
                self._weight -= live.weight


def _weight_of_copy(entry: Entry) -> int:
    return 0 if entry.copy is None else len(entry.copy.packed)
