"""The figures of a run, as values and as text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = [
    "Bar",
    "Cell",
    "Measured",
    "Standing",
    "Table",
    "bars_table",
    "markdown",
    "missed",
    "plain_text",
    "shown",
]

Cell = str | float | int | None
"""`None` where nothing was measured."""


class Standing(StrEnum):
    """How a figure stands against its bar."""

    STRETCH = "stretch"
    MET = "met"
    MISSED = "missed"
    UNMEASURED = "not measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Figures of one subject.

    Attributes:
        name: by which pages and charts find it.
        title: one line.
        columns: headings; the first is that of the row's name.
        rows: one cell for each column.
        notes: sentences about how to read it.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def column(self, heading: str) -> dict[str, Cell]:
        """The cells below `heading`, by the names of their rows.

        Raises:
            ValueError: there is no such column.
        """
        place = self.columns.index(heading)
        return {str(row[0]): row[place] for row in self.rows}


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
    is_ceiling: bool = False

    @property
    def standing(self) -> Standing:
        """How the value stands."""
        if self.value is None:
            return Standing.UNMEASURED
        sign = -1 if self.is_ceiling else 1
        if self.stretch is not None and sign * self.value >= sign * self.stretch:
            return Standing.STRETCH
        return Standing.MET if sign * self.value >= sign * self.bar else Standing.MISSED


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one measurement found."""

    tables: tuple[Table, ...]
    bars: tuple[Bar, ...] = ()


def bars_table(bars: tuple[Bar, ...]) -> Table:
    """All promises and how they stand."""

    def with_unit(bar: Bar, value: float | None, sign: str = "") -> str:
        if value is None:
            return "–"
        space = "" if bar.unit == "×" else " "
        return f"{sign}{shown(value)}{space}{bar.unit}"

    rows = []
    for bar in bars:
        sign = "≤ " if bar.is_ceiling else "≥ "
        rows.append(
            (
                bar.what,
                with_unit(bar, bar.value),
                with_unit(bar, bar.bar, sign),
                with_unit(bar, bar.stretch, sign),
                bar.standing.value,
            )
        )
    return Table(
        name="bars",
        title="What was promised, and what this run found",
        columns=("what", "found", "bar", "stretch", "standing"),
        rows=tuple(rows),
    )


def missed(bars: tuple[Bar, ...]) -> str:
    """One sentence about the promises that were not held."""
    count = sum(bar.standing is Standing.MISSED for bar in bars)
    if not count:
        return "No bar was missed in this run."
    return f"{count} of {len(bars)} bars were missed; the last column says which."


def shown(cell: Cell) -> str:
    """A cell as it is read: three significant digits, thousands apart."""
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or abs(cell) >= 100:
        return f"{cell:,.0f}"
    if abs(cell) >= 10:
        return f"{cell:.1f}"
    return f"{cell:.2f}" if abs(cell) >= 0.1 else f"{cell:.3f}"


def plain_text(table: Table) -> str:
    """For a terminal."""
    lines = [table.columns, *(tuple(map(shown, row)) for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [f"== {table.title}"]
    for line in lines:
        first, *others = (
            cell.ljust(width)
            if place == 0 or table.name == "bars"
            else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        text.append("  ".join([first, *others]).rstrip())
    text += [f"({note})" for note in table.notes]
    return "\n".join(text)


def markdown(table: Table) -> str:
    """For the documentation: a table, then each note on its line."""
    is_text = [
        all(isinstance(row[place], str) for row in table.rows)
        for place in range(len(table.columns))
    ]
    lines = [
        f"| {' | '.join(table.columns)} |",
        f"|{'|'.join('---' if left else '---:' for left in is_text)}|",
    ]
    lines += [
        f"| {' | '.join(_escaped(shown(cell)) for cell in row)} |" for row in table.rows
    ]
    if table.notes:
        lines += ["", *table.notes]
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Without what would end a cell or be read as emphasis."""
    return text.replace("|", "\\|").replace("*", "\\*")
