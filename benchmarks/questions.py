"""Measures lookups for live origins.

Measures all URLs in random order, as in a crawl, and site by site. The checker has
fetched all files before.
"""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.page import Bar, Table
from benchmarks.peers import installed_peers
from benchmarks.timing import best_of_turns, median_ratio, seconds_of_each, slices
from benchmarks.workload import AGENT, URLS_PER_FILE, Question, Workload
from robotsgate import RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from benchmarks.peers import Kept
    from robotsgate import RobotsChecker

_OURS = "await can_fetch"

_MATCHER = "RobotsTxt.can_fetch"

_ROUNDS_PER_FILE = 3

# Upper bounds of the classes of files, by number of rules.
_CLASSES = (10, 100, 1_000, 20_000)


class _Contender(NamedTuple):
    """Something that answers lookups.

    Attributes:
        ask: looks up everything in a loop, as a user would write it.
        prepare: turns questions into the argument of `ask`; not timed.
        is_slow: whether it gets fewer turns, because it reads a file each time.
    """

    ask: Callable[[Any], Awaitable[None]]
    prepare: Callable[[Sequence[Question]], Any] = lambda questions: [
        url for _, url in questions
    ]
    is_slow: bool = False


def measure(work: Workload) -> list[Table | Bar]:
    """Time all contenders on all questions."""
    return asyncio.run(_figures(work))


async def _figures(work: Workload) -> list[Table | Bar]:
    checker = await work.warm_checker()
    contenders = _own_contenders(checker, work) | _peer_contenders(work)
    by_slice = await _seconds(contenders, slices(work.shuffled), work.repeats)
    pooled = {
        name: sum(seconds) / len(work.shuffled) for name, seconds in by_slice.items()
    }
    files = [
        work.questions[first : first + URLS_PER_FILE] * _ROUNDS_PER_FILE
        for first in range(0, len(work.questions), URLS_PER_FILE)
    ]
    by_file = await _seconds(contenders, files, work.repeats)
    if checker.stats.fetches != len(work.bodies):
        raise RuntimeError("an origin was fetched again, so it was not live")
    await checker.aclose()
    table = Table(
        name="questions",
        columns=(
            "contender",
            "shuffled, pooled mean, µs",
            "× of can_fetch",
            "site by site, median of ratios, ×",
        ),
        rows=[
            (
                name,
                pooled[name] * 1e6,
                pooled[name] / pooled[_OURS],
                median_ratio(by_file[name], by_file[_OURS]),
            )
            for name in contenders
        ],
        notes=(
            (
                f"{len(work.bodies):,} origins, {len(work.shuffled):,} lookups; site"
                f" by site: {_ROUNDS_PER_FILE} rounds of the ten URLs of each."
            ),
            "can_fetch_many takes all the URLs in one call; its figure is for one URL.",
            f"{_MATCHER} is given the path, all others the whole URL.",
        ),
    )
    return [table, _by_number_of_rules(work, by_file), _bar(pooled)]


def _by_number_of_rules(work: Workload, by_file: dict[str, list[float]]) -> Table:
    names = [name for name in by_file if name in (_MATCHER, _OURS)]
    names += [name for name in by_file if name.startswith("protego")]
    rows = []
    for least, most in pairwise((0, *_CLASSES)):
        files = [
            file for file, rules in enumerate(work.rules) if least < len(rules) <= most
        ]
        lookups = len(files) * URLS_PER_FILE * _ROUNDS_PER_FILE
        if files:
            means = [
                sum(by_file[name][file] for file in files) / lookups for name in names
            ]
            rows.append(
                (
                    f"{least + 1:,} to {most:,}",
                    len(files),
                    *(mean * 1e6 for mean in means),
                )
            )
    return Table(
        name="matching",
        columns=("rules", "files", *(f"{name}, µs" for name in names)),
        rows=rows,
    )


def _bar(pooled: dict[str, float]) -> Bar:
    protego = next((name for name in pooled if name.startswith("protego")), None)
    return Bar(
        what="can_fetch, known origins shuffled, faster than protego on already parsed"
        " files (pooled mean)",
        value=None if protego is None else pooled[protego] / pooled[_OURS],
        bar=3.5,
        is_ceiling=False,
    )


def _own_contenders(checker: RobotsChecker, work: Workload) -> dict[str, _Contender]:
    async def ask_can_fetch(urls: list[str]) -> None:
        for url in urls:
            await checker.can_fetch(AGENT, url)

    async def ask_peek(urls: list[str]) -> None:
        for url in urls:
            checker.peek(AGENT, url)

    async def ask_many(urls: list[str]) -> None:
        await checker.can_fetch_many(AGENT, urls)

    return {
        _OURS: _Contender(ask_can_fetch),
        "peek": _Contender(ask_peek),
        "can_fetch_many": _Contender(ask_many),
        _MATCHER: _matcher(work),
    }


def _matcher(work: Workload) -> _Contender:
    parsed = [RobotsTxt.parse(body) for body in work.bodies]

    def with_parsed(questions: Sequence[Question]) -> list[tuple[RobotsTxt, str]]:
        return [
            (parsed[file], url.removeprefix(work.origins[file]))
            for file, url in questions
        ]

    async def ask(lookups: list[tuple[RobotsTxt, str]]) -> None:
        for robots_txt, path in lookups:
            robots_txt.can_fetch(AGENT, path)

    return _Contender(ask, with_parsed)


def _peer_contenders(work: Workload) -> dict[str, _Contender]:
    contenders = {}
    for peer in installed_peers().values():
        files = [peer.read(body) for body in work.bodies]
        prepare = partial(_with_files, files)
        contenders[peer.name] = _Contender(peer.ask, prepare, not peer.keeps_rules)
    return contenders


def _with_files(files: list[Kept], questions: Sequence[Question]) -> list[Kept]:
    return [(files[question.file], question.url) for question in questions]


async def _seconds(
    contenders: dict[str, _Contender],
    parts: Sequence[Sequence[Question]],
    repeats: int,
) -> dict[str, list[float]]:
    """The seconds of each part, by contender."""

    async def turn(contender: _Contender, prepared: list[Any]) -> list[float]:
        return await seconds_of_each(map(contender.ask, prepared))

    turns = {
        name: partial(turn, contender, list(map(contender.prepare, parts)))
        for name, contender in contenders.items()
    }
    slow = {name for name, contender in contenders.items() if contender.is_slow}
    return await best_of_turns(turns, repeats=repeats, slow=slow)
