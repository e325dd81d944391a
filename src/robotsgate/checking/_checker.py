"""The checker decides whether an agent may fetch a URL. Start reading here.

The path of a lookup: `can_fetch` → `Lookups.at_once` (two dictionary lookups) → or
`Question.of` → `Renewals` (memory, then the store, then the network) → `Standing` →
`StandingFor` (for the agent) → the result.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractAsyncContextManager
from os import PathLike
from typing import TYPE_CHECKING, NoReturn, Self

from robotsgate._clock import SystemClock
from robotsgate._public import set_module
from robotsgate._version import __version__
from robotsgate.caching._live import LiveOrigins
from robotsgate.caching._policy import Policy
from robotsgate.caching._question import (
    Agent,
    Question,
    check_bound,
    check_callback,
    check_policy,
    check_urls,
)
from robotsgate.checking._entries import Entries
from robotsgate.checking._lookups import Lookups, ResultsInOrder
from robotsgate.checking._renewal import OwnAttempts, Renewals
from robotsgate.checking._reporting import Reporter
from robotsgate.robotstxt._dialect import Dialect, grammar_of
from robotsgate.robotstxt._parser import absolute_sitemaps
from robotsgate.stores._base import check_store
from robotsgate.stores._url import open_store
from robotsgate.urls._url import Origin

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence

    from robotsgate._clock import Clock
    from robotsgate.caching._verdict import Verdict
    from robotsgate.checking._lookups import CheckResult
    from robotsgate.events import CheckerEvent, CheckerStats
    from robotsgate.fetching._fetcher import Fetcher
    from robotsgate.fetching._httpx import AsyncClientLike, AsyncTransportLike
    from robotsgate.robotstxt._headers import HeadersLike
    from robotsgate.robotstxt._model import RequestRate
    from robotsgate.robotstxt._robots_txt import RobotsTxt
    from robotsgate.robotstxt._usage_preferences import UsagePreferences
    from robotsgate.stores._base import Store
    from robotsgate.urls._url import URLLike

_DEFAULT_USER_AGENT = f"robotsgate/{__version__}"
_NO_USER_AGENT = (
    "expected the user_agent of your crawler, such as"
    " 'ExampleBot/1.0 (+https://example.org/bot)': servers may treat"
    f" {_DEFAULT_USER_AGENT!r} differently"
)
_CLOCK_METHODS = ("now", "monotonic", "wait")


@set_module("robotsgate")
class RobotsChecker:
    """Checks URLs against robots.txt, which it fetches and caches for each origin.

    Use it as an async context manager, or call `aclose` at the end. Any number of tasks
    in one event loop (asyncio or trio) can share it, but processes, threads and calls
    of `asyncio.run` cannot: the checker belongs to the first loop that had to wait for
    it, and in any other, it answers only from memory. `robotsgate.sync` has a checker
    for threads.
    """

    _own_store: Store | None = None  # for `__del__`, if `__init__` raises

    def __init__(
        self,
        *,
        user_agent: str | None = None,
        client: Fetcher | AsyncClientLike | AsyncTransportLike | None = None,
        sign: Callable[[str, str, Mapping[str, str]], Mapping[str, str]] | None = None,
        store: Store | str | PathLike[str] | None = None,
        policy: Policy = Policy(),
        dialect: Dialect = Dialect.RFC9309,
        max_origins: int = 10_000,
        max_concurrent_fetches: int = 100,
        clock: Clock = SystemClock(),
        overrides: Mapping[str, RobotsTxt | bytes | str] | None = None,
        on_event: Callable[[CheckerEvent], object] | None = None,
    ) -> None:
        """Create a checker without fetching anything.

        Args:
            user_agent: your crawler's User-Agent header, used to fetch robots.txt. By
                default, robotsgate's own header is sent, with a UserWarning (unless
                `client` is a FakeSite), because servers may treat a library
                differently.
            client: sends the requests: an httpx or httpx2 `AsyncClient` or async
                transport, or a `Fetcher`. You close it; the checker does not. By
                default, each fetch opens a new connection and uses no proxy. Without a
                client, the checker can also fetch over FTP.
            sign: returns headers to add to an HTTP request, such as Signature and
                Signature-Input (RFC 9421). It is called with "GET", the URL and the
                checker's headers (without Host), and again for each redirect. It must
                not block, and cannot add credentials, conditions, or headers about the
                connection or content; return `{}` for URLs that need no signature. An
                exception that it raises reaches the callers that are waiting for the
                fetch; nothing is cached, so the next call sends the requests again.
            store: where to cache entries; by default, in the checker's own memory.
                Either a store, which you close yourself, or the URL of a store that the
                checker opens and closes, such as "sqlite:///robots.db" or
                "redis://host"; or, for an SQLite file, its `Path`.
            policy: how to treat status codes and outages, and which limits apply.
            dialect: the dialect for parsing robots.txt.
            max_origins: the maximum number of parsed origins in memory, ≥ 1.
            max_concurrent_fetches: the maximum number of concurrent fetches, ≥ 1. Host
                names are looked up in at most four times as many threads.
            clock: the clock; tests can pass a different one.
            overrides: files to use instead of fetching robots.txt, for origins that you
                own or that permit it; the keys are URLs on these origins.
            on_event: called with each `CheckerEvent`; it must not block. Exceptions
                that it raises are logged.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: an argument is out of range, or a key of `overrides` has no
                origin or the same origin as another key.
            StoreError: `store` is not a store, or cannot be opened.
        """
        check_policy(policy)
        _check_clock(clock)
        check_callback("sign", sign)
        check_bound("max_origins", max_origins)
        check_bound("max_concurrent_fetches", max_concurrent_fetches)
        # Imported here, because h11 and ssl are slow to import, and parsing needs
        # neither.
        from robotsgate.fetching._robots_fetch import RobotsTxtFetcher  # noqa: PLC0415

        if user_agent is None:
            user_agent = _DEFAULT_USER_AGENT
            if not getattr(client, "dials_nothing", False):
                warnings.warn(_NO_USER_AGENT, stacklevel=2)
        fetcher = RobotsTxtFetcher(
            client,
            user_agent=user_agent,
            sign=sign,
            policy=policy,
            max_concurrent_fetches=max_concurrent_fetches,
        )
        self._reporter = Reporter(on_event)
        own = OwnAttempts(max_origins=max_origins, longest_pause=policy.retry_max)
        self._live = LiveOrigins(
            max_origins=max_origins,
            policy=policy,
            dialect=dialect,
            overrides=overrides,
            current_until=own.current_until,
        )
        check_store(store)
        # Last, so that no error leaves it open.
        if isinstance(store, str | PathLike):
            store = self._own_store = open_store(store)
        self._entries = Entries(store, self._reporter, policy=policy, clock=clock)
        self._renewals = Renewals(
            self._live,
            self._entries,
            fetcher,
            self._reporter,
            own=own,
            policy=policy,
            clock=clock,
            max_concurrent_fetches=max_concurrent_fetches,
        )
        self._lookups = Lookups(self._renewals, grammar=grammar_of(dialect))

    async def __aenter__(self) -> Self:
        """Call `open`, and return the checker."""
        await self.open()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Call `aclose`."""
        await self.aclose()

    async def open(self) -> None:
        """Enter the checker without `async with`, for frameworks with separate hooks.

        Call `aclose` at the end, in any task. `open` can be called more than once.

        Raises:
            StoreError: the checker's own store cannot be opened.
            UnsupportedError: that store does not work on this event loop.
            RuntimeError: the checker is closed.
        """
        self._renewals.flights.check_open()
        own_store: object = self._own_store
        if isinstance(own_store, AbstractAsyncContextManager):
            await own_store.__aenter__()

    async def aclose(self) -> None:
        """Cancel all running fetches and clear the checker's memory.

        Callers that are waiting for a fetch, or need one afterwards, get a
        RuntimeError. Your client and store stay open. Can be called more than once.
        """
        flights = (self._renewals.flights, self._lookups.parsing)
        try:
            for one in flights:  # so callers cancelled below do not wait
                one.close()
            for one in flights:
                await one.aclose()
        finally:
            self._live.clear()
            self._entries.clear()
            if self._own_store is not None:
                await self._own_store.aclose()
                self._own_store = None

    def __reduce__(self: object) -> NoReturn:
        """Refuse to be pickled or copied."""
        name = type(self).__name__
        raise TypeError(
            f"a {name} cannot be pickled or copied: create one in each process"
        )

    def __repr__(self) -> str:
        """The checker, without its client or headers, which may contain secrets."""
        origins, store = len(self._live.by_origin), self._own_store
        return f"<robotsgate.RobotsChecker live_origins={origins} own_store={store!r}>"

    def __del__(self) -> None:
        """Warn if the checker's own store was not closed."""
        if self._own_store is not None:
            message = f"unclosed {self!r}"
            warnings.warn(message, ResourceWarning, stacklevel=2, source=self)

    async def can_fetch(self, agent: str | Sequence[str], url: str | URLLike) -> bool:
        """Whether `agent` may fetch `url`.

        Fetches the robots.txt unless a fresh copy is cached. If `peek` would return a
        result, this does not suspend. A failing server never raises an exception.

        Args:
            agent: a product token, a whole User-Agent header that names a crawler,
                "*" for just the fallback group, or a sequence of these, most specific
                first; the first one with a group is used.
            url: an absolute URL, as a `str` or as an object that `str()` converts to
                one.

        Raises:
            InvalidProductTokenError: `agent` does not name a crawler (for example, it
                is a browser's User-Agent string), or the arguments are swapped.
            InvalidURLError: `url` has no origin.
            UnsupportedError: the scheme of `url` is ftp, and the checker has a client.
            RuntimeError: the checker is closed, or belongs to another event loop.
        """
        answer = self._lookups.at_once(agent, url)
        if answer is None:
            question = Question.of(agent, url, self._lookups.grammar)
            rules = await self._lookups.rules_for(question.agent, question.origin)
            answer = await self._lookups.allows(rules, question)
        return answer

    async def check(self, agent: str | Sequence[str], url: str | URLLike) -> Verdict:
        """Like `can_fetch`, but returns a `Verdict`; raises the same errors."""
        question = Question.of(agent, url, self._lookups.grammar)
        return await self._lookups.verdict(question)

    async def refusal(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> Verdict | None:
        """Like `check`, but returns `None` if `agent` may fetch `url`.

        For allowed URLs, this is as fast as `can_fetch`. Raises the same errors.
        """
        answer = self.peek(agent, url)
        return await self._lookups.refusal(agent, url, answer=answer)

    async def can_fetch_many(
        self, agent: str | Sequence[str], urls: Iterable[str | URLLike]
    ) -> list[bool]:
        """Call `can_fetch` for many URLs and return the results in order.

        The result is `False` for a URL that has no origin or that the checker cannot
        fetch; use `check_many` to see why. All URLs are read first; then any robots.txt
        files that are not cached are fetched concurrently.

        Raises:
            InvalidProductTokenError: as in `can_fetch`.
            InvalidURLError: an item in `urls` is neither a str nor a URL object.
            TypeError: `urls` is a single URL, or not iterable.
            RuntimeError: the checker is closed.
        """
        check_urls(urls, agent=agent)
        return await self._lookups.each(agent, urls)

    def check_many(
        self,
        agent: str | Sequence[str],
        urls: Iterable[str | URLLike],
        *,
        window: int = 1_000,
    ) -> AsyncIterator[CheckResult]:
        """Call `check` for any number of URLs and iterate over the results in order.

        While the first URL is pending, the checker reads further URLs and fetches their
        robots.txt files. You can leave or cancel the loop at any time.

        Args:
            agent: as in `can_fetch`.
            urls: any iterable, including an endless one. It is read ahead, so it cannot
                depend on earlier results, and it must not block for long.
            window: how many URLs to read ahead, ≥ 1.

        Raises:
            InvalidProductTokenError: as in `can_fetch`.
            TypeError: `urls` is a single URL, or not iterable.
            RuntimeError: the checker is closed; raised while you iterate.
            Exception: any exception from `urls`; raised while you iterate, after the
                results for the URLs before it.
        """
        check_urls(urls, agent=agent)
        check_bound("window", window)
        return ResultsInOrder(self._lookups, agent, urls, window=window)

    def peek(self, agent: str | Sequence[str], url: str | URLLike) -> bool | None:
        """The result of `can_fetch` if it is available from memory without waiting.

        `None` if a fetch, the store, or a worker thread is needed. A worker thread is
        needed for unparsed files larger than 64 KiB, more than 2,000 wildcard patterns
        for `agent`, and hostile rules with long URLs.

        Raises:
            InvalidProductTokenError: as in `can_fetch`.
            InvalidURLError: as in `can_fetch`.
        """
        answer = self._lookups.at_once(agent, url)
        if answer is None:
            question = Question.of(agent, url, self._lookups.grammar)
            answer = self._lookups.from_memory(question)
        return answer

    async def robots_txt(self, url: str | URLLike) -> RobotsTxt | None:
        """The parsed robots.txt that applies to `url`.

        `None` if the origin has none, or is unreachable and there is no usable cached
        copy. Raises the same errors as `can_fetch`.
        """
        return await self._lookups.part(Origin.from_url(url), lambda file: file)

    async def crawl_delay(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> float | None:
        """The crawl-delay for `agent` in seconds, or `None`.

        Raises the same errors as `can_fetch`.
        """
        rules = await self._lookups.rules_for(Agent.of(agent), Origin.from_url(url))
        return rules.agent_rules.crawl_delay

    async def request_rate(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> RequestRate | None:
        """The request rate for `agent`, or `None`.

        Raises the same errors as `can_fetch`.
        """
        rules = await self._lookups.rules_for(Agent.of(agent), Origin.from_url(url))
        return rules.agent_rules.request_rate

    async def usage_preferences(
        self,
        agent: str | Sequence[str],
        url: str | URLLike,
        *,
        headers: HeadersLike | None = None,
    ) -> UsagePreferences:
        """The site's preferences for how `url` is used.

        If `agent` may not fetch `url`, all preferences are unknown. If you have fetched
        the page, pass its `headers`, which may contain Content-Usage and Content-Signal
        as well. Raises the same errors as `can_fetch`, and a TypeError if `headers`
        does not consist of pairs of str.
        """
        question = Question.of(agent, url, self._lookups.grammar)
        return await self._lookups.usage_preferences(question, headers)

    async def sitemaps(self, url: str | URLLike) -> tuple[str, ...]:
        """The absolute URLs of the origin's sitemaps.

        Relative URLs are resolved against the origin, and several URLs on one line are
        separated. URLs without a valid origin are omitted, as are those whose host has
        no dot, unless it is the origin's own host. Raises the same errors as
        `can_fetch`.
        """
        origin = Origin.from_url(url)
        urls = await self._lookups.part(
            origin, lambda file: absolute_sitemaps(file.sitemaps, origin)
        )
        return urls or ()

    async def prefetch(self, urls: Iterable[str | URLLike]) -> None:
        """Concurrently fetch any robots.txt files for `urls` that are not cached.

        URLs that have no origin or that the checker cannot fetch are skipped. Raises
        the same errors as `can_fetch_many`.
        """
        check_urls(urls)
        await self._lookups.prefetch(urls)

    async def refresh(self, url: str | URLLike) -> None:
        """Fetch the robots.txt for `url` again, even if it is fresh.

        If a fetch is already running, this waits for it instead. Has no effect on an
        override. Raises the same errors as `can_fetch`.
        """
        await self._renewals.refresh(Origin.from_url(url))

    async def forget(self, url: str | URLLike) -> None:
        """Remove the robots.txt for `url` from memory and from the store.

        A fetch that is already running continues, and its result is cached. Overrides
        are not affected. Raises InvalidURLError, like `can_fetch`.
        """
        await self._renewals.forget(Origin.from_url(url))

    async def purge(self) -> int | None:
        """Delete expired entries from the store and return how many were deleted.

        Call it from time to time if you use a `SQLiteStore`, which does not delete
        expired entries on its own. `Policy.store_timeout` does not apply. Returns
        `None` if the store failed.
        """
        return await self._entries.purge()

    @property
    def stats(self) -> CheckerStats:
        """The current counters."""
        return self._reporter.stats(
            joined=self._renewals.flights.joined,
            live_origins=len(self._live.by_origin),
            fetches_under_way=len(self._renewals.flights),
        )


def _check_clock(clock: object) -> None:
    if not all(callable(getattr(clock, name, None)) for name in _CLOCK_METHODS):
        raise TypeError(
            f"expected clock to have now, monotonic and wait, got {clock!r}"
        )
