"""Separate processes that share a store: few fetches and no wrong verdicts."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.fleet.fleet import run_fleet
from tests.fleet.page import PAGES
from tests.fleet.promises import broken_promises

pytestmark = pytest.mark.slow


def test_fleet_with_leases_fetches_each_origin_once() -> None:
    figures = run_fleet(processes=3, sites=20, rounds=3)

    assert broken_promises(figures, has_leases=True, was_restarted=False) == []
    assert figures.gets_by_site == Counter(range(20))
    assert figures.verdicts == 3 * 20 * 3 * PAGES


def test_fetches_of_killed_workers_are_taken_over() -> None:
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


def test_fleet_keeps_working_while_its_server_restarts() -> None:
    figures = run_fleet(processes=3, sites=20, rounds=4, restarts=True)

    assert broken_promises(figures, has_leases=True, was_restarted=True) == []
    assert figures.gets_by_site.total() <= 3 * 20 + 20


def test_fleet_sharing_a_sqlite_file_gives_correct_answers() -> None:
    figures = run_fleet(processes=3, sites=20, rounds=3, store="sqlite")

    assert broken_promises(figures, has_leases=False, was_restarted=False) == []
    assert figures.gets_by_site.total() <= 3 * 20
