"""Makes crawlee crawlers obey robots.txt by skipping refused requests.

Needs the crawlee extra. Like crawlee itself, it only works on asyncio. The path of a
request:

    _Rules.is_allowed ──► in_turn ──► enter, for each hop ──► its handler
            │                │           │
         skipped          skipped, or returned to the request manager

crawlee has no public way to skip a request or to see each hop of a redirect. So these
private methods of a crawler and its HTTP client are replaced with our own:

    _is_allowed_based_on_robots_txt_file   checks a URL when it is added or dequeued
    _run_request_handler                   processes a request from its first hop on
    _get_client                            returns the underlying library's client

`_respect_robots_txt_file`, `_handle_skipped_request`, `_http_client` and the
`_transport` of an httpx2 client are used, but not replaced.
"""

from __future__ import annotations

from robotsgate.errors import needs_extra
from robotsgate.integrations._door import Client, Door, end_soon, urls_by_host

with needs_extra("crawlee"):
    import crawlee.crawlers

import sys
from collections import Counter
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

from crawlee import RequestState
from crawlee.errors import (
    ContextPipelineInitializationError,
    ContextPipelineInterruptedError,
    RequestThrottledError,
)
from crawlee.request_loaders import ThrottlingRequestManager
from pydantic import AnyHttpUrl, ValidationError

from robotsgate import (
    DisallowedError,
    InvalidURLError,
    Origin,
    SystemClock,
    TurnNotInTimeError,
    UnsupportedError,
)
from robotsgate.fetching import passes_unasked
from robotsgate.integrations._playwright import check_navigations, hops

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence
    from contextlib import AsyncExitStack

    import impit
    from crawlee.crawlers import (
        BasicCrawler,
        BasicCrawlingContext,
        PlaywrightPostNavCrawlingContext,
        PlaywrightPreNavCrawlingContext,
    )

    from robotsgate import PolitenessGate, Reason, RobotsChecker, Turn

    _Crawler: TypeAlias = BasicCrawler[Any, Any]
    _Run: TypeAlias = Callable[[BasicCrawlingContext], Awaitable[None]]

__all__ = ["obey_robots"]

_CLOCK = SystemClock()
_REFUSALS = (DisallowedError, InvalidURLError, UnsupportedError)

# In seconds: the minimum delay before a deferred request is tried again. crawlee looks
# for new requests twice a second.
_LEAST_DEFERRAL = 1.0


def obey_robots(
    crawler: crawlee.crawlers.BasicCrawler[Any, Any],
    checker: RobotsChecker,
    agent: str | Sequence[str],
    *,
    gate: PolitenessGate | None = None,
) -> Counter[Reason | None]:
    """Make `crawler` skip disallowed requests, including redirects.

    A refused request is neither sent nor retried. The callback registered with
    `crawler.on_skipped_request` receives the request's URL and the reason "robots_txt";
    after a refused redirect, it receives the URL that was redirected. Requests for
    /robots.txt are not checked. In a handler, `context.send_request` raises
    `DisallowedError` for a disallowed URL, except in a `PlaywrightCrawler`, where the
    URL is not checked.

    Args:
        crawler: a crawler that has not run yet, either an HTTP crawler with an
            `ImpitHttpClient` or an `HttpxHttpClient`, or a `PlaywrightCrawler`.
            Redirects sent through the client's `mounts=` are neither checked nor
            delayed. In a browser, only navigations of the main frame are checked.
            Browsers other than Chromium follow a redirect before its target can be
            refused.
        checker: checks the URLs; close it yourself after the crawl.
        agent: as in `RobotsChecker.can_fetch`.
        gate: provides a turn for each request, including redirects. The gate uses its
            own checker and agent. The crawler's timeouts do not include the wait for
            the first turn; a wait after a redirect counts towards `navigation_timeout`.
            A `ThrottlingRequestManager` takes back a request to one of its domains
            until the request's turn comes; this does not count as a retry. Other
            requests wait in the crawler.

    Returns:
        The number of skipped requests by reason, updated while the crawler runs. The
        key `None` counts URLs that the checker does not support.

    Raises:
        TypeError: an argument has the wrong type.
        InvalidProductTokenError: `agent` is not the name of a crawler.
        ValueError: the crawler's own option `respect_robots_txt_file` is on; or the
            crawler, or another crawler with the same HTTP client, already obeys
            robots.txt.
        RuntimeError: this version of crawlee lacks one of the methods to replace.
    """
    rules = _Rules(crawler, checker, agent, gate)
    is_browser = _is_a(crawler, "PlaywrightCrawler")
    if not (is_browser or isinstance(crawler, crawlee.crawlers.AbstractHttpCrawler)):
        raise TypeError(
            f"expected an HTTP crawler or a PlaywrightCrawler, got {crawler!r}"
        )
    if crawler._respect_robots_txt_file:  # noqa: SLF001 (see the top)
        raise ValueError("expected respect_robots_txt_file=False, got True")
    is_allowed = rules.is_allowed
    _replace(crawler, "_is_allowed_based_on_robots_txt_file", lambda _: is_allowed)
    _replace(crawler, "_run_request_handler", rules.in_turn)
    if is_browser:
        in_browser: Any = crawler  # its class may not be installed
        in_browser.pre_navigation_hook(rules.watch_page)
        in_browser.post_navigation_hook(rules.check_page)
    else:
        _check_hops(crawler, rules)
    return rules.skipped


