"""Compares robotsgate with its peers, all in one run.

    pip install -e . --group bench
    python -m benchmarks

Without --corpus, the robots.txt files are generated to resemble real ones. The
contenders take turns, and each figure is the best of a contender's turns.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks import cold, hostile, imports, memory, parsing, questions
from benchmarks.corpus import robots_files
from benchmarks.page import about, publish
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    options = _parser().parse_args(arguments)
    files = _FILES_WHEN_QUICK if options.quick else _FILES
    repeats = _REPEATS_WHEN_QUICK if options.quick else _REPEATS
    bodies, kind = robots_files(files, options.corpus, options.half)
    work = Workload(bodies=bodies, repeats=repeats, is_quick=options.quick)
    figures = []
    for name in options.only or _MEASUREMENTS:
        began = perf_counter()
        figures += _MEASUREMENTS[name](work)
        print(f"[{name}: {perf_counter() - began:.0f} s]", file=sys.stderr)
    run = about(*_OWN, *_PEERS)
    run["turns"] = f"the best of {repeats}"
    if options.only != ["hostile"]:
        run["files"] = kind
    publish(figures, run, page=options.page)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--corpus", type=Path, metavar="DIR", help="a folder of real robots.txt files")
    add("--half", type=int, choices=(1, 2), help="use every other file of the folder")
    add("--only", action="append", choices=_MEASUREMENTS, help="may be repeated")
    add("--quick", action="store_true", help="a rough first look that takes seconds")
    add("--page", type=Path, metavar="FILE", help="write the tables to this page")
    return parser


if __name__ == "__main__":
    main()
