"""Lets each fetch of a robots.txt wait for the turn of its host."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from robotsgate.politeness._queues import Place
from robotsgate.politeness._schedule import TurnEnd

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from robotsgate._clock import Clock
    from robotsgate.checking._gated import RenewalResult
    from robotsgate.politeness._hosts import Hosts
    from robotsgate.politeness._queues import Queues
    from robotsgate.urls._origin import Origin

ASK_FOR_LESS = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
"""The statuses by which a host asks for fewer requests."""


class FetchTurns:
    """The turns of the fetches of one checker; redirects are part of a fetch."""

    def __init__(self, queues: Queues, hosts: Hosts, *, clock: Clock) -> None:
        """Wait in `queues`.

        Args:
            queues: those in which callers wait for pages, too.
            hosts: tell which host an origin belongs to.
            clock: tells the time.
        """
        self._queues = queues
        self._hosts = hosts
        self._clock = clock

    async def in_turn(
        self,
        origin: Origin,
        fetch: Callable[[], Awaitable[RenewalResult]],
        *,
        patience: float,
    ) -> RenewalResult:
        """As `robotsgate.checking._gated.FetchTurns.in_turn`."""
        place = Place(self._host(origin), is_robots_txt=True)
        deadline = self._clock.monotonic() + patience
        self._queues.join(place)
        try:
            grant = await self._queues.grant(place, deadline=deadline)
        finally:
            self._queues.leave(place)
        end, retry_after = TurnEnd.UNJUDGED, None
        try:
            renewed = await fetch()
            end, retry_after = _end_of(renewed, self._clock.now())
        finally:
            await self._queues.end(grant, end, retry_after=retry_after)
        return renewed

    def ready_at(self, origin: Origin) -> float:
        """A lower bound of when a fetch may begin, epoch seconds."""
        seconds = self._queues.seconds_until_ready(self._host(origin), ahead=0)
        return self._clock.now() + seconds

    def _host(self, origin: Origin) -> str:
        return self._hosts.host(origin.robots_url, str(origin))


def _end_of(renewed: RenewalResult, now: float) -> tuple[TurnEnd, float | None]:
    """What a fetch says about the host, and for how many seconds it asks to wait."""
    standing, is_fetched = renewed
    if not is_fetched:
        return TurnEnd.UNUSED, None
    answer, outage = standing.entry.answer, standing.entry.outage
    if outage is None:
        status = None if answer is None else answer.status
    else:
        status = outage.status if outage.failure is None else None
    if status in ASK_FOR_LESS:
        return TurnEnd.INCIDENT, None if outage is None else outage.retry_at - now
    return (TurnEnd.UNJUDGED if status is None else TurnEnd.GOOD), None
