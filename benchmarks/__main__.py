"""Measures robotsgate beside its peers, all in one run.

    pip install -e '.[bench]'
    python -m benchmarks

Without --corpus the robots.txt files are made up, in the shape of real ones. Each
figure is the best of some turns that the contenders take one after the other.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks import cold, hostile, imports, memory, parsing, questions
from benchmarks.charts import draw
from benchmarks.corpus import robots_files
from benchmarks.page import Table, about, publish
from benchmarks.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Sequence

_MEASUREMENTS = {
    module.__name__.rpartition(".")[2]: module.measure
    for module in (questions, parsing, memory, hostile, cold, imports)
}
_OWN = ("robotsgate", "httpx", "h11", "anyio", "cachetools")
_PEERS = ("protego", "robotspy", "jwm.robotstxt", "fast-robotstxt", "aiohttp")

_FILES, _REPEATS = 2_000, 7
_FILES_WHEN_QUICK, _REPEATS_WHEN_QUICK = 150, 2


def main(words: Sequence[str] | None = None) -> None:
    """Do as the command line says."""
    given = _arguments().parse_args(words)
    files = _FILES_WHEN_QUICK if given.quick else _FILES
    repeats = _REPEATS_WHEN_QUICK if given.quick else _REPEATS
    bodies, kind = robots_files(files, given.corpus)
    work = Workload(bodies=bodies, repeats=repeats, is_quick=given.quick)
    figures = []
    for name in given.only or _MEASUREMENTS:
        began = perf_counter()
        figures += _MEASUREMENTS[name](work)
        print(f"[{name}: {perf_counter() - began:.0f} s]", file=sys.stderr)
    run = about(*_OWN, *_PEERS)
    run |= {"files": kind, "turns": f"the best of {repeats}"}
    publish(figures, run, page=given.page)
    if given.page is not None:
        for table in figures:
            if isinstance(table, Table) and table.name == "questions":
                draw(table, given.page.with_name("how-fast-questions.svg"))


def _arguments() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = arguments.add_argument
    add("--corpus", type=Path, metavar="DIR", help="a folder of real robots.txt files")
    add("--only", action="append", choices=_MEASUREMENTS, help="may be repeated")
    add("--quick", action="store_true", help="a first look, in some seconds")
    add(
        "--page",
        type=Path,
        metavar="FILE",
        help="write tables here, and a chart next to it",
    )
    return arguments


if __name__ == "__main__":
    main()
