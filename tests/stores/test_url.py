"""Stores that a URL names, alone and as the argument of a checker."""

from __future__ import annotations

import gc
import sys
import traceback
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

import robotsgate
from robotsgate import MemoryStore, RobotsChecker, StoreError
from robotsgate.stores._url import store_of_url
from robotsgate.stores.redis import RedisStore
from robotsgate.stores.sqlite import SQLiteStore
from robotsgate.testing.stores import NOW, ORIGIN, entry_of
from tests.checking.builders import AGENT, ClosableStore, checker_of, site_of
from tests.servers.loopback import dead_port
from tests.servers.valkey import running_valkey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.valkey import Valkey

pytestmark = [
    pytest.mark.anyio,
    # coredis leaves the buffers of a connection that failed to the collector.
]

_QUESTIONS = 20


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """The collector finds what coredis has left here, and in no other module."""
    yield
    gc.collect()


@pytest.fixture
def valkey() -> Iterator[Valkey]:
    with running_valkey() as server:
        yield server


def _connections(server: Valkey) -> int:
    """How many connections there have been, this one included."""
    lines = str(server.ask("INFO", "stats")).splitlines()
    found = dict(line.split(":") for line in lines if ":" in line)
    return int(found["total_connections_received"])


@pytest.mark.parametrize("url", ["memory:", "memory:/", "memory://"])
async def test_memory_is_a_store_of_its_own(url: str) -> None:
    async with aclosing(store_of_url(url)) as one, aclosing(store_of_url(url)) as other:
        await one.put(entry_of())
        found = await other.get(ORIGIN)

    assert isinstance(one, MemoryStore)
    assert found is None


async def test_three_slashes_name_a_file_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async with aclosing(store_of_url("sqlite:///robots.db")) as store:
        await store.put(entry_of(retain_until=NOW + 1))

    assert isinstance(store, SQLiteStore)
    assert (tmp_path / "robots.db").exists()


async def test_four_slashes_name_a_file_from_the_root(tmp_path: Path) -> None:
    path = tmp_path / "robots.db"

    for _ in range(2):
        async with aclosing(store_of_url(f"sqlite:///{path}")) as store:
            found = await store.get(ORIGIN)
            await store.put(entry_of(retain_until=NOW + 1))

    assert str(path).startswith("/")
    assert path.exists()
    assert found == entry_of(retain_until=NOW + 1)


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
async def test_redis_is_not_asked_before_it_is_needed(scheme: str) -> None:
    store = store_of_url(f"{scheme}://127.0.0.1:{dead_port()}")

    assert isinstance(store, RedisStore)
    await store.aclose()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "memory",
        "memory:x",
        "sqlite:",
        "sqlite:robots.db",
        "sqlite://robots.db",
        "sqlite:///",
        "sqlite:///:memory:",
        "redis:",
        "redis:host",
        "http://user:s3cret@host",
        "postgres://user:s3cret@host/robots",
        "redis:/user:s3cret@host",
        "redis://user:s3cret@host:port",
        "REDIS//user:s3cret@host",
        "s3cret@host:6379",
        "robots.db",
        "/robots.db",
    ],
)
async def test_wrong_url_raises_without_showing_a_password(url: str) -> None:
    with pytest.raises(StoreError) as raised:
        RobotsChecker(store=url)

    shown = "".join(traceback.format_exception_only(raised.value))
    assert "expected" in shown
    assert "s3cret" not in shown


async def test_sqlite_file_that_cannot_be_opened_raises(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        store_of_url(f"sqlite:///{tmp_path}/nowhere/robots.db")


async def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coredis", None)
    monkeypatch.delitem(sys.modules, "robotsgate.stores.redis")

    with pytest.raises(StoreError, match=r"robotsgate\[redis\]"):
        RobotsChecker(store="redis://host")
    with pytest.raises(ImportError, match=r"robotsgate\[redis\]"):
        robotsgate.RedisStore  # noqa: B018 (its import is what is looked at)


async def test_checker_closes_the_store_that_it_has_made(tmp_path: Path) -> None:
    checker = checker_of(site_of(), store=f"sqlite:///{tmp_path}/robots.db")
    own_store = checker._own_store
    assert own_store is not None

    async with checker:
        await checker.can_fetch(AGENT, ORIGIN)

    with pytest.raises(StoreError, match="closed"):
        await own_store.get(ORIGIN)


async def test_checker_does_not_close_a_store_that_it_was_given() -> None:
    store = ClosableStore()

    async with checker_of(site_of(), store=store) as checker:
        await checker.can_fetch(AGENT, ORIGIN)

    assert not store.is_closed


async def test_given_redis_store_can_be_used_after_the_checker(valkey: Valkey) -> None:
    async with RedisStore(valkey.url) as store:
        async with checker_of(site_of(), store=store) as checker:
            await checker.can_fetch(AGENT, ORIGIN)
        found = await store.get(ORIGIN)

    assert found is not None


async def test_checker_keeps_the_connections_of_its_own_redis(valkey: Valkey) -> None:
    urls = [f"http://{number}.example/" for number in range(_QUESTIONS)]

    async with checker_of(site_of(), store=valkey.url) as checker:
        for url in urls:
            await checker.can_fetch(AGENT, url)
        kept = _connections(valkey)

    assert checker.stats.store_failures == 0
    assert kept <= 1 + 1  # of the store, and of the one who asks


async def test_checker_without_its_context_uses_redis_all_the_same(
    valkey: Valkey,
) -> None:
    checker = checker_of(site_of(), store=valkey.url)
    await checker.can_fetch(AGENT, ORIGIN)
    await checker.aclose()
    connections = _connections(valkey)

    assert checker.stats.store_failures == 0
    assert connections > 1 + 1
    assert valkey.ask("EXISTS", f"robotsgate:{ORIGIN}") == 1


async def test_connections_are_closed_with_the_checker(valkey: Valkey) -> None:
    async with checker_of(site_of(), store=valkey.url) as checker:
        await checker.can_fetch(AGENT, ORIGIN)

    # The server learns of it a moment later; each look is a connection of its own.
    while "connected_clients:1\r\n" not in str(valkey.ask("INFO", "clients")):
        pass


async def test_exception_inside_comes_out_as_it_was(valkey: Valkey) -> None:
    error = KeyError("mine")

    async def fail_inside() -> None:
        async with checker_of(site_of(), store=valkey.url) as checker:
            await checker.can_fetch(AGENT, ORIGIN)
            raise error

    with pytest.raises(KeyError) as raised:
        await fail_inside()

    assert raised.value is error
