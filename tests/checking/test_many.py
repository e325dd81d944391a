from __future__ import annotations

import anyio
import pytest

from robotsgate.checking._many import for_each

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("at_once", [1, 3, 100])
async def test_no_more_than_so_many_are_under_way_at_once(at_once: int) -> None:
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


async def test_first_failure_is_raised_by_itself_and_ends_the_rest() -> None:
    begun = []

    async def work(item: int) -> None:
        begun.append(item)
        if item == 2:
            message = "two"
            raise KeyError(message)
        await anyio.sleep_forever()

    with pytest.raises(KeyError, match="two"):
        await for_each(range(10), work, at_once=3)

    assert begun == [0, 1, 2]
