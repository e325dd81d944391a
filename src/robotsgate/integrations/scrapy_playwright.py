"""robots.txt for Scrapy with scrapy-playwright, including the browser's navigations.

Needs the scrapy-playwright extra. Scrapy's middlewares see a spider's requests, but not
where a redirect or a script then takes the browser.
"""

from __future__ import annotations

from robotsgate.errors import needs_extra

with needs_extra("scrapy-playwright"):
    import scrapy

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from scrapy import signals
from scrapy.exceptions import IgnoreRequest
from scrapy.utils.misc import load_object

from robotsgate.integrations._playwright import check_navigations
from robotsgate.integrations.scrapy import RobotsGateMiddleware

if TYPE_CHECKING:
    from playwright.async_api import Page
    from scrapy.crawler import Crawler

__all__ = ["RobotsGatePlaywrightMiddleware"]

# A key in a request's meta: scrapy-playwright calls its value with the page and the
# request.
_CALLBACK = "playwright_page_init_callback"

# Another key in a request's meta: the `_Navigation` that the request started.
_NAVIGATION = "robotsgate_navigation"


class RobotsGatePlaywrightMiddleware(RobotsGateMiddleware):
    """A `RobotsGateMiddleware` that also checks each navigation of a page.

    In Chromium, it checks a URL before the browser requests it, unless a page's
    speculation rules request it in advance. In that case, and in other browsers, it
    checks afterwards and drops any page that was reached through a disallowed URL. Only
    a page's main frame is checked, not its subframes, images or popups. Settings,
    stats, signals and errors are the same as for `RobotsGateMiddleware`.
    """

    def __init__(self, crawler: Crawler) -> None:
        """See `RobotsGateMiddleware`."""
        super().__init__(crawler)
        # Each page's latest navigation; a spider may reuse a page for several requests.
        self._navigations: WeakKeyDictionary[Page, _Navigation] = WeakKeyDictionary()
        connect = crawler.signals.connect
        connect(self._add_callback, signals.request_reached_downloader)
        connect(self._remove_callback, signals.request_left_downloader)

    async def process_response(
        self, request: scrapy.Request, response: scrapy.http.Response
    ) -> scrapy.http.Response:
        """Let `response` through if all the URLs that led to it are allowed.

        Raises:
            scrapy.exceptions.IgnoreRequest: one of those URLs is disallowed.
        """
        navigation = _end_navigation(request)
        if request.meta.get("playwright"):
            hops = (*request.meta.get("redirect_urls", ()), response.url)
            for url in (navigation and navigation.urls) or hops:
                await self.process_request(_led_to(url, request))
        return response

    async def process_exception(
        self,
        request: scrapy.Request,
        exception: Exception,  # noqa: ARG002 (Scrapy's)
    ) -> None:
        """Raise a navigation's refusal instead of the browser's error.

        Raises:
            scrapy.exceptions.IgnoreRequest: a navigation was refused.
        """
        _end_navigation(request)

    def _add_callback(self, request: scrapy.Request) -> None:
        meta = request.meta
        if meta.get("playwright"):
            loop = asyncio.get_running_loop()
            meta[_CALLBACK] = partial(self._begin, loop, meta.get(_CALLBACK))

    def _remove_callback(self, request: scrapy.Request) -> None:
        """Restore the meta, because Scrapy copies it to retries and may pickle it."""
        meta = request.meta
        if meta.get("playwright"):
            *_, callback = meta.pop(_CALLBACK).args
            if callback:
                meta[_CALLBACK] = callback

    async def _begin(
        self,
        loop: asyncio.AbstractEventLoop,
        callback: Any,  # noqa: ANN401 (the user's function, or its path)
        page: Page,
        request: scrapy.Request,
    ) -> None:
        """Check the navigations of `page` for `request`, and call the user's callback.

        On Windows, scrapy-playwright calls this in its own loop; `loop` is Scrapy's.
        """
        navigation = _Navigation(_led_to(request.url, request))
        self._navigations[page] = request.meta[_NAVIGATION] = navigation
        may_send = partial(self._may_send, loop, page)
        navigation.urls = await check_navigations(page, may_send)
        if callback:
            await load_object(callback)(page, request)

    async def _may_send(
        self, loop: asyncio.AbstractEventLoop, page: Page, url: str
    ) -> bool:
        navigation = self._navigations[page]
        check = self.process_request(_led_to(url, navigation.request))
        try:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(check, loop))
        except IgnoreRequest as error:
            # The traceback would keep the page alive.
            navigation.refusal = error.with_traceback(None)
            return False
        return True


@dataclass(slots=True)
class _Navigation:
    """A page's navigation; `request` is a copy whose meta does not contain the page."""

    request: scrapy.Request
    urls: list[str] | None = None
    refusal: IgnoreRequest | None = None


def _end_navigation(request: scrapy.Request) -> _Navigation | None:
    """Remove and return the navigation of `request`; raise its refusal, if any."""
    navigation: _Navigation | None = request.meta.pop(_NAVIGATION, None)
    if navigation and navigation.refusal:
        raise navigation.refusal from navigation.refusal.__cause__
    return navigation


def _led_to(url: str, request: scrapy.Request) -> scrapy.Request:
    """A request for checking `url`, which the browser reached through `request`."""
    opt_out = request.meta.get("dont_obey_robotstxt", False)
    meta = {"dont_obey_robotstxt": opt_out}
    return scrapy.Request(url, headers=request.headers, meta=meta)
