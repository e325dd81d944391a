"""Lets any number of callers that want the same thing cause one piece of work.

The first caller does the work in its own task; the others wait for its result.
When it is cancelled or fails, one of the others takes over: nobody inherits
another's cancellation or exception.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Hashable

_Result = TypeVar("_Result")


class _Flight(Generic[_Result]):
    __slots__ = ("is_over", "result")

    def __init__(self) -> None:
        self.is_over = anyio.Event()
        self.result: _Result | None = None


class SingleFlight(Generic[_Result]):
    """Pieces of work under way, by key."""

    def __init__(self) -> None:
        self._flights: dict[Hashable, _Flight[_Result]] = {}
        self.joined = 0
        """How many callers got the result of another's work."""

    def __len__(self) -> int:
        """How many pieces of work are under way."""
        return len(self._flights)

    async def run(
        self, key: Hashable, work: Callable[[], Awaitable[_Result]]
    ) -> _Result:
        """The result of `work`, done here or by whoever began it for `key` before.

        Args:
            key: what is wanted.
            work: does it; never returns `None`.

        Raises:
            Exception: what `work` raised in this very call.
        """
        while True:
            flight = self._flights.get(key)
            if flight is None:
                return await self._lead(key, work)
            await flight.is_over.wait()
            if flight.result is not None:
                self.joined += 1
                return flight.result

    async def _lead(
        self, key: Hashable, work: Callable[[], Awaitable[_Result]]
    ) -> _Result:
        flight = self._flights[key] = _Flight[_Result]()
        try:
            flight.result = await work()
        finally:
            del self._flights[key]
            flight.is_over.set()
        return flight.result
