"""Compares the speed of a `RobotsArchive` with a dictionary of protego's parsers.

    pip install -e . --group bench
    python -m benchmarks.archive --page docs/explanation/numbers.md

Both start with nothing parsed, in the same process. An extra rule makes each file
unique, and every answer is checked against `RobotsTxt`.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import pickle
import tracemalloc
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from protego import Protego

from benchmarks.corpus import SEED, robots_files
from benchmarks.page import Bar, Table, about, publish
from benchmarks.timing import best_of_turns, seconds_of_each, slices
from benchmarks.workload import AGENT, Workload
from robotsgate import RobotsArchive, RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_URLS_PER_ORIGIN, _ORIGINS, _FILES, _REPEATS = 100, 10_000, 2_000, 3
_OURS, _THEIRS = "RobotsArchive.can_fetch_many", "a dictionary of protego's parsers"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.archive")
    add = parser.add_argument
    add("--corpus", type=Path, metavar="DIR", help="a folder of real robots.txt files")
    add("--origins", type=int, default=_ORIGINS)
    add("--repeats", type=int, default=_REPEATS)
    add("--page", type=Path, metavar="FILE", help="write tables here")
    options = parser.parse_args(arguments)
    corpus, kind = robots_files(min(_FILES, options.origins), options.corpus)
    bodies, grouped = _workload(corpus, options.origins)
    shuffled = Random(SEED).sample(grouped, len(grouped))
    _check_answers(bodies, shuffled)
    makers = {_OURS: partial(_archive, bodies), _THEIRS: partial(_parsers, bodies)}
    turns = {
        name: partial(_turn, make, [grouped, shuffled]) for name, make in makers.items()
    }
    seconds = asyncio.run(best_of_turns(turns, repeats=options.repeats))
    half = len(slices(grouped))
    rates = {
        name: [len(grouped) / sum(part) for part in (each[:half], each[half:])]
        for name, each in seconds.items()
    }
    memory = {name: _memory_per_origin(make, bodies) for name, make in makers.items()}
    run = about("robotsgate", "protego")
    run |= {"files": kind, "turns": f"the best of {options.repeats}"}
    table = Table(
        name="archive",
        columns=(
            *("by", "URLs a second, grouped by origin", "shuffled"),
            "memory per origin, bytes",
        ),
        rows=[(name, *rates[name], memory[name]) for name in makers],
        notes=(
            f"{len(grouped):,} URLs of {options.origins:,} origins, one core.",
            f"Pickled, the archive without its bodies has {_pickled()} bytes.",
            f"{run['date']}, {run['Python']}; {run['packages']}; files: {kind}.",
        ),
    )
    bars = [
        Bar(
            what=f"URLs a second, faster than protego ({order})",
            value=ours / theirs,
            bar=2.5,
            is_ceiling=False,
        )
        for order, ours, theirs in zip(
            ("grouped", "shuffled"), rates[_OURS], rates[_THEIRS], strict=True
        )
    ]
    bars.append(
        Bar(
            what="URLs a second on a core, thousands (the slower order)",
            value=min(rates[_OURS]) / 1_000,
            bar=150,
            unit="",
            is_ceiling=False,
        )
    )
    publish([table, *bars], run, page=options.page, prefix="archive ")


def _workload(
    corpus: Sequence[bytes], origins: int
) -> tuple[dict[str, bytes], list[str]]:
    """A unique body for each origin, and URLs grouped by origin."""
    paths = Workload(bodies=corpus).paths
    bodies, urls = {}, []
    for number in range(origins):
        origin = f"https://www.site{number}.example"
        index = number % len(corpus)
        rule = f"\nUser-agent: OnlyBot{number}\nDisallow: /only-{number}\n"
        bodies[origin] = corpus[index] + rule.encode()
        for turn in range(_URLS_PER_ORIGIN // len(paths[index])):
            urls += [f"{origin}{path}{turn or ''}" for path in paths[index]]
    return bodies, urls


def _check_answers(bodies: dict[str, bytes], urls: Sequence[str]) -> None:
    files = {origin: RobotsTxt.parse(body) for origin, body in bodies.items()}
    expected = [files[url[: url.index("/", 8)]].can_fetch(AGENT, url) for url in urls]
    if _archive(bodies)(urls) != expected:
        raise RuntimeError("expected the answers of RobotsTxt")


def _archive(
    bodies: dict[str, bytes],
) -> Callable[[Sequence[str]], Sequence[bool | None]]:
    return partial(RobotsArchive(bodies.get).can_fetch_many, AGENT)


def _parsers(
    bodies: dict[str, bytes],
) -> Callable[[Sequence[str]], Sequence[bool | None]]:
    parsers: dict[str, Protego] = {}

    def lookup(urls: Sequence[str]) -> list[bool]:
        answers = []
        for url in urls:
            origin = url[: url.index("/", 8)]
            parser = parsers.get(origin)
            if parser is None:
                text = bodies[origin].decode("utf-8-sig", "replace")
                parser = parsers[origin] = Protego.parse(text)
            answers.append(parser.can_fetch(url, AGENT))
        return answers

    return lookup


async def _turn(
    make: Callable[[], Callable[[Sequence[str]], object]],
    orders: Sequence[Sequence[str]],
) -> list[float]:
    """The seconds for each slice; each order starts with nothing parsed."""

    async def answer(
        lookup: Callable[[Sequence[str]], object], urls: Sequence[str]
    ) -> None:
        lookup(urls)

    seconds = []
    for urls in orders:
        lookup = make()
        seconds += await seconds_of_each(answer(lookup, part) for part in slices(urls))
    return seconds


def _memory_per_origin(
    make: Callable[[], Callable[[Sequence[str]], object]], bodies: dict[str, bytes]
) -> float:
    """The bytes still allocated per origin after one lookup each."""
    urls = [f"{origin}/a" for origin in bodies]
    gc.collect()
    tracemalloc.start()
    lookup = make()
    lookup(urls)
    gc.collect()
    memory, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return memory / len(bodies)


def _pickled() -> int:
    return len(pickle.dumps(RobotsArchive(_nothing)))


def _nothing(origin: str) -> None:
    del origin


if __name__ == "__main__":
    main()
