"""Lets contenders take turns, and times each turn in the same way.

A turn is timed with the garbage collector off, after a collection, whoever's turn
it is. Other programs only ever make a turn longer, so the shortest one counts; and
long turns are timed in slices of some milliseconds, because on a busy machine nobody
is left alone for longer.
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

__all__ = [
    "least",
    "least_in_slices",
    "least_of_each",
    "median_ratio",
    "seconds_of",
    "seconds_of_each",
    "slices",
    "take_turns",
    "without_collector",
]

# So many questions take about a millisecond.
_SLICE = 500

_TURNS_OF_DEAR = 2

_Sample = TypeVar("_Sample")


async def take_turns(
    turns: Mapping[str, Callable[[], Awaitable[_Sample]]],
    *,
    repeats: int,
    dear: Collection[str] = (),
) -> dict[str, list[_Sample]]:
    """What each contender returned, A, B, C, A, B, C, and so on.

    Args:
        turns: by name; each returns its own measurement.
        repeats: how many rounds, ≥ 1.
        dear: names of those whose turns are so long that they have few.
    """
    samples: dict[str, list[_Sample]] = {name: [] for name in turns}
    gc.collect()
    gc.freeze()  # what was set up before need not be looked at between the turns
    for number in range(repeats):
        for name, turn in turns.items():
            if number < _TURNS_OF_DEAR or name not in dear:
                samples[name].append(await turn())
    gc.unfreeze()
    return samples


async def seconds_of(work: Awaitable[object]) -> float:
    """How long awaiting `work` takes."""
    with without_collector():
        began = perf_counter()
        await work
        return perf_counter() - began


async def seconds_of_each(works: Iterable[Awaitable[object]]) -> list[float]:
    """How long awaiting each of `works` takes, one after the other."""
    seconds = []
    with without_collector():
        for work in works:
            began = perf_counter()
            await work
            seconds.append(perf_counter() - began)
    return seconds


@contextmanager
def without_collector() -> Iterator[None]:
    """Collect garbage now, and not again before the end of the block."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def least_in_slices(
    samples: Mapping[str, Sequence[Sequence[float]]],
) -> dict[str, float]:
    """For each contender the sum over its slices of its best turn on each."""
    return {name: sum(best) for name, best in least_of_each(samples).items()}


def least(samples: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """The best turn of each contender."""
    return {name: min(turns) for name, turns in samples.items()}


def least_of_each(
    samples: Mapping[str, Sequence[Sequence[float]]],
) -> dict[str, list[float]]:
    """For each contender the best of its turns on each item."""
    return {
        name: [min(turns) for turns in zip(*by_turn, strict=True)]
        for name, by_turn in samples.items()
    }


def median_ratio(those: Sequence[float], ours: Sequence[float]) -> float:
    """The median over the items of what `those` take for one second of `ours`."""
    return median(that / our for that, our in zip(those, ours, strict=True))


def slices(items: Sequence[_Sample]) -> list[Sequence[_Sample]]:
    """`items` in order, cut where a turn on them would grow too long."""
    return [items[start : start + _SLICE] for start in range(0, len(items), _SLICE)]
