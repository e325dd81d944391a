"""Prints styled text on a terminal, else one plain record a line.

Control characters are escaped, because a server may have sent them to upset a terminal.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from robotsgate.caching import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def tell_raw(line: str) -> None:
    """Print `line` as it is; on a terminal, escaped."""
    if console().is_terminal:
        tell(line.expandtabs())
    else:
        sys.stdout.write(line + "\n")


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
    """Print one line on stderr; ignore a failure, because the exit code tells, too."""
    with suppress(OSError):
        sys.stderr.write(f"robotsgate: {printable(message)}\n")
