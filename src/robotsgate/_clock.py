"""The only module that knows the time; everything else is handed a number."""

from __future__ import annotations

import time
from typing import Protocol

import anyio


class Clock(Protocol):
    """Where the checker asks for the time.

    `now` must not block and must not raise.
    It may jump in either direction: the checker copes with a clock that is set.
    """

    def now(self) -> float:
        """Seconds since the epoch (UTC), fractions included."""
        ...


class SystemClock:
    """The wall clock of this machine.

    Wall-clock and not monotonic time, because entries outlive the process and
    are compared with dates in HTTP headers.
    """

    # A static builtin rather than a method: one call less on each check.
    now = staticmethod(time.time)


async def pause(seconds: float) -> None:
    """Let `seconds` of real time pass: for waiting on another process only.

    Whatever follows the time of a `Clock` compares numbers instead of waiting.
    """
    await anyio.sleep(seconds)
