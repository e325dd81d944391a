"""The SQLite store: the contract, and what can happen to a file."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import threading
from contextlib import aclosing, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from robotsgate import StoreError
from robotsgate.caching import _codec
from robotsgate.stores import sqlite
from robotsgate.stores.sqlite import SQLiteStore
from tests.cancellation import cancelled_at, each_way
from tests.checking.builders import let_others_run
from tests.stores.contracts import KEY, NOW, StoreContract, keys_of, to
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from robotsgate import Store

pytestmark = pytest.mark.anyio

MEBIBYTE = 2**20
PAGE = 4_096  # SQLite's default; the first page contains the schema
TIMEOUT_SECONDS = 20.0

# A call suspends a handful of times; more than that would be a loop.
MAX_CHECKPOINTS = 100

CALLS: dict[str, Callable[[SQLiteStore], Coroutine[object, object, object]]] = {
    "get": lambda store: store.get(KEY),
    "get_many": lambda store: store.get_many([KEY]),
    "update": lambda store: store.update(KEY, to(b"new")),
    "delete": lambda store: store.delete(KEY),
    "purge": lambda store: store.purge(NOW),
    "count": lambda store: store.count(),
}


class TestSQLiteStore(StoreContract):
    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Callable[[], Store]:
        return lambda: SQLiteStore(tmp_path / "contract.db")

    @pytest.fixture
    def make_shared(self, make_store: Callable[[], Store]) -> Callable[[], Store]:
        return make_store


@pytest.fixture(autouse=True)
def patient_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a file locked on a busy machine from looking like one locked for long."""
    monkeypatch.setattr(sqlite, "_MOST_TRIES", 1_000)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "robots.db"


