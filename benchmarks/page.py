"""Shows the figures of a run, and writes them into a Markdown page.

A part of a page is marked `<!-- begin: NAME -->`, on a line of its own, until
`<!-- end: NAME -->`. What lies between is replaced; the rest is left as it is.
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
"""`None` where nothing was measured."""

_PART = re.compile(
    r"^<!-- begin: (?P<name>[^\n]+?) -->\n.*?^<!-- end: (?P=name) -->$",
    re.DOTALL | re.MULTILINE,
)


class Table(NamedTuple):
    """Figures of one subject; `name` is that of its part of a page.

    The first column names the row; notes are sentences about how to read it.
    """

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A figure that was promised.

    Attributes:
        what: is measured, against what, and by which statistic.
        value: what came out; `None` if a contender is not installed.
        bar: what it must reach.
        stretch: what it should reach; `None`: nothing more.
        unit: written behind the figures.
        is_ceiling: whether less is better.
    """

    what: str
    value: float | None
    bar: float
    stretch: float | None = None
    unit: str = "×"
    is_ceiling: bool = True

    @property
    def is_missed(self) -> bool:
        """Whether it was measured and is on the wrong side."""
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
    """Print all, and write what has a place in `page`, each name behind `prefix`."""
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
        page.write_text(rewritten(text, parts), encoding="utf-8")


def about(*packages: str) -> dict[str, str]:
    """Where and with what a run takes place; nothing that tells machines apart."""
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
    """For the documentation: a table, then each note on its line."""
    is_text = [
        all(isinstance(cell, str) for cell in column)
        for column in zip(*table.rows, strict=True)
    ]
    rows = [
        [_shown(cell).replace("|", "\\|").replace("*", "\\*") for cell in row]
        for row in table.rows
    ]
    ruler = ["---" if left else "---:" for left in is_text]
    lines = [f"| {' | '.join(row)} |" for row in (table.columns, *rows)]
    lines.insert(1, f"|{'|'.join(ruler)}|")
    return "\n".join([*lines, *([""] if table.notes else []), *table.notes])


def rewritten(page: str, parts: Mapping[str, str]) -> str:
    """`page` with those of `parts` that it marks in place of what stood there."""

    def replaced(part: re.Match[str]) -> str:
        name = part["name"]
        if name not in parts:
            return part[0]
        return (
            f"<!-- begin: {name} -->\n\n{parts[name].strip()}\n\n<!-- end: {name} -->"
        )

    return _PART.sub(replaced, page)


def _bars_table(bars: Sequence[Bar]) -> Table:
    def cells(bar: Bar) -> Iterator[str]:
        unit = bar.unit if bar.unit == "×" else f" {bar.unit}"
        sign = "≤" if bar.is_ceiling else "≥"
        yield bar.what
        missed = ", missed" if bar.is_missed else ""
        yield "–" if bar.value is None else f"{_shown(bar.value)}{unit}{missed}"
        for limit in (bar.bar, bar.stretch):
            yield "–" if limit is None else f"{sign} {_shown(limit)}{unit}"

    return Table(
        name="bars",
        columns=("what", "measured", "required", "goal"),
        rows=[tuple(cells(bar)) for bar in bars],
    )


def _shown(cell: Cell) -> str:
    """A cell as it is read: three significant digits, thousands apart."""
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
    """For a terminal."""
    lines = [table.columns, *(tuple(map(_shown, row)) for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [f"== {table.name}"]
    for first, *others in lines:
        cells = [first.ljust(widths[0])]
        cells += map(str.rjust, others, widths[1:])
        text.append("  ".join(cells))
    return "\n".join([*text, *(f"({note})" for note in table.notes)])
