"""Lookups for one agent: from memory, or after a renewal.

Almost all parsing and lookups run without a worker thread; only the slow work caused by
hostile files needs one.
"""

from __future__ import annotations

from functools import partial
from logging import DEBUG
from typing import TYPE_CHECKING, TypeVar

import anyio

from robotsgate._flights import Flights, in_thread
from robotsgate.caching._question import Question
from robotsgate.caching._verdict import Effect
from robotsgate.checking._reporting import LOGGER
from robotsgate.robotstxt._dialect import UNLESS_PLAIN_CHANGED
from robotsgate.urls._url import has_readings, target_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from robotsgate._clock import Clock
    from robotsgate.caching._live import LiveOrigins, Standing, StandingFor
    from robotsgate.caching._policy import Policy
    from robotsgate.caching._question import Agent
    from robotsgate.caching._verdict import Verdict
    from robotsgate.checking._renewal import Renewals
    from robotsgate.checking._reporting import Reporter
    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._headers import HeadersLike
    from robotsgate.robotstxt._robots_txt import AgentRules, RobotsTxt
    from robotsgate.robotstxt._usage_preferences import UsagePreferences
    from robotsgate.urls._url import Origin, URLLike

_Result = TypeVar("_Result")


class Answers:
    """One checker's lookups; each is counted by the method that finds its result.

    Attributes:
        clock: provides the current time.
        grammar: normalizes targets.
    """

    def __init__(
        self,
        live: LiveOrigins,
        renewals: Renewals,
        reporter: Reporter,
        *,
        policy: Policy,
        clock: Clock,
        grammar: Grammar,
    ) -> None:
        self.clock = clock
        self.grammar = grammar
        self._live = live
        self._renewals = renewals
        self._reporter = reporter
        self._policy = policy
        self._by_agent = live.by_agent
        self._now = clock.now
        self._readings: Flights[StandingFor] = Flights(others=renewals.flights)
        self._one_at_a_time = anyio.CapacityLimiter(1)

    def close(self) -> None:
        """Cancel any parsing in progress, without waiting for it to stop."""
        self._readings.close()

    async def aclose(self) -> None:
        """Cancel any parsing in progress. Can be called more than once."""
        await self._readings.aclose()

    def at_once(self, agent: str | Sequence[str], url: str | URLLike) -> bool | None:
        """The result of two dictionary lookups, which are enough for most URLs.

        Takes about a microsecond and can be called from any thread. `None` if the
        result is unknown: the agent is not a str; the URL does not start with its
        origin's key, or has several readings; the agent or origin is not in memory, or
        is past its `usable_until`; or the lookup would take too long.
        """
        try:
            slash = url.index("/", 8)  # type: ignore[union-attr]  # EAFP: not a str
            rules = self._by_agent[agent][url[:slash]]  # type: ignore[index]  # a list
            target: str = url[slash:]  # type: ignore[index]
            octets = target.encode()
        except (KeyError, ValueError, TypeError, AttributeError):
            return None
        if not rules.usable_from <= self._now() < rules.usable_until:
            return None
        # Like `is_plain`, but inlined, because the call would take 5 % of the time.
        if "/." in target or octets.translate(UNLESS_PLAIN_CHANGED) != octets:
            target = target_of(target)
            if has_readings(target):
                return None
            several = self.grammar.readings_of(target)
            if len(several) > 1:
                return None
            target = several[0]
        rules.is_used = True
        answer = rules.rules.allows_at_once(target)
        if not answer:
            if answer is None or LOGGER.isEnabledFor(DEBUG):
                return None  # the slower path decides and logs
            self._reporter.disallowed[rules.refusal] += 1
            return False
        self._reporter.allowed += 1
        return True

    def from_memory(self, question: Question) -> bool | None:
        """The result if it can be found quickly in memory, otherwise `None`."""
        standing = self._live.current(question.origin.key, self._now())
        if standing is None:
            return None
        rules = self._rules_at_once(standing, question.agent)
        if rules is None:
            return None
        answer = rules.allows_at_once(question.readings)
        if answer is not None:
            self._reporter.report_answer(question, rules, allowed=answer)
        return answer

    def in_memory(
        self, agent: Agent, origin: str
    ) -> tuple[Standing | None, StandingFor | None]:
        """The state of the origin with this key, and the rules for `agent`.

        Either is `None` if it is not in memory, and either may be out of date.
        """
        rules = self._by_agent.get(agent.name, {}).get(origin)
        return self._live.by_origin.get(origin), rules

    async def rules_for(self, agent: Agent, origin: Origin) -> StandingFor:
        """The rules for `agent` at `origin`, renewed if necessary.

        Raises:
            RuntimeError: the checker is closed.
            UnsupportedError: the scheme is ftp, and the checker has a client.
        """
        return await self.rules_at(await self._renewals.standing(origin), agent)

    async def rules_at(self, standing: Standing, agent: Agent) -> StandingFor:
        """The rules for `agent` at the origin that `standing` describes."""
        rules = self._rules_at_once(standing, agent)
        if rules is not None:
            return rules

        async def read() -> StandingFor:
            agent_rules = await self._beside_loop(
                lambda: self._read(standing, standing.body, agent)
            )
            return self._live.hold(standing, agent, agent_rules)

        return await self._readings.result_of((standing, agent.name), read)

    async def allows(self, rules: StandingFor, question: Question) -> bool:
        """Whether `rules`, which apply to the agent, allow the URL in `question`."""
        answer = rules.allows_at_once(question.readings)
        if answer is None:
            answer = await self._beside_loop(partial(rules.allows, question.readings))
        self._reporter.report_answer(question, rules, allowed=answer)
        return answer

    async def verdict(
        self, question: Question, *, standing: Standing | None = None
    ) -> Verdict:
        """The full verdict for `question`.

        Args:
            question: the lookup.
            standing: the origin's state; `None` to renew the origin if necessary.
        """
        verdict, rules = await self._explain(question, standing)
        self._reporter.report_answer(question, rules, allowed=verdict.allowed)
        return verdict

    async def explanation(
        self, question: Question, *, standing: Standing | None = None
    ) -> Verdict:
        """Like `verdict`, but for a result that has already been found and counted."""
        verdict, _ = await self._explain(question, standing)
        return verdict

    async def refusal(
        self, agent: str | Sequence[str], url: str | URLLike, *, answer: bool | None
    ) -> Verdict | None:
        """The verdict if `url` is disallowed, given the `answer` from `at_once`."""
        if answer:
            return None
        question = Question.of(agent, url, self.grammar)
        explain = self.verdict if answer is None else self.explanation
        verdict = await explain(question)
        return None if verdict else verdict

    async def usage_preferences(
        self, question: Question, headers: HeadersLike | None
    ) -> UsagePreferences:
        """The preferences for how the target of `question` may be used.

        Raises:
            TypeError: `headers` does not consist of pairs of str.
        """
        rules = await self.rules_for(question.agent, question.origin)
        readings = question.readings
        work = partial(rules.usage_preferences, readings, self.grammar, headers)
        if rules.tells_usage_at_once(readings):
            return work()
        return await self._beside_loop(work)

    async def part(
        self, origin: Origin, part: Callable[[RobotsTxt], _Result]
    ) -> _Result | None:
        """The result of `part` for the file; `None` if there is no file."""
        standing = await self._renewals.standing(origin)
        if standing.effect is not Effect.RULES:
            return None
        body = standing.body_at_once
        standing.forget_body()

        def read(body: bytes) -> _Result:
            return part(self._live.robots_txt(standing, body))

        if body is not None:
            return read(body)
        return await self._beside_loop(lambda: read(standing.body))

    async def _explain(
        self, question: Question, standing: Standing | None
    ) -> tuple[Verdict, StandingFor]:
        if standing is None:
            standing = await self._renewals.standing(question.origin)
        rules = await self.rules_at(standing, question.agent)
        explain = partial(rules.explain, standing, question, policy=self._policy)
        is_quick = rules.explains_at_once(question.readings)
        verdict = explain() if is_quick else await self._beside_loop(explain)
        return verdict, rules

    def _rules_at_once(self, standing: Standing, agent: Agent) -> StandingFor | None:
        """The rules for `agent`; `None` if a large file must be parsed first."""
        rules = self._live.standing_for(standing, agent)
        if rules is not None:
            return rules
        body = standing.body_at_once
        if body is None:
            return None
        return self._live.hold(standing, agent, self._read(standing, body, agent))

    def _read(self, standing: Standing, body: bytes, agent: Agent) -> AgentRules:
        return self._live.robots_txt(standing, body).rules_for(agent.tokens)

    async def _beside_loop(self, work: Callable[[], _Result]) -> _Result:
        """Do slow `work` in a worker thread and return its result.

        Only one such thread runs at a time, so that the event loop shares the CPU with
        a single thread.
        """
        self._readings.check_loop()
        return await in_thread(work, limiter=self._one_at_a_time)
