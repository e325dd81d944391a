"""Turns: each one is permission to make a single request to a host.

    new ──► wait for robots.txt ──► wait for the host ──► begun ──► ended
                │     ▲                    │
                │     └── expired during the wait
                ▼                          ▼
        DisallowedError            TurnNotInTimeError

A turn joins its host's queue at the start, so turns are granted in the order in which
they were requested. `Turn` is the public part; `Claim` is its internal state.

This module is longer than the others because `Turn` is public: a third of it is
docstrings.
"""

from __future__ import annotations

import math
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Self, cast

from robotsgate._flights import task_id
from robotsgate.caching._freshness import ASK_FOR_LESS, retry_after
from robotsgate.caching._verdict import DisallowedError
from robotsgate.errors import TurnNotInTimeError
from robotsgate.politeness._host_record import HostState, TurnEnd
from robotsgate.politeness._hosts import Place, Queues
from robotsgate.politeness._permissions import Permissions
from robotsgate.robotstxt._headers import header_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate._clock import Clock
    from robotsgate.caching._question import Agent
    from robotsgate.caching._standing import Standing
    from robotsgate.checking._answers import Answers
    from robotsgate.checking._renewal import Renewals
    from robotsgate.politeness._hosts import Hosts
    from robotsgate.politeness._ledger import Grant, Ledger
    from robotsgate.politeness._permissions import Permission
    from robotsgate.urls._url import URLLike

_SAYS_NOTHING = (DisallowedError, TurnNotInTimeError)


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

    async def __aenter__(self) -> Self:
        """Wait until the host is ready for the request.

        Raises:
            DisallowedError: robots.txt does not allow the agent to fetch the URL.
            TurnNotInTimeError: the next turn would not start within `patience`.
            InvalidURLError: the URL has no origin.
            UnsupportedError: the scheme is ftp, and the checker has a client.
            RuntimeError: the gate is closed, the turn was already used, or this turn
                would have to wait for another one held by the same task.
        """
        await self._turns.enter(self._claim, task_id())
        return self

    async def __aexit__(self, _kind: object, error: object, _traceback: object) -> None:
        """End the turn. Any task may call this.

        If nothing was reported, an exception counts as a failure of the host, unless it
        is a `DisallowedError`, a `TurnNotInTimeError`, a cancellation, or a group that
        contains only these.
        """
        claim = self._claim
        end = claim.end
        if end is None and error is not None:
            if isinstance(error, BaseExceptionGroup):
                error = error.split(_SAYS_NOTHING)[1]
            end = TurnEnd.UNJUDGED
            if isinstance(error, Exception) and not isinstance(error, _SAYS_NOTHING):
                end, claim.cause = TurnEnd.FAILURE, type(error).__name__
        try:
            await self._turns.end(claim, end or TurnEnd.GOOD)
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
        and then slows down.

        Args:
            response: a response from any HTTP client, with `status_code` or `status`,
                and `headers`; pass it instead of the other arguments. A status below
                100 or above 999, which some clients accept, counts as a failure.
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
        if response is not None:
            status, retry_after = _status_and_retry_after(response)
        is_valid = _is_valid(status)
        if response is None and not is_valid:
            raise ValueError(f"expected a three-digit status, got {status!r}")
        if not (retry_after is None or isinstance(retry_after, str)):
            raise TypeError(
                f"expected retry_after to be a str (the header), got {retry_after!r}"
            )
        claim.end, claim.cause = TurnEnd.GOOD, ""
        if status in ASK_FOR_LESS:
            claim.end, claim.cause = TurnEnd.INCIDENT, str(status)
        elif failure or not is_valid:
            claim.end, claim.cause = TurnEnd.FAILURE, "failure"
        claim.retry_after = None
        if claim.end.is_incident and retry_after is not None:
            claim.retry_after = self._turns.seconds_asked_for(retry_after)


