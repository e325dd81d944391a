"""The suite of benchmarks: its files, its reports, and that each measurement runs.

Nothing here asks how long anything takes.
"""

from __future__ import annotations

from math import isfinite
from statistics import median
from typing import TYPE_CHECKING

import pytest

from benchmarks import (
    cold,
    hostile,
    imports,
    matching,
    memory,
    parsing,
    questions,
)
from benchmarks.corpus import made_up_corpus, real_corpus
from benchmarks.hostile_files import FAMILIES, FILE_BYTES, PATH_BYTES, Family
from benchmarks.page import rewritten
from benchmarks.peers import HandWrittenCache
from benchmarks.report import (
    Bar,
    Measured,
    Standing,
    Table,
    markdown,
    missed,
    plain_text,
)
from benchmarks.run import Run
from benchmarks.timing import median_ratio, take_turns
from benchmarks.workload import AGENT, URLS_PER_FILE, Workload
from robotsgate import RobotsTxt, RuleKind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from robotsgate import Rule


def quantile(numbers: list[int], share: float) -> int:
    return sorted(numbers)[int(share * len(numbers))]


@pytest.fixture(scope="module")
def corpus() -> list[bytes]:
    return made_up_corpus(2_000)


@pytest.fixture(scope="module")
def rules(corpus: list[bytes]) -> list[list[Rule]]:
    return [
        [
            rule
            for group in RobotsTxt.parse(body, max_bytes=None).groups
            for rule in group.rules
            if rule.pattern
        ]
        for body in corpus
    ]


@pytest.fixture(scope="module")
def tiny() -> Workload:
    return Workload(bodies=made_up_corpus(4), repeats=1, is_quick=True)


# --- files ----------------------------------------------------------------------


def test_same_seed_makes_the_same_files() -> None:
    assert made_up_corpus(20) == made_up_corpus(20)
    assert made_up_corpus(20) != made_up_corpus(20, seed=1)


def test_sizes_spread_as_those_of_real_files(corpus: list[bytes]) -> None:
    sizes = [len(body) for body in corpus]

    assert 400 < quantile(sizes, 0.5) < 750
    assert 2_900 < quantile(sizes, 0.9) < 5_000
    assert 40_000 < quantile(sizes, 0.99) < 110_000


def test_numbers_of_rules_spread_as_those_of_real_files(
    rules: list[list[Rule]],
) -> None:
    counts = [len(each) for each in rules]

    assert 9 <= quantile(counts, 0.5) <= 15
    assert 65 <= quantile(counts, 0.9) <= 100
    assert 330 <= quantile(counts, 0.99) <= 700
    assert max(counts) > 5_000


def test_shares_of_wildcards_and_anchors_are_those_of_real_rules(
    rules: list[list[Rule]],
) -> None:
    patterns = [rule.pattern for each in rules for rule in each]

    assert 0.14 < sum("*" in pattern for pattern in patterns) / len(patterns) < 0.23
    assert 0.01 < sum(pattern[-1] == "$" for pattern in patterns) / len(patterns) < 0.03


def test_most_groups_for_all_agents_have_disallow_only(corpus: list[bytes]) -> None:
    groups = [
        group
        for body in corpus
        for group in RobotsTxt.parse(body).groups
        if "*" in group.tokens and group.rules
    ]
    only = sum(
        all(rule.kind is RuleKind.DISALLOW for rule in group.rules) for group in groups
    )

    assert 0.58 < only / len(groups) < 0.70


def test_few_files_name_many_agents(corpus: list[bytes]) -> None:
    counts = [
        sum(len(group.tokens) for group in RobotsTxt.parse(body).groups)
        for body in corpus
    ]

    assert quantile(counts, 0.5) == 1
    assert 80 <= quantile(counts, 0.99) <= 150


