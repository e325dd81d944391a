"""Checks requests against robots.txt, which is fetched in a separate turn.

Entries in memory and in the store need no turn. For any other origin, the gate starts
one flight:

    look up memory and store ──► current: done, without a turn
        │ not current
        ▼
    wait for a turn for the host, before pages
        │
        ▼
    start or join the checker's renewal ──► no request was needed: give the turn back
        │
        ▼
    the turn ends with the fetch, and its outcome is reported for the host

If callers give up, the wait and the fetch continue. If the gate is closed, the wait and
the turn end, but the fetch continues, because it belongs to the checker.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

from robotsgate._flights import Flights
from robotsgate.caching._freshness import ASK_FOR_LESS, retry_after
from robotsgate.caching._outcome import FailureKind, judge
from robotsgate.caching._question import Question
from robotsgate.caching._verdict import DisallowedError
from robotsgate.politeness._host_record import NEVER, TurnEnd
from robotsgate.politeness._hosts import Place
from robotsgate.urls._url import Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from robotsgate._flights import Flight
    from robotsgate.caching._outcome import Outcome
    from robotsgate.caching._question import Agent
    from robotsgate.caching._standing import Standing, StandingFor
    from robotsgate.checking._answers import Answers
    from robotsgate.checking._renewal import Renewals
    from robotsgate.politeness._hosts import Hosts, Queues
    from robotsgate.politeness._ledger import Grant
    from robotsgate.urls._url import URLLike

    _Then = Callable[[Standing | None], object]


# A fraction of the origins that a checker keeps in memory by default.
_MOST_HOSTS_AHEAD = 2_000


class Permission(NamedTuple):
    """Permission from robots.txt to fetch a URL.

    Attributes:
        origin: the key of the URL's origin.
        rules: the origin's rules for the agent.
    """

    origin: str
    rules: StandingFor


class Permissions:
    """The permissions from robots.txt for one gate's agent.

    Attributes:
        most_ahead: the maximum number of hosts whose robots.txt is prefetched before
            their URLs get a turn.
    """

    def __init__(
        self,
        answers: Answers,
        renewals: Renewals,
        *,
        agent: Agent,
        hosts: Hosts,
        queues: Queues,
    ) -> None:
        self._answers = answers
        self._renewals = renewals
        self._agent = agent
        self._hosts = hosts
        self._queues = queues
        self._clock = answers.clock
        self._flights: Flights[Standing] = Flights("gate", on_end=self._end)
        self._errors: dict[Hashable, Exception] = {}  # not yet raised to a caller
        self._thens: dict[Hashable, list[_Then]] = {}
        self.most_ahead: int = min(_MOST_HOSTS_AHEAD, max(1, renewals.max_origins // 2))

    async def aclose(self) -> None:
        """End all waits and turns. Can be called more than once."""
        await self._flights.aclose()

    def at_once(self, url: str | URLLike) -> tuple[str, bool | None]:
        """The key of the origin of `url`, and whether the rules in memory allow `url`.

        The second item is `None` if there is no quick result in memory.

        Raises:
            InvalidURLError: `url` has no origin.
        """
        answer = self._answers.at_once(self._agent.name, url)
        if answer is None:
            return Origin.from_url(url).key, None
        text = cast("str", url)  # other types have no quick result
        return text[: text.index("/", 8)], answer

    async def permission(
        self,
        url: str | URLLike,
        place: Place,
        *,
        origin: str,
        answer: bool | None,
        deadline: float,
        standing: Standing | None = None,
    ) -> Permission:
        """Return permission to fetch `url`, fetching its robots.txt if necessary.

        If the last fetch of the robots.txt returned a 429 or 503, this waits until the
        origin may be contacted again.

        Args:
            url: the URL to fetch.
            place: the caller's place in its host's queue.
            origin: from the preceding call to `at_once`.
            answer: from the preceding call to `at_once`, which has counted it.
            deadline: when the caller stops waiting, by `Clock.monotonic`.
            standing: the state of the origin after a fetch for this request; it is used
                even if it has become stale, because the host's delay may be longer than
                the freshness lifetime.

        Raises:
            DisallowedError: the agent may not fetch `url`.
            TurnNotInTimeError: the result is not available by the `deadline`.
            RuntimeError: the gate or the checker is closed.
            UnsupportedError: the scheme is ftp, and the checker has a client.
        """
        if answer:
            last, rules = self._answers.in_memory(self._agent, origin)
            if rules is not None and pause_until(last) <= self._clock.now():
                return Permission(origin, rules)
        question = Question.of(self._agent.name, url, self._answers.grammar)
        explain = self._answers.verdict if answer is None else self._answers.explanation
        while True:
            seconds = deadline - self._clock.monotonic()
            try:
                if standing is None:
                    standing = await self._standing(question.origin, seconds)
            except TimeoutError:
                seconds = self._queues.least_wait(place)
                raise self._queues.not_in_time(place.host, seconds) from None
            verdict = await explain(question, standing=standing)
            if not verdict.allowed:
                raise DisallowedError(verdict)
            explain = self._answers.explanation
            until = pause_until(standing)
            if until <= self._clock.now():
                rules = await self._answers.rules_at(standing, self._agent)
                return Permission(origin, rules)
            await self._queues.pause(place, until=until, deadline=deadline)
            standing = None

    def is_in_force(self, permission: Permission) -> bool:
        """Whether `permission` is still valid."""
        standing, _ = self._answers.in_memory(self._agent, permission.origin)
        rules = permission.rules
        is_replaced = standing is not None and standing.usable_from > rules.usable_from
        return not is_replaced and self._clock.now() < rules.usable_until

    def standing(self, origin: Origin) -> Standing | None:
        """The state of `origin`; `None` if its robots.txt must be looked up.

        Raises:
            RuntimeError: the gate or the checker is closed.
            UnsupportedError: the scheme is ftp, and the checker has a client.
            Exception: any exception from the last fetch that no caller has received
                yet.
        """
        standing = self._renewals.current(origin)
        if standing is None:
            self._raise_error(origin)
        return standing

    def begin(self, origin: Origin, then: _Then) -> None:
        """Start fetching the robots.txt of `origin`, and call `then` when that ends.

        `then` is called with the state of the origin, or `None` if it is unknown.

        Raises:
            RuntimeError: the gate is closed.
        """
        self._flights.begin(origin.key, partial(self._renew, origin))
        self._thens.setdefault(origin.key, []).append(then)

    async def _standing(self, origin: Origin, seconds: float) -> Standing:
        """The state of `origin`, renewed if necessary; times out after `seconds`."""
        standing = self._renewals.current(origin)
        if standing is not None:
            return standing
        self._raise_error(origin)
        flight = self._flights.begin(origin.key, partial(self._renew, origin))
        return await flight.result_within(seconds, self._clock)

    def _raise_error(self, origin: Origin) -> None:
        error = self._errors.pop(origin.key, None)
        if error is not None:
            raise error

    def _end(self, key: Hashable, flight: Flight[Standing]) -> None:
        """Call the `then` callbacks of a finished flight.

        If no caller is waiting, the flight's error is kept for the next caller.
        Otherwise, impatient callers would fetch again and again without ever seeing the
        error.
        """
        if flight.error is not None and not flight.callers:
            self._errors[key] = flight.error
        for then in self._thens.pop(key, ()):
            then(flight.value)

    async def _renew(self, origin: Origin) -> Standing:
        standing = await self._renewals.look_up(origin)
        if standing is not None:
            return standing
        grant = await self._grant(origin)
        end, cause, seconds = TurnEnd.UNUSED, "", None
        try:
            renewal = self._renewals.begin(origin)
            fetch_end = self._renewals.fetch_end(origin)
            end = TurnEnd.UNJUDGED  # in case the wait below is cancelled
            renewal.callers += 1  # its error is raised below
            try:
                await fetch_end.over_event.wait()
            finally:
                renewal.callers -= 1
            if fetch_end.outcome is None:  # no request was made, or `result` raises
                standing = (await renewal.result()).standing
                end = TurnEnd.UNUSED
                return standing
            end_of_fetch, _ = judge(fetch_end.outcome, self._end_of)
            end, cause, seconds = end_of_fetch
        finally:
            await self._queues.end(grant, end, cause=cause, retry_after=seconds)
        return (await renewal.result()).standing

    async def _grant(self, origin: Origin) -> Grant:
        host = self._hosts.host(origin.robots_url, origin.key)
        place = Place(host, is_robots_txt=True)
        self._queues.join(place)
        try:
            return await self._queues.grant(place, deadline=math.inf)
        finally:
            self._queues.leave(place)

    def _end_of(self, outcome: Outcome) -> tuple[TurnEnd, str, float | None]:
        """How a fetch ended, the cause of an incident, and its Retry-After."""
        if outcome.failure is not None:
            is_refused = outcome.failure is FailureKind.ADDRESS_REFUSED
            is_sent = outcome.redirects or not is_refused
            return (TurnEnd.UNJUDGED if is_sent else TurnEnd.UNUSED), "", None
        if outcome.status not in ASK_FOR_LESS:
            return TurnEnd.GOOD, "", None
        seconds = retry_after(
            outcome.headers, now=self._clock.now(), policy=self._renewals.policy
        )
        return TurnEnd.INCIDENT, str(outcome.status), seconds


def pause_until(standing: Standing | None) -> float:
    """When an origin whose last fetch returned a 429 or 503 may be contacted again.

    In epoch seconds; `NEVER` if there is nothing to wait for. If the policy does not
    treat the status as unreachable, only the Retry-After is used.
    """
    last = None if standing is None else standing.entry.outage or standing.entry.answer
    if last is None or last.status not in ASK_FOR_LESS or last.retry_at is None:
        return NEVER
    return last.retry_at
