"""Draws the chart of lookup times with matplotlib."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.page import Table

_STYLE = {
    "svg.hashsalt": "robotsgate",  # the same file for the same figures
    "svg.fonttype": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(table: Table, path: Path) -> None:
    """Draw the second column of `table` as an SVG bar chart, shortest bar on top."""
    matplotlib = import_module("matplotlib")
    matplotlib.use("svg")
    plots = import_module("matplotlib.pyplot")
    rows = sorted(table.rows, key=lambda row: -float(row[1] or 0))
    names, figures = [row[0] for row in rows], [row[1] for row in rows]
    with matplotlib.rc_context(_STYLE):
        figure, axes = plots.subplots(figsize=(8.0, 4.0), layout="constrained")
        ours = axes.barh(names, figures, color="#9a9890")
        for name, bar in zip(names, ours, strict=True):
            bar.set_color("#2a78d6" if "can_fetch" in str(name) else "#9a9890")
        axes.bar_label(ours, fmt="{:.3g}", padding=4)
        axes.set_xscale("log")
        axes.margins(x=0.1)
        axes.set_title(table.columns[1])
        figure.savefig(path, metadata={"Date": None, "Creator": None})
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*map(str.rstrip, lines), ""]), encoding="utf-8")