@pytest.mark.parametrize(
    ("is_so", "least", "most"),
    [
        pytest.param(lambda body: b"\r\n" in body, 0.25, 0.35, id="CRLF"),
        pytest.param(lambda body: body[:9] == b"<!DOCTYPE", 0.03, 0.05, id="HTML"),
        pytest.param(lambda body: body[:3] == b"\xef\xbb\xbf", 0.005, 0.03, id="BOM"),
        pytest.param(lambda body: not body, 0.005, 0.02, id="empty"),
        pytest.param(
            lambda body: body != body.decode("utf-8", "replace").encode(),
            0.001,
            0.01,
            id="not UTF-8",
        ),
    ],
)
def test_share_of_files_is_that_of_real_ones(
    corpus: list[bytes], is_so: Callable[[bytes], bool], least: float, most: float
) -> None:
    assert least < sum(map(is_so, corpus)) / len(corpus) < most


def test_real_corpus_is_read_from_a_folder(tmp_path: Path) -> None:
    for name in ("a.example", "b.example", "c.example"):
        (tmp_path / name).write_bytes(name.encode())

    assert len(set(real_corpus(tmp_path, 2))) == 2
    assert len(real_corpus(tmp_path, 9)) == 3


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_hostile_file_is_as_large_as_it_may_be(family: Family) -> None:
    largest_gap = 17_000  # the longest line that would not have fitted

    assert FILE_BYTES - largest_gap < len(family.body()) <= FILE_BYTES
    assert family.path.startswith("/")
    assert PATH_BYTES - 10 < len(family.path) <= PATH_BYTES


# --- questions ------------------------------------------------------------------


def test_urls_of_a_file_are_mixed() -> None:
    work = Workload(bodies=made_up_corpus(500))
    urls = [question.url for question in work.questions]

    assert len(urls) == 500 * URLS_PER_FILE
    assert all(url.isascii() and " " not in url for url in urls)
    assert 0.2 < sum("?" in url for url in urls) / len(urls) < 0.4
    assert 0.02 < sum("%" in url for url in urls) / len(urls) < 0.08


def test_some_urls_are_disallowed_and_most_are_not() -> None:
    work = Workload(bodies=made_up_corpus(300))
    answers = [
        RobotsTxt.parse(work.bodies[file]).can_fetch(AGENT, url)
        for file, url in work.questions
    ]

    assert 0.7 < sum(answers) / len(answers) < 0.95


def test_shuffled_questions_are_all_the_questions(tiny: Workload) -> None:
    assert sorted(tiny.shuffled) == sorted(tiny.questions)


def test_median_file_has_about_the_median_number_of_rules_and_no_wildcard() -> None:
    work = Workload(bodies=made_up_corpus(200))

    rules = work.rules[work.median_file]

    assert abs(len(rules) - median(len(each) for each in work.rules if each)) <= 2
    assert not any(set("*$") & set(rule.pattern) for rule in rules)


# --- measurements ---------------------------------------------------------------


@pytest.mark.parametrize(
    "measurement",
    [cold, imports, matching, memory, parsing, questions],
    ids=lambda module: module.__name__,
)
def test_measurement_finds_finite_figures(measurement: object, tiny: Workload) -> None:
    found = measurement.measure(tiny)  # type: ignore[attr-defined]  # each has one

    assert isinstance(found, Measured)
    for table in found.tables:
        assert table.rows
        for row in table.rows:
            assert len(row) == len(table.columns)
            assert all(
                cell is None or isinstance(cell, str) or isfinite(cell) for cell in row
            )
    assert all(bar.value is None or bar.value > 0 for bar in found.bars)


def test_hostile_file_is_measured_in_stages_and_on_the_loop() -> None:
    family = Family("small", lambda: b"User-agent: *\nDisallow: /*a*b\n" * 9, "/aaaa")

    assert all(seconds > 0 for seconds in hostile.stages(family, repeats=1))
    assert isfinite(hostile.loop_held(family, repeats=1))


@pytest.mark.anyio
async def test_contenders_take_turns() -> None:
    order = []

    async def turn_of_a() -> float:
        order.append("a")
        return 1.0

    async def turn_of_b() -> float:
        order.append("b")
        return 2.0

    samples = await take_turns({"a": turn_of_a, "b": turn_of_b}, repeats=2)

    assert order == ["a", "b", "a", "b"]
    assert samples == {"a": [1.0, 1.0], "b": [2.0, 2.0]}


