"""Kills processes that write to one SQLite file, then checks what they had written.

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
from tests.stores.child import bytes_of, child
from tests.stores.contracts import to

_MODULE = "tests.stores.crash"

# Several tasks, so that transactions contain several keys.
_TASKS_PER_WRITER = 5
_WRITERS = 2

# Long enough that a commit or a checkpoint may be in progress.
_MAX_KEYS_BEFORE_KILL = 80
_MAX_SECONDS_BEFORE_KILL = 0.02

_KILLS_BETWEEN_REPORTS = 20


@dataclass(kw_only=True)
class Losses:
    """The results of some kills."""

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
    """Run two writers at a time, killing first one and then the other.

    Args:
        path: the file that they share.
        kills: the minimum number of kills.
        seed: the seed for the times of the kills.
    """
    chance = Random(seed)  # noqa: S311 (reproducible, no secret)
    losses = Losses()
    while losses.kills < kills:
        written = _write_and_kill(path, chance, name=f"{seed}-{losses.kills}")
        losses.kills += _WRITERS
        losses.acknowledged += written
        _check(path, written, losses)
        if losses.kills % _KILLS_BETWEEN_REPORTS == 0:
            sys.stderr.write(f"{losses}\n")
    # Later kills must not have destroyed earlier keys.
    _check(path, losses.acknowledged, losses)
    return losses


def _write_and_kill(path: Path, chance: Random, *, name: str) -> list[str]:
    """Run some writers, kill them, and return the keys that they had written."""
    written: list[str] = []
    with ExitStack() as children:
        writers = [
            children.enter_context(child(_MODULE, "--write", path, f"{name}-{number}"))
            for number in range(_WRITERS)
        ]
        for writer in writers:
            assert writer.stdout is not None
            for _ in range(chance.randrange(_MAX_KEYS_BEFORE_KILL) + 1):
                written += _lines(writer.stdout.readline())
            with suppress(subprocess.TimeoutExpired):
                writer.wait(chance.uniform(0, _MAX_SECONDS_BEFORE_KILL))
            # A writer never ends by itself, unless it fails.
            if writer.poll() is not None:
                raise AssertionError(_text_of(writer.stderr))
            writer.kill()
            written += _lines(writer.stdout.read())
    return written


def _lines(text: str) -> list[str]:
    """The complete lines of `text`."""
    return [line.rstrip() for line in text.splitlines(keepends=True) if "\n" in line]


def _text_of(stream: TextIO | None) -> str:
    return "" if stream is None else stream.read()


def _check(path: Path, keys: list[str], losses: Losses) -> None:
    """Open the file as the writers left it, and check the `keys`."""
    losses.lost += anyio.run(_lost, path, keys)
    with closing(sqlite3.connect(path)) as connection:
        ((result,),) = connection.execute("PRAGMA integrity_check(1)").fetchall()
    if result != "ok":
        losses.damage.append(result)


async def _lost(path: Path, keys: list[str]) -> list[str]:
    lost: list[str] = []
    async with aclosing(SQLiteStore(path)) as store:

        async def check(some: list[str]) -> None:
            for key in some:
                value = await store.get(key)
                lost.extend([key] if value != bytes_of(key) else [])

        async with anyio.create_task_group() as tasks:
            for first in range(50):
                tasks.start_soon(check, keys[first::50])
    return lost


async def _write(path: str, name: str) -> None:
    """Write keys forever, and print each one once it is written."""
    store = SQLiteStore(path)

    async def write(first: int) -> None:
        number = first
        while True:
            key = f"https://{name}-{number}.example"
            await store.update(key, to(bytes_of(key)))
            sys.stdout.write(f"{key}\n")
            sys.stdout.flush()
            number += _TASKS_PER_WRITER

    async with anyio.create_task_group() as tasks:
        for first in range(_TASKS_PER_WRITER):
            tasks.start_soon(write, first)


def main() -> int:
    """Kill writers; return 0 if nothing was lost or damaged."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {_MODULE}",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--kills", type=int, default=200, help="how many writers to kill"
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="seed for the times of the kills"
    )
    parser.add_argument(
        "--write", nargs=2, metavar=("PATH", "NAME"), help="run as one of the writers"
    )
    arguments = parser.parse_args()
    if arguments.write:
        anyio.run(_write, *arguments.write)
    with tempfile.TemporaryDirectory() as folder:
        losses = kill_writers(
            Path(folder) / "robots.db", kills=arguments.kills, seed=arguments.seed
        )
    sys.stdout.write(f"{losses}\n")
    return 1 if losses.lost or losses.damage else 0


if __name__ == "__main__":
    sys.exit(main())
