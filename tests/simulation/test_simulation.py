"""Simulated days hold the promises, and a library that breaks one is found out."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

import pytest

from robotsgate import AccessResult, Reason

from . import simulation
from .__main__ import main
from .answers import ANSWERS
from .loops import run_on
from .policies import PRESETS
from .replay import replay_of
from .sabotage import SABOTAGES, waiters_are_forgotten
from .scenario import Action, scenario
from .simulation import STEPS, Report, SimulationError, run, run_seed
from .store import Mood

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BOTH_LOOPS = pytest.mark.parametrize("backend", ["asyncio", "trio"])

FEW_SEEDS = range(6)
MANY_SEEDS = range(100, 160)

# A mistake in the library must be noticed within so many, those first that notice most.
SEEDS_TO_NOTICE = [128, 2, 28, 59, 11, 10, 6, *range(60)]

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


@BOTH_LOOPS
def test_same_seed_gives_the_same_run(backend: str) -> None:
    reports = [run_on(backend, run_seed, 7) for _ in range(2)]

    assert scenario(7, STEPS) == scenario(7, STEPS)
    assert reports[0] == reports[1]


@pytest.mark.slow
@pytest.mark.parametrize("sabotage", SABOTAGES.values(), ids=SABOTAGES)
def test_mistake_in_the_library_is_noticed(
    sabotage: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sabotage(monkeypatch)

    assert first_failure() is not None


def test_callers_that_are_never_answered_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waiters_are_forgotten(monkeypatch)
    monkeypatch.setattr(simulation, "PATIENCE", 0.2)

    failure = first_failure()

    assert failure is not None
    assert "somebody waits for ever" in failure[1].what


def test_failing_seed_is_told_as_few_steps_that_can_be_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    SABOTAGES["outage forgets the copy"](monkeypatch)
    failure = first_failure()
    assert failure is not None
    seed, error = failure

    told = replay_of(seed, error, backend="asyncio")

    assert f"python -m tests.simulation --replay {seed} --backend asyncio" in told
    # An answer comes, the origin fails, somebody asks: few others are needed.
    assert told.count("\n") < 40
    assert "answers: " in told
    with pytest.raises(SimulationError):
        run_on("asyncio", run, scenario(seed, STEPS))


@pytest.mark.parametrize("is_sabotaged", [False, True])
def test_command_says_whether_all_is_well(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *,
    is_sabotaged: bool,
) -> None:
    if is_sabotaged:
        SABOTAGES["entries are current for ever"](monkeypatch)
    monkeypatch.setattr(sys, "argv", ["simulation", "--replay", "3", "--verbose"])

    assert main() == is_sabotaged

    assert f"failing: {int(is_sabotaged)}" in capsys.readouterr().out


def simulated(backend: str, seeds: range) -> Report:
    """What happened in the simulations of `seeds`; one that fails fails the test."""
    total = Report()
    for seed in seeds:
        try:
            total.add(run_on(backend, run_seed, seed))
        except SimulationError as error:
            pytest.fail(replay_of(seed, error, backend=backend), pytrace=False)
    return total


def first_failure() -> tuple[int, SimulationError] | None:
    """The first seed that fails, and how."""
    for seed in SEEDS_TO_NOTICE:
        try:
            run_on("asyncio", run_seed, seed)
        except SimulationError as error:
            return seed, error
    return None
