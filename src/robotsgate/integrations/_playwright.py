"""Checks where a page of Playwright navigates, including redirects.

`page.route` never sees where a redirect leads. In Chromium, the Fetch domain of the
DevTools protocol does. In other browsers, `hops` tells it after the navigation. Only
the main frame counts: frames and images inside a page, and pages that it opens, pass.
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
    """Ask `may_send` before each request that navigates `page`; Chromium only.

    A navigation that may not be sent fails with net::ERR_BLOCKED_BY_CLIENT.

    Args:
        page: new, or at least with no navigation under way.
        may_send: takes the URL; called in a task of Playwright; must not raise.

    Returns:
        Whether `page` is one of Chromium. If it is not, nothing asks `may_send`.
    """
    from playwright.async_api import Error  # noqa: PLC0415 (there is a page of it)

    try:
        session = await page.context.new_cdp_session(page)
    except Error:
        return False
    frames = await session.send("Page.getFrameTree")
    main_frame = frames["frameTree"]["frame"]["id"]

    async def answer(event: dict[str, Any]) -> None:
        answered = {"requestId": event["requestId"]}
        is_frame_inside = event["frameId"] != main_frame
        is_allowed = is_frame_inside or await may_send(event["request"]["url"])
        with suppress(Error):  # the page is closed, or has navigated elsewhere
            if is_allowed:
                await session.send("Fetch.continueRequest", answered)
            else:
                refusal = {"errorReason": "BlockedByClient", **answered}
                await session.send("Fetch.failRequest", refusal)

    session.on("Fetch.requestPaused", answer)
    await session.send("Fetch.enable", {"patterns": [{"resourceType": "Document"}]})
    return True


def hops(response: Response) -> list[str]:
    """The URLs that a navigation has requested, the first one first."""
    request, urls = response.request, [response.request.url]
    while request.redirected_from is not None:
        request = request.redirected_from
        urls.append(request.url)
    return urls[::-1]
