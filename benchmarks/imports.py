"""How long a new interpreter takes to import the package."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.report import Measured, Table
from benchmarks.timing import least, seconds_of, take_turns

if TYPE_CHECKING:
    from benchmarks.workload import Workload

__all__ = ["measure"]

_NOTHING = "an interpreter that imports nothing"
_STATEMENTS = {
    _NOTHING: "pass",
    "robotsgate": "import robotsgate",
    "httpx": "import httpx",
    "anyio": "import anyio",
    "urllib.robotparser": "import urllib.robotparser",
}


def measure(work: Workload) -> Measured:
    """Start interpreters, one after the other."""
    return asyncio.run(_measured(work))


async def _measured(work: Workload) -> Measured:
    async def run(statement: str) -> None:
        subprocess.run([sys.executable, "-c", statement], check=True)  # noqa: ASYNC221 (nothing else is to run)

    async def turn(statement: str) -> float:
        return await seconds_of(run(statement))

    turns = {name: partial(turn, statement) for name, statement in _STATEMENTS.items()}
    best = least(await take_turns(turns, repeats=2 * work.repeats))
    table = Table(
        name="imports",
        title="An import in a new interpreter",
        columns=("imported", "whole run, ms", "without the interpreter, ms"),
        rows=tuple(
            (name, seconds * 1e3, (seconds - best[_NOTHING]) * 1e3)
            for name, seconds in best.items()
        ),
        notes=("Byte code is compiled already.",),
    )
    return Measured(tables=(table,))
