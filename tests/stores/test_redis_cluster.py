"""The store of a fleet on a real cluster of three Valkey servers."""

from __future__ import annotations

import gc
import itertools
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
import pytest
from coredis import RedisCluster

from robotsgate import StoreError
from robotsgate.stores.redis import RedisStore
from robotsgate.testing import FakeSite, ManualClock
from robotsgate.testing.stores import LeaseContract, StoreContract
from tests.checking.builders import AGENT, RULES, checker_of
from tests.servers.loopback import dead_port
from tests.servers.valkey_cluster import HOST, running_cluster
from tests.stores.test_redis import entry_about

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from robotsgate import RobotsChecker, Store
    from tests.servers.valkey import Valkey

pytestmark = pytest.mark.anyio

_NUMBERS = itertools.count()

# Far more than a cluster needs to replace a node.
_PATIENCE_SECONDS = 20.0

_ORIGINS = [f"http://{number}.example" for number in range(60)]


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """The collector finds what coredis has left here, and in no other module."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[Valkey]]:
    """Three nodes that many tests share; each has a prefix of its own."""
    with running_cluster() as nodes:
        yield nodes


@pytest.fixture
def prefix() -> str:
    return f"test{next(_NUMBERS)}:"


def client_of(node: Valkey) -> Callable[[], RedisCluster[bytes]]:
    return lambda: RedisCluster(HOST, node.port, verify_version=False)


class TestRedisStoreInCluster(StoreContract):
    keeps_what_is_useless = False

    @pytest.fixture
    def make_store(self, cluster: list[Valkey]) -> Callable[[], Store]:
        return lambda: RedisStore(
            client_of(cluster[0]), prefix=f"test{next(_NUMBERS)}:"
        )


class TestRedisLeaseInCluster(LeaseContract):
    @pytest.fixture
    def make_lease(self, cluster: list[Valkey], prefix: str) -> Callable[[], Store]:
        return lambda: RedisStore(client_of(cluster[0]), prefix=prefix)


async def test_entries_and_leases_are_spread_over_the_nodes(
    cluster: list[Valkey], prefix: str
) -> None:
    before = [_keys(node, prefix) for node in cluster]

    async with RedisStore(client_of(cluster[0]), prefix=prefix) as store:
        for origin in _ORIGINS:
            assert await store.acquire(origin, "one", 60.0)
            await store.put_leased(entry_about(origin), "one")
            await store.release(origin, "one")
        found = [await store.get(origin) for origin in _ORIGINS]

    assert before == [0, 0, 0]
    assert found == [entry_about(origin) for origin in _ORIGINS]
    assert min(_keys(node, prefix) for node in cluster) > 0
    assert sum(_keys(node, prefix) for node in cluster) == len(_ORIGINS)


async def test_entry_is_found_where_its_slot_was_moved_to(
    cluster: list[Valkey], prefix: str
) -> None:
    origin = _ORIGINS[0]
    key = f"{prefix}{origin}"

    async with RedisStore(client_of(cluster[0]), prefix=prefix) as store:
        await store.put(entry_about(origin))
        source = next(node for node in cluster if _keys(node, key))
        target = next(node for node in cluster if node is not source)
        _move_slot(key, source, target)
        found = await store.get(origin)
        is_ours = await store.acquire(origin, "one", 60.0)
        await store.put_leased(entry_about(origin), "one")

    assert found == entry_about(origin)
    assert is_ours
    assert _keys(source, key) == 0
    assert _keys(target, key) == 1


async def test_checker_goes_on_while_a_replica_takes_over_and_uses_it_then() -> None:
    site, clock = FakeSite(), ManualClock()
    urls = [f"{origin}/private" for origin in _ORIGINS]
    for origin in _ORIGINS:
        site.serve(origin, RULES)
    with running_cluster(replicas=1) as (first, second, *_, replica):
        async with _worker(second, site, clock) as checker:
            before = await checker.can_fetch_many(AGENT, urls)
        requests = len(site.requests)
        first.ask("WAIT", 1, 0)  # for the replica to have it all
        held = _keys(replica, "robotsgate:")

        async with _worker(second, site, clock) as checker:
            first.kill()
            meanwhile = await checker.can_fetch_many(AGENT, urls)
            failures = checker.stats.store_failures
        async with RedisStore(client_of(second)) as store:
            with anyio.fail_after(_PATIENCE_SECONDS):
                while not await _is_whole(store):
                    pass
        fetched_meanwhile = len(site.requests) - requests
        async with _worker(second, site, clock) as checker:
            after = await checker.can_fetch_many(AGENT, urls)
            hits = checker.stats.store_hits

    assert before == meanwhile == after == [False] * len(urls)
    assert requests == len(_ORIGINS)
    assert held > 0
    assert failures > 0
    assert fetched_meanwhile > 0
    assert hits == len(_ORIGINS)
    assert len(site.requests) == requests + fetched_meanwhile


async def test_cluster_that_is_not_there_is_an_error_of_the_store() -> None:
    port = dead_port()

    async with RedisStore(lambda: RedisCluster(HOST, port)) as store:
        for _ in range(3):
            with pytest.raises(StoreError, match="Redis failed"):
                await store.get("http://1.example")


@asynccontextmanager
async def _worker(
    node: Valkey, site: FakeSite, clock: ManualClock
) -> AsyncIterator[RobotsChecker]:
    """A checker of a process that has just begun."""
    async with (
        RedisStore(client_of(node)) as store,
        checker_of(site, store=store, clock=clock) as checker,
    ):
        yield checker


async def _is_whole(store: RedisStore) -> bool:
    """Whether all entries can be had."""
    try:
        return None not in [await store.get(origin) for origin in _ORIGINS]
    except StoreError:
        return False


def _keys(node: Valkey, prefix: str) -> int:
    """How many keys that begin with `prefix` are at `node`, or copied there."""
    keys = node.ask("KEYS", f"{prefix}*")
    assert isinstance(keys, list)
    return len(keys)


def _move_slot(key: str, source: Valkey, target: Valkey) -> None:
    """Let `target` have the slot of `key` with all that is in it."""
    slot = source.ask("CLUSTER", "KEYSLOT", key)
    names = [node.ask("CLUSTER", "MYID") for node in (source, target)]
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", names[0])
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", names[1])
    source.ask("MIGRATE", HOST, target.port, key, 0, 5_000)
    target.ask("CLUSTER", "SETSLOT", slot, "NODE", names[1])
    source.ask("CLUSTER", "SETSLOT", slot, "NODE", names[1])
