"""robots.txt for Scrapy: a replacement for its own middleware, or just for its parser.

Needs the scrapy extra, and Scrapy running on asyncio (the default). robots.txt files
are fetched through Scrapy's downloader, with its proxies, handlers and delays; the
checker handles caching, redirects and outages.
"""

from __future__ import annotations

from robotsgate.errors import needs_extra
from robotsgate.integrations._door import asked_urls

with needs_extra("scrapy"):
    import scrapy

import asyncio
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from cachetools import LRUCache
from scrapy import signals
from scrapy.downloadermiddlewares.robotstxt import RobotsTxtMiddleware
from scrapy.exceptions import IgnoreRequest, NotConfigured, StopDownload
from scrapy.http.request import NO_CALLBACK
from scrapy.robotstxt import RobotParser
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.python import to_unicode

from robotsgate import (
    DisallowedError,
    FailureKind,
    FetchedResponse,
    FetchFailedError,
    InvalidURLError,
    Policy,
    RobotsChecker,
    RobotsTxt,
    SystemClock,
    UnsupportedError,
)
from robotsgate.caching import seconds_asked_for
from robotsgate.events import RobotsTxtFetched
from robotsgate.fetching import NEVER_SENT, as_pairs
from robotsgate.robotstxt import crawler_or_any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

    from robotsgate import Verdict
    from robotsgate.events import CheckerEvent

__all__ = ["RobotsGateAddon", "RobotsGateMiddleware", "RobotsGateParser"]

_CLOCK = SystemClock()

# How many origins and hosts are remembered; the same as for a checker.
_MAX_KNOWN = 10_000

# Users normally have few agents. The limit contains the damage if they don't.
_MAX_AGENTS = 1_000

_LONGEST_CRAWL_DELAY = 3600.0

# Just enough for Scrapy to look at the time.
_SHORTEST_DELAY = 0.001

# The statuses of a robots.txt whose Retry-After also delays pages: if the file is only
# missing, pages are allowed.
_WORTH_OBEYING = frozenset({429, *range(500, 600)})

# Before a robots.txt request is sent, it waits in Scrapy's download slot, perhaps
# behind pages. This wait must not look like an unresponsive server. So the policy's
# deadline applies to each request once it is sent, and this deadline applies to the
# whole fetch. A longer deadline would also extend the lease of a process that has died.
_LONGEST_FETCH_SECONDS = 600.0

# A key in the meta of a `DownloaderFetcher`'s request, which Scrapy copies along with
# the request: how many more bytes of a robots.txt body may be received.
_BYTES_LEFT = "robotsgate_bytes_left"

# Most users who set ROBOTSGATE_POLICY don't do it for the address guard.
_DEFAULT_POLICY = Policy()

# The maximum size of a body decoded by Scrapy; a larger body is considered corrupt.
_MOST_DECODED_BYTES = 32 * 1024 * 1024


class RobotsGateAddon:
    """A Scrapy add-on that replaces Scrapy's robots.txt middleware with ours.

    Settings of your project take precedence, including `ROBOTSTXT_OBEY = False`.
    """

    def update_settings(self, settings: BaseSettings) -> None:
        """Turn on ROBOTSTXT_OBEY, and `RobotsGateMiddleware` instead of Scrapy's."""
        settings.set("ROBOTSTXT_OBEY", value=True, priority="addon")
        name = "DOWNLOADER_MIDDLEWARES"
        settings.set_in_component_priority_dict(name, RobotsTxtMiddleware, None)
        settings.setdefault_in_component_priority_dict(name, RobotsGateMiddleware, 100)


