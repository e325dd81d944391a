"""Brings what is known about an origin up to date: from the store, else its server.

Each origin is renewed once, for however many ask. What to do is decided by
`caching`; here it is only done.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import anyio

from robotsgate.caching._access import AccessResult
from robotsgate.caching._plan import (
    Plan,
    entry_after,
    is_answer_since,
    later,
    outdated,
    plan,
    suits,
    terms_of,
    under_our_clock,
)
from robotsgate.checking._guarded_store import Found
from robotsgate.checking._single_flight import SingleFlight
from robotsgate.checking._under_way import UnderWay

if TYPE_CHECKING:
    from robotsgate._clock import Clock
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._policy import Policy
    from robotsgate.checking._guarded_store import GuardedStore
    from robotsgate.checking._live import LiveOrigin, LiveOrigins
    from robotsgate.checking._reporter import Reporter
    from robotsgate.fetching._fetcher import Fetcher
    from robotsgate.urls._origin import Origin

# How often a store is looked at for what another process is fetching; most fetches
# are over in a second.
_SHORTEST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_PAUSE_FACTOR = 1.5

# The lease of a worker that has died, and that of the next one: who waits for longer
# waits for a lease that does not end.
_LONGEST_WAIT_IN_LEASES = 2

# Where thousands wait, they look less often each, and leave the store to others.
_LOOKS_PER_SECOND = 300


class Renewals:
    """The renewals of one checker's origins; `len` tells how many are under way."""

    def __init__(
        self,
        live: LiveOrigins,
        store: GuardedStore,
        fetcher: Fetcher,
        reporter: Reporter,
        *,
        policy: Policy,
        clock: Clock,
    ) -> None:
        """Renew the origins of `live`.

        Args:
            live: what is in memory.
            store: asked before the network, and told what that brings.
            fetcher: asks the servers.
            reporter: who is told.
            policy: what answers mean and how long they are kept.
            clock: tells the time, and waits for other processes.
        """
        self._live = live
        self._store = store
        self._fetcher = fetcher
        self._reporter = reporter
        self._policy = policy
        self._terms = terms_of(policy)
        self._clock = clock
        self._now = clock.now
        self._flights: SingleFlight[tuple[LiveOrigin, bool]] = SingleFlight()
        self._under_way = UnderWay("the checker")
        # How many wait for their turn in the fleet, or are having it.
        self._in_turns = 0

    def __len__(self) -> int:
        return len(self._flights)

    @property
    def joined(self) -> int:
        """How many questions shared a renewal that another one had begun."""
        return self._flights.joined

    def check_open(self) -> None:
        """Refuse to begin after the end.

        Raises:
            RuntimeError: the checker is closed.
        """
        self._under_way.check()

    async def aclose(self) -> None:
        """End what is under way; may be called more than once."""
        await self._under_way.aclose()

    async def renewed(self, origin: Origin) -> LiveOrigin:
        """The origin as it stands now.

        Raises:
            RuntimeError: the checker is closed before that is known.
        """
        live, _ = await self._flights.run(
            str(origin), partial(self._renewal, origin, is_forced=False)
        )
        return live

    async def fetch(self, origin: Origin) -> None:
        """Fetch the origin, however fresh it is, or wait for who is fetching it.

        Raises:
            RuntimeError: the checker is closed before that is over.
        """
        is_fetched = False
        while not is_fetched:  # a look into the store may have been under way
            _, is_fetched = await self._flights.run(
                str(origin), partial(self._renewal, origin, is_forced=True)
            )

    async def _renewal(
        self, origin: Origin, *, is_forced: bool
    ) -> tuple[LiveOrigin, bool]:
        """As `_renewed`, unless the checker is closed before that ends."""
        work = partial(self._renewed, origin, is_forced=is_forced)
        return await self._under_way.run(work)

    async def _renewed(
        self, origin: Origin, *, is_forced: bool
    ) -> tuple[LiveOrigin, bool]:
        """The origin from the store if that knows it, else from the network.

        Returns:
            The origin, and whether it was fetched.
        """
        key = str(origin)
        live = self._live.current(key, self._now())
        if live is not None and not is_forced:
            return live, False
        previous, live = await self._known(key, is_forced=is_forced)
        self._reporter.looked_up(is_hit=live is not None)
        if live is not None:
            return live, False
        if self._store.has_lease:
            self._in_turns += 1
            try:
                return await self._renewed_in_turn(origin, is_forced=is_forced)
            finally:
                self._in_turns -= 1
        async with self._fetcher.place:
            return await self._fetched(origin, previous), True

    async def _renewed_in_turn(
        self, origin: Origin, *, is_forced: bool
    ) -> tuple[LiveOrigin, bool]:
        """As `_renewed`, where one process of a fleet fetches for all."""
        key = str(origin)
        seconds = _SHORTEST_PAUSE_SECONDS
        waited = 0.0
        while True:
            longest = max(_LONGEST_PAUSE_SECONDS, self._in_turns / _LOOKS_PER_SECOND)
            # Others may be faster than a place here is free.
            with anyio.move_on_after(longest) as queueing:
                await self._fetcher.place.acquire()
            if not queueing.cancelled_caught:
                try:
                    is_over = waited >= _LONGEST_WAIT_IN_LEASES * (
                        self._store.lease_seconds
                    )
                    if await self._store.acquire(key) or is_over:
                        return await self._renewed_with_lease(
                            origin, is_forced=is_forced
                        )
                finally:
                    self._fetcher.place.release()
                self._reporter.lease_waited()
                await self._clock.wait(seconds)
                waited += seconds
                seconds = min(_PAUSE_FACTOR * seconds, longest)
            _, live = await self._known(key, is_forced=is_forced)
            if live is not None:
                return live, False

    async def _renewed_with_lease(
        self, origin: Origin, *, is_forced: bool
    ) -> tuple[LiveOrigin, bool]:
        """As `_renewed`, by whoever has the lease, which is given back."""
        key = str(origin)
        try:
            previous, live = await self._known(key, is_forced=is_forced)
            if live is not None:  # from who had the lease before
                return live, False
            return await self._fetched(origin, previous), True
        finally:
            await self._store.release(key)

    async def _fetched(self, origin: Origin, previous: Entry | None) -> LiveOrigin:
        """The origin from the network."""
        key = str(origin)
        began_at = self._now()
        outcome = await self._fetcher.fetch(origin)
        self._under_way.check()
        now = self._now()
        entry = entry_after(previous, outcome, origin=key, now=now, policy=self._policy)
        live = self._live.admit(entry, now)
        self._reporter.fetched(
            entry, previous=previous, outcome=outcome, began_at=began_at
        )
        if entry.access is AccessResult.UNREACHABLE:
            return await self._reconciled(live, began_at)
        await self._store.put(entry)
        return live

    async def _reconciled(self, live: LiveOrigin, began_at: float) -> LiveOrigin:
        """An origin that could not be reached, or what another process made of it.

        What others have brought meanwhile, or what could not be read before, must
        not be lost to a failure.
        """
        entry = live.entry
        stored, is_certain = await self._stored(entry.origin)
        self._under_way.check()
        if stored is not None:
            now = self._now()
            if is_answer_since(stored, began_at, now):
                return self._live.admit(stored, now)
            merged = later(entry, stored, now, self._policy)
            if merged is not entry:
                entry = merged
                live = self._live.admit(entry, entry.checked_at)
        if is_certain:
            await self._store.put(entry)
        return live

    async def _known(
        self, key: str, *, is_forced: bool
    ) -> tuple[Entry | None, LiveOrigin | None]:
        """What is known about an origin, and the origin by it if it still stands."""
        previous, _ = await self._stored(key)
        self._under_way.check()
        now = self._now()
        known = self._live.by_origin.get(key)
        if known is not None:
            previous = later(known.entry, previous, now, self._policy)
            # This very clock was set back: nobody can tell what stands.
            is_forced |= known.entry.checked_at > now
        if is_forced or plan(previous, now) is Plan.FETCH:
            return previous, None
        return previous, self._live.admit(cast("Entry", previous), now)  # or no USE

    async def _stored(self, key: str) -> Found:
        """What the store has of an origin that this checker may use.

        It is asked although the origin is in memory, because another process that
        shares it may have fetched since. What is of other terms is no more certain
        than what cannot be read: a failure must not replace it.
        """
        stored, is_certain = await self._store.get(key)
        if stored is None:
            return Found(stored, is_certain)
        if stored.terms != self._terms:
            return Found(entry=None, is_certain=False)
        stored = under_our_clock(stored, self._now())
        return Found(
            stored if suits(stored, self._policy) else outdated(stored), is_certain
        )
