"""Shows on stderr how far `robotsgate filter` has come."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from robotsgate.cli._output import console

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(slots=True, kw_only=True)
class Counts:
    """How far the command has come.

    Attributes:
        position: how many bytes of stdin are done.
        lines: how many lines are done, without blank ones.
        allowed: how many of them were printed.
        fetches: how many robots.txt were fetched.
        failures: how many of those fetches failed.
    """

    position: int = 0
    lines: int = 0
    allowed: int = 0
    fetches: int = 0
    failures: int = 0

    def __str__(self) -> str:
        """One line for people."""
        return (
            f"{self.lines:,} URLs, {self.allowed:,} allowed,"
            f" {self.fetches:,} origins fetched, {self.failures:,} failed"
        )


@contextmanager
def progress(counts: Counts, *, is_quiet: bool) -> Iterator[Callable[[], None]]:
    """Show `counts` on stderr: at the end, and on a terminal also before.

    Args:
        counts: what the block counts.
        is_quiet: whether to show nothing.

    Yields:
        A function to call when the counts have changed.
    """
    terminal = console(on_stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=10),  # all of it fits into 80 columns
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=terminal,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        disable=is_quiet or not terminal.is_terminal,
    )
    task = bar.add_task("", total=_bytes_of_stdin())

    def show() -> None:
        rate = counts.lines / (bar.tasks[0].elapsed or 1)
        text = (
            f"{counts.lines:,} URLs, {rate:,.0f}/s,"
            f" {counts.fetches:,} origins, {counts.failures:,} failed"
        )
        bar.update(task, completed=counts.position, description=text)

    try:
        with bar:
            yield show
    finally:
        if not is_quiet:
            click.echo(counts, err=True)


def _bytes_of_stdin() -> int | None:
    """How many bytes there are to read; `None` if that is not known, as in a pipe."""
    try:
        status = os.fstat(sys.stdin.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
