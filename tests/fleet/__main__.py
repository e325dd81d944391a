"""Proves what a fleet does, and prints the figures.

    python -m tests.fleet --processes 8 --origins 500 --rounds 4
    python -m tests.fleet --kill
    python -m tests.fleet --restart-redis

The exit code is 1 if a promise is broken.
"""

from __future__ import annotations

import argparse
import sys

from tests.fleet.fleet import Figures, run_fleet
from tests.fleet.promises import broken_promises

_PROCESSES, _ORIGINS, _ROUNDS = 8, 500, 4

# With a worker that is killed: how long its leases are waited for is the deadline
# and three of the time-outs.
_FETCH_DEADLINE, _STORE_TIMEOUT = 5.0, 4.0


def main(arguments: list[str] | None = None) -> int:
    """Run one fleet; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.fleet")
    parser.add_argument("--processes", type=int, default=_PROCESSES)
    parser.add_argument("--origins", type=int, default=_ORIGINS)
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--restart-redis", action="store_true")
    parser.add_argument(
        "--store", choices=["redis", "sqlite", "memory"], default="redis"
    )
    options = parser.parse_args(arguments)
    if (options.kill or options.restart_redis) and options.store != "redis":
        parser.error("expected --store redis with --kill and --restart-redis")
    times = (
        {"fetch_deadline": _FETCH_DEADLINE, "store_timeout": _STORE_TIMEOUT}
        if options.kill
        else {}
    )
    figures: Figures = run_fleet(
        processes=options.processes,
        sites=options.origins,
        rounds=options.rounds,
        store=options.store,
        kills=options.kill,
        restarts=options.restart_redis,
        **times,
    )
    broken = broken_promises(
        figures,
        has_leases=options.store == "redis",
        was_restarted=options.restart_redis,
    )
    sys.stdout.write("\n".join([str(figures), *broken, ""]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
