"""Runs several processes that read and write one SQLite file at once.

    python -m tests.stores.crowd --processes 8 --calls 5000

The last line is a summary; the exit code is 1 if any call failed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import anyio

from robotsgate.stores.sqlite import SQLiteStore
from tests.stores.child import bytes_of, child
from tests.stores.contracts import to

if TYPE_CHECKING:
    from robotsgate import Store

_MODULE = "tests.stores.crowd"

_TASKS = 20
_KEYS = 500

# How many calls each task makes before the file is reopened, so that first and last
# connections come and go all the time.
_CALLS_BETWEEN_OPENINGS = 100


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """The results of several processes on one file."""

    processes: int
    calls: int
    slowest_seconds: float
    errors: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.processes:,} processes, {self.calls:,} calls, the slowest took"
            f" {self.slowest_seconds:.2f} s, failed processes: {len(self.errors):,}"
        )


def crowd_on(path: Path, *, processes: int, calls: int) -> Crowd:
    """Run `processes` that make `calls` each, on a file that they create."""
    with ExitStack() as children:
        members = [
            children.enter_context(child(_MODULE, "--join", path, calls, number))
            for number in range(processes)
        ]
        for member in members:
            assert member.stdout is not None
            member.stdout.readline()  # ready
        for member in members:
            assert member.stdin is not None
            member.stdin.write("go\n")
            member.stdin.flush()
        outputs = [member.communicate() for member in members]
    results = [out.split() for out, _ in outputs if out]
    return Crowd(
        processes=processes,
        calls=sum(int(done) for done, _ in results),
        slowest_seconds=max((float(slowest) for _, slowest in results), default=0.0),
        errors=tuple(
            error
            for member, (_, error) in zip(members, outputs, strict=True)
            if member.returncode
        ),
    )


async def _join(path: str, calls: int, number: int) -> None:
    """Make calls in many tasks; an exception in any of them ends the process."""
    seconds: list[float] = []
    chance = Random(number)  # noqa: S311 (reproducible, no secret)
    keys = [f"https://{host}.example" for host in range(_KEYS)]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    remaining = calls
    while remaining:
        count = min(remaining, _TASKS * _CALLS_BETWEEN_OPENINGS)
        remaining -= count
        async with (
            aclosing(SQLiteStore(path)) as store,
            anyio.create_task_group() as tasks,
        ):
            for task in range(_TASKS):
                chosen = chance.choices(keys, k=len(range(task, count, _TASKS)))
                tasks.start_soon(_call, store, chosen, seconds)
    sys.stdout.write(f"{len(seconds)} {max(seconds):.3f}\n")


async def _call(store: Store, keys: list[str], seconds: list[float]) -> None:
    for number, key in enumerate(keys):
        begin = time.perf_counter()
        if number % 2:
            await store.update(key, to(bytes_of(key)))
        else:
            value = await store.get(key)
            assert value in (None, bytes_of(key)), f"wrong value for {key}"
        seconds.append(time.perf_counter() - begin)


def main() -> int:
    """Run the processes; return 0 if no call failed."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {_MODULE}",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--processes", type=int, default=8, help="how many processes")
    parser.add_argument(
        "--calls", type=int, default=5_000, help="how many calls each makes"
    )
    parser.add_argument(
        "--join",
        nargs=3,
        metavar=("PATH", "CALLS", "NUMBER"),
        help="run as one of the processes",
    )
    arguments = parser.parse_args()
    if arguments.join:
        path, calls, number = arguments.join
        anyio.run(_join, path, int(calls), int(number))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        crowd = crowd_on(
            Path(folder) / "robots.db",
            processes=arguments.processes,
            calls=arguments.calls,
        )
    for error in crowd.errors:
        sys.stderr.write(error)
    sys.stdout.write(f"{crowd}\n")
    return 1 if crowd.errors else 0


if __name__ == "__main__":
    sys.exit(main())
