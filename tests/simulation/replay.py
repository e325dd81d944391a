"""Explains a failed simulation with as few steps as possible."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .loops import run_on
from .scenario import scenario
from .simulation import STEPS, SimulationError, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .scenario import Step

# One mistake can lead to a complaint for every path.
_MAX_COMPLAINTS = 2


def replay_of(seed: int, error: SimulationError, *, backend: str) -> str:
    """Describe the failure of `seed` and the steps that led to it."""
    steps = scenario(seed, STEPS)[: error.number + 1]
    shortest = _shortest(steps, backend) or error
    command = f"python -m tests.simulation --replay {seed} --backend {backend}"
    return "\n".join(
        [
            f"seed {seed} fails on {backend} at step {error.number}:",
            *error.complaints[:_MAX_COMPLAINTS],
            f"{len(shortest.log)} steps that also fail:",
            *shortest.log,
            *shortest.complaints[:_MAX_COMPLAINTS],
            f"to run it again: {command}",
            "",
        ]
    )


def _shortest(
    steps: Sequence[tuple[int, Step]], backend: str
) -> SimulationError | None:
    """The failure of `steps` without unnecessary ones; `None` if they pass."""
    shortest = None
    for number in reversed(range(len(steps))):
        fewer = [*steps[:number], *steps[number + 1 :]]
        error = _failure(fewer, backend)
        if error is not None:
            steps, shortest = fewer[: error.number + 1], error
    return shortest


def _failure(steps: Sequence[tuple[int, Step]], backend: str) -> SimulationError | None:
    try:
        run_on(backend, run, steps)
    except SimulationError as error:
        return error
    return None
