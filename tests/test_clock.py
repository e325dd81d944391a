from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
import pytest

from robotsgate import SystemClock
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

# So long that only an event can end the wait.
AN_HOUR = 3_600.0

pytestmark = pytest.mark.anyio


@cases("our_clock system_clock", {
    "since the epoch": (SystemClock().now, time.time_ns),
    "monotonic": (SystemClock().monotonic, time.monotonic_ns),
})  # fmt: skip
def test_system_clock_returns_fractional_seconds(
    our_clock: Callable[[], float], system_clock: Callable[[], int]
) -> None:
    before = system_clock() / 1e9

    moments = [our_clock() for _ in range(100)]

    # Two system clocks may differ by their resolution.
    assert before - 0.1 <= moments[0] <= moments[-1] <= system_clock() / 1e9 + 0.1
    assert {moment % 1 for moment in moments} != {0.0}


@pytest.mark.parametrize("has_event", [False, True], ids=["no event", "event unset"])
@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.01])
async def test_wait_ends_after_the_given_number_of_seconds(
    seconds: float, *, has_event: bool
) -> None:
    clock = SystemClock()
    events = []
    start = clock.monotonic()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(record, events, "other task")
        is_set = await clock.wait(seconds, event=anyio.Event() if has_event else None)
        events.append("waited")

    assert is_set is False
    assert clock.monotonic() - start >= seconds - 0.001
    assert "other task" in events


async def test_wait_ends_when_another_task_sets_the_event() -> None:
    event = anyio.Event()

    async def set_event() -> None:
        event.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(set_event)
            is_set = await SystemClock().wait(AN_HOUR, event=event)

    assert is_set is True


@pytest.mark.parametrize("has_event", [False, True])
async def test_wait_can_be_cancelled(*, has_event: bool) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await SystemClock().wait(AN_HOUR, event=anyio.Event() if has_event else None)

    assert scope.cancelled_caught


async def record(events: list[str], event: str) -> None:
    events.append(event)
