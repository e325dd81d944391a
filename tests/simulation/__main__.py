"""Simulates as many seeds as you like.

    python -m tests.simulation --seeds 10000 --start 500
    python -m tests.simulation --replay 1234

A seed that fails is printed: what is wrong, the steps that led to it, as few as
fail as well, and the command that runs it again.
"""

from __future__ import annotations

import argparse
import logging
import sys

from .loops import run_on
from .replay import replay_of
from .simulation import Report, SimulationError, run_seed

_SEEDS_BETWEEN_REPORTS = 500


def main() -> int:
    """Simulate: 0 if nothing was wrong."""
    chosen = _parser().parse_args()
    logging.getLogger("robotsgate").setLevel(logging.CRITICAL)
    seeds = range(chosen.start, chosen.start + chosen.seeds)
    if chosen.replay is not None:
        seeds = range(chosen.replay, chosen.replay + 1)
    total = Report()
    failing = 0
    for number, seed in enumerate(seeds, 1):
        failing += not _is_well(seed, chosen.backend, total)
        if number % _SEEDS_BETWEEN_REPORTS == 0 or number == len(seeds):
            sys.stdout.write(f"{number:,} seeds: {total}; failing: {failing:,}\n")
            sys.stdout.flush()
        if failing >= chosen.failures:
            break
    if chosen.verbose:
        for name, times in sorted(total.seen.items()):
            sys.stdout.write(f"{times:10,}  {name}\n")
    return 1 if failing else 0


def _is_well(seed: int, backend: str, total: Report) -> bool:
    try:
        total.add(run_on(backend, run_seed, seed))
    except SimulationError as error:
        sys.stdout.write(replay_of(seed, error, backend=backend))
        return False
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=1_000, help="how many")
    parser.add_argument("--start", type=int, default=0, help="the first of them")
    parser.add_argument("--replay", type=int, metavar="SEED", help="only this one")
    parser.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio")
    parser.add_argument(
        "--failures", type=int, default=3, help="failing seeds to end after"
    )
    parser.add_argument(
        "--verbose", action="store_true", help="count what happened how often"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
