"""The measurement of many origins: its formula, its tables, and that it runs.

Nothing here asks how long anything takes, or how much memory.
"""

from __future__ import annotations

import re
from math import isfinite
from pathlib import Path

import pytest

from benchmarks import scale
from benchmarks.corpus import made_up_corpus
from benchmarks.report import markdown
from benchmarks.run import Run
from benchmarks.scale import BYTES_PER_LIVE_ORIGIN, Costs, Files, measured, tables
from robotsgate.checking._live import _BYTES_PER_ORIGIN

PAGE = Path(__file__).parents[1] / "docs/explanation/how-large.md"
MIB = 2**20

STORED = dict.fromkeys(
    (
        *("get", "get unknown", "put new", "put renewed", "put at the bound"),
        *("longest put new", "longest put renewed", "longest put at the bound"),
        *("purge nothing", "purge a tenth", "purge the rest", "held", "collect"),
    ),
    0.001,
)
LIVE = dict.fromkeys(("question", "admit", "evict", "first eviction", "collect"), 0.002)
FOUND = {
    "process": {1: {"bytes": 40.0 * MIB}},
    "stored": {
        count: STORED
        | {
            "bytes": count * 1_800.0,
            "bytes renewed": count * 2_000.0,
            "bytes emptied": count * 100.0,
            "packed": 950.0,
        }
        for count in (10, 100)
    },
    "without a copy": {100: {"bytes": 60_000.0}},
    "default store": {200: {"bytes": 300_000.0, "held": 150.0}},
    "live": {count: LIVE | {"bytes": count * 5_000.0} for count in (10, 50)},
    "fetched": {50: {"bytes": 350_000.0}},
}


def table(name: str) -> scale.Table:
    (found,) = (each for each in tables(FOUND) if each.name == name)
    return found


# --- the formula ----------------------------------------------------------------


def test_memory_is_the_base_and_a_part_for_each_origin() -> None:
    costs = Costs(base=1_000, per_live=50, per_stored=20)

    assert costs.memory(live=0, stored=0) == 1_000
    assert costs.memory(live=10, stored=0) == 1_500
    assert costs.memory(live=10, stored=100) == 3_500


def test_bound_of_live_origins_is_that_of_the_package() -> None:
    assert BYTES_PER_LIVE_ORIGIN == _BYTES_PER_ORIGIN


# --- tables ---------------------------------------------------------------------


def test_formula_has_the_figures_of_the_largest_runs() -> None:
    assert table("formula").column("bytes") == {
        "base": "40 MiB",
        "a, for each live origin": "5,000",
        "b, for each stored origin": "2,000",
    }


def test_worked_examples_follow_the_formula() -> None:
    rows = table("machines").rows

    assert rows[0] == ("10,000", "10,000", "107 MiB", "312 MiB")
    assert rows[-1] == ("1,000,000", "1,000,000", "6.6 GiB", "30.5 GiB")


def test_memory_is_shown_whole_and_for_each_origin() -> None:
    assert table("memory").rows[0] == (
        "stored, with a copy",
        "10",
        18_000 / MIB,
        1_800.0,
    )
    assert ("MemoryStore() that was given 200", "150", 300_000 / MIB, 2_000.0) in (
        table("memory").rows
    )


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("store", ("done", "10 stored", "100 stored")),
        ("live", ("done", "10 live", "50 live")),
    ],
)
def test_costs_are_shown_by_the_number_of_origins(
    name: str, columns: tuple[str, ...]
) -> None:
    found = table(name)

    assert found.columns == columns
    assert all(len(row) == len(columns) for row in found.rows)


def test_each_table_has_its_place_in_the_page() -> None:
    run = Run(surroundings={}, tables=tables(FOUND), bars=())

    places = re.findall(
        r"^<!-- begin: (.+) -->$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )

    assert sorted(places) == sorted(run.parts())


# --- measurements ---------------------------------------------------------------


@pytest.fixture(scope="module")
def files() -> Files:
    return Files.of(made_up_corpus(20))


@pytest.mark.parametrize(
    "part",
    ["process", "stored", "without a copy", "default store", "live", "fetched"],
)
def test_part_finds_finite_figures(part: str, files: Files) -> None:
    figures = measured(part, 200, files)

    assert figures
    assert all(isfinite(figure) for figure in figures.values())


def test_run_measures_in_other_processes_and_writes_page_and_file(
    tmp_path: Path,
) -> None:
    page, file = tmp_path / "page.md", tmp_path / "found.json"
    page.write_text(
        "<!-- begin: table memory -->\n<!-- end: table memory -->\n", encoding="utf-8"
    )

    scale.main(["--origins", "300", "--json", str(file), "--page", str(page)])

    run = Run.from_json(file.read_text(encoding="utf-8"))
    assert [each.name for each in run.tables] == [
        *("memory", "formula", "machines", "store", "live")
    ]
    assert markdown(run.tables[0]) in page.read_text(encoding="utf-8")


def test_peak_is_taken_where_the_system_does_not_tell_resident_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "_STATM", tmp_path / "statm")

    assert scale._resident() > MIB
