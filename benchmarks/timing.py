"""Lets contenders take turns, and times each turn in the same way.

The garbage collector runs before a turn and is off during it. Other programs only
ever make a turn longer, so the shortest one counts; and long turns are timed in slices
of some milliseconds, because on a busy machine nobody is left alone for longer.
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

# So many questions take about a millisecond.
_SLICE = 500

_TURNS_OF_DEAR = 2

_Item = TypeVar("_Item")


async def best_of_turns(
    turns: Mapping[str, Callable[[], Awaitable[Sequence[float]]]],
    *,
    repeats: int,
    dear: Collection[str] = (),
) -> dict[str, list[float]]:
    """The least that each contender found of each figure.

    Args:
        turns: by name, taken A, B, C, A, B, C; each returns the same number of figures.
        repeats: how many rounds, ≥ 1.
        dear: names of those whose turns are so long that they have few.
    """
    samples: dict[str, list[Sequence[float]]] = {name: [] for name in turns}
    gc.collect()
    gc.freeze()  # what was set up before need not be looked at between the turns
    for number in range(repeats):
        for name, turn in turns.items():
            if number < _TURNS_OF_DEAR or name not in dear:
                samples[name].append(await turn())
    gc.unfreeze()
    return {
        name: [min(figures) for figures in zip(*those, strict=True)]
        for name, those in samples.items()
    }


async def seconds_of_each(
    works: Iterable[Awaitable[object]], *, clock: Callable[[], float] = perf_counter
) -> list[float]:
    """How long awaiting each of `works` takes, one after the other."""
    seconds = []
    with without_collector():
        for work in works:
            began = clock()
            await work
            seconds.append(clock() - began)
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


def median_ratio(those: Sequence[float], ours: Sequence[float]) -> float:
    """The median over the items of what `those` take for one second of `ours`."""
    return median(that / our for that, our in zip(those, ours, strict=True))


def slices(items: Sequence[_Item]) -> list[Sequence[_Item]]:
    """`items` in order, cut where a turn on them would grow too long."""
    return [items[start : start + _SLICE] for start in range(0, len(items), _SLICE)]
