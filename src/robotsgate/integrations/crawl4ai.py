"""robots.txt for crawl4ai: a replacement for its parser. Needs the crawl4ai extra.

crawl4ai itself is not imported; its `AsyncWebCrawler` calls the parser.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from robotsgate import InvalidURLError, UnsupportedError
from robotsgate.integrations._door import Door
from robotsgate.integrations._playwright import check_navigations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from playwright.async_api import Page

    from robotsgate import RobotsChecker

__all__ = ["RobotsParser"]

# Schemes that crawl4ai accepts but does not fetch over the network.
_LOCAL = ("file:", "raw:")


class RobotsParser:
    """Replaces the robots.txt parser of a crawl4ai crawler.

    Set `crawler.robots_parser = RobotsParser(checker, agent)`. The crawler calls the
    parser before fetching each page that is not in the crawler's own cache, but only
    with `CrawlerRunConfig(check_robots_txt=True)`. To check redirects, add
    `check_page` and `check_html`.
    """

    def __init__(self, checker: RobotsChecker, agent: str | Sequence[str]) -> None:
        """Check URLs with `checker`.

        Args:
            checker: checks the URLs; close it yourself.
            agent: as in `RobotsChecker.can_fetch`.

        Raises:
            TypeError: `checker` is not a checker.
            InvalidProductTokenError: `agent` is not the name of a crawler.
        """
        self._door = Door(checker, agent)
        self._checker = checker
        self._agent = agent
        self._navigations: WeakKeyDictionary[Page, list[str]] = WeakKeyDictionary()

    async def can_fetch(self, url: str, user_agent: str = "*") -> bool:  # noqa: ARG002 (crawl4ai's)
        """Whether the agent may fetch `url`; files and inline HTML are always allowed.

        Args:
            url: the URL as passed to the crawler.
            user_agent: ignored, because it is usually a browser's User-Agent string.

        Raises:
            InvalidURLError: `url` has no origin.
        """
        return url.startswith(_LOCAL) or await self._checker.can_fetch(self._agent, url)

    async def check_page(self, page: Page, **_: object) -> None:
        """Refuse disallowed navigations of `page`, including redirects (Chromium only).

        Use it as the "on_page_context_created" hook of the crawler's strategy. A
        refused navigation fails with net::ERR_BLOCKED_BY_CLIENT. Images, frames and
        other resources in the page are not checked.

        Raises:
            UnsupportedError: the browser is not Chromium.
        """
        urls = await check_navigations(page, self._may_send)
        if urls is None:
            raise UnsupportedError(
                "expected Chromium: other browsers do not report where a redirect"
                " leads before they follow it"
            )
        self._navigations[page] = urls

    async def check_html(self, page: Page, **_: object) -> None:
        """Refuse a page that came from a disallowed URL without a checked request.

        Use it as the "before_return_html" hook of the crawler's strategy, together with
        `check_page`. Chromium may have fetched such a page in advance, because the page
        before it asked for that with speculation rules.

        Raises:
            DisallowedError: robots.txt disallows a URL to which `page` has navigated.
            InvalidURLError: such a URL has no origin.
        """
        for url in self._navigations.get(page, ()):
            await self._door.check(url)

    async def _may_send(self, url: str) -> bool:
        try:
            return await self.can_fetch(url)
        except (InvalidURLError, UnsupportedError):
            return False
