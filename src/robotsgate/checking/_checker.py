"""Answers "may this agent fetch this URL now?": start reading here.

The way of a question: `can_fetch` → `peek` (memory) → `_current` → under the
origin's single flight `Renewals` (store, then network) → the pure decisions of
`caching` and `robotstxt`.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Self, cast

import anyio.lowlevel

from robotsgate._clock import SystemClock
from robotsgate._version import __version__
from robotsgate.caching._policy import Policy
from robotsgate.checking._arguments import (
    check_bound,
    check_clock,
    check_listener,
    check_store,
    check_type,
    check_urls,
    check_user_agent,
)
from robotsgate.checking._guarded_store import GuardedStore
from robotsgate.checking._live import Agent, LiveOrigins, implies_robots_txt
from robotsgate.checking._many import for_each
from robotsgate.checking._reader import Reader
from robotsgate.checking._renewal import Renewals
from robotsgate.checking._reporter import Reporter
from robotsgate.checking._stats import CheckerStats
from robotsgate.errors import UnsupportedError
from robotsgate.robotstxt._dialect import Dialect
from robotsgate.robotstxt._octets import UNLESS_PLAIN_CHANGED
from robotsgate.robotstxt._product_token import product_tokens
from robotsgate.robotstxt._robots_txt import (
    MAX_KNOWN_AGENTS,
    ROBOTS_TXT_PATH,
    grammar_of,
)
from robotsgate.stores._url import store_of_url
from robotsgate.urls._origin import Origin, split_url
from robotsgate.urls._path import dialled_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from robotsgate._clock import Clock
    from robotsgate.caching._verdict import Verdict
    from robotsgate.checking._events import CheckerEvent
    from robotsgate.checking._live import LiveOrigin
    from robotsgate.robotstxt._model import RequestRate
    from robotsgate.robotstxt._robots_txt import AgentRules, RobotsTxt
    from robotsgate.stores._base import Store

_DEFAULT_USER_AGENT = f"robotsgate/{__version__}"
_DEFAULT_POLICY = Policy()
_SYSTEM_CLOCK = SystemClock()

# A loop over known URLs lets others run after so many; about a millisecond.
_URLS_BETWEEN_CHECKPOINTS = 500


class RobotsChecker:
    """Fetches, keeps and obeys the robots.txt of every origin it is asked about.

    Use it as an async context manager, or call `aclose` at the end.
    May be used by any number of tasks of one event loop (asyncio or trio), not by
    several threads.
    """

    def __init__(
        self,
        *,
        user_agent: str = _DEFAULT_USER_AGENT,
        client: object | None = None,
        store: Store | str | None = None,
        policy: Policy = _DEFAULT_POLICY,
        dialect: Dialect = Dialect.RFC9309,
        max_origins: int = 10_000,
        max_concurrent_fetches: int = 100,
        clock: Clock = _SYSTEM_CLOCK,
        on_event: Callable[[CheckerEvent], object] | None = None,
    ) -> None:
        """Make a checker; nothing is fetched yet.

        Args:
            user_agent: the User-Agent header that robots.txt files are fetched
                with; name your crawler, because servers may answer by it.
            client: an `httpx.AsyncClient`, something shaped like it, or an httpx
                transport, used as it is and never closed. `None`: a connection
                for each fetch, without proxies.
            store: where entries are kept beside those in use: a store, which is
                never closed; or the URL of one, which is: "memory:",
                "sqlite:///robots.db", "redis://host". `None`: "memory:".
            policy: what answers mean and how long they are kept.
            dialect: whose reading of a robots.txt is followed.
            max_origins: how many origins are held ready parsed, ≥ 1.
            max_concurrent_fetches: how many fetches run at once, ≥ 1.
            clock: where the time comes from.
            on_event: called with each `CheckerEvent`, in the task that caused
                it; it must not block, and what it raises is logged.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: an argument is out of range.
            StoreError: `store` is no store, or cannot be opened.
        """
        check_user_agent(user_agent)
        check_type("policy", policy, Policy)
        check_type("dialect", dialect, Dialect)
        check_bound("max_origins", max_origins)
        check_bound("max_concurrent_fetches", max_concurrent_fetches)
        check_store(store)
        check_clock(clock)
        check_listener(on_event)
        self._grammar = grammar_of(dialect)
        self._now = clock.now
        self._reporter = Reporter(on_event)
        # Imported here: who only parses files does not wait for httpx to load.
        from robotsgate.fetching._fetcher import Fetcher  # noqa: PLC0415

        fetcher = Fetcher(
            client,
            user_agent=user_agent,
            policy=policy,
            max_concurrent_fetches=max_concurrent_fetches,
        )
        self._own_store: Store | None = None
        if store is None or isinstance(store, str):
            url = "memory:" if store is None else store
            store = self._own_store = store_of_url(url)
        self._store = GuardedStore(store, self._reporter, policy=policy, now=clock.now)
        self._max_concurrent_fetches = max_concurrent_fetches
        self._live = LiveOrigins(
            max_origins=max_origins, policy=policy, dialect=dialect
        )
        self._by_agent = self._live.by_agent
        self._reader = Reader(self._live)
        self._renewals = Renewals(
            self._live,
            self._store,
            fetcher,
            self._reporter,
            policy=policy,
            clock=clock,
        )
        self._agents: dict[str, Agent] = {}
        self._checks = 0
        self._contexts = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """The checker itself, with the connections of its own store."""
        own_store: object = self._own_store
        if isinstance(own_store, AbstractAsyncContextManager):
            await self._contexts.enter_async_context(own_store)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        """Close."""
        try:
            await self.aclose()
        finally:
            await self._contexts.aclose()

    async def aclose(self) -> None:
        """End the fetches under way, and forget what is in memory.

        Who waits for a fetch, and who asks about an origin from now on, gets a
        RuntimeError. A client or a store that was handed over stays open. May be
        called more than once.
        """
        try:
            await self._renewals.aclose()
        finally:
            self._live.clear()
            if self._own_store is not None:
                await self._own_store.aclose()

    async def can_fetch(self, agent: str | Sequence[str], url: object) -> bool:
        """Whether `agent` may fetch `url` now.

        Does not suspend for an origin that is known and fresh; fetches its
        robots.txt otherwise. A dead host is an answer, not an exception.

        Args:
            agent: a product token, a whole User-Agent header, or a sequence of
                those, most specific first: the first that has a group counts.
            url: an absolute URL: a `str`, or anything whose `str()` is one.

        Raises:
            InvalidProductTokenError: there is no product token in `agent`, or
                the arguments are swapped.
            InvalidURLError: `url` names no origin.
            UnsupportedError: the scheme of `url` is ftp.
        """
        answer = self.peek(agent, url)
        if answer is not None:
            return answer
        known_agent = self._agent(agent)
        origin, path = split_url(url)
        rules = await self._reader.rules(await self._current(origin), known_agent)
        return await self._allows(rules, path)

    async def check(self, agent: str | Sequence[str], url: object) -> Verdict:
        """The answer of `can_fetch` with what led to it; takes and raises the same."""
        known_agent = self._agent(agent)
        origin, path = split_url(url)
        live = await self._current(origin)
        found = await self._reader.rules(live, known_agent)
        self._checks += 1
        match = await self._reader.match(found, self._grammar.target_of_path(path))
        return self._live.verdict(live, match)

    async def can_fetch_many(
        self, agent: str | Sequence[str], urls: Iterable[object]
    ) -> list[bool]:
        """The answers of `can_fetch` for many URLs, in the order of `urls`.

        Origins that are not known are fetched concurrently. All URLs are looked
        at before anything is fetched.

        Raises:
            InvalidProductTokenError: as `can_fetch`.
            InvalidURLError: any of `urls` names no origin; nothing was fetched.
            TypeError: `urls` is a single URL.
            UnsupportedError: the scheme of one of `urls` is ftp.
        """
        check_urls(urls)
        known_agent = self._agent(agent)
        answers: list[bool | None] = []
        unknown: dict[Origin, list[tuple[int, str]]] = {}
        for number, url in enumerate(urls):
            answer = self.peek(agent, url)
            answers.append(answer)
            if answer is None:
                origin, path = split_url(url)
                unknown.setdefault(origin, []).append((number, path))
            if number % _URLS_BETWEEN_CHECKPOINTS == _URLS_BETWEEN_CHECKPOINTS - 1:
                await anyio.lowlevel.checkpoint()

        async def answer_origin(origin: Origin) -> None:
            rules = await self._reader.rules(await self._current(origin), known_agent)
            for done, (number, path) in enumerate(unknown[origin], 1):
                answers[number] = await self._allows(rules, path)
                if done % _URLS_BETWEEN_CHECKPOINTS == 0:
                    await anyio.lowlevel.checkpoint()

        self._check_usable(*unknown)
        await for_each(unknown, answer_origin, at_once=self._max_concurrent_fetches)
        return cast("list[bool]", answers)  # each `None` has been answered by now

    def peek(self, agent: str | Sequence[str], url: object) -> bool | None:
        """The answer of `can_fetch` if it is in memory, without waiting.

        `None` where a fetch or a look into the store would be needed, or where the
        answer takes so long that it is worked out beside the event loop: for files
        of more than 64 KiB that are not parsed for `agent` yet, and for hostile
        rules on long URLs.

        Raises:
            InvalidProductTokenError: as `can_fetch`.
            InvalidURLError: as `can_fetch`.
        """
        # The short way, for a URL that begins with an origin as it is kept and an
        # agent that was asked about before: no parsing, two look-ups.
        try:
            slash = url.index("/", 8)  # type: ignore[attr-defined]  # EAFP: not a str
            live = self._by_agent[agent][url[:slash]]  # type: ignore[index]  # a list
            target: str = url[slash:]  # type: ignore[index]
            octets = target.encode()
        except (KeyError, ValueError, TypeError, AttributeError):
            return self._peek_anew(agent, url)
        if not live.usable_from <= self._now() < live.usable_until:
            return self._peek_anew(agent, url)
        # `is_plain`, written out: a call would be a twentieth of all this.
        if "/." in target or octets.translate(UNLESS_PLAIN_CHANGED) != octets:
            target = self._grammar.target_of_path(dialled_path(target))
        live.is_used = True
        answer = live.rules.allows_at_once(target)
        if answer is None:
            return None
        self._checks += 1
        return answer or (target == ROBOTS_TXT_PATH and implies_robots_txt(live.rules))

    async def robots_txt(self, url: object) -> RobotsTxt | None:
        """The robots.txt in force for `url`, parsed; `None` where there is none.

        There is none where the origin has none, or is unreachable and no copy
        may be used.
        """
        live = await self._current(Origin.from_url(url))
        return await self._reader.part(live, lambda robots_txt: robots_txt)

    async def crawl_delay(
        self, agent: str | Sequence[str], url: object
    ) -> float | None:
        """Seconds between two requests that the origin asks of `agent`, ≥ 0.

        `None` where it does not say. Takes and raises as `can_fetch`.
        """
        return (await self._rules_in_force(agent, url)).crawl_delay

    async def request_rate(
        self, agent: str | Sequence[str], url: object
    ) -> RequestRate | None:
        """The rate that the origin asks of `agent`; `None` where it does not say."""
        return (await self._rules_in_force(agent, url)).request_rate

    async def sitemaps(self, url: object) -> tuple[str, ...]:
        """The absolute URLs of the origin's sitemaps, in the order of its file."""
        live = await self._current(Origin.from_url(url))
        sitemaps = await self._reader.part(live, lambda robots_txt: robots_txt.sitemaps)
        return sitemaps or ()

    async def usage_preferences(
        self, agent: str | Sequence[str], url: object
    ) -> object:
        """Not supported yet.

        Raises:
            UnsupportedError: always.
        """
        origin = Origin.from_url(url)
        self._agent(agent)
        message = f"usage preferences are not supported yet, got {origin}"
        raise UnsupportedError(message)

    async def prefetch(self, urls: Iterable[object]) -> None:
        """Fetch what is not known of the origins of `urls`, concurrently.

        Raises:
            InvalidURLError: any of `urls` names no origin; nothing was fetched.
        """
        check_urls(urls)
        origins = dict.fromkeys(Origin.from_url(url) for url in urls)

        async def know(origin: Origin) -> None:
            await self._current(origin)

        self._check_usable(*origins)
        await for_each(origins, know, at_once=self._max_concurrent_fetches)

    async def refresh(self, url: object) -> None:
        """Fetch the robots.txt of the origin of `url`, however fresh it is.

        Where a fetch is under way already, waits for that one.
        """
        origin = Origin.from_url(url)
        self._check_usable(origin)
        await self._renewals.fetch(origin)

    async def forget(self, url: object) -> None:
        """Drop what is known of the origin of `url`, in memory and in the store.

        A fetch that is under way is not stopped, and what it brings is kept.
        """
        key = str(Origin.from_url(url))
        self._live.discard(key)
        await self._store.delete(key)

    @property
    def stats(self) -> CheckerStats:
        """The counters as they are now."""
        return CheckerStats(
            checks=self._checks,
            joined=self._renewals.joined,
            live_origins=len(self._live.by_origin),
            fetches_under_way=len(self._renewals),
            **self._reporter.counts,
        )

    # --- memory -----------------------------------------------------------------

    def _peek_anew(self, agent: str | Sequence[str], url: object) -> bool | None:
        """As `peek`, for whatever does not fit its short way."""
        known_agent = self._agent(agent)
        origin, path = split_url(url)
        live = self._live.current(str(origin), self._now())
        if live is None:
            return None
        found = self._reader.rules_at_once(live, known_agent)
        if found is None:
            return None
        target = self._grammar.target_of_path(path)
        answer = found.rules.allows_at_once(target)
        if answer is None:
            return None
        self._checks += 1
        return answer or (target == ROBOTS_TXT_PATH and implies_robots_txt(found.rules))

    def _agent(self, agent: str | Sequence[str]) -> Agent:
        """`agent` as a good name with its product tokens."""
        if not isinstance(agent, str):
            product_tokens(agent)  # says what is wrong with what is no sequence
            return Agent.of(tuple(agent))
        known_agent = self._agents.get(agent)
        if known_agent is None:
            known_agent = Agent.of(agent)
            if len(self._agents) >= MAX_KNOWN_AGENTS:
                self._agents.clear()
            self._agents[agent] = known_agent
        return known_agent

    async def _rules_in_force(
        self, agent: str | Sequence[str], url: object
    ) -> AgentRules:
        known_agent = self._agent(agent)
        return await self._reader.rules(
            await self._current(Origin.from_url(url)), known_agent
        )

    async def _allows(self, found: AgentRules, path: str) -> bool:
        self._checks += 1
        return await self._reader.allows(found, self._grammar.target_of_path(path))

    # --- store and network ------------------------------------------------------

    async def _current(self, origin: Origin) -> LiveOrigin:
        """The origin as it stands now, renewed if need be."""
        self._check_usable(origin)
        live = self._live.current(str(origin), self._now())
        if live is not None:
            return live
        return await self._renewals.renewed(origin)

    def _check_usable(self, *origins: Origin) -> None:
        self._renewals.check_open()
        for origin in origins:
            if origin.scheme == "ftp":
                message = f"robots.txt over ftp is not supported yet, got {origin}"
                raise UnsupportedError(message)
