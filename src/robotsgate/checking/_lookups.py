"""Lookups for one agent: for one URL, from memory or after a renewal, or for many.

Almost all parsing and lookups run without a worker thread; only the slow work caused by
hostile files needs one. Among many URLs, an invalid one does not stop the others.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from functools import partial
from itertools import islice
from logging import DEBUG
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import anyio
import anyio.lowlevel

from robotsgate._flights import FairLoop, Flights, in_thread
from robotsgate._public import set_module
from robotsgate.caching._question import Agent, Question
from robotsgate.caching._verdict import Effect
from robotsgate.checking._reporting import LOGGER
from robotsgate.errors import InvalidURLError, UnsupportedError
from robotsgate.robotstxt._dialect import UNLESS_PLAIN_CHANGED
from robotsgate.urls._url import Origin, URLLike, is_url_like, target_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from robotsgate._clock import Clock
    from robotsgate.caching._live import Standing, StandingFor
    from robotsgate.caching._verdict import Verdict
    from robotsgate.checking._renewal import Renewals
    from robotsgate.robotstxt._dialect import Grammar
    from robotsgate.robotstxt._headers import HeadersLike
    from robotsgate.robotstxt._robots_txt import AgentRules, RobotsTxt
    from robotsgate.robotstxt._usage_preferences import UsagePreferences

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_URL = str | URLLike

# With an SQLite store, looking up this many origins at once takes a third of the time
# of concurrent lookups, and a twentieth of that of separate ones.
_LOADED_AT_ONCE = 100

_NO_QUESTION = (InvalidURLError, UnsupportedError)


@set_module("robotsgate")
class CheckResult(NamedTuple):
    """The result of `check_many` for one URL.

    Attributes:
        url: the URL as passed by the caller; it may contain a password.
        verdict: the verdict; `None` if there is an error.
        error: why `url` was not checked (it has no origin, or the checker's client
            cannot fetch it); `None` if there is a verdict.
    """

    url: str | URLLike
    verdict: Verdict | None
    error: InvalidURLError | UnsupportedError | None


class _Run:
    """Consecutive URLs on one origin, whose rules are looked up only once.

    Attributes:
        start: what all these URLs start with; no URL starts with the initial value.
        rules: what applies to the agent.
    """

    __slots__ = ("rules", "start")

    def __init__(self) -> None:
        self.start: str = "\n"
        self.rules: StandingFor


class Lookups:
    """One checker's lookups; each is counted by the method that finds its result."""

    def __init__(self, renewals: Renewals, *, grammar: Grammar) -> None:
        self.renewals = renewals
        self.clock: Clock = renewals.clock
        self.grammar = grammar
        self.parsing: Flights[StandingFor] = Flights(others=renewals.flights)
        self._live = renewals.live
        self._reporter = renewals.reporter
        self._by_agent = self._live.by_agent
        self._now = self.clock.now
        self._one_at_a_time = anyio.CapacityLimiter(1)

    def at_once(
        self,
        agent: str | Sequence[str],
        url: _URL,
        run: _Run | None = None,  # as a keyword, it would take 50 ns
    ) -> bool | None:
        """The result of two dictionary lookups, which are enough for most URLs.

        Takes about a microsecond and can be called from any thread. `None` if the
        result is unknown: the agent is not a str; the URL does not start with its
        origin's key; the agent or origin is not in memory, or is past its
        `usable_until`; or the lookup would take too long. With `run`, an origin is
        looked up only if the last URL was on another one.
        """
        try:
            if run is not None and url.startswith(run.start):  # type: ignore[union-attr]  # EAFP: not a str
                rules = run.rules
                target: str = url[len(run.start) - 1 :]  # type: ignore[index]
            else:
                slash = url.index("/", 8)  # type: ignore[union-attr]
                rules = self._by_agent[agent][url[:slash]]  # type: ignore[index]  # a list
                if not rules.usable_from <= self._now() < rules.usable_until:
                    return None
                rules.is_used = True
                if run is not None:
                    run.start, run.rules = url[: slash + 1], rules  # type: ignore[index]
                target = url[slash:]  # type: ignore[index]
            octets = target.encode()
        except (KeyError, ValueError, TypeError, AttributeError):
            return None
        # Like `is_plain`, but inlined, because the call would take 5% of the time.
        if "/." in target or octets.translate(UNLESS_PLAIN_CHANGED) != octets:
            readings = self.grammar.readings_of(target_of(target))
            answer = rules.allows_at_once(readings)
        else:
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
        """The rules for `agent` at `origin`, renewed if necessary."""
        return await self.rules_at(await self.renewals.standing(origin), agent)

    async def rules_at(self, standing: Standing, agent: Agent) -> StandingFor:
        rules = self._rules_at_once(standing, agent)
        if rules is not None:
            return rules

        def parse() -> AgentRules:
            return self._live.robots_txt(standing).rules_for(agent.tokens)

        async def hold() -> StandingFor:
            agent_rules = await self._result_of(parse, is_quick=False)
            return self._live.hold(standing, agent, agent_rules)

        return await self.parsing.result_of((standing, agent.name), hold)

    async def allows(self, rules: StandingFor, question: Question) -> bool:
        """Whether `rules`, which apply to the agent, allow the URL in `question`."""
        answer = rules.allows_at_once(question.readings)
        if answer is None:
            work = partial(rules.allows, question.readings)
            answer = await self._result_of(work, is_quick=False)
        self._reporter.report_answer(question, rules, allowed=answer)
        return answer

    async def verdict(
        self,
        question: Question,
        *,
        standing: Standing | None = None,
        is_counted: bool = False,
    ) -> Verdict:
        """The full verdict for `question`.

        `standing` is the origin's state; if it is `None`, the origin is renewed if
        necessary. `is_counted` says that the result has been found and counted already.
        """
        if standing is None:
            standing = await self.renewals.standing(question.origin)
        rules = await self.rules_at(standing, question.agent)
        verdict = await self._result_of(
            partial(rules.explain, standing, question, policy=self.renewals.policy),
            is_quick=rules.explains_at_once(question.readings),
        )
        if not is_counted:
            self._reporter.report_answer(question, rules, allowed=verdict.allowed)
        return verdict

    async def refusal(
        self, agent: str | Sequence[str], url: _URL, *, answer: bool | None
    ) -> Verdict | None:
        """The verdict if `url` is disallowed, given the `answer` in memory, if any."""
        if answer:
            return None
        question = Question.of(agent, url, self.grammar)
        verdict = await self.verdict(question, is_counted=answer is not None)
        return None if verdict else verdict

    async def usage_preferences(
        self, question: Question, headers: HeadersLike | None
    ) -> UsagePreferences:
        rules = await self.rules_for(question.agent, question.origin)
        readings = question.readings
        return await self._result_of(
            partial(
                rules.agent_rules.usage_preferences, readings, self.grammar, headers
            ),
            is_quick=rules.tells_usage_at_once(readings),
        )

    async def part(
        self, origin: Origin, part: Callable[[RobotsTxt], _Result]
    ) -> _Result | None:
        """The result of `part` for the file; `None` if there is no file."""
        standing = await self.renewals.standing(origin)
        if standing.effect is not Effect.RULES:
            return None
        file = self._live.robots_txt_at_once(standing)
        if file is not None:
            return part(file)
        return await self._result_of(
            lambda: part(self._live.robots_txt(standing)), is_quick=False
        )

    async def each(
        self, agent: str | Sequence[str], urls: Iterable[_URL]
    ) -> list[bool]:
        """Whether `agent` may fetch each of `urls`; `False` if one has no origin.

        `urls` is read to the end before anything is fetched.
        """
        self.renewals.flights.check_open()
        known_agent = Agent.of(agent)
        loop = FairLoop(self.clock.monotonic)
        allowed: list[bool | None] = []
        unknown: dict[Origin, list[tuple[int, _URL]]] = {}
        # Keyed by origin: most URLs start with that key, and only the first one with
        # each key is parsed.
        origins: dict[str, Origin] = {}
        run = _Run()
        for number, url in enumerate(urls):
            answer = self.at_once(known_agent.name, url, run)
            if answer is None:
                known = origins.get(_beginning(url)) or self._known(agent, url)
                if isinstance(known, Origin):
                    unknown.setdefault(known, []).append((number, url))
                    origins[known.key] = known
                else:
                    answer = known
            allowed.append(answer)
            if loop.is_due():
                await loop.let_others_run()
                run = _Run()  # the rules may have changed

        async def answer_origin(origin: Origin) -> None:
            rules = await self.rules_for(known_agent, origin)
            for number, url in unknown[origin]:
                answer = self.at_once(known_agent.name, url)
                if answer is None:
                    question = Question.of(agent, url, self.grammar)
                    answer = await self.allows(rules, question)
                allowed[number] = answer
                await loop.after_item()

        await self._for_each_origin(unknown, answer_origin)
        return cast("list[bool]", allowed)  # no `None` is left

    async def prefetch(self, urls: Iterable[_URL]) -> None:
        self.renewals.flights.check_open()
        loop = FairLoop(self.clock.monotonic)
        usable: dict[Origin, None] = {}
        for url in urls:
            try:
                origin = Origin.from_url(url)
                self.renewals.check_scheme(origin)
            except _NO_QUESTION:
                if not is_url_like(url):
                    raise
            else:
                usable[origin] = None
            await loop.after_item()

        limit = self.renewals.max_concurrent_fetches
        await for_each(usable, self.renewals.standing, limit=limit)

    def _known(self, agent: str | Sequence[str], url: _URL) -> bool | Origin:
        """The result, or the URL's origin if there is no quick result in memory."""
        try:
            question = Question.of(agent, url, self.grammar)
            self.renewals.check_scheme(question.origin)
        except _NO_QUESTION:
            if not is_url_like(url):
                raise
            return False
        answer = self.from_memory(question)
        return question.origin if answer is None else answer

    async def _for_each_origin(
        self, origins: Iterable[Origin], work: Callable[[Origin], Awaitable[None]]
    ) -> None:
        """Do `work` for each of `origins`, first for those that are in the store."""
        waiting = iter(origins)
        others = []
        while some := [*islice(waiting, _LOADED_AT_ONCE)]:
            await self.renewals.load(some)
            for origin in some:
                if self.renewals.current(origin) is None:
                    others.append(origin)
                else:
                    await work(origin)
        await for_each(others, work, limit=self.renewals.max_concurrent_fetches)

    def _rules_at_once(self, standing: Standing, agent: Agent) -> StandingFor | None:
        """The rules for `agent`; `None` if a large file must be parsed first."""
        rules = self._live.standing_for(standing, agent)
        if rules is None:
            file = self._live.robots_txt_at_once(standing)
            if file is not None:
                agent_rules = file.rules_for(agent.tokens)
                rules = self._live.hold(standing, agent, agent_rules)
        return rules

    async def _result_of(
        self, work: Callable[[], _Result], *, is_quick: bool
    ) -> _Result:
        """Do `work`, in a worker thread if it is slow, and return its result.

        Only one such thread runs at a time, so that the event loop shares the CPU with
        a single thread.
        """
        if is_quick:
            return work()
        self.parsing.check_loop()
        return await in_thread(work, limiter=self._one_at_a_time)


