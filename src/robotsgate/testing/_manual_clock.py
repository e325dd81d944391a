"""A clock for tests that lets time pass without real delays."""

from __future__ import annotations

import importlib
import math
import sys
from itertools import count

import anyio
import anyio.lowlevel

from robotsgate import SystemClock
from robotsgate._public import set_module


@set_module("robotsgate.testing")
class ManualClock:
    """A clock that stands still until a test moves it.

    `advance` and `set` move it without waking any task. `pass_time` also wakes the
    tasks that are waiting on the clock, each when it is due.

    With an `autojump_threshold`, the clock also moves by itself, like trio's
    `MockClock`: once all tasks have been waiting for that many real seconds, it jumps
    to the time at which the next task is due and wakes that task. A test can then await
    a delay or a gate directly. Use 0 if everything is in memory, as with a `FakeSite`.
    With threads or real sockets, choose a threshold longer than they ever take to
    respond; otherwise, the clock jumps while they are busy, and timeouts expire early.
    """

    def __init__(
        self, start: float = 1_800_000_000.0, *, autojump_threshold: float = math.inf
    ) -> None:
        """Start at `start`.

        Args:
            start: epoch seconds.
            autojump_threshold: in real seconds, ≥ 0; if infinite, the clock never moves
                by itself. Finite values other than 0 need trio or asyncio's own event
                loop, and keep a processor busy on asyncio.

        Raises:
            ValueError: `autojump_threshold` is negative or not a number.
        """
        if not autojump_threshold >= 0:
            raise ValueError(
                "expected autojump_threshold to be 0 or more seconds, "
                f"got {autojump_threshold!r}"
            )
        self._autojump_threshold = autojump_threshold
        self._monotonic = 0.0
        # The time passed to `set`, and the value of `monotonic` at that moment.
        self._was_set_to = float(start)
        self._was_set_at = 0.0
        # Keys are pairs: when the task is due, by `monotonic`, and its place in line.
        self._waiters: dict[tuple[float, int], anyio.CancelScope] = {}
        self._turns = count()
        self._is_passing_time = False
        # Held by the task that moves the clock on behalf of all waiters.
        self._autojump_lock: anyio.Lock

    def now(self) -> float:
        """Seconds since the epoch."""
        return self._was_set_to + (self._monotonic - self._was_set_at)

    def monotonic(self) -> float:
        """Seconds since the clock was created; `set` does not affect this."""
        return self._monotonic

    async def wait(self, seconds: float, *, event: anyio.Event | None = None) -> bool:
        """Wait until the clock has advanced by `seconds` or `event` is set.

        Only `pass_time` and automatic jumps wake the task; `advance` does not.

        Args:
            seconds: how long to wait, by `monotonic`; 0 or less just lets other tasks
                run.
            event: ends the wait as soon as it is set, even if no time passes.

        Returns:
            Whether `event` is set.
        """
        event = event or anyio.Event()
        if seconds <= 0:
            await anyio.lowlevel.checkpoint()
            return event.is_set()
        if not self._waiters:
            # A lock from an earlier event loop cannot be reused.
            self._autojump_lock = anyio.Lock()
        waiter = (self._monotonic + seconds, next(self._turns))
        with anyio.CancelScope() as self._waiters[waiter]:
            try:
                if self._autojump_threshold == math.inf:
                    await event.wait()
                else:
                    async with anyio.create_task_group() as tasks:
                        tasks.start_soon(self._autojump)
                        await event.wait()
                        tasks.cancel_scope.cancel()
            finally:
                self._waiters.pop(waiter, None)
        return event.is_set()

    def advance(self, seconds: float) -> None:
        """Advance the clock by `seconds` without waking any task.

        The next `pass_time` or jump wakes the tasks that are due by then.

        Raises:
            ValueError: `seconds` is negative or not finite; use `set` to set the clock
                back.
        """
        self._monotonic = self._in(seconds)

    def set(self, now: float) -> None:
        """Set the clock to `now`, in epoch seconds, which may be in the past.

        As when a machine's clock is set, no time passes: `monotonic` does not change,
        and tasks wait for as long as they would have otherwise.
        """
        self._was_set_to, self._was_set_at = float(now), self._monotonic

    async def pass_time(self, seconds: float) -> None:
        """Let `seconds` pass for the program without waiting in real time.

        The clock moves to each time at which a task is due, and wakes one task at a
        time; tasks that are due at the same time are woken in the order in which they
        started waiting. Before the first task is woken, and after each wake-up, all
        tasks run until every one of them is waiting. A task that waits on the clock
        again is woken again if it is due within `seconds`.

        A task that waits for a socket, a thread or real time (`anyio.sleep`) also
        counts as waiting; the clock does not wait for any of these. A task that polls
        (`while not done: await checkpoint()`) prevents `pass_time` from returning. Only
        one clock at a time can use `pass_time` on an event loop.

        On a clock that moves by itself, this is the same as `wait(seconds)`.

        Raises:
            ValueError: `seconds` is negative or not finite.
            RuntimeError: another call to this clock's `pass_time` is still running.
        """
        end = self._in(seconds)
        if self._autojump_threshold < math.inf:
            await self.wait(seconds)
            return
        if self._is_passing_time:
            raise RuntimeError("expected one pass_time at a time, got a second one")
        self._is_passing_time = True
        try:
            await self._wake_waiters(end)
        finally:
            self._is_passing_time = False
        self._monotonic = max(self._monotonic, end)

    async def _autojump(self) -> None:
        """Move the clock for all waiters, unless another task is already doing so."""
        async with self._autojump_lock:
            await self._wake_waiters(sys.float_info.max, self._autojump_threshold)

    async def _wake_waiters(self, end: float, idle_seconds: float = 0.0) -> None:
        """Wake the tasks due by `end`, one per idle period of `idle_seconds`."""
        await _let_all_others_run(idle_seconds)
        while self._waiters and (waiter := min(self._waiters)) <= (end, math.inf):
            self._monotonic = max(self._monotonic, waiter[0])
            self._waiters.pop(waiter).cancel()
            await _let_all_others_run(idle_seconds)

    def _in(self, seconds: float) -> float:
        """The value of `monotonic` after `seconds`, which must be ≥ 0 and finite."""
        if not 0 <= seconds < math.inf:
            raise ValueError(
                f"expected seconds to be finite and 0 or more, got {seconds!r}"
            )
        return self._monotonic + seconds


async def _let_all_others_run(idle_seconds: float) -> None:
    """Return once all other tasks have been waiting for `idle_seconds` of real time."""
    # `_ready` holds the callbacks that asyncio's own event loop will run next. With
    # asyncio, `wait_all_tasks_blocked` polls and sleeps, which takes 0.1 s per waiting
    # task.
    ready = getattr(anyio.lowlevel.current_token().native_token, "_ready", None)
    if ready is not None:
        monotonic = SystemClock.monotonic
        await anyio.lowlevel.checkpoint()
        idle_since = monotonic()
        while ready or monotonic() - idle_since < idle_seconds:
            if ready:
                idle_since = monotonic()
            await anyio.lowlevel.checkpoint()
    elif not idle_seconds:  # trio, or an event loop that is not asyncio's own
        await anyio.wait_all_tasks_blocked()
    else:  # trio, whose own function accepts a duration
        trio_testing = importlib.import_module("trio.testing")
        await trio_testing.wait_all_tasks_blocked(idle_seconds)
