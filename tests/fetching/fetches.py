"""Fetches from the test servers, the way a checker does it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import anyio

from robotsgate._flights import DaemonThreads
from robotsgate.caching._hops import FetchGuard
from robotsgate.caching._policy import Policy
from robotsgate.fetching._fetcher import OwnFetch
from robotsgate.fetching._robots_fetch import RobotsTxtFetcher
from robotsgate.urls._url import Origin

if TYPE_CHECKING:
    from robotsgate.caching._outcome import Outcome
    from robotsgate.fetching._robots_fetch import Sign

RULES = b"User-agent: *\nDisallow: /private\n"

USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"

PATIENCE_SECONDS = 10.0
"""How long a test waits for something immediate before it fails."""


class Followed:
    """Equal to any tuple of `count` redirects."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, tuple) and len(other) == self._count

    __hash__ = None  # type: ignore[assignment]  # equal to many


def guard(policy: Policy | None = None) -> FetchGuard:
    """The guard of a fetch that has not connected to anything yet."""
    return FetchGuard(policy or Policy())


def fetch_of(url: str, *, threads: DaemonThreads | None = None) -> OwnFetch:
    """A fetch without a deadline that has not connected to anything yet."""
    return OwnFetch(
        guard=guard(),
        policy=Policy(),
        threads=threads or DaemonThreads(1),
        deadline=math.inf,
        origin=Origin.from_url(url),
    )


def fetcher_of(
    client: object | None = None,
    *,
    sign: Sign | None = None,
    policy: Policy | None = None,
    max_concurrent_fetches: int = 100,
) -> RobotsTxtFetcher:
    """A fetcher as a checker creates it."""
    return RobotsTxtFetcher(
        client,
        user_agent=USER_AGENT,
        sign=sign,
        policy=policy or Policy(),
        max_concurrent_fetches=max_concurrent_fetches,
    )


async def fetched(
    url: str,
    *,
    client: object | None = None,
    sign: Sign | None = None,
    policy: Policy | None = None,
) -> Outcome:
    """The outcome of fetching the robots.txt for `url` once."""
    fetcher = fetcher_of(client, sign=sign, policy=policy)
    with anyio.fail_after(PATIENCE_SECONDS):
        return await fetcher.fetch(Origin.from_url(url))
