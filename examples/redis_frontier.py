"""A Redis frontier for `durable_crawl.py`: URLs shared by any number of workers.

Each host has a sorted set of its URLs, scored by the time from which a worker may take
them: 0 for a new URL, the end of the lease for a taken URL, inf for a finished URL. So
a dead worker's URLs become available again. The sorted set `hosts` contains the hosts
that are new or taken, and `resting` contains the hosts that wait until one of their
URLs is available again.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio

from robotsgate import InvalidURLError, Origin
from robotsgate.events import GateEvent, URLSkipped

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from redis.asyncio import Redis

ADD = """
local is_new = redis.call('ZADD', KEYS[3], 'NX', 0, ARGV[2]) == 1
if is_new and not redis.call('ZSCORE', KEYS[1], ARGV[1]) then
  redis.call('ZADD', KEYS[1], 0, ARGV[1])
end"""
TAKE_HOST = """
for number = 1, 2 do
  local host = redis.call('ZRANGEBYSCORE', KEYS[number], 0, ARGV[1], 'LIMIT', 0, 1)[1]
  if host then
    redis.call('ZADD', KEYS[1], ARGV[2], host)
    redis.call('ZREM', KEYS[2], host)
    return host
  end
end"""
TAKE_URL = """
local url = redis.call('ZRANGEBYSCORE', KEYS[3], 0, ARGV[2], 'LIMIT', 0, 1)[1]
if url then
  redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
  redis.call('ZADD', KEYS[3], ARGV[3], url)
  return url
end
local due = redis.call('ZRANGE', KEYS[3], 0, 0, 'WITHSCORES')[2]
redis.call('ZREM', KEYS[1], ARGV[1])
if due ~= 'inf' then redis.call('ZADD', KEYS[2], due, ARGV[1]) end"""
HOSTS = ["hosts", "resting"]


class Frontier:
    """Gives each host to one worker at a time, and each URL until it is finished."""

    def __init__(self, redis: Redis, lease: float) -> None:
        """Lease hosts and URLs for `lease` seconds, which must exceed any turn."""
        self._redis, self.lease = redis, lease
        self._skipped: dict[str, dict[str, float]] = defaultdict(dict)

    async def add(self, url: str) -> None:
        """Add `url`, unless it was added before."""
        with suppress(InvalidURLError):  # a link like mailto:
            host = Origin.from_url(url).host
            await self._redis.eval(ADD, 3, *HOSTS, f"urls:{host}", host, url)

    async def hosts(self) -> AsyncIterator[str]:
        """Take hosts until all URLs are finished."""
        while await self._redis.exists(*HOSTS):
            times = [time.time(), time.time() + self.lease]
            if host := await self._redis.eval(TAKE_HOST, 2, *HOSTS, *times):
                yield str(host)
            else:
                await anyio.sleep(1)

    async def next_url(self, host: str) -> str | None:
        """Take one of `host`'s URLs, and renew the lease of the host."""
        urls, now = f"urls:{host}", time.time()
        if times := self._skipped.pop(host, None):
            await self._redis.zadd(urls, times, gt=True)
        lease = [now, now + self.lease]
        url = await self._redis.eval(TAKE_URL, 3, *HOSTS, urls, host, *lease)
        return str(url) if url else None

    async def finish(self, url: str) -> None:
        """Mark `url` as finished, so that it is never taken again."""
        await self._redis.zadd(f"urls:{Origin.from_url(url).host}", {url: math.inf})

    def on_event(self, event: GateEvent) -> None:
        """Record when to retry a URL; the gate calls `next_url` afterwards."""
        if isinstance(event, URLSkipped):
            at = math.inf if event.ready_at is None else event.ready_at
            self._skipped[Origin.from_url(event.url).host][event.url] = at