@dataclass
class _Navigation:
    """A crawler's request in progress, including its redirects.

    Attributes:
        early_turn: a turn for `url` that starts before anything is sent.
        turn: the turn for a browser's current hop; with HTTP clients, each response
            ends its own turn.
        error: why a browser did not send a hop.
        urls: what a browser that lets us check each hop in advance has navigated to;
            `None` with other browsers.
        is_over: whether the crawler has left the page.
    """

    url: str
    early_turn: Turn | None = None
    turn: Turn | None = None
    error: Exception | None = None
    urls: list[str] | None = None
    is_over: bool = False

    async def end(self, error: BaseException | None = None) -> None:
        """End the request's turns; an `error` may be a report about the hop's host."""
        self.is_over = True
        early, self.early_turn = self.early_turn, None
        if early is not None:
            await early.__aexit__(None, None, None)
        await self.end_hop(error)

    async def end_hop(self, error: BaseException | None = None) -> None:
        """End the turn for a browser's current hop."""
        turn, self.turn = self.turn, None
        if turn is not None:
            await turn.__aexit__(None, error, None)


_navigation: ContextVar[_Navigation] = ContextVar("robotsgate.navigation")


class _Rules(Door):
    """Applies robots.txt to one crawler; takes the same arguments as `obey_robots`."""

    def __init__(
        self,
        crawler: _Crawler,
        checker: RobotsChecker,
        agent: str | Sequence[str],
        gate: PolitenessGate | None,
    ) -> None:
        super().__init__(checker, agent, gate)
        self._crawler = crawler
        self.skipped: Counter[Reason | None] = Counter()

    async def is_allowed(self, url: str) -> bool:
        """Whether `url` may be added to the queue or taken from it.

        With a gate, a robots.txt that is not cached is only fetched later, during a
        turn.
        """
        try:
            if self._gate is None or self._checker.peek(self._agent, url) is False:
                await self.check(url)
        except _REFUSALS as error:
            self._note(error)
            return False
        return True

    def in_turn(self, run: _Run) -> _Run:
        """Wrap `run`, which processes a request from its first hop on, in a turn."""

        async def run_in_turn(context: BasicCrawlingContext) -> None:
            navigation = _Navigation(context.request.url)
            _navigation.set(navigation)
            try:
                navigation.early_turn = await self._early_turn(context)
                await run(context)
            except _REFUSALS as error:
                await self._skip(context, error)
            except ContextPipelineInitializationError as error:
                refusal = navigation.error or error.wrapped_exception
                if isinstance(refusal, _REFUSALS):
                    await self._skip(context, refusal)
                if navigation.turn is not None:  # a browser's navigation failed
                    navigation.turn.report(failure=True)
                raise
            finally:
                await navigation.end(sys.exception())

        return run_in_turn

    async def check(self, url: str) -> None:
        """See `Door.check`; some URLs need no check."""
        if not passes_unasked(url):
            await super().check(url)

    async def enter(self, urls: Iterable[str], block: AsyncExitStack) -> Turn | None:
        """See `Door.enter`; a request's first hop uses the request's early turn."""
        rest = list(urls)
        turn = await self._begin(rest.pop(0)) if rest else None
        if turn is not None:
            block.push_async_exit(turn)
        for url in rest:
            await self.check(url)
        return turn

    async def _begin(self, url: str) -> Turn | None:
        """Wait until a hop may be sent; return its turn, or `None` without a gate."""
        navigation = _navigation.get(None) or _Navigation(url)
        is_early = navigation.early_turn is not None and (
            Origin.from_url(url) == Origin.from_url(navigation.url)
        )
        if is_early or self._gate is None:
            await self.check(url)  # the client may have normalized it differently
        # Another request of the page may have taken the turn in the meantime.
        early, navigation.early_turn = navigation.early_turn, None
        if self._gate is None or (is_early and early is not None):
            return early
        if early is not None:
            await early.__aexit__(None, None, None)
        return await self._take_turn(url)

    async def watch_page(self, context: PlaywrightPreNavCrawlingContext) -> None:
        """Check each hop of a page's navigation and wait for its turn."""
        navigation = _navigation.get()

        async def may_send(url: str) -> bool:
            _navigation.set(navigation)  # this runs in one of Playwright's tasks
            await navigation.end_hop()
            try:
                is_asked = not passes_unasked(url)
                navigation.turn = await self._begin(url) if is_asked else None
            except (*_REFUSALS, RuntimeError) as error:
                navigation.error = error
                return False
            if navigation.is_over:
                await navigation.end()
            return True

        navigation.urls = await check_navigations(context.page, may_send)
        if navigation.urls is None:
            navigation.turn, navigation.early_turn = navigation.early_turn, None

    async def check_page(self, context: PlaywrightPostNavCrawlingContext) -> None:
        """End a page's turn, and check any hops that have not been checked yet."""
        navigation = _navigation.get()
        if navigation.error is not None:
            raise navigation.error
        if navigation.turn is not None:
            navigation.turn.report(context.response)
        await navigation.end_hop()
        urls = navigation.urls
        for url in hops(context.response) if urls is None else urls:
            await self.check(url)

    async def _early_turn(self, context: BasicCrawlingContext) -> Turn | None:
        """The request's turn; `None` without a gate, or if no check is needed.

        Raises an error if the request manager holds back the domain until the turn.
        """
        url = context.request.url
        if self._gate is None or passes_unasked(url):
            return None
        manager = await self._crawler.get_request_manager()
        if isinstance(manager, ThrottlingRequestManager):
            try:
                return await self._take_turn(url, patience=0)
            except TurnNotInTimeError as late:
                seconds = max(late.ready_at - _CLOCK.now(), _LEAST_DEFERRAL)
                delay = timedelta(seconds=seconds)
                if manager.record_domain_delay(url, retry_after=delay):
                    error = RequestThrottledError(str(late))
                    raise ContextPipelineInitializationError(error, context) from late
        return await self._take_turn(url)

    async def _take_turn(self, url: str, *, patience: float | None = None) -> Turn:
        turn: Turn = self._gate.turn(url, patience=patience)
        return await turn.__aenter__()

    async def _skip(self, context: BasicCrawlingContext, error: Exception) -> None:
        """Skip a refused request the way crawlee itself does.

        This always raises, so that crawlee marks the request as handled.
        """
        await _navigation.get().end()
        self._note(error)
        context.request.state = RequestState.SKIPPED
        await self._crawler._handle_skipped_request(context.request, "robots_txt")  # noqa: SLF001 (see the top)
        raise ContextPipelineInterruptedError(str(error)) from error

    def _note(self, error: Exception) -> None:
        reason = error.verdict.reason if isinstance(error, DisallowedError) else None
        self.skipped[reason] += 1
        self._crawler.log.info("%s", error)


