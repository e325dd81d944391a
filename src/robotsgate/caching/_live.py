"""The origins in memory, with their rules parsed and ready for lookups.

No network and no clock: the time is an argument.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

from robotsgate.caching._entry import OVERRIDE, Entry
from robotsgate.caching._in_force import Effect
from robotsgate.caching._standing import RULES_WITHOUT_FILE, Standing, StandingFor
from robotsgate.robotstxt._matcher import ROBOTS_TXT_PATH
from robotsgate.robotstxt._robots_txt import MAX_KNOWN_AGENTS, RobotsTxt
from robotsgate.urls._url import Origin

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.caching._policy import Policy
    from robotsgate.caching._question import Agent, AgentName
    from robotsgate.robotstxt._dialect import Dialect
    from robotsgate.robotstxt._robots_txt import AgentRules

# Together, the origins in memory may take up this much times `max_origins`. The parsed
# rules and compressed body of an average robots.txt take up 8 KiB; those of a hostile
# one, a thousand times as much.
_BYTES_PER_ORIGIN = 32 * 1024

# If all were used, only this many get a second chance, which takes 1 ms.
_MOST_CHANCES = 1_000

# Measured on CPython 3.11: a `StandingFor` including its dictionary items, and a usage
# line excluding the characters of its value.
_BYTES_OF_AN_AGENT = 250
_BYTES_OF_A_USAGE_LINE = 160


class LiveOrigins:
    """The origins looked up most recently, limited in number and total size.

    Attributes:
        max_origins: the maximum number of origins.
        overrides: robots.txt files supplied by the caller, keyed by origin.
    """

    def __init__(
        self,
        *,
        max_origins: int,
        policy: Policy,
        dialect: Dialect,
        overrides: Mapping[str, RobotsTxt | bytes | str] | None = None,
        current_until: Callable[[Entry, float], float] = Entry.current_until,
    ) -> None:
        """Start empty. Raises the same errors as `_files_by_origin`.

        `current_until` says until when an entry can be used without a fetch.
        """
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

    def admit(
        self, entry: Entry, now: float, *, new_body: bytes | None = None
    ) -> Standing:
        """Add `entry`; this may evict origins that have not been used recently.

        Args:
            entry: current at `now`.
            now: epoch seconds.
            new_body: the entry's body, if it has just been fetched.
        """
        self.discard(entry.origin)
        standing = Standing(entry, now=now, policy=self._policy, new_body=new_body)
        until = self._current_until(entry, now)
        standing.usable_until = min(standing.usable_until, until)
        self.by_origin[entry.origin] = standing
        self._weight += standing.weight
        self._shrink(standing)
        return standing

    def discard(self, origin: str) -> None:
        """Remove the origin."""
        standing = self.by_origin.pop(origin, None)
        if standing is not None:
            self._let_go(standing)

    def clear(self) -> None:
        """Remove everything."""
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
        standing.forget_body()
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

    def robots_txt(self, standing: Standing, body: bytes) -> RobotsTxt:
        """The parsed file for `standing`: its override or `body`.

        The parsed file is not cached, because most origins are looked up for only one
        agent, whose rules are cached.
        """
        override = self.overrides.get(standing.entry.origin)
        if override is not None:
            return override
        return RobotsTxt.parse(
            body, dialect=self._dialect, max_bytes=self._policy.max_body_bytes
        )

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
        self._weight -= standing.weight - standing.weight_of_body
        standing.weight = standing.weight_of_body

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
    """The parsed files in `overrides`, keyed by origin.

    Args:
        overrides: files keyed by a URL on their origin; `None` if there are none.
        dialect: the checker's dialect.
        max_bytes: how many bytes of a file are read, unless it is already parsed.

    Raises:
        TypeError: `overrides` is not a mapping, or a file is not a RobotsTxt, bytes or
            str.
        ValueError: a key has no origin or the same origin as another key, or a
            RobotsTxt uses another dialect.
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
