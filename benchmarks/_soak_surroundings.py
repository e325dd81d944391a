"""What goes wrong beside the origins of a soak: its store and its listener."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import anyio

from robotsgate import MemoryStore, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from robotsgate import CheckerEvent
    from robotsgate.caching._entry import Entry

__all__ = ["BadListener", "BadStore"]


class BadStore(MemoryStore):
    """A store of which some operations raise, hang, or give rubbish."""

    def __init__(self, chance: Random, *, share: float) -> None:
        """Fail in a share of all operations, 0 to 1."""
        super().__init__()
        self._chance = chance
        self._share = share

    async def get(self, origin: str) -> Entry | None:
        """The entry of `origin`, or something worse."""
        if self._fails():
            await self._fail()
            return cast("Entry", "rubbish")
        return await super().get(origin)

    async def put(self, entry: Entry) -> None:
        """Keep `entry`, or lose it."""
        if self._fails():
            await self._fail()
            raise StoreError("the disk is full")
        await super().put(entry)

    def _fails(self) -> bool:
        return self._chance.random() < self._share

    async def _fail(self) -> None:
        """One of several ways; if it returns, the caller finds another one."""
        way = self._chance.randrange(4)
        if way == 0:
            raise OSError("the disk is gone")
        if way == 1:
            raise StoreError("the store is locked")
        if way == 2:
            await anyio.sleep_forever()


class BadListener:
    """Tells of each event, and raises after some of them."""

    def __init__(
        self, tell: Callable[[CheckerEvent], None], chance: Random, *, share: float
    ) -> None:
        """Raise after a share of all events, 0 to 1."""
        self._tell = tell
        self._chance = chance
        self._share = share

    def __call__(self, event: CheckerEvent) -> None:
        """Hear of `event`."""
        self._tell(event)
        if self._chance.random() < self._share:
            raise RuntimeError("the listener has an error of its own")
