"""Brings what is known about an origin up to date: from the store, else its server.

Each origin is renewed once, for however many ask. What to do is decided by
`caching`; here it is only done.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from robotsgate._clock import pause
from robotsgate._under_way import UnderWay
from robotsgate.caching._plan import (
    Plan,
    entry_after,
    guard_of,
    outdated,
    plan,
    suits,
    under_our_clock,
)
from robotsgate.fetching._single_flight import SingleFlight

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate._guarded_store import GuardedStore
    from robotsgate._live import LiveOrigin, LiveOrigins
    from robotsgate._reporter import Reporter
    from robotsgate.caching._entry import Entry
    from robotsgate.caching._policy import Policy
    from robotsgate.fetching._fetcher import Fetcher
    from robotsgate.robotstxt._origin import Origin

__all__ = ["Renewals"]

# How often a store is looked at for what another process is fetching; most fetches
# are over in a second.
_SHORTEST_PAUSE_SECONDS = 0.05
_LONGEST_PAUSE_SECONDS = 1.0
_PAUSE_FACTOR = 1.5


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
        now: Callable[[], float],
    ) -> None:
        """Renew the origins of `live`.

        Args:
            live: what is in memory.
            store: asked before the network, and told what that brings.
            fetcher: asks the servers.
            reporter: who is told.
            policy: what answers mean and how long they are kept.
            now: tells the time, epoch seconds.
        """
        self._live = live
        self._store = store
        self._fetcher = fetcher
        self._reporter = reporter
        self._policy = policy
        self._guard = guard_of(policy)
        self._now = now
        self._flights: SingleFlight[tuple[LiveOrigin, bool]] = SingleFlight()
        self._under_way = UnderWay("the checker")

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
        seconds = _SHORTEST_PAUSE_SECONDS
        while True:
            previous, live = await self._known(key, is_forced=is_forced)
            if live is not None:
                return live, False
            async with self._fetcher.place:
                if await self._store.acquire(key):
                    try:
                        return await self._fetched(
                            origin, previous, is_forced=is_forced
                        )
                    finally:
                        await self._store.release(key)
            await pause(seconds)  # another process is fetching it
            seconds = min(_PAUSE_FACTOR * seconds, _LONGEST_PAUSE_SECONDS)

    async def _fetched(
        self, origin: Origin, previous: Entry | None, *, is_forced: bool
    ) -> tuple[LiveOrigin, bool]:
        """The origin from the network, or from whoever was faster in the fleet."""
        key = str(origin)
        if self._store.has_lease:
            previous, live = await self._known(key, is_forced=is_forced)
            if live is not None:
                return live, False
        began_at = self._now()
        outcome = await self._fetcher.fetch(origin)
        self._under_way.check()
        entry = entry_after(
            previous, outcome, origin=key, now=self._now(), policy=self._policy
        )
        live = self._live.admit(entry, entry.checked_at)
        self._reporter.fetched(
            entry, previous=previous, outcome=outcome, began_at=began_at
        )
        await self._store.put(entry)
        return live, True

    async def _known(
        self, key: str, *, is_forced: bool
    ) -> tuple[Entry | None, LiveOrigin | None]:
        """What is known about an origin, and the origin by it if it still stands."""
        previous = await self._previous(key)
        self._under_way.check()
        now = self._now()
        if is_forced or plan(previous, now) is Plan.FETCH:
            return previous, None
        return previous, self._live.admit(cast("Entry", previous), now)  # or no USE

    async def _previous(self, key: str) -> Entry | None:
        """What is known about an origin, however old; the newer of memory and store.

        The store is asked although the origin is in memory, because another
        process that shares it may have fetched since.
        """
        stored = await self._store.get(key)
        now = self._now()
        if stored is not None and stored.guard != self._guard:
            stored = None
        if stored is not None:
            stored = under_our_clock(stored, now)
            if not suits(stored, self._policy):
                stored = outdated(stored)
        self._reporter.looked_up(is_hit=plan(stored, now) is Plan.USE)
        live = self._live.by_origin.get(key)
        if live is None or (stored and stored.checked_at > live.entry.checked_at):
            return stored
        return live.entry
