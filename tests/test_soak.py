"""The soak in small: its promises hold, and it would say so if they did not.

The whole of it is a command, `python -m benchmarks.soak`, and takes minutes.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio._core._thread_cache

from benchmarks import soak
from benchmarks._soak_script import (
    FAULTS,
    KINDS,
    Effect,
    Script,
    Standing,
    allows,
    body,
    paths,
)
from benchmarks._soak_servers import ANSWERS, REFUSES
from benchmarks.report import Standing as StandingOfBar
from benchmarks.soak import Found, Held, Round, Soak, bars, exit_status, run_of, soaked
from robotsgate import RobotsTxt

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE = Path(__file__).parents[1] / "docs/explanation/soak.md"
MIB = 2**20

# With this seed, most of the time passes in one round of the four, in which an
# origin drips until the deadline.
SMALL = Soak(
    origins=40,
    checks=600,
    concurrency=50,
    rounds=4,
    deadline=3.0,
    silence=1.0,
    seed=1537,
)
WELL = replace(SMALL, checks=120, faults=0.0)
OLDEST = Standing(Effect.RULES, 0)

HELD = Held(resident=50 * MIB, descriptors=10, tasks=1, threads=1)
ROUND = Round(seconds=2.0, asked=100, fetches=50, joined=10, held=HELD)
FOUND = Found(
    start=HELD,
    end=HELD,
    rounds=(ROUND,) * 5,
    counts=Counter(asked=500, fetches=250),
    attempts=Counter({"says nothing": 3}),
    reports=(),
)

needs_linux = pytest.mark.skipif(
    sys.platform != "linux", reason="needs all of 127.0.0.0/8, and /proc"
)


def missed(found: Found) -> list[str]:
    """What was promised and not held."""
    return [bar.what for bar in bars(found) if bar.standing is not StandingOfBar.MET]


def held(**more: int) -> Held:
    return replace(HELD, **more)


# --- what origins do ------------------------------------------------------------


@pytest.fixture
def script() -> Script:
    return Script(seed=1, origins=1_000, faults=0.2)


def test_each_kind_of_origin_has_an_answer_but_the_one_that_refuses() -> None:
    assert set(KINDS) - set(ANSWERS) == {REFUSES}
    assert set(ANSWERS) < set(KINDS)


def test_share_of_faults_is_about_the_same_in_each_round(script: Script) -> None:
    for round_ in range(10):
        kinds = [script.kind(origin, round_) for origin in range(1_000)]

        assert 150 <= sum(kind in FAULTS for kind in kinds) <= 250


def test_every_kind_is_played(script: Script) -> None:
    played = {
        script.kind(origin, round_) for origin in range(1_000) for round_ in range(3)
    }

    assert played == set(KINDS)


def script_that_says(told: list[str]) -> Script:
    """A script for one origin, kind by kind."""

    class Told(Script):
        def kind(self, origin: int, round_: int) -> str:
            assert origin == 0
            return told[round_]

    return Told(seed=0, origins=1, faults=0.0)


GOOD, GONE, DOWN, INSIDE = (
    "sends a file",
    "answers 404",
    "answers 500",
    "redirects to an address inside",
)


@pytest.mark.parametrize(
    ("told", "last"),
    [
        pytest.param([GOOD], Standing(Effect.RULES, 0), id="a file"),
        pytest.param([GOOD, GOOD], Standing(Effect.RULES, 1), id="a newer file"),
        pytest.param([GONE], Standing(Effect.EVERYTHING), id="no file"),
        pytest.param([DOWN], Standing(Effect.NOTHING), id="down, and no copy"),
        pytest.param([GOOD, DOWN], OLDEST, id="down, with a copy"),
        pytest.param([GOOD, *[DOWN] * 4], OLDEST, id="down for 24 days"),
        pytest.param(
            [GOOD, *[DOWN] * 5], Standing(Effect.EVERYTHING), id="down for 32 days"
        ),
        pytest.param([GOOD, GONE, DOWN], Standing(Effect.NOTHING), id="copy is gone"),
        pytest.param([GOOD, INSIDE], Standing(Effect.NOTHING_AT_ALL), id="refused"),
        pytest.param([GOOD, INSIDE, DOWN], Standing(Effect.NOTHING), id="dropped"),
    ],
)
def test_what_is_in_force_follows_from_what_the_origin_did(
    told: list[str], last: Standing
) -> None:
    script = script_that_says(told)

    assert script.standings(0, len(told))[-1] == last


@pytest.mark.parametrize("agent", ["SoakBot", "OtherBot"])
def test_what_is_expected_of_rules_is_what_the_file_says(agent: str) -> None:
    robots_txt = RobotsTxt.parse(body(7, 2))
    asked = [*paths(7, 2), *paths(7, 1), *paths(8, 2), "/", "/robots.txt"]

    for path in asked:
        assert allows(
            Standing(Effect.RULES, 2), origin=7, agent=agent, path=path
        ) is robots_txt.can_fetch(agent, path)


@pytest.mark.parametrize(
    ("effect", "page", "robots_txt"),
    [
        (Effect.EVERYTHING, True, True),
        (Effect.NOTHING, False, True),
        (Effect.NOTHING_AT_ALL, False, False),
    ],
)
def test_what_is_expected_without_rules(
    effect: Effect, *, page: bool, robots_txt: bool
) -> None:
    def answer(path: str) -> bool:
        return allows(Standing(effect), origin=0, agent="SoakBot", path=path)

    assert answer("/page") is page
    assert answer("/robots.txt") is robots_txt


# --- what was promised ----------------------------------------------------------


def test_run_without_a_fault_of_ours_holds_all_promises() -> None:
    run = run_of(SMALL, FOUND, {})

    assert missed(FOUND) == []
    assert exit_status(run) == 0


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"counts": Counter(asked=500, wrong=1)}, "wrong answers"),
        (
            {"counts": Counter({"asked": 500, "odd fetches": 1})},
            "fetches that came to something else",
        ),
        (
            {"counts": Counter(asked=500, knocks=1)},
            "connections to addresses inside",
        ),
        (
            {
                "rounds": (
                    *(ROUND,) * 3,
                    replace(ROUND, held=held(resident=59 * MIB)),
                )
            },
            "memory, more than after the warm-up",
        ),
        ({"end": held(descriptors=11)}, "file descriptors, more than at the start"),
        ({"end": held(tasks=2)}, "tasks, more than at the start"),
        ({"end": held(threads=2)}, "threads, more than at the start"),
    ],
)
def test_broken_promise_is_missed_and_makes_the_command_fail(
    change: Mapping[str, object], what: str
) -> None:
    found = replace(FOUND, **change)

    assert missed(found) == [what]
    assert exit_status(run_of(SMALL, found, {})) == 1


def test_memory_may_grow_until_it_is_warm() -> None:
    cold = replace(ROUND, held=held(resident=20 * MIB))

    assert missed(replace(FOUND, rounds=(cold, cold, ROUND, ROUND))) == []


def test_each_table_has_its_place_in_the_page() -> None:
    run = run_of(SMALL, FOUND, {})

    places = re.findall(
        r"^<!-- begin: (.+) -->$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )

    parts = [*run.parts("asyncio "), *run.parts("trio ")]
    assert set(places) <= set(parts)
    assert {f"{loop} table bars" for loop in ("asyncio", "trio")} <= set(places)


# --- the soak itself ------------------------------------------------------------


@pytest.fixture
def _quick_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads of trio end at once, and not after ten seconds."""
    monkeypatch.setattr(trio._core._thread_cache, "IDLE_TIMEOUT", 0.1, raising=False)


