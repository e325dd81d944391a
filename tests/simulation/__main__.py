"""Simulates any number of seeds, up to the first that fails.

    python -m tests.simulation --seeds 10000 --start 500

For a failing seed, prints the complaints, a minimal list of steps that still fails,
and the command to run it again.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from .simulation import failure_of, shortest_failure

if TYPE_CHECKING:
    from collections.abc import Sequence

# One mistake can lead to a complaint for every path.
_MAX_COMPLAINT = 2_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if no seed fails."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, default=1_000, help="number of seeds")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--backend", choices=("asyncio", "trio"), default="asyncio")
    options = parser.parse_args(arguments)
    for seed in range(options.start, options.start + options.seeds):
        if failure_of(seed, options.backend) is None:
            continue
        shortest = shortest_failure(seed, options.backend)
        assert shortest is not None
        again = f"--start {seed} --seeds 1 --backend {options.backend}"
        lines = [f"seed {seed} fails:", *shortest.log, str(shortest)[:_MAX_COMPLAINT]]
        lines += [f"to run it again: python -m tests.simulation {again}", ""]
        sys.stdout.write("\n".join(lines))
        return 1
    sys.stdout.write(f"{options.seeds:,} seeds pass\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
