"""Reads copies and asks rules, beside the event loop where that takes long.

Nearly all files are read, and nearly all questions answered, in microseconds, at
once. What a hostile file makes slow runs in a worker thread, one piece at a time:
the loop goes on meanwhile, sharing the processor with one thread and not with forty.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from robotsgate.caching._ruling import Effect
from robotsgate.checking._live import implies_robots_txt
from robotsgate.checking._single_flight import SingleFlight
from robotsgate.robotstxt._robots_txt import ROBOTS_TXT_PATH

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.checking._live import Agent, LiveOrigin, LiveOrigins
    from robotsgate.robotstxt._model import Match
    from robotsgate.robotstxt._robots_txt import AgentRules, RobotsTxt

_Result = TypeVar("_Result")

# 98 % of real files are smaller. The worst file of this size is read within 30 ms.
_MAX_BYTES_AT_ONCE = 65_536


class Reader:
    """Finds what is in force at live origins."""

    def __init__(self, live: LiveOrigins) -> None:
        """Read copies for `live`."""
        self._live = live
        self._readings: SingleFlight[AgentRules] = SingleFlight()
        self._one_at_a_time = anyio.CapacityLimiter(1)

    def rules_at_once(self, live: LiveOrigin, agent: Agent) -> AgentRules | None:
        """What is in force for `agent`; `None` where that takes long to find."""
        known = self._live.known_rules(live, agent)
        if known is not None:
            return known
        body = live.body
        if len(body) > _MAX_BYTES_AT_ONCE:
            return None
        return self._live.read_rules(live, agent, body)

    async def rules(self, live: LiveOrigin, agent: Agent) -> AgentRules:
        """What is in force for `agent`."""
        found = self.rules_at_once(live, agent)
        if found is None:
            key = (live, agent.name)
            found = await self._readings.run(key, partial(self._read, live, agent))
        return found

    async def _read(self, live: LiveOrigin, agent: Agent) -> AgentRules:
        robots_txt = await self._aside(self._live.robots_txt, live.body)
        found = await self._aside(robots_txt.rules_for, agent.tokens)
        return self._live.hold(live, agent, found)

    async def allows(self, found: AgentRules, target: str) -> bool:
        """Whether `target` may be fetched."""
        if target == ROBOTS_TXT_PATH:
            return implies_robots_txt(found.rules)
        answer = found.rules.allows_at_once(target)
        if answer is None:
            answer = await self._aside(found.rules.allows, target)
        return answer

    async def match(self, found: AgentRules, target: str) -> Match:
        """Which rule decides about `target`."""
        match = partial(found.match, target, is_robots_txt=target == ROBOTS_TXT_PATH)
        return (
            match() if found.rules.decides_quickly(target) else await self._aside(match)
        )

    async def part(
        self, live: LiveOrigin, part: Callable[[RobotsTxt], _Result]
    ) -> _Result | None:
        """`part` of the file in force; `None` where there is no file."""
        if live.effect is not Effect.RULES:
            return None
        body = live.body

        def read() -> _Result:
            return part(self._live.robots_txt(body))

        return read() if len(body) <= _MAX_BYTES_AT_ONCE else await self._aside(read)

    async def _aside(self, work: Callable[..., _Result], *arguments: object) -> _Result:
        return await anyio.to_thread.run_sync(
            work, *arguments, limiter=self._one_at_a_time
        )
