"""The comparison of the stores: its tables, and that it runs.

Nothing here asks how long anything takes, or how much room.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import stores
from benchmarks.corpus import made_up_corpus
from benchmarks.report import markdown
from benchmarks.run import Run
from benchmarks.stores import STORES, tables

if TYPE_CHECKING:
    from benchmarks.report import Table

PAGE = Path(__file__).parents[1] / "docs/explanation/how-stores-compare.md"
NAMES = [
    *("latency on asyncio", "throughput on asyncio"),
    *("latency on trio", "throughput on trio"),
    *("start", "room", "encoded"),
]

MEMORY = {
    "get": 1e-6,
    "get 99th": 2e-6,
    "get rate": 800_000.0,
    "put": 4e-6,
    "put 99th": 8e-6,
    "put rate": 200_000.0,
    "first": 5e-4,
    "known": 4e-4,
    "purge": 0.1,
    "bytes": 1_500.0,
}
SLOWER = {
    "get": 2e-4,
    "get 99th": 4e-4,
    "get rate": 20_000.0,
    "put": 2e-4,
    "put 99th": 4e-4,
    "put rate": 10_000.0,
    "open": 3e-3,
    "first": 1e-3,
    "known": 8e-4,
    "bytes": 1_200.0,
}
FOUND = {
    loop: dict.fromkeys(STORES, SLOWER) | {"MemoryStore": MEMORY}
    for loop in ("asyncio", "trio")
}
SIZES = {"made up": [*range(1, 100), 1_000]}


def table(name: str) -> Table:
    (found,) = (each for each in tables(FOUND, SIZES) if each.name == name)
    return found


# --- tables ---------------------------------------------------------------------


def test_latency_is_in_microseconds_and_beside_that_of_memory() -> None:
    assert table("latency on trio").rows[1] == pytest.approx(
        ("SQLiteStore", 200.0, 400.0, 200.0, 200.0, 400.0, 50.0)
    )


def test_ratio_of_a_rate_tells_how_much_slower_it_is() -> None:
    assert table("throughput on asyncio").rows[1] == (
        *("SQLiteStore", 20_000.0, 40.0),
        *(10_000.0, 20.0),
    )


def test_what_a_store_does_not_do_has_no_figure() -> None:
    start = table("start")

    assert start.column("open, ms") == {"MemoryStore": None} | dict.fromkeys(
        STORES[1:], pytest.approx(3.0)
    )
    assert start.column("purge of all, ms")["SQLiteStore"] is None


def test_sizes_are_those_of_whole_entries() -> None:
    assert table("encoded").rows == (("made up", 100, 50, 60, 99),)


def test_each_table_has_its_place_in_the_page() -> None:
    run = Run(surroundings={}, tables=tables(FOUND, SIZES), bars=())

    places = re.findall(
        r"^<!-- begin: (.+) -->$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )

    assert sorted(places) == sorted(run.parts())


# --- measurements ---------------------------------------------------------------


def test_run_measures_all_stores_and_writes_page_and_file(tmp_path: Path) -> None:
    page, file, corpus = (tmp_path / name for name in ("page.md", "found.json", "real"))
    page.write_text(
        "<!-- begin: table room -->\n<!-- end: table room -->\n", encoding="utf-8"
    )
    corpus.mkdir()
    for number, body in enumerate(made_up_corpus(5)):
        (corpus / str(number)).write_bytes(body)

    stores.main(
        [
            *("--origins", "30", "--seconds", "0.001", "--corpus", str(corpus)),
            *("--json", str(file), "--page", str(page)),
        ]
    )

    run = Run.from_json(file.read_text(encoding="utf-8"))
    found = {each.name: each for each in run.tables}
    assert list(found) == NAMES
    for name in NAMES[:-1]:
        assert [row[0] for row in found[name].rows] == list(STORES)
        assert all(None not in row for row in found[name].rows if name != "start")
    assert [row[:2] for row in found["encoded"].rows] == [
        ("made up", 30),
        ("real files", 5),
    ]
    assert markdown(found["room"]) in page.read_text(encoding="utf-8")
    assert str(tmp_path) not in file.read_text(encoding="utf-8")