class RobotsGateParser(RobotParser):
    """A robots.txt parser for Scrapy's own middleware and the robots_parsed signal.

    To use only the parser, set ROBOTSTXT_PARSER to this class. A User-Agent without a
    product token is treated as "*".

    Attributes:
        robots_txt: the parsed file.
    """

    def __init__(self, robots_txt: RobotsTxt) -> None:
        """Answer from `robots_txt`."""
        self.robots_txt: RobotsTxt = robots_txt

    @classmethod
    def from_crawler(cls, crawler: Crawler, robotstxt_body: bytes) -> Self:  # noqa: ARG003 (Scrapy's)
        """Create the parser for a file."""
        return cls(RobotsTxt.parse(robotstxt_body))

    def allowed(self, url: str | bytes, user_agent: str | bytes) -> bool:
        """Whether `user_agent` may fetch the absolute URL `url`.

        Raises:
            InvalidURLError: `url` is not an absolute URL.
        """
        return self.robots_txt.can_fetch(_agent(user_agent), to_unicode(url))

    def crawl_delay(self, user_agent: str | bytes) -> float | None:
        """The crawl-delay for `user_agent` in seconds, ≥ 0; `None` if there is none."""
        return self.robots_txt.crawl_delay(_agent(user_agent))


class RobotsGateMiddleware:
    """A downloader middleware that refuses disallowed requests.

    Like Scrapy's own middleware, it supports the settings ROBOTSTXT_OBEY and
    ROBOTSTXT_USER_AGENT, `dont_obey_robotstxt` in a request's meta, the robotstxt/*
    stats and the robots_parsed signal. For a disallowed request, it raises
    `IgnoreRequest`, whose cause is a `DisallowedError` with the verdict.

    A crawl-delay sets the minimum delay for its host's download slot. A longer delay is
    kept, and neither randomization nor AutoThrottle goes below the minimum. If the file
    later asks for a shorter delay, the slot keeps its delay until it has been idle for
    a minute.

    The Retry-After of any response except a 2xx or 304 holds back the next request of
    its download slot, including Scrapy's own retry. Requests that wait in a slot count
    towards CONCURRENT_REQUESTS, and a spider does not close before they are sent; the
    policy's `retry_after_max` limits the wait.

    Additional settings:

    - ROBOTSGATE_STORE: the URL of a store, as for `open_store`; "memory:" by default.
    - ROBOTSGATE_POLICY: a `Policy`. Its `fetch_deadline` applies to each request in a
      fetch, starting when the request is sent, because the server is not to blame for
      time spent in a download slot. Scrapy's timeouts replace the policy's other
      timeouts.
    - ROBOTSGATE_MAX_CRAWL_DELAY: the longest crawl-delay to respect, in seconds; 3600
      by default.

    Attributes:
        checker: the checker, which is open from spider_opened to spider_closed.
    """

    def __init__(self, crawler: Crawler) -> None:
        """Use the settings of `crawler`.

        Raises:
            NotConfigured: ROBOTSTXT_OBEY is off.
            RuntimeError: Scrapy is not running on asyncio.
            TypeError: ROBOTSGATE_POLICY is not a `Policy`.
            StoreError: ROBOTSGATE_STORE is not the URL of a store, or the store cannot
                be opened.
        """
        settings = crawler.settings
        if not settings.getbool("ROBOTSTXT_OBEY"):
            raise NotConfigured
        if not is_asyncio_available():
            raise RuntimeError(
                "expected Scrapy to run on asyncio, got the reactor"
                f" {settings['TWISTED_REACTOR']!r}"
            )
        policy = _policy_in(settings)
        self._crawler = crawler
        self._policy = policy
        self._robots_agent: str | None = settings["ROBOTSTXT_USER_AGENT"]
        self._default_agent: str = settings["USER_AGENT"] or "*"
        self._longest_delay = settings.getfloat(
            "ROBOTSGATE_MAX_CRAWL_DELAY", _LONGEST_CRAWL_DELAY
        )
        self.checker: RobotsChecker = RobotsChecker(
            user_agent="Scrapy",  # never sent, because Scrapy sets the header
            client=DownloaderFetcher(crawler, policy),
            store=settings.get("ROBOTSGATE_STORE"),
            policy=replace(
                policy,
                fetch_deadline=max(policy.fetch_deadline, _LONGEST_FETCH_SECONDS),
            ),
            on_event=self._count,
        )
        # Keyed by the file's origin and date. The values are tasks, because a request
        # may end before the signal's handlers do.
        self._announcements: LRUCache[tuple[str, float], asyncio.Task[None]]
        self._announcements = LRUCache(_MAX_KNOWN)
        self._delays: LRUCache[str, dict[str, float]] = LRUCache(_MAX_KNOWN)
        # The time, in epoch seconds, until which a case needs no further work. A case
        # is an agent, an origin, and a slot.
        self._settled_until: LRUCache[tuple[str | None, ...], float]
        self._settled_until = LRUCache(_MAX_KNOWN)
        connect = crawler.signals.connect
        connect(self._spider_opened, signals.spider_opened)
        connect(self._spider_closed, signals.spider_closed)
        connect(self._obey_retry_after, signals.response_downloaded)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Create the middleware for `crawler`."""
        return cls(crawler)

    async def process_request(self, request: scrapy.Request) -> None:
        """Let `request` through if it is allowed.

        Raises:
            scrapy.exceptions.IgnoreRequest: robots.txt disallows `request`, or the
                checker does not support its URL, for example an ftp URL.
        """
        if request.meta.get("dont_obey_robotstxt"):
            return
        agent = _agent(
            self._robots_agent
            or request.headers.get(b"User-Agent")
            or self._default_agent
        )
        try:
            for url in _asked_urls(request):
                await self._check(url, agent, request)
        except (InvalidURLError, UnsupportedError) as error:
            raise IgnoreRequest(f"The URL cannot be checked: {error}") from error

    async def _check(self, url: str, agent: str, request: scrapy.Request) -> None:
        """Raise an `IgnoreRequest` if `agent` may not send `request` to `url`."""
        case = (agent, url[: url.index("/", 8)], request.meta.get("download_slot"))
        is_settled = self._settled_until.get(case, 0.0) > _CLOCK.now()
        ask = self.checker.refusal if is_settled else self.checker.check
        verdict = await ask(agent, url)
        if verdict is None:
            return
        await self._announce(verdict, request)
        await self._learn_delay(verdict.origin, agent, request)
        # `fresh_until` is only `None` for overrides, and this checker has none.
        self._settled_until[case] = verdict.fresh_until or 0.0
        if not verdict.allowed:
            self._crawler.stats.inc_value("robotstxt/forbidden")
            raise IgnoreRequest(
                f"Forbidden by robots.txt: {verdict}"
            ) from DisallowedError(verdict)

    async def _announce(self, verdict: Verdict, request: scrapy.Request) -> None:
        """Send robots_parsed unless it has already been sent for the current file.

        As with Scrapy's own middleware, all requests wait for the signal's handlers.
        """
        if verdict.fetched_at is None:
            return
        key = (verdict.origin, verdict.fetched_at)
        task = self._announcements.get(key)
        if task is None:
            task = asyncio.create_task(
                self._send_robots_parsed(verdict.origin, request)
            )
            self._announcements[key] = task
        await asyncio.shield(task)

    async def _send_robots_parsed(self, origin: str, request: scrapy.Request) -> None:
        robots_txt = await self.checker.robots_txt(origin)
        if robots_txt is not None:
            await self._crawler.signals.send_catch_log_async(
                signal=signals.robots_parsed,
                robotparser=RobotsGateParser(robots_txt),
                request=request,
            )

    async def _learn_delay(
        self, origin: str, agent: str, request: scrapy.Request
    ) -> None:
        """Remember `origin`'s crawl-delay for the slot of `request`."""
        asked = await self.checker.crawl_delay(agent, origin) or 0.0
        if asked and not self._delays:  # a handler costs time for every page
            connect = self._crawler.signals.connect
            connect(self._keep_delay, signals.request_reached_downloader)
            # This runs after AutoThrottle's handler, which is connected at startup.
            connect(self._keep_delay, signals.response_downloaded)
        throttler = getattr(self._crawler, "throttler", None)
        downloader = self._crawler.engine.downloader
        key_of = throttler.get_scopes_key if throttler else downloader.get_slot_key
        slot = key_of(request)
        if asked or slot in self._delays:
            delays = self._delays.setdefault(slot, {})
            delays[origin] = min(asked, self._longest_delay)

    def _count(self, event: CheckerEvent) -> None:
        """Count a fetch in the same stats as Scrapy's own middleware does."""
        if isinstance(event, RobotsTxtFetched):
            count = self._crawler.stats.inc_value
            count("robotstxt/request_count")
            if event.status is not None:
                count("robotstxt/response_count")
                count(f"robotstxt/response_status_count/{event.status}")

    def _keep_delay(self, request: scrapy.Request) -> None:
        """Make `request`'s slot keep the longest crawl-delay of the slot's origins."""
        key = request.meta["download_slot"]
        least = max(self._delays.get(key, {}).values(), default=0.0)
        if least:
            for slot in _slots_of(request, self._crawler):
                _hold_back(slot, least)

    def _obey_retry_after(self, request: scrapy.Request, response: Response) -> None:
        """Hold back the next request of a slot until `response` permits it.

        Scrapy's middlewares, including the one that retries requests, see the response
        only later.
        """
        status = response.status
        if _BYTES_LEFT in request.meta and status not in _WORTH_OBEYING:
            return
        values = b", ".join(response.headers.getlist("Retry-After"))
        seconds = seconds_asked_for(
            status,
            {"retry-after": values.decode("latin-1")},
            now=_CLOCK.now(),
            policy=self._policy,
        )
        if seconds is None or seconds <= 0:
            return
        for slot in _slots_of(request, self._crawler):
            _hold_back_until(_CLOCK.monotonic() + seconds, slot)

    async def _spider_opened(self) -> None:
        await self.checker.open()  # which a subclass may have replaced

    async def _spider_closed(self) -> None:
        await self.checker.aclose()


