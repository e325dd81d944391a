from __future__ import annotations

import anyio
import pytest

from robotsgate.checking._under_way import UnderWay

pytestmark = pytest.mark.anyio


async def test_work_that_ends_gives_its_result() -> None:
    async def work() -> int:
        return 1

    assert await UnderWay("it").run(work) == 1


async def test_close_cancels_what_is_under_way_and_waits_for_its_end() -> None:
    under_way = UnderWay("the checker")
    events: list[str] = []

    async def work() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            events.append("cleaned up")

    async def wait_for_work() -> None:
        with pytest.raises(RuntimeError, match="the checker is closed"):
            await under_way.run(work)
        events.append("told")

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(wait_for_work)
        await anyio.wait_all_tasks_blocked()
        await under_way.aclose()
        assert events.count("cleaned up") == 3

    assert events.count("told") == 3


async def test_nothing_begins_after_the_close() -> None:
    under_way = UnderWay("the checker")
    await under_way.aclose()
    await under_way.aclose()

    async def work() -> None:
        raise AssertionError

    with pytest.raises(RuntimeError, match="the checker is closed"):
        await under_way.run(work)


async def test_work_that_closes_its_owner_by_the_way_is_told() -> None:
    """Cancelled too late to notice, but its result is not to be used any more."""
    under_way = UnderWay("the checker")

    async def work() -> int:
        under_way.is_closed = True
        return 1

    with pytest.raises(RuntimeError, match="the checker is closed"):
        await under_way.run(work)


async def test_failure_of_the_work_is_passed_on() -> None:
    async def work() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        await UnderWay("it").run(work)


async def test_cancellation_from_outside_is_not_taken_for_the_close() -> None:
    under_way = UnderWay("it")

    with anyio.CancelScope() as scope:
        scope.cancel()
        await under_way.run(anyio.sleep_forever)
    await under_way.aclose()

    assert scope.cancelled_caught


async def test_two_closes_wait_for_the_same_work() -> None:
    under_way = UnderWay("it")

    async def work() -> None:
        with pytest.raises(RuntimeError):
            await under_way.run(anyio.sleep_forever)

    async with anyio.create_task_group() as group:
        group.start_soon(work)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(under_way.aclose)
        group.start_soon(under_way.aclose)
