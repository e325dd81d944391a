"""Lets contenders take turns, and times every turn in the same way.

The garbage collector runs before a turn and is off during it. Other programs can only
make a turn slower, so the fastest turn counts. Long turns are timed in slices of a few
milliseconds, because nothing runs undisturbed for longer on a busy machine.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Collection,
        Iterable,
        Iterator,
        Mapping,
        Sequence,
    )

# This many lookups take about a millisecond.
_SLICE = 500

_TURNS_WHEN_SLOW = 2

_Item = TypeVar("_Item")


async def best_of_turns(
    turns: Mapping[str, Callable[[], Awaitable[Sequence[float]]]],
    *,
    repeats: int,
    slow: Collection[str] = (),
) -> dict[str, list[float]]:
    """The minimum of each figure for each contender.

    Args:
        turns: by name, run in the order A, B, C, A, B, C; each always returns the same
            number of figures.
        repeats: the number of rounds, ≥ 1.
        slow: the names of contenders that get only a few turns.
    """
    samples: dict[str, list[Sequence[float]]] = {name: [] for name in turns}
    gc.collect()
    gc.freeze()  # objects from the setup are not scanned between turns
    for number in range(repeats):
        for name, turn in turns.items():
            if number < _TURNS_WHEN_SLOW or name not in slow:
                samples[name].append(await turn())
    gc.unfreeze()
    return {
        name: [min(figures) for figures in zip(*turns_, strict=True)]
        for name, turns_ in samples.items()
    }


async def seconds_of_each(
    works: Iterable[Awaitable[object]], *, clock: Callable[[], float] = perf_counter
) -> list[float]:
    """The time to await each of `works`, one after the other."""
    seconds = []
    with without_collector():
        for work in works:
            began = clock()
            await work
            seconds.append(clock() - began)
    return seconds


@contextmanager
def without_collector() -> Iterator[None]:
    """Collect garbage now, but not during the block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def median_ratio(theirs: Sequence[float], ours: Sequence[float]) -> float:
    """The median of `theirs` / `ours` over all items."""
    return median(their / our for their, our in zip(theirs, ours, strict=True))


def slices(items: Sequence[_Item]) -> list[Sequence[_Item]]:
    """`items` in order, in slices short enough to be timed."""
    return [items[start : start + _SLICE] for start in range(0, len(items), _SLICE)]
