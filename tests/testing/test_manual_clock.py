from __future__ import annotations

import math
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import httpx
import pytest

from robotsgate import SystemClock
from robotsgate.testing import ManualClock
from tests.servers.answers import Late, Reply
from tests.systems import need_own_loop
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import LoopbackServer

pytestmark = pytest.mark.anyio


class Diary:
    """Records which task wakes up at which second of a clock."""

    def __init__(self, threshold: float = math.inf) -> None:
        self.clock = ManualClock(0, autojump_threshold=threshold)
        self.lines: list[tuple[float, str]] = []

    def write(self, name: str) -> None:
        self.lines.append((self.clock.now(), name))

    async def wait(
        self, name: str, *waits: float, event: anyio.Event | None = None
    ) -> None:
        """Wait for each of `waits` in turn, and record the result each time."""
        for seconds in waits:
            is_set = await self.clock.wait(seconds, event=event)
            self.write(f"{name}: set" if is_set else name)


def test_default_start_time_is_in_the_present_century() -> None:
    assert 1.7e9 < ManualClock().now() < 4.1e9


async def test_advance_and_pass_time_move_both_times_and_set_only_now() -> None:
    clock = ManualClock(100)
    times = []

    for move in (
        lambda: clock.advance(0),
        lambda: clock.advance(0.5),
        lambda: clock.set(50),
        lambda: clock.set(3e9),
    ):
        move()
        times.append((clock.now(), clock.monotonic()))
    await clock.pass_time(7 * 86_400)

    assert times == [(100, 0), (100.5, 0.5), (50, 0.5), (3e9, 0.5)]
    assert (clock.now(), clock.monotonic()) == (3e9 + 7 * 86_400, 7 * 86_400 + 0.5)


@pytest.mark.parametrize("seconds", [-0.001, math.inf, math.nan])
async def test_time_does_not_pass_backwards_or_forever(seconds: float) -> None:
    clock = ManualClock(100)

    with pytest.raises(ValueError, match=f"0 or more, got {seconds}"):
        clock.advance(seconds)
    with pytest.raises(ValueError, match=f"0 or more, got {seconds}"):
        await clock.pass_time(seconds)

    assert clock.now() == 100


@cases("waits lines", {
    "the earliest first": (
        {"a": [3], "b": [1], "c": [2]}, [(1, "b"), (2, "c"), (3, "a")]
    ),
    "due at the same time, in the order in which they started": (
        {"a": [1, 1], "b": [2], "c": [1.5, 0.5]},
        [(1, "a"), (1.5, "c"), (2, "b"), (2, "a"), (2, "c")],
    ),
    "again if they wait again, even at the last moment": (
        {"a": [1, 2, 4, 3], "b": [4, 6.5]},
        [(1, "a"), (3, "a"), (4, "b"), (7, "a"), (10, "a")],
    ),
    "immediately after a wait of 0 or less": (
        {"a": [0, 4, 0, -1], "b": [4]},
        [(0, "a"), (4, "a"), (4, "a"), (4, "a"), (4, "b")],
    ),
    "not yet": ({"a": [10.5], "b": [math.inf]}, []),
})  # fmt: skip
async def test_tasks_are_woken_when_they_are_due(
    waits: dict[str, list[float]], lines: list[tuple[float, str]]
) -> None:
    diary = Diary()

    async with anyio.create_task_group() as tasks:
        for name, seconds in waits.items():
            # Which of several new tasks runs first is the event loop's choice.
            tasks.start_soon(diary.wait, name, *seconds)
            await diary.clock.pass_time(0)
        await diary.clock.pass_time(10)
        tasks.cancel_scope.cancel()

    assert diary.lines == lines
    assert diary.clock.now() == 10


async def test_work_started_by_a_woken_task_ends_before_time_moves_on() -> None:
    diary = Diary()

    async def work(depth: int) -> None:
        """Start tasks `depth` levels deep, each letting the others run first."""
        await anyio.lowlevel.checkpoint()
        if depth:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(work, depth - 1)
                tasks.start_soon(work, depth - 1)

    async def wake_and_work() -> None:
        await diary.clock.wait(1)
        await work(5)
        diary.write("worked")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wake_and_work)
        tasks.start_soon(diary.wait, "next", 1.001)
        await diary.clock.pass_time(2)

    assert diary.lines == [(1, "worked"), (1.001, "next")]


async def test_advance_wakes_no_task_until_the_next_pass_time() -> None:
    diary = Diary()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(diary.wait, "late", 2)
        tasks.start_soon(diary.wait, "early", 1)
        await diary.clock.pass_time(0)
        diary.clock.advance(5)
        await anyio.wait_all_tasks_blocked()
        lines_before = list(diary.lines)
        await diary.clock.pass_time(0)

    assert lines_before == []
    assert diary.lines == [(5, "early"), (5, "late")]


