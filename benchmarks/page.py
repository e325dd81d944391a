"""Prints the figures of a run and writes them to a Markdown page.

The lines `<!-- begin: NAME -->` and `<!-- end: NAME -->` mark a part of a page. The
text between them is replaced; the rest is left unchanged.
"""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

Cell = str | float | int | None
"""`None` if nothing was measured."""

_PART = re.compile(
    r"^<!-- begin: (?P<name>[^\n]+?) -->\n.*?^<!-- end: (?P=name) -->$",
    re.DOTALL | re.MULTILINE,
)


class Table(NamedTuple):
    """A table of figures; `name` identifies its part of the page.

    The first column contains the row labels; notes are sentences below the table.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A figure with a requirement.

    Attributes:
        what: what is measured, compared with what, and by which statistic.
        value: the result; `None` if a contender is not installed.
        bar: the required value.
        stretch: the goal; `None`: there is none.
        unit: follows the figures.
        is_ceiling: whether lower is better.
    """

    what: str
    value: float | None
    bar: float
    stretch: float | None = None
    unit: str = "×"
    is_ceiling: bool = True

    @property
    def is_missed(self) -> bool:
        """Whether the value was measured and misses the bar."""
        if self.value is None:
            return False
        return self.value > self.bar if self.is_ceiling else self.value < self.bar


def publish(
    figures: Sequence[Table | Bar],
    about: Mapping[str, str],
    *,
    page: Path | None,
    prefix: str = "",
) -> None:
    """Print everything; write the parts that `page` marks, with `prefix` in names."""
    tables = [figure for figure in figures if isinstance(figure, Table)]
    bars = [figure for figure in figures if isinstance(figure, Bar)]
    if bars:
        tables.append(_bars_table(bars))
    surroundings = "\n".join(f"- {what}: {which}" for what, which in about.items())
    print(surroundings)
    for table in tables:
        print("\n" + _plain_text(table))
    if page is not None:
        parts = {f"{prefix}table {table.name}": markdown(table) for table in tables}
        parts[f"{prefix}surroundings"] = surroundings
        text = page.read_text(encoding="utf-8")
        page.write_text(replace_parts(text, parts), encoding="utf-8")


def about(*packages: str) -> dict[str, str]:
    """The environment of a run, without anything that identifies the machine."""
    installed = {each.name.lower(): each.version for each in metadata.distributions()}
    return {
        "date": datetime.now(tz=UTC).date().isoformat(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()}, {platform.machine()}",
        "packages": ", ".join(
            f"{name} {installed[name]}" for name in packages if name in installed
        ),
    }


def markdown(table: Table) -> str:
    """The table in Markdown, followed by one line per note."""
    is_text = [
        all(isinstance(cell, str) for cell in column)
        for column in zip(*table.rows, strict=True)
    ]
    rows = [
        [_format(cell).replace("|", "\\|").replace("*", "\\*") for cell in row]
        for row in table.rows
    ]
    ruler = ["---" if text else "---:" for text in is_text]
    lines = [f"| {' | '.join(row)} |" for row in (table.columns, *rows)]
    lines.insert(1, f"|{'|'.join(ruler)}|")
    return "\n".join([*lines, *([""] if table.notes else []), *table.notes])


def replace_parts(page: str, parts: Mapping[str, str]) -> str:
    """Return `page` with its marked parts replaced by those of `parts`."""

    def replacement(part: re.Match[str]) -> str:
        name = part["name"]
        if name not in parts:
            return part[0]
        return (
            f"<!-- begin: {name} -->\n\n{parts[name].strip()}\n\n<!-- end: {name} -->"
        )

    return _PART.sub(replacement, page)


def _bars_table(bars: Sequence[Bar]) -> Table:
    def cells(bar: Bar) -> Iterator[str]:
        unit = bar.unit if bar.unit == "×" else f" {bar.unit}"
        sign = "≤" if bar.is_ceiling else "≥"
        yield bar.what
        missed = ", missed" if bar.is_missed else ""
        yield "–" if bar.value is None else f"{_format(bar.value)}{unit}{missed}"
        for limit in (bar.bar, bar.stretch):
            yield "–" if limit is None else f"{sign} {_format(limit)}{unit}"

    return Table(
        name="bars",
        columns=("what", "measured", "required", "goal"),
        rows=[tuple(cells(bar)) for bar in bars],
    )


def _format(cell: Cell) -> str:
    """A formatted cell: three significant digits, with thousands separators."""
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or abs(cell) >= 100:
        return f"{cell:,.0f}"
    if abs(cell) >= 10:
        return f"{cell:.1f}"
    return f"{cell:.2f}" if abs(cell) >= 1 else f"{cell:.3f}"


def _plain_text(table: Table) -> str:
    """The table for a terminal."""
    lines = [table.columns, *(tuple(map(_format, row)) for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [f"== {table.name}"]
    for first, *others in lines:
        cells = [first.ljust(widths[0])]
        cells += map(str.rjust, others, widths[1:])
        text.append("  ".join(cells))
    return "\n".join([*text, *(f"({note})" for note in table.notes)])
