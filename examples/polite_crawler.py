"""Crawl six sites on this machine politely, and plot the requests they received.

    pip install '.[examples]'
    python examples/polite_crawler.py

politeness.png has a row for each site and a bar for each request.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import httpx
from crawler import USER_AGENT, crawl
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from polite_sites import Site, serving
from rich.progress import Progress

from robotsgate import PolitenessGate, RobotsChecker

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_DELAY = 0.2  # use at least a second on real sites

PICTURE = Path("politeness.png")
COLOURS = {"robots.txt": "#9a9890", "page": "#2a78d6", "429": "#c6362c"}


async def crawl_all(sites: Sequence[Site], progress: Progress) -> None:
    """Start from the sitemaps of `sites`, and end when every page has been visited."""
    task = progress.add_task("Pages", total=None)
    async with (
        httpx.AsyncClient(headers={"User-Agent": USER_AGENT}) as client,
        RobotsChecker(user_agent=USER_AGENT) as checker,
        PolitenessGate(
            checker,
            "ExampleBot",
            default_delay=DEFAULT_DELAY,
            host_of=lambda url: urlsplit(url).netloc,  # each port plays a host
        ) as gate,
    ):
        await checker.prefetch([site.url for site in sites])
        sitemaps = [
            sitemap for site in sites for sitemap in await checker.sitemaps(site.url)
        ]
        await crawl(gate, client, *sitemaps, tell=lambda *_: progress.advance(task))


def draw(sites: Sequence[Site], path: Path) -> None:
    """Plot a row for each site: its requests over time, coloured by kind."""
    figure = Figure(figsize=(11, 5), layout="constrained")
    axes = figure.subplots()
    first = min(site.log[0].began_at for site in sites)
    for row, site in enumerate(sites):
        for request in site.log:
            axes.barh(
                row,
                request.ended_at - request.began_at,
                left=request.began_at - first,
                color=COLOURS[request.kind],
            )
    axes.set_yticks(range(len(sites)), [site.title for site in sites])
    axes.invert_yaxis()
    axes.set_xlabel("seconds")
    handles = [Patch(color=colour, label=kind) for kind, colour in COLOURS.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
    figure.savefig(path)


if __name__ == "__main__":
    with serving() as sites, Progress() as progress:
        anyio.run(crawl_all, sites, progress)
        draw(sites, PICTURE)
        print(f"{PICTURE} shows when each site was requested")
