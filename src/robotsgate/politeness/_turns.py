"""Turns: each one is permission to make a single request to a host.

    new ──► wait for robots.txt ──► wait for the host ──► begun ──► ended
                │     ▲                    │
                │     └── expired during the wait
                ▼                          ▼
        DisallowedError            TurnNotInTimeError

A turn joins its host's queue at the start, so turns are granted in the order in which
they were requested. `Turn` is the public part; its state is a `Claim` (`_hosts.py`).

Entries in memory and in the store need no turn. For any other origin, the gate starts
one flight, with a turn for the robots.txt:

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

import logging
import math
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Self, cast

from robotsgate._flights import Flights, current_task
from robotsgate._public import set_module
from robotsgate.caching._freshness import ASK_FOR_LESS
from robotsgate.caching._outcome import FailureKind, access_result, judge
from robotsgate.caching._policy import AccessResult
from robotsgate.caching._question import Question
from robotsgate.caching._verdict import DisallowedError
from robotsgate.errors import TurnDeadlockError, TurnNotInTimeError
from robotsgate.politeness._host_record import NEVER, HostState, TurnEnd
from robotsgate.politeness._hosts import Claim, Queues
from robotsgate.politeness._turn_end import (
    UNJUDGED,
    UNUSED,
    Report,
    has_three_digits,
    report_of,
    report_of_error,
    retry_after_in,
)
from robotsgate.urls._url import Origin, shown_url

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from robotsgate._clock import Clock
    from robotsgate._flights import Flight
    from robotsgate.caching._live import Standing, StandingFor
    from robotsgate.caching._outcome import Outcome
    from robotsgate.caching._policy import Policy
    from robotsgate.caching._question import Agent
    from robotsgate.checking._lookups import Lookups
    from robotsgate.politeness._hosts import Hosts
    from robotsgate.politeness._ledger import Ledger
    from robotsgate.urls._url import URLLike

    _Then = Callable[[Standing | None], object]

_LOGGER = logging.getLogger("robotsgate.politeness")

# A fraction of the origins that a checker keeps in memory by default.
_MOST_HOSTS_AHEAD = 2_000

# Longer than most pages take, but much shorter than the default `max_turn_seconds`.
_LONG_WAIT_SECONDS = 30.0

_GOOD = Report(TurnEnd.GOOD)


@set_module("robotsgate")
class Turn:
    """Permission to make one request to a host, from `PolitenessGate.turn`.

    Use it as an async context manager around the request, including reading the
    response.

    Attributes:
        url: the URL to fetch, as passed by the caller.
    """

    __slots__ = ("_claim", "_turns", "url")

    def __init__(self, turns: Turns, claim: Claim) -> None:
        self.url: str | URLLike = claim.url
        self._turns = turns
        self._claim = claim

    def __repr__(self) -> str:
        """The turn, with its URL but without userinfo."""
        return f"<robotsgate.Turn url={shown_url(self.url)!r}>"

    async def __aenter__(self) -> Self:
        """Wait until the host is ready for the request.

        Raises:
            DisallowedError: robots.txt does not allow the agent to fetch the URL.
            TurnNotInTimeError: the next turn would not start within `patience`, or the
                turn's schedule was closed before.
            InvalidURLError: the URL has no origin.
            UnsupportedError: the scheme is ftp, and the checker has a client.
            TurnDeadlockError: the turn would have to wait for another one that the same
                task holds.
            RuntimeError: the gate is closed, or the turn was already used.
        """
        await self._turns.enter(self._claim, current_task())
        return self

    async def __aexit__(self, _kind: object, error: object, _traceback: object) -> None:
        """End the turn. Any task may call this.

        If nothing was reported, an exception is:

        - a report of its status and Retry-After, if it has `response.status_code`,
          `response.status` or `status`, from 100 to 599;
        - a failure of the host, if it is a client's exception for a connection, a
          timeout or a broken response, or a built-in ConnectionError, TimeoutError,
          `socket.gaierror` or `ssl.SSLError`;
        - otherwise no report. Incidents remain as they are, and the delay applies,
          because the exception does not tell whether a request was sent.

        Nor does an exception report anything if the URL of its request (`request.url`,
        `response.url` or `request_info.real_url`) is on another host, or if this
        machine caused it. In a group, the gravest exception counts.
        """
        claim, turns = self._claim, self._turns
        if claim.report is None and isinstance(error, BaseException):
            claim.report = report_of_error(
                error,
                is_elsewhere=partial(turns.is_elsewhere, claim.host),
                now=turns.clock.now(),
                policy=turns.policy,
            )
        try:
            await turns.end(claim, claim.report or _GOOD)
        finally:
            claim.close()

    def __del__(self) -> None:
        """Tell the schedule that nobody can enter this turn anymore."""
        claim = self._claim
        if claim.on_over is not None:
            with suppress(RuntimeError):  # the event loop has ended
                claim.call_soon(claim.close)

    def leave_task(self) -> None:
        """Let the task that entered this turn wait for another turn for the same host.

        Use this if another task will later close the response and thereby end the turn.
        """
        self._claim.owner = None

    def report(
        self,
        response: object = None,
        *,
        status: int | None = None,
        retry_after: str | None = None,
        failure: bool = False,
    ) -> None:
        """Report the request's result; a later report replaces an earlier one.

        After a 429, a 503 or a failure, the gate backs off from the host for a while
        and then slows down. The Retry-After of any response except a 2xx or 304 delays
        the host's next turn (RFC 9110 §10.2.3), for at most `Policy.retry_after_max`.

        Args:
            response: a response from any HTTP client, with `status_code` or `status`,
                and `headers`; pass it instead of the other arguments. A status below
                100 or above 999, which some clients accept, counts as a failure. May
                also be just the status, 100 to 999.
            status: the response status, 100 to 999.
            retry_after: the Retry-After header, if there is one: seconds or a date. Any
                other value is ignored.
            failure: whether there was no usable response, for example after a timeout.

        Raises:
            RuntimeError: the turn has not started or is over.
            TypeError: `response` has no status or headers, `status` is not an int, or
                `retry_after` is not a str.
            ValueError: `status` is not between 100 and 999.
        """
        claim = self._claim
        if claim.grant is None or not claim.is_entered:
            raise RuntimeError("expected a report during the turn, got one outside it")
        if isinstance(response, int):
            status = response
        elif response is not None:
            status, retry_after = _status_and_retry_after(response)
        if isinstance(status, bool) or not isinstance(status, int | None):
            raise TypeError(f"expected status to be an int, got {status!r}")
        is_own = response is None or status is response  # not a client's
        if is_own and not has_three_digits(status):
            raise ValueError(f"expected a three-digit status, got {status!r}")
        if not (retry_after is None or isinstance(retry_after, str)):
            raise TypeError(
                f"expected retry_after to be a str (the header), got {retry_after!r}"
            )
        claim.report = report_of(
            status,
            {"retry-after": retry_after or ""},
            now=self._turns.clock.now(),
            policy=self._turns.policy,
            is_failure=failure,
        )


class Turns:
    """One gate's turns; `counts` and `seconds_waited` are parts of `GateStats`."""

    def __init__(
        self, lookups: Lookups, *, agent: Agent, hosts: Hosts, ledger: Ledger
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.seconds_waited: float = 0.0
        self.under_way: dict[str, list[Claim]] = {}
        self.policy: Policy = lookups.renewals.policy
        self.hosts: Hosts = hosts
        self.clock: Clock = lookups.clock
        self.queues: Queues = Queues(
            ledger, hosts, clock=self.clock, on_overdue=self._drop_overdue
        )
        self.permissions: Permissions = Permissions(
            lookups, agent=agent, hosts=hosts, queues=self.queues
        )

    def check_open(self) -> None:
        """Raise a RuntimeError if the gate is closed."""
        if self.queues.is_closed:
            raise RuntimeError("the gate is closed")

    async def enter(self, claim: Claim, owner: object) -> None:
        """Start the turn unless a schedule already has."""
        if claim.is_entered:
            raise RuntimeError("expected an unused turn, got one already entered")
        if claim.report is not None:  # its schedule has reported the URL
            raise TurnNotInTimeError(
                "expected the turn to be entered before its schedule was closed",
                ready_at=self.clock.now(),
            )
        claim.is_entered = True
        claim.owner = owner
        try:
            if claim.grant is None:
                await self.begin(claim)
        except BaseException as error:
            self.counts["not_in_time"] += isinstance(error, TurnNotInTimeError)
            claim.close()
            raise

    async def begin(self, claim: Claim) -> None:
        """Wait for robots.txt and the host."""
        self.check_open()
        asked_at = self.clock.monotonic()
        claim.deadline = asked_at + claim.patience
        claim.waits_since = asked_at
        try:
            await self._begin(claim)
        except DisallowedError:
            self.counts["disallowed"] += 1
            raise
        except TurnNotInTimeError:
            self.check_open()
            raise
        finally:
            self.seconds_waited += self.clock.monotonic() - asked_at
        self.counts["turns"] += 1

    async def end(self, claim: Claim, report: Report) -> None:
        claims = self.under_way.get(claim.host, [])
        if claim in claims:  # otherwise, it was overdue
            claims.remove(claim)
        if not claims:
            self.under_way.pop(claim.host, None)
        self.counts["incidents"] += report.end.is_incident
        await self.queues.end(claim, report)

    async def give_back(self, claim: Claim) -> None:
        """End a turn without a request."""
        await self.end(claim, UNUSED)

    def is_elsewhere(self, host: str, url: object) -> bool:
        """Whether `url` is known not to be on `host`."""
        try:
            url = cast("str | URLLike", url)
            return self.hosts.host(url, Origin.from_url(url).key) != host
        except Exception:  # noqa: BLE001 (not a URL, or the caller's `host_of` fails)
            return False

    async def _begin(self, claim: Claim) -> None:
        origin, answer = self.permissions.at_once(claim.url)
        claim.host = self.hosts.host(claim.url, origin)
        self.queues.join(claim)
        try:
            is_second = False
            while True:
                rules = await self.permissions.rules(claim, origin, answer=answer)
                self.hosts.learn(claim.host, origin, rules)
                await self.queues.wait(claim, before_wait=self._longest_wait)
                claim.began_at = self.clock.monotonic()
                self.under_way.setdefault(claim.host, []).append(claim)
                # The second result is used even if it goes stale during the wait,
                # because the delay may be longer than the freshness lifetime.
                has_waited = claim.event is not None
                is_final = is_second or not has_waited
                if is_final or self.permissions.are_in_force(origin, rules):
                    return
                await self.end(claim, UNUSED)  # but it keeps its place in the queue
                _, answer = self.permissions.at_once(claim.url)
                is_second = True
        finally:
            self.queues.leave(claim)

    def _longest_wait(self, claim: Claim) -> float:
        """How long `claim` may wait before this is called again, in seconds.

        Logs a long wait for turns of this process, and raises a TurnDeadlockError if
        the claim's owner itself holds all turns for the host.
        """
        host = claim.host
        turns = self.under_way.get(host)
        if not turns:
            return math.inf
        is_probing = self.queues.status(host).state is HostState.PROBING
        most = 1 if is_probing else self.hosts.pace(host).max_at_once
        if len(turns) < most:
            return math.inf
        if sum(turn.owner is claim.owner for turn in turns) >= most:
            raise TurnDeadlockError(
                f"this task or thread holds the turn of {shown_url(turns[0].url)!r}:"
                " end it, or close its response, before you request another one for"
                f" {host!r}"
            )
        since = max(claim.waits_since, turns[-1].began_at)
        seconds = since + _LONG_WAIT_SECONDS - self.clock.monotonic()
        if seconds > 0:
            return seconds
        claim.waits_since = math.inf  # it is logged once
        _LOGGER.warning(
            "%s is still waiting after %.0f s, because the turn of %s is open",
            shown_url(claim.url),
            _LONG_WAIT_SECONDS - seconds,
            shown_url(turns[0].url),
        )
        return math.inf

    def _drop_overdue(self, host: str, count: int) -> None:
        """Count and drop overdue turns for `host`, `count` of which have just ended."""
        self.counts["overdue"] += count
        seconds = self.hosts.usual.max_turn_seconds
        began_before = self.clock.monotonic() - seconds
        claims = self.under_way.pop(host, [])
        late = [shown_url(turn.url) for turn in claims if turn.began_at <= began_before]
        _LOGGER.warning(
            "after %g s, open turns for %s no longer count (%d): %s",
            seconds,
            host,
            count,
            " ".join(late) or "not of this gate",
        )
        claims = [claim for claim in claims if claim.began_at > began_before]
        if claims:
            self.under_way[host] = claims


class Permissions:
    """The permissions from robots.txt for one gate's agent.

    Attributes:
        most_ahead: the maximum number of hosts whose robots.txt is prefetched before
            their URLs get a turn.
    """

    def __init__(
        self, lookups: Lookups, *, agent: Agent, hosts: Hosts, queues: Queues
    ) -> None:
        self._lookups = lookups
        self._renewals = lookups.renewals
        self._agent = agent
        self._hosts = hosts
        self._queues = queues
        self._clock = lookups.clock
        self._flights: Flights[Standing] = Flights("gate", on_end=self._end)
        self._errors: dict[Hashable, Exception] = {}  # not yet raised to a caller
        self._thens: dict[Hashable, list[_Then]] = {}
        most_in_memory = max(1, lookups.renewals.live.max_origins // 2)
        self.most_ahead: int = min(_MOST_HOSTS_AHEAD, most_in_memory)

    async def aclose(self) -> None:
        await self._flights.aclose()

    def at_once(self, url: str | URLLike) -> tuple[str, bool | None]:
        """The key of the origin of `url`, and whether the rules in memory allow `url`.

        The second item is `None` if there is no quick result in memory.
        """
        answer = self._lookups.at_once(self._agent.name, url)
        if answer is None:
            return Origin.from_url(url).key, None
        text = cast("str", url)  # other types have no quick result
        return text[: text.index("/", 8)], answer

    async def rules(
        self, claim: Claim, origin: str, *, answer: bool | None
    ) -> StandingFor:
        """The rules that allow a page, after fetching its robots.txt if necessary.

        `origin` and `answer` are from the preceding call to `at_once`, which has
        counted the answer. If the last fetch of the robots.txt returned a 429 or 503,
        this waits until the origin may be contacted again.
        """
        # The state after a fetch for this turn is used even if it has become stale,
        # because the host's delay may be longer than the freshness lifetime.
        standing, claim.standing = claim.standing, None
        if answer:
            last, rules = self._lookups.in_memory(self._agent, origin)
            if rules is not None and pause_until(last) <= self._clock.now():
                return rules
        question = Question.of(self._agent.name, claim.url, self._lookups.grammar)
        is_counted = answer is not None
        while True:
            seconds = claim.deadline - self._clock.monotonic()
            try:
                if standing is None:
                    standing = await self._standing(question.origin, seconds)
            except TimeoutError:
                seconds = self._queues.least_wait(claim)
                raise self._queues.not_in_time(claim.host, seconds) from None
            verdict = await self._lookups.verdict(
                question, standing=standing, is_counted=is_counted
            )
            if not verdict.allowed:
                raise DisallowedError(verdict)
            is_counted = True
            until = pause_until(standing)
            if until <= self._clock.now():
                return await self._lookups.rules_at(standing, self._agent)
            await self._queues.pause(claim, until=until)
            standing = None

    def are_in_force(self, origin: str, rules: StandingFor) -> bool:
        """Whether `rules` are still valid."""
        standing, _ = self._lookups.in_memory(self._agent, origin)
        is_replaced = standing is not None and standing.usable_from > rules.usable_from
        return not is_replaced and self._clock.now() < rules.usable_until

    def standing(self, origin: Origin) -> Standing | None:
        """The state of `origin`; `None` if its robots.txt must be looked up.

        Raises any exception from the last fetch that no caller has received yet.
        """
        standing = self._renewals.current(origin)
        error = None if standing else self._errors.pop(origin.key, None)
        if error is not None:
            raise error
        return standing

    def begin(self, origin: Origin, then: _Then) -> None:
        """Start fetching the robots.txt of `origin`, and call `then` when that ends.

        `then` is called with the state of the origin, or `None` if it is unknown.
        """
        self._flights.begin(origin.key, partial(self._renew, origin))
        self._thens.setdefault(origin.key, []).append(then)

    async def _standing(self, origin: Origin, seconds: float) -> Standing:
        """The state of `origin`, renewed if necessary; times out after `seconds`."""
        standing = self.standing(origin)
        if standing is not None:
            return standing
        flight = self._flights.begin(origin.key, partial(self._renew, origin))
        return await flight.result_within(seconds, self._clock)

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
        claim = Claim(origin.robots_url, is_robots_txt=True)
        claim.host = self._hosts.host(origin.robots_url, origin.key)
        self._queues.join(claim)
        try:
            await self._queues.wait(claim)
        finally:
            self._queues.leave(claim)
        report = UNUSED
        try:
            renewal = self._renewals.begin(origin)
            report = UNJUDGED  # in case the wait below is cancelled
            outcome = cast("Outcome | None", await renewal.next_interim())
            if outcome is None:  # no request since our turn began, or `result` raises
                standing = (await renewal.result()).standing
                report = UNUSED
                return standing
            report, _ = judge(outcome, partial(self._report_of, origin))
        finally:
            await self._queues.end(claim, report)
        return (await renewal.result()).standing

    def _report_of(self, origin: Origin, outcome: Outcome) -> Report:
        """The report for a fetch from `origin`.

        A Retry-After that the checker has no reason to obey, such as that of a 404,
        does not delay the pages.
        """
        policy = self._renewals.policy
        if outcome.failure is not None:
            is_refused = outcome.failure is FailureKind.ADDRESS_REFUSED
            is_sent = outcome.redirects or not is_refused
            return UNJUDGED if is_sent else UNUSED
        report = report_of(
            outcome.status, outcome.headers, now=self._clock.now(), policy=policy
        )
        if report.end.is_incident or report.retry_after is None:
            return report
        access = access_result(outcome, policy, origin=origin.key)
        is_obeyed = access is AccessResult.UNREACHABLE
        return report if is_obeyed else report._replace(retry_after=None)


def pause_until(standing: Standing | None) -> float:
    """When an origin whose last fetch returned a 429 or 503 may be contacted again.

    In epoch seconds; `NEVER` if there is nothing to wait for. If the policy does not
    treat the status as unreachable, only the Retry-After is used.
    """
    last = None if standing is None else standing.entry.outage or standing.entry.answer
    if last is None or last.status not in ASK_FOR_LESS or last.retry_at is None:
        return NEVER
    return last.retry_at


def _status_and_retry_after(response: object) -> tuple[int, str]:
    """The status of `response`, and its Retry-After; empty if there is none."""
    status = getattr(response, "status_code", getattr(response, "status", None))
    headers = getattr(response, "headers", None)
    if status is None or headers is None:
        raise TypeError(
            f"expected a response with status and headers, got {response!r}"
        )
    return status, retry_after_in(headers)
