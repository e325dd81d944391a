"""The tests of all stores and leases."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, aclosing, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from robotsgate import Store, StoreError
from robotsgate.stores import FetchLease, ListableStore

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from robotsgate.stores import Change

NOW = 1_800_000_000.0
KEY = "https://example.com"
LATER = 32_503_680_000.0  # the year 3000, so no server expires keys during a test

_PATIENCE_SECONDS = 60.0

VALUES = {
    "nothing": b"",
    "every byte": bytes(range(256)),
    "600 KB": bytes(range(256)) * 2_400,
}
KEYS = [
    "http://example.com",
    "https://example.com:8443",
    "https://example.co",
    "https://example_com",
    "https://example.com max_bytes=1 guard='off'",
    "http://[::1]:8080",
    "https://%*?[a]\\",
    f"http://{'x.' * 5_000}com",
]


def to(value: bytes, keep_until: float | None = None) -> Change:
    """A change that writes `value` unconditionally."""
    return lambda _: (value, keep_until)


async def keys_of(store: ListableStore) -> list[str]:
    """The sorted keys of `store`."""
    return sorted([key async for key in store.keys()])  # noqa: SIM118 (not a dict)


@pytest.mark.anyio
class StoreContract:
    """The tests that every `Store` must pass; subclasses define `make_store`.

    Attributes:
        keeps_what_is_useless: whether expired bytes stay until they are purged.
    """

    keeps_what_is_useless: bool = True

    @pytest.fixture
    def make_store(self) -> Callable[[], Store]:
        """A function; each call creates an empty store."""
        raise NotImplementedError

    @pytest.fixture
    def make_shared(self) -> Callable[[], Store]:
        """A function; all stores that it creates share their content."""
        pytest.skip("these stores do not share data")

    @pytest.fixture
    async def store(self, make_store: Callable[[], Store]) -> AsyncIterator[Any]:
        """An empty store, opened in one task and closed in another after the test."""
        store = make_store()
        if isinstance(store, AbstractAsyncContextManager):
            async with anyio.create_task_group() as opening:
                opening.start_soon(store.__aenter__)
        yield store
        async with anyio.create_task_group() as closing:
            closing.start_soon(store.aclose)

    async def test_empty_store_has_all_methods_and_no_bytes(self, store: Store) -> None:
        assert isinstance(store, Store)
        assert await store.get(KEY) is None

    @pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
    async def test_get_and_update_see_the_bytes_as_they_were(
        self, store: Store, value: bytes
    ) -> None:
        seen: list[bytes | None] = []  # `append` returns None, so nothing is written

        await store.update(KEY, seen.append)
        await store.update(KEY, to(value))
        await store.update(KEY, seen.append)

        assert seen == [None, value]
        assert await store.get(KEY) == value

    @pytest.mark.parametrize(
        "error", [LookupError("mine"), ExceptionGroup("mine", [ValueError()])], ids=repr
    )
    async def test_change_that_raises_writes_nothing_and_spoils_no_other(
        self, store: Store, error: Exception
    ) -> None:
        def fail(_: bytes | None) -> None:
            raise error

        async def update_wrongly(key: str) -> None:
            with pytest.raises(type(error)) as caught:
                await store.update(key, fail)
            assert caught.value is error

        await store.update(KEY, to(b"before"))
        async with anyio.create_task_group() as tasks:
            for key in KEYS:
                tasks.start_soon(update_wrongly, KEY)
                tasks.start_soon(store.update, key, to(b"other"))
                tasks.start_soon(update_wrongly, key)

        assert await store.get(KEY) == b"before"
        assert [await store.get(key) for key in KEYS] == [b"other"] * len(KEYS)

    async def test_updates_at_once_lose_nothing(self, store: Store) -> None:
        await _append_at_once(store)

    async def test_updates_of_stores_that_share_a_place_lose_nothing(
        self, make_shared: Callable[[], Store]
    ) -> None:
        async with aclosing(make_shared()) as one, aclosing(make_shared()) as other:
            await _append_at_once(one, other)

    async def test_keys_are_kept_apart(self, store: Store) -> None:
        for key in KEYS:
            await store.update(key, to(key.encode()))
        await store.delete(KEYS[0])

        assert await store.get(KEYS[0]) is None
        assert [await store.get(k) for k in KEYS[1:]] == [k.encode() for k in KEYS[1:]]

    async def test_deleted_key_is_gone_and_may_come_back(self, store: Store) -> None:
        await store.delete(KEY)
        await store.update(KEY, to(b"1"))
        await store.delete(KEY)
        await store.delete(KEY)
        assert await store.get(KEY) is None

        await store.update(KEY, to(b"2"))
        assert await store.get(KEY) == b"2"

    async def test_purge_drops_what_nothing_can_use_and_tells_how_many(
        self, store: Store
    ) -> None:
        """`purge` takes the time as an argument because a store has no clock."""
        ends = {"a": 2.0, "b": NOW, "c": LATER, "d": None}
        for key, keep_until in ends.items():
            await store.update(key, to(b"", keep_until))
        before = [key for key in ends if await store.get(key) is not None]

        dropped = await store.purge(NOW)

        left = [key for key in ends if await store.get(key) is not None]
        assert left[-2:] == ["c", "d"]
        assert await store.purge(NOW) == 0
        if self.keeps_what_is_useless:
            assert (before, left, dropped) == (["a", "b", "c", "d"], ["c", "d"], 2)

    async def test_update_replaces_the_bytes_and_their_end(self, store: Store) -> None:
        await store.update(KEY, to(b"1", LATER))
        await store.update(KEY, to(b"2", None))

        assert await store.get(KEY) == b"2"
        assert await store.purge(LATER + 1) == 0
        assert await store.get(KEY) == b"2"

    async def test_listable_store_lists_each_key_once(self, store: Store) -> None:
        listed = store if isinstance(store, ListableStore) else pytest.skip("no list")
        empty = await keys_of(listed), await listed.count()
        for key in KEYS:
            await listed.update(key, to(b"1"))
            await listed.update(key, to(b"2"))
        await listed.delete(KEYS[0])

        assert empty == ([], 0)
        assert await keys_of(listed) == sorted(KEYS[1:])
        assert await listed.count() == len(KEYS) - 1

    async def test_store_can_be_closed_twice(self, store: Store) -> None:
        await store.aclose()
        await store.aclose()

    async def test_cancelled_update_leaves_the_old_bytes_or_the_new(
        self, store: Store
    ) -> None:
        await store.update(KEY, to(b"old"))
        for call in (
            lambda: store.update(KEY, to(b"new")),
            lambda: store.get(KEY),
            lambda: store.delete("https://example.org"),
            lambda: store.purge(NOW),
        ):
            with anyio.CancelScope() as scope:
                scope.cancel()
                await call()

        assert await store.get(KEY) in (b"old", b"new")
        await store.update(KEY, to(b"later"))
        assert await store.get(KEY) == b"later"


async def _append_at_once(*stores: Store) -> None:
    """Update one key 50 times, retrying updates that lose to other writers."""

    async def append(number: int) -> None:
        store, is_written = stores[number % len(stores)], False
        while not is_written:
            with suppress(StoreError):
                await store.update(
                    KEY, lambda kept: ((kept or b"") + bytes([number]), None)
                )
                is_written = True

    with anyio.fail_after(_PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            for number in range(50):
                tasks.start_soon(append, number)

    for store in stores:
        assert sorted(await store.get(KEY) or b"") == list(range(50))


@pytest.mark.anyio
class LeaseContract:
    """The tests that every `FetchLease` must pass; subclasses define `make_lease`."""

    @pytest.fixture
    def make_lease(self) -> Callable[[], Any]:
        """A function; all stores that it creates share their leases and bytes."""
        raise NotImplementedError

    @pytest.fixture
    async def leases(self, make_lease: Callable[[], Any]) -> AsyncIterator[list[Any]]:
        """Two stores that share their leases, closed after the test."""
        async with aclosing(make_lease()) as one, aclosing(make_lease()) as other:
            yield [one, other]

    async def test_only_one_owner_has_a_lease(self, leases: list[Any]) -> None:
        one, other = leases
        assert isinstance(one, FetchLease)
        assert await one.acquire(KEY, "one", 60.0)
        assert not await other.acquire(KEY, "other", 60.0)
        assert not await one.acquire(KEY, "one", 60.0)
        assert await other.acquire("http://example.com", "other", 60.0)

    async def test_lease_is_free_once_its_owner_has_released_it(
        self, leases: list[Any]
    ) -> None:
        one, other = leases

        await other.release(KEY, "other")  # nobody holds the lease
        await one.acquire(KEY, "one", 60.0)
        await other.release(KEY, "other")
        is_kept = not await other.acquire(KEY, "other", 60.0)
        await one.release(KEY, "one")

        assert is_kept
        assert await other.acquire(KEY, "other", 60.0)

    async def test_lease_of_an_owner_that_died_ends_by_itself(
        self, leases: list[Any]
    ) -> None:
        one, other = leases
        await one.acquire(KEY, "one", 0.05)
        is_free = False
        with anyio.fail_after(_PATIENCE_SECONDS):
            while not is_free:
                await anyio.lowlevel.checkpoint()
                is_free = await other.acquire(KEY, "other", 60.0)
        await one.release(KEY, "one")

        assert not await one.acquire(KEY, "one", 60.0)

    async def test_leases_and_bytes_of_one_key_are_two_things(
        self, leases: list[Any]
    ) -> None:
        one, other = leases
        await one.update(KEY, to(b"kept"))
        await one.acquire(KEY, "one", 60.0)
        await one.delete(KEY)

        assert await other.get(KEY) is None
        assert not await other.acquire(KEY, "other", 60.0)
