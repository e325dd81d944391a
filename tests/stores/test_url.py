"""Opening stores by URL."""

from __future__ import annotations

import sys
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest

from robotsgate import MemoryStore, RobotsChecker, SQLiteStore, StoreError, open_store
from robotsgate.stores.redis import RedisStore
from tests.servers.loopback import dead_port
from tests.stores.contracts import KEY, to

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("url", ["memory:", "memory:/", "memory://"])
async def test_each_memory_url_opens_a_separate_store(url: str) -> None:
    async with aclosing(open_store(url)) as one, aclosing(open_store(url)) as other:
        await one.update(KEY, to(b"1"))

        assert isinstance(one, MemoryStore)
        assert await other.count() == 0


async def test_three_slashes_name_a_file_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async with aclosing(open_store("sqlite:///robots.db")) as store:
        assert isinstance(store, SQLiteStore)
        assert (tmp_path / "robots.db").exists()


async def test_four_slashes_name_a_file_by_its_absolute_path(tmp_path: Path) -> None:
    path = tmp_path / "robots.db"
    assert path.is_absolute()

    async with aclosing(open_store(f"sqlite:///{path}")):
        assert path.exists()


@pytest.mark.parametrize("scheme", ["redis", "rediss"])
async def test_redis_is_not_contacted_when_the_store_is_opened(scheme: str) -> None:
    store = open_store(f"{scheme}://127.0.0.1:{dead_port()}")

    assert isinstance(store, RedisStore)
    await store.aclose()


@pytest.mark.parametrize("url", [
    "", "memory", "memory:x", "sqlite:", "sqlite:///", "sqlite:///:memory:", "redis:",
    "redis:host",
])  # fmt: skip
def test_invalid_url_raises_and_is_shown(url: str) -> None:
    with pytest.raises(StoreError, match="expected memory:, sqlite") as raised:
        open_store(url)

    assert str(raised.value).endswith(f"got {url!r}")


@pytest.mark.parametrize("path", ["robots.db", "/robots.db", "folder/robots"])
@pytest.mark.parametrize("before", ["", "sqlite:", "sqlite://"])
def test_path_instead_of_a_url_raises_with_the_url_to_use(
    path: str, before: str
) -> None:
    url = before + path
    if url.startswith("sqlite:///"):
        return  # valid
    with pytest.raises(StoreError) as raised:
        open_store(url)

    shown = f"got {url!r}; for that file, use 'sqlite:///{path}'"
    assert str(raised.value).endswith(shown)


@pytest.mark.parametrize("of_checker", [True, False], ids=["checker", "open_store"])
async def test_path_opens_the_file(tmp_path: Path, *, of_checker: bool) -> None:
    path = tmp_path / "robots.db"
    owner = (
        RobotsChecker(user_agent="Bot", store=path) if of_checker else open_store(path)
    )

    async with aclosing(owner):
        assert path.exists()


def test_value_that_is_neither_a_url_nor_a_path_raises() -> None:
    with pytest.raises(
        TypeError, match="expected the URL or path of a store, got None"
    ):
        open_store(None)  # type: ignore[arg-type]  # the mistake under test


@pytest.mark.parametrize("url", [
    "http://user:s3cret@host", "postgres://user:s3cret@host/robots",
    "http://host?password=s3cret", "redis:/user:s3cret@host",
    "redis://user:s3cret@host:port", "redis://user:s3cret", "REDIS//user:s3cret@host",
    "s3cret@host:6379", "s3cret@host", "sqlite://user:s3cret@host/robots",
])  # fmt: skip
def test_invalid_url_that_may_contain_a_password_is_not_shown(url: str) -> None:
    with pytest.raises(StoreError, match="expected") as raised:
        open_store(url)

    assert "s3cret" not in str(raised.value)


async def test_sqlite_file_that_cannot_be_opened_raises(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        open_store(f"sqlite:///{tmp_path}/nowhere/robots.db")


async def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    monkeypatch.delitem(sys.modules, "robotsgate.stores.redis", raising=False)

    with pytest.raises(StoreError, match=r"'\.\[redis\]'"):
        open_store("redis://host")
