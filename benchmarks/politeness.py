"""Compares the cost of a turn with other ways to limit requests, all in one run.

    pip install -e '.[bench]'
    python -m benchmarks.politeness

Nothing waits: the delay is 0, and there is only one task. The contenders take turns,
and each figure is the best of a contender's turns.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import tracemalloc
from contextlib import suppress
from time import perf_counter
from types import coroutine
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import aiolimiter
import anyio

from benchmarks.page import Bar, Table, about, publish
from benchmarks.timing import best_of_turns, without_collector
from robotsgate import (
    LocalLedger,
    Pace,
    PolitenessGate,
    RobotsChecker,
    TurnEnd,
    TurnNotInTimeError,
)
from robotsgate.testing import FakeSite

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Sequence

_AGENT = "ExampleBot"
_HOSTS = 200
_JOINS = 100
_TURN, _SEMAPHORE, _LIMITER = "gate.turn", "anyio.Semaphore", "aiolimiter"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.politeness", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--urls", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=100_000)
    parser.add_argument("--waiters", type=int, default=16_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args(arguments)
    figures = asyncio.run(_figures(options.urls, options.repeats))
    figures.append(asyncio.run(_join_crowd(options.waiters, options.repeats)))
    figures.append(asyncio.run(_memory(options.hosts)))
    publish(figures, about("robotsgate", "anyio", "aiolimiter"), page=None)


async def _figures(count: int, repeats: int) -> list[Table | Bar]:
    rng = random.Random(7)
    urls = [f"https://h{number % _HOSTS}.example/{number}" for number in range(count)]
    rng.shuffle(urls)
    async with (
        RobotsChecker(client=FakeSite(), user_agent=_AGENT) as checker,
        PolitenessGate(checker, _AGENT, default_delay=0.0) as gate,
    ):
        await checker.can_fetch_many(_AGENT, urls)
        contenders = {
            _TURN: _by_turn(gate),
            _SEMAPHORE: _by_host(lambda: anyio.Semaphore(1)),
            _LIMITER: _by_host(lambda: aiolimiter.AsyncLimiter(1e9, 1)),
        }

        def turn_of(
            ask: Callable[[Sequence[str]], Awaitable[None]],
        ) -> Callable[[], Awaitable[Sequence[float]]]:
            async def turn() -> Sequence[float]:
                with without_collector():
                    began = perf_counter()
                    await ask(urls)
                    return [perf_counter() - began]

            return turn

        best = await best_of_turns(
            {name: turn_of(ask) for name, ask in contenders.items()}, repeats=repeats
        )
        suspensions = {
            name: await _suspensions(ask(urls[:100])) / 100
            for name, ask in contenders.items()
        }
    micros = {name: seconds[0] / count * 1e6 for name, seconds in best.items()}
    ours = micros[_TURN]
    rows = [
        (name, micros[name], ours / micros[name], suspensions[name]) for name in micros
    ]
    columns = ("contender", "µs a turn", "gate.turn takes, ×", "suspensions a turn")
    return [
        Table(name="politeness", columns=columns, rows=rows),
        Bar(what="a turn, × of a semaphore", value=ours / micros[_SEMAPHORE], bar=2),
        Bar(what="a turn, × of aiolimiter", value=ours / micros[_LIMITER], bar=6),
        Bar(what="suspensions a turn", value=suspensions[_TURN], bar=3, unit=""),
    ]


def _by_turn(gate: PolitenessGate) -> Callable[[Sequence[str]], Awaitable[None]]:
    async def ask(urls: Sequence[str]) -> None:
        for url in urls:
            async with gate.turn(url) as turn:
                turn.report(status=200)

    return ask


def _by_host(
    limit: Callable[[], Any],
) -> Callable[[Sequence[str]], Awaitable[None]]:
    limits: dict[str | None, Any] = {}

    async def ask(urls: Sequence[str]) -> None:
        for url in urls:
            host = urlsplit(url).hostname
            if host not in limits:
                limits[host] = limit()
            async with limits[host]:
                pass

    return ask


@coroutine
def _suspensions(work: Awaitable[None]) -> Generator[Any, Any, int]:
    """How often `work` suspends."""
    steps = work.__await__()
    count, answer = 0, None
    while True:
        try:
            request = steps.send(answer)
        except StopIteration:
            return count
        count += 1
        answer = yield request


async def _join_crowd(count: int, repeats: int) -> Bar:
    """The time to join the many callers that wait for a host, and to leave again."""
    callers = {"https://few.example/": count // 16, "https://many.example/": count}
    async with (
        RobotsChecker(client=FakeSite(), user_agent=_AGENT) as checker,
        PolitenessGate(checker, _AGENT, max_delay=1e9, default_delay=1e9) as gate,
        anyio.create_task_group() as tasks,
    ):
        await checker.can_fetch_many(_AGENT, callers)

        async def wait_in(url: str) -> None:
            async with gate.turn(url):
                pass

        def turn_at(url: str) -> Callable[[], Awaitable[Sequence[float]]]:
            async def turn() -> Sequence[float]:
                with without_collector():
                    began = perf_counter()
                    for _ in range(_JOINS):
                        with suppress(TurnNotInTimeError):
                            await gate.turn(url, patience=0.0).__aenter__()
                    return [perf_counter() - began]

            return turn

        for url, number in callers.items():
            await wait_in(url)
            for _ in range(number):
                tasks.start_soon(wait_in, url)
        await anyio.wait_all_tasks_blocked()
        few, many = (
            await best_of_turns({url: turn_at(url) for url in callers}, repeats=repeats)
        ).values()
        tasks.cancel_scope.cancel()
    return Bar(
        what=f"to join {count:,} callers, × of a sixteenth",
        value=many[0] / few[0],
        bar=2,
    )


async def _memory(count: int) -> Bar:
    """The memory that the ledger uses for idle hosts, including their names.

    The gate itself only remembers hosts with a crawl-delay.
    """
    pace = Pace(delay=1.0, max_at_once=1, max_delay=3_600.0, max_turn_seconds=300.0)
    tracemalloc.start()
    ledger = LocalLedger(max_hosts=count)
    for number in range(count):
        grant: Any = await ledger.start(f"h{number}.example", pace)
        await ledger.end(grant, TurnEnd.GOOD)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return Bar(what="bytes of an idle host", value=size / count, bar=300, unit="B")


if __name__ == "__main__":
    main()
