"""The counters of a checker."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from robotsgate.robotstxt._model import JSONValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    from robotsgate.caching._verdict import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerStats(JSONValue):
    """What a checker has done since it was made; a snapshot.

    Attributes:
        checks: questions answered about an agent and a URL.
        allowed: how many were answered with yes; the reasons are not counted,
            because finding one takes longer than the answer.
        disallowed: how many were answered with no, by reason; reasons that never
            decided are left out.
        fetches: fetches of a robots.txt, each counted once with its redirects.
        successful: fetches that brought a file.
        unavailable: fetches that showed that there is none.
        unreachable: fetches that failed.
        restricted: fetches whose answer the policy takes for "keep out".
        refused: fetches that the address guard refused.
        joined: questions that waited for a fetch that another question began.
        store_hits: how often the store had a current entry of an origin.
        store_misses: how often it had none.
        lease_waits: pauses made because another process was fetching an origin.
        store_failures: operations that the store could not do.
        store_skips: operations not tried, because the store had just hung.
        event_failures: calls of `on_event` that raised.
        live_origins: origins held parsed in memory now.
        fetches_under_way: renewals that have not ended yet.
    """

    checks: int = 0
    allowed: int = 0
    disallowed: Mapping[Reason, int] = field(default_factory=dict)
    fetches: int = 0
    successful: int = 0
    unavailable: int = 0
    unreachable: int = 0
    restricted: int = 0
    refused: int = 0
    joined: int = 0
    store_hits: int = 0
    store_misses: int = 0
    lease_waits: int = 0
    store_failures: int = 0
    store_skips: int = 0
    event_failures: int = 0
    live_origins: int = 0
    fetches_under_way: int = 0