class DownloaderFetcher:
    """A `Fetcher` that uses Scrapy's downloader and its middlewares.

    It sends the User-Agent that Scrapy uses for all requests.

    Attributes:
        guard_setting: the setting with which the user chose an address guard, or `None`
            if the guard is the default. No guard can see where Scrapy connects.
    """

    def __init__(self, crawler: Crawler, policy: Policy) -> None:
        """Fetch with `crawler`'s engine, which may not exist yet.

        The `fetch_deadline` of `policy` applies to each request once it has been sent.
        """
        self._crawler = crawler
        self._seconds = policy.fetch_deadline
        self._under_way = 0
        is_chosen = policy.address_guard is not _DEFAULT_POLICY.address_guard
        self.guard_setting = "ROBOTSGATE_POLICY" if is_chosen else None

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        """See `Fetcher.get`.

        When Scrapy decodes a body, it removes the content coding from the headers. If
        decoding fails, the headers still contain the coding.
        """
        own = {name: value for name, value in headers if name != "User-Agent"}
        request = scrapy.Request(
            url,
            # Scrapy neither sends a header that is `None` nor sets a default for it.
            headers={**dict.fromkeys(NEVER_SENT), **own},
            callback=NO_CALLBACK,
            dont_filter=True,
            meta={
                "dont_obey_robotstxt": True,
                "dont_cache": True,
                "dont_merge_cookies": True,
                "dont_redirect": True,
                "dont_retry": True,
                "download_fail_on_dataloss": False,  # the status would be lost
                "download_maxsize": 0,
                "download_timeout": self._seconds,
                _BYTES_LEFT: max_bytes,
            },
        )
        response = await self._download(request)
        body = response.body
        if "dataloss" in response.flags:
            body = b""
            if 200 <= response.status <= 299:  # noqa: PLR2004
                raise FetchFailedError("the body is cut off", kind=FailureKind.PROTOCOL)
        return FetchedResponse(
            status=response.status,
            headers=as_pairs(
                (name, value)
                for name, values in response.headers.items()
                for value in values
            ),
            body=body,
            is_decoded=False,
        )

    async def _download(self, request: scrapy.Request) -> Response:
        crawler = self._crawler
        # Not connected permanently, because that would slow down every chunk of every
        # page.
        if not self._under_way:
            crawler.signals.connect(self._bound_body, signals.bytes_received)
        self._under_way += 1
        try:
            return await crawler.engine.download_async(request)
        except Exception as error:
            if not isinstance(error, IgnoreRequest):
                crawler.stats.inc_value(f"robotstxt/exception_count/{type(error)}")
            raise
        finally:
            self._under_way -= 1
            if not self._under_way:
                crawler.signals.disconnect(self._bound_body, signals.bytes_received)

    def _bound_body(self, data: bytes, request: scrapy.Request) -> None:
        """Stop one of this fetcher's downloads once it has received enough."""
        left = request.meta.get(_BYTES_LEFT)
        if left is None:
            return
        # Scrapy applies this limit when decoding. If it were set from the start, Scrapy
        # would also refuse a file with a larger Content-Length instead of truncating
        # it.
        request.meta["download_maxsize"] = _MOST_DECODED_BYTES
        request.meta[_BYTES_LEFT] = left - len(data)
        if left <= len(data):
            raise StopDownload(fail=False)


