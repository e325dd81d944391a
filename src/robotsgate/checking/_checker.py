"""Answers "may this agent fetch this URL now?": start reading here.

The way of a question: `can_fetch` → the quick way (two look-ups) → or `Question.of`
→ `LiveOrigins` (memory) or `Renewals` (store, then network) → `Standing` →
`StandingFor` the agent → the answer.
Longer than other modules, because it is the public surface: half of it is docstrings.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, AsyncExitStack
from logging import DEBUG
from typing import TYPE_CHECKING, Self, cast

import anyio
import anyio.lowlevel

from robotsgate._clock import SystemClock
from robotsgate._version import __version__
from robotsgate.caching._policy import Policy
from robotsgate.caching._verdict import Reason
from robotsgate.checking._entries import Entries
from robotsgate.checking._live import LiveOrigins
from robotsgate.checking._many import for_each
from robotsgate.checking._origins import Origins
from robotsgate.checking._question import Agent, Question
from robotsgate.checking._renewal import Renewals
from robotsgate.checking._reporter import LOGGER, Reporter
from robotsgate.checking._stats import CheckerStats
from robotsgate.errors import StoreError
from robotsgate.robotstxt._dialect import Dialect
from robotsgate.robotstxt._octets import UNLESS_PLAIN_CHANGED
from robotsgate.robotstxt._records import absolute_sitemaps
from robotsgate.robotstxt._robots_txt import ROBOTS_TXT_PATH, grammar_of
from robotsgate.stores._base import Store
from robotsgate.stores._url import open_store
from robotsgate.urls._origin import Origin, without_userinfo
from robotsgate.urls._path import dialled_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from robotsgate._clock import Clock
    from robotsgate.caching._verdict import Verdict
    from robotsgate.checking._events import CheckerEvent
    from robotsgate.fetching._fetcher import Fetcher
    from robotsgate.fetching._httpx import AsyncClientLike, AsyncTransportLike
    from robotsgate.robotstxt._model import RequestRate
    from robotsgate.robotstxt._robots_txt import RobotsTxt
    from robotsgate.urls._origin import URLLike

_DEFAULT_USER_AGENT = f"robotsgate/{__version__}"
_DEFAULT_POLICY = Policy()
_SYSTEM_CLOCK = SystemClock()
_CLOCK_METHODS = ("now", "monotonic", "wait")

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
        client: Fetcher | AsyncClientLike | AsyncTransportLike | None = None,
        store: Store | str | None = None,
        policy: Policy = _DEFAULT_POLICY,
        dialect: Dialect = Dialect.RFC9309,
        max_origins: int = 10_000,
        max_concurrent_fetches: int = 100,
        clock: Clock = _SYSTEM_CLOCK,
        overrides: Mapping[str, RobotsTxt | bytes | str] | None = None,
        on_event: Callable[[CheckerEvent], object] | None = None,
    ) -> None:
        """Make a checker; nothing is fetched yet.

        Args:
            user_agent: the User-Agent header that robots.txt files are fetched
                with; name your crawler, because servers may answer by it.
            client: sends the requests, and is never closed: an `AsyncClient` of
                httpx or httpx2, or one of their transports, or a `Fetcher`.
                `None`: a connection for each fetch, without proxies.
            store: where entries are kept beside those in use: a store, which is
                never closed; or the URL of one, which is: "memory:",
                "sqlite:///robots.db", "redis://host". `None`: "memory:".
            policy: what answers mean and how long they are kept.
            dialect: whose reading of a robots.txt is followed.
            max_origins: how many origins are held ready parsed, ≥ 1.
            max_concurrent_fetches: how many fetches run at once, ≥ 1.
            clock: where the time comes from.
            overrides: what holds for origins of your own, or by permission, by a
                URL of each: their robots.txt is never fetched.
            on_event: called with each `CheckerEvent`, in the task of the fetch;
                it must not block, and what it raises is logged.

        Raises:
            TypeError: an argument has the wrong type.
            ValueError: an argument is out of range, or a key of `overrides` names
                no origin, or the same as another one.
            StoreError: `store` is no store, or cannot be opened.
        """
        if not isinstance(policy, Policy):
            raise TypeError(f"expected policy to be a Policy, got {policy!r}")
        self._grammar = grammar_of(dialect)
        _check_bound("max_origins", max_origins)
        _check_bound("max_concurrent_fetches", max_concurrent_fetches)
        # Imported here: the parser alone does not wait for httpcore to load.
        from robotsgate.fetching._robots_fetch import RobotsTxtFetcher  # noqa: PLC0415

        fetcher = RobotsTxtFetcher(client, user_agent=user_agent, policy=policy)
        self._reporter = Reporter(on_event)
        if not all(callable(getattr(clock, name, None)) for name in _CLOCK_METHODS):
            raise TypeError(
                f"expected clock with now, monotonic and wait, got {clock!r}"
            )
        self._live = LiveOrigins(
            max_origins=max_origins, policy=policy, dialect=dialect, overrides=overrides
        )
        self._own_store: Store | None = None
        if store is None or isinstance(store, str):  # last: a file stays open
            store = self._own_store = open_store("memory:" if store is None else store)
        elif isinstance(store, type) or not _is_store(store):
            raise StoreError(
                f"expected a store with the methods of Store, or a URL, got {store!r}"
            )
        self._now = clock.now
        self._entries = Entries(store, self._reporter, policy=policy, clock=clock)
        self._max_concurrent_fetches = max_concurrent_fetches
        self._by_agent = self._live.by_agent
        self._renewals = Renewals(
            self._live,
            self._entries,
            fetcher,
            self._reporter,
            policy=policy,
            clock=clock,
            max_concurrent_fetches=max_concurrent_fetches,
        )
        self._origins = Origins(
            self._live,
            self._renewals,
            self._reporter,
            policy=policy,
            now=clock.now,
        )
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

        A caller that waits for a fetch, or needs one from now on, gets a
        RuntimeError. A client or a store that was handed over stays open. May be
        called more than once.
        """
        try:
            await self._origins.aclose()
        finally:
            self._live.clear()
            if self._own_store is not None:
                await self._own_store.aclose()

    async def can_fetch(self, agent: str | Sequence[str], url: str | URLLike) -> bool:
        """Whether `agent` may fetch `url` now.

        Does not suspend for an origin that is known and fresh; fetches its
        robots.txt otherwise. A dead host is an answer, not an exception.

        Args:
            agent: a product token, a whole User-Agent header that names a crawler,
                "*" for the fallback group alone, or a sequence of those, most
                specific first: the first that has a group counts.
            url: an absolute URL: a `str`, or anything whose `str()` is one.

        Raises:
            InvalidProductTokenError: `agent` names no crawler, as the header of
                a browser does not; or the arguments are swapped.
            InvalidURLError: `url` names no origin.
            UnsupportedError: the scheme of `url` is ftp.
        """
        answer = self._quick_answer(agent, url)
        if answer is None:
            question = Question.of(agent, url, self._grammar)
            rules = await self._origins.rules_for(question.agent, question.origin)
            answer = await self._origins.allows(rules, question)
        return answer

    async def check(self, agent: str | Sequence[str], url: str | URLLike) -> Verdict:
        """The answer of `can_fetch` with what led to it; takes and raises the same."""
        return await self._origins.verdict(Question.of(agent, url, self._grammar))

    async def can_fetch_many(
        self, agent: str | Sequence[str], urls: Iterable[str | URLLike]
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
        _check_urls(urls)
        known_agent = Agent.of(agent)
        answers: list[bool | None] = []
        unknown: dict[Origin, list[tuple[int, Question]]] = {}
        for number, url in enumerate(urls):
            answer = self._quick_answer(agent, url)
            if answer is None:
                question = Question.of(agent, url, self._grammar)
                answer = self._origins.peek(question)
                if answer is None:
                    unknown.setdefault(question.origin, []).append((number, question))
            answers.append(answer)
            if number % _URLS_BETWEEN_CHECKPOINTS == _URLS_BETWEEN_CHECKPOINTS - 1:
                await anyio.lowlevel.checkpoint()

        async def answer_origin(origin: Origin) -> None:
            rules = await self._origins.rules_for(known_agent, origin)
            for done, (number, question) in enumerate(unknown[origin], 1):
                answers[number] = await self._origins.allows(rules, question)
                if done % _URLS_BETWEEN_CHECKPOINTS == 0:
                    await anyio.lowlevel.checkpoint()

        self._origins.check_usable(*unknown)
        await for_each(unknown, answer_origin, at_once=self._max_concurrent_fetches)
        return cast("list[bool]", answers)  # each `None` has been answered by now

    def peek(self, agent: str | Sequence[str], url: str | URLLike) -> bool | None:
        """The answer of `can_fetch` if it is in memory, without waiting.

        `None` where a fetch or a look into the store would be needed, or where the
        answer takes so long that it is worked out beside the event loop: for files
        of more than 64 KiB that are not parsed for `agent` yet, and for hostile
        rules on long URLs.

        Raises:
            InvalidProductTokenError: as `can_fetch`.
            InvalidURLError: as `can_fetch`.
        """
        answer = self._quick_answer(agent, url)
        if answer is None:
            answer = self._origins.peek(Question.of(agent, url, self._grammar))
        return answer

    async def robots_txt(self, url: str | URLLike) -> RobotsTxt | None:
        """The robots.txt in force for `url`, parsed; `None` where there is none.

        There is none where the origin has none, or is unreachable and no copy
        may be used.
        """
        return await self._origins.part(
            Origin.from_url(url), lambda robots_txt: robots_txt
        )

    async def crawl_delay(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> float | None:
        """Seconds between two requests that the origin asks of `agent`, ≥ 0.

        `None` where it does not say. Takes and raises as `can_fetch`.
        """
        origin = Origin.from_url(url)
        rules = await self._origins.rules_for(Agent.of(agent), origin)
        return rules.agent_rules.crawl_delay

    async def request_rate(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> RequestRate | None:
        """The rate that the origin asks of `agent`; `None` where it does not say."""
        origin = Origin.from_url(url)
        rules = await self._origins.rules_for(Agent.of(agent), origin)
        return rules.agent_rules.request_rate

    async def sitemaps(self, url: str | URLLike) -> tuple[str, ...]:
        """The URLs of the origin's sitemaps, relative ones joined to the origin."""
        origin = Origin.from_url(url)
        urls = await self._origins.part(
            origin, lambda file: absolute_sitemaps(file.sitemaps, str(origin))
        )
        return urls or ()

    async def prefetch(self, urls: Iterable[str | URLLike]) -> None:
        """Fetch what is not known of the origins of `urls`, concurrently.

        Raises:
            InvalidURLError: any of `urls` names no origin; nothing was fetched.
        """
        _check_urls(urls)
        origins = dict.fromkeys(Origin.from_url(url) for url in urls)

        async def prepare(origin: Origin) -> None:
            standing = await self._origins.standing(origin)
            standing.forget_body()  # nobody may ask soon

        self._origins.check_usable(*origins)
        await for_each(origins, prepare, at_once=self._max_concurrent_fetches)

    async def refresh(self, url: str | URLLike) -> None:
        """Fetch the robots.txt of the origin of `url`, however fresh it is.

        Where a fetch is under way already, waits for that one. An override is not
        fetched.
        """
        await self._origins.refresh(Origin.from_url(url))

    async def forget(self, url: str | URLLike) -> None:
        """Drop what is known of the origin of `url`, in memory and in the store.

        A fetch that is under way is not stopped, and what it brings is kept. An
        override stays in force.
        """
        key = str(Origin.from_url(url))
        with self._renewals.forgetting(key):
            self._live.discard(key)
            await self._entries.delete(key)

    @property
    def stats(self) -> CheckerStats:
        """The counters as they are now."""
        allowed, disallowed = self._reporter.allowed, self._reporter.disallowed
        return CheckerStats(
            checks=allowed + sum(disallowed.values()),
            allowed=allowed,
            disallowed={Reason(name): n for name, n in disallowed.items() if n},
            joined=self._renewals.joined,
            live_origins=len(self._live.by_origin),
            fetches_under_way=len(self._renewals),
            **self._reporter.counts,
        )

    def _quick_answer(
        self, agent: str | Sequence[str], url: str | URLLike
    ) -> bool | None:
        """The answer for an agent and an origin that were asked about before.

        `None` for all else: an agent that is not a string, a URL that does not begin
        with its origin as it is kept, an origin that is not in memory or must be
        looked at again, and an answer that takes long to find.
        """
        try:
            slash = url.index("/", 8)  # type: ignore[union-attr]  # EAFP: not a str
            live = self._by_agent[agent][url[:slash]]  # type: ignore[index]  # a list
            target: str = url[slash:]  # type: ignore[index]
            octets = target.encode()
        except (KeyError, ValueError, TypeError, AttributeError):
            return None
        if not live.usable_from <= self._now() < live.usable_until:
            return None
        # `is_plain`, written out: a call would be a twentieth of all this.
        if "/." in target or octets.translate(UNLESS_PLAIN_CHANGED) != octets:
            target = self._grammar.target_of_path(dialled_path(target))
        live.is_used = True
        answer = live.rules.allows_at_once(target)
        if not answer:
            if (
                answer is None
                or target == ROBOTS_TXT_PATH
                or LOGGER.isEnabledFor(DEBUG)
            ):
                return None  # the other way decides, and tells the log
            self._reporter.disallowed[live.refusal] += 1
            return False
        self._reporter.allowed += 1
        return True


def _check_bound(name: str, bound: object) -> None:
    """Refuse what is not an int of 1 or more."""
    if isinstance(bound, bool) or not isinstance(bound, int):
        raise TypeError(f"expected {name} as int, got {bound!r}")
    if bound < 1:
        raise ValueError(f"expected {name} of 1 or more, got {bound!r}")


def _is_store(value: object) -> bool:
    return isinstance(value, Store)


def _check_urls(urls: object) -> None:
    """Refuse a single URL where several are expected."""
    if isinstance(urls, str | bytes):
        shown = without_userinfo(str(urls))
        raise TypeError(f"expected several URLs, got the single {shown!r}")
