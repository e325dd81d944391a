"""A soak test: many lookups for many origins, a fifth of them faulty at any time.

    python -m tests.soak --loop asyncio --page docs/contributing/soak.md
    python -m tests.soak --loop trio --page docs/contributing/soak.md

Fails with exit status 1 if an answer is wrong, if memory grows after the warm-up, or if
file descriptors, tasks or threads are left over. The servers run in a separate process,
so that the figures are the checker's alone. Needs Linux, for its loopback network
127.0.0.0/8 and for /proc.
"""

from __future__ import annotations

import argparse
import logging
import sys
import threading
import time
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import anyio

from benchmarks.page import Bar, Table, about, publish
from tests.soak.judge import ROUND_DAYS
from tests.soak.servers import KINDS, SOUND, Script, running_servers
from tests.soak.soak import Soak, SoakRun

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.page import Cell

_WARM_UP_ROUNDS = 3
_MAX_GROWTH_MIB = 8

# Trio ends a worker thread after it has been idle for ten seconds.
_THREAD_SETTLING_SECONDS = 15.0
_POLL_SECONDS = 0.02


def run_soak(soak: Soak) -> list[Table | Bar]:
    """Run `soak` and return its figures."""
    with running_servers(Script(soak.seed, soak.origins, soak.faults)) as servers:
        threads = threading.active_count()
        soak_run = SoakRun(soak, servers)
        anyio.run(soak_run.run, backend=soak.loop)
        until = perf_counter() + _THREAD_SETTLING_SECONDS
        while threading.active_count() > threads and perf_counter() < until:
            time.sleep(_POLL_SECONDS)
        more_threads = threading.active_count() - threads
    return [*_tables(soak, soak_run), *_bars(soak_run, more_threads)]


def _bars(soak_run: SoakRun, more_threads: int) -> list[Bar]:
    start, end, counts = soak_run.start, soak_run.end, soak_run.counts
    warm, last = soak_run.rounds[:_WARM_UP_ROUNDS][-1], soak_run.rounds[-1]
    growth = (last.resources.resident - warm.resources.resident) / 2**20
    name = "growth of memory after the warm-up"
    values = {
        "wrong answers": counts["wrong"],
        "fetches with an unexpected result": counts["odd fetches"],
        "connections that the address guard should have refused": counts["breaches"],
        "additional file descriptors at the end": end.descriptors - start.descriptors,
        "additional tasks at the end": end.tasks - start.tasks,
        "additional threads at the end": more_threads,
    }
    return [
        *(
            Bar(what=what, value=value, bar=0, unit="")
            for what, value in values.items()
        ),
        Bar(what=name, value=growth, bar=_MAX_GROWTH_MIB, unit="MiB"),
    ]


def _tables(soak: Soak, soak_run: SoakRun) -> list[Table]:
    counts = soak_run.counts
    seconds = sum(each.seconds for each in soak_run.rounds)
    totals: dict[str, Cell] = {
        "origins": soak.origins,
        "lookups": counts["lookups"],
        "concurrent lookups": soak.concurrency,
        "seconds": seconds,
        "lookups per second": counts["lookups"] / seconds,
        "days that passed on the checker's clock": (soak.rounds - 1) * ROUND_DAYS,
        "cancelled lookups": counts["cancelled"],
        "repeated lookups, because all others were cancelled": counts["repeated"],
        "lookups that joined another's fetch": counts["joined"],
        "fetches": counts["fetches"],
        "fetches that returned a file": counts["successful"],
        "fetches that found no file": counts["unavailable"],
        "fetches that failed": counts["unreachable"],
        "store operations that failed": counts["store_failures"],
        "listener calls that raised": counts["event_failures"],
    }
    rounds = [
        (
            str(number),
            *(each.lookups, each.lookups / each.seconds, each.fetches, each.joined),
            *(each.resources.resident / 2**20, *each.resources[1:]),
        )
        for number, each in enumerate(soak_run.rounds, 1)
    ]
    return [
        Table(name="totals", columns=("what", "count"), rows=[*totals.items()]),
        Table(
            name="rounds",
            columns=(
                *("round", "lookups", "per second", "fetches", "joined"),
                *("MiB", "descriptors", "tasks", "threads"),
            ),
            rows=rounds,
        ),
        Table(
            name="kinds",
            columns=("the origin", "is", "fetches", "result of each"),
            rows=[
                (
                    name,
                    "sound" if name in SOUND else "faulty",
                    soak_run.attempts[name],
                    kind.outcome.value,
                )
                for name, kind in KINDS.items()
            ],
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Returns:
        The exit status: 1 if a requirement was missed.
    """
    parser = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add(
        "--page",
        type=Path,
        metavar="FILE",
        help="write the tables to this Markdown page",
    )
    for name, default in Soak()._asdict().items():
        add(
            f"--{name}", type=type(default), default=default, help=f"default: {default}"
        )
    options = vars(parser.parse_args(arguments))
    page = options.pop("page")
    soak = Soak(**options)
    logging.getLogger("robotsgate").addHandler(logging.NullHandler())
    figures = run_soak(soak)
    run = about("robotsgate", "httpx", "h11", "anyio", "trio")
    run |= {"event loop": soak.loop, "seed": str(soak.seed)}
    run["faulty"] = f"{soak.faults:.0%} of the origins in each round"
    publish(figures, run, page=page, prefix=f"{soak.loop} ")
    return int(any(isinstance(each, Bar) and each.is_missed for each in figures))


if __name__ == "__main__":
    sys.exit(main())
