"""Shows on stderr how far `robotsgate filter` has come."""

from __future__ import annotations

import os
import stat
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

from robotsgate.cli._shell import console, note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(slots=True, kw_only=True)
class Counts:
    """How far the command has come.

    Attributes:
        position: how many bytes of stdin are done.
        urls: how many URLs are done.
        without_url: how many other lines are done, without blank ones.
        allowed: how many URLs were printed.
        unknown: how many URLs are of origins that are not archived; `None` if answers
            are fetched.
        fetches: how many robots.txt were fetched.
        failures: how many of those fetches failed.
    """

    position: int = 0
    urls: int = 0
    without_url: int = 0
    allowed: int = 0
    unknown: int | None = None
    fetches: int = 0
    failures: int = 0

    def __str__(self) -> str:
        """One line for people."""
        lines = "line" if self.without_url == 1 else "lines"
        others = f"; {self.without_url:,} {lines} without a URL"
        answers = f"{self.fetches:,} origins fetched, {self.failures:,} failed"
        if self.unknown is not None:
            answers = f"{self.unknown:,} not archived"
        return (
            f"{self.urls:,} URLs, {self.allowed:,} allowed, {answers}"
            f"{others if self.without_url else ''}"
        )


@contextmanager
def progress(counts: Counts, *, is_quiet: bool) -> Iterator[Callable[[], None]]:
    """Show `counts` on stderr: at the end, and before if that is a terminal.

    Not before on the terminal that shows the URLs, too.

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
        disable=is_quiet or not terminal.is_terminal or console().is_terminal,
    )
    task = bar.add_task("", total=_bytes_of_stdin())

    def show() -> None:
        rate = counts.urls / (bar.tasks[0].elapsed or 1)
        text = f"{counts.urls:,} URLs, {rate:,.0f}/s"
        if counts.unknown is None:
            text += f", {counts.fetches:,} origins, {counts.failures:,} failed"
        bar.update(task, completed=counts.position, description=text)

    bar.start()
    try:
        yield show
    except OSError:  # nobody can or wants to see more
        is_quiet = True
        raise
    finally:
        with suppress(OSError):  # the terminal is gone
            bar.stop()
        if not is_quiet:
            note(str(counts))


def _bytes_of_stdin() -> int | None:
    """How many bytes there are to read; `None` if that is not known, as in a pipe."""
    try:
        status = os.fstat(sys.stdin.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