class Claim:
    """The internal state of one turn.

    Attributes:
        url: the URL to fetch, as passed by the caller.
        patience: the total time limit for waiting, in seconds, ≥ 0; may be infinite.
        grant: the grant from the ledger; `None` unless the turn is open.
        began_at: when the turn started, by `Clock.monotonic`.
        is_entered: whether a task or thread has entered the turn.
        owner: the task or thread that entered the turn; `None` before that and after
            `Turn.leave_task`.
        end: how the turn ended, as reported; `None` if nothing was reported.
        cause: the cause of an incident, as in `HostBlocked`.
        retry_after: the reported Retry-After, in seconds; `None` if there is none.
        standing: the state of the origin after a fetch for this turn, if there was one.
        on_over: called once, when the turn has ended or can no longer start.
        call_soon: schedules a call on the event loop, from any thread.
    """

    __slots__ = (
        "began_at",
        "call_soon",
        "cause",
        "end",
        "grant",
        "is_entered",
        "on_over",
        "owner",
        "patience",
        "retry_after",
        "standing",
        "url",
    )

    def __init__(self, url: str | URLLike, *, patience: float = math.inf) -> None:
        self.url: str | URLLike = url
        self.patience: float = patience
        self.grant: Grant | None = None
        self.began_at: float = -math.inf
        self.is_entered: bool = False
        self.owner: object = None
        self.end: TurnEnd | None = None
        self.cause: str = ""
        self.retry_after: float | None = None
        self.standing: Standing | None = None
        self.on_over: Callable[[], object] | None = None
        self.call_soon: Callable[[Callable[[], object]], object]

    def close(self) -> None:
        """Call `on_over`, because the turn has ended or can no longer start."""
        on_over, self.on_over = self.on_over, None
        if on_over is not None:
            on_over()


