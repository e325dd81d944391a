"""A small soak test, and the judge of the soak test."""

from __future__ import annotations

import sys
from dataclasses import replace

import pytest

from benchmarks.page import Bar
from tests.soak import __main__ as command
from tests.soak import soak
from tests.soak.judge import expectations
from tests.soak.servers import Outcome

pytestmark = pytest.mark.slow


@pytest.mark.skipif(sys.platform != "linux", reason="needs all of 127.0.0.0/8")
@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_small_soak_meets_all_requirements(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "_THREAD_SETTLING_SECONDS", 0)
    quick = replace(soak._POLICY, fetch_deadline=6.0, read_timeout=1.5)
    monkeypatch.setattr(soak, "_POLICY", quick)
    small = soak.Soak(origins=40, checks=600, rounds=3, concurrency=50, loop=loop)

    figures = command.run_soak(small)

    missed = {bar.what for bar in figures if isinstance(bar, Bar) and bar.is_missed}
    assert missed <= {"additional threads at the end"}  # trio ends them late


@pytest.mark.parametrize(("fetches", "effects"), [
    (["RULES"] + ["NOTHING"] * 5, ["RULES"] * 5 + ["NOTHING"]),
    (["RULES"] + ["ERROR"] * 5, ["RULES"] * 5 + ["EVERYTHING"]),
    (["NO_FILE"] + ["ERROR"] * 5, ["EVERYTHING"] + ["NOTHING"] * 4 + ["EVERYTHING"]),
    (["REFUSAL"] + ["ERROR"] * 5, ["NOTHING_AT_ALL"] * 6),
    (["RULES", "MISSING_PAGE"], ["RULES", "RULES"]),
    (["NOTHING", "MISSING_PAGE"], ["NOTHING", "EVERYTHING"]),
])  # fmt: skip
def test_judge_works_out_what_applies_in_each_round(
    fetches: list[str], effects: list[str]
) -> None:
    rounds = expectations([Outcome[fetch] for fetch in fetches])

    assert [expected.effect.name for expected in rounds] == effects
