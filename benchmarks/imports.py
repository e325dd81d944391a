"""How long a new interpreter takes to import the package."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.page import Bar, Table
from benchmarks.timing import best_of_turns, seconds_of_each

if TYPE_CHECKING:
    from benchmarks.workload import Workload

_NOTHING = "an interpreter that imports nothing"
_STATEMENTS = {
    _NOTHING: "pass",
    "robotsgate": "import robotsgate",
    "robotsgate.RobotsChecker": "from robotsgate import RobotsChecker",
    "httpx": "import httpx",
    "anyio": "import anyio",
    "urllib.robotparser": "import urllib.robotparser",
}


def measure(work: Workload) -> list[Table | Bar]:
    """Start interpreters, one after the other."""

    async def run(statement: str) -> None:
        subprocess.run([sys.executable, "-c", statement], check=True)  # noqa: ASYNC221 (nothing else is to run)

    async def turn(statement: str) -> list[float]:
        return await seconds_of_each([run(statement)])

    turns = {name: partial(turn, statement) for name, statement in _STATEMENTS.items()}
    best = asyncio.run(best_of_turns(turns, repeats=2 * work.repeats))
    table = Table(
        name="imports",
        columns=("imported", "whole run, ms", "without the interpreter, ms"),
        rows=[
            (name, seconds * 1e3, (seconds - best[_NOTHING][0]) * 1e3)
            for name, (seconds,) in best.items()
        ],
        notes=("Byte code is compiled already.",),
    )
    return [table]
