"""Tells how a simulation failed: few steps that fail, and how to run them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .loops import run_on
from .scenario import scenario
from .simulation import STEPS, SimulationError, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .scenario import Step

# Where one thing is wrong, each question about it says so.
_MOST_COMPLAINTS = 2


def replay_of(seed: int, error: SimulationError, *, backend: str) -> str:
    """What is wrong with `seed`, and the steps that led to it, in words."""
    steps = scenario(seed, STEPS)[: error.number + 1]
    smaller = _smaller(steps, backend) or error
    command = f"python -m tests.simulation --replay {seed} --backend {backend}"
    return "\n".join(
        [
            f"seed {seed} fails on {backend} at step {error.number}:",
            *error.what[:_MOST_COMPLAINTS],
            f"{len(smaller.told)} steps that fail:",
            *smaller.told,
            *smaller.what[:_MOST_COMPLAINTS],
            f"again: {command}",
            "",
        ]
    )


def _smaller(steps: Sequence[tuple[int, Step]], backend: str) -> SimulationError | None:
    """How `steps` fail without those that are not needed; `None` if they do not."""
    smallest = None
    for number in reversed(range(len(steps))):
        fewer = [*steps[:number], *steps[number + 1 :]]
        error = _failure(fewer, backend)
        if error is not None:
            steps, smallest = fewer[: error.number + 1], error
    return smallest


def _failure(steps: Sequence[tuple[int, Step]], backend: str) -> SimulationError | None:
    try:
        run_on(backend, run, steps)
    except SimulationError as error:
        return error
    return None
