"""Work that ends when its owner is closed, with nothing of it left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import anyio

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_Result = TypeVar("_Result")


class UnderWay:
    """Pieces of work, each in the task of whoever began it.

    Attributes:
        is_closed: whether no more may begin.
    """

    def __init__(self, owner: str) -> None:
        """Nothing is under way.

        Args:
            owner: what is closed in the end, for the errors.
        """
        self._owner = owner
        self._scopes: set[anyio.CancelScope] = set()
        self._is_over: anyio.Event | None = None
        self.is_closed = False

    def check(self) -> None:
        """Refuse to begin or go on after the end.

        Raises:
            RuntimeError: the owner is closed.
        """
        if self.is_closed:
            raise RuntimeError(f"{self._owner} is closed")

    async def run(self, work: Callable[[], Awaitable[_Result]]) -> _Result:
        """The result of `work`, unless `aclose` comes before it.

        Raises:
            RuntimeError: the owner is closed.
        """
        self.check()
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                result = await work()
                self.check()
                return result
            finally:
                self._scopes.discard(scope)
                if self._is_over is not None and not self._scopes:
                    self._is_over.set()
        raise RuntimeError(f"{self._owner} is closed")

    async def aclose(self) -> None:
        """Cancel what is under way, and wait until it has ended."""
        self.is_closed = True
        if not self._scopes:
            return
        if self._is_over is None:
            self._is_over = anyio.Event()
        for scope in self._scopes:
            scope.cancel()
        await self._is_over.wait()
