"""Interrupts work at any chosen suspension point."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import anyio
import pytest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator


WAYS = ["scope", "task"]
"""How to cancel: an anyio scope, or an asyncio task, whose `cancel` passes shields."""

each_way = pytest.mark.parametrize(
    ("anyio_backend", "way"),
    [*(("asyncio", way) for way in WAYS), ("trio", "scope")],
)


class InterruptedAt:
    """Awaits `work`, and calls `interrupt` when it suspends for the n-th time."""

    def __init__(
        self, number: int, work: Awaitable[object], interrupt: Callable[[], object]
    ) -> None:
        self._work = work
        self._interrupt = interrupt
        self.remaining = number

    def __await__(self) -> Generator[Any, Any, object]:
        steps = self._work.__await__()
        answer, error = None, None
        while True:
            try:
                request = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value
            self.remaining -= 1
            if self.remaining == 0:
                self._interrupt()
            answer, error = None, None
            try:
                answer = yield request
            except BaseException as thrown:  # noqa: BLE001 (passed on to the work)
                error = thrown


async def suspensions(work: Callable[[], Awaitable[object]]) -> int:
    """Run `work`, and return how often it suspended."""
    never = InterruptedAt(0, work(), lambda: None)
    await never
    return -never.remaining


async def cancelled_at(
    number: int, work: Callable[[], Awaitable[object]], *, way: str
) -> bool:
    """Run `work`, and cancel it when it suspends for the `number`-th time.

    Returns:
        Whether it was cancelled, rather than finishing before.
    """
    if way == "scope":
        with anyio.CancelScope() as scope:
            await InterruptedAt(number, work(), scope.cancel)
        return scope.cancelled_caught

    async def run() -> None:
        await InterruptedAt(number, work(), task.cancel)

    task = asyncio.create_task(run())
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()  # or its exception
    return task.cancelled()
