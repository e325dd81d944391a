"""Simulates any number of seeds.

    python -m tests.simulation --seeds 10000 --start 500
    python -m tests.simulation --replay 1234

For each failing seed, prints the complaints, a minimal list of steps that still fails,
and the command to run it again.
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
    """Run the command; 0 if no seed fails."""
    options = _parser().parse_args()
    logging.getLogger("robotsgate").setLevel(logging.CRITICAL)
    seeds = range(options.start, options.start + options.seeds)
    if options.replay is not None:
        seeds = range(options.replay, options.replay + 1)
    total = Report()
    failing = 0
    for number, seed in enumerate(seeds, 1):
        failing += not _passes(seed, options.backend, total)
        if number % _SEEDS_BETWEEN_REPORTS == 0 or number == len(seeds):
            sys.stdout.write(f"{number:,} seeds: {total}; failing: {failing:,}\n")
            sys.stdout.flush()
        if failing >= options.failures:
            break
    if options.verbose:
        for name, times in sorted(total.seen.items()):
            sys.stdout.write(f"{times:10,}  {name}\n")
    return 1 if failing else 0


def _passes(seed: int, backend: str, total: Report) -> bool:
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
    parser.add_argument("--seeds", type=int, default=1_000, help="number of seeds")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--replay", type=int, metavar="SEED", help="run only this seed")
    parser.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio")
    parser.add_argument(
        "--failures", type=int, default=3, help="stop after this many failing seeds"
    )
    parser.add_argument(
        "--verbose", action="store_true", help="print how often each event happened"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
