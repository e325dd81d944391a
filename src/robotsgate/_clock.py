"""Clocks. No other module reads the time or waits."""

from __future__ import annotations

import time
from typing import Protocol

import anyio

from robotsgate._public import set_module


@set_module("robotsgate")
class Clock(Protocol):
    """Tells a checker the time and waits on its behalf.

    `now` and `monotonic` must not block and must not raise.
    """

    def now(self) -> float:
        """Seconds since the epoch (UTC), including fractions.

        May jump in either direction: the checker copes with clock adjustments.
        """
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary point in time; never goes backwards."""
        ...

    async def wait(self, seconds: float, *, event: anyio.Event | None = None) -> bool:
        """Wait until `seconds` have passed or `event` is set.

        Yields to other tasks at least once, even if there is nothing to wait for.

        Args:
            seconds: measured by `monotonic`; 0 or less only yields to other tasks.
            event: ends the wait as soon as it is set.

        Returns:
            Whether `event` is set.
        """
        ...


@set_module("robotsgate")
class SystemClock:
    """The system clock.

    `now` is wall-clock time, because entries outlive the process and are compared with
    dates in HTTP headers.
    """

    # The builtins themselves, not methods, which saves one call per lookup.
    now: staticmethod[[], float] = staticmethod(time.time)
    monotonic: staticmethod[[], float] = staticmethod(time.monotonic)

    async def wait(self, seconds: float, *, event: anyio.Event | None = None) -> bool:
        """Wait for `seconds` or until `event` is set; return whether it is set."""
        if event is None:
            await anyio.sleep(max(0.0, seconds))
            return False
        with anyio.move_on_after(seconds):
            await event.wait()
        return event.is_set()
