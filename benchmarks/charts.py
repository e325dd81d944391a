"""Draws the figures of a run with matplotlib, always the same for the same figures."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.report import Cell, Table
    from benchmarks.run import Run

__all__ = ["CHARTS", "draw"]

# Of matplotlib, which is imported when something is drawn.
Figure: TypeAlias = Any
Axis: TypeAlias = Any

_OURS = "#2a78d6"
_OTHERS = "#9a9890"
_INK = "#33322e"
_GRID = "#dddbd3"
_BAR_INCHES = 0.3
_BAR_MS = 200
_WIDTH_INCHES = 8.0

_STYLE = {
    "svg.hashsalt": "robotsgate",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "text.color": _INK,
    "text.parse_math": False,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "grid.color": _GRID,
    "axes.axisbelow": True,
}


def draw(run: Run, folder: Path) -> list[Path]:
    """Write those charts whose tables the run has.

    Returns:
        The files, SVG.
    """
    matplotlib = import_module("matplotlib")
    matplotlib.use("svg")
    tables = {table.name: table for table in run.tables}
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, chart in CHARTS.items():
        if name not in tables:
            continue
        with matplotlib.rc_context(_STYLE):
            figure = chart(tables[name])
            path = folder / f"how-fast-{name}.svg"
            figure.savefig(path, metadata={"Date": None, "Creator": None})
            import_module("matplotlib.pyplot").close(figure)
        _without_trailing_spaces(path)
        paths.append(path)
    return paths


def _without_trailing_spaces(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


def _questions(table: Table) -> Figure:
    return _bars(
        _numbers(table.column("shuffled, pooled mean, µs")),
        ours=("await can_fetch", "peek", "can_fetch_many"),
        title="One question about a known origin",
        axis="µs, pooled mean over shuffled origins, logarithmic",
    )


def _memory(table: Table) -> Figure:
    kibibytes = {
        name: count / 1024
        for name, count in _numbers(table.column("mean, bytes")).items()
    }
    return _bars(
        kibibytes,
        ours=[name for name in kibibytes if "live origin" in name],
        title="Memory of one known origin",
        axis="KiB, mean",
        is_logarithmic=False,
    )


def _matching(table: Table) -> Figure:
    """A line for each contender over the classes."""
    figure, axes = _figure(3.8)
    classes = [str(row[0]) for row in table.rows]
    headings = [heading for heading in table.columns if heading.endswith(", µs")]
    styles = ((_OURS, "o", "-"), (_OURS, "s", "--"), (_OTHERS, "^", "-"))
    for heading, (colour, marker, line) in zip(headings, styles, strict=True):
        values = _numbers(table.column(heading))
        axes.plot(
            list(values),
            list(values.values()),
            color=colour,
            marker=marker,
            linestyle=line,
            label=heading.removesuffix(", µs"),
        )
    axes.set_yscale("log")
    _plain_numbers(axes.yaxis)
    axes.grid(axis="y")
    axes.margins(x=0.08)
    axes.set_xticks(range(len(classes)), classes)
    axes.legend(frameon=False)
    axes.set_title("One question, by the number of rules in the group")
    axes.set_xlabel("rules")
    axes.set_ylabel("µs, pooled mean, logarithmic")
    return figure


def _hostile(table: Table) -> Figure:
    """For each family a mark of ours and one of protego, on one line."""
    parse = _numbers(table.column("parse, ms"))
    first = _numbers(table.column("first can_fetch, ms"))
    ours = {name: parse[name] + first[name] for name in first}
    names = sorted(ours, key=lambda name: ours[name])
    places = {name: place for place, name in enumerate(names)}
    figure, axes = _figure(0.18 * len(names) + 1.6)
    axes.plot(
        [ours[name] for name in names],
        range(len(names)),
        color=_OURS,
        marker="o",
        linestyle="",
        label="robotsgate",
        zorder=3,
    )
    heading = "protego, ms"
    theirs = table.column(heading) if heading in table.columns else {}
    measured = _numbers(theirs)
    axes.plot(
        list(measured.values()),
        [places[name] for name in measured],
        color=_OTHERS,
        marker="^",
        linestyle="",
        label="protego",
    )
    for name, cell in theirs.items():
        if isinstance(cell, str):
            axes.annotate(
                f"protego {cell} ms",
                (0.995, places[name]),
                xycoords=("axes fraction", "data"),
                ha="right",
                va="center",
                fontsize=8,
            )
    axes.axvline(_BAR_MS, color=_INK, linewidth=1, linestyle=":", label="the bar")
    axes.set_xscale("log")
    _plain_numbers(axes.xaxis)
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(-1, len(names))
    axes.grid(axis="x")
    axes.legend(frameon=False, loc="lower right")
    axes.set_title("Hostile files, from the body to the first answer")
    axes.set_xlabel("ms, logarithmic")
    return figure


def _plain_numbers(axis: Axis) -> None:
    """Label 1, 10, 100, and nothing between."""
    ticker = import_module("matplotlib.ticker")
    axis.set_major_formatter("{x:,g}")
    axis.set_minor_formatter(ticker.NullFormatter())


def _bars(
    values: Mapping[str, float],
    *,
    ours: Sequence[str],
    title: str,
    axis: str,
    is_logarithmic: bool = True,
) -> Figure:
    """Horizontal bars, the shortest on top, each with its figure."""
    names = sorted(values, key=lambda name: -values[name])
    figure, axes = _figure(_BAR_INCHES * len(names) + 1.2)
    axes.barh(
        names,
        [values[name] for name in names],
        color=[_OURS if name in ours else _OTHERS for name in names],
        height=0.7,
    )
    for place, name in enumerate(names):
        axes.annotate(
            f"{values[name]:.3g}",
            (values[name], place),
            textcoords="offset points",
            xytext=(4, 0),
            va="center",
        )
    if is_logarithmic:
        axes.set_xscale("log")
        _plain_numbers(axes.xaxis)
        axes.set_xlim(right=max(values.values()) * 3)
    axes.grid(axis="x")
    axes.tick_params(axis="y", length=0)
    axes.set_title(title)
    axes.set_xlabel(axis)
    return figure


def _figure(height: float) -> tuple[Figure, Any]:
    """A figure of this height, inches, and its axes."""
    plots = import_module("matplotlib.pyplot")
    figure, axes = plots.subplots(figsize=(_WIDTH_INCHES, height), layout="constrained")
    return figure, axes


def _numbers(column: Mapping[str, Cell]) -> dict[str, float]:
    """Only the cells where something was measured."""
    return {
        name: float(cell)
        for name, cell in column.items()
        if isinstance(cell, int | float)
    }


CHARTS = {
    "questions": _questions,
    "matching": _matching,
    "memory": _memory,
    "hostile": _hostile,
}
"""What draws the chart of a table, by the name of the table."""
