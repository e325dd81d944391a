"""Brings what is known about an origin up to date: from the store, else its server.

Each origin is renewed once for all callers that ask. `caching` decides what a fetch
means.
Longer than other modules, because renewals with a lease, in turn, or without either
share their steps.
"""

from __future__ import annotations

import math
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import anyio

from robotsgate.caching._attempt import entry_after
from robotsgate.caching._entry import by_our_clock, usable
from robotsgate.caching._merge import merge
from robotsgate.caching._outcome import AccessResult, Answered, Failed, FailureKind
from robotsgate.checking._flights import Flights
from robotsgate.errors import TurnNotInTimeError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from robotsgate._clock import Clock
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._outcome import Outcome
    from robotsgate.caching._policy import Policy
    from robotsgate.checking._entries import Entries
    from robotsgate.checking._gated import FetchTurns, RenewalResult
    from robotsgate.checking._live import LiveOrigins
    from robotsgate.checking._reporter import Reporter
    from robotsgate.checking._standing import Standing
    from robotsgate.fetching._robots_fetch import RobotsTxtFetcher
    from robotsgate.urls._origin import Origin

# The pauses between looks into the store while another process fetches. Most fetches
# take less than a second.
_SHORTEST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_PAUSE_FACTOR = 1.5

# Long enough for the lease of a process that has died, and that of the next one. If
# the lease has not ended then, this process fetches without it.
_LONGEST_WAIT_IN_LEASES = 2


