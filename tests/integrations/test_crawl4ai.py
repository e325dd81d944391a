"""Our parser in real crawl4ai crawlers, over HTTP and in a browser."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest

from robotsgate import RobotsChecker, UnsupportedError
from robotsgate.integrations.crawl4ai import RobotsParser
from tests.integrations.chromium import (
    LAUNCH_OPTIONS,
    NEEDS_CHROMIUM,
    page,
    speculation,
)
from tests.servers.answers import Reply, Routes, redirect

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from tests.servers.loopback import LoopbackServer, Serve


pytest.importorskip("crawl4ai", reason="crawl4ai is not installed")

pytestmark = [
    pytest.mark.anyio,
    # crawl4ai leaves connections to its database open.
    pytest.mark.filterwarnings("ignore"),
]

ROBOTS = b"User-agent: ExampleBot\nDisallow: /private\n\nUser-agent: *\nDisallow: /\n"
# Long enough for crawl4ai to accept it as a page.
PAGE = page("<p>" + "Much to read about crawlers. " * 20)


@pytest.fixture
def anyio_backend() -> str:
    """crawl4ai supports only asyncio."""
    return "asyncio"


@pytest.fixture
def crawl4ai(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 (a module)
    """The package, keeping its files in the test's temporary folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CRAWL4_AI_BASE_DIRECTORY", str(tmp_path))
    return importlib.import_module("crawl4ai")


@pytest.fixture
def site(serve: Serve) -> LoopbackServer:
    answers = {"/robots.txt": Reply(body=ROBOTS), "/public": PAGE}
    answers |= {"/moved": redirect("/private"), "/private": PAGE}
    return serve(Routes({**answers, **speculation("/private", PAGE)}))


@pytest.mark.parametrize("flag", [True, False])
async def test_parser_refuses_only_if_the_flag_is_set(
    crawl4ai: Any,  # noqa: ANN401
    site: LoopbackServer,
    *,
    flag: bool,
) -> None:
    strategy = importlib.import_module("crawl4ai.async_crawler_strategy")
    config = crawl4ai.CrawlerRunConfig(check_robots_txt=flag)
    async with (
        RobotsChecker(user_agent="ExampleBot/1.0") as checker,
        crawl4ai.AsyncWebCrawler(
            crawler_strategy=strategy.AsyncHTTPCrawlerStrategy()
        ) as crawler,
    ):
        crawler.robots_parser = RobotsParser(checker, "ExampleBot")
        public, private, raw = [
            await crawler.arun(url, config)
            for url in (f"{site.url}/public", f"{site.url}/private", "raw:<p>Text</p>")
        ]

    assert public.success
    assert raw.success
    assert private.success is not flag
    assert ("/private" in site.targets) is not flag
    if flag:
        assert private.status_code == 403
        assert private.error_message == "Access denied by robots.txt"


async def test_example_without_a_browser_refuses_a_redirect_and_names_the_rule(
    crawl4ai: object,  # noqa: ARG001 (sets its folder)
    site: LoopbackServer,
    capsys: pytest.CaptureFixture[str],
) -> None:
    example = importlib.import_module("wrap_crawl4ai")

    await example.crawl_without_browser([f"{site.url}/public", f"{site.url}/moved"])

    assert site.targets == ["/robots.txt", "/public", "/moved"]
    assert site.requests[-1].headers["user-agent"].startswith("ExampleBot/1.0")
    assert "line 2 (Disallow: /private" in capsys.readouterr().out


@NEEDS_CHROMIUM
async def test_example_with_a_browser_refuses_what_a_page_leads_to(
    crawl4ai: object,  # noqa: ARG001 (sets its folder)
    site: LoopbackServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    browser_type = importlib.import_module("playwright.async_api").BrowserType
    launch = browser_type.launch

    def launch_installed(self: object, **options: object) -> object:
        return launch(self, **options | LAUNCH_OPTIONS)

    monkeypatch.setattr(browser_type, "launch", launch_installed)
    example = importlib.import_module("wrap_crawl4ai")
    urls = [f"{site.url}/{name}" for name in ("public", "private", "moved")]

    await example.crawl([*urls, f"{site.url}/speculation"])

    assert site.targets[:4] == ["/robots.txt", "/public", "/moved", "/speculation"]
    output = capsys.readouterr().out
    assert f"{urls[0]} True" in output
    assert f"{urls[1]} False Access denied by robots.txt" in output
    assert "ERR_BLOCKED_BY_CLIENT" in output
    assert "/speculation False" in output
    assert "/private is disallowed by line 2" in output


class FakePage:
    """A page that is its own context and session; counts sessions or refuses them.

    Attributes:
        sent: the commands sent to the session.
        pause: the callback that the session calls for each request.
    """

    pause: Callable[[dict[str, Any]], Awaitable[None]]

    def __init__(self, error: Exception | None = None) -> None:
        self.context = self
        self.sessions = 0
        self.sent: list[str] = []
        self._error = error

    async def new_cdp_session(self, _: object) -> FakePage:
        if self._error is not None:
            raise self._error
        self.sessions += 1
        return self

    async def send(
        self, command: str, *_: object
    ) -> dict[str, dict[str, dict[str, str]]]:
        self.sent.append(command)
        return {"frameTree": {"frame": {"id": "main"}}}

    def on(
        self, event: str, callback: Callable[[dict[str, Any]], Awaitable[None]]
    ) -> None:
        if event == "Fetch.requestPaused":
            self.pause = callback


async def test_page_is_prepared_only_once() -> None:
    page: Any = FakePage()
    async with RobotsChecker(user_agent="ExampleBot/1.0") as checker:
        parser = RobotsParser(checker, "ExampleBot")
        for _ in range(2):
            await parser.check_page(page, context=page)

    assert page.sessions == 1


async def test_closed_checker_ends_a_navigation() -> None:
    """It used to hang until the browser timed out."""
    page: Any = FakePage()
    async with RobotsChecker(user_agent="ExampleBot/1.0") as checker:
        await RobotsParser(checker, "ExampleBot").check_page(page)

    request = {"url": "https://example.com/public"}
    with pytest.raises(RuntimeError, match="closed"):
        await page.pause({"requestId": "1", "frameId": "main", "request": request})

    assert page.sent[-1] == "Fetch.failRequest"


async def test_browser_other_than_chromium_is_refused() -> None:
    from playwright.async_api import Error  # noqa: PLC0415 (may be missing)

    page: Any = FakePage(Error("CDP session is only available in Chromium"))
    async with RobotsChecker(user_agent="ExampleBot/1.0") as checker:
        with pytest.raises(UnsupportedError, match="expected Chromium"):
            await RobotsParser(checker, "ExampleBot").check_page(page)