def _check_hops(crawler: _Crawler, door: Door) -> None:
    """Make the HTTP client of `crawler` send each hop through `door`."""
    client = crawler._http_client  # noqa: SLF001 (see the top)
    is_impit = _is_a(client, "ImpitHttpClient")
    if not (is_impit or _is_a(client, "HttpxHttpClient")):
        raise TypeError(
            f"expected an ImpitHttpClient or an HttpxHttpClient, got {client!r}"
        )

    def check(wrapped: Any) -> object:  # noqa: ANN401 (an impit or httpx2 client)
        if is_impit:  # crawlee follows redirects itself, and only calls `request`
            return SimpleNamespace(request=partial(_send_by_impit, wrapped, door))
        transport, name = wrapped._transport, "handle_async_request"  # noqa: SLF001 (see the top)
        if name not in vars(transport):
            from robotsgate.integrations._httpx2 import CLIENT  # noqa: PLC0415 (may be missing)

            row = CLIENT._replace(refusal=None, url_error=None)
            sent = partial(door.send, client=row)
            _replace(transport, name, lambda send: partial(sent, send=send))
        return wrapped

    _replace(client, "_get_client", lambda get: lambda proxy_url: check(get(proxy_url)))


def _is_a(value: object, name: str) -> bool:
    """Whether `value` is an instance of a crawlee class that may not be installed."""
    return any(kind.__name__ == name for kind in type(value).__mro__)


async def _send_by_impit(
    client: impit.AsyncClient,
    door: Door,
    *,
    url: str,
    **options: Any,  # noqa: ANN401 (impit's options)
) -> object:
    try:
        url = str(AnyHttpUrl(url))  # impit uses the same parser, so it sends this URL
    except ValidationError as error:
        raise InvalidURLError(str(error), url=url) from error
    hold = _StreamInTurn if options["stream"] else lambda response, *_: response
    headers = (options["headers"] or {}).items()
    row = Client(lambda url: urls_by_host(url, headers), hold)
    return await door.send(url, lambda url: client.request(url=url, **options), row)


class _StreamInTurn:
    """An impit response whose body has not been read; closing it ends the turn."""

    def __init__(
        self, response: impit.Response, turn: Turn, block: AsyncExitStack
    ) -> None:
        self._response = response
        self._turn = turn
        self._end = block.pop_all()

    def __getattr__(self, name: str) -> object:
        return getattr(self._response, name)

    def close(self) -> None:
        try:
            self._response.close()
        finally:
            end_soon(self._turn, self._end)


def _replace(owner: object, name: str, wrapped: Callable[[Any], Any]) -> None:
    """Replace `owner`'s method `name` with the result of `wrapped`."""
    if not hasattr(owner, name):
        raise RuntimeError(
            "expected crawlee>=1.10.3,<1.12,"
            f" got a {type(owner).__name__} without {name}"
        )
    if name in vars(owner):  # otherwise, each request would wait for two turns
        raise ValueError(
            f"expected a new crawler with its own HTTP client, got {owner!r},"
            " which already obeys robots.txt"
        )
    setattr(owner, name, wrapped(getattr(owner, name)))
