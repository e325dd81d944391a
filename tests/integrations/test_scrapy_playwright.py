"""Our middleware with scrapy-playwright: a real browser, and stand-ins for others."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import pytest
from scrapy import Request, signals
from scrapy.http import HtmlResponse

from robotsgate import DisallowedError
from tests.integrations.chromium import (
    LAUNCH_OPTIONS,
    NEEDS_CHROMIUM,
    page,
    speculation,
)
from tests.integrations.crawls import BUILT_IN, Plan, crawl, crawl_in_subprocess
from tests.servers.answers import Reply, Routes, redirect
from tests.tables import cases

if TYPE_CHECKING:
    from tests.servers.loopback import Serve


RULES = Reply(body=b"User-agent: *\nDisallow: /private\n")
MIDDLEWARES: dict[Any, int | None] = {
    BUILT_IN: None,
    "robotsgate.integrations.scrapy_playwright.RobotsGatePlaywrightMiddleware": 100,
}
SETTINGS = {
    "ADDONS": {},
    "DOWNLOADER_MIDDLEWARES": MIDDLEWARES,
    "ROBOTSTXT_OBEY": True,
}
HANDLER = "scrapy_playwright.handler.ScrapyPlaywrightDownloadHandler"


async def send_mark(page: Any, request: Request) -> None:  # noqa: ANN401 (Playwright's)
    """A user's callback for new pages."""
    await page.request.get(urljoin(request.url, "/mark"))


@NEEDS_CHROMIUM
@pytest.mark.skipif(
    importlib.util.find_spec("scrapy_playwright") is None,
    reason="scrapy-playwright is not installed",
)
@pytest.mark.parametrize("is_loop_in_thread", [False, True])
def test_chromium_sends_no_refused_navigation(
    serve: Serve, *, is_loop_in_thread: bool
) -> None:
    other = serve(Routes({"/robots.txt": RULES, "/private": page("Secrets")}))
    site = serve(
        Routes(
            {
                "/robots.txt": RULES,
                "/": page("<iframe src='/private'></iframe>"),
                "/private": page("in a frame"),
                "/to": redirect("/"),
                "/away": redirect(f"{other.url}/private"),
                "/twice": redirect("/away"),
                "/script": page("<script>location = '/private'</script>"),
                "/state": page("<script>history.pushState(0, '', '/private')</script>"),
                **speculation("/private/page", page("Secrets")),
            }
        )
    )
    paths = ["/", "/private", "/to", "/away", "/twice"]
    paths += ["/script", "/state", "/speculation"]
    urls = [site.url + path for path in paths]

    report = crawl_in_subprocess(
        Plan(
            urls=urls,
            meta={
                "playwright": True,
                "playwright_page_init_callback": f"{__name__}.send_mark",
            },
            settings={
                **SETTINGS,
                "CONCURRENT_REQUESTS": 1,
                "DOWNLOAD_HANDLERS": {"http": HANDLER},
                "PLAYWRIGHT_LAUNCH_OPTIONS": LAUNCH_OPTIONS,
                "_PLAYWRIGHT_THREADED_LOOP": is_loop_in_thread,  # as on Windows
            },
        )
    )

    assert report.pages == [urls[0], urls[0], f"{site.url}/private"]
    rule = "line 2 (Disallow: /private, for all agents)"
    assert [rule in text for text in report.refused] == [True] * 5
    assert report.stats["robotstxt/forbidden"] == 5
    # Scrapy copies meta to later requests and may have to pickle it.
    assert not [key for key in report.meta_keys if key.startswith("robotsgate")]
    assert site.targets[:-3] == [
        "/robots.txt",
        *("/mark", "/", "/private"),
        *("/mark", "/to", "/", "/private"),
        *("/mark", "/away"),
        *("/mark", "/twice", "/away"),
        *("/mark", "/script"),
        *("/mark", "/state"),
        "/mark",
    ]
    assert set(site.targets[-3:]) == {"/speculation", "/navigate.js", "/private/page"}
    assert other.targets == ["/robots.txt"]


class Browser:
    """Stands in for a browser in which navigations cannot be refused."""

    def process_request(self, request: Request) -> HtmlResponse | None:
        if "urls" not in request.meta:
            return None
        *request.meta["redirect_urls"], last = request.meta["urls"]
        return HtmlResponse(last, request=request)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@cases("paths meta is_refused", {
    "no redirect": (["/public"], {}, False),
    "to a disallowed page": (["/public", "/private"], {}, True),
    "via a disallowed page": (["/public", "/private", "/public"], {}, True),
    "opt-out": (["/public", "/private"], {"dont_obey_robotstxt": True}, False),
})  # fmt: skip
async def test_redirects_in_another_browser_are_checked_afterwards(
    serve: Serve, paths: list[str], meta: dict[str, Any], *, is_refused: bool
) -> None:
    site = serve(RULES)
    urls = [site.url + path for path in paths]
    request = Request(urls[0], meta={**meta, "playwright": True, "urls": urls})

    spider = await crawl(
        request,
        settings={**SETTINGS, "DOWNLOADER_MIDDLEWARES": {**MIDDLEWARES, Browser: 200}},
    )

    causes = [type(error.__cause__) for error in spider.errors]
    assert causes == [DisallowedError] * is_refused
    assert spider.report.pages == ([] if is_refused else [urls[-1]])


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(
    "user_meta", [{}, {"playwright_page_init_callback": "a.callback"}]
)
async def test_request_leaves_the_browser_with_only_the_users_callback(
    serve: Serve, user_meta: dict[str, str]
) -> None:
    """Scrapy copies meta to retries and may have to pickle it."""
    metas: list[dict[str, Any]] = []
    request = Request(serve(RULES).url, meta={"playwright": True, **user_meta})

    def record_meta(request: Request) -> None:
        if request.meta.get("playwright"):
            metas.append(request.meta)

    await crawl(
        request,
        settings=SETTINGS,
        listeners={signals.response_received: record_meta},
    )

    [meta] = metas
    assert {
        key: meta[key] for key in meta if key.startswith("playwright_")
    } == user_meta
