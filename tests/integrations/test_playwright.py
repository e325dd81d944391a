"""Navigations in a real Chromium, and the requests they send to real servers."""

from __future__ import annotations

import ast
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from robotsgate import RobotsChecker
from robotsgate.integrations._playwright import check_navigations, hops
from tests.checking.builders import AGENT, RULES
from tests.integrations.chromium import (
    LAUNCH_OPTIONS,
    NEEDS_CHROMIUM,
    page,
    script,
    speculation,
)
from tests.servers.answers import Reply, Routes, redirect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tests.servers.loopback import LoopbackServer, Serve


pytestmark = [pytest.mark.anyio, NEEDS_CHROMIUM]

WORKER = """
addEventListener("activate", event => event.waitUntil(clients.claim()));
addEventListener("fetch", event => {
    if (event.request.mode === "navigate") event.respondWith(fetch("/private"));
});
"""
GUIDE = Path(__file__).parents[2] / "docs/how-to/use-with-crawlee.md"


@pytest.fixture
def anyio_backend() -> str:
    """Playwright supports only asyncio."""
    return "asyncio"


@pytest.fixture
def sites(serve: Serve) -> tuple[LoopbackServer, LoopbackServer]:
    """A site, and a second site whose redirects and scripts lead to the first."""
    other = serve(Routes({"/public": page("public"), "/private": page("private")}))
    return other, serve(
        Routes(
            {
                "/": page("<iframe src='/private'></iframe><img src='/private'>"),
                "/private": page("in a frame"),
                "/away": redirect(f"{other.url}/private"),
                "/twice": redirect("/away"),
                "/to": redirect(f"{other.url}/public"),
                "/script": page(f"<script>location = '{other.url}/private'</script>"),
            }
        )
    )


@asynccontextmanager
async def new_page() -> AsyncIterator[tuple[Any, list[str]]]:
    """A page that may not navigate to URLs ending in /private, and the URLs checked."""
    from playwright.async_api import async_playwright  # noqa: PLC0415 (may be missing)

    checked = []

    async def may_send(url: str) -> bool:
        checked.append(url)
        return not url.endswith("/private")

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**LAUNCH_OPTIONS)
        page = await browser.new_page()
        assert await check_navigations(page, may_send) == []
        yield page, checked
        await browser.close()


@pytest.mark.parametrize("sent", [[], ["/away"], ["/twice", "/away"]])
async def test_refused_hop_is_never_sent(
    sites: tuple[LoopbackServer, LoopbackServer], sent: list[str]
) -> None:
    from playwright.async_api import Error  # noqa: PLC0415 (may be missing)

    other, site = sites
    async with new_page() as (page, checked):
        with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
            await page.goto(site.url + (sent[0] if sent else "/private"))

    assert site.targets == sent
    assert other.targets == []
    assert checked[-1].endswith("/private")


async def test_allowed_redirect_is_followed_and_its_hops_are_listed(
    sites: tuple[LoopbackServer, LoopbackServer],
) -> None:
    other, site = sites
    async with new_page() as (page, checked):
        response = await page.goto(f"{site.url}/to")

        assert hops(response) == checked == [f"{site.url}/to", f"{other.url}/public"]


async def test_frame_or_image_inside_a_page_is_not_checked(
    sites: tuple[LoopbackServer, LoopbackServer],
) -> None:
    _, site = sites
    async with new_page() as (page, checked):
        urls = await check_navigations(page, pytest.fail)
        await page.goto(f"{site.url}/")

        assert page.frames[1].url == f"{site.url}/private"
    assert urls == checked == [f"{site.url}/"]
    assert site.targets.count("/private") == 2


async def test_navigation_by_a_script_is_checked(
    sites: tuple[LoopbackServer, LoopbackServer],
) -> None:
    other, site = sites
    async with new_page() as (page, checked), anyio.create_task_group() as tasks:
        failed_event = anyio.Event()
        page.on("requestfailed", lambda _: failed_event.set())
        tasks.start_soon(page.goto, f"{site.url}/script")
        await failed_event.wait()

    assert checked == [f"{site.url}/script", f"{other.url}/private"]
    assert other.targets == []


