"""Begins and ends turns: the right to make one request to a host.

    new ──► wait for robots.txt ──► wait for the host ──► begun ──► ended
                │     ▲                    │
                │     └── it has expired during the wait
                ▼                          ▼
        DisallowedError            TurnNotInTimeError

A turn keeps its place in the queue of its host from the start, so turns come in the
order of arrival. `Turn` is what callers see; `Claim` is what the gate knows of it.

Longer than other modules, because `Turn` is public: a third is its docstrings.
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
from robotsgate.politeness._events import RetryAfterIgnored, TurnsOverdue
from robotsgate.politeness._host_record import HostState, TurnEnd
from robotsgate.politeness._hosts import Place, Queues
from robotsgate.politeness._permissions import Permissions
from robotsgate.robotstxt._headers import header_values

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.caching._question import Agent
    from robotsgate.caching._standing import Standing
    from robotsgate.checking._answers import Answers
    from robotsgate.checking._renewal import Renewals
    from robotsgate.checking._reporting import Listener
    from robotsgate.politeness._events import GateEvent
    from robotsgate.politeness._hosts import Hosts
    from robotsgate.politeness._ledger import Grant, Ledger
    from robotsgate.politeness._permissions import Permission
    from robotsgate.urls._origin import URLLike

# A hostile server can send hundreds of kilobytes.
_LONGEST_VALUE = 200

_SAYS_NOTHING = (DisallowedError, TurnNotInTimeError)


class Turn:
    """The right to make one request to a host; `PolitenessGate.turn` gives it.

    Use it as an async context manager around the request and the reading of its
    response.

    Attributes:
        url: the one to fetch, as the caller gave it.
    """

    __slots__ = ("_claim", "_turns", "url")

    def __init__(self, turns: Turns, claim: Claim) -> None:
        self.url = claim.url
        self._turns = turns
        self._claim = claim

    async def __aenter__(self) -> Self:
        """Wait until the host may be asked.

        Raises:
            DisallowedError: robots.txt does not let the agent fetch the URL.
            TurnNotInTimeError: the turn does not come within the patience.
            InvalidURLError: the URL names no origin.
            UnsupportedError: the scheme is ftp, and there is a client.
            RuntimeError: the gate is closed, or the turn was entered before, or the
                same task has the turn that this one would wait for.
        """
        await self._turns.enter(self._claim, task_id())
        return self

    async def __aexit__(self, _kind: object, error: object, _traceback: object) -> None:
        """End the turn; any task may call it.

        If nothing was reported, an exception says that the host failed. A
        `DisallowedError`, a `TurnNotInTimeError`, a cancellation or a group of these
        says nothing about the host.
        """
        claim = self._claim
        end = claim.end
        if end is None and error is not None:
            if isinstance(error, BaseExceptionGroup):
                error = error.split(_SAYS_NOTHING)[1]
            is_failure = isinstance(error, Exception)
            is_failure = is_failure and not isinstance(error, _SAYS_NOTHING)
            end = TurnEnd.INCIDENT if is_failure else TurnEnd.UNJUDGED
        try:
            await self._turns.end(claim, end or TurnEnd.GOOD)
        finally:
            claim.close()

    def __del__(self) -> None:
        """Let a schedule know that nobody can enter its turn any more."""
        claim = self._claim
        if claim.on_over is not None:
            with suppress(RuntimeError):  # the event loop has ended
                claim.call_soon(claim.close)

    def leave_task(self) -> None:
        """Let the task that has entered the turn wait for another turn of the host.

        For a response that is closed later, in another task, which then ends the turn.
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
        """Say how the request went; the last report counts.

        After 429, 503 and failures, the gate leaves the host alone for a while, then
        asks it more slowly.

        Args:
            response: that of any HTTP client, with `status_code` or `status`, and
                `headers`; in place of the other arguments.
            status: that of the response, 100 to 999.
            retry_after: the header, if the response has one: seconds or a date. A
                value that is neither is ignored, and an event says so.
            failure: whether there was no usable response, after a timeout for example.

        Raises:
            RuntimeError: the turn has not begun, or is over.
            TypeError: `response` has no status or headers, `status` is not an int, or
                `retry_after` not a str.
            ValueError: `status` is not within 100 to 999.
        """
        claim = self._claim
        if claim.grant is None or not claim.is_entered:
            raise RuntimeError("expected a report during the turn, got one outside it")
        if response is not None:
            status, retry_after = _status_and_retry_after(response)
        _check_status(status)
        if not (retry_after is None or isinstance(retry_after, str)):
            raise TypeError(
                f"expected retry_after to be a str (the header), got {retry_after!r}"
            )
        is_incident = failure or status in ASK_FOR_LESS
        claim.end = TurnEnd.INCIDENT if is_incident else TurnEnd.GOOD
        claim.retry_after = None
        if is_incident and retry_after is not None:
            host = claim.grant.host
            claim.retry_after = self._turns.seconds_asked_for(host, retry_after)


