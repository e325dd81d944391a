"""Cancels a piece of work at any of the places where it lets others run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator


class _CancelledAt:
    """Awaits like `work`, but cancels `scope` when that suspends the n-th time."""

    def __init__(
        self, work: Awaitable[object], scope: anyio.CancelScope, number: int
    ) -> None:
        self._work = work
        self._scope = scope
        self._left = number

    def __await__(self) -> Generator[Any, Any, object]:
        steps = self._work.__await__()
        answer, error = None, None
        while True:
            try:
                wish = steps.send(answer) if error is None else steps.throw(error)
            except StopIteration as end:
                return end.value
            self._left -= 1
            if self._left == 0:
                self._scope.cancel()
            answer, error = None, None
            try:
                answer = yield wish
            except BaseException as thrown:  # noqa: BLE001 (the loop's, passed on)
                error = thrown


async def cancelled_at(number: int, work: Callable[[], Awaitable[object]]) -> bool:
    """Run `work`, cancelled when it suspends for the `number`-th time.

    Returns:
        Whether it was cancelled; else it came to its end before.
    """
    with anyio.CancelScope() as scope:
        await _CancelledAt(work(), scope, number)
    return scope.cancelled_caught
