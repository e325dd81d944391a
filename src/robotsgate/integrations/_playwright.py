"""Checks the navigations of Playwright pages, including redirects.

`page.route` does not see redirect targets, but in Chromium, the DevTools protocol's
Fetch domain does. In other browsers, `hops` returns the redirect targets after the
navigation. Only a page's main frame is checked, not its subframes, images or popups.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playwright.async_api import Page, Response


async def check_navigations(
    page: Page, may_send: Callable[[str], Awaitable[bool]]
) -> bool:
    """Call `may_send` before each request that navigates `page` (Chromium only).

    If `may_send` returns `False` or raises, the navigation fails with
    net::ERR_BLOCKED_BY_CLIENT.

    Args:
        page: a page that is not currently navigating, preferably a new page.
        may_send: takes the URL; called in one of Playwright's tasks.

    Returns:
        Whether `page` belongs to Chromium. If not, `may_send` is never called.
    """
    from playwright.async_api import Error  # noqa: PLC0415 (`page` is Playwright's)

    try:
        session = await page.context.new_cdp_session(page)
    except Error:
        return False
    frames = await session.send("Page.getFrameTree")
    main_frame = frames["frameTree"]["frame"]["id"]

    async def answer(event: dict[str, Any]) -> None:
        answered = {"requestId": event["requestId"]}
        is_allowed = event["frameId"] != main_frame  # subframes are not checked
        try:
            is_allowed = is_allowed or await may_send(event["request"]["url"])
        finally:
            with suppress(Error):  # the page was closed or has navigated elsewhere
                if is_allowed:
                    await session.send("Fetch.continueRequest", answered)
                else:
                    refusal = {"errorReason": "BlockedByClient", **answered}
                    await session.send("Fetch.failRequest", refusal)

    session.on("Fetch.requestPaused", answer)
    await session.send("Fetch.enable", {"patterns": [{"resourceType": "Document"}]})
    return True


def hops(response: Response) -> list[str]:
    """The URLs requested by a navigation, in order."""
    request, urls = response.request, [response.request.url]
    while request.redirected_from is not None:
        request = request.redirected_from
        urls.append(request.url)
    return urls[::-1]