@needs_linux
@pytest.mark.usefixtures("_quick_threads")
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_promises_hold_with_a_fifth_of_all_origins_not_well(loop: str) -> None:
    found = soaked(replace(SMALL, loop=loop))

    assert found.reports == ()
    assert missed(found) == []
    assert found.counts["asked"] >= 600
    assert found.counts["joined"] > 0
    assert found.counts["unreachable"] > 0
    assert sum(found.attempts.values()) == found.counts["fetches"]


@needs_linux
@pytest.mark.usefixtures("_quick_threads")
def test_answer_that_is_not_the_expected_one_is_reported() -> None:
    def wrongly(standing: Standing, *, origin: int, agent: str, path: str) -> bool:
        answer = allows(standing, origin=origin, agent=agent, path=path)
        return answer if origin != 17 else not answer

    found = soaked(WELL, expected=wrongly)

    assert found.counts["wrong"] == len(found.reports) > 0
    assert missed(found) == ["wrong answers"]
    assert exit_status(run_of(WELL, found, {})) == 1
    for report in found.reports:
        assert "origin 17, which " in report
        assert "should get False: got True" in report or (
            "should get True: got False" in report
        )


@needs_linux
@pytest.mark.usefixtures("_quick_threads")
def test_command_writes_page_and_file_and_says_that_all_is_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page, file = tmp_path / "page.md", tmp_path / "found.json"
    page.write_text(
        "<!-- begin: trio table totals -->\n<!-- end: trio table totals -->\n",
        encoding="utf-8",
    )
    words = ["--origins=20", "--checks=200", "--concurrency=20", "--faults=0"]
    words += ["--loop=trio", f"--json={file}", f"--page={page}"]

    status = soak.main(words)

    assert status == 0
    assert "The soak, on trio" in capsys.readouterr().out
    run = soak.Run.from_json(file.read_text(encoding="utf-8"))
    assert [table.name for table in run.tables] == ["totals", "rounds", "kinds"]
    assert "| origins | 20 |" in page.read_text(encoding="utf-8")
