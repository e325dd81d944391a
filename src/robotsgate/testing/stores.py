"""What every store and every lease must do, as tests for pytest and anyio.

Inherit, and tell how to make one; `make_store` is a fixture that gives a function:

    class TestMyStore(StoreContract):
        @pytest.fixture
        def make_store(self):
            return MyStore

For failures that tell what was compared, put this into your conftest.py:
`pytest.register_assert_rewrite("robotsgate.testing.stores")`. The tests run on each
of asyncio and trio that is installed.
"""

from __future__ import annotations

import dataclasses
import math
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from robotsgate.caching._access import AccessResult
from robotsgate.caching._entry import Copy, Entry
from robotsgate.caching._outcome import FailureKind
from robotsgate.stores._base import FetchLease, Store

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["NOW", "LeaseContract", "StoreContract", "entry_of"]

NOW = 1_800_000_000.0
DAY = 86_400.0
ORIGIN = "https://example.com"


def entry_of(
    origin: str = ORIGIN, *, body: bytes = b"Disallow: /", retain_until: float = NOW
) -> Entry:
    """A good copy of `body`."""
    return Entry(
        origin=origin,
        access=AccessResult.SUCCESSFUL,
        checked_at=NOW,
        next_fetch_at=NOW + DAY,
        retain_until=retain_until,
        status=200,
        copy=Copy.of(body, fetched_at=NOW, fresh_until=NOW + DAY),
    )


BARE = Entry(
    origin=ORIGIN,
    access=AccessResult.UNREACHABLE,
    checked_at=NOW,
    next_fetch_at=NOW + 60,
    retain_until=NOW + DAY,
)
FULL = Entry(
    origin=ORIGIN,
    access=AccessResult.UNREACHABLE,
    checked_at=NOW + 0.123456789,
    next_fetch_at=NOW + 1 / 3,
    retain_until=NOW + 2e9,
    status=599,
    redirects=5,
    error="it said \u201cno\u201d:\r\n\x00 'x'",
    failure=FailureKind.TRANSFER,
    copy=Copy.of(bytes(range(256)), fetched_at=NOW - 0.1, fresh_until=NOW + 0.7),
    unreachable_since=NOW - 1e-3,
    failures=2**31,
)

ENTRIES: dict[str, Entry] = {
    "nothing but what it needs": BARE,
    "everything": FULL,
    "an empty copy": entry_of(body=b""),
    "a copy as long as counts": entry_of(body=bytes(range(256)) * 2_000 + b"x"),
    "the epoch": dataclasses.replace(BARE, checked_at=0.0, unreachable_since=0.0),
    "a time before the epoch": dataclasses.replace(BARE, checked_at=-1.5),
    "a copy that is kept for ever": entry_of(retain_until=math.inf),
    "an empty error": dataclasses.replace(BARE, error=""),
    "an origin with a port": dataclasses.replace(BARE, origin="http://[::1]:8080"),
    "a long origin": dataclasses.replace(BARE, origin=f"http://{'x.' * 5_000}com"),
    **{
        f"access {access.value}": dataclasses.replace(FULL, access=access)
        for access in AccessResult
    },
    **{
        f"failure {kind.value}": dataclasses.replace(BARE, failure=kind)
        for kind in FailureKind
    },
}


