"""Clocks. This is the only module that reads the time, and the only one that waits."""

from __future__ import annotations

import time
from typing import Protocol

import anyio


class Clock(Protocol):
    """Tells a checker the time, and waits.

    `now` and `monotonic` must not block and must not raise.
    """

    def now(self) -> float:
        """Seconds since the epoch (UTC), including fractions.

        May jump in either direction: the checker can handle a clock that is set.
        """
        ...

    def monotonic(self) -> float:
        """Seconds since an arbitrary moment; never goes back."""
        ...

    async def wait(self, seconds: float, *, event: anyio.Event | None = None) -> bool:
        """Wait until `seconds` have passed or `event` is set.

        Other tasks run at least once, even if there is nothing to wait for.

        Args:
            seconds: by `monotonic`; 0 or less just lets other tasks run.
            event: ends the wait as soon as it is set.

        Returns:
            Whether `event` is set.
        """
        ...


class SystemClock:
    """The clock of this machine.

    `now` is wall-clock time, because entries outlive the process and are compared with
    dates in HTTP headers.
    """

    # Static builtins instead of methods, which saves a call for each lookup.
    now: staticmethod[[], float] = staticmethod(time.time)
    monotonic: staticmethod[[], float] = staticmethod(time.monotonic)

    async def wait(self, seconds: float, *, event: anyio.Event | None = None) -> bool:
        """Wait until `seconds` have passed or `event` is set; whether it is set."""
        if event is None:
            await anyio.sleep(max(0.0, seconds))
            return False
        with anyio.move_on_after(seconds):
            await event.wait()
        return event.is_set()
