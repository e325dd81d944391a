"""Answers "may this agent fetch this URL now?": start reading here.

The way of a question: `can_fetch` → `Answers.at_once` (two look-ups) → or
`Question.of` → `Renewals` (memory, then the store, then the network) → `Standing` →
`StandingFor` the agent → the answer.
Longer than other modules, because it is the public surface: half of it is docstrings.
"""

from __future__ import annotations

import warnings
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Self

from robotsgate._clock import SystemClock
from robotsgate._flights import Flights
from robotsgate.caching._live import LiveOrigins
from robotsgate.caching._policy import Policy
from robotsgate.caching._question import (
    Agent,
    Question,
    check_bound,
    check_policy,
    check_urls,
)
from robotsgate.checking._answers import Answers
from robotsgate.checking._arguments import check_clock, check_store, user_agent_of
from robotsgate.checking._entries import Entries
from robotsgate.checking._many import answer_each, check_in_order, prefetch
from robotsgate.checking._renewal import Renewals
from robotsgate.checking._reporting import reporter_for
from robotsgate.robotstxt._dialect import Dialect, grammar_of
from robotsgate.robotstxt._records import absolute_sitemaps
from robotsgate.stores._url import open_store
from robotsgate.stores.memory import MemoryStore
from robotsgate.urls._origin import Origin

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence

    from robotsgate._clock import Clock
    from robotsgate.caching._verdict import Verdict
    from robotsgate.checking._events import CheckerEvent, CheckerStats
    from robotsgate.checking._many import CheckResults
    from robotsgate.fetching._fetcher import Fetcher
    from robotsgate.fetching._httpx import AsyncClientLike, AsyncTransportLike
    from robotsgate.robotstxt._headers import HeadersLike
    from robotsgate.robotstxt._model import RequestRate
    from robotsgate.robotstxt._robots_txt import RobotsTxt
    from robotsgate.robotstxt._usage_preferences import UsagePreferences
    from robotsgate.stores._base import Store
    from robotsgate.urls._origin import URLLike