def _policy_in(settings: BaseSettings) -> Policy:
    policy = settings.get("ROBOTSGATE_POLICY", _DEFAULT_POLICY)
    if not isinstance(policy, Policy):
        raise TypeError(f"expected ROBOTSGATE_POLICY to be a Policy, got {policy!r}")
    return policy


def _slots_of(request: scrapy.Request, crawler: Crawler) -> list[Any]:
    """The download slot of `request`, or its throttling scopes.

    Scopes are to replace slots (https://github.com/scrapy/scrapy/pull/6931). So far,
    their jitter and the time of their next request are private.
    """
    throttler = getattr(crawler, "throttler", None)
    if throttler is None:
        return [crawler.engine.downloader.slots[request.meta["download_slot"]]]
    return [*map(throttler.get_scope_manager, throttler.get_applied_scopes(request))]


def _hold_back_until(time: float, slot: Any) -> None:  # noqa: ANN401 (see `_slots_of`)
    if hasattr(slot, "set_base_delay"):
        slot._next_allowed_time = max(slot._next_allowed_time or 0.0, time)  # noqa: SLF001
        return
    # The time from which Scrapy counts the delay, if there is one. It also keeps a slot
    # until then.
    slot.lastseen = max(slot.lastseen, time)
    _hold_back(slot, _SHORTEST_DELAY)


