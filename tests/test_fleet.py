"""Processes of their own on one Redis server: one GET each, and no wrong verdict."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fleet.__main__ import main
from tests.fleet.fleet import Figures, run_fleet
from tests.fleet.page import PAGES
from tests.fleet.promises import broken_promises
from tests.fleet.worker import Round

pytestmark = pytest.mark.slow


def test_fleet_with_leases_asks_each_origin_once() -> None:
    figures = run_fleet(processes=3, sites=20, rounds=3)

    assert broken_promises(figures, has_leases=True, was_restarted=False) == []
    assert figures.gets_by_site == Counter(range(20))
    assert figures.verdicts == 3 * 20 * 3 * PAGES


def test_killed_worker_is_taken_over_from() -> None:
    figures = run_fleet(
        processes=3,
        sites=20,
        rounds=2,
        kills=True,
        fetch_deadline=3.0,
        store_timeout=2.0,
    )

    assert broken_promises(figures, has_leases=True, was_restarted=False) == []
    assert len(figures.held) == 4
    assert 24 <= figures.gets_by_site.total() <= 20 + len(figures.by_victim)


def test_fleet_goes_on_while_its_server_is_stopped_and_comes_back() -> None:
    figures = run_fleet(processes=3, sites=20, rounds=4, restarts=True)

    assert broken_promises(figures, has_leases=True, was_restarted=True) == []
    assert figures.gets_by_site.total() <= 3 * 20 + 20


def test_fleet_on_one_file_answers_rightly() -> None:
    figures = run_fleet(processes=3, sites=20, rounds=3, store="sqlite")

    assert broken_promises(figures, has_leases=False, was_restarted=False) == []
    assert figures.gets_by_site.total() <= 3 * 20


def test_command_says_what_was_asked(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["--processes", "2", "--origins", "5", "--rounds", "1"])

    assert status == 0
    assert "5 GETs, 0 of 60 verdicts wrong" in capsys.readouterr().out


def _figures(**changes: object) -> Figures:
    """A fleet of two that kept its promises about two sites."""
    done = Round(
        verdicts=2 * PAGES,
        wrong=0,
        fetches=1,
        store_failures=0,
        store_skips=0,
        seconds=1.0,
    )
    figures = Figures(
        processes=2, sites=2, rounds=[[done, done]], gets=[Counter([0, 1])]
    )
    for name, value in changes.items():
        setattr(figures, name, value)
    return figures


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"gets": [Counter([0, 1, 1])]}, "origin 1 was asked 2 times"),
        ({"gets": [Counter([0])]}, "1 origins were never asked"),
        ({"rounds": [[]]}, "expected 24 verdicts, got 0"),
        ({"held": [0], "by_victim": {0}}, "nobody has taken over origin 0"),
    ],
)
def test_broken_promise_is_named(changes: dict[str, object], sentence: str) -> None:
    figures = _figures(**changes)

    broken = broken_promises(figures, has_leases=True, was_restarted=False)

    assert sentence in "\n".join(broken)