async def test_service_worker_cannot_answer_a_navigation(serve: Serve) -> None:
    """The page used to be /private, under another URL and without a check."""
    pages = {"/worker.js": script(WORKER), "/private": page("private")}
    site = serve(Routes({**pages, "/": page(""), "/public": page("public")}))
    async with new_page() as (browser_page, checked):
        await browser_page.goto(f"{site.url}/")
        await browser_page.evaluate(
            """navigator.serviceWorker.register("/worker.js").then(() =>
            navigator.serviceWorker.ready).then(() => navigator.serviceWorker.controller
            || new Promise(resolve => navigator.serviceWorker.oncontrollerchange =
            () => resolve()))"""
        )
        await browser_page.goto(f"{site.url}/public")

        assert await browser_page.inner_text("body") == "public"
    assert checked == [f"{site.url}/", f"{site.url}/public"]
    assert "/private" not in site.targets


async def test_navigations_without_a_check_are_listed(serve: Serve) -> None:
    """Chromium requests a page in advance and later shows it."""
    private = page("private <script>history.replaceState(0, '', '/public')</script>")
    site = serve(Routes(speculation("/private", private)))
    async with new_page() as (browser_page, checked):
        urls = await check_navigations(browser_page, pytest.fail)
        await browser_page.goto(f"{site.url}/speculation")
        await browser_page.wait_for_url(f"{site.url}/public")

        assert checked == [f"{site.url}/speculation"]
        assert urls == [f"{site.url}/speculation", f"{site.url}/private"]
        assert await check_navigations(browser_page, pytest.fail) == []


@pytest.mark.parametrize(
    "code",
    [
        "history.pushState(0, '', '/private')",
        "location = '#private'",
        "location = URL.createObjectURL(new Blob(['private'], {type: 'text/html'}))",
    ],
    ids=["pushState", "fragment", "blob"],
)
async def test_new_url_without_a_request_is_not_listed(serve: Serve, code: str) -> None:
    site = serve(Routes({"/": page("")}))
    async with new_page() as (browser_page, checked):
        urls = await check_navigations(browser_page, pytest.fail)
        await browser_page.goto(f"{site.url}/")
        async with browser_page.expect_event("framenavigated"):
            await browser_page.evaluate(code)

        assert browser_page.url != f"{site.url}/"
        assert urls == checked == [f"{site.url}/"]


async def test_page_without_a_devtools_session_cannot_be_checked() -> None:
    """A closed page stands in for Firefox or WebKit, which have no such session."""

    async def may_send(_url: str) -> bool:
        return False

    async with new_page() as (checked_page, _):
        page = await checked_page.context.browser.new_page()
        await page.close()

        assert await check_navigations(page, may_send) is None


async def test_playwright_code_in_the_guide_refuses_navigations(serve: Serve) -> None:
    from playwright.async_api import Error  # noqa: PLC0415 (may be missing)

    server = serve(Routes({"/robots.txt": Reply(body=RULES.encode()), "/": page("")}))
    code = GUIDE.read_text(encoding="utf-8").rpartition("```python\n")[2]
    code = code.partition("```")[0]

    async with (
        RobotsChecker(user_agent=AGENT) as checker,
        new_page() as (page_of_browser, _),
    ):
        scope = {"Route": Any, "browser": page_of_browser.context.browser}
        scope |= {"checker": checker}
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        await eval(compile(code, GUIDE, "exec", flags), scope)  # noqa: S307 (our own page)
        routed = await scope["context"].new_page()
        await routed.goto(f"{server.url}/")
        with pytest.raises(Error, match="ERR_BLOCKED_BY_CLIENT"):
            await routed.goto(f"{server.url}/private")

    assert server.targets == ["/robots.txt", "/"]
