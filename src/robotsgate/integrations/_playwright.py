"""Checks the navigations of Playwright pages, including redirects.

`page.route` does not see redirect targets, but in Chromium, the DevTools protocol's
Fetch domain does. Two kinds of navigation send no request that it sees: a service
worker may answer, so service workers are bypassed; and Chromium may use a response that
it fetched in advance, so all navigations must be checked again afterwards. In other
browsers, `hops` returns the redirect targets after the navigation. Only a page's main
frame is checked, not its subframes, images or popups.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from playwright.async_api import Page, Response

# The URLs of each page's navigations; a page may be used again.
_requested: WeakKeyDictionary[Page, list[str]] = WeakKeyDictionary()


async def check_navigations(
    page: Page, may_send: Callable[[str], Awaitable[bool]]
) -> list[str] | None:
    """Call `may_send` before each request that navigates `page` (Chromium only).

    If `may_send` returns `False` or raises, the navigation fails with
    net::ERR_BLOCKED_BY_CLIENT. If `page` is used again, the first `may_send` is kept.

    Args:
        page: a page that is not currently navigating, preferably a new page.
        may_send: takes the URL; called in one of Playwright's tasks.

    Returns:
        A list that will contain the http and https URLs of all navigations until the
        next call, including redirects. Check them before you use the page, because a
        page's speculation rules can request them without a call of `may_send`. Unlike
        `page.url`, the list ignores `history.pushState`, which requests nothing.
        `None` if `page` does not belong to Chromium; then `may_send` is never called.
    """
    from playwright.async_api import Error  # noqa: PLC0415 (`page` is Playwright's)

    if page in _requested:
        _requested[page] = []
        return _requested[page]
    try:
        session = await page.context.new_cdp_session(page)
    except Error:
        return None
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

    def record(event: dict[str, Any]) -> None:
        url, kind = event["request"]["url"], (event.get("type"), event.get("frameId"))
        if kind == ("Document", main_frame) and url.startswith("http"):  # not a blob
            _requested[page].append(url)

    session.on("Fetch.requestPaused", answer)
    await session.send("Fetch.enable", {"patterns": [{"resourceType": "Document"}]})
    await session.send("Network.enable")
    await session.send("Network.setBypassServiceWorker", {"bypass": True})
    _requested[page] = []
    session.on("Network.requestWillBeSent", record)
    return _requested[page]


def hops(response: Response) -> list[str]:
    """The URLs requested by a navigation, in order."""
    request, urls = response.request, [response.request.url]
    while request.redirected_from is not None:
        request = request.redirected_from
        urls.append(request.url)
    return urls[::-1]
