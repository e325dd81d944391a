"""Begins and ends the turns of one gate."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakSet

from robotsgate.caching._freshness import retry_after
from robotsgate.caching._verdict import DisallowedError
from robotsgate.errors import TurnNotInTimeError
from robotsgate.politeness._events import RetryAfterIgnored, TurnsOverdue
from robotsgate.politeness._queues import Place, Queues
from robotsgate.politeness._schedule import HostState, TurnEnd

if TYPE_CHECKING:
    import anyio

    from robotsgate.checking._gated import GatedOrigins, Leave
    from robotsgate.checking._in_order import ReadAhead
    from robotsgate.checking._listener import Listener
    from robotsgate.politeness._events import GateEvent
    from robotsgate.politeness._hosts import Hosts
    from robotsgate.politeness._ledger import Grant, Ledger
    from robotsgate.politeness._turn import Turn

# A hostile server can send hundreds of kilobytes.
_LONGEST_VALUE = 200


class Turns:
    """The turns of one gate.

    Attributes:
        origins: answer by robots.txt.
        hosts: tell which host a URL belongs to.
        listener: is told what happens.
        clock: tells the time, and waits.
        queues: the queues in which callers wait for turns.
        counts: by the names of `GateStats`.
        under_way: by host, those that have begun and not ended.
        schedules: what each `TurnSchedule` has read ahead.
    """

    def __init__(
        self,
        origins: GatedOrigins,
        hosts: Hosts,
        ledger: Ledger,
        listener: Listener[GateEvent],
    ) -> None:
        """Begin without turns.

        Args:
            origins: answer by robots.txt.
            hosts: tell which host a URL belongs to.
            ledger: gives the right to ask a host.
            listener: is told what happens.
        """
        self.origins = origins
        self.hosts = hosts
        self.listener = listener
        self.clock = origins.clock
        self.queues = Queues(
            ledger, hosts, clock=self.clock, on_overdue=self.on_overdue
        )
        self.counts: Counter[str] = Counter()
        self.under_way: dict[str, list[Turn]] = {}
        self.schedules: WeakSet[ReadAhead[Any, Any]] = WeakSet()

    def close(self) -> None:
        """Refuse all callers that wait, and all that come later."""
        self.queues.close()
        for ahead in self.schedules:
            ahead.wake()

    def check_open(self) -> None:
        """Refuse to begin anything once the gate is closed.

        Raises:
            RuntimeError: the gate is closed.
        """
        if self.queues.is_closed:
            raise RuntimeError("the gate is closed")

    async def begin(self, turn: Turn, *, patience: float) -> None:
        """Wait for robots.txt and the host, then begin `turn`.

        Args:
            turn: one that has not begun.
            patience: seconds for both waits; 0 or less: none.

        Raises:
            DisallowedError: robots.txt does not let the agent fetch the URL.
            TurnNotInTimeError: the turn does not come within the patience.
            RuntimeError: the gate is closed, or the task of `turn` has the turn that
                this one would wait for.
        """
        self.check_open()
        deadline = math.inf
        if patience < math.inf:
            deadline = self.clock.monotonic() + patience
        try:
            await self._begin(turn, deadline)
        except DisallowedError:
            self.check_open()  # closing puts fetches off, which may look like a refusal
            self.counts["disallowed"] += 1
            raise
        except TurnNotInTimeError:
            self.check_open()
            raise
        self.counts["turns"] += 1

    async def end(
        self, turn: Turn, end: TurnEnd, *, retry_after: float | None = None
    ) -> None:
        """End `turn`, which has begun."""
        grant = cast("Grant", turn.grant)
        turn.grant = None
        self._remove(turn, grant.host)
        if end is TurnEnd.INCIDENT:
            self.counts["incidents"] += 1
        await self.queues.end(grant, end, retry_after=retry_after)

    def is_overdue(self, turn: Turn) -> bool:
        """Whether `turn` counts as ended."""
        age = self.clock.monotonic() - turn.began_at
        return age >= self.hosts.max_turn_seconds

    def on_overdue(self, host: str, count: int) -> None:
        """`count` turns of `host` were ended because they were overdue."""
        self.counts["overdue"] += count
        self.listener.tell(TurnsOverdue(host=host, count=count))
        turns = self.under_way.get(host, [])
        for turn in list(filter(self.is_overdue, turns)):
            self._remove(turn, host)

    def retry_after(self, host: str, value: str) -> float | None:
        """Seconds that the Retry-After `value` asks for; `None` if it is not valid."""
        headers = {"retry-after": value}
        now = self.clock.now()
        seconds = retry_after(headers, now=now, policy=self.origins.policy)
        if seconds is None:
            event = RetryAfterIgnored(host=host, value=value[:_LONGEST_VALUE])
            self.listener.tell(event)
        return seconds

    async def _begin(self, turn: Turn, deadline: float) -> None:
        answer = self.origins.leave_at_once(turn.url)
        if answer:
            origin = answer.origin
        else:
            origin = str(self.origins.question(turn.url).origin)
        place = Place(self.hosts.host(turn.url, origin))
        self.queues.join(place)
        try:
            leave = answer or await self._leave(
                turn, place, deadline, is_counted=answer is False
            )
            await self._wait_in(place, turn, leave, deadline)
            if place.event is None or self.origins.is_in_force(leave):
                return  # nothing has changed
            answer = self.origins.leave_at_once(turn.url)
            # The turn keeps its place. The next answer is obeyed even if it is stale by
            # then, because the delay may be longer than the freshness lifetime.
            await self.end(turn, TurnEnd.UNUSED)
            leave = answer or await self._leave(
                turn, place, deadline, is_counted=answer is False
            )
            await self._wait_in(place, turn, leave, deadline)
        finally:
            self.queues.leave(place)

    async def _leave(
        self, turn: Turn, place: Place, deadline: float, *, is_counted: bool
    ) -> Leave:
        """The leave that robots.txt gives, which is fetched if need be."""
        left = deadline - self.clock.monotonic()

        async def wait(event: anyio.Event) -> None:
            await self.clock.wait(left, event=event)

        try:
            return await self.origins.leave(
                self.origins.question(turn.url),
                wait=wait if left > 0 else None,
                is_counted=is_counted,
            )
        except TimeoutError:
            raise self.queues.not_in_time(place) from None

    async def _wait_in(
        self, place: Place, turn: Turn, leave: Leave, deadline: float
    ) -> None:
        """Begin `turn` once its `place` is the first, and the host may be asked."""
        self.hosts.learn(place.host, leave)
        turn.grant = await self.queues.grant(
            place,
            deadline=deadline,
            before_wait=lambda host: self._check_waits_for_others(turn, host),
        )
        turn.began_at = self.clock.monotonic()
        self.under_way.setdefault(place.host, []).append(turn)

    def _check_waits_for_others(self, turn: Turn, host: str) -> None:
        """Refuse to wait for a turn that can end only after the wait.

        Raises:
            RuntimeError: the task of `turn` has all the turns of `host`.
        """
        own = sum(other.task is turn.task for other in self.under_way.get(host, ()))
        is_probing = own > 0 and self.queues.status(host).state is HostState.PROBING
        if is_probing or own >= self.hosts.pace(host).max_at_once:
            raise RuntimeError(
                f"expected the turn of {host!r} to end before the same task asks for"
                " another one, which would wait for itself"
            )

    def _remove(self, turn: Turn, host: str) -> None:
        turns = self.under_way.get(host, [])
        if turn in turns:
            turns.remove(turn)
        if not turns:
            self.under_way.pop(host, None)
