"""Kills processes that write to one SQLite file, and looks for what they had kept.

    python -m tests.stores.crash --kills 200

The last line is a summary; the exit code is 1 if anything was lost or damaged.
"""

from __future__ import annotations

import argparse
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import ExitStack, aclosing, closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TextIO

import anyio

from robotsgate.stores.sqlite import SQLiteStore
from robotsgate.testing.stores import to
from tests.stores.child import bytes_of, child

_MODULE = "tests.stores.crash"

# Several tasks, so that there are transactions of several keys.
_TASKS_OF_A_WRITER = 5
_WRITERS = 2

# Long enough for a commit or a checkpoint to be under way, or none.
_MOST_ACKNOWLEDGED_BEFORE = 80
_MOST_SECONDS_BEFORE = 0.02

_KILLS_BETWEEN_REPORTS = 20


@dataclass(kw_only=True)
class Losses:
    """What came of some kills."""

    kills: int = 0
    acknowledged: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.kills:,} kills, {len(self.acknowledged):,} acknowledged keys,"
            f" lost: {len(self.lost):,}, damaged files: {len(self.damage):,}"
        )


def kill_writers(path: Path, *, kills: int, seed: int) -> Losses:
    """Let two processes write at a time, and kill first one and then the other.

    Args:
        path: of the file, which they all share.
        kills: how many at least.
        seed: of the moments.
    """
    chance = Random(seed)  # noqa: S311 (reproducible, no secret)
    losses = Losses()
    while losses.kills < kills:
        written = _killed(path, chance, name=f"{seed}-{losses.kills}")
        losses.kills += _WRITERS
        losses.acknowledged += written
        _look_at(path, written, losses)
        if losses.kills % _KILLS_BETWEEN_REPORTS == 0:
            sys.stderr.write(f"{losses}\n")
    # Nothing that came later has taken an earlier one away.
    _look_at(path, losses.acknowledged, losses)
    return losses


def _killed(path: Path, chance: Random, *, name: str) -> list[str]:
    """Which keys some writers had written when they were killed."""
    written: list[str] = []
    with ExitStack() as children:
        writers = [
            children.enter_context(child(_MODULE, "--write", path, f"{name}-{number}"))
            for number in range(_WRITERS)
        ]
        for writer in writers:
            assert writer.stdout is not None
            for _ in range(chance.randrange(_MOST_ACKNOWLEDGED_BEFORE) + 1):
                written += _lines(writer.stdout.readline())
            with suppress(subprocess.TimeoutExpired):
                writer.wait(chance.uniform(0, _MOST_SECONDS_BEFORE))
            # It writes for ever: if it has ended, that was a failure of its own.
            if writer.poll() is not None:
                raise AssertionError(_said(writer.stderr))
            writer.kill()
            written += _lines(writer.stdout.read())
    return written


def _lines(text: str) -> list[str]:
    """The whole lines of `text`."""
    return [line.rstrip() for line in text.splitlines(keepends=True) if "\n" in line]


def _said(stream: TextIO | None) -> str:
    return "" if stream is None else stream.read()


def _look_at(path: Path, keys: list[str], losses: Losses) -> None:
    """Open the file as it was left, and look for the `keys`."""
    losses.lost += anyio.run(_lost, path, keys)
    with closing(sqlite3.connect(path)) as connection:
        ((said,),) = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if said != "ok":
        losses.damage.append(said)


async def _lost(path: Path, keys: list[str]) -> list[str]:
    lost: list[str] = []
    async with aclosing(SQLiteStore(path)) as store:

        async def look_for(some: list[str]) -> None:
            for key in some:
                found = await store.get(key)
                lost.extend([key] if found != bytes_of(key) else [])

        async with anyio.create_task_group() as tasks:
            for first in range(50):
                tasks.start_soon(look_for, keys[first::50])
    return lost


async def _write(path: str, name: str) -> None:
    """Write keys for ever, and tell each once it is written."""
    store = SQLiteStore(path)

    async def write(first: int) -> None:
        number = first
        while True:
            key = f"https://{name}-{number}.example"
            await store.update(key, to(bytes_of(key)))
            sys.stdout.write(f"{key}\n")
            sys.stdout.flush()
            number += _TASKS_OF_A_WRITER

    async with anyio.create_task_group() as tasks:
        for first in range(_TASKS_OF_A_WRITER):
            tasks.start_soon(write, first)


def main() -> int:
    """Kill: 0 if nothing was lost."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {_MODULE}",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kills", type=int, default=200, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument(
        "--write", nargs=2, metavar=("PATH", "NAME"), help="be one of the writers"
    )
    chosen = parser.parse_args()
    if chosen.write:
        anyio.run(_write, *chosen.write)
    with tempfile.TemporaryDirectory() as folder:
        losses = kill_writers(
            Path(folder) / "robots.db", kills=chosen.kills, seed=chosen.seed
        )
    sys.stdout.write(f"{losses}\n")
    return 1 if losses.lost or losses.damage else 0


if __name__ == "__main__":
    sys.exit(main())
