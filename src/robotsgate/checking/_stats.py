"""The counters of a checker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerStats:
    """What a checker has done since it was made; a snapshot.

    Attributes:
        checks: questions answered about an agent and a URL.
        fetches: attempts to get a robots.txt, redirects not counted.
        successful: attempts that brought a file.
        unavailable: attempts that found that there is none.
        unreachable: attempts that failed.
        restricted: attempts that a strict policy takes for a closed door.
        joined: questions that waited for an attempt another one had begun.
        store_hits: origins for which the store had an entry still in force.
        store_misses: origins for which it had none.
        lease_waits: pauses made because another process was fetching an origin.
        store_failures: operations that the store could not do.
        store_skips: operations not tried, because the store had just hung or failed.
        event_failures: calls of `on_event` that raised.
        live_origins: origins held parsed in memory now.
        fetches_under_way: attempts that have not ended yet.
    """

    checks: int = 0
    fetches: int = 0
    successful: int = 0
    unavailable: int = 0
    unreachable: int = 0
    restricted: int = 0
    joined: int = 0
    store_hits: int = 0
    store_misses: int = 0
    lease_waits: int = 0
    store_failures: int = 0
    store_skips: int = 0
    event_failures: int = 0
    live_origins: int = 0
    fetches_under_way: int = 0
