"""How the program talks to a shell: text on stdout, lines of stdin, and its exit code.

Text is styled on a terminal, else one plain record a line. Control characters are
escaped, because a server may have sent them to upset a terminal.
"""

from __future__ import annotations

import enum
import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import anyio
from rich.console import Console
from rich.table import Table
from rich.text import Text

from robotsgate.caching import printable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence
    from io import BufferedReader


class Exit(enum.IntEnum):
    """The exit codes of `robotsgate check`; other commands use some of them."""

    ALLOWED = 0
    """All allowed, or nothing to report."""
    DISALLOWED = 1
    """Some disallowed; for `lint` and `diff`, something to report; for `filter`, some
    lines without a URL."""
    TROUBLE = 2
    """Wrong usage, or something that could not be read or opened."""
    UNDECIDED = 3
    """Some could not be decided."""
    CLOSED_PIPE = 141
    """Nobody reads the output any more: 128 + SIGPIPE."""


_WORST_FIRST = (Exit.TROUBLE, Exit.UNDECIDED, Exit.DISALLOWED)


def worst(codes: set[Exit]) -> Exit:
    """The code that counts if several things happened."""
    return next((code for code in _WORST_FIRST if code in codes), Exit.ALLOWED)


_STREAMS = (
    ("stdin", "r", os.O_WRONLY),
    ("stdout", "w", os.O_RDONLY),
    ("stderr", "w", os.O_WRONLY),
)


def open_closed_streams() -> None:
    """Open what the shell has closed (`>&-`), so that no other file gets its number.

    Reading from such a stdin fails, and so does writing to such a stdout.
    """
    for name, mode, flags in _STREAMS:
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


def drop_unwritten() -> None:
    """Drop what a stream does not take; Python would exit with 120 because of it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


Part = str | tuple[str, str]
"""A piece of a line: text, or text with the name of its style."""


def console(*, on_stderr: bool = False) -> Console:
    """Rich's console for stdout or stderr, which takes no markup in the text."""
    return Console(
        stderr=on_stderr, highlight=False, markup=False, emoji=False, soft_wrap=True
    )


def tell(*parts: Part) -> None:
    """Print one line on stdout; control characters are escaped."""
    pairs = [(part, "") if isinstance(part, str) else part for part in parts]
    terminal = console()
    if terminal.is_terminal:
        text = Text.assemble(*((printable(text), style) for text, style in pairs))
        terminal.print(text)
    else:
        sys.stdout.write("".join(printable(text) for text, _ in pairs) + "\n")
        sys.stdout.flush()


def tell_raw(lines: Iterable[bytes]) -> None:
    """Print `lines`, which are UTF-8, as they are; on a terminal, escaped."""
    if console().is_terminal:
        for line in lines:
            tell(line.decode().expandtabs())
    else:
        sys.stdout.buffer.write(b"".join([b"%b\n" % line for line in lines]))
        sys.stdout.flush()


def tell_json(value: object) -> None:
    """Print `value` on stdout as one line of JSON, in ASCII."""
    sys.stdout.write(json.dumps(value, allow_nan=False) + "\n")
    sys.stdout.flush()


def tell_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on a terminal, else its rows with tabs between."""
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
    """Print one line on stderr about something that went wrong."""
    note(f"robotsgate: {printable(message)}")


def note(text: str) -> None:
    """Print `text` on stderr; ignore a failure, because the exit code tells, too."""
    with suppress(OSError):
        sys.stderr.write(f"{text}\n")


BLOCK_BYTES = 65_536

LONGEST_LINE = 2**20
"""A line of more bytes is not a URL, nor a record with one."""


async def blocks_of_lines() -> AsyncIterator[tuple[list[bytes], int]]:
    """The lines of stdin without their ends, some at a time.

    Yields:
        Lines, and how many bytes of stdin were read so far. A line of more than
        `LONGEST_LINE` bytes may be cut, but stays longer than that.
    """
    source = cast("BufferedReader", sys.stdin.buffer)
    rest, bytes_read, can_wait = b"", 0, True
    while True:
        if can_wait:
            try:
                await anyio.wait_readable(source.fileno())
            except OSError:  # a file, which needs no wait
                can_wait = False
        block = source.read1(BLOCK_BYTES)
        bytes_read += len(block)
        *lines, rest = (rest + block).split(b"\n")
        rest = rest[: LONGEST_LINE + 1]
        if not block:
            if rest:
                yield [rest], bytes_read
            return
        if lines:
            yield lines, bytes_read
