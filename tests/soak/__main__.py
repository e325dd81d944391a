"""A soak: many questions about many origins, of which a fifth is never well.

    python -m tests.soak --loop asyncio --page docs/contributing/soak.md
    python -m tests.soak --loop trio --page docs/contributing/soak.md

Promises that no answer is wrong, that memory is flat after the warm-up, and that
file descriptors, tasks and threads are back at the start; exits with 1 if not. The
servers have a process of their own, so that what is measured is the checker's.
Linux only, which has all of 127.0.0.0/8 and tells what a process holds.
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
from tests.soak.soak import Soak, Soaking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.page import Cell

_WARM_UP_ROUNDS = 3
_MOST_GROWTH_MIB = 8

# The threads of trio end when they had nothing to do for ten seconds.
_SETTLING_SECONDS_OF_THREADS = 15.0
_POLL_SECONDS = 0.02


def soaked(soak: Soak) -> list[Table | Bar]:
    """What `soak` comes to."""
    with running_servers(Script(soak.seed, soak.origins, soak.faults)) as servers:
        threads = threading.active_count()
        soaking = Soaking(soak, servers)
        anyio.run(soaking.run, backend=soak.loop)
        until = perf_counter() + _SETTLING_SECONDS_OF_THREADS
        while threading.active_count() > threads and perf_counter() < until:
            time.sleep(_POLL_SECONDS)
        more_threads = threading.active_count() - threads
    return [*_tables(soak, soaking), *_bars(soaking, more_threads)]


def _bars(soaking: Soaking, more_threads: int) -> list[Bar]:
    start, end, counts = soaking.start, soaking.end, soaking.counts
    warm, last = soaking.rounds[:_WARM_UP_ROUNDS][-1], soaking.rounds[-1]
    growth = (last.held.resident - warm.held.resident) / 2**20
    most = "growth of memory after the warm-up"
    values = {
        "wrong answers": counts["wrong"],
        "fetches with an unexpected result": counts["odd fetches"],
        "connections that the address guard should have refused": counts["knocks"],
        "additional file descriptors at the end": end.descriptors - start.descriptors,
        "additional tasks at the end": end.tasks - start.tasks,
        "additional threads at the end": more_threads,
    }
    return [
        *(
            Bar(what=what, value=value, bar=0, unit="")
            for what, value in values.items()
        ),
        Bar(what=most, value=growth, bar=_MOST_GROWTH_MIB, unit="MiB"),
    ]


def _tables(soak: Soak, soaking: Soaking) -> list[Table]:
    counts = soaking.counts
    seconds = sum(each.seconds for each in soaking.rounds)
    totals: dict[str, Cell] = {
        "origins": soak.origins,
        "questions": counts["asked"],
        "at once": soak.concurrency,
        "seconds": seconds,
        "questions per second": counts["asked"] / seconds,
        "days that went by on the checker's clock": (soak.rounds - 1) * ROUND_DAYS,
        "questions given up": counts["given up"],
        "questions asked again, because all others were given up": counts[
            "asked again"
        ],
        "questions that joined the fetch of another": counts["joined"],
        "fetches": counts["fetches"],
        "fetches that brought a file": counts["successful"],
        "fetches that found that there is none": counts["unavailable"],
        "fetches that failed": counts["unreachable"],
        "operations that the store did not do": counts["store_failures"],
        "calls of the listener that raised": counts["event_failures"],
    }
    rounds = [
        (
            str(number),
            *(each.asked, each.asked / each.seconds, each.fetches, each.joined),
            *(each.held.resident / 2**20, *each.held[1:]),
        )
        for number, each in enumerate(soaking.rounds, 1)
    ]
    return [
        Table(name="totals", columns=("what", "count"), rows=[*totals.items()]),
        Table(
            name="rounds",
            columns=(
                *("round", "questions", "per second", "fetches", "joined"),
                *("MiB", "descriptors", "tasks", "threads"),
            ),
            rows=rounds,
        ),
        Table(
            name="kinds",
            columns=("the origin", "is", "fetches", "each comes to"),
            rows=[
                (
                    name,
                    "well" if name in SOUND else "faulty",
                    soaking.attempts[name],
                    kind.comes.value,
                )
                for name, kind in KINDS.items()
            ],
        ),
    ]


def main(words: Sequence[str] | None = None) -> int:
    """Do as the command line says.

    Returns:
        The exit status: 1 if a promise was broken.
    """
    arguments = argparse.ArgumentParser(
        prog="python -m tests.soak",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = arguments.add_argument
    add("--page", type=Path, metavar="FILE", help="put the tables into this Markdown")
    for name, usual in Soak()._asdict().items():
        add(f"--{name}", type=type(usual), default=usual, help=f"{usual} if not said")
    given = vars(arguments.parse_args(words))
    page = given.pop("page")
    soak = Soak(**given)
    logging.getLogger("robotsgate").addHandler(logging.NullHandler())
    figures = soaked(soak)
    run = about("robotsgate", "httpx", "h11", "anyio", "trio")
    run |= {"event loop": soak.loop, "seed": str(soak.seed)}
    run["faulty"] = f"{soak.faults:.0%} of the origins in each round"
    publish(figures, run, page=page, prefix=f"{soak.loop} ")
    return int(any(isinstance(each, Bar) and each.is_missed for each in figures))


if __name__ == "__main__":
    sys.exit(main())
