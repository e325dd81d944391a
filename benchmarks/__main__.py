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

from benchmarks import (
    cold,
    hostile,
    imports,
    matching,
    memory,
    parsing,
    questions,
)
from benchmarks.charts import draw
from benchmarks.corpus import made_up_corpus, real_corpus
from benchmarks.page import rewritten
from benchmarks.report import Measured, bars_table, plain_text
from benchmarks.run import Run
from benchmarks.surroundings import surroundings
from benchmarks.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["MEASUREMENTS", "main"]

MEASUREMENTS: dict[str, Callable[[Workload], Measured]] = {
    "questions": questions.measure,
    "matching": matching.measure,
    "parsing": parsing.measure,
    "memory": memory.measure,
    "hostile": hostile.measure,
    "cold": cold.measure,
    "imports": imports.measure,
}

_FILES = 2_000
_FILES_WHEN_QUICK = 150
_REPEATS = 7
_REPEATS_WHEN_QUICK = 2


def main(words: Sequence[str] | None = None) -> None:
    """Do as the command line says."""
    given = _arguments().parse_args(words)
    if given.read is not None:
        run = Run.from_json(given.read.read_text(encoding="utf-8"))
    else:
        run = _measured(given)
    if run.bars:
        print("\n" + plain_text(bars_table(run.bars)))
    if given.json is not None:
        given.json.write_text(run.as_json(), encoding="utf-8")
    if given.charts is not None:
        draw(run, given.charts)
    if given.page is not None:
        page = given.page.read_text(encoding="utf-8")
        parts = run.parts(given.prefix)
        given.page.write_text(rewritten(page, parts), encoding="utf-8")


def _measured(given: argparse.Namespace) -> Run:
    files = given.files or (_FILES_WHEN_QUICK if given.quick else _FILES)
    repeats = given.repeats or (_REPEATS_WHEN_QUICK if given.quick else _REPEATS)
    if given.corpus is None:
        bodies = made_up_corpus(files)
        kind = "made up"
    else:
        bodies = real_corpus(given.corpus, files)
        kind = "real"
    work = Workload(bodies=bodies, repeats=repeats, is_quick=given.quick)
    about = surroundings() | {
        "files": f"{len(bodies):,}, {kind}",
        "turns": f"the best of {repeats}",
    }
    print("\n".join(f"{what}: {which}" for what, which in about.items()))
    found = []
    for name in given.only or MEASUREMENTS:
        began = perf_counter()
        measured = MEASUREMENTS[name](work)
        found.append(measured)
        for table in measured.tables:
            print("\n" + plain_text(table), flush=True)
        print(f"[{name}: {perf_counter() - began:.0f} s]", file=sys.stderr)
    return Run(
        surroundings=about,
        tables=tuple(table for measured in found for table in measured.tables),
        bars=tuple(bar for measured in found for bar in measured.bars),
    )


def _arguments() -> argparse.ArgumentParser:
    arguments = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = arguments.add_argument
    add("--corpus", type=Path, metavar="DIR", help="a folder of real robots.txt files")
    add("--files", type=int, help=f"how many of them, {_FILES:,} if not said")
    add("--repeats", type=int, help=f"turns of each, {_REPEATS} if not said")
    add("--only", action="append", choices=MEASUREMENTS, help="may be repeated")
    add("--quick", action="store_true", help="a first look, in some seconds")
    add("--json", type=Path, metavar="FILE", help="write all figures to it")
    add("--read", type=Path, metavar="FILE", help="take them from it, measure nothing")
    add("--charts", type=Path, metavar="DIR", help="draw SVG charts into it")
    add("--page", type=Path, metavar="FILE", help="put the tables into this Markdown")
    add("--prefix", default="", help="of the names of the parts of the page")
    return arguments


if __name__ == "__main__":
    main()