@cases("change monotonic", {
    "forward, within the time": (lambda clock: clock.advance(1), 10),
    "forward, beyond it": (lambda clock: clock.advance(20), 25),
    "back, which no waiting task notices": (lambda clock: clock.set(0), 10),
})  # fmt: skip
async def test_task_may_change_the_clock_while_time_passes(
    change: Callable[[ManualClock], None], monotonic: float
) -> None:
    clock = ManualClock()

    async def wait_and_change() -> None:
        await clock.wait(5)
        change(clock)
        await clock.wait(5)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait_and_change)
        await clock.pass_time(10)
        tasks.cancel_scope.cancel()

    assert clock.monotonic() == monotonic


async def test_second_pass_time_at_the_same_time_raises() -> None:
    clock = ManualClock(0)

    async def wait_and_pass_time() -> None:
        await clock.wait(1)
        with pytest.raises(RuntimeError, match="one pass_time at a time"):
            await clock.pass_time(1)
        await clock.wait(1)
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            tasks.start_soon(wait_and_pass_time)
            await clock.pass_time(10)
    stopped_at = clock.now()
    await clock.pass_time(1)

    assert (stopped_at, clock.now()) == (2, 3)


@pytest.mark.parametrize("seconds", [0, 1])
async def test_wait_returns_immediately_if_the_event_is_already_set(
    seconds: float,
) -> None:
    clock, event = ManualClock(0), anyio.Event()
    event.set()

    assert await clock.wait(seconds, event=event) is True
    assert clock.monotonic() == 0


async def test_event_ends_the_wait_without_more_time_passing() -> None:
    diary, event = Diary(), anyio.Event()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: diary.wait("waiter", 1, event=event))
        await diary.clock.pass_time(0.5)
        event.set()

    assert diary.lines == [(0.5, "waiter: set")]
    assert diary.clock._waiters == {}


@pytest.mark.parametrize("seconds", [0, 1])
async def test_wait_can_be_cancelled_and_leaves_nothing_behind(seconds: float) -> None:
    clock = ManualClock(0)

    with anyio.CancelScope() as scope:
        scope.cancel()
        await clock.wait(seconds)

    assert scope.cancelled_caught
    assert clock._waiters == {}


THRESHOLDS = pytest.mark.parametrize("threshold", [0, 0.001])


@THRESHOLDS
async def test_clock_jumps_for_a_task_that_awaits_it_but_not_forever(
    threshold: float,
) -> None:
    if threshold:
        need_own_loop()
    clock = ManualClock(0, autojump_threshold=threshold)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(clock.wait, math.inf)
        assert await clock.wait(7 * 86_400) is False
        await clock.pass_time(5)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()

    assert clock.monotonic() == 7 * 86_400 + 5


@THRESHOLDS
async def test_clock_jumps_to_one_task_at_a_time_until_an_event_ends_its_wait(
    threshold: float,
) -> None:
    if threshold:
        need_own_loop()
    diary, event = Diary(threshold), anyio.Event()

    async def wake_and_work() -> None:
        await diary.clock.wait(2)
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        diary.write("worked")
        event.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(diary.wait, "a", 1, 2.5)
        tasks.start_soon(wake_and_work)
        tasks.start_soon(diary.wait, "b", 2.001)
        tasks.start_soon(lambda: diary.wait("forever", math.inf, event=event))

    assert diary.lines == [
        (1, "a"), (2, "worked"), (2, "forever: set"), (2.001, "b"), (3.5, "a"),
    ]  # fmt: skip
    assert diary.clock._waiters == {}


async def test_clock_does_not_jump_if_responses_arrive_within_the_threshold(
    serve: Callable[..., LoopbackServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    need_own_loop()
    server = serve(Late(0.001, Reply(body=b"page")))
    clock, done = ManualClock(0, autojump_threshold=60), anyio.Event()
    real_time = 0
    monkeypatch.setattr(SystemClock, "monotonic", lambda: real_time)

    async def fetch_pages() -> None:
        nonlocal real_time
        async with httpx.AsyncClient() as client:
            for _ in range(10):
                await client.get(server.url)
                real_time += 40
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fetch_pages)
        assert await clock.wait(1, event=done) is True

    assert clock.monotonic() == 0


@pytest.mark.parametrize("threshold", [-1, math.nan])
def test_clock_rejects_an_invalid_threshold(threshold: float) -> None:
    with pytest.raises(ValueError, match=f"0 or more seconds, got {threshold}"):
        ManualClock(autojump_threshold=threshold)


@pytest.mark.parametrize("threshold", [math.inf, 0])
def test_clock_can_be_used_in_one_event_loop_after_another(threshold: float) -> None:
    clock = ManualClock(0, autojump_threshold=threshold)

    async def pass_time_while_others_wait() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clock.wait, 1)
            tasks.start_soon(clock.wait, 1)
            await clock.pass_time(1)

    for backend in ["asyncio", "asyncio", "trio", "trio"]:
        anyio.run(pass_time_while_others_wait, backend=backend)

    assert clock.now() == 4