class ResultsInOrder(AsyncIterator[CheckResult]):
    """The results for URLs, in order, while later origins are already being fetched.

    Not an async generator, because trio warns about generators that are not exhausted.
    """

    def __init__(
        self,
        lookups: Lookups,
        agent: str | Sequence[str],
        urls: Iterable[_URL],
        *,
        window: int,
    ) -> None:
        """Read nothing yet; later, read up to `window` URLs ahead."""
        Agent.of(agent)  # raises if there is no product token
        self._lookups = lookups
        self._agent = agent
        self._urls = iter(urls)
        self._window = window
        self._loop = FairLoop(lookups.clock.monotonic)
        self._ahead: deque[Question | CheckResult] = deque()
        self._end: Exception | None = None
        self._one_at_a_time = anyio.Lock(fast_acquire=True)

    async def __anext__(self) -> CheckResult:
        """Return the next result. Can be called again after a cancellation.

        Raises:
            RuntimeError: the checker is closed; results for later URLs may follow.
            Exception: any exception from the iterable.
        """
        async with self._one_at_a_time:
            await self._loop.after_item()
            await self._read_ahead()
            if self._end is not None and not self._ahead:
                raise self._end
            try:
                result = await self._result(self._ahead[0])
            except Exception:
                self._ahead.popleft()
                raise
            self._ahead.popleft()
            return result

    async def _read_ahead(self) -> None:
        while self._end is None and len(self._ahead) < self._window:
            try:
                self._ahead.append(self._begin(next(self._urls)))
            except StopIteration:
                self._end = StopAsyncIteration()
            except Exception as error:  # noqa: BLE001 (raised after earlier results)
                self._end = error
            else:
                # A slow iterable is not read any further if a result is ready.
                if await self._loop.after_item() and self._is_ready(self._ahead[0]):
                    return

    def _begin(self, url: _URL) -> Question | CheckResult:
        """Start fetching the origin of `url`, if necessary."""
        renewals = self._lookups.renewals
        try:
            question = Question.of(self._agent, url, self._lookups.grammar)
            if renewals.current(question.origin) is None:
                renewals.begin(question.origin)
        except _NO_QUESTION as error:
            return CheckResult(url, None, error)
        return question

    def _is_ready(self, one: Question | CheckResult) -> bool:
        renewals = self._lookups.renewals
        return isinstance(one, CheckResult) or renewals.current(one.origin) is not None

    async def _result(self, one: Question | CheckResult) -> CheckResult:
        if isinstance(one, CheckResult):
            return one
        return CheckResult(one.url, await self._lookups.verdict(one), None)


async def for_each(
    items: Iterable[_Item], work: Callable[[_Item], Awaitable[object]], *, limit: int
) -> None:
    """Do `work` for each of `items` in order, letting other tasks run in between.

    There are at most `limit` (≥ 1) concurrent calls. The first exception raised by
    `work` cancels all other work, and is raised by itself, not in a group.
    """
    every = list(items)
    if not every:
        return  # an empty task group would take 8 µs
    waiting = iter(every)
    failures: list[Exception] = []

    async def worker() -> None:
        for item in waiting:
            try:
                await work(item)
            except Exception as error:  # noqa: BLE001 (raised below, by itself)
                failures.append(error)
                tasks.cancel_scope.cancel()
                return
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        for _ in range(min(limit, len(every))):
            tasks.start_soon(worker)
    if failures:
        raise failures[0]


def _beginning(url: _URL) -> str:
    """The part of `url` that is usually its origin's key; may be empty."""
    return url[: max(url.find("/", 8), 0)] if isinstance(url, str) else ""