class Renewals:
    """The renewals of one checker's origins.

    Attributes:
        flights: those under way.
        fetcher: asks the servers.
        turns: the turns of hosts, for which a fetch waits before its deadline, its
            lease and its place among concurrent fetches begin; `None` if there are
            none.
    """

    def __init__(
        self,
        live: LiveOrigins,
        entries: Entries,
        fetcher: RobotsTxtFetcher,
        reporter: Reporter,
        *,
        policy: Policy,
        clock: Clock,
        max_concurrent_fetches: int,
    ) -> None:
        """Renew the origins of `live`.

        Args:
            live: what is in memory.
            entries: those of the store; read before a fetch, updated after it.
            fetcher: asks the servers.
            reporter: is told what happened.
            policy: what answers mean and how long they are kept.
            clock: tells the time, and waits.
            max_concurrent_fetches: how many fetches run at once, ≥ 1.
        """
        self._live = live
        self._entries = entries
        self.fetcher = fetcher
        self._reporter = reporter
        self._policy = policy
        self._clock = clock
        self._places = anyio.Semaphore(max_concurrent_fetches, fast_acquire=True)
        self.flights: Flights[RenewalResult] = Flights()
        self._forgetting: set[str] = set()
        self._forgotten: set[str] = set()  # whose renewal must not use what was known
        self.turns: FetchTurns | None = None

    @contextmanager
    def forgetting(self, key: str) -> Iterator[None]:
        """While this is open, no renewal of the origin uses what was known before."""
        self._forgetting.add(key)
        if key in self.flights:
            self._forgotten.add(key)
        try:
            yield
        finally:
            self._forgetting.discard(key)

    async def renew(self, origin: Origin) -> Standing:
        """Learn how `origin` stands now.

        If the turn of its host does not come within the deadline of a fetch, the
        origin stands as it did before, and its fetch is put off.

        Raises:
            RuntimeError: the checker is closed before that is known.
        """
        work = partial(self._renew, origin, is_forced=False)
        standing, _ = await self.flights.result_of(str(origin), work, takes_early=True)
        return standing

    async def renew_in_turn(
        self, origin: Origin, *, wait: Callable[[anyio.Event], Awaitable[object]]
    ) -> Standing:
        """Learn how `origin` stands, however late the turn of its host comes.

        Args:
            origin: the one to renew.
            wait: returns when the event is set, or when the caller stops waiting.

        Raises:
            TimeoutError: `wait` returned before that is known.
            RuntimeError: the checker is closed before that is known.
        """
        work = partial(self._renew, origin, is_forced=False)
        standing, _ = await self.flights.result_of(str(origin), work, wait=wait)
        return standing

    def begin(self, origin: Origin) -> None:
        """Begin to renew `origin` for later callers; do not wait for it.

        Raises:
            RuntimeError: the checker is closed.
        """
        self.flights.begin(str(origin), partial(self._renew, origin, is_forced=False))

    async def fetch(self, origin: Origin) -> Standing:
        """Fetch the robots.txt of `origin`, or join the fetch that is under way.

        Raises:
            RuntimeError: the checker is closed before that is over.
        """
        work = partial(self._renew, origin, is_forced=True)
        while True:  # the renewal under way may only have looked into the store
            standing, is_fetched = await self.flights.result_of(
                str(origin), work, takes_early=True
            )
            if is_fetched or standing.entry.is_put_off:
                return standing

    async def _renew(self, origin: Origin, *, is_forced: bool) -> RenewalResult:
        key = str(origin)
        self._forgotten.discard(key)  # that was of an earlier renewal
        self._forgotten |= {key} & self._forgetting
        known, standing = await self._look_up(key, is_forced=is_forced)
        if not is_forced:  # a refresh fetches, whatever the store has
            self._reporter.report_look_up(is_hit=standing is not None)
        if standing is not None:
            return standing, False
        if self.turns is not None:
            return await self._renew_in_turn(
                origin, known, turns=self.turns, is_forced=is_forced
            )
        if self._entries.has_lease:
            return await self._renew_with_lease(origin, is_forced=is_forced)
        async with self._places:
            return await self._fetch(origin, known), True

    async def _renew_in_turn(
        self,
        origin: Origin,
        looked_up: Entry | None,
        *,
        turns: FetchTurns,
        is_forced: bool,
    ) -> RenewalResult:
        """As `_renew`, if hosts have turns.

        Callers that do not wait for the turn get an answer after the deadline of a
        fetch. The wait ends then, unless other callers wait for the turn, or the last
        renewal was put off, too: if pages take all the turns, no later renewal would
        get its turn in time.
        """
        key = str(origin)
        last = self._live.by_origin.get(key)
        was_put_off = last is not None and last.entry.is_put_off

        async def fetch() -> RenewalResult:
            if self._entries.has_lease:
                return await self._renew_with_lease(origin, is_forced=is_forced)
            async with self._places:
                return await self._fetch_unless_current(origin, is_forced=is_forced)

        def put_off() -> RenewalResult:
            return self._put_off(key, looked_up, until=turns.ready_at(origin)), False

        for patience in (self._policy.fetch_deadline, math.inf):
            try:
                return await turns.in_turn(origin, fetch, patience=patience)
            except TurnNotInTimeError:
                others_wait = self.flights.answer_early(key, put_off)
                if not (others_wait or was_put_off):
                    break
        return put_off()

    def _put_off(self, key: str, looked_up: Entry | None, *, until: float) -> Standing:
        """The origin as it stands until the turn of its host comes.

        Only memory keeps this, because it tells other processes nothing of the origin.
        """
        now = self._clock.now()
        known = None
        if key not in self._forgotten:
            known = merge(self._from_memory(key, now), looked_up, now=now)
        outcome = Failed(
            kind=FailureKind.TURN,
            error=f"the host has its next turn in {until - now:.0f} s or later",
            retry_at=until,
        )
        entry = entry_after(
            known, outcome, origin=key, began_at=now, now=now, policy=self._policy
        )
        return self._live.admit(entry, now)

    async def _renew_with_lease(
        self, origin: Origin, *, is_forced: bool
    ) -> RenewalResult:
        """As `_renew`, if one process of a fleet fetches for all."""
        key = str(origin)
        began_at = self._clock.monotonic()
        seconds = _SHORTEST_PAUSE_SECONDS
        longest = _LONGEST_WAIT_IN_LEASES * self._entries.lease_seconds
        while True:
            async with self._places:
                is_over = self._clock.monotonic() - began_at >= longest
                if await self._entries.acquire(key) or is_over:
                    try:
                        return await self._fetch_unless_current(
                            origin, is_forced=is_forced
                        )
                    finally:
                        await self._entries.release(key)
            self._reporter.report_lease_wait()
            await self._clock.wait(seconds)
            seconds = min(_PAUSE_FACTOR * seconds, _LONGEST_PAUSE_SECONDS)
            _, standing = await self._look_up(key, is_forced=is_forced)
            if standing is not None:
                return standing, False

    async def _look_up(
        self, key: str, *, is_forced: bool
    ) -> tuple[Entry | None, Standing | None]:
        """What memory and the store know of an origin, and how it stands by that.

        The store is asked even if the origin is in memory, because another process
        that shares the store may have fetched it since. The standing is `None` if the
        origin has to be fetched.
        """
        stored = await self._entries.get(key, self._clock.now())
        now = self._clock.now()
        known = merge(self._from_memory(key, now), stored, now=now)
        if is_forced or known is None or not known.is_current(now):
            return known, None
        if key in self._forgotten or known.is_put_off:
            return known, None
        return known, self._live.admit(known, now)

    async def _fetch_unless_current(
        self, origin: Origin, *, is_forced: bool
    ) -> RenewalResult:
        """As `_renew`, after a wait in which another process may have fetched it."""
        known, standing = await self._look_up(str(origin), is_forced=is_forced)
        if standing is not None:
            return standing, False
        return await self._fetch(origin, known), True

    async def _fetch(self, origin: Origin, looked_up: Entry | None) -> Standing:
        """Fetch the robots.txt from its server; how the origin stands then.

        Args:
            origin: the one to fetch.
            looked_up: what was known of it before, in case the store fails when the
                fetch has ended.
        """
        began_at = self._clock.monotonic()
        self._reporter.report_start(str(origin))
        try:
            return await self._fetch_and_keep(origin, looked_up)
        except BaseException:
            seconds = self._clock.monotonic() - began_at
            self._reporter.report_cancellation(str(origin), seconds=seconds)
            raise

    async def _fetch_and_keep(
        self, origin: Origin, looked_up: Entry | None
    ) -> Standing:
        key = str(origin)
        began_at = self._clock.now()
        last = None if looked_up is None else looked_up.answer
        if last is not None and not last.is_ahead(began_at):
            began_at = max(began_at, last.answered_at)  # another clock may be ahead
        monotonic = self._clock.monotonic()
        outcome = await self.fetcher.fetch(origin)
        now = self._clock.now()
        looked_up = by_our_clock(looked_up, now=now)
        known = merge(self._from_memory(key, now), looked_up, now=now)
        previous: Entry | None = None

        def change(stored: Entry | None) -> Entry:
            nonlocal previous
            is_forgotten = key in self._forgotten
            previous = None if is_forgotten else merge(known, stored, now=now)
            return entry_after(
                previous,
                outcome,
                origin=key,
                began_at=began_at,
                now=now,
                policy=self._policy,
            )

        entry = await self._entries.update(key, now, change)
        new_body = _new_body(entry, previous, outcome)
        standing = self._live.admit(entry, self._clock.now(), new_body=new_body)
        self._reporter.report_fetch(
            entry,
            previous=previous,
            outcome=outcome,
            seconds=self._clock.monotonic() - monotonic,
        )
        return standing

    def _from_memory(self, key: str, now: float) -> Entry | None:
        """The entry in memory if it is usable at `now`, or if there is no file.

        An answer that there is no file, which the store has missed, must win over the
        copy that it ended.
        """
        standing = self._live.by_origin.get(key)
        if standing is None:
            return None
        if standing.entry.access is AccessResult.UNAVAILABLE:
            return by_our_clock(standing.entry, now=now)
        return usable(standing.entry, now=now, policy=self._policy)


def _new_body(entry: Entry, previous: Entry | None, outcome: Outcome) -> bytes | None:
    """The file in `entry` if `outcome` has brought it, else `None`."""
    answer = entry.answer
    if answer is None or answer.packed is None or not isinstance(outcome, Answered):
        return None
    is_ours = previous is None or answer != previous.answer
    return outcome.body if is_ours else None
