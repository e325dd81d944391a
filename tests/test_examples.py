"""What examples must do besides exiting successfully, which `.ci/run` checks."""

from __future__ import annotations

import importlib
import re
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import anyio
import crawler
import example_site
import pytest
import service
from aiohttp.test_utils import TestClient, TestServer
from rich.progress import Progress

from robotsgate import PolitenessGate

if TYPE_CHECKING:
    from pathlib import Path

DELAYS = {
    "no crawl-delay": 0.2,
    "no crawl-delay, slow": 0.2,
    "Crawl-delay: 0.5": 0.5,
    "Crawl-delay: 1": 1.0,
    "Request-rate: 3/2s": 2 / 3,
    "429, Retry-After: 2": 0.2,
}


def test_crawler_visits_allowed_pages_and_prints_when_to_retry_a_dead_site(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (
        crawler.serving(crawler.DOWN) as other_site,
        crawler.serving(crawler.pages(other_site)) as site,
    ):
        anyio.run(crawler.main, f"{site}/")

    output = capsys.readouterr().out
    assert sorted(re.findall("GET (.*) with (.*)", output)) == [
        ("/", "200"),
        ("/about", "200"),
        ("/robots.txt", "200"),
        ("/robots.txt", "503"),
    ]
    assert "disallowed by line 2 (Disallow: /diary," in output
    assert re.search(rf"{other_site}/ .*\n    try it again at epoch second", output)


@pytest.mark.parametrize(
    ("url", "status", "text"),
    [
        ("/about", 200, "Home"),
        ("/diary/monday", 403, '"reason": "disallowed-by-rule"'),
        ("/today", 403, '"reason": "disallowed-by-rule"'),
        ("/missing", 404, ""),
        ("/", 502, "too large"),
        ("http://10.0.0.1/", 403, '"reason": "address-refused"'),
        ("http://10.0.0.1/robots.txt", 502, "not a public address"),
    ],
)
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
