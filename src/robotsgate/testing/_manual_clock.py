"""A clock for tests: time passes only when the test advances it."""

from __future__ import annotations

import math
from itertools import count

import anyio
import anyio.lowlevel


class ManualClock:
    """A clock that stands still until a test moves it.

    `advance` and `set` move it without waking any task. `pass_time` also wakes the
    tasks that are waiting on the clock, each at its time.
    """

    def __init__(self, start: float = 1_800_000_000.0) -> None:
        """Start at `start`, epoch seconds."""
        self._monotonic = 0.0
        # The time passed to `set`, and `monotonic` at that moment.
        self._was_set_to = float(start)
        self._was_set_at = 0.0
        # A key is (`monotonic` when the task is due, number in the order of waiting).
        self._waiters: dict[tuple[float, int], anyio.CancelScope] = {}
        self._turns = count()
        self._is_passing_time = False

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._was_set_to + (self._monotonic - self._was_set_at)

    def monotonic(self) -> float:
        """Seconds since the clock was created; `set` does not change it."""
        return self._monotonic

    async def wait(self, seconds: float, *, event: anyio.Event | None = None) -> bool:
        """Wait until `pass_time` has moved the clock by `seconds`, or `event` is set.

        Args:
            seconds: by `monotonic`; 0 or less just lets other tasks run.
            event: ends the wait as soon as it is set, even if no time passes.

        Returns:
            Whether `event` is set.
        """
        event = event or anyio.Event()
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return event.is_set()
        waiter = (self._monotonic + seconds, next(self._turns))
        with anyio.CancelScope() as self._waiters[waiter]:
            try:
                await event.wait()
            finally:
                self._waiters.pop(waiter, None)
        return event.is_set()

    def advance(self, seconds: float) -> None:
        """Advance the clock by `seconds` without waking any task.

        The next `pass_time` wakes the tasks that are due by then.

        Raises:
            ValueError: `seconds` is negative or not finite; use `set` to set the clock
                back.
        """
        self._monotonic = self._in(seconds)

    def set(self, now: float) -> None:
        """Set the clock to `now`, epoch seconds, which may be in the past.

        No time passes, just as when the clock of a machine is set: `monotonic` does not
        change, and tasks wait for as long as before.
        """
        self._was_set_to, self._was_set_at = float(now), self._monotonic

    async def pass_time(self, seconds: float) -> None:
        """Let `seconds` pass for the program without waiting in real time.

        The clock moves to each moment at which a task is due, one after another, and
        wakes one task at a time; tasks that are due at the same moment are woken in the
        order in which they started to wait. Before the first task is woken, and after
        each one, all tasks run until every task is waiting. A task that waits on the
        clock again is woken again if it is due within the `seconds`.

        A task that waits for a socket, a thread or real time (`anyio.sleep`) is
        considered waiting as well; the clock does not wait for these. A task that polls
        (`while not done: await checkpoint()`) prevents `pass_time` from returning. In
        one event loop, only one clock can pass time at a time.

        Raises:
            ValueError: `seconds` is negative or not finite.
            RuntimeError: another `pass_time` of this clock has not returned yet.
        """
        end = self._in(seconds)
        if self._is_passing_time:
            raise RuntimeError("expected one pass_time at a time, got another one")
        self._is_passing_time = True
        try:
            await _let_all_others_run()
            while self._waiters and (waiter := min(self._waiters)) <= (end, math.inf):
                self._monotonic = max(self._monotonic, waiter[0])
                self._waiters.pop(waiter).cancel()
                await _let_all_others_run()
        finally:
            self._is_passing_time = False
        self._monotonic = max(self._monotonic, end)

    def _in(self, seconds: float) -> float:
        """The value of `monotonic` after `seconds`, which must be ≥ 0 and finite."""
        if not 0 <= seconds < math.inf:
            raise ValueError(f"expected finite seconds of 0 or more, got {seconds!r}")
        return self._monotonic + seconds


async def _let_all_others_run() -> None:
    """Return when all other tasks of the event loop are waiting."""
    # The callbacks that asyncio's own event loop runs next. `wait_all_tasks_blocked`
    # polls each task and sleeps in between, which takes 0.1 s per waiting task.
    ready = getattr(anyio.lowlevel.current_token().native_token, "_ready", None)
    if ready is None:  # trio, or an event loop that is not asyncio's own
        await anyio.wait_all_tasks_blocked()
        return
    await anyio.lowlevel.checkpoint()
    while ready:
        await anyio.lowlevel.checkpoint()
