"""The Redis store on a real cluster of three Valkey servers, and with Sentinel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from redis.asyncio import RedisCluster, Sentinel
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from robotsgate import StoreError
from robotsgate.stores.redis import RedisStore
from tests.servers.loopback import dead_port
from tests.servers.valkey_cluster import HOST, running_cluster
from tests.servers.valkey_sentinel import HOST as SENTINEL_HOST
from tests.servers.valkey_sentinel import NAME, running_sentinel
from tests.stores.child import bytes_of
from tests.stores.contracts import LeaseContract, StoreContract, keys_of, to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from robotsgate import Store
    from tests.servers.valkey import Valkey

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

# Far longer than a cluster needs to replace a node.
_TIMEOUT_SECONDS = 30.0

_KEYS = [f"http://{number:02}.example" for number in range(60)]


@pytest.fixture
def anyio_backend() -> str:
    """redis-py runs on asyncio only."""
    return "asyncio"


@pytest.fixture(scope="module")
def cluster() -> Iterator[list[Valkey]]:
    """Three nodes that the tests share; each test has its own prefix."""
    with running_cluster() as nodes:
        yield nodes


def client_of(node: Valkey) -> Callable[[], RedisCluster]:
    return lambda: RedisCluster(HOST, node.port, retry=Retry(NoBackoff(), 0))


class TestRedisStoreInCluster(StoreContract):
    keeps_what_is_useless = False

    @pytest.fixture
    def make_store(self, cluster: list[Valkey], prefix: str) -> Callable[[], Store]:
        return lambda: RedisStore(client=client_of(cluster[0]), prefix=prefix)


class TestRedisLeaseInCluster(LeaseContract):
    @pytest.fixture
    def make_lease(self, cluster: list[Valkey], prefix: str) -> Callable[[], Store]:
        return lambda: RedisStore(client=client_of(cluster[0]), prefix=prefix)


async def test_keys_are_spread_across_the_nodes_and_listed_from_all(
    cluster: list[Valkey], prefix: str
) -> None:
    async with RedisStore(client=client_of(cluster[0]), prefix=prefix) as store:
        for key in _KEYS:
            assert await store.acquire(key, "one", 60.0)
            await store.update(key, to(bytes_of(key)))
        listed = await keys_of(store)
        for key in _KEYS:
            await store.release(key, "one")

    counts = [_key_count(node, prefix) for node in cluster]
    assert listed == _KEYS
    assert min(counts) > 0
    assert sum(counts) == len(_KEYS)


async def test_key_is_found_after_its_slot_has_moved(
    cluster: list[Valkey], prefix: str
) -> None:
    key = f"{prefix}{_KEYS[0]}"

    async with RedisStore(client=client_of(cluster[0]), prefix=prefix) as store:
        await store.update(_KEYS[0], to(b"1"))
        source = next(node for node in cluster if _key_count(node, key))
        target = next(node for node in cluster if node is not source)
        _move_slot(key, source, target)
        value = await store.get(_KEYS[0])
        await store.update(_KEYS[0], to(b"2"))

        assert value == b"1"
        assert await store.get(_KEYS[0]) == b"2"
    assert (_key_count(source, key), _key_count(target, key)) == (0, 1)


async def test_store_works_again_once_a_replica_has_taken_over() -> None:
    """The replica takes over only after the store has failed.

    On a busy machine, it used to take over before the first call, which then succeeded.
    """
    with running_cluster(replicas=1) as (first, second, *_, replica):
        replica.ask("CONFIG", "SET", "cluster-replica-no-failover", "yes")
        async with RedisStore(client=client_of(second)) as store:
            for key in _KEYS:
                await store.update(key, to(bytes_of(key)))
            lost = next(key for key in _KEYS if _key_count(first, f"robotsgate:{key}"))
            while _key_count(replica, "robotsgate:") < _key_count(first, "robotsgate:"):
                await anyio.lowlevel.checkpoint()

            first.kill()
            for call in (store.get(lost), store.update(lost, to(b"lost"))):
                with pytest.raises(StoreError):
                    await call
            replica.ask("CONFIG", "SET", "cluster-replica-no-failover", "no")
            with anyio.fail_after(_TIMEOUT_SECONDS):
                while not await _is_whole(store):
                    await anyio.lowlevel.checkpoint()
            await store.update(lost, to(b"new"))

            assert await store.get(lost) == b"new"


async def test_unreachable_cluster_raises_store_error() -> None:
    port = dead_port()

    async with RedisStore(client=lambda: RedisCluster(HOST, port)) as store:
        for _ in range(3):
            with pytest.raises(StoreError, match="Redis failed"):
                await store.get(_KEYS[0])


async def test_store_follows_sentinel_to_the_replica_that_takes_over() -> None:
    with running_sentinel() as (primary, replica, sentinel):
        sentinels = Sentinel([(SENTINEL_HOST, sentinel.port)])
        async with RedisStore(client=lambda: sentinels.master_for(NAME)) as store:
            await store.update(_KEYS[0], to(bytes_of(_KEYS[0])))
            while _key_count(replica, "robotsgate:") == 0:
                await anyio.lowlevel.checkpoint()
            primary.kill()
            with pytest.raises(StoreError):
                await store.get(_KEYS[0])
            with anyio.fail_after(_TIMEOUT_SECONDS):
                while not await _is_written(store, _KEYS[1]):
                    await anyio.lowlevel.checkpoint()
            value = await store.get(_KEYS[0])
        for client in sentinels.sentinels:
            await client.aclose()

        assert value == bytes_of(_KEYS[0])
        assert _key_count(replica, "robotsgate:") == 2


async def _is_written(store: RedisStore, key: str) -> bool:
    try:
        await store.update(key, to(b"new"))
    except StoreError:
        return False
    return True


async def _is_whole(store: RedisStore) -> bool:
    """Whether all keys can be read and have their original values."""
    try:
        return all([await store.get(key) == bytes_of(key) for key in _KEYS])
    except StoreError:
        return False


def _key_count(node: Valkey, prefix: str) -> int:
    """How many keys on `node` start with `prefix`."""
    keys = node.ask("KEYS", f"{prefix}*")
    assert isinstance(keys, list)
    return len(keys)


def _move_slot(key: str, source: Valkey, target: Valkey) -> None:
    """Move the slot of `key`, including `key` itself, to `target`."""
    slot = source.ask("CLUSTER", "KEYSLOT", key)
    names = [node.ask("CLUSTER", "MYID") for node in (source, target)]
    target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", names[0])
    source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", names[1])
    source.ask("MIGRATE", HOST, target.port, key, 0, 5_000)
    target.ask("CLUSTER", "SETSLOT", slot, "NODE", names[1])
    source.ask("CLUSTER", "SETSLOT", slot, "NODE", names[1])