class Turns:
    """One gate's turns.

    Attributes:
        hosts: the gate's hosts.
        clock: the checker's clock.
        queues: the queues in which callers wait for turns.
        permissions: checks URLs against robots.txt.
        counts: the counters, keyed by their names in `GateStats`.
        seconds_waited: the total time that callers have spent waiting for turns.
        under_way: the open turns, by host.
    """

    def __init__(
        self,
        answers: Answers,
        renewals: Renewals,
        *,
        agent: Agent,
        hosts: Hosts,
        ledger: Ledger,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.seconds_waited: float = 0.0
        self.under_way: dict[str, list[Claim]] = {}
        self._policy = renewals.policy
        self.hosts: Hosts = hosts
        self.clock: Clock = answers.clock
        self.queues: Queues = Queues(
            ledger, hosts, clock=self.clock, on_overdue=self._drop_overdue
        )
        self.permissions: Permissions = Permissions(
            answers, renewals, agent=agent, hosts=hosts, queues=self.queues
        )

    def check_open(self) -> None:
        """Raise a RuntimeError if the gate is closed."""
        if self.queues.is_closed:
            raise RuntimeError("the gate is closed")

    async def enter(self, claim: Claim, owner: object) -> None:
        """Start the turn unless a schedule already has.

        Raises the same errors as `Turn.__aenter__`.
        """
        if claim.is_entered:
            raise RuntimeError("expected an unused turn, got one already entered")
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
        """Wait for robots.txt and the host; raises the same errors as `enter`."""
        self.check_open()
        asked_at = self.clock.monotonic()
        try:
            await self._begin(claim, asked_at + claim.patience)
        except DisallowedError:
            self.counts["disallowed"] += 1
            raise
        except TurnNotInTimeError:
            self.check_open()
            raise
        finally:
            self.seconds_waited += self.clock.monotonic() - asked_at
        self.counts["turns"] += 1

    async def end(self, claim: Claim, end: TurnEnd) -> None:
        """End an open turn."""
        grant = cast("Grant", claim.grant)
        claim.grant = None
        self._remove(claim, grant.host)
        if end.is_incident:
            self.counts["incidents"] += 1
        cause, seconds = claim.cause, claim.retry_after
        await self.queues.end(grant, end, cause=cause, retry_after=seconds)

    async def give_back(self, claim: Claim) -> None:
        """End an open turn if no task has entered it."""
        if claim.grant is not None and not claim.is_entered:
            await self.end(claim, TurnEnd.UNUSED)

    def seconds_asked_for(self, value: str) -> float | None:
        """The Retry-After `value` in seconds; `None` if it is invalid."""
        headers = {"retry-after": value}
        return retry_after(headers, now=self.clock.now(), policy=self._policy)

    async def _begin(self, claim: Claim, deadline: float) -> None:
        origin, answer = self.permissions.at_once(claim.url)
        place = Place(self.hosts.host(claim.url, origin))
        self.queues.join(place)
        try:
            permission = await self.permissions.permission(
                claim.url,
                place,
                origin=origin,
                answer=answer,
                deadline=deadline,
                standing=claim.standing,
            )
            await self._wait_in(place, claim, permission, deadline)
            if place.event is None or self.permissions.is_in_force(permission):
                return  # nothing has changed
            # The turn keeps its place in the queue. The second result is used even if
            # it goes stale during the wait, because the delay may be longer than the
            # freshness lifetime.
            await self.end(claim, TurnEnd.UNUSED)
            _, answer = self.permissions.at_once(claim.url)
            permission = await self.permissions.permission(
                claim.url, place, origin=origin, answer=answer, deadline=deadline
            )
            await self._wait_in(place, claim, permission, deadline)
        finally:
            self.queues.leave(place)

    async def _wait_in(
        self, place: Place, claim: Claim, permission: Permission, deadline: float
    ) -> None:
        """Start a turn once its `place` is first in the queue and the host is ready."""
        self.hosts.learn(place.host, permission.origin, permission.rules)
        claim.grant = await self.queues.grant(
            place,
            deadline=deadline,
            before_wait=lambda host: self._check_waits_for_others(claim, host),
        )
        claim.began_at = self.clock.monotonic()
        self.under_way.setdefault(place.host, []).append(claim)

    def _check_waits_for_others(self, claim: Claim, host: str) -> None:
        """Refuse to wait if the owner of `claim` already holds all turns for `host`."""
        own = sum(turn.owner == claim.owner for turn in self.under_way.get(host, ()))
        is_probing = own > 0 and self.queues.status(host).state is HostState.PROBING
        if is_probing or own >= self.hosts.pace(host).max_at_once:
            raise RuntimeError(
                f"expected the turn for {host!r} to end before its task or thread"
                " requests another one, because that would be a deadlock"
            )

    def _drop_overdue(self, host: str, count: int) -> None:
        """Count and drop overdue turns for `host`, `count` of which have just ended."""
        self.counts["overdue"] += count
        began_before = self.clock.monotonic() - self.hosts.max_turn_seconds
        for claim in list(self.under_way.get(host, ())):
            if claim.began_at <= began_before:
                self._remove(claim, host)

    def _remove(self, claim: Claim, host: str) -> None:
        claims = self.under_way.get(host, [])
        if claim in claims:
            claims.remove(claim)
        if not claims:
            self.under_way.pop(host, None)


def _status_and_retry_after(response: object) -> tuple[int | None, str | None]:
    """The status of `response`, and its Retry-After or `None`."""
    status = getattr(response, "status_code", getattr(response, "status", None))
    headers = getattr(response, "headers", None)
    if status is None or headers is None:
        raise TypeError(
            f"expected a response with status and headers, got {response!r}"
        )
    return status, ", ".join(header_values(headers, "retry-after")) or None


def _is_valid(status: object) -> bool:
    """Whether `status` is `None` or has three digits."""
    if isinstance(status, bool) or not isinstance(status, int | None):
        raise TypeError(f"expected status to be an int, got {status!r}")
    return status is None or 100 <= status <= 999  # noqa: PLR2004 (three digits)
