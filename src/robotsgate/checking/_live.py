"""Origins held ready to be asked: their entries, with the rules already parsed.

No network and no clock: the time is an argument.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from robotsgate.caching._plan import Plan, plan
from robotsgate.caching._ruling import Effect, Ruling, ruling, verdict
from robotsgate.robotstxt._matcher import RuleLines, RuleSet
from robotsgate.robotstxt._product_token import product_tokens
from robotsgate.robotstxt._robots_txt import (
    MAX_KNOWN_AGENTS,
    AgentRules,
    RobotsTxt,
)

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._policy import Policy
    from robotsgate.caching._verdict import Verdict
    from robotsgate.robotstxt._dialect import Dialect
    from robotsgate.robotstxt._model import Match
    from robotsgate.robotstxt._product_token import ProductToken

AgentName = str | tuple[str, ...]


class Agent(NamedTuple):
    """An agent as a caller names it.

    Attributes:
        name: what its rules are remembered by.
        tokens: its product tokens, most specific first.
        names: its name alone.
    """

    name: AgentName
    tokens: tuple[ProductToken, ...]
    names: tuple[AgentName]

    @classmethod
    def of(cls, name: AgentName) -> Agent:
        """The agent of this name.

        Raises:
            InvalidProductTokenError: there is no product token in `name`.
        """
        return cls(name, product_tokens(name), (name,))


# What all live origins together may hold, for each that there may be. The rules
# and the packed copy of an average robots.txt take 8 KiB, all built; those of a
# hostile one, a thousand times as much.
_BYTES_PER_ORIGIN = 32 * 1024

# Where all were used, this many are looked at for a place, and no more: a millisecond.
_MOST_CHANCES = 1_000

# A `LiveRules` with its place in the dictionaries, measured on CPython 3.11.
_BYTES_OF_AN_AGENT = 250

_EVERYTHING = RuleLines(["/"], [0], ["/"])
_FULL_ALLOW = AgentRules(group=None, rules=RuleSet())
_FULL_DISALLOW = AgentRules(group=None, rules=RuleSet(_EVERYTHING))
_REFUSAL = AgentRules(group=None, rules=RuleSet(_EVERYTHING))


def implies_robots_txt(rules: RuleSet) -> bool:
    """Whether /robots.txt is allowed although `rules` do not say so.

    RFC 9309 §2.2.2; but not where the address guard refused its origin.
    """
    return rules is not _REFUSAL.rules


_WITHOUT_RULES = {
    Effect.ALLOW: _FULL_ALLOW,
    Effect.DISALLOW: _FULL_DISALLOW,
    Effect.REFUSE: _REFUSAL,
}


class LiveOrigin:
    """One origin as it stands now.

    Attributes:
        entry: what is known about it.
        effect: what that means, from `usable_from` until `usable_until`.
        usable_from: epoch seconds.
        usable_until: epoch seconds; from then on the entry must be looked at again.
        agents: who was asked about.
        weight: about how many bytes the copy and the rules take.
        is_used: whether it was asked about since it was last looked at for a
            place; its `LiveRules` have marks of their own.
    """

    __slots__ = (
        "agents",
        "effect",
        "entry",
        "is_used",
        "usable_from",
        "usable_until",
        "weight",
    )

    def __init__(self, entry: Entry, found: Ruling, *, now: float) -> None:
        """Hold `entry`, which means `found` at `now`."""
        self.entry = entry
        self.effect = found.effect
        self.usable_from = now
        self.usable_until = found.until
        self.agents: tuple[AgentName, ...] = ()
        self.weight = self.weight_of_copy
        self.is_used = False

    @property
    def weight_of_copy(self) -> int:
        """About how many bytes the copy takes."""
        return 0 if self.entry.copy is None else len(self.entry.copy.packed)

    @property
    def body(self) -> bytes:
        """The copy that is in force, unpacked; empty where none is."""
        copy = self.entry.copy
        return b"" if copy is None or self.effect is not Effect.RULES else copy.body

    def is_usable(self, now: float) -> bool:
        """Whether the ruling stands at `now`."""
        return self.usable_from <= now < self.usable_until


class LiveRules:
    """What is in force for one agent at one origin: all that a quick answer needs.

    Few objects, because each is a cache miss where origins come in no order.

    Attributes:
        usable_from: that of the origin, epoch seconds.
        usable_until: that of the origin, epoch seconds.
        is_used: whether it was asked since the origin was last looked at for a place.
        rules: those of `found`.
        found: what is in force.
    """

    __slots__ = ("found", "is_used", "rules", "usable_from", "usable_until")

    def __init__(self, live: LiveOrigin, found: AgentRules) -> None:
        """Hold what was `found` for `live`."""
        self.usable_from = live.usable_from
        self.usable_until = live.usable_until
        self.is_used = False
        self.rules = found.rules
        self.found = found


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
        self.by_origin: OrderedDict[str, LiveOrigin] = OrderedDict()
        """By the key of the origin, in the order in which their places come up."""
        self.by_agent: dict[AgentName, dict[str, LiveRules]] = {}
        """For each agent that was asked about, what is in force at each origin."""

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
        live = LiveOrigin(entry, ruling(entry, now=now, policy=self._policy), now=now)
        self.by_origin[entry.origin] = live
        self._weight += live.weight
        self._shrink(live)
        return live

    def discard(self, origin: str) -> None:
        """Hold the origin no longer."""
        live = self.by_origin.pop(origin, None)
        if live is not None:
            self._let_go(live)

    def clear(self) -> None:
        """Hold nothing any more."""
        for origin in list(self.by_origin):
            self.discard(origin)

    def known_rules(self, live: LiveOrigin, agent: Agent) -> AgentRules | None:
        """What is in force for `agent`; `None` where the copy must be read first."""
        if agent.name in live.agents:
            return self.by_agent[agent.name][live.entry.origin].found
        if live.effect is Effect.RULES:
            return None
        return self.hold(live, agent, _WITHOUT_RULES[live.effect])

    def read_rules(self, live: LiveOrigin, agent: Agent, body: bytes) -> AgentRules:
        """What `body`, the copy of `live`, holds for `agent`; held from now on."""
        return self.hold(live, agent, self.robots_txt(body).rules_for(agent.tokens))

    def hold(self, live: LiveOrigin, agent: Agent, found: AgentRules) -> AgentRules:
        """Hold what was found in the copy of `live`, sharing what others hold."""
        if len(live.agents) >= MAX_KNOWN_AGENTS:
            self._drop_agents(live)
        for name in live.agents:
            other = self.by_agent[name][live.entry.origin].found
            if other.rules.is_same(found.rules):
                return self._held(live, agent, replace(found, rules=other.rules))
        return self._held(live, agent, found, weight=found.rules.weight)

    def verdict(self, live: LiveOrigin, match: Match) -> Verdict:
        """The answer that `match` gives, with what led to it."""
        found = ruling(live.entry, now=live.usable_from, policy=self._policy)
        return verdict(live.entry, found, match)

    def robots_txt(self, body: bytes) -> RobotsTxt:
        """A copy, parsed.

        Not kept: most origins are asked about by one agent, whose rules are.
        """
        return RobotsTxt.parse(
            body, dialect=self._dialect, max_bytes=self._policy.max_body_bytes
        )

    def _held(
        self, live: LiveOrigin, agent: Agent, found: AgentRules, *, weight: int = 0
    ) -> AgentRules:
        """`found`, held for quick answers if `live` is."""
        origin = live.entry.origin
        if self.by_origin.get(origin) is not live or agent.name in live.agents:
            return found
        # Most origins know one agent, and share the tuple of it.
        live.agents = (*live.agents, agent.name) if live.agents else agent.names
        self.by_agent.setdefault(agent.name, {})[origin] = LiveRules(live, found)
        more = weight + _BYTES_OF_AN_AGENT
        live.weight += more
        self._weight += more
        self._shrink(live)
        return found

    def _let_go(self, live: LiveOrigin) -> None:
        self._drop_agents(live)
        self._weight -= live.weight

    def _drop_agents(self, live: LiveOrigin) -> None:
        for name in live.agents:
            rules = self.by_agent[name]
            del rules[live.entry.origin]
            if not rules:
                del self.by_agent[name]
        live.agents = ()
        self._weight -= live.weight - live.weight_of_copy
        live.weight = live.weight_of_copy

    def _shrink(self, newest: LiveOrigin) -> None:
        """Let go of what has not been used for long, but never of the newest.

        Who was used since its place came up last has a second chance. That is
        nearly "the one used longest ago", for one mark on each use: to move it to
        the end each time would touch its neighbours as well.
        """
        chances = _MOST_CHANCES
        while len(self.by_origin) > self._max_origins or (
            self._weight > self._max_weight and len(self.by_origin) > 1
        ):
            origin, live = self.by_origin.popitem(last=False)
            if live is newest or (chances > 0 and self._was_used(live)):
                chances -= 1
                self.by_origin[origin] = live
            else:
                self._let_go(live)

    def _was_used(self, live: LiveOrigin) -> bool:
        """Whether it was asked about since this was asked last."""
        was_used = live.is_used
        live.is_used = False
        for name in live.agents:
            rules = self.by_agent[name][live.entry.origin]
            was_used |= rules.is_used
            rules.is_used = False
        return was_used
