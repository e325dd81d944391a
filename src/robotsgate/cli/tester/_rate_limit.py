"""Decides whether a client may have one more fetch now. Pure: the time is given."""

from __future__ import annotations

from cachetools import LRUCache

_MOST_CLIENTS = 10_000


class RateLimit:
    """A bucket of tokens for each client, which fills as time passes."""

    def __init__(self, *, burst: int, seconds_each: float) -> None:
        """Fill all buckets.

        Args:
            burst: how many tokens a bucket holds, ≥ 1.
            seconds_each: how long a new token takes, > 0.
        """
        self._burst = burst
        self._seconds_each = seconds_each
        self._full_at: LRUCache[str, float] = LRUCache(_MOST_CLIENTS)

    def take(self, client: str, now: float) -> bool:
        """Take a token from the bucket of `client`; whether there was one.

        Args:
            client: its address.
            now: monotonic seconds.
        """
        full_at = max(self._full_at.get(client, now), now) + self._seconds_each
        if full_at > now + self._burst * self._seconds_each:
            return False
        self._full_at[client] = full_at
        return True
