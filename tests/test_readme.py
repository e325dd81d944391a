"""The links and the figures of the README."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_links_lead_to_files() -> None:
    links = {link.partition("#")[0] for link in re.findall(r"\]\(([^)]+)\)", README)}

    assert [link for link in sorted(links) if not (ROOT / link).exists()] == []


def test_cells_of_the_comparison_have_links() -> None:
    table = re.findall(r"^\| \[.*$", README, re.MULTILINE)

    assert len(table) == 5
    assert [row for row in table if row.count("](") < row.count("|") - 1] == []


def test_figures_are_those_of_the_measurement() -> None:
    sentence = re.search("^Once .* a lookup took (.*)$", README, re.MULTILINE)
    page = (ROOT / "docs/explanation/how-fast.md").read_text(encoding="utf-8")

    assert sentence is not None
    average, ratio, *_ = re.findall(r"\d+\.\d\d", sentence[1])
    assert f"| await can_fetch | {average} | 1.00 |" in page
    assert re.search(rf"\| protego \S+ \| \S+ \| {ratio} \|", page)
