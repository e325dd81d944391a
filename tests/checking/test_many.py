from __future__ import annotations

import anyio
import pytest

from robotsgate.checking._many import for_each

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("at_once", [1, 3, 100])
async def test_number_of_concurrent_items_is_limited(at_once: int) -> None:
    under_way = most_under_way = 0
    done = []

    async def work(item: int) -> None:
        nonlocal under_way, most_under_way
        under_way += 1
        most_under_way = max(most_under_way, under_way)
        await anyio.wait_all_tasks_blocked()
        under_way -= 1
        done.append(item)

    await for_each(range(10), work, at_once=at_once)

    assert sorted(done) == list(range(10))
    assert most_under_way == min(at_once, 10)


async def test_first_exception_is_raised_unchanged_and_cancels_the_rest() -> None:
    started = []

    async def work(item: int) -> None:
        started.append(item)
        if item == 2:
            message = "two"
            raise KeyError(message)
        await anyio.sleep_forever()

    with pytest.raises(KeyError, match="two"):
        await for_each(range(10), work, at_once=3)

    assert started == [0, 1, 2]