class RobotsChecker:
    """Fetches, keeps and obeys the robots.txt of every origin it is asked about.

    Use it as an async context manager, or call `aclose` at the end. Any number of
    tasks of one event loop (asyncio or trio) may use it; threads may not share it.
    """

    _own_store: Store | None = None  # for `__del__`, if `__init__` raises

    def __init__(
        self,
        *,
        user_agent: str | None = None,
        client: Fetcher | AsyncClientLike | AsyncTransportLike | None = None,
        store: Store | str | None = None,
        policy: Policy = Policy(),
        dialect: Dialect = Dialect.RFC9309,
        max_origins: int = 10_000,
        max_concurrent_fetches: int = 100,
        clock: Clock = SystemClock(),
        overrides: Mapping[str, RobotsTxt | bytes | str] | None = None,
        on_event: Callable[[CheckerEvent], object] | None = None,
    ) -> None:
        """Make a checker, which fetches nothing yet.

        Args:
            user_agent: the User-Agent header of your crawler, for fetches of a
                robots.txt. `None`: that of robotsgate, with a UserWarning (unless
                `client` is a FakeSite), because servers may treat a
                library differently.
            client: sends the requests: an `AsyncClient` of httpx or httpx2, one of
                their transports, or a `Fetcher`. The checker never closes it.
                `None`: a new connection for each fetch, without proxies; only then
                the checker can fetch over ftp.
            store: keeps entries: a store, which the checker never closes, or the URL
                of one, which it opens and closes: "memory:", "sqlite:///robots.db",
                "redis://host". `None`: "memory:".
            policy: what answers mean and how long they are kept.
            dialect: the way to read a robots.txt.
            max_origins: how many origins stay parsed in memory, ≥ 1.
            max_concurrent_fetches: how many fetches run at once, ≥ 1.
            clock: tells the time, and waits.
            overrides: files to use in place of a fetched robots.txt, for origins that
                are yours or have permitted it; keys are URLs of those origins.
            on_event: called with each `CheckerEvent`; it must not block. The checker
                logs its exceptions.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: an argument is out of range, or a key of `overrides` names
                no origin, or the same one as another key.
            StoreError: `store` is not a store, or cannot be opened.
        """
        check_policy(policy)
        check_clock(clock)
        check_bound("max_origins", max_origins)
        check_bound("max_concurrent_fetches", max_concurrent_fetches)
        grammar = grammar_of(dialect)
        # Imported here, because h11 and ssl load slowly, and a parser needs neither.
        from robotsgate.fetching._robots_fetch import RobotsTxtFetcher  # noqa: PLC0415

        user_agent = user_agent_of(user_agent, client)
        fetcher = RobotsTxtFetcher(client, user_agent=user_agent, policy=policy)
        self._reporter = reporter_for(on_event)
        self._live = LiveOrigins(
            max_origins=max_origins, policy=policy, dialect=dialect, overrides=overrides
        )
        check_store(store)
        if store is None or isinstance(store, str):  # last: no error leaves it open
            store = self._own_store = open_store("memory:" if store is None else store)
        self._entries = Entries(store, self._reporter, policy=policy, clock=clock)
        self._renewals = Renewals(
            self._live,
            self._entries,
            fetcher,
            self._reporter,
            policy=policy,
            clock=clock,
            max_concurrent_fetches=max_concurrent_fetches,
        )
        self._answers = Answers(
            self._live,
            self._renewals,
            self._reporter,
            policy=policy,
            clock=clock,
            grammar=grammar,
        )
        self._sources: Flights[bool] = Flights()
        self._max_concurrent_fetches = max_concurrent_fetches

    async def __aenter__(self) -> Self:
        """Give the checker. Its own store keeps connections open from now on."""
        own_store: object = self._own_store
        if isinstance(own_store, AbstractAsyncContextManager):
            await own_store.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Call `aclose`."""
        await self.aclose()

    async def aclose(self) -> None:
        """End the fetches under way, and forget what is in memory.

        A caller that waits for a fetch, or needs one from now on, gets a
        RuntimeError. Your client and store stay open. You may call it more than once.
        """
        parts = (self._sources, self._renewals.flights, self._answers)
        try:
            for part in parts:  # a caller that is cancelled below does not wait
                part.close()
            for part in parts:
                await part.aclose()
        finally:
            self._live.clear()
            if self._own_store is not None:
                await self._own_store.aclose()
                self._own_store = None

    def __del__(self) -> None:
        """Warn if its own store was never closed."""
        if self._own_store is not None and not isinstance(self._own_store, MemoryStore):
            message = f"unclosed {self!r}"
            warnings.warn(message, ResourceWarning, stacklevel=2, source=self)

    async def can_fetch(self, agent: str | Sequence[str], url: str | URLLike) -> bool:
        """Whether `agent` may fetch `url` now.

        Fetches the robots.txt of an origin that is not known and fresh; otherwise it
        does not suspend. A failing server never raises an exception.

        Args:
            agent: a product token, a whole User-Agent header that names a crawler,
                "*" for the fallback group alone, or a sequence of those, most
                specific first: the first that has a group counts.
            url: an absolute URL: a `str`, or an object whose `str()` is one.

        Raises:
            InvalidProductTokenError: `agent` names no crawler (the header of a
                browser, for example), or the arguments are swapped.
            InvalidURLError: `url` names no origin.
            UnsupportedError: the scheme of `url` is ftp, and the checker has a client.
            RuntimeError: the checker is closed.
        """
        answer = self._answers.at_once(agent, url)
        if answer is None:
            question = Question.of(agent, url, self._answers.grammar)
            rules = await self._answers.rules_for(question.agent, question.origin)
            answer = await self._answers.allows(rules, question)
        return answer

    async def check(self, agent: str | Sequence[str], url: str | URLLike) -> Verdict:
        """The answer of `can_fetch` with what led to it; takes and raises the same."""
        question = Question.of(agent, url, self._answers.grammar)
        return await self._answers.verdict(question)

    async def refusal(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> Verdict | None:
        """The verdict that refuses `url`; `None` if `agent` may fetch it.

        As fast as `can_fetch` for a URL that is allowed; takes and raises the same.
        """
        answer = self.peek(agent, url)
        return await self._answers.refusal(agent, url, answer=answer)

    async def can_fetch_many(
        self, agent: str | Sequence[str], urls: Iterable[str | URLLike]
    ) -> list[bool]:
        """The answers of `can_fetch` for many URLs, in the order of `urls`.

        `False` for a URL without an origin, or with one that the checker cannot fetch;
        `check_many` says why. The checker reads all URLs first, then fetches unknown
        origins concurrently.

        Raises:
            InvalidProductTokenError: as `can_fetch`; RuntimeError, too.
            InvalidURLError: one of `urls` is neither text nor a URL object.
            TypeError: `urls` is a single URL, or not iterable.
        """
        check_urls(urls, agent=agent)
        self._renewals.flights.check_open()
        return await answer_each(
            agent,
            urls,
            answers=self._answers,
            renewals=self._renewals,
            at_once=self._max_concurrent_fetches,
        )

    def check_many(
        self,
        agent: str | Sequence[str],
        urls: Iterable[str | URLLike] | AsyncIterable[str | URLLike],
        *,
        window: int = 1_000,
    ) -> CheckResults:
        """The answers of `check` for any number of URLs, in the order of `urls`.

        While the first URL waits for its answer, the checker reads later URLs and
        fetches the robots.txt of their origins. You may leave the loop, or cancel it,
        at any time; while you keep the iterator, reading goes on until you call its
        `aclose`.

        Args:
            agent: as in `can_fetch`.
            urls: may be endless. Another task reads it, so an async iterable may wait
                for what you do with earlier answers. An async generator is closed
                when the loop ends.
            window: how many URLs are read ahead of the one that you get, ≥ 1.

        Raises:
            InvalidProductTokenError: as `can_fetch`.
            TypeError: `urls` is a single URL, or not iterable.
            RuntimeError: while you iterate: the checker is closed.
            Exception: while you iterate: what `urls` raises, after the answers to
                the URLs before.
        """
        check_urls(urls, agent=agent, may_be_async=True)
        check_bound("window", window)
        return check_in_order(
            agent,
            urls,
            answers=self._answers,
            renewals=self._renewals,
            sources=self._sources,
            window=window,
        )

    def peek(self, agent: str | Sequence[str], url: str | URLLike) -> bool | None:
        """The answer of `can_fetch` if it is in memory, without waiting.

        `None` if the answer needs a fetch, the store, or a worker thread, as it does
        for unparsed files of more than 64 KiB, for more than 2,000 wildcard patterns
        of `agent`, and for hostile rules on long URLs.

        Raises:
            InvalidProductTokenError: as `can_fetch`.
            InvalidURLError: as `can_fetch`.
        """
        answer = self._answers.at_once(agent, url)
        if answer is None:
            question = Question.of(agent, url, self._answers.grammar)
            answer = self._answers.from_memory(question)
        return answer

    async def robots_txt(self, url: str | URLLike) -> RobotsTxt | None:
        """The robots.txt in force for `url`, parsed; raises as `can_fetch`.

        `None` if the origin has none, or is unreachable and no copy may be used.
        """
        return await self._answers.part(Origin.from_url(url), lambda file: file)

    async def crawl_delay(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> float | None:
        """The crawl-delay for `agent`, seconds ≥ 0, if any; raises as `can_fetch`."""
        rules = await self._answers.rules_for(Agent.of(agent), Origin.from_url(url))
        return rules.agent_rules.crawl_delay

    async def request_rate(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> RequestRate | None:
        """The request rate for `agent`, if any; raises as `can_fetch`."""
        rules = await self._answers.rules_for(Agent.of(agent), Origin.from_url(url))
        return rules.agent_rules.request_rate

    async def usage_preferences(
        self,
        agent: str | Sequence[str],
        url: str | URLLike,
        *,
        headers: HeadersLike | None = None,
    ) -> UsagePreferences:
        """What the origin wants `url` to be used for.

        Every preference is unknown if `agent` may not fetch `url`. Takes and raises as
        `can_fetch`; also raises TypeError if `headers` does not hold pairs of text.
        The headers of the page, if you have it, may hold Content-Usage and
        Content-Signal, too.
        """
        question = Question.of(agent, url, self._answers.grammar)
        return await self._answers.usage_preferences(question, headers)

    async def sitemaps(self, url: str | URLLike) -> tuple[str, ...]:
        """The absolute URLs of the origin's sitemaps; raises as `can_fetch`."""
        origin = Origin.from_url(url)
        urls = await self._answers.part(
            origin, lambda file: absolute_sitemaps(file.sitemaps, origin.key)
        )
        return urls or ()

    async def prefetch(self, urls: Iterable[str | URLLike]) -> None:
        """Fetch those origins of `urls` that are not known, concurrently.

        Skips a URL without an origin, or with one that the checker cannot fetch.
        Raises as `can_fetch_many`.
        """
        check_urls(urls)
        self._renewals.flights.check_open()
        await prefetch(
            urls,
            renewals=self._renewals,
            at_once=self._max_concurrent_fetches,
            monotonic=self._answers.clock.monotonic,
        )

    async def refresh(self, url: str | URLLike) -> None:
        """Fetch the robots.txt of the origin of `url`, however fresh it is.

        Joins a fetch that is under way; does nothing for an override. Raises as
        `can_fetch`.
        """
        await self._renewals.refresh(Origin.from_url(url))

    async def forget(self, url: str | URLLike) -> None:
        """Drop what is known of the origin of `url`, in memory and in the store.

        A fetch that is under way goes on, and the checker keeps its result. An
        override stays in force. Raises InvalidURLError as `can_fetch`.
        """
        await self._renewals.forget(Origin.from_url(url))

    async def purge(self) -> int | None:
        """Drop from the store what nothing can use any more.

        Call it now and then for a `SQLiteStore`, which keeps such entries.
        `Policy.store_timeout` does not bound it. Returns how many entries it dropped;
        `None` if the store failed.
        """
        return await self._entries.purge()

    @property
    def stats(self) -> CheckerStats:
        """The counters as they are now."""
        return self._reporter.stats(
            joined=self._renewals.flights.joined,
            live_origins=len(self._live.by_origin),
            fetches_under_way=len(self._renewals.flights),
        )
