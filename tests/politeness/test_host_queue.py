from __future__ import annotations

import anyio
import pytest

from robotsgate.politeness._host_queue import HostAtWork, HostQueue, State
from robotsgate.testing import ManualClock

pytestmark = pytest.mark.anyio


async def test_replaced_moments_do_not_accumulate() -> None:
    queue = HostQueue(ManualClock())
    host = HostAtWork("host")

    for moment in range(1_000):
        queue.put_at(host, 2_000.0 - moment)

    assert len(queue._heap) < 200
    assert queue.first_moment == 1_001


async def test_earlier_moment_wakes_the_waiting_worker() -> None:
    clock = ManualClock()
    queue = HostQueue(clock)
    late, early = HostAtWork("late"), HostAtWork("early")
    queue.put_at(late, 5.0)
    queue.put_at(late, 100.0)  # replaces the 5.0
    popped: list[tuple[float, str]] = []

    async def work() -> None:
        while (host := queue.pop()) is None:
            await queue.wait()
        popped.append((clock.monotonic(), host.name))

    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(work)
        await clock.pass_time(1)
        queue.put_at(early, 10.0)
        await clock.pass_time(200)

    assert popped == [(10.0, "early"), (100.0, "late")]


async def test_host_that_is_due_no_longer_rests_before_a_worker_takes_it() -> None:
    clock = ManualClock()
    queue = HostQueue(clock)
    hosts = [HostAtWork("first"), HostAtWork("second")]
    for host in hosts:
        queue.put_at(host, 10.0)

    await clock.pass_time(10)
    queue.pop()

    assert [host.state for host in hosts] == [State.READY] * 2
