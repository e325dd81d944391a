"""Does one thing for many items, a bounded number of them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.lowlevel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

_Item = TypeVar("_Item")


async def for_each(
    items: Iterable[_Item], work: Callable[[_Item], Awaitable[None]], *, at_once: int
) -> None:
    """Do `work` for each of `items`; lets others run after each.

    Args:
        items: in the order in which they are begun.
        work: for one item.
        at_once: how many are under way at the same time at the most, ≥ 1.

    Raises:
        Exception: the first that `work` raises, and not a group; what is under
            way then is cancelled.
    """
    every = list(items)
    waiting = iter(every)
    failures: list[Exception] = []

    async def worker() -> None:
        for item in waiting:
            try:
                await work(item)
            except Exception as error:  # noqa: BLE001 (raised below, by itself)
                failures.append(error)
                tasks.cancel_scope.cancel()
                return
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        for _ in range(min(at_once, len(every))):
            tasks.start_soon(worker)
    if failures:
        raise failures[0]
