"""Tells how a simulation failed: few steps that fail, and how to run them again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from .loops import run_on
from .scenario import Ask, scenario
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
    """How as few of `steps` as can be found fail; `None` if they no longer do."""
    error = _failure(steps, backend)
    size = len(steps) // 2
    while error is not None and size:
        steps, error = _without(steps, error, size, backend)
        size //= 2
    if error is not None:
        error = _with_fewer_callers(steps, error, backend)
    return error


def _without(
    steps: Sequence[tuple[int, Step]], error: SimulationError, size: int, backend: str
) -> tuple[Sequence[tuple[int, Step]], SimulationError]:
    """`steps` without whatever `size` of them in a row are not needed to fail."""
    start = 0
    while start < len(steps):
        fewer = [*steps[:start], *steps[start + size :]]
        failure = _failure(fewer, backend)
        if failure is None:
            start += size
        else:
            steps, error = fewer[: failure.number + 1], failure
    return steps, error


def _with_fewer_callers(
    steps: Sequence[tuple[int, Step]], error: SimulationError, backend: str
) -> SimulationError:
    for number, (salt, step) in enumerate(steps):
        callers = step.callers if isinstance(step, Ask) else ()
        needed = list(callers)
        for caller in callers if len(callers) > 1 else ():
            rest = tuple(other for other in needed if other is not caller)
            smaller = replace(step, callers=rest)
            fewer = [*steps[:number], (salt, smaller), *steps[number + 1 :]]
            failure = _failure(fewer, backend) if rest else None
            if failure is not None and failure.number == error.number:
                steps, error, needed = fewer, failure, list(rest)
    return error


def _failure(steps: Sequence[tuple[int, Step]], backend: str) -> SimulationError | None:
    try:
        run_on(backend, run, steps)
    except SimulationError as error:
        return error
    return None
