"""What a question about a known origin costs.

Asked in two ways: all URLs of all sites in no order, as a crawler does, and site by
site. A checker that is asked here has fetched all files before.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.peers import HandWrittenCache, installed_peers
from benchmarks.report import Bar, Measured, Table
from benchmarks.timing import (
    least_in_slices,
    least_of_each,
    median_ratio,
    seconds_of_each,
    slices,
    take_turns,
)
from benchmarks.workload import AGENT, Question, Workload
from robotsgate import RobotsChecker
from robotsgate.testing import FakeSite

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from benchmarks.peers import Kept

__all__ = ["known_checker", "measure"]

_OURS = "await can_fetch"
_STACK = "hand-written cache of protego"
_NOTHING = "an empty coroutine"

# The file-by-file statistic needs fewer files than the pooled one.
_FILES_ONE_BY_ONE = 500
_ROUNDS_PER_FILE = 3


@dataclass(frozen=True, slots=True)
class _Contender:
    """Someone who answers.

    Attributes:
        prepare: turns questions into what `ask` takes; not timed.
        ask: asks all of it, in a loop as a user would write it.
        is_dear: whether it has fewer turns, because it reads a file each time.
    """

    prepare: Callable[[Sequence[Question]], Any]
    ask: Callable[[Any], Awaitable[None]]
    is_dear: bool = False


def measure(work: Workload) -> Measured:
    """Ask all contenders all questions."""
    return asyncio.run(_measured(work))


async def known_checker(work: Workload) -> RobotsChecker:
    """A checker that knows all origins and has answered all questions once."""
    site = FakeSite()
    for origin, body in zip(work.origins, work.bodies, strict=True):
        site.serve(origin, body)
    # Twice the room: none of the origins may go while it is asked.
    checker = RobotsChecker(client=site, max_origins=2 * len(work.bodies))
    for _, url in work.questions:
        await checker.can_fetch(AGENT, url)
    return checker


async def _measured(work: Workload) -> Measured:
    checker = await known_checker(work)
    contenders = _contenders(work, checker)
    pooled = await _pooled(work, contenders)
    by_file = await _by_file(work, contenders)
    median_file = await _of_median_file(work, contenders)
    if checker.stats.fetches != len(work.bodies):
        raise RuntimeError("an origin was fetched again, so it was not known")
    await checker.aclose()

    ours = by_file[_OURS]
    table = Table(
        name="questions",
        title="A question about a known origin",
        columns=(
            "contender",
            "shuffled, pooled mean, µs",
            "× of can_fetch",
            "site by site, median of ratios, ×",
            "median file, µs",
            "× of can_fetch, median file",
        ),
        rows=tuple(
            (
                name,
                pooled[name] * 1e6,
                pooled[name] / pooled[_OURS],
                median_ratio(by_file[name], ours),
                median_file[name] * 1e6,
                median_file[name] / median_file[_OURS],
            )
            for name in contenders
        ),
        notes=_notes(work, checked=len(ours)),
    )
    return Measured(tables=(table,), bars=_bars(pooled, median_file))


def _contenders(work: Workload, checker: RobotsChecker) -> dict[str, _Contender]:
    contenders = _own_contenders(checker)
    kept: dict[str, list[Kept]] = {}
    for peer in installed_peers().values():
        files = kept[peer.key] = [peer.prepared(body) for body in work.bodies]
        contenders[peer.name] = _Contender(
            prepare=partial(_with_files, files),
            ask=peer.ask,
            is_dear=not peer.keeps_rules,
        )
        if peer.key == "protego":
            contenders[_STACK] = _stack_contender(work, files)
    return contenders


def _own_contenders(checker: RobotsChecker) -> dict[str, _Contender]:
    async def ask_can_fetch(urls: list[str]) -> None:
        for url in urls:
            await checker.can_fetch(AGENT, url)

    async def ask_peek(urls: list[str]) -> None:
        for url in urls:
            checker.peek(AGENT, url)

    async def ask_many(urls: list[str]) -> None:
        await checker.can_fetch_many(AGENT, urls)

    async def nothing() -> bool:
        return True

    async def ask_nothing(urls: list[str]) -> None:
        for _ in urls:
            await nothing()

    return {
        _OURS: _Contender(_urls, ask_can_fetch),
        "peek": _Contender(_urls, ask_peek),
        "can_fetch_many": _Contender(_urls, ask_many),
        _NOTHING: _Contender(_urls, ask_nothing),
    }


def _stack_contender(work: Workload, files: list[Kept]) -> _Contender:
    by_key = {
        tuple(origin.split("://")): file
        for origin, file in zip(work.origins, files, strict=True)
    }

    async def fetch(key: tuple[str, str]) -> Kept:
        return by_key[key]

    cache = HandWrittenCache(fetch, max_origins=len(files))

    async def ask(urls: list[str]) -> None:
        for url in urls:
            await cache.can_fetch(AGENT, url)

    return _Contender(_urls, ask)


def _urls(questions: Sequence[Question]) -> list[str]:
    return [question.url for question in questions]


def _with_files(files: list[Kept], questions: Sequence[Question]) -> list[Kept]:
    return [(files[question.file], question.url) for question in questions]


async def _pooled(
    work: Workload, contenders: Mapping[str, _Contender]
) -> dict[str, float]:
    """Seconds for a question, all of them shuffled."""
    return await _mean(work.shuffled, contenders, repeats=work.repeats)


async def _mean(
    questions: Sequence[Question],
    contenders: Mapping[str, _Contender],
    *,
    repeats: int,
) -> dict[str, float]:
    """Seconds for a question, slice by slice, the best of each."""
    turns = {
        name: partial(_turn, contender, list(map(contender.prepare, slices(questions))))
        for name, contender in contenders.items()
    }
    samples = await take_turns(turns, repeats=repeats, dear=_dear(contenders))
    best = least_in_slices(samples)
    return {name: seconds / len(questions) for name, seconds in best.items()}


async def _turn(contender: _Contender, prepared: list[Any]) -> list[float]:
    return await seconds_of_each(contender.ask(asked) for asked in prepared)


async def _by_file(
    work: Workload, contenders: Mapping[str, _Contender]
) -> dict[str, list[float]]:
    """Seconds for the questions about each file, some rounds in a row."""
    files = range(0, len(work.bodies), -(-len(work.bodies) // _FILES_ONE_BY_ONE))
    rounds = _ROUNDS_PER_FILE

    turns = {
        name: partial(
            _turn,
            contender,
            [contender.prepare(work.questions_about(file) * rounds) for file in files],
        )
        for name, contender in contenders.items()
    }
    samples = await take_turns(turns, repeats=work.repeats, dear=_dear(contenders))
    return least_of_each(samples)


def _dear(contenders: Mapping[str, _Contender]) -> set[str]:
    return {name for name, contender in contenders.items() if contender.is_dear}


async def _of_median_file(
    work: Workload, contenders: Mapping[str, _Contender]
) -> dict[str, float]:
    """Seconds for a question about the median file."""
    return await _mean(
        work.questions_about_median_file, contenders, repeats=2 * work.repeats
    )


def _bars(
    pooled: Mapping[str, float],
    median_file: Mapping[str, float],
) -> tuple[Bar, ...]:
    protego = next((name for name in pooled if name.startswith("protego")), "")

    def times(name: str) -> float | None:
        return pooled[name] / pooled[_OURS] if name in pooled else None

    return (
        Bar(
            what="can_fetch, known origins shuffled, faster than protego on already"
            " parsed files (pooled mean)",
            value=times(protego),
            bar=4,
            stretch=5,
        ),
        Bar(
            what="can_fetch, known origins shuffled, faster than TLRUCache + urlsplit"
            " + protego (pooled mean)",
            value=times(_STACK),
            bar=8,
            stretch=10,
        ),
        Bar(
            what="can_fetch, median file, slower than an empty coroutine (mean)",
            value=median_file[_OURS] / median_file[_NOTHING],
            bar=12,
            stretch=7,
            is_ceiling=True,
        ),
    )


def _notes(work: Workload, *, checked: int) -> tuple[str, ...]:
    file = work.median_file
    return (
        (
            f"{len(work.bodies):,} origins, {len(work.shuffled):,} questions;"
            f" site by site: {checked} of the origins,"
            f" {_ROUNDS_PER_FILE} rounds of the ten URLs of each."
        ),
        (
            f"The median file has {len(work.rules[file])} literal rules in"
            f" {len(work.bodies[file]):,} bytes and is asked for"
            f" {len(work.questions_about_median_file):,} URLs of the same mix."
        ),
        "can_fetch_many takes all the URLs in one call; its figure is for one URL.",
    )
