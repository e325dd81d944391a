"""Lets callers that wait for a host go in their order of arrival.

The first caller asks the ledger, and the others wait for the first. Fetches of a
robots.txt go before pages. Each host has a queue of its own.
Must never decide when a request may start: `_schedule.py` does.
"""

from __future__ import annotations

import math
from collections import deque
from typing import TYPE_CHECKING

import anyio

from robotsgate.errors import TurnNotInTimeError
from robotsgate.politeness._ledger import Grant

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate._clock import Clock
    from robotsgate.politeness._hosts import Hosts
    from robotsgate.politeness._ledger import Ledger, LedgerStatus, Wait
    from robotsgate.politeness._schedule import TurnEnd


class Place:
    """A place in the queue of a host.

    Attributes:
        host: the one that the caller waits for.
        is_robots_txt: whether it is for the fetch of a robots.txt.
        event: wakes the caller; `None` before the first wait.
    """

    __slots__ = ("event", "host", "is_robots_txt")

    def __init__(self, host: str, *, is_robots_txt: bool = False) -> None:
        """A place that has not joined a queue."""
        self.host = host
        self.is_robots_txt = is_robots_txt
        self.event: anyio.Event | None = None

    def wake(self) -> None:
        """Let the caller look again."""
        if self.event is not None:
            self.event.set()


class Queues:
    """The queues of all hosts of one gate; `len` tells how many callers wait.

    Attributes:
        is_closed: whether no caller gets a turn any more.
    """

    def __init__(
        self,
        ledger: Ledger,
        hosts: Hosts,
        *,
        clock: Clock,
        on_overdue: Callable[[str, int], None],
    ) -> None:
        """Make empty queues.

        Args:
            ledger: gives the right to ask a host.
            hosts: tell their paces.
            clock: tells the time, and waits.
            on_overdue: called with a host, and how many of its turns were overdue.
        """
        self._ledger = ledger
        self._hosts = hosts
        self._clock = clock
        self._on_overdue = on_overdue
        self._queues: dict[str, deque[Place]] = {}
        self.is_closed = False

    def __len__(self) -> int:
        return sum(map(len, self._queues.values()))

    def length(self, host: str) -> int:
        """How many callers wait for `host`."""
        return len(self._queues.get(host, ()))

    def status(self, host: str) -> LedgerStatus:
        """How `host` stands, as far as this process knows."""
        return self._ledger.peek(host, self._hosts.pace(host))

    def seconds_until_ready(self, host: str, *, ahead: int) -> float:
        """The least wait for `host`, seconds, with `ahead` other callers before."""
        delay = self._hosts.pace(host).delay  # what incidents have added may wear off
        return self.status(host).wait_seconds + ahead * delay

    def join(self, place: Place) -> None:
        """Put `place` last, but a robots.txt before all pages; `leave` must follow."""
        queue = self._queues.setdefault(place.host, deque())
        if not place.is_robots_txt:
            queue.append(place)
            return
        before = sum(1 for other in queue if other.is_robots_txt)
        queue.insert(before, place)

    def leave(self, place: Place) -> None:
        """Give up `place`, and let the others go on."""
        queue = self._queues[place.host]
        queue.remove(place)
        if not queue:
            del self._queues[place.host]
        self._wake_first(place.host)

    async def grant(
        self,
        place: Place,
        *,
        deadline: float,
        before_wait: Callable[[str], None] | None = None,
    ) -> Grant:
        """The right to ask the host of `place`, as soon as it may be asked.

        Args:
            place: one that has joined.
            deadline: when the caller stops waiting, by `Clock.monotonic`; may be
                infinite.
            before_wait: called with the host before any wait.

        Raises:
            TurnNotInTimeError: the turn comes after `deadline`, or never, because the
                gate is closed.
        """
        while not self.is_closed:
            queue = self._queues[place.host]
            if queue[0] is place:
                answer = await self._ask(place)
                if isinstance(answer, Grant):
                    return answer
                least = longest = answer.seconds
            else:
                longest = math.inf
                least = 0.0 if deadline == math.inf else self._least_wait(place)
            left = deadline - self._clock.monotonic()
            if left <= 0 or least > left:
                raise self._not_in_time(place.host, least)
            if before_wait is not None:
                before_wait(place.host)
            place.event = anyio.Event()
            await self._clock.wait(min(longest, left), event=place.event)
        raise self._not_in_time(place.host, 0.0)

    def not_in_time(self, place: Place) -> TurnNotInTimeError:
        """The error for a caller that stops waiting in `place`."""
        return self._not_in_time(place.host, self._least_wait(place))

    async def end(
        self, grant: Grant, end: TurnEnd, *, retry_after: float | None = None
    ) -> None:
        """End the request that `grant` began, even if the task is cancelled."""
        with anyio.CancelScope(shield=True):
            await self._ledger.end(grant, end, retry_after=retry_after)
        self._wake_first(grant.host)

    def close(self) -> None:
        """Refuse all callers that wait, and all that come later."""
        self.is_closed = True
        for queue in self._queues.values():
            for place in queue:
                place.wake()

    async def _ask(self, place: Place) -> Grant | Wait:
        answer = await self._ledger.start(
            place.host,
            self._hosts.pace(place.host),
            is_robots_txt=place.is_robots_txt,
        )
        if answer.overdue:
            self._on_overdue(place.host, answer.overdue)
        return answer

    def _least_wait(self, place: Place) -> float:
        ahead = self._queues[place.host].index(place)
        return self.seconds_until_ready(place.host, ahead=ahead)

    def _not_in_time(self, host: str, seconds: float) -> TurnNotInTimeError:
        return TurnNotInTimeError(
            f"expected a turn of {host!r} in time, got one in {seconds:.1f} s or later",
            ready_at=self._clock.now() + seconds,
        )

    def _wake_first(self, host: str) -> None:
        queue = self._queues.get(host)
        if queue is not None:
            queue[0].wake()
