"""Fetches from the test servers, the way a checker does it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from robotsgate.caching._address_guard import FetchGuard, GuardRules
from robotsgate.caching._policy import Policy
from robotsgate.fetching._robots_fetch import RobotsTxtFetcher
from robotsgate.urls._origin import Origin

if TYPE_CHECKING:
    from robotsgate.caching._outcome import Outcome

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
    return FetchGuard(GuardRules(policy or Policy()))


async def fetched(
    url: str, *, policy: Policy | None = None, client: object | None = None
) -> Outcome:
    """The outcome of fetching the robots.txt for `url` once."""
    fetcher = RobotsTxtFetcher(client, user_agent=USER_AGENT, policy=policy or Policy())
    with anyio.fail_after(PATIENCE_SECONDS):
        return await fetcher.fetch(Origin.from_url(url))
