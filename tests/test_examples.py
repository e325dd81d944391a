"""What examples must do besides exiting successfully, which `.ci/run` checks."""

from __future__ import annotations

import importlib
import signal
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import anyio
import crawler
import example_site
import httpx
import polite_threads
import pytest
import service
from aiohttp.test_utils import TestClient, TestServer
from rich.progress import Progress

from robotsgate import (
    InvalidURLError,
    PolitenessGate,
    RetriesExhaustedError,
    RobotsChecker,
)
from robotsgate.events import URLSkipped
from robotsgate.testing import FakeSite, ManualClock
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

    from robotsgate import RobotsError
    from robotsgate.events import GateEvent

DELAYS = {
    "no crawl-delay": 0.2,
    "no crawl-delay, slow": 0.2,
    "Crawl-delay: 0.5": 0.5,
    "Crawl-delay: 1": 1.0,
    "Request-rate: 3/2s": 2 / 3,
    "429, Retry-After: 2": 0.2,
}


@pytest.mark.anyio
async def test_crawler_reports_waiting_urls_at_sigterm_and_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crawler, "frontier", {})
    web = FakeSite(clock=(clock := ManualClock()))
    web.serve("https://shop.example", "")
    web.serve_page("https://shop.example/", '<a href="/shoes">Shoes</a>')
    events: list[GateEvent] = []

    async with (
        RobotsChecker(client=web, clock=clock) as checker,
        PolitenessGate(checker, "ExampleBot", on_event=events.append) as gate,
        httpx.AsyncClient(transport=web) as client,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(crawler.crawl, gate, client, "https://shop.example/")
        await clock.pass_time(1)
        signal.raise_signal(signal.SIGTERM)

    waiting = URLSkipped(
        url="https://shop.example/shoes", error=None, ready_at=clock.now()
    )
    assert events == [waiting]
    assert list(crawler.frontier) == ["https://shop.example/shoes"]


@pytest.mark.anyio
async def test_crawler_keeps_the_urls_in_progress_if_it_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crawler, "frontier", {})
    monkeypatch.setattr(crawler, "links", lambda _: 1 / 0)
    web = FakeSite(clock=(clock := ManualClock(autojump_threshold=0)))

    async with (
        RobotsChecker(client=web, clock=clock) as checker,
        PolitenessGate(checker, "ExampleBot") as gate,
        httpx.AsyncClient(transport=web) as client,
    ):
        with pytest.raises(ExceptionGroup):
            await crawler.crawl(gate, client, "https://shop.example/")

    assert list(crawler.frontier) == ["https://shop.example/"]


@cases("error ready_at is_saved", {
    "waiting": (None, 60.0, True),
    "out of retries": (RetriesExhaustedError("failed", cause="429"), None, True),
    "invalid": (InvalidURLError("bad", url="http://[bad"), None, False),
})  # fmt: skip
def test_crawler_saves_the_urls_that_another_run_can_try_again(
    error: RobotsError | None,
    ready_at: float | None,
    is_saved: bool,  # noqa: FBT001 (a row of a table)
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(crawler, "frontier", {"http://a/x": None})

    crawler.note_skipped(URLSkipped(url="http://a/x", error=error, ready_at=ready_at))

    assert list(crawler.frontier) == ["http://a/x"] * is_saved


def test_crawler_follows_no_links_on_an_error_page() -> None:
    page = httpx.Response(429, html='<a href="/x">x</a>')

    assert crawler.links(page) == []


@pytest.mark.parametrize(("url", "status", "text"), [
    ("/about", 200, "Home"), ("/missing", 404, ""), ("/", 502, "too large"),
    ("/diary/monday", 403, '"reason": "disallowed-by-rule"'),
    ("/today", 403, '"reason": "disallowed-by-rule"'),
    ("http://10.0.0.1/", 403, '"reason": "address-refused"'),
    ("http://10.0.0.1/robots.txt", 502, "not a public address"),
])  # fmt: skip
def test_service_returns_only_what_robots_txt_and_the_guard_allow(
    url: str, status: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = replace(service.POLICY, allowed_networks=["127.0.0.0/8"])
    monkeypatch.setattr(service, "POLICY", policy)
    monkeypatch.setattr(service, "MAX_PAGE_BYTES", 50)
    monkeypatch.setattr(
        service, "PolitenessGate", partial(PolitenessGate, default_delay=0)
    )
    monkeypatch.chdir(tmp_path)

    async def fetch(url: str) -> tuple[int, str]:
        async with TestClient(TestServer(service.application())) as client:
            response = await client.get("/", params={"url": url})
            return response.status, await response.text()

    with example_site.serving() as site:
        actual_status, output = anyio.run(
            fetch, url if "://" in url else f"{site}{url}"
        )

    assert actual_status == status
    assert text in output


def test_threads_get_what_robots_txt_allows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    gate = partial(polite_threads.PolitenessGate, default_delay=0)
    monkeypatch.setattr(polite_threads, "PolitenessGate", gate)

    with example_site.serving() as site:
        polite_threads.crawl([f"{site}/about", f"{site}/today"])

    printed = capsys.readouterr().out
    assert f"200 {site}/about\n" in printed
    assert f"{site}/diary/monday is disallowed by line 2" in printed


@pytest.mark.slow
def test_polite_crawler_keeps_each_delay_and_obeys_a_429(tmp_path: Path) -> None:
    polite_crawler = importlib.import_module("polite_crawler")  # imports matplotlib
    picture = tmp_path / "politeness.png"

    with polite_crawler.serving() as sites, Progress(disable=True) as progress:
        anyio.run(polite_crawler.crawl_all, sites, progress)
        polite_crawler.draw(sites, picture)

    for site in sites:
        # The example fetches each robots.txt through the checker, without a turn.
        pages = [request for request in site.log if request.kind != "robots.txt"]
        for one, other in pairwise(pages):
            delay = 2.0 if one.kind == "429" else DELAYS[site.title]
            assert other.began_at - one.ended_at >= delay, site.title
    assert picture.stat().st_size > 0
