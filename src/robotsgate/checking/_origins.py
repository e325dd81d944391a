"""Tells how an origin stands, and what is in force there for one agent.

Files are read when they are needed. Nearly all files are read, and nearly all questions
answered, at once. A worker thread does what a hostile file makes slow.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.to_thread

from robotsgate.caching._in_force import Effect
from robotsgate.checking._flights import Flights

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate._clock import Clock
    from robotsgate.caching._policy import Policy
    from robotsgate.caching._verdict import Verdict
    from robotsgate.checking._live import LiveOrigins
    from robotsgate.checking._question import Agent, Question
    from robotsgate.checking._renewal import Renewals
    from robotsgate.checking._reporter import Reporter
    from robotsgate.checking._standing import Standing, StandingFor
    from robotsgate.robotstxt._agent_rules import AgentRules
    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._headers import HeadersLike
    from robotsgate.robotstxt._model import UsagePreferences
    from robotsgate.robotstxt._robots_txt import RobotsTxt
    from robotsgate.urls._origin import Origin

_Result = TypeVar("_Result")


class Origins:
    """The origins of one checker: those in memory, and the way to renew them.

    Attributes:
        live: those in memory.
        renewals: bring those that are not in memory.
        reporter: is told of each answer.
        policy: what entries mean.
        clock: tells the time.
        sources: the sources of URLs that are being read ahead.
    """

    def __init__(
        self,
        live: LiveOrigins,
        renewals: Renewals,
        reporter: Reporter,
        *,
        policy: Policy,
        clock: Clock,
    ) -> None:
        """Read the files of `live`.

        Args:
            live: those in memory.
            renewals: bring those that are not in memory.
            reporter: is told of each answer.
            policy: what entries mean.
            clock: tells the time.
        """
        self.policy = policy
        self.live = live
        self.renewals = renewals
        self.reporter = reporter
        self.clock = clock
        self._readings: Flights[StandingFor] = Flights()
        self.sources: Flights[bool] = Flights()
        self._one_at_a_time = anyio.CapacityLimiter(1)

    async def aclose(self) -> None:
        """End what is under way; may be called more than once.

        A caller that is cancelled does not wait, but everything is closed.
        """
        parts = (self.sources, self.renewals.flights, self._readings)
        for part in parts:
            part.close()
        for part in parts:
            await part.aclose()

    async def standing(self, origin: Origin) -> Standing:
        """How `origin` stands now, renewed if need be.

        Raises:
            RuntimeError: the checker is closed.
            UnsupportedError: the scheme is ftp, and there is a client.
        """
        self.check_usable(origin)
        standing = self.live.current(str(origin), self.clock.now())
        return await self.renewals.renew(origin) if standing is None else standing

    async def refresh(self, origin: Origin) -> None:
        """Fetch `origin` however fresh it is, unless it has an override.

        Raises:
            RuntimeError: the checker is closed.
            UnsupportedError: the scheme is ftp, and there is a client.
        """
        self.check_usable(origin)
        if str(origin) not in self.live.overrides:
            standing = await self.renewals.fetch(origin)
            standing.forget_body()  # nobody may ask soon

    def get_ready(self, origin: Origin) -> None:
        """Begin to renew `origin` if need be; do not wait for it.

        Raises:
            RuntimeError: the checker is closed.
            UnsupportedError: the scheme is ftp, and there is a client.
        """
        self.check_usable(origin)
        if self.live.current(str(origin), self.clock.now()) is None:
            self.renewals.begin(origin)

    def standing_for_at_once(
        self, standing: Standing, agent: Agent
    ) -> StandingFor | None:
        """What is in force for `agent`; `None` if a large file must be read."""
        standing_for = self.live.standing_for(standing, agent)
        if standing_for is not None:
            return standing_for
        body = standing.body_at_once
        if body is None:
            return None
        return self.live.hold(standing, agent, self._read(standing, body, agent))

    async def standing_for(self, standing: Standing, agent: Agent) -> StandingFor:
        """What is in force for `agent`."""
        standing_for = self.standing_for_at_once(standing, agent)
        if standing_for is not None:
            return standing_for

        async def read() -> StandingFor:
            agent_rules = await self.beside_loop(
                lambda: self._read(standing, standing.body, agent)
            )
            return self.live.hold(standing, agent, agent_rules)

        return await self._readings.result_of((standing, agent.name), read)

    async def rules_for(self, agent: Agent, origin: Origin) -> StandingFor:
        """What is in force for `agent` at `origin` now.

        Raises:
            RuntimeError: the checker is closed.
            UnsupportedError: the scheme is ftp, and there is a client.
        """
        return await self.standing_for(await self.standing(origin), agent)

    def peek(self, question: Question) -> bool | None:
        """The answer, if memory has all that it needs and finding it is quick."""
        standing = self.live.current(str(question.origin), self.clock.now())
        if standing is None:
            return None
        rules = self.standing_for_at_once(standing, question.agent)
        if rules is None:
            return None
        answer = rules.allows_at_once(question.target)
        if answer is not None:
            self.reporter.report_answer(question, rules, allowed=answer)
        return answer

    async def allows(self, rules: StandingFor, question: Question) -> bool:
        """The answer to `question`, for whose agent `rules` are in force."""
        answer = rules.allows_at_once(question.target)
        if answer is None:
            answer = await self.beside_loop(partial(rules.allows, question.target))
        self.reporter.report_answer(question, rules, allowed=answer)
        return answer

    async def verdict(self, question: Question, *, is_counted: bool = False) -> Verdict:
        """The answer with all that led to it; counted as by `explain`."""
        standing = await self.standing(question.origin)
        rules = await self.standing_for(standing, question.agent)
        return await self.explain(standing, rules, question, is_counted=is_counted)

    async def usage_preferences(
        self, question: Question, grammar: Grammar, headers: HeadersLike | None
    ) -> UsagePreferences:
        """What the target of `question` may be used for.

        Raises:
            TypeError: `headers` does not hold pairs of text.
        """
        rules = await self.rules_for(question.agent, question.origin)
        target = question.target
        work = partial(rules.usage_preferences, target, grammar, headers)
        if rules.tells_usage_at_once(target):
            return work()
        return await self.beside_loop(work)

    async def explain(
        self,
        standing: Standing,
        rules: StandingFor,
        question: Question,
        *,
        is_counted: bool,
    ) -> Verdict:
        """The answer to `question` by `rules`, with all that led to it.

        Counts it, unless it is a refusal that a quick answer has counted.
        """
        explain = partial(rules.explain, standing, question, policy=self.policy)
        is_quick = rules.explains_at_once(question.target)
        verdict = explain() if is_quick else await self.beside_loop(explain)
        if verdict.allowed or not is_counted:
            self.reporter.report_answer(question, rules, allowed=verdict.allowed)
        return verdict

    async def part(
        self, origin: Origin, part: Callable[[RobotsTxt], _Result]
    ) -> _Result | None:
        """`part` of the file in force; `None` if no file is in force."""
        standing = await self.standing(origin)
        if standing.effect is not Effect.RULES:
            return None
        body = standing.body_at_once
        standing.forget_body()

        def read(body: bytes) -> _Result:
            return part(self.live.robots_txt(standing, body))

        if body is not None:
            return read(body)
        return await self.beside_loop(lambda: read(standing.body))

    async def beside_loop(self, work: Callable[[], _Result]) -> _Result:
        """The result of `work`, which takes long, from a worker thread.

        Only one runs at a time, so that the loop shares the processor with one thread.
        """
        return await anyio.to_thread.run_sync(work, limiter=self._one_at_a_time)

    def _read(self, standing: Standing, body: bytes, agent: Agent) -> AgentRules:
        robots_txt = self.live.robots_txt(standing, body)
        return robots_txt.rules_for(agent.tokens)

    def check_usable(self, origin: Origin) -> None:
        """Refuse an origin that cannot be fetched, and all once the checker is closed.

        Raises:
            RuntimeError: the checker is closed.
            UnsupportedError: the scheme is ftp, and there is a client.
        """
        self.renewals.flights.check_open()
        if str(origin) not in self.live.overrides:
            self.renewals.fetcher.check_scheme(origin)
