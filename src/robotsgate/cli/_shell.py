"""The interface to the shell: text on stdout, lines from stdin, and exit codes.

Output to a terminal is styled; other output is plain, with one record per line. Control
characters are escaped, since a server may have sent them to corrupt the terminal.
"""

from __future__ import annotations

import enum
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import anyio
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from robotsgate.caching import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from io import BufferedReader


class Exit(enum.IntEnum):
    """The exit codes of `robotsgate check`; other commands use some of them."""

    ALLOWED = 0
    """All URLs are allowed, or there is nothing to report."""
    DISALLOWED = 1
    """Some URLs are disallowed, `lint` or `diff` has something to report, or the input
    of `filter` has lines without a URL."""
    TROUBLE = 2
    """Incorrect usage, or something that cannot be read or opened."""
    UNDECIDED = 3
    """Some URLs could not be decided."""
    CLOSED_PIPE = 141
    """The reader closed the pipe: 128 + SIGPIPE."""


_WORST_FIRST = (Exit.TROUBLE, Exit.UNDECIDED, Exit.DISALLOWED)


def worst(codes: set[Exit]) -> Exit:
    """The most serious of several exit codes."""
    return next((code for code in _WORST_FIRST if code in codes), Exit.ALLOWED)


_STREAMS = (
    ("stdin", "r", os.O_WRONLY),
    ("stdout", "w", os.O_RDONLY),
    ("stderr", "w", os.O_WRONLY),
)


def open_closed_streams() -> None:
    """Reopen streams that the shell closed (`>&-`), so that no file reuses their fds.

    Reading from a reopened stdin fails, as does writing to a reopened stdout.
    """
    for name, mode, flags in _STREAMS:
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def drop_unwritten() -> None:
    """Drop output that cannot be written; Python would otherwise exit with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


Part = str | tuple[str, str]
"""Part of a line: text, or a pair (text, style name)."""


def console(*, on_stderr: bool = False) -> Console:
    """A rich console for stdout or stderr that does not interpret markup in text."""
    return Console(
        stderr=on_stderr, highlight=False, markup=False, emoji=False, soft_wrap=True
    )


def tell(*parts: Part, detail: str = "") -> None:
    """Print one line to stdout, with control characters escaped.

    If the terminal is too narrow, `detail` is printed on a second line.
    """
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    detail = printable(detail)
    terminal = console()
    if terminal.is_terminal:
        text = Text.assemble(*((printable(text), style) for text, style in pairs))
        if detail:
            is_wide = text.cell_len + cell_len(f": {detail}") > terminal.width
            text.append("\n  " if is_wide else ": ").append(detail)
        terminal.print(text)
    else:
        line = "".join(printable(text) for text, _ in pairs)
        sys.stdout.write(f"{line}: {detail}\n" if detail else f"{line}\n")
        sys.stdout.flush()


def tell_raw(lines: Iterable[bytes]) -> None:
    """Print `lines` (UTF-8) unchanged or, on a terminal, escaped."""
    if console().is_terminal:
        for line in lines:
            tell(line.decode().expandtabs())
    else:
        sys.stdout.buffer.write(b"".join([b"%b\n" % line for line in lines]))
        sys.stdout.flush()


def tell_json(value: object) -> None:
    """Print `value` to stdout as one line of JSON, in ASCII."""
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")
    sys.stdout.flush()


def tell_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on a terminal, and tab-separated rows otherwise."""
    terminal = console()
    if not terminal.is_terminal:
        for row in rows:
            sys.stdout.write("\t".join(map(printable, row)) + "\n")
        sys.stdout.flush()
        return
    table = Table(*columns, box=None, header_style="bold", pad_edge=False)
    for row in rows:
        table.add_row(*(Text(printable(cell), overflow="fold") for cell in row))
    terminal.print(table, soft_wrap=False)


def complain(message: str) -> None:
    """Print an error to stderr as a single line."""
    note(f"robotsgate: {printable(message)}")


def note(text: str) -> None:
    """Print `text` to stderr, ignoring write errors."""
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")


_BLOCK_BYTES = 65_536

LONGEST_LINE = 2**20
"""In bytes; a longer line is treated as having no URL."""


class LinesOfStdin(AsyncIterator[list[bytes]]):
    """Batches of lines from stdin, without their line endings.

    A line longer than `LONGEST_LINE` bytes may be truncated, but never to that length
    or less.

    Attributes:
        bytes_read: the number of bytes read so far.
    """

    def __init__(self) -> None:
        """Prepare to read stdin; nothing is read yet."""
        self.bytes_read = 0
        self._is_over = False
        self._source = cast("BufferedReader", sys.stdin.buffer)
        self._rest = b""
        self._can_wait = True

    async def __anext__(self) -> list[bytes]:
        """Return the next lines. It is safe to call this again after a cancellation."""
        while not self._is_over:
            await self._wait()
            block = self._source.read1(_BLOCK_BYTES)
            self.bytes_read += len(block)
            self._is_over = not block
            *lines, rest = (self._rest + block).split(b"\n")
            self._rest = rest[: LONGEST_LINE + 1]
            if self._is_over and rest:
                return [rest]
            if lines:
                return lines
        raise StopAsyncIteration

    async def _wait(self) -> None:
        if not self._can_wait:
            return
        try:
            await anyio.wait_readable(self._source.fileno())
        except OSError:  # stdin is a file, which is always readable
            self._can_wait = False
