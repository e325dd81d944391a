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


def _key_count(node: Valkey, prefix: str) -> int:
    """How many keys on `node` start with `prefix`."""
    keys = node.ask("KEYS", f"{prefix}*")
    assert isinstance(keys, list)
    return len(keys)
