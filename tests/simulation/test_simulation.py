"""Simulated days hold the promises, and a library that breaks one is found out."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import pytest

from robotsgate import AccessResult, Reason
from tests.caching.builders import PRESETS

from .__main__ import main
from .answers import ANSWERS
from .loops import run_on
from .replay import replay_of
from .sabotage import SABOTAGES
from .scenario import Action
from .simulation import Report, SimulationError, run_seed
from .store import Mood

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .sabotage import Sabotage

BOTH_LOOPS = pytest.mark.parametrize("backend", ["asyncio", "trio"])

FEW_SEEDS = range(6)
MANY_SEEDS = range(100, 160)

# Everything that the seeds must have seen to be worth something.
EVENTS = [
    *(f"access {access.value}" for access in AccessResult),
    *(f"answer {answer.name}" for answer in ANSWERS),
    *(f"call of {action.value}" for action in Action),
    *(f"policy {name}" for name in (*PRESETS, "a random policy")),
    *(f"store {mood.value}" for mood in Mood),
    *(
        f"step {name}"
        for name in ("Advance", "AdvanceToTurn", "Ask", "Change", "Jump", "LoseEntry")
    ),
    "entry of the store",
    "event AccessChanged",
    "event StoreFailed",
    "fetch before its time, on demand",
    "question that joined a fetch",
    "verdict by a stale copy",
    f"no: {Reason.ADDRESS_REFUSED.value}",
    f"no: {Reason.DISALLOWED_BY_RULE.value}",
    f"no: {Reason.RESTRICTED.value}",
    f"no: {Reason.UNREACHABLE.value}",
    f"no: {Reason.UNREACHABLE_TOO_LONG.value}",
    f"no: {Reason.OVERRIDDEN.value}",
    f"yes: {Reason.OVERRIDDEN.value}",
    f"yes: {Reason.ALLOWED_BY_RULE.value}",
    f"yes: {Reason.NO_GROUP.value}",
    f"yes: {Reason.NO_MATCHING_RULE.value}",
    f"yes: {Reason.ROBOTS_TXT.value}",
    f"yes: {Reason.UNAVAILABLE.value}",
    f"yes: {Reason.UNREACHABLE_TOO_LONG.value}",
]


@pytest.fixture(autouse=True)
def _no_log() -> Iterator[None]:
    """Stores fail by the thousand here, and each time it is logged."""
    logger = logging.getLogger("robotsgate")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


@BOTH_LOOPS
def test_whatever_happens_every_promise_is_kept(backend: str) -> None:
    assert simulated(backend, FEW_SEEDS).questions > 500


@pytest.mark.slow
@BOTH_LOOPS
def test_many_seeds_see_everything_and_keep_every_promise(backend: str) -> None:
    total = simulated(backend, MANY_SEEDS)

    assert total.days > 10_000
    assert total.cancelled > 100
    assert [event for event in EVENTS if not total.seen[event]] == []


@pytest.mark.parametrize(("sabotage", "complaint"), SABOTAGES.values(), ids=SABOTAGES)
def test_mistake_in_the_library_is_noticed(
    sabotage: Sabotage, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)

    assert any(complaint in what for what in complaints())


def test_command_tells_a_failing_seed_each_time_in_the_same_few_steps(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    SABOTAGES["outage forgets the copy"][0](monkeypatch)
    monkeypatch.setattr(sys, "argv", ["simulation", "--replay", "1"])

    told = []
    for _ in range(2):
        assert main() == 1
        told.append(capsys.readouterr().out)

    assert told[0] == told[1]
    assert "again: python -m tests.simulation --replay 1 --backend asyncio" in told[0]
    # An answer comes, the origin fails, somebody asks: few others are needed.
    assert told[0].count("\n") < 40


def simulated(backend: str, seeds: range) -> Report:
    """What happened in the simulations of `seeds`; one that fails fails the test."""
    total = Report()
    for seed in seeds:
        try:
            total.add(run_on(backend, run_seed, seed))
        except SimulationError as error:
            pytest.fail(replay_of(seed, error, backend=backend), pytrace=False)
    return total


def complaints() -> Iterator[str]:
    """What is wrong with the first seeds, one after the other."""
    for seed in range(20):
        try:
            run_on("asyncio", run_seed, seed)
        except SimulationError as error:
            yield from error.what
