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

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import LoopbackServer


class TestTime:
    def test_clock_stays_at_its_start_time(self) -> None:
        clock = ManualClock(5)

        assert [clock.now(), clock.now()] == [5.0, 5.0]

    def test_default_start_time_is_in_the_present_century(self) -> None:
        assert 1.7e9 < ManualClock().now() < 4.1e9

    def test_advance_moves_both_times(self) -> None:
        clock = ManualClock(100)

        clock.advance(0.5)
        clock.advance(0)

        assert (clock.now(), clock.monotonic()) == (100.5, 0.5)

    @pytest.mark.parametrize("now", [50.0, 0.1, 3e9])
    def test_set_changes_only_now(self, now: float) -> None:
        clock = ManualClock(100)
        clock.advance(0.7)

        clock.set(now)

        assert (clock.now(), clock.monotonic()) == (now, 0.7)

    @pytest.mark.parametrize("seconds", [-0.001, float("inf"), float("nan")])
    def test_clock_does_not_advance_backwards_or_forever(self, seconds: float) -> None:
        clock = ManualClock(100)

        with pytest.raises(ValueError, match=f"0 or more, got {seconds}"):
            clock.advance(seconds)

        assert clock.now() == 100


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


@pytest.mark.anyio
class TestPassTime:
    @pytest.mark.parametrize("seconds", [0, 0.25, 7 * 86_400])
    async def test_clock_moves_without_waiting_tasks(self, seconds: float) -> None:
        clock = ManualClock(100)

        await clock.pass_time(seconds)

        assert (clock.now(), clock.monotonic()) == (100 + seconds, seconds)

    async def test_time_does_not_pass_backwards(self) -> None:
        with pytest.raises(ValueError, match="0 or more, got -1"):
            await ManualClock().pass_time(-1)

    @pytest.mark.parametrize(
        ("waits", "lines"),
        [
            pytest.param(
                {"a": [3], "b": [1], "c": [2]},
                [(1, "b"), (2, "c"), (3, "a")],
                id="the earliest first",
            ),
            pytest.param(
                {"a": [2], "b": [2], "c": [2]},
                [(2, "a"), (2, "b"), (2, "c")],
                id="due at the same time, in the order in which they started",
            ),
            pytest.param(
                {"a": [1, 1], "b": [2], "c": [1.5, 0.5]},
                [(1, "a"), (1.5, "c"), (2, "b"), (2, "a"), (2, "c")],
                id="in the order in which they started, not by name",
            ),
            pytest.param(
                {"a": [1, 2, 4, 3], "b": [4, 6.5]},
                [(1, "a"), (3, "a"), (4, "b"), (7, "a"), (10, "a")],
                id="again if they wait again, even at the last moment",
            ),
            pytest.param(
                {"a": [0, 4, 0, -1], "b": [4]},
                [(0, "a"), (4, "a"), (4, "a"), (4, "a"), (4, "b")],
                id="immediately after a wait of 0 or less",
            ),
            pytest.param({"a": [10.5], "b": [float("inf")]}, [], id="not yet"),
        ],
    )
    async def test_tasks_are_woken_when_they_are_due(
        self, waits: dict[str, list[float]], lines: list[tuple[float, str]]
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

    async def test_work_started_by_a_woken_task_ends_before_time_moves_on(
        self,
    ) -> None:
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

    async def test_new_task_waits_from_the_start_of_pass_time(
        self,
    ) -> None:
        diary = Diary()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(diary.wait, "new", 1)
            await diary.clock.pass_time(1)
            assert diary.lines == [(1, "new")]

    async def test_advance_wakes_no_task_until_the_next_pass_time(self) -> None:
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

    @pytest.mark.parametrize("now", [-1e6, 1e6], ids=["back", "ahead"])
    async def test_set_does_not_affect_waiting_tasks(self, now: float) -> None:
        diary = Diary()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(diary.wait, "waiter", 2)
            await diary.clock.pass_time(1)
            diary.clock.set(now)
            await diary.clock.pass_time(2)

        assert diary.lines == [(now + 1, "waiter")]
        assert (diary.clock.now(), diary.clock.monotonic()) == (now + 2, 3)

    @pytest.mark.parametrize(
        ("change", "monotonic"),
        [
            pytest.param(
                lambda clock: clock.advance(1), 10, id="forward, within the time"
            ),
            pytest.param(lambda clock: clock.advance(20), 25, id="forward, beyond it"),
            pytest.param(lambda clock: clock.set(0), 10, id="back"),
        ],
    )
    async def test_task_may_change_the_clock_while_time_passes(
        self, change: Callable[[ManualClock], None], monotonic: float
    ) -> None:
        clock = ManualClock()

        async def wait_and_change() -> None:
            await clock.wait(5)
            change(clock)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_and_change)
            await clock.pass_time(10)

        assert clock.monotonic() == monotonic

    async def test_second_pass_time_at_the_same_time_raises(self) -> None:
        clock = ManualClock(0)
        errors = []

        async def wait_and_pass_time() -> None:
            await clock.wait(1)
            with pytest.raises(RuntimeError, match="one pass_time at a time") as caught:
                await clock.pass_time(1)
            errors.append(caught.value)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_and_pass_time)
            await clock.pass_time(2)
            await clock.pass_time(3)

        assert len(errors) == 1
        assert clock.now() == 5

    async def test_cancelled_pass_time_stops_where_it_is(self) -> None:
        clock = ManualClock(0)

        async def cancel(scope: anyio.CancelScope) -> None:
            await clock.wait(2)
            scope.cancel()

        async with anyio.create_task_group() as tasks:
            with anyio.CancelScope() as scope:
                tasks.start_soon(cancel, scope)
                await clock.pass_time(10)
        stopped_at = clock.now()
        await clock.pass_time(1)

        assert (stopped_at, clock.now()) == (2, 3)