def execute_sql(
    path: Path, statement: str, *values: object
) -> list[tuple[object, ...]]:
    """Execute and commit `statement` as another program would; return the rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep all others from writing to the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")


async def update_together(store: Store, values: dict[str, bytes]) -> None:
    async with anyio.create_task_group() as tasks:
        for key, value in values.items():
            tasks.start_soon(store.update, key, to(value))


# --- persistence -------------------------------------------------------------------


async def test_values_persist_when_the_file_is_reopened(path: Path) -> None:
    async with SQLiteStore(str(path)) as store:
        await store.update("a", to(b"1"))
        await store.update("b", to(b"2"))
        await store.delete("b")

    assert os.listdir(path.parent) == [path.name]  # noqa: PTH208 (no pathlib in async)
    async with SQLiteStore(path) as store:
        assert await store.get("a") == b"1"
        assert await keys_of(store) == ["a"]


async def test_get_many_returns_the_keys_that_exist(path: Path) -> None:
    async with SQLiteStore(path) as store:
        await update_together(store, {"a": b"1", "b": b"", "c": b"3"})

        assert await store.get_many(["b", "z", "a"]) == {"a": b"1", "b": b""}
        assert await store.get_many([]) == {}


async def test_keys_and_purge_work_in_slices_so_that_others_can_write(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_ROWS_OF_A_SLICE", 10)
    keys = [f"{number:02}" for number in range(40)]

    async with SQLiteStore(path) as store:
        for key in keys:
            await store.update(key, to(b"", NOW if key < "30" else None))
        listed = []
        async for key in store.keys():
            await store.update(key, lambda kept: None if kept else (b"again", NOW))
            listed.append(key)
        statements: list[str] = []
        store._writer.set_trace_callback(statements.append)
        dropped = await store.purge(NOW)

    assert listed == keys
    assert dropped == 40
    assert sum(line.startswith("DELETE") for line in statements) == 5


# --- a file that is not a store ----------------------------------------------------


def a_file_of_another_program(path: Path) -> None:
    execute_sql(path, "CREATE TABLE kept (key TEXT PRIMARY KEY, value BLOB)")
    execute_sql(path, "PRAGMA application_id = 1234")
    execute_sql(path, "PRAGMA user_version = 2")


def a_store_of_version(version: int, path: Path) -> None:
    anyio.run(SQLiteStore(path).aclose)
    execute_sql(path, f"PRAGMA user_version = {version}")


def a_truncated_file(path: Path) -> None:
    anyio.run(SQLiteStore(path).aclose)
    path.write_bytes(path.read_bytes()[:5_000])


@cases("make message", {
    "a text file": (
        lambda path: path.write_bytes(b"User-agent: *\n" * 1_000),
        "file is not a database",
    ),
    "a file of another program": (
        a_file_of_another_program, "expected a robotsgate store, got another",
    ),
    # The file and its entries always have the same version.
    "a file of an earlier version": (
        partial(a_store_of_version, _codec.VERSION - 1),
        "unreleased version of robotsgate; delete it",
    ),
    "a file of a later version": (
        partial(a_store_of_version, 99), "got 99: it was written by a later version",
    ),
    "a truncated file": (a_truncated_file, "malformed"),
    "a folder": (Path.mkdir, "expected the path of a file, got the folder"),
})  # fmt: skip
def test_file_that_is_not_a_store_is_refused_and_left_unchanged(
    path: Path, make: Callable[[Path], None], message: str
) -> None:
    make(path)
    before = path.read_bytes() if path.is_file() else b""

    with pytest.raises(StoreError, match=message) as refusal:
        SQLiteStore(path)

    assert str(path) in str(refusal.value)
    assert (path.read_bytes() if path.is_file() else b"") == before
    assert list(path.parent.iterdir()) == [path]


@cases("path message", {
    "in memory": (":memory:", "expected the path of a file, got ':memory:'"),
    "empty": ("", "expected the path of a file, got ''"),
    "no such folder": ("/nowhere/x.db", "in an existing folder, got /nowhere/x.db"),
    "a file for a folder": (f"{__file__}/x.db", "in an existing folder, got /.*/x.db"),
    "too long": (f"/{'x' * 300}", "unable to open"),
})  # fmt: skip
def test_path_that_cannot_be_a_file_is_refused(path: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        SQLiteStore(path)


def test_max_bytes_below_one_mebibyte_raises(path: Path) -> None:
    with pytest.raises(ValueError, match="1048576 or more, got 1048575"):
        SQLiteStore(path, max_bytes=MEBIBYTE - 1)

    assert not path.exists()


@cases("read_only message", {
    "the folder": ("", "expected a file in a writable folder, got "),
    "the file": ("robots.db", "expected a writable file, got "),
})  # fmt: skip
async def test_error_says_whether_the_folder_or_the_file_is_read_only(
    path: Path, monkeypatch: pytest.MonkeyPatch, read_only: str, message: str
) -> None:
    """`os.access` is replaced because tests may run as root."""
    await SQLiteStore(path).aclose()
    place = path.parent / read_only
    monkeypatch.setattr(
        os, "access", lambda asked, mode: mode == os.F_OK or asked != place
    )
    reading = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)

    with closing(reading), pytest.raises(StoreError) as refusal:  # noqa: SIM117
        with sqlite._store_errors(str(path)):
            sqlite._prepare(reading, str(path))

    assert str(refusal.value) == f"{message}{path}"


def test_file_that_another_process_creates_meanwhile_is_used(path: Path) -> None:
    def make_first(statement: str) -> None:
        if statement.startswith("PRAGMA synchronous"):  # so far, the file was new
            with closing(sqlite._connect(str(path))) as other:
                sqlite._prepare(other, str(path))

    with closing(sqlite._connect(str(path))) as connection:
        connection.set_trace_callback(make_first)
        sqlite._prepare(connection, str(path))

        (version,) = connection.execute("PRAGMA user_version").fetchone()
        assert version == sqlite._VERSION


# --- damage ------------------------------------------------------------------------


@pytest.mark.parametrize("value", [7, 1.5, "text", None])
async def test_value_of_any_sqlite_type_is_read_as_bytes_or_none(
    path: Path, value: object
) -> None:
    """SQLite allows any type in any column; the codec rejects foreign bytes."""
    async with SQLiteStore(path) as store:
        await store.update(KEY, to(b"1"))
        execute_sql(path, "UPDATE kept SET value = ?", value)
        result = await store.get(KEY)

    assert result is None or isinstance(result, bytes)


def damage_all_but_the_first_page(path: Path) -> None:
    data = path.read_bytes()
    with path.open("r+b") as file:  # the file that the store has open
        file.write(data[:PAGE].ljust(len(data), b"\xff"))


async def test_file_damaged_after_it_was_opened_raises(path: Path) -> None:
    values = {str(number): bytes(number**3) for number in range(30)}
    async with SQLiteStore(path) as store:
        await update_together(store, values)

    async with aclosing(SQLiteStore(path)) as store:
        damage_all_but_the_first_page(path)
        for key in values:
            with pytest.raises(StoreError, match=re.escape(str(path))):
                await store.get(key)
            with pytest.raises(StoreError, match=re.escape(str(path))):
                await store.update(key, to(b"new"))


async def test_full_disk_raises_and_the_store_keeps_working(path: Path) -> None:
    async with SQLiteStore(path) as store:
        await store.update("a", to(b"1"))
        # Exceeding SQLite's own limit fails like a full disk.
        store._writer.execute("PRAGMA max_page_count = 20")
        with pytest.raises(StoreError, match="disk is full"):
            await store.update("b", to(bytes(200_000)))
        await store.update("c", to(b"3"))

        assert await keys_of(store) == ["a", "c"]


# --- file size ---------------------------------------------------------------------


def file_bytes(path: Path) -> int:
    ((pages,),) = execute_sql(path, "PRAGMA page_count")
    assert isinstance(pages, int)
    return pages * PAGE


async def test_oldest_keys_are_evicted_when_the_file_is_full(path: Path) -> None:
    async with SQLiteStore(path, max_bytes=MEBIBYTE) as store:
        for number in range(150):
            await store.update(f"{number:03}", to(bytes(20_000)))
            await store.update("again and again", to(bytes(20_000)))
        *kept, again = await keys_of(store)

    assert again == "again and again"
    assert kept == [f"{number:03}" for number in range(150 - len(kept), 150)]
    assert 35 < len(kept) < 53  # of 20 KB each
    assert file_bytes(path) < 1.2 * MEBIBYTE


async def test_transaction_above_max_bytes_does_not_grow_the_file(path: Path) -> None:
    """Room used to be made only at its end, after the file had grown."""
    async with SQLiteStore(path, max_bytes=MEBIBYTE) as store:
        with anyio.fail_after(TIMEOUT_SECONDS):
            async with anyio.create_task_group() as tasks:
                with locked(path):
                    for number in range(400):
                        tasks.start_soon(store.update, str(number), to(bytes(20_000)))
                    await let_others_run()
        kept = await keys_of(store)

    assert len(kept) > 35
    assert file_bytes(path) < 1.2 * MEBIBYTE


async def test_keys_with_empty_values_count_towards_max_bytes(path: Path) -> None:
    async with SQLiteStore(path, max_bytes=MEBIBYTE) as store:
        for number in range(300):
            await store.update(f"http://{number}.{'x' * 5_000}", to(b""))

        assert await store.count() < 200
    assert file_bytes(path) < 1.2 * MEBIBYTE


async def test_value_larger_than_max_bytes_does_no_harm(path: Path) -> None:
    async with SQLiteStore(path, max_bytes=MEBIBYTE) as store:
        await store.update("large", to(bytes(3 * MEBIBYTE)))
        await store.update("small", to(b"1"))

        assert await keys_of(store) == ["small"]


# --- one thread, many callers ------------------------------------------------------


async def test_calls_while_the_thread_is_busy_share_one_transaction(path: Path) -> None:
    statements: list[str] = []
    async with SQLiteStore(path) as store:
        store._writer.set_trace_callback(statements.append)
        with anyio.fail_after(TIMEOUT_SECONDS):
            async with anyio.create_task_group() as tasks:
                with locked(path):
                    for number in range(100):
                        tasks.start_soon(store.update, str(number), to(b""))
                    await let_others_run()

        assert await store.count() == 100
    assert statements.count("COMMIT") <= 2


async def test_update_cancelled_before_it_begins_is_dropped(path: Path) -> None:
    async with SQLiteStore(path) as store:
        with anyio.fail_after(TIMEOUT_SECONDS):
            async with anyio.create_task_group() as tasks:
                with locked(path):
                    tasks.start_soon(store.update, "waiting", to(b""))
                    async with anyio.create_task_group() as given_up:
                        given_up.start_soon(store.update, "given up", to(b""))
                        await let_others_run()
                        given_up.cancel_scope.cancel()
                    tasks.start_soon(store.update, "later", to(b""))
                    await let_others_run()

        assert await keys_of(store) == ["later", "waiting"]


@each_way
@pytest.mark.parametrize("name", CALLS)
async def test_store_works_after_a_call_is_cancelled_at_any_point(
    path: Path, way: str, name: str
) -> None:
    async with SQLiteStore(path) as store:
        for number in range(1, MAX_CHECKPOINTS):
            await store.update(KEY, to(b"old"))
            with anyio.fail_after(TIMEOUT_SECONDS):
                was_cancelled = await cancelled_at(
                    number, lambda: CALLS[name](store), way=way
                )
                value = await store.get(KEY)
            allowed = {"update": {b"old", b"new"}, "delete": {b"old", None}}
            assert value in allowed.get(name, {b"old"})
            if not was_cancelled:
                break
        else:
            raise AssertionError(f"not finished after {MAX_CHECKPOINTS} checkpoints")


def test_cancellation_by_asyncio_lets_no_two_threads_work_at_once(path: Path) -> None:
    """`asyncio.wait_for` ends the wait, but not the thread."""
    is_inside, may_go = threading.Event(), threading.Event()
    changes: list[str] = []

    def change_slowly(_: bytes | None) -> None:
        is_inside.set()
        may_go.wait(TIMEOUT_SECONDS)
        changes.append("slow")

    async def main() -> None:
        async with SQLiteStore(path) as store:

            async def update(name: str) -> None:
                await store.update(KEY, lambda _: changes.append(name))

            with locked(path):
                slow = asyncio.create_task(store.update(KEY, change_slowly))
                together = asyncio.create_task(update("together with it"))
                await let_others_run()
            await anyio.to_thread.run_sync(is_inside.wait, TIMEOUT_SECONDS)
            slow.cancel()
            later = asyncio.create_task(update("later"))
            await let_others_run()
            before = changes.copy()
            may_go.set()
            await asyncio.gather(together, later)
        assert before == []

    anyio.run(main)

    assert changes == ["slow", "together with it", "later"]


async def test_all_worker_threads_can_wait_for_the_store(path: Path) -> None:
    async with SQLiteStore(path) as store:
        limiter = anyio.to_thread.current_default_thread_limiter()
        with anyio.fail_after(TIMEOUT_SECONDS):
            async with anyio.create_task_group() as tasks:
                for _ in range(int(limiter.total_tokens)):
                    tasks.start_soon(
                        anyio.to_thread.run_sync,
                        anyio.from_thread.run,
                        store.update,
                        KEY,
                        to(b"1"),
                    )

        assert await store.get(KEY) == b"1"


# --- other users of the file -------------------------------------------------------


async def test_file_locked_for_too_long_raises_and_works_again_afterwards(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_MOST_TRIES", 2)

    async with SQLiteStore(path) as store:
        await store.update(KEY, to(b"old"))
        with locked(path):
            for name in ("update", "delete", "purge"):
                with pytest.raises(StoreError, match="locked"):
                    await CALLS[name](store)
            during = await store.get(KEY)
        await store.update(KEY, to(b"new"))

        assert during == b"old"
        assert await store.get(KEY) == b"new"


@pytest.mark.parametrize("is_new", [True, False], ids=["new file", "existing file"])
async def test_call_on_a_locked_file_and_closing_can_be_cancelled_immediately(
    path: Path, *, is_new: bool
) -> None:
    """They used to wait until the file was unlocked or SQLite gave up."""
    if not is_new:
        await SQLiteStore(path).aclose()

    with locked(path):
        began_at = anyio.current_time()
        async with SQLiteStore(path) as store:
            for name in ("update", "delete", "purge"):
                with anyio.move_on_after(0.02) as scope:
                    await CALLS[name](store)
                assert scope.cancelled_caught
        assert anyio.current_time() - began_at < TIMEOUT_SECONDS


def test_callers_that_give_up_on_a_locked_file_do_not_leak_threads(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each caller cancelled by asyncio itself used to leave a thread behind."""
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", TIMEOUT_SECONDS)

    async def main() -> int:
        async with SQLiteStore(path) as store:
            threads = threading.active_count()
            with locked(path):
                for number in range(20):
                    with suppress(TimeoutError):
                        async with asyncio.timeout(0.02):
                            await store.update(str(number), to(b""))
                return threading.active_count() - threads

    assert anyio.run(main) < 10  # one is working