@pytest.mark.anyio
class StoreContract:
    """The contract; `make_store` gives an empty store on each call.

    Attributes:
        keeps_what_is_useless: whether an entry stays until it is purged; not where
            entries leave by themselves.
    """

    keeps_what_is_useless = True

    @pytest.fixture
    def make_store(self) -> Callable[[], Store]:
        """How to make an empty store."""
        raise NotImplementedError

    async def test_store_has_all_methods(self, make_store: Callable[[], Store]) -> None:
        async with aclosing(make_store()) as store:
            is_store = isinstance(store, Store)

        assert is_store

    async def test_unknown_origin_has_no_entry(
        self, make_store: Callable[[], Store]
    ) -> None:
        async with aclosing(make_store()) as store:
            entry = await store.get(ORIGIN)

        assert entry is None

    @pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
    async def test_entry_comes_back_as_it_was(
        self, make_store: Callable[[], Store], entry: Entry
    ) -> None:
        async with aclosing(make_store()) as store:
            await store.put(entry)
            found = await store.get(entry.origin)
            again = await store.get(entry.origin)

        assert found == entry
        assert again == entry
        assert (found.copy and found.copy.body) == (entry.copy and entry.copy.body)

    async def test_later_entry_takes_the_place_of_the_earlier(
        self, make_store: Callable[[], Store]
    ) -> None:
        async with aclosing(make_store()) as store:
            await store.put(FULL)
            await store.put(BARE)
            found = await store.get(ORIGIN)

        assert found == BARE

    async def test_store_does_not_know_the_time(
        self, make_store: Callable[[], Store]
    ) -> None:
        """An entry that nothing can use any more stays until it is purged."""
        useless = dataclasses.replace(BARE, next_fetch_at=1.0, retain_until=2.0)

        async with aclosing(make_store()) as store:
            await store.put(useless)
            found = await store.get(ORIGIN)

        assert found == useless or not (found or self.keeps_what_is_useless)

    @pytest.mark.parametrize(
        "other",
        [
            "http://example.com",
            "https://example.com:8443",
            "https://www.example.com",
            "https://example.co",
            "https://example.com.",
            "https://example_com",
            "https://%",
        ],
    )
    async def test_origins_are_kept_apart(
        self, make_store: Callable[[], Store], other: str
    ) -> None:
        async with aclosing(make_store()) as store:
            await store.put(BARE)
            before = await store.get(other)
            await store.put(dataclasses.replace(FULL, origin=other))
            await store.delete(other)
            kept, deleted = await store.get(ORIGIN), await store.get(other)

        assert before is None
        assert kept == BARE
        assert deleted is None

    async def test_deleted_entry_is_gone_and_may_come_back(
        self, make_store: Callable[[], Store]
    ) -> None:
        async with aclosing(make_store()) as store:
            await store.put(FULL)
            await store.delete(ORIGIN)
            gone = await store.get(ORIGIN)
            await store.put(BARE)
            back = await store.get(ORIGIN)

        assert gone is None
        assert back == BARE

    async def test_deleting_what_is_not_there_does_nothing(
        self, make_store: Callable[[], Store]
    ) -> None:
        async with aclosing(make_store()) as store:
            await store.delete(ORIGIN)
            await store.delete(ORIGIN)
            entry = await store.get(ORIGIN)

        assert entry is None

    async def test_purge_drops_what_nothing_can_use_and_tells_how_many(
        self, make_store: Callable[[], Store]
    ) -> None:
        retained = {"a": NOW - 1, "b": NOW, "c": NOW + 0.001, "d": math.inf}

        async with aclosing(make_store()) as store:
            for host, retain_until in retained.items():
                await store.put(entry_of(f"http://{host}", retain_until=retain_until))
            dropped = await store.purge(NOW)
            left = [host for host in retained if await store.get(f"http://{host}")]
            dropped_again = await store.purge(NOW)

        if self.keeps_what_is_useless:
            assert dropped == 2
            assert left == ["c", "d"]
        assert left[-1] == "d"
        assert dropped_again == 0

    async def test_purge_of_an_empty_store_drops_nothing(
        self, make_store: Callable[[], Store]
    ) -> None:
        async with aclosing(make_store()) as store:
            dropped = await store.purge(NOW)

        assert dropped == 0

    async def test_purge_goes_by_the_entry_put_last(
        self, make_store: Callable[[], Store]
    ) -> None:
        async with aclosing(make_store()) as store:
            await store.put(entry_of(retain_until=NOW - 1))
            await store.put(entry_of(retain_until=NOW + 1))
            dropped = await store.purge(NOW)
            found = await store.get(ORIGIN)

        assert dropped == 0
        assert found is not None

    async def test_store_can_be_closed_twice(
        self, make_store: Callable[[], Store]
    ) -> None:
        store = make_store()
        await store.put(FULL)

        await store.aclose()
        await store.aclose()

    async def test_stores_do_not_share_entries(
        self, make_store: Callable[[], Store]
    ) -> None:
        async with aclosing(make_store()) as one, aclosing(make_store()) as other:
            await one.put(FULL)
            found = await other.get(ORIGIN)

        assert found is None

    async def test_many_tasks_read_whole_entries(
        self, make_store: Callable[[], Store]
    ) -> None:
        entries = [
            entry_of(body=bytes([number]) * 999, retain_until=NOW + DAY)
            for number in range(20)
        ]
        found: list[Entry | None] = []

        async with aclosing(make_store()) as store:

            async def write(entry: Entry) -> None:
                await store.put(entry)
                await anyio.lowlevel.checkpoint()
                found.append(await store.get(ORIGIN))

            async with anyio.create_task_group() as tasks:
                for entry in entries:
                    tasks.start_soon(write, entry)

        assert len(found) == 20
        assert all(entry in entries for entry in found)

    async def test_cancelled_put_leaves_the_old_entry_or_the_new(
        self, make_store: Callable[[], Store]
    ) -> None:
        async with aclosing(make_store()) as store:
            await store.put(BARE)
            with anyio.CancelScope() as scope:
                scope.cancel()
                await store.put(FULL)
            found = await store.get(ORIGIN)
            await store.put(FULL)
            later = await store.get(ORIGIN)

        assert found in (BARE, FULL)
        assert later == FULL

    async def test_cancelled_call_leaves_a_store_that_works(
        self, make_store: Callable[[], Store]
    ) -> None:
        async with aclosing(make_store()) as store:
            await store.put(BARE)
            for call in (
                lambda: store.get(ORIGIN),
                lambda: store.delete("https://example.org"),
                lambda: store.purge(NOW),
            ):
                with anyio.CancelScope() as scope:
                    scope.cancel()
                    await call()
            found = await store.get(ORIGIN)

        assert found == BARE