def _hold_back(slot: Any, least: float) -> None:  # noqa: ANN401 (see `_slots_of`)
    """Make `slot` wait at least `least` seconds between requests."""
    if hasattr(slot, "set_base_delay"):
        if slot.get_base_delay() < least:  # the requests before did not wait for it
            slot.set_base_delay(least)
            _hold_back_until(_CLOCK.monotonic() + least, slot)
        slot._jitter = min(slot._jitter, 1 - least / slot.get_base_delay())  # noqa: SLF001
        return
    slot.delay = max(slot.delay, least)
    if hasattr(slot, "jitter"):  # the fraction by which the delay is randomized
        slot.jitter = min(slot.jitter, 1 - least / slot.delay)
    elif slot.delay < 2 * least:  # Scrapy 2.18 randomizes by half, or not at all
        slot.randomize_delay = False


def _asked_urls(request: scrapy.Request) -> Iterator[str]:
    """The URLs that `request` is for, parsed the way Scrapy's handlers parse them."""
    parts = urlparse_cached(request)
    parameters = f";{parts.params}" if parts.params else ""
    query = f"?{parts.query}" if parts.query else ""
    target = f"{parts.path or '/'}{parameters}{query}"
    headers = [("Host", value) for value in request.headers.getlist(b"Host")]
    host = parts.hostname or ""
    return asked_urls(parts.scheme, host, parts.port, target, headers=headers)


@lru_cache(maxsize=_MAX_AGENTS)
def _agent(user_agent: str | bytes) -> str:
    return crawler_or_any(to_unicode(user_agent, errors="replace"))
