"""The store in memory: the contract, and its bounds."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio
import pytest

from robotsgate import MemoryStore
from robotsgate.testing.stores import NOW, StoreContract, entry_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate import Store

pytestmark = pytest.mark.anyio


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def make_store(self) -> Callable[[], Store]:
        return MemoryStore


async def kept(store: MemoryStore, count: int) -> list[int]:
    """Which of the hosts 0, 1, 2, … the store has; looks at each once."""
    return [n for n in range(count) if await store.get(f"http://{n}") is not None]


async def filled(store: MemoryStore, count: int, *, body: bytes = b"") -> MemoryStore:
    for number in range(count):
        await store.put(entry_of(f"http://{number}", body=body))
    return store


@pytest.mark.parametrize("count", [1, 2, 5])
async def test_no_more_entries_are_kept_than_allowed(count: int) -> None:
    store = await filled(MemoryStore(max_entries=count), 7)

    assert len(store) == count
    assert await kept(store, 7) == list(range(7 - count, 7))


async def test_entry_used_least_recently_goes() -> None:
    store = await filled(MemoryStore(max_entries=3), 3)

    await store.get("http://0")
    await store.put(entry_of("http://1"))
    await store.put(entry_of("http://3"))

    assert await kept(store, 4) == [0, 1, 3]


async def test_looking_for_what_is_not_there_uses_nothing() -> None:
    store = await filled(MemoryStore(max_entries=2), 2)

    await store.get("http://5")
    await store.put(entry_of("http://2"))

    assert await kept(store, 3) == [1, 2]


async def test_purging_is_no_use_of_an_entry() -> None:
    store = MemoryStore(max_entries=2)
    await store.put(entry_of("http://0", retain_until=NOW + 1))
    await store.put(entry_of("http://1", retain_until=NOW + 2))
    await store.get("http://0")

    await store.purge(NOW)
    await store.put(entry_of("http://2"))

    assert await kept(store, 3) == [0, 2]


async def test_replacing_an_entry_in_a_full_store_drops_no_other() -> None:
    store = await filled(MemoryStore(max_entries=3), 3)

    await store.put(entry_of("http://0", body=b"other"))

    assert await kept(store, 3) == [0, 1, 2]


async def test_no_more_bytes_are_kept_than_allowed() -> None:
    body = os.urandom(10_000)  # does not get shorter when it is packed
    store = await filled(MemoryStore(max_bytes=50_000), 9, body=body)

    assert await kept(store, 9) == [5, 6, 7, 8]


async def test_large_entry_takes_the_place_of_several() -> None:
    store = await filled(MemoryStore(max_bytes=50_000), 4, body=os.urandom(10_000))

    await store.put(entry_of("http://4", body=os.urandom(30_000)))

    assert await kept(store, 5) == [3, 4]


async def test_entry_without_a_copy_has_a_size_as_well() -> None:
    store = await filled(MemoryStore(max_bytes=10_000), 50)

    assert 5 <= len(store) <= 15


async def test_entry_larger_than_the_store_is_not_kept_and_drops_no_other() -> None:
    store = await filled(MemoryStore(max_bytes=20_000), 2, body=os.urandom(5_000))

    await store.put(entry_of("http://2", body=os.urandom(30_000)))

    assert await kept(store, 3) == [0, 1]


async def test_entry_larger_than_the_store_does_not_leave_the_old_one() -> None:
    """The old entry would be a wrong answer: what was put last counts, or nothing."""
    store = await filled(MemoryStore(max_bytes=20_000), 1)

    await store.put(entry_of("http://0", body=os.urandom(30_000)))

    assert len(store) == 0


async def test_closed_store_has_forgotten_everything() -> None:
    store = await filled(MemoryStore(), 3)

    await store.aclose()

    assert len(store) == 0
    assert await store.get("http://0") is None


@pytest.mark.parametrize("bound", ["max_entries", "max_bytes"])
@pytest.mark.parametrize("value", [0, -1])
def test_bound_below_1_is_refused(bound: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"{bound} of 1 or more, got {value}"):
        MemoryStore(**{bound: value})


def test_default_store_is_bounded() -> None:
    store = MemoryStore()

    assert store._max_entries == 100_000
    assert store._entries.maxsize == 256 * 2**20


async def test_others_run_while_a_large_store_is_purged() -> None:
    """What another task drops or puts meanwhile is no trouble."""
    store = MemoryStore()
    for number in range(6_000):
        await store.put(entry_of(f"http://{number}", retain_until=NOW))

    async def meddle() -> None:
        await store.delete("http://5999")
        await store.put(entry_of("http://new"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(meddle)
        dropped = await store.purge(NOW)

    assert dropped == 5_999
    assert len(store) == 1
