"""What an example promises beyond ending well, which `.ci/run` looks at."""

from __future__ import annotations

import importlib
import re
from itertools import pairwise
from typing import TYPE_CHECKING

import anyio
import crawler
import pytest
from rich.progress import Progress

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


def test_crawler_visits_what_it_may_and_tells_when_to_try_a_dead_site_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (
        crawler.serving(crawler.DOWN) as other_site,
        crawler.serving(crawler.pages(other_site)) as site,
    ):
        anyio.run(crawler.main, f"{site}/")

    shown = capsys.readouterr().out
    assert sorted(re.findall("GET (.*) with (.*)", shown)) == [
        ("/", "200"),
        ("/about", "200"),
        ("/robots.txt", "200"),
        ("/robots.txt", "503"),
    ]
    assert "disallowed by line 2 (Disallow: /diary," in shown
    assert re.search(rf"{other_site}/ .*\n    try it again at epoch second", shown)


@pytest.mark.slow
def test_polite_crawler_keeps_each_delay_and_obeys_a_429(
    tmp_path: Path,
) -> None:
    polite_crawler = importlib.import_module("polite_crawler")  # with its charts
    picture = tmp_path / "politeness.png"

    with polite_crawler.serving() as sites, Progress(disable=True) as progress:
        anyio.run(polite_crawler.crawl_all, sites, progress)
        polite_crawler.draw(sites, picture)

    for site in sites:
        # The example fetches each robots.txt by a call of the checker, without a turn.
        pages = [request for request in site.log if request.kind != "robots.txt"]
        for one, other in pairwise(pages):
            delay = 2.0 if one.kind == "429" else DELAYS[site.title]
            assert other.began_at - one.ended_at >= delay, site.title
    assert picture.stat().st_size > 0
