from __future__ import annotations

import time
from typing import TYPE_CHECKING

import anyio
import pytest

from robotsgate import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable

# So long that a wait of it is over only because of its event.
AN_HOUR = 3_600.0


@pytest.mark.parametrize(
    ("ours", "of_the_system"),
    [
        pytest.param(SystemClock().now, time.time_ns, id="since the epoch"),
        pytest.param(SystemClock().monotonic, time.monotonic_ns, id="monotonic"),
    ],
)
def test_system_clock_tells_seconds_and_their_fractions(
    ours: Callable[[], float], of_the_system: Callable[[], int]
) -> None:
    before = of_the_system() / 1e9

    moments = [ours() for _ in range(100)]

    after = of_the_system() / 1e9
    # Two clocks of the system may differ by their resolution.
    assert before - 0.1 <= moments[0] <= moments[-1] <= after + 0.1
    assert {moment % 1 for moment in moments} != {0.0}


@pytest.mark.anyio
@pytest.mark.parametrize("has_event", [False, True], ids=["no event", "event unset"])
@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.01])
async def test_wait_is_over_when_the_seconds_have_passed(
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


@pytest.mark.anyio
@pytest.mark.parametrize("seconds", [0.0, AN_HOUR, float("inf")])
async def test_wait_for_an_event_that_is_set_is_over_at_once(seconds: float) -> None:
    event = anyio.Event()
    event.set()

    with anyio.fail_after(10):
        assert await SystemClock().wait(seconds, event=event) is True


@pytest.mark.anyio
async def test_wait_is_over_when_another_task_sets_the_event() -> None:
    event = anyio.Event()

    async def set_event() -> None:
        event.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(set_event)
            is_set = await SystemClock().wait(AN_HOUR, event=event)

    assert is_set is True


@pytest.mark.anyio
@pytest.mark.parametrize("has_event", [False, True])
async def test_wait_can_be_cancelled(*, has_event: bool) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        await SystemClock().wait(AN_HOUR, event=anyio.Event() if has_event else None)

    assert scope.cancelled_caught


async def record(events: list[str], event: str) -> None:
    events.append(event)
