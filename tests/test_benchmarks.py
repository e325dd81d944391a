"""Every benchmark runs at a tiny size; nothing here depends on the timings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks import __main__ as suite
from benchmarks import (
    archive,
    hostile,
    politeness,
    scale,
    scrapy_crawl,
    stores,
    wrapped,
)
from benchmarks import filter as filter_
from benchmarks.corpus import generated_corpus
from benchmarks.hostile_files import Family
from benchmarks.page import Bar, Table, publish, replace_parts
from benchmarks.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow

_PAGES = Path(__file__).parents[1] / "docs/explanation"


@pytest.fixture(scope="module")
def tiny() -> Workload:
    return Workload(bodies=generated_corpus(4), repeats=1, is_quick=True)


@pytest.mark.parametrize("name", sorted(suite._MEASUREMENTS.keys() - {"hostile"}))
def test_tables_of_every_measurement_are_in_the_page(name: str, tiny: Workload) -> None:
    page = (_PAGES / "how-fast.md").read_text(encoding="utf-8")

    tables = [
        figure
        for figure in suite._MEASUREMENTS[name](tiny)
        if isinstance(figure, Table)
    ]

    assert tables
    for table in tables:
        assert f"<!-- begin: table {table.name} -->" in page
        assert {len(row) for row in table.rows} <= {len(table.columns)}


def test_hostile_file_is_timed_stage_by_stage() -> None:
    family = Family("small", lambda: b"User-agent: *\nDisallow: /*a*b\n" * 9, "/aaaa")

    seconds = hostile.seconds(family, repeats=1)

    assert [name for name in seconds if "held" not in name] == [
        *("parse", "first can_fetch", "second can_fetch", "match")
    ]


def test_generated_corpus_is_reproducible() -> None:
    assert generated_corpus(20) == generated_corpus(20)


def test_figures_are_written_between_the_markers_in_a_page(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    names = ("real table speed", "real table bars", "other")
    marks = [f"<!-- begin: {name} -->\nold\n<!-- end: {name} -->\n" for name in names]
    page.write_text("".join(marks), encoding="utf-8")
    table = Table(name="speed", columns=("by", "µs"), rows=[("a*b|c", 1234.5)])
    bar = Bar(what="speed", value=3.0, bar=4, stretch=5, unit="ms", is_ceiling=False)

    publish([table, bar], {"cores": "2"}, page=page, prefix="real ")

    speed, bars, other = page.read_text(encoding="utf-8").split("<!-- begin: ")[1:]
    assert "| by | µs |\n|---|---:|\n| a\\*b\\|c | 1,234 |\n" in speed
    assert "| speed | 3.00 ms, missed | ≥ 4 ms | ≥ 5 ms |" in bars
    assert "old" in other
    assert "a*b|c  1,234" in capsys.readouterr().out
    assert replace_parts("no marks", {"other": "new"}) == "no marks"


@pytest.mark.parametrize(
    ("main", "arguments", "page"),
    [
        (scale.main, ["--origins=30"], "how-large.md"),
        (
            stores.main,
            ["--origins=30", "--seconds=0.001"],
            "../contributing/how-stores-compare.md",
        ),
    ],
    ids=["scale", "stores"],
)
def test_command_fills_every_table_in_its_page(
    main: Callable[[list[str]], None], arguments: list[str], page: str, tmp_path: Path
) -> None:
    marks = re.findall(
        "<!-- (?:begin|end): .* -->\n", (_PAGES / page).read_text(encoding="utf-8")
    )
    copy = tmp_path / "page.md"
    copy.write_text("".join(marks), encoding="utf-8")

    main([*arguments, f"--page={copy}"])

    text = copy.read_text(encoding="utf-8")
    for begin, end in zip(marks[::2], marks[1::2], strict=True):
        assert text.partition(begin)[2].partition(end)[0].strip(), begin


@pytest.mark.parametrize(
    ("main", "arguments", "row"),
    [
        (scrapy_crawl.main, ["--pages=5", "--repeats=1"], "RobotsGateMiddleware"),
        (wrapped.main, ["--requests=5", "--repeats=1"], "the hook alone"),
        (filter_.main, ["--urls=300", "--origins=3"], "loop over protego |"),
        (archive.main, ["--origins=3", "--repeats=1"], "protego's parsers |"),
    ],
    ids=["scrapy", "wrapped", "filter", "archive"],
)
def test_separate_command_updates_its_table(
    main: Callable[[list[str]], None], arguments: list[str], row: str, tmp_path: Path
) -> None:
    page = tmp_path / "how-fast.md"
    text = (_PAGES / page.name).read_text(encoding="utf-8")
    page.write_text(text, encoding="utf-8")

    main([*arguments, f"--page={page}"])

    assert page.read_text(encoding="utf-8").count(row) == 1
    assert page.read_text(encoding="utf-8") != text


def test_politeness_command_prints_a_row_for_gate_turns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    politeness.main(["--urls=200", "--hosts=100", "--waiters=32", "--repeats=1"])

    rows = capsys.readouterr().out
    assert re.search(r"gate\.turn +\S+ +1\.00 +0\.000", rows)