@pytest.mark.anyio
class LeaseContract:
    """The contract of leases: each test makes several stores, which share them."""

    @pytest.fixture
    def make_lease(self) -> Callable[[], Store]:
        """How to make a store with leases; all that one test makes share them."""
        raise NotImplementedError

    async def test_lease_has_all_methods(self, make_lease: Callable[[], Store]) -> None:
        async with aclosing(make_lease()) as store:
            is_lease = isinstance(store, FetchLease)

        assert is_lease

    async def test_only_one_owner_has_a_lease(
        self, make_lease: Callable[[], Any]
    ) -> None:
        async with aclosing(make_lease()) as one, aclosing(make_lease()) as other:
            first = await one.acquire(ORIGIN, "one", 60.0)
            second = await other.acquire(ORIGIN, "other", 60.0)
            again = await one.acquire(ORIGIN, "one", 60.0)

        assert (first, second, again) == (True, False, False)

    async def test_leases_of_other_origins_are_free(
        self, make_lease: Callable[[], Any]
    ) -> None:
        async with aclosing(make_lease()) as store:
            first = await store.acquire(ORIGIN, "one", 60.0)
            other = await store.acquire("http://example.com", "other", 60.0)

        assert (first, other) == (True, True)

    async def test_released_lease_is_free(self, make_lease: Callable[[], Any]) -> None:
        async with aclosing(make_lease()) as store:
            await store.acquire(ORIGIN, "one", 60.0)
            await store.release(ORIGIN, "one")
            free = await store.acquire(ORIGIN, "other", 60.0)

        assert free

    async def test_lease_of_another_is_not_released(
        self, make_lease: Callable[[], Any]
    ) -> None:
        async with aclosing(make_lease()) as one, aclosing(make_lease()) as other:
            await one.acquire(ORIGIN, "one", 60.0)
            await other.release(ORIGIN, "other")
            taken = await other.acquire(ORIGIN, "other", 60.0)

        assert not taken

    async def test_releasing_what_nobody_has_does_nothing(
        self, make_lease: Callable[[], Any]
    ) -> None:
        async with aclosing(make_lease()) as store:
            await store.release(ORIGIN, "one")
            free = await store.acquire(ORIGIN, "one", 60.0)

        assert free

    async def test_lease_of_an_owner_that_died_ends_by_itself(
        self, make_lease: Callable[[], Any]
    ) -> None:
        async with aclosing(make_lease()) as one, aclosing(make_lease()) as other:
            await one.acquire(ORIGIN, "one", 0.05)
            with anyio.fail_after(10):
                while not await other.acquire(ORIGIN, "other", 60.0):
                    await anyio.lowlevel.checkpoint()
            await one.release(ORIGIN, "one")
            is_taken = not await one.acquire(ORIGIN, "one", 60.0)

        assert is_taken

    async def test_late_writer_does_not_replace_what_came_after_its_lease(
        self, make_lease: Callable[[], Any]
    ) -> None:
        late = entry_of(body=b"Disallow: /late", retain_until=NOW + DAY)
        newer = entry_of(body=b"Disallow: /x", retain_until=NOW + DAY)

        async with aclosing(make_lease()) as one, aclosing(make_lease()) as other:
            await one.acquire(ORIGIN, "one", 0.05)
            with anyio.fail_after(10):
                while not await other.acquire(ORIGIN, "other", 60.0):
                    await anyio.lowlevel.checkpoint()
            await other.put_leased(newer, "other")
            await other.release(ORIGIN, "other")
            await one.put_leased(late, "one")
            await one.release(ORIGIN, "one")
            found = await other.get(ORIGIN)

        assert found == newer

    async def test_owner_of_a_lease_replaces_what_it_has_seen(
        self, make_lease: Callable[[], Any]
    ) -> None:
        old = entry_of(body=b"Disallow: /old", retain_until=NOW + DAY)
        new = entry_of(body=b"Disallow: /new", retain_until=NOW + DAY)

        async with aclosing(make_lease()) as store:
            await store.put(old)
            await store.acquire(ORIGIN, "one", 60.0)
            await store.put_leased(new, "one")
            await store.release(ORIGIN, "one")
            found = await store.get(ORIGIN)

        assert found == new

    async def test_late_writer_of_the_same_store_replaces_nothing_either(
        self, make_lease: Callable[[], Any]
    ) -> None:
        """Several checkers may share one store object."""
        late = entry_of(body=b"Disallow: /late", retain_until=NOW + DAY)
        newer = entry_of(body=b"Disallow: /x", retain_until=NOW + DAY)

        async with aclosing(make_lease()) as store:
            await store.acquire(ORIGIN, "one", 0.05)
            with anyio.fail_after(10):
                while not await store.acquire(ORIGIN, "other", 60.0):
                    await anyio.lowlevel.checkpoint()
            await store.put_leased(newer, "other")
            await store.release(ORIGIN, "other")
            await store.put_leased(late, "one")
            await store.release(ORIGIN, "one")
            found = await store.get(ORIGIN)

        assert found == newer

    async def test_who_has_no_lease_puts_as_anybody(
        self, make_lease: Callable[[], Any]
    ) -> None:
        old = entry_of(body=b"Disallow: /old", retain_until=NOW + DAY)
        new = entry_of(body=b"Disallow: /new", retain_until=NOW + DAY)

        async with aclosing(make_lease()) as store:
            await store.put(old)
            await store.put_leased(new, "one")
            found = await store.get(ORIGIN)

        assert found == new
