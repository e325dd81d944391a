"""No simulation leads to a complaint, and every sabotage does."""

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

# Everything that must happen at least once in the slow test.
EVENTS = [
    *(f"access {access.value}" for access in AccessResult),
    *(f"answer {answer.name}" for answer in ANSWERS),
    *(f"call of {action.value}" for action in Action),
    *(f"policy {name}" for name in (*PRESETS, "a random policy")),
    *(f"store {mood.value}" for mood in Mood),
    *(
        f"step {name}"
        for name in (
            "Advance",
            "AdvanceToTransition",
            "Calls",
            "Change",
            "Jump",
            "LoseEntry",
        )
    ),
    "entry read from the store",
    "event StoreFailed",
    "changed access result",
    "early fetch on request",
    "lookup that joined a fetch",
    "verdict from a stale copy",
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
    """Stores fail thousands of times here, and every failure is logged."""
    logger = logging.getLogger("robotsgate")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


@BOTH_LOOPS
def test_few_seeds_pass(backend: str) -> None:
    assert simulate(backend, FEW_SEEDS).calls > 500


@pytest.mark.slow
@BOTH_LOOPS
def test_many_seeds_pass_and_cover_every_event(backend: str) -> None:
    total = simulate(backend, MANY_SEEDS)

    assert total.days > 10_000
    assert total.cancelled > 100
    assert [event for event in EVENTS if not total.seen[event]] == []


@pytest.mark.parametrize(("sabotage", "complaint"), SABOTAGES.values(), ids=SABOTAGES)
def test_sabotage_leads_to_its_complaint(
    sabotage: Sabotage, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)

    assert any(complaint in text for text in complaints())


def test_command_prints_the_same_few_steps_for_a_failing_seed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    SABOTAGES["outage forgets the copy"][0](monkeypatch)
    monkeypatch.setattr(sys, "argv", ["simulation", "--replay", "1"])

    outputs = []
    for _ in range(2):
        assert main() == 1
        outputs.append(capsys.readouterr().out)

    assert outputs[0] == outputs[1]
    assert (
        "again: python -m tests.simulation --replay 1 --backend asyncio" in outputs[0]
    )
    # An answer, an outage and a lookup suffice; the list has few other steps.
    assert outputs[0].count("\n") < 40


def simulate(backend: str, seeds: range) -> Report:
    """The totals of `seeds`; fails the test at the first that fails."""
    total = Report()
    for seed in seeds:
        try:
            total.add(run_on(backend, run_seed, seed))
        except SimulationError as error:
            pytest.fail(replay_of(seed, error, backend=backend), pytrace=False)
    return total


def complaints() -> Iterator[str]:
    """The complaints of the first seeds."""
    for seed in range(20):
        try:
            run_on("asyncio", run_seed, seed)
        except SimulationError as error:
            yield from error.complaints