def test_median_ratio_is_that_of_the_items() -> None:
    assert median_ratio([2.0, 9.0, 40.0], [1.0, 3.0, 10.0]) == 3.0


@pytest.mark.anyio
async def test_hand_written_cache_fetches_an_origin_once() -> None:
    fetched = []

    class Parsed:
        def can_fetch(self, url: str, agent: str) -> bool:
            return "private" not in url and agent == AGENT

    async def fetch(key: tuple[str, str]) -> Parsed:
        fetched.append(key)
        return Parsed()

    cache = HandWrittenCache(fetch, max_origins=9)
    answers = [
        await cache.can_fetch(AGENT, f"https://example.com:8443/{path}")
        for path in ("private", "public")
    ]

    assert answers == [False, True]
    assert fetched == [("https", "example.com:8443")]


# --- reports --------------------------------------------------------------------

TABLE = Table(
    name="speed",
    title="Speed",
    columns=("who", "µs", "ratio"),
    rows=(("ours", 1.234, 1.0), ("a*b|c", 1234.5, None)),
    notes=("The best of 3.",),
)


@pytest.mark.parametrize(
    ("value", "is_ceiling", "standing"),
    [
        (5.0, False, Standing.STRETCH),
        (4.0, False, Standing.MET),
        (3.9, False, Standing.MISSED),
        (3.9, True, Standing.MET),
        (4.1, True, Standing.MISSED),
        (None, False, Standing.UNMEASURED),
    ],
)
def test_bar_tells_how_a_figure_stands(
    *, value: float | None, is_ceiling: bool, standing: Standing
) -> None:
    stretch = 3.0 if is_ceiling else 5.0
    bar = Bar(what="x", value=value, bar=4, stretch=stretch, is_ceiling=is_ceiling)

    assert bar.standing is standing


def test_missed_bars_are_counted() -> None:
    bars = (
        Bar(what="speed", value=3, bar=4, stretch=5),
        Bar(what="memory", value=0.2, bar=0.25, is_ceiling=True),
    )

    assert missed(bars) == ("1 of 2 bars were missed; the last column says which.")
    assert missed(bars[1:]) == "No bar was missed in this run."


def test_table_is_shown_in_a_terminal() -> None:
    assert plain_text(TABLE).splitlines() == [
        "== Speed",
        "who       µs  ratio",
        "ours    1.23   1.00",
        "a*b|c  1,234      \N{EN DASH}",
        "(The best of 3.)",
    ]


def test_table_is_shown_in_a_page() -> None:
    assert markdown(TABLE).splitlines() == [
        "| who | µs | ratio |",
        "|---|---:|---:|",
        "| ours | 1.23 | 1.00 |",
        "| a\\*b\\|c | 1,234 | \N{EN DASH} |",
        "",
        "The best of 3.",
    ]


def test_run_survives_its_file() -> None:
    bar = Bar(what="x", value=5.0, bar=4, stretch=None, unit="ms", is_ceiling=True)
    run = Run(surroundings={"cores": "2"}, tables=(TABLE,), bars=(bar,))

    assert Run.from_json(run.as_json()) == run


def test_run_has_a_part_of_a_page_for_each_table() -> None:
    run = Run(surroundings={"cores": "2"}, tables=(TABLE,), bars=())

    parts = run.parts("real ")

    assert parts == {
        "real table speed": markdown(TABLE),
        "real surroundings": "- cores: 2",
    }


def test_only_marked_and_known_parts_of_a_page_change() -> None:
    page = (
        "Before.\n\n<!-- begin: a -->\nold\n<!-- end: a -->\n\n"
        "<!-- begin: b -->\nkept\n<!-- end: b -->\n"
    )

    changed = rewritten(page, {"a": "new", "c": "nowhere"})

    assert changed == page.replace("\nold\n", "\n\nnew\n\n")
    assert rewritten(changed, {"a": "new"}) == changed
