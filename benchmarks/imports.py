"""Measures how long a new interpreter takes to import the package and answer once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from functools import partial
from resource import RUSAGE_CHILDREN, getrusage
from typing import TYPE_CHECKING

from benchmarks.cold import loopback_origins
from benchmarks.page import Bar, Table
from benchmarks.timing import best_of_turns, seconds_of_each
from benchmarks.workload import AGENT

if TYPE_CHECKING:
    from benchmarks.workload import Workload

_NOTHING = "an interpreter that imports nothing"
_OF_A_FILE = "robotsgate.RobotsTxt, and a first answer"
_OVER_HTTP = "robotsgate.RobotsChecker, and a first answer over HTTP"
_STATEMENTS = {
    _NOTHING: "pass",
    "robotsgate": "import robotsgate",
    _OF_A_FILE: f"""
from robotsgate import RobotsTxt
robots = RobotsTxt.parse("User-agent: *\\nDisallow: /private")
robots.can_fetch("{AGENT}", "https://example.com/private")
""",
    "robotsgate.RobotsChecker": "from robotsgate import RobotsChecker",
    _OVER_HTTP: f"""
import asyncio
from robotsgate import RobotsChecker

async def main():
    async with RobotsChecker(user_agent="{AGENT}/1.0") as checker:
        await checker.can_fetch("{AGENT}", "ORIGIN/private")

asyncio.run(main())
""",
    "aiohttp + protego, and a first answer over HTTP": f"""
import asyncio
import aiohttp
from protego import Protego

async def main():
    async with aiohttp.ClientSession() as session:
        async with session.get("ORIGIN/robots.txt") as response:
            robots = Protego.parse(await response.text())
    robots.can_fetch("ORIGIN/private", "{AGENT}")

asyncio.run(main())
""",
    "httpx + protego, and a first answer over HTTP": f"""
import asyncio
import httpx
from protego import Protego

async def main():
    async with httpx.AsyncClient() as client:
        response = await client.get("ORIGIN/robots.txt")
    Protego.parse(response.text).can_fetch("ORIGIN/private", "{AGENT}")

asyncio.run(main())
""",
    "urllib.robotparser": "import urllib.robotparser",
}


def measure(work: Workload) -> list[Table | Bar]:
    """Start interpreters one after the other."""
    environment = dict(os.environ)
    with loopback_origins(1) as [origin]:

        async def run(statement: str) -> None:
            subprocess.run(  # noqa: ASYNC221 (nothing else should run)
                [sys.executable, "-c", statement.replace("ORIGIN", origin)],
                check=True,
                env=environment,
            )

        async def turn(statement: str) -> list[float]:
            return await seconds_of_each([run(statement)], clock=_seconds_of_children)

        turns = {name: partial(turn, text) for name, text in _STATEMENTS.items()}
        best = asyncio.run(best_of_turns(turns, repeats=6 * work.repeats))
    nothing = best[_NOTHING][0]
    rows = [
        (name, (seconds - nothing) * 1e3)
        for name, (seconds,) in best.items()
        if name != _NOTHING
    ]
    table = Table(
        name="imports",
        columns=("imported", "ms"),
        rows=rows,
        notes=(
            (
                "Processor time with compiled bytecode, without the"
                f" {nothing * 1e3:.2f} ms of the interpreter itself."
            ),
        ),
    )
    bars = [
        Bar(
            what=f"{what}: processor time without the interpreter",
            value=(best[what][0] - nothing) * 1e3,
            bar=bar,
            unit="ms",
        )
        for what, bar in ((_OF_A_FILE, 40), (_OVER_HTTP, 150))
    ]
    return [table, *bars]


def _seconds_of_children() -> float:
    """The processor time of all child processes that have ended."""
    usage = getrusage(RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
