"""What finding the rule costs, by how many rules there are."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.peers import installed_peers
from benchmarks.questions import known_checker
from benchmarks.report import Measured, Table
from benchmarks.timing import least_in_slices, seconds_of_each, slices, take_turns
from benchmarks.workload import AGENT
from robotsgate import RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from benchmarks.peers import Peer
    from benchmarks.workload import Workload
    from robotsgate import RobotsChecker

__all__ = ["measure"]

_CLASSES = (10, 100, 1_000, 20_000)

# A class with few files is asked again, so that its turn is long enough to time.
_LEAST_QUESTIONS = 3_000
_MOST_FILES = 400

_MATCHER = "RobotsTxt.can_fetch"
_CHECKER = "await can_fetch"


class _Class(NamedTuple):
    """Files with about as many rules, and all that is asked about them."""

    title: str
    files: list[int]
    rounds: int


def measure(work: Workload) -> Measured:
    """Ask the files of each class in turns."""
    return asyncio.run(_measured(work))


async def _measured(work: Workload) -> Measured:
    checker = await known_checker(work)
    protego = installed_peers().get("protego")
    rows = []
    for found in _classes(work):
        turns = _turns(work, found, checker, protego)
        best = least_in_slices(await take_turns(turns, repeats=work.repeats))
        count = sum(len(work.paths[file]) for file in found.files) * found.rounds
        each = {name: seconds / count for name, seconds in best.items()}
        theirs = each.get("protego")
        rows.append(
            (
                found.title,
                len(found.files),
                each[_MATCHER] * 1e6,
                each[_CHECKER] * 1e6,
                None if theirs is None else theirs * 1e6,
                None if theirs is None else theirs / each[_MATCHER],
                None if theirs is None else theirs / each[_CHECKER],
            )
        )
    await checker.aclose()
    table = Table(
        name="matching",
        title="A question, by the number of rules in the group that counts",
        columns=(
            "rules",
            "files",
            f"{_MATCHER}, µs",
            f"{_CHECKER}, µs",
            "protego, µs",
            f"protego, × of {_MATCHER}",
            f"protego, × of {_CHECKER}",
        ),
        rows=tuple(rows),
        notes=(
            (
                "Pooled means over the files of a class, which are asked one after the"
                " other."
            ),
            f"{_MATCHER} and protego are given the path, {_CHECKER} the whole URL.",
        ),
    )
    return Measured(tables=(table,))


def _classes(work: Workload) -> list[_Class]:
    classes = []
    above = 0
    for most in _CLASSES:
        files = [
            file for file, rules in enumerate(work.rules) if above < len(rules) <= most
        ][:_MOST_FILES]
        if files:
            asked = sum(len(work.paths[file]) for file in files)
            rounds = -(-_LEAST_QUESTIONS // asked)
            classes.append(_Class(f"{above + 1:,} to {most:,}", files, rounds))
        above = most
    return classes


def _turns(
    work: Workload, found: _Class, checker: RobotsChecker, protego: Peer | None
) -> dict[str, Callable[[], Awaitable[list[float]]]]:
    asked = [(file, path) for file in found.files for path in work.paths[file]]
    asked *= found.rounds
    parsed = {file: RobotsTxt.parse(work.bodies[file]) for file in found.files}

    async def ask_matcher(texts: Sequence[tuple[RobotsTxt, str]]) -> None:
        for robots_txt, path in texts:
            robots_txt.can_fetch(AGENT, path)

    async def ask_checker(urls: Sequence[str]) -> None:
        for url in urls:
            await checker.can_fetch(AGENT, url)

    async def turn(
        ask: Callable[[Any], Awaitable[None]], asked: Sequence[object]
    ) -> list[float]:
        return await seconds_of_each(map(ask, slices(asked)))

    turns: dict[str, Callable[[], Awaitable[list[float]]]] = {
        _MATCHER: partial(
            turn, ask_matcher, [(parsed[file], path) for file, path in asked]
        ),
        _CHECKER: partial(
            turn, ask_checker, [work.origins[file] + path for file, path in asked]
        ),
    }
    if protego is not None:
        kept = {file: protego.prepared(work.bodies[file]) for file in found.files}
        theirs = [(kept[file], path) for file, path in asked]
        turns["protego"] = partial(turn, protego.ask, theirs)
    return turns
