"""Renews origins from the store or, failing that, from their servers.

Each origin is renewed once for all callers. `caching` decides what the outcome of a
fetch means.
Each renewal is one flight:

    look in memory and the store ──► current: done, without a request
        │ not current
        ▼
    [lease] ──► another process is fetching: pause, look up again
        │ ours, or the store has no leases
        ▼
    fetch ──► our own machine failed: pause, nothing is kept
        │
        ├───► `Flight.interim`, for callers that only wait for the request
        ▼
    update the store and memory: done

An attempt without a response is current only for the checker that made it (see
`OwnAttempts`). If our own machine could not send a request, nothing is known about the
origin at all, so the checker only pauses:

    our machine fails ──▶ 5 s ──▶ 10 s ──▶ … ──▶ `retry_max`
                 ▲          └─ a request to this origin leaves our machine: no pause
                 └─ a request to any other origin does: 5 s again
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import anyio
from cachetools import LRUCache

from robotsgate._flights import FairLoop, Flights
from robotsgate.caching._entry import (
    LARGEST_SKEW,
    BackOff,
    by_our_clock,
    current_until_for,
    entry_after,
    entry_meanwhile,
    merge,
)
from robotsgate.caching._live import Standing
from robotsgate.caching._outcome import FailureKind, judge

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from robotsgate._clock import Clock
    from robotsgate._flights import Flight
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._live import LiveOrigins
    from robotsgate.caching._outcome import Outcome
    from robotsgate.caching._policy import Policy
    from robotsgate.checking._entries import Entries
    from robotsgate.checking._reporting import Reporter
    from robotsgate.fetching._robots_fetch import RobotsTxtFetcher
    from robotsgate.urls._url import Origin

# The intervals at which to poll the store while another process fetches. Most fetches
# take less than a second.
_SHORTEST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_PAUSE_FACTOR = 1.5

# Long enough for the lease of a process that has died, and for the next lease. If that
# has not expired by then, this process fetches without a lease.
_LONGEST_WAIT_IN_LEASES = 2

# `OwnAttempts` remembers this many times as many origins as memory holds, because dead
# origins are evicted from memory first.
_PER_ORIGIN_IN_MEMORY = 10

_FIRST_PAUSE_SECONDS = 5.0


class Renewal(NamedTuple):
    """The origin's state, and whether this renewal made a request."""

    standing: Standing
    is_fetched: bool


