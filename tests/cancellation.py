"""Cancels work at any chosen suspension point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator


class _CancelledAt:
    """Awaits `work`, and cancels `scope` when it suspends for the n-th time."""

    def __init__(
        self, work: Awaitable[object], scope: anyio.CancelScope, number: int
    ) -> None:
        self._work = work
        self._scope = scope
        self._remaining = number

    def __await__(self) -> Generator[Any, Any, object]:
        steps = self._work.__await__()
        answer, error = None, None
        while True:
            try:
                request = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value
            self._remaining -= 1
            if self._remaining == 0:
                self._scope.cancel()
            answer, error = None, None
            try:
                answer = yield request
            except BaseException as thrown:  # noqa: BLE001 (passed on to the work)
                error = thrown


async def cancelled_at(number: int, work: Callable[[], Awaitable[object]]) -> bool:
    """Run `work`, and cancel it when it suspends for the `number`-th time.

    Returns:
        Whether it was cancelled, rather than finishing before.
    """
    with anyio.CancelScope() as scope:
        await _CancelledAt(work(), scope, number)
    return scope.cancelled_caught