@pytest.mark.anyio
class TestWait:
    @pytest.mark.parametrize("seconds", [0, 1])
    async def test_wait_returns_immediately_if_the_event_is_already_set(
        self, seconds: float
    ) -> None:
        clock, event = ManualClock(0), anyio.Event()
        event.set()

        assert await clock.wait(seconds, event=event) is True
        assert clock.monotonic() == 0

    async def test_event_ends_the_wait_without_more_time_passing(self) -> None:
        diary, event = Diary(), anyio.Event()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: diary.wait("waiter", 1, event=event))
            await diary.clock.pass_time(0.5)
            event.set()

        assert diary.lines == [(0.5, "waiter: set")]
        assert diary.clock._waiters == {}

    async def test_event_set_by_a_woken_task_ends_the_wait_at_that_moment(
        self,
    ) -> None:
        diary, event = Diary(), anyio.Event()

        async def wait_and_set() -> None:
            await diary.clock.wait(1)
            event.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait_and_set)
            tasks.start_soon(lambda: diary.wait("waiter", 2, event=event))
            await diary.clock.pass_time(3)

        assert diary.lines == [(1, "waiter: set")]

    async def test_event_set_too_late_does_not_count(self) -> None:
        diary, event = Diary(), anyio.Event()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: diary.wait("waiter", 1, event=event))
            await diary.clock.pass_time(1)
            event.set()

        assert diary.lines == [(1, "waiter")]

    @pytest.mark.parametrize("has_event", [False, True])
    async def test_cancelled_wait_leaves_nothing_behind(
        self, *, has_event: bool
    ) -> None:
        clock = ManualClock(0)

        async with anyio.create_task_group() as tasks:
            event = anyio.Event() if has_event else None
            tasks.start_soon(lambda: clock.wait(1, event=event))
            await clock.pass_time(0.5)
            waiting = len(clock._waiters)
            tasks.cancel_scope.cancel()

        assert waiting == 1
        assert clock._waiters == {}

    @pytest.mark.parametrize("seconds", [0, 1])
    async def test_wait_can_be_cancelled_before_it_starts(self, seconds: float) -> None:
        clock = ManualClock(0)

        with anyio.CancelScope() as scope:
            scope.cancel()
            await clock.wait(seconds)

        assert scope.cancelled_caught
        assert clock._waiters == {}

    async def test_task_cancelled_at_the_moment_it_is_due_does_not_continue(
        self,
    ) -> None:
        diary = Diary()

        async def cancel() -> None:
            await diary.clock.wait(1)
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(diary.wait, "a", 1)
            await diary.clock.pass_time(0)
            tasks.start_soon(cancel)
            await diary.clock.pass_time(0)
            tasks.start_soon(diary.wait, "b", 1)
            await diary.clock.pass_time(2)

        assert diary.lines == [(1, "a")]
        assert diary.clock._waiters == {}

    async def test_cancelled_task_may_still_wait_in_a_shield(self) -> None:
        diary = Diary()

        async def clean_up() -> None:
            try:
                await anyio.sleep_forever()
            finally:
                with anyio.CancelScope(shield=True):
                    await diary.wait("cleaned up", 1)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clean_up)
            await diary.clock.pass_time(0)
            tasks.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await diary.clock.pass_time(1)

        assert diary.lines == [(1, "cleaned up")]


@pytest.mark.anyio
@pytest.mark.parametrize("threshold", [0, 0.001])
class TestAutojump:
    async def test_task_that_awaits_the_clock_directly_is_woken(
        self, threshold: float
    ) -> None:
        clock = ManualClock(0, autojump_threshold=threshold)

        assert await clock.wait(7 * 86_400) is False
        await clock.pass_time(5)

        assert clock.monotonic() == 7 * 86_400 + 5

    async def test_tasks_are_woken_one_at_a_time_when_they_are_due(
        self, threshold: float
    ) -> None:
        diary = Diary(threshold)

        async def wake_and_work() -> None:
            await diary.clock.wait(2)
            for _ in range(10):
                await anyio.lowlevel.checkpoint()
            diary.write("worked")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(diary.wait, "a", 1, 2.5)
            tasks.start_soon(wake_and_work)
            tasks.start_soon(diary.wait, "b", 2.001)

        assert diary.lines == [(1, "a"), (2, "worked"), (2.001, "b"), (3.5, "a")]

    async def test_event_ends_a_wait_and_the_clock_moves_on_for_the_others(
        self, threshold: float
    ) -> None:
        diary, event = Diary(threshold), anyio.Event()

        async def wait_and_set() -> None:
            await diary.clock.wait(1)
            event.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: diary.wait("first", 5, event=event))
            tasks.start_soon(lambda: diary.wait("forever", math.inf, event=event))
            tasks.start_soon(wait_and_set)
            tasks.start_soon(diary.wait, "last", 2)

        assert sorted(diary.lines) == [
            (1, "first: set"),
            (1, "forever: set"),
            (2, "last"),
        ]
        assert diary.clock._waiters == {}

    async def test_clock_does_not_jump_for_a_task_that_waits_forever(
        self, threshold: float
    ) -> None:
        clock = ManualClock(0, autojump_threshold=threshold)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(clock.wait, math.inf)
            await clock.wait(1)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

        assert clock.monotonic() == 1


@pytest.mark.anyio
async def test_clock_does_not_jump_if_responses_arrive_within_the_threshold(
    serve: Callable[..., LoopbackServer], monkeypatch: pytest.MonkeyPatch
) -> None:
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
