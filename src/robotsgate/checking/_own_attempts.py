"""A checker's own failed attempts, and its pauses after failures of its machine.

No network and no clock: the time is an argument.

An attempt without a response is current only for the checker that made it; and if our
own machine could not send a request, nothing is known about the origin at all, so the
checker only pauses:

    our machine fails ──▶ 5 s ──▶ 10 s ──▶ … ──▶ `retry_max`
                 ▲          └─ a request to this origin leaves our machine: no pause
                 └─ a request to any other origin does: 5 s again
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cachetools import LRUCache

from robotsgate.caching._entry import LARGEST_SKEW, BackOff, current_until_for

if TYPE_CHECKING:
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._outcome import Outcome

# More than in memory, where live origins evict dead ones.
_PER_ORIGIN_IN_MEMORY = 10

_FIRST_PAUSE_SECONDS = 5.0


class Pause(NamedTuple):
    """A pause because our own machine could not send a request.

    Attributes:
        failure: what it lacked.
        since: when the pause began, in epoch seconds.
        seconds: how long it lasts.
        sent_before: how many requests had left our machine before it.
    """

    failure: Outcome
    since: float
    seconds: float
    sent_before: int

    @property
    def until(self) -> float:
        """When the pause ends, in epoch seconds."""
        return self.since + self.seconds

    def is_on(self, now: float) -> bool:
        """Whether it lasts at `now`; a clock that was set back ends it."""
        return self.since - LARGEST_SKEW <= now < self.until


class OwnAttempts:
    """One checker's failed attempts and pauses, for a limited number of origins."""

    def __init__(self, *, max_origins: int, longest_pause: float) -> None:
        """Start empty.

        Args:
            max_origins: the maximum number of origins in memory, ≥ 1.
            longest_pause: the longest pause, in seconds.
        """
        size = _PER_ORIGIN_IN_MEMORY * max_origins
        self._back_offs: LRUCache[str, BackOff] = LRUCache(size)
        self._pauses: LRUCache[str, Pause] = LRUCache(size)
        self._longest_pause = longest_pause
        self._sent = 0

    def is_current(self, entry: Entry, now: float) -> bool:
        """Whether the checker can use `entry` at `now` without a fetch of its own."""
        return now < self.current_until(entry, now)

    def current_until(self, entry: Entry, now: float) -> float:
        """Until when that is so; -inf if it is not so at `now`."""
        own = None if entry.outage is None else self._back_offs.get(entry.origin)
        return current_until_for(entry, now, own)

    def pause(self, origin: str, now: float) -> Pause | None:
        """The pause for `origin` at `now`, if there is one."""
        pause = self._pauses.get(origin)
        if pause is not None and pause.sent_before < self._sent:
            pause = pause._replace(seconds=min(pause.seconds, _FIRST_PAUSE_SECONDS))
        return pause if pause is not None and pause.is_on(now) else None

    def begin_pause(self, origin: str, failure: Outcome, now: float) -> Pause:
        """Pause for `origin`, twice as long as the last time if nothing was sent since.

        A refresh during a pause does not lengthen it.
        """
        last = self._pauses.get(origin)
        seconds = _FIRST_PAUSE_SECONDS
        if last is not None and last.sent_before == self._sent:
            seconds = last.seconds if last.is_on(now) else 2 * last.seconds
        failure = replace(failure, cause=None)  # its frames take up kilobytes
        seconds = min(seconds, self._longest_pause)
        pause = Pause(failure, now, seconds, self._sent)
        self._pauses[origin] = pause
        return pause

    def forget(self, origin: str) -> None:
        """Forget the back-off and the pause for `origin`."""
        self._back_offs.pop(origin, None)
        self._pauses.pop(origin, None)

    def note(self, entry: Entry, now: float) -> None:
        """Note that an attempt left our machine, and led to `entry` at `now`."""
        self._sent += 1
        self._pauses.pop(entry.origin, None)
        outage = entry.outage
        if outage is None or outage.has_response:
            self._back_offs.pop(entry.origin, None)
        else:
            self._back_offs[entry.origin] = BackOff(now, outage.retry_at)