class Pause(NamedTuple):
    """A pause because our own machine could not send a request.

    `failure` says why, `since` is in epoch seconds, and `sent_before` is how many
    requests had left the machine before the pause.
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
    """What one checker alone knows, for a limited number of origins.

    Its failed attempts, its pauses, and how often an origin was forgotten.
    """

    def __init__(self, *, max_origins: int, longest_pause: float) -> None:
        size = _PER_ORIGIN_IN_MEMORY * max_origins
        self._back_offs: LRUCache[str, BackOff] = LRUCache(size)
        self._pauses: LRUCache[str, Pause] = LRUCache(size)
        self._forgets: LRUCache[str, int] = LRUCache(size)
        self._longest_pause = longest_pause
        self._sent = 0

    def is_current(self, entry: Entry, now: float) -> bool:
        """Whether the checker can use `entry` at `now` without a fetch of its own."""
        return now < self.current_until(entry, now)

    def current_until(self, entry: Entry, now: float) -> float:
        """When `entry` stops being current; -inf if it is not current at `now`."""
        own = None if entry.outage is None else self._back_offs.get(entry.origin)
        return current_until_for(entry, now, own)

    def pause(self, origin: str, now: float) -> Pause | None:
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
        self._back_offs.pop(origin, None)
        self._pauses.pop(origin, None)
        self._forgets[origin] = self.times_forgotten(origin) + 1

    def times_forgotten(self, origin: str) -> int:
        """A number that changes when `origin` is forgotten.

        An entry that was read at another number must not be used.
        """
        return self._forgets.get(origin, 0)

    def note(self, entry: Entry, now: float) -> None:
        """Note that an attempt left our machine, and led to `entry` at `now`."""
        self._sent += 1
        self._pauses.pop(entry.origin, None)
        outage = entry.outage
        if outage is None or outage.has_response:
            self._back_offs.pop(entry.origin, None)
        else:
            self._back_offs[entry.origin] = BackOff(now, outage.retry_at)


class Renewals:
    """The renewals of one checker's origins."""

    def __init__(
        self,
        live: LiveOrigins,
        entries: Entries,
        fetcher: RobotsTxtFetcher,
        reporter: Reporter,
        *,
        own: OwnAttempts,
        policy: Policy,
        clock: Clock,
        max_concurrent_fetches: int,
    ) -> None:
        self.flights: Flights[Renewal] = Flights()
        self.live = live
        self.reporter = reporter
        self.policy = policy
        self.clock = clock
        self.max_concurrent_fetches = max_concurrent_fetches
        self._entries = entries
        self._fetcher = fetcher
        self._own = own
        self._places = anyio.Semaphore(max_concurrent_fetches, fast_acquire=True)
        self._loading = anyio.Lock()

    def check_scheme(self, origin: Origin) -> None:
        """Raise if the caller's client cannot fetch from `origin`."""
        if origin.key not in self.live.overrides:
            self._fetcher.check_scheme(origin)

    def current(self, origin: Origin) -> Standing | None:
        """The state of `origin` if it is in memory; raises if it cannot be fetched."""
        standing = self.live.current(origin.key, self.clock.now())
        if standing is None:
            self._fetcher.check_scheme(origin)
        return standing

    async def standing(self, origin: Origin) -> Standing:
        """The state of `origin`, renewed if necessary."""
        standing = self.current(origin)
        if standing is not None:
            return standing
        work = partial(self._renew, origin)
        return (await self.flights.result_of(origin.key, work)).standing

    async def look_up(self, origin: Origin) -> Standing | None:
        """The state of `origin` from memory or the store, without a request.

        `None` if its robots.txt must be fetched. Call this only if `current` returns
        `None`.
        """
        self.flights.check_open()
        self.flights.check_loop()
        _, standing = await self._look_up(origin.key, self.clock.now())
        self.reporter.counts["store_hits"] += standing is not None
        return standing

    async def load(self, origins: Iterable[Origin]) -> None:
        """Load `origins` into memory with a single store lookup.

        Origins that are still not in memory afterwards must be renewed one by one. Only
        one call at a time loads origins, so that no origin is loaded twice.
        """
        self.flights.check_loop()
        async with self._loading:
            keys = [one.key for one in origins if one.key not in self.live.by_origin]
            times_forgotten = {key: self._own.times_forgotten(key) for key in keys}
            now = self.clock.now()
            entries = await self._entries.get_many(keys, now)
            loop = FairLoop(self.clock.monotonic)
            for entry in entries:
                key = entry.origin
                is_forgotten = times_forgotten[key] != self._own.times_forgotten(key)
                if not is_forgotten and key not in self.live.by_origin:
                    standing = self._admit_current(entry, now)
                    self.reporter.counts["store_hits"] += standing is not None
                await loop.after_item()

    def _admit_current(self, entry: Entry | None, now: float) -> Standing | None:
        """Add `entry` to memory, unless it must be fetched."""
        if entry is None or not self._own.is_current(entry, now):
            return None
        return self.live.admit(entry, now)

    def begin(self, origin: Origin) -> Flight[Renewal]:
        """Start renewing `origin` or join its renewal, without waiting for it.

        As soon as a request has been made, the flight's `interim` is its `Outcome`.
        """
        return self.flights.begin(origin.key, partial(self._renew, origin))

    async def refresh(self, origin: Origin) -> None:
        """Fetch `origin` even if it is fresh, unless it has an override.

        Joins a fetch that is already running.
        """
        self.check_scheme(origin)
        if origin.key in self.live.overrides:
            return
        work = partial(self._renew, origin, is_forced=True)
        while True:  # the running renewal may only have read the store
            if (await self.flights.result_of(origin.key, work)).is_fetched:
                return

    async def forget(self, origin: Origin) -> None:
        """Remove `origin` from memory and the store, without cancelling a fetch.

        A running renewal does not use the removed entry.
        """
        key = origin.key
        try:
            self._forget(key)
            await self._entries.delete(key)
        finally:
            self._forget(key)  # another task may have read it in the meantime

    def _forget(self, key: str) -> None:
        self.live.discard(key)
        self._own.forget(key)

    async def _renew(self, origin: Origin, *, is_forced: bool = False) -> Renewal:
        key, now = origin.key, self.clock.now()
        times_forgotten = self._own.times_forgotten(key)
        look_up = partial(self._look_up, key, is_forced=is_forced)
        known, standing = await look_up(now)
        if not is_forced:  # a refresh always fetches
            is_miss = standing is None
            self.reporter.counts["store_misses" if is_miss else "store_hits"] += 1
            pause = self._own.pause(key, now)
            if is_miss and pause is not None:
                standing = self._standing_meanwhile(key, known, pause, now)
        if standing is not None:
            return Renewal(standing, is_fetched=False)
        fetch = partial(self._fetch, origin, times_forgotten=times_forgotten)
        if self._entries.has_lease and not self._only_others_failed(known, now):
            return await self._with_lease(key, look_up, fetch)
        async with self._places:
            return await fetch(known)

    def _only_others_failed(self, known: Entry | None, now: float) -> bool:
        """Whether only other processes got no response; see `current_until_for`."""
        return (
            known is not None
            and known.is_current(now)
            and not self._own.is_current(known, now)
        )

    async def _with_lease(
        self,
        key: str,
        look_up: Callable[[float], Awaitable[tuple[Entry | None, Standing | None]]],
        fetch: Callable[[Entry | None], Awaitable[Renewal]],
    ) -> Renewal:
        """Call `fetch` unless another process in the fleet fetches for all of them."""
        began_at = self.clock.monotonic()
        seconds = _SHORTEST_PAUSE_SECONDS
        longest = _LONGEST_WAIT_IN_LEASES * self._entries.lease_seconds
        while True:
            async with self._places:
                is_over = self.clock.monotonic() - began_at >= longest
                if await self._entries.acquire(key) or is_over:
                    try:
                        # Another process may have fetched it in the meantime.
                        known, standing = await look_up(self.clock.now())
                        if standing is not None:
                            return Renewal(standing, is_fetched=False)
                        return await fetch(known)
                    finally:
                        await self._entries.release(key)
            self.reporter.counts["lease_waits"] += 1
            await self.clock.wait(seconds)
            seconds = min(_PAUSE_FACTOR * seconds, _LONGEST_PAUSE_SECONDS)
            now = self.clock.now()
            known, standing = await look_up(now)
            if standing is not None:
                return Renewal(standing, is_fetched=False)
            # Each attempt at a dead origin takes seconds, so all may try at once.
            if self._only_others_failed(known, now):
                async with self._places:
                    return await fetch(known)

    async def _look_up(
        self, key: str, now: float, *, is_forced: bool = False
    ) -> tuple[Entry | None, Standing | None]:
        """An origin's entry, merged from memory and the store, and its state.

        Reads the store even if the origin is in memory, because another process that
        shares the store may have fetched it in the meantime. There is no entry if the
        origin is forgotten during the lookup, and no state if it must be fetched.
        """
        times_forgotten = self._own.times_forgotten(key)
        known = await self._entries.get(key, now)
        if times_forgotten != self._own.times_forgotten(key):
            return None, None
        in_memory = self.live.by_origin.get(key)
        if in_memory is not None:
            known = merge(by_our_clock(in_memory.entry, now), known, now=now)
        return known, None if is_forced else self._admit_current(known, now)

    async def _fetch(
        self, origin: Origin, looked_up: Entry | None, *, times_forgotten: int
    ) -> Renewal:
        """Fetch the robots.txt from its server, and store the new entry.

        `looked_up` is the entry from before the fetch, in case the store fails
        afterwards. It was read when the origin had been forgotten `times_forgotten`.
        """
        key = origin.key
        began_at, monotonic = self.clock.now(), self.clock.monotonic()
        last = None if looked_up is None else looked_up.answer
        if last is not None and not last.is_ahead(began_at):
            began_at = max(began_at, last.answered_at)  # another clock may be ahead
        outcome = await self._fetcher.fetch(origin)
        now, seconds = self.clock.now(), self.clock.monotonic() - monotonic
        if outcome.failure is FailureKind.LOCAL:
            is_forgotten = times_forgotten != self._own.times_forgotten(key)
            known = None if is_forgotten else looked_up
            return self._pause(key, known, outcome, now=now, seconds=seconds)
        self.flights.set_interim(key, outcome)
        previous: Entry | None = None

        def change(stored: Entry | None) -> Entry:
            nonlocal previous, outcome
            is_forgotten = times_forgotten != self._own.times_forgotten(key)
            previous = None if is_forgotten else merge(looked_up, stored, now=now)
            rule = partial(
                entry_after,
                previous,
                origin=key,
                began_at=began_at,
                now=now,
                policy=self.policy,
            )
            entry, outcome = judge(outcome, rule)
            return entry

        entry = await self._entries.update(key, now, change)
        self._own.note(entry, now)
        standing = self.live.admit(entry, now)
        self.reporter.report_fetch(
            entry, previous=previous, outcome=outcome, seconds=seconds
        )
        return Renewal(standing, is_fetched=True)

    def _pause(
        self,
        key: str,
        known: Entry | None,
        failure: Outcome,
        *,
        now: float,
        seconds: float,
    ) -> Renewal:
        """Keep nothing of this fetch, because our own machine failed."""
        pause = self._own.begin_pause(key, failure, now)
        standing = self._standing_meanwhile(key, known, pause, now)
        if failure.redirects:  # the first request was sent
            self.flights.set_interim(key, failure)
        self.reporter.report_local_failure(
            standing.entry, failure, now=now, seconds=seconds
        )
        return Renewal(standing, is_fetched=True)

    def _standing_meanwhile(
        self, key: str, known: Entry | None, pause: Pause, now: float
    ) -> Standing:
        """What applies during `pause`; kept neither in memory nor in the store."""
        entry = entry_meanwhile(
            known,
            pause.failure,
            origin=key,
            now=now,
            retry_at=pause.until,
            policy=self.policy,
        )
        return Standing(entry, now=now, policy=self.policy)