async def test_new_file_locked_for_too_long_raises_when_used(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_MOST_TRIES", 2)

    with locked(path):
        async with SQLiteStore(path) as store:
            for call in CALLS.values():
                with pytest.raises(StoreError, match="locked"):
                    await call(store)


async def test_store_waits_for_a_briefly_locked_new_file(path: Path) -> None:
    with anyio.fail_after(TIMEOUT_SECONDS):
        async with anyio.create_task_group() as tasks:
            with locked(path):
                store = SQLiteStore(path)
                tasks.start_soon(store.update, KEY, to(b"1"))
                await let_others_run()

    assert await store.get(KEY) == b"1"
    await store.aclose()


async def test_locked_file_that_is_not_a_store_is_refused_when_used(path: Path) -> None:
    with locked(path):
        opened_early = SQLiteStore(path)
    a_file_of_another_program(path)

    async with opened_early as store:
        for call in CALLS.values():
            with pytest.raises(StoreError, match="another program's file"):
                await call(store)


# --- forking and closing -----------------------------------------------------------


async def test_store_closes_its_file_when_no_thread_can_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when Python 3.12 exits, where an open checker closes itself."""

    async def fail(*_: object, **__: object) -> None:
        raise RuntimeError("can't create new thread at interpreter shutdown")

    store = SQLiteStore(path)
    await store.update(KEY, to(b"kept"))
    with monkeypatch.context() as patch:
        patch.setattr(anyio.to_thread, "run_sync", fail)
        await store.aclose()

    assert not path.with_name(f"{path.name}-wal").exists()


async def test_store_opened_by_another_process_raises_and_is_left_open(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a child process, but where coverage can see it."""
    store = SQLiteStore(path)
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        with pytest.raises(StoreError, match=f"{path.name} to be opened after"):
            await store.get(KEY)
        await store.aclose()

    assert store._writer.execute("SELECT 1").fetchall() == [(1,)]
    await store.aclose()


@pytest.mark.parametrize("name", CALLS)
async def test_closed_store_raises(path: Path, name: str) -> None:
    store = SQLiteStore(path)
    await store.aclose()

    with pytest.raises(StoreError, match=f"{re.escape(str(path))} is closed"):
        await CALLS[name](store)


async def test_closing_waits_for_pending_updates(path: Path) -> None:
    store = SQLiteStore(path)

    with anyio.fail_after(TIMEOUT_SECONDS):
        async with anyio.create_task_group() as tasks:
            with locked(path):
                for key in ("a", "b"):
                    tasks.start_soon(store.update, key, to(b""))
                    await let_others_run()
                tasks.start_soon(store.aclose)
                await let_others_run()

    assert execute_sql(path, "SELECT key FROM kept ORDER BY key") == [("a",), ("b",)]
