"""The origins in memory, with their rules parsed and ready for lookups.

No network and no clock: the time is an argument.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from robotsgate.caching._entry import OVERRIDE, Entry, unpack, unpack_within
from robotsgate.caching._verdict import Effect, Reason, explain, in_force
from robotsgate.robotstxt._matcher import ROBOTS_TXT_PATH, RuleLines, RuleSet
from robotsgate.robotstxt._robots_txt import MAX_KNOWN_AGENTS, AgentRules, RobotsTxt
from robotsgate.urls._url import Origin, shown_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from robotsgate.caching._entry import Packed
    from robotsgate.caching._policy import Policy
    from robotsgate.caching._question import Agent, AgentName, Question
    from robotsgate.caching._verdict import Verdict
    from robotsgate.robotstxt._dialect import Dialect

# 98% of real files are smaller. Parsing the worst file of this size takes 6 ms.
MAX_BYTES_AT_ONCE = 65_536

# The worst Content-Usage dictionaries take a microsecond per character.
_MAX_USAGE_CHARACTERS_AT_ONCE = 4_096

# Together, the origins in memory may take up this much times `max_origins`. The parsed
# rules and compressed body of an average robots.txt take up 8 KiB; those of a hostile
# one, a thousand times as much.
_BYTES_PER_ORIGIN = 32 * 1024

# At most this many origins get a second chance per eviction, which takes 1 ms.
_MOST_CHANCES = 1_000

# Measured on CPython 3.11: a `StandingFor` including its dictionary items, and a usage
# line excluding the characters of its value.
_BYTES_OF_AN_AGENT = 250
_BYTES_OF_A_USAGE_LINE = 160

_EVERYTHING = RuleLines(["/"], [0], ["/"])

RULES_WITHOUT_FILE = {
    Effect.ALLOW: AgentRules(group=None, rules=RuleSet()),
    Effect.DISALLOW: AgentRules(group=None, rules=RuleSet(_EVERYTHING)),
    Effect.REFUSE: AgentRules(group=None, rules=RuleSet(_EVERYTHING, implied=None)),
}
"""The rules for all agents if there is no file."""


class Standing:
    """The current in-memory state of an origin.

    Attributes:
        effect: what applies from `usable_from` until `usable_until`, in epoch seconds;
            then `in_force` must decide again.
        refusal: the reason if a URL is disallowed, as the value of a `Reason`, because
            values are counted three times as fast as members.
        agents: those that have been looked up.
        weight: the approximate size of the body and the rules, in bytes.
        is_used: whether the origin has been looked up since `LiveOrigins` last
            considered evicting it; each `StandingFor` has its own flag.
    """

    __slots__ = (
        "agents",
        "effect",
        "entry",
        "is_used",
        "refusal",
        "usable_from",
        "usable_until",
        "weight",
    )

    def __init__(self, entry: Entry, *, now: float, policy: Policy) -> None:
        """Decide what applies according to `entry`, which must be current at `now`."""
        decision = in_force(entry, now=now, policy=policy)
        self.entry: Entry = entry
        self.effect: Effect = decision.effect
        self.refusal: str = (decision.reason or Reason.DISALLOWED_BY_RULE).value
        self.usable_from: float = now
        self.usable_until: float = decision.until
        self.agents: tuple[AgentName, ...] = ()
        self.weight: int = len(entry.packed or b"")
        self.is_used: bool = False

    def is_usable(self, now: float) -> bool:
        return self.usable_from <= now < self.usable_until


class StandingFor:
    """What applies to one agent at one origin: everything a quick lookup needs.

    It refers to few objects, because each object costs a cache miss when lookups jump
    between origins. The fields are as in `Standing`; `rules` are those in
    `agent_rules`, which are the file's for the agent, or apply without a file.
    """

    __slots__ = (
        "agent_rules",
        "is_used",
        "refusal",
        "rules",
        "usable_from",
        "usable_until",
    )

    def __init__(self, standing: Standing, agent_rules: AgentRules) -> None:
        self.usable_from: float = standing.usable_from
        self.usable_until: float = standing.usable_until
        self.is_used: bool = False
        self.refusal: str = standing.refusal
        self.rules: RuleSet = agent_rules.rules
        self.agent_rules: AgentRules = agent_rules

    def allows_at_once(self, readings: Sequence[str]) -> bool | None:
        """Whether a target may be fetched in every one of its `readings`.

        `None` if the answer would take a long time to determine.
        """
        if len(readings) > 1 and not self.explains_at_once(readings):
            return None
        for target in readings:
            answer = self.rules.allows_at_once(target)
            if not answer:
                return answer
        return True

    def allows(self, readings: Iterable[str]) -> bool:
        """Like `allows_at_once`, but always decides, however long it takes."""
        return all(map(self.rules.allows, readings))

    def explain(
        self, standing: Standing, question: Question, *, policy: Policy
    ) -> Verdict:
        match = self.agent_rules.match(question.readings)
        was_in_force = in_force(standing.entry, now=self.usable_from, policy=policy)
        return explain(
            standing.entry,
            was_in_force,
            match,
            url=shown_url(question.url),
            agent=question.agent.name,
        )

    def refusal_of(self, readings: Sequence[str]) -> str:
        """Why a target with these `readings` is disallowed, for the log."""
        if self.agent_rules.group is None or not self.explains_at_once(readings):
            return self.refusal
        rule = self.agent_rules.match(readings).rule
        return f"{self.refusal}, {str(rule)!r} on line {rule and rule.line}"

    def explains_at_once(self, readings: Iterable[str]) -> bool:
        """Whether `explain` takes at most a few milliseconds."""
        return sum(map(len, readings)) <= self.rules.quick_length

    def tells_usage_at_once(self, readings: Iterable[str]) -> bool:
        """Whether usage preferences take at most a few milliseconds to determine."""
        values = (value for _, value, _ in self.agent_rules.usage_lines)
        is_quick = sum(map(len, values)) <= _MAX_USAGE_CHARACTERS_AT_ONCE
        return is_quick and self.explains_at_once(readings)


class LiveOrigins:
    """The origins looked up most recently, limited in number and total size."""

    def __init__(
        self,
        *,
        max_origins: int,
        policy: Policy,
        dialect: Dialect,
        overrides: Mapping[str, RobotsTxt | bytes | str] | None = None,
        current_until: Callable[[Entry, float], float] = Entry.current_until,
    ) -> None:
        """Start empty. `current_until` says until when an entry needs no fetch."""
        self.overrides: dict[str, RobotsTxt] = _files_by_origin(
            overrides, dialect=dialect, max_bytes=policy.max_body_bytes
        )
        self.max_origins = max_origins
        self._max_weight = max_origins * _BYTES_PER_ORIGIN
        self._weight = 0
        self._policy = policy
        self._dialect = dialect
        self._current_until = current_until
        self.by_origin: OrderedDict[str, Standing] = OrderedDict()
        """Keyed by origin; the first one is the next to be evicted."""
        self.by_agent: dict[AgentName, dict[str, StandingFor]] = {}
        """The rules that apply, by agent and origin."""

    def current(self, origin: str, now: float) -> Standing | None:
        """The origin if it can be looked up in memory at `now`, otherwise `None`."""
        standing = self.by_origin.get(origin)
        if standing is None and origin in self.overrides:
            return self.admit(Entry(origin=origin, answer=OVERRIDE), now)
        if standing is None or now >= self._current_until(standing.entry, now):
            return None
        standing.is_used = True
        if standing.is_usable(now):
            return standing
        return self.admit(standing.entry, now)

    def admit(self, entry: Entry, now: float) -> Standing:
        """Add `entry`, which is current at `now`; this may evict other origins."""
        self.discard(entry.origin)
        standing = Standing(entry, now=now, policy=self._policy)
        until = self._current_until(entry, now)
        standing.usable_until = min(standing.usable_until, until)
        self.by_origin[entry.origin] = standing
        self._weight += standing.weight
        self._shrink(standing)
        return standing

    def discard(self, origin: str) -> None:
        standing = self.by_origin.pop(origin, None)
        if standing is not None:
            self._let_go(standing)

    def clear(self) -> None:
        self.overrides.clear()
        for origin in list(self.by_origin):
            self.discard(origin)

    def standing_for(self, standing: Standing, agent: Agent) -> StandingFor | None:
        """The standing for `agent`; `None` if the file must be parsed first."""
        if agent.name in standing.agents:
            return self.by_agent[agent.name][standing.entry.origin]
        if standing.effect is Effect.RULES:
            return None
        return self._hold(standing, agent, RULES_WITHOUT_FILE[standing.effect])

    def hold(
        self, standing: Standing, agent: Agent, agent_rules: AgentRules
    ) -> StandingFor:
        """Add the rules for `agent` from `standing`, sharing equal rules."""
        if agent_rules.rules.implied is None:  # in `Dialect.GOOGLE`
            rules = copy(agent_rules.rules)
            rules.implied = ROBOTS_TXT_PATH
            agent_rules = replace(agent_rules, rules=rules)
        if len(standing.agents) >= MAX_KNOWN_AGENTS:
            self._drop_agents(standing)
        weight = sum(
            _BYTES_OF_A_USAGE_LINE + len(value)
            for _, value, _ in agent_rules.usage_lines
        )
        for name in standing.agents:
            other = self.by_agent[name][standing.entry.origin]
            if other.rules.is_same(agent_rules.rules):
                shared = replace(agent_rules, rules=other.rules)
                return self._hold(standing, agent, shared, weight=weight)
        weight += agent_rules.rules.weight
        return self._hold(standing, agent, agent_rules, weight=weight)

    def rules_for(
        self, standing: Standing, agents: Iterable[Agent]
    ) -> list[StandingFor]:
        """The standing for each of `agents`; parses the file at most once."""
        file: RobotsTxt | None = None
        every = []
        for agent in agents:
            rules = self.standing_for(standing, agent)
            if rules is None:
                if file is None:
                    file = self.robots_txt(standing)
                agent_rules = file.rules_for(agent.tokens)
                rules = self.hold(standing, agent, agent_rules)
            every.append(rules)
        return every

    def robots_txt(self, standing: Standing) -> RobotsTxt:
        """The parsed file for `standing`, whose rules apply.

        The parsed file is not cached, because most origins are looked up for only one
        agent, whose rules are cached.
        """
        override = self.overrides.get(standing.entry.origin)
        if override is not None:
            return override
        return self._parsed(unpack(cast("Packed", standing.entry.packed)))

    def robots_txt_at_once(self, standing: Standing) -> RobotsTxt | None:
        """Like `robots_txt`, but `None` if parsing it may be slow, as it is large."""
        override = self.overrides.get(standing.entry.origin)
        if override is not None:
            return override
        body = unpack_within(cast("Packed", standing.entry.packed), MAX_BYTES_AT_ONCE)
        return None if body is None else self._parsed(body)

    def _parsed(self, body: bytes) -> RobotsTxt:
        max_bytes = self._policy.max_body_bytes
        return RobotsTxt.parse(body, dialect=self._dialect, max_bytes=max_bytes)

    def _hold(
        self,
        standing: Standing,
        agent: Agent,
        agent_rules: AgentRules,
        *,
        weight: int = 0,
    ) -> StandingFor:
        """The standing for `agent`, cached if `standing` is in memory."""
        origin = standing.entry.origin
        standing_for = StandingFor(standing, agent_rules)
        if self.by_origin.get(origin) is not standing or agent.name in standing.agents:
            return standing_for
        # Most origins have only one agent, and share its tuple.
        known = standing.agents
        standing.agents = (*known, agent.name) if known else agent.names
        self.by_agent.setdefault(agent.name, {})[origin] = standing_for
        more = weight + _BYTES_OF_AN_AGENT
        standing.weight += more
        self._weight += more
        self._shrink(standing)
        return standing_for

    def _let_go(self, standing: Standing) -> None:
        self._drop_agents(standing)
        self._weight -= standing.weight

    def _drop_agents(self, standing: Standing) -> None:
        for name in standing.agents:
            by_origin = self.by_agent[name]
            del by_origin[standing.entry.origin]
            if not by_origin:
                del self.by_agent[name]
        standing.agents = ()
        of_body = len(standing.entry.packed or b"")
        self._weight -= standing.weight - of_body
        standing.weight = of_body

    def _shrink(self, newest: Standing) -> None:
        """Evict origins that have not been used recently, but never the newest.

        An origin that has been used since `_shrink` last considered it gets a second
        chance. So the evicted origin is almost always the least recently used one,
        although a use only sets a flag: moving the origin to the end would touch its
        neighbours as well.
        """
        chances = _MOST_CHANCES
        while len(self.by_origin) > self.max_origins or (
            self._weight > self._max_weight and len(self.by_origin) > 1
        ):
            origin, standing = self.by_origin.popitem(last=False)
            if standing is newest or (chances > 0 and self._was_used(standing)):
                chances -= 1
                self.by_origin[origin] = standing
            else:
                self._let_go(standing)

    def _was_used(self, standing: Standing) -> bool:
        """Whether `standing` was looked up since the last call; clears the flag."""
        was_used = standing.is_used
        standing.is_used = False
        for name in standing.agents:
            standing_for = self.by_agent[name][standing.entry.origin]
            was_used |= standing_for.is_used
            standing_for.is_used = False
        return was_used


def _files_by_origin(
    overrides: object, *, dialect: Dialect, max_bytes: int
) -> dict[str, RobotsTxt]:
    """The parsed files in `overrides`, which is keyed by a URL on their origin.

    `max_bytes` of a file are read, unless it is already parsed.
    """
    if not isinstance(overrides, Mapping | None):
        raise TypeError(f"expected overrides to be a mapping, got {overrides!r}")
    files: dict[str, RobotsTxt] = {}
    for url, file in (overrides or {}).items():
        origin = str(Origin.from_url(url))
        if origin in files:
            raise ValueError(f"expected a single override for {origin!r}, got two")
        if isinstance(file, bytes | str):
            files[origin] = RobotsTxt.parse(file, dialect=dialect, max_bytes=max_bytes)
        elif not isinstance(file, RobotsTxt):
            raise TypeError(
                f"expected the override for {origin!r} to be a RobotsTxt, bytes or str,"
                f" got {file!r}"
            )
        elif file.dialect is not dialect:
            raise ValueError(
                f"expected {dialect} for the override of {origin!r}, got {file.dialect}"
            )
        else:
            files[origin] = file
    return files