class Claim:
    """What the gate knows of one turn.

    Attributes:
        url: the one to fetch, as the caller gave it.
        patience: seconds for all waits, ≥ 0; may be infinite.
        grant: what the ledger gave; `None` outside of the turn.
        began_at: when the turn began, by `Clock.monotonic`.
        is_entered: whether a task or thread has entered the turn.
        owner: names that task or thread; `None` before, and once it has left the turn.
        end: what was reported; `None` if nothing.
        retry_after: the seconds that were reported; `None` if none.
        standing: how the origin stood after a fetch for this turn, if there was one.
        on_over: called once, when nothing more can come of the turn.
        call_soon: calls a function in the event loop; may be called in any thread.
    """

    __slots__ = (
        "began_at",
        "call_soon",
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
        self.url = url
        self.patience = patience
        self.grant: Grant | None = None
        self.began_at = -math.inf
        self.is_entered = False
        self.owner: object = None
        self.end: TurnEnd | None = None
        self.retry_after: float | None = None
        self.standing: Standing | None = None
        self.on_over: Callable[[], object] | None = None
        self.call_soon: Callable[[Callable[[], object]], object]

    def close(self) -> None:
        """The turn has ended, or never begins."""
        on_over, self.on_over = self.on_over, None
        if on_over is not None:
            on_over()


class Turns:
    """The turns of one gate.

    Attributes:
        queues: those in which callers wait for turns.
        permissions: what robots.txt permits.
        counts: by the names of `GateStats`.
        seconds_waited: how long callers have waited for them, all together.
        under_way: by host, those that have begun and not ended.
    """

    def __init__(
        self,
        answers: Answers,
        renewals: Renewals,
        *,
        agent: Agent,
        hosts: Hosts,
        ledger: Ledger,
        listener: Listener[GateEvent],
    ) -> None:
        self.counts: Counter[str] = Counter()
        self.seconds_waited = 0.0
        self.under_way: dict[str, list[Claim]] = {}
        self._policy = renewals.policy
        self._hosts = hosts
        self._listener = listener
        self._clock = answers.clock
        self.queues = Queues(
            ledger, hosts, clock=self._clock, on_overdue=self._report_overdue
        )
        self.permissions = Permissions(
            answers, renewals, agent=agent, hosts=hosts, queues=self.queues
        )

    def check_open(self) -> None:
        """Refuse to begin anything, by a RuntimeError, once the gate is closed."""
        if self.queues.is_closed:
            raise RuntimeError("the gate is closed")

    async def enter(self, claim: Claim, owner: object) -> None:
        """Begin a turn, unless a schedule has begun it; raises as `Turn.__aenter__`."""
        if claim.is_entered:
            raise RuntimeError(
                "expected an unused turn, got one that was already entered"
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
        """Wait for robots.txt and the host, then begin a turn.

        Raises:
            DisallowedError: robots.txt does not let the agent fetch the URL.
            TurnNotInTimeError: the turn does not come within the patience.
            RuntimeError: the gate is closed, or the owner of the turn has the turn that
                this one would wait for.
        """
        self.check_open()
        asked_at = self._clock.monotonic()
        try:
            await self._begin(claim, asked_at + claim.patience)
        except DisallowedError:
            self.counts["disallowed"] += 1
            raise
        except TurnNotInTimeError:
            self.check_open()
            raise
        finally:
            self.seconds_waited += self._clock.monotonic() - asked_at
        self.counts["turns"] += 1

    async def end(self, claim: Claim, end: TurnEnd) -> None:
        """End a turn that has begun."""
        grant = cast("Grant", claim.grant)
        claim.grant = None
        self._remove(claim, grant.host)
        if end is TurnEnd.INCIDENT:
            self.counts["incidents"] += 1
        await self.queues.end(grant, end, retry_after=claim.retry_after)

    async def give_back(self, claim: Claim) -> None:
        """End a turn that has begun, but that no task has entered."""
        if claim.grant is not None and not claim.is_entered:
            await self.end(claim, TurnEnd.UNUSED)

    def seconds_asked_for(self, host: str, value: str) -> float | None:
        """Seconds that the Retry-After `value` asks for; `None` if it is not valid."""
        headers = {"retry-after": value}
        seconds = retry_after(headers, now=self._clock.now(), policy=self._policy)
        if seconds is None:
            event = RetryAfterIgnored(host=host, value=value[:_LONGEST_VALUE])
            self._listener.tell(event)
        return seconds

    async def _begin(self, claim: Claim, deadline: float) -> None:
        origin, answer = self.permissions.at_once(claim.url)
        place = Place(self._hosts.host(claim.url, origin))
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
            # The turn keeps its place. The next answer is obeyed even if it is stale by
            # then, because the delay may be longer than the freshness lifetime.
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
        """Begin a turn once its `place` is the first, and the host may be asked."""
        self._hosts.learn(place.host, permission.origin, permission.rules)
        claim.grant = await self.queues.grant(
            place,
            deadline=deadline,
            before_wait=lambda host: self._check_waits_for_others(claim, host),
        )
        claim.began_at = self._clock.monotonic()
        self.under_way.setdefault(place.host, []).append(claim)

    def _check_waits_for_others(self, claim: Claim, host: str) -> None:
        """Refuse to wait if the owner of `claim` has all the turns of `host`."""
        own = sum(turn.owner == claim.owner for turn in self.under_way.get(host, ()))
        is_probing = own > 0 and self.queues.status(host).state is HostState.PROBING
        if is_probing or own >= self._hosts.pace(host).max_at_once:
            raise RuntimeError(
                f"expected the turn of {host!r} to end before its task or thread"
                " requests another one, because that would be a deadlock"
            )

    def _report_overdue(self, host: str, count: int) -> None:
        """`count` turns of `host` were ended because they were overdue."""
        self.counts["overdue"] += count
        self._listener.tell(TurnsOverdue(host=host, count=count))
        began_before = self._clock.monotonic() - self._hosts.max_turn_seconds
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
    """The status of `response`, and its Retry-After; `None` if there is none."""
    status = getattr(response, "status_code", getattr(response, "status", None))
    headers = getattr(response, "headers", None)
    if status is None or headers is None:
        raise TypeError(
            f"expected a response with status and headers, got {response!r}"
        )
    return status, ", ".join(header_values(headers, "retry-after")) or None


def _check_status(status: object) -> None:
    if status is None:
        return
    if isinstance(status, bool) or not isinstance(status, int):
        raise TypeError(f"expected status to be an int, got {status!r}")
    if not 100 <= status <= 999:  # noqa: PLR2004 (three digits)
        raise ValueError(f"expected a three-digit status, got {status!r}")
