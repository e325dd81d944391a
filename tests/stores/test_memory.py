"""The in-memory store: the contract and its limits."""

from __future__ import annotations

import gc
import tracemalloc
from typing import TYPE_CHECKING

import anyio
import pytest

from robotsgate import MemoryStore
from tests.stores.contracts import NOW, StoreContract, keys_of, to

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate import Store

pytestmark = pytest.mark.anyio


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def make_store(self) -> Callable[[], Store]:
        return MemoryStore


async def filled(store: MemoryStore, keys: str, *, size: int = 0) -> MemoryStore:
    for key in keys:
        await store.update(key, to(bytes(size)))
    return store


@pytest.mark.parametrize("count", [1, 2, 5])
async def test_only_the_last_keys_are_kept_up_to_max_entries(count: int) -> None:
    store = await filled(MemoryStore(max_entries=count), "abcdefg")

    assert len(store) == count
    assert await keys_of(store) == list("abcdefg")[-count:]


async def test_least_recently_used_key_is_evicted() -> None:
    store = await filled(MemoryStore(max_entries=3), "abc")

    await store.get("a")
    await store.get("x")  # missing
    await store.update("b", to(b"2"))
    await store.update("d", to(b""))

    assert await keys_of(store) == ["a", "b", "d"]


async def test_listing_and_purging_do_not_count_as_use() -> None:
    store = await filled(MemoryStore(max_entries=2), "ab")
    await store.get("a")

    await store.purge(NOW)
    await keys_of(store)
    await store.update("c", to(b""))

    assert await keys_of(store) == ["a", "c"]


async def test_replacing_a_key_in_a_full_store_evicts_no_other() -> None:
    store = await filled(MemoryStore(max_entries=3), "abca")

    assert await keys_of(store) == ["a", "b", "c"]


async def test_large_value_evicts_several_keys() -> None:
    store = await filled(MemoryStore(max_bytes=50_000), "abcdef", size=10_000)
    before = await keys_of(store)

    await store.update("g", to(bytes(30_000)))

    assert before == ["c", "d", "e", "f"]
    assert await keys_of(store) == ["f", "g"]


async def test_value_larger_than_the_store_removes_only_its_old_value() -> None:
    """The old value must not be returned: either the last update, or nothing."""
    store = await filled(MemoryStore(max_bytes=20_000), "ab", size=5_000)

    await store.update("b", to(bytes(30_000)))

    assert await keys_of(store) == ["a"]


async def test_closed_store_is_empty() -> None:
    store = await filled(MemoryStore(), "abc")

    await store.aclose()

    assert len(store) == 0
    assert await store.get("a") is None


@pytest.mark.parametrize("bound", ["max_entries", "max_bytes"])
@pytest.mark.parametrize("value", [0, -1])
def test_limit_below_1_raises(bound: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{bound} to be 1 or more, got {value}"):
        MemoryStore(**{bound: value})


async def test_small_values_use_about_as_much_memory_as_max_bytes() -> None:
    gc.collect()
    tracemalloc.start()
    try:
        store = MemoryStore(max_bytes=2_000_000)
        for number in range(10_000):
            key = f"https://{number}.example.com"
            await store.update(key, to(b"%d" % number, NOW + number))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert 1_000 < len(store) < 10_000
    assert 1_000_000 < used < 2_500_000


async def test_other_tasks_run_while_a_large_store_is_purged() -> None:
    """Another task may delete and write keys meanwhile."""
    store = MemoryStore()
    for number in range(6_000):
        await store.update(str(number), to(b"", NOW))

    async def interfere() -> None:
        await store.delete("5999")
        await store.update("new", to(b"", NOW))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(interfere)
        dropped = await store.purge(NOW)

    assert dropped == 5_999
    assert await keys_of(store) == ["new"]
