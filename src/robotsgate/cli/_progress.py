"""Displays the progress of `robotsgate filter` on stderr."""

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
    """The command's progress.

    Attributes:
        position: the number of stdin bytes processed.
        urls: the number of URLs processed.
        without_url: the number of non-blank lines processed that have no URL.
        allowed: the number of URLs printed.
        unknown: the number of URLs whose origin is not archived; `None` if files are
            fetched.
        fetches: the number of robots.txt files fetched.
        failures: the number of fetches that failed.
    """

    position: int = 0
    urls: int = 0
    without_url: int = 0
    allowed: int = 0
    unknown: int | None = None
    fetches: int = 0
    failures: int = 0

    def __str__(self) -> str:
        """The counts as one human-readable line."""
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
    """Show `counts` on stderr at the end, and continuously if stderr is a terminal.

    If stdout is a terminal as well, the counts are only shown at the end.

    Args:
        counts: the counts, which the block updates.
        is_quiet: if true, show nothing.

    Yields:
        A function to call whenever the counts have changed.
    """
    terminal = console(on_stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=10),  # keeps the line within 80 columns
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
    except OSError:  # the output is closed
        is_quiet = True
        raise
    finally:
        with suppress(OSError):  # the terminal is gone
            bar.stop()
        if not is_quiet:
            note(str(counts))


def _bytes_of_stdin() -> int | None:
    """The size of stdin in bytes; `None` if unknown, for example for a pipe."""
    try:
        status = os.fstat(sys.stdin.fileno())
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
