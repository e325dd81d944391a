"""The store in one file: the contract, and what can happen to a file."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
import sqlite3
import subprocess
import sys
import time
from contextlib import aclosing, closing, contextmanager
from random import Random
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from robotsgate import AccessResult, Copy, Entry, FailureKind, RobotsChecker, StoreError
from robotsgate.caching._codec import encoded
from robotsgate.stores import sqlite
from robotsgate.stores.sqlite import SQLiteStore
from robotsgate.testing.stores import NOW, StoreContract, entry_of
from tests.cancellation import cancelled_at
from tests.checking.builders import (
    AGENT,
    ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    checker_of,
    let_others_run,
    site_of,
)
from tests.stores.crash import kill_writers
from tests.stores.crowd import crowd_on

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Sequence
    from pathlib import Path

    from robotsgate import Store

pytestmark = pytest.mark.anyio

MEBIBYTE = 2**20
PATIENCE_SECONDS = 10.0

# A call suspends a handful of times; more than that would be a loop.
MOST_CHECKPOINTS = 100

BARE = Entry(
    origin=ORIGIN,
    access=AccessResult.UNREACHABLE,
    checked_at=NOW,
    next_fetch_at=NOW + 60,
    retain_until=NOW + 1,
)
FULL = dataclasses.replace(
    BARE,
    status=599,
    redirects=5,
    error="it said “no”",
    failure=FailureKind.TRANSFER,
    copy=Copy.of(bytes(range(256)), fetched_at=NOW - 0.1, fresh_until=NOW + 0.7),
    unreachable_since=NOW - 1e-3,
    failures=2**31,
)


class TestSQLiteStore(StoreContract):
    @pytest.fixture
    def make_store(self, tmp_path: Path) -> Callable[[], Store]:
        numbers = iter(range(100))
        return lambda: SQLiteStore(tmp_path / f"{next(numbers)}.db")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "robots.db"


@pytest.fixture
def empty_file(path: Path) -> Path:
    path.touch()
    return path


def executed(path: Path, statement: str, *values: object) -> list[tuple[object, ...]]:
    """What `statement` gives, committed, as another program would do it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(statement, values).fetchall()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else can write to the file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("COMMIT")


def numbered(number: int, *, octets: int = 0) -> Entry:
    """An entry of this size, checked so many seconds after `NOW`."""
    # Chance does not get shorter when it is packed.
    body = Random(number).randbytes(octets)  # noqa: S311 (reproducible, no secret)
    entry = entry_of(f"http://{number}", body=body)
    return dataclasses.replace(entry, checked_at=NOW + number)


async def put_together(store: Store, *entries: Entry) -> None:
    async with anyio.create_task_group() as tasks:
        for entry in entries:
            tasks.start_soon(store.put, entry)


async def kept(store: Store, count: int) -> list[int]:
    """Which of the hosts 0, 1, 2, … the store has."""
    return [n for n in range(count) if await store.get(f"http://{n}") is not None]


# --- a file that lasts -------------------------------------------------------------


async def test_entries_are_there_when_the_file_is_opened_again(path: Path) -> None:
    async with aclosing(SQLiteStore(path)) as store:
        await store.put(FULL)
        await store.put(numbered(1, octets=100_000))
        await store.put(numbered(2))
        await store.delete("http://2")

    async with aclosing(SQLiteStore(path)) as store:
        found = [await store.get(origin) for origin in (ORIGIN, "http://1", "http://2")]

    assert found == [FULL, numbered(1, octets=100_000), None]


async def test_closed_store_leaves_one_file(path: Path) -> None:
    async with aclosing(SQLiteStore(path)) as store:
        await store.put(FULL)

    assert os.listdir(path.parent) == [path.name]  # noqa: PTH208 (no pathlib in async)


async def test_store_closes_itself_at_the_end_of_its_block(path: Path) -> None:
    async with SQLiteStore(path) as store:
        await store.put(FULL)
        found = await store.get(ORIGIN)

    assert found == FULL
    with pytest.raises(StoreError, match="closed"):
        await store.get(ORIGIN)


async def test_file_may_be_named_by_a_string(path: Path) -> None:
    async with aclosing(SQLiteStore(str(path))) as store:
        await store.put(FULL)

    assert executed(path, "SELECT origin FROM entries") == [(ORIGIN,)]


async def test_two_stores_on_one_file_see_each_others_entries(path: Path) -> None:
    async with (
        aclosing(SQLiteStore(path)) as one,
        aclosing(SQLiteStore(path)) as other,
    ):
        await one.put(FULL)
        first = await other.get(ORIGIN)
        await other.put(BARE)
        second = await one.get(ORIGIN)
        await one.delete(ORIGIN)
        third = await other.get(ORIGIN)

    assert (first, second, third) == (FULL, BARE, None)


async def test_new_file_can_be_opened_by_many_at_once(path: Path) -> None:
    stores: list[SQLiteStore] = []

    async def open_one() -> None:
        stores.append(await anyio.to_thread.run_sync(SQLiteStore, path))

    async with anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(open_one)
    for number, store in enumerate(stores):
        await store.put(numbered(number))
    found = [await kept(store, 8) for store in stores]
    for store in stores:
        await store.aclose()

    assert found == [list(range(8))] * 8


# --- a file that is no store -------------------------------------------------------


def a_text_file(path: Path) -> None:
    path.write_text("User-agent: *\n" * 1_000, encoding="ascii")


def the_file_of_another_program(path: Path) -> None:
    executed(path, "CREATE TABLE entries (origin TEXT PRIMARY KEY, entry BLOB)")


def the_named_file_of_another_program(path: Path) -> None:
    the_file_of_another_program(path)
    executed(path, "PRAGMA application_id = 1234")
    executed(path, "PRAGMA user_version = 1")


def the_file_of_a_later_version(path: Path) -> None:
    anyio.run(SQLiteStore(path).aclose)
    executed(path, "PRAGMA user_version = 99")


def a_file_that_ends_too_early(path: Path) -> None:
    anyio.run(SQLiteStore(path).aclose)
    path.write_bytes(path.read_bytes()[:5_000])


NO_STORES = {
    a_text_file: "file is not a database",
    the_file_of_another_program: "expected a store of robotsgate, got another",
    the_named_file_of_another_program: "expected a store of robotsgate, got another",
    the_file_of_a_later_version: "got 99: a later robotsgate has written it",
    a_file_that_ends_too_early: "malformed",
}


@pytest.mark.parametrize(
    ("make", "message"),
    NO_STORES.items(),
    ids=[make.__name__.replace("_", " ") for make in NO_STORES],
)
def test_file_that_is_no_store_is_refused_and_left_as_it_was(
    path: Path, make: Callable[[Path], None], message: str
) -> None:
    make(path)
    before = path.read_bytes()

    with pytest.raises(StoreError, match=message) as refusal:
        SQLiteStore(path)

    assert str(path) in str(refusal.value)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


def test_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=re.escape(str(tmp_path))):
        SQLiteStore(tmp_path)


@pytest.mark.parametrize("parent", ["file", "nothing"])
def test_path_that_cannot_be_made_is_refused(tmp_path: Path, parent: str) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / parent / "robots.db"

    with pytest.raises(StoreError, match=re.escape(str(path))):
        SQLiteStore(path)


@pytest.mark.parametrize("path", [":memory:", ""])
def test_database_that_is_no_file_is_refused(path: str) -> None:
    """Each connection would have its own, and find nothing there."""
    with pytest.raises(StoreError, match="expected"):
        SQLiteStore(path)


async def test_empty_file_becomes_a_store(empty_file: Path) -> None:
    async with aclosing(SQLiteStore(empty_file)) as store:
        await store.put(FULL)
        found = await store.get(ORIGIN)

    assert found == FULL


@pytest.mark.parametrize("max_bytes", [-1, 0, MEBIBYTE - 1])
def test_too_little_room_is_refused(path: Path, max_bytes: int) -> None:
    with pytest.raises(ValueError, match=f"1048576 or more, got {max_bytes}"):
        SQLiteStore(path, max_bytes=max_bytes)

    assert not path.exists()


# --- versions of the file ----------------------------------------------------------

STEP = "CREATE TABLE notes (note TEXT); CREATE INDEX by_end ON entries (retain_until);"


async def test_file_of_an_earlier_version_is_brought_up_with_its_entries(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with aclosing(SQLiteStore(path)) as store:
        await store.put(FULL)
    monkeypatch.setattr(sqlite, "_MIGRATIONS", (*sqlite._MIGRATIONS, STEP))

    async with aclosing(SQLiteStore(path)) as store:
        found = await store.get(ORIGIN)
        await store.put(numbered(1))
    async with aclosing(SQLiteStore(path)) as store:
        later = await store.get("http://1")

    assert (found, later) == (FULL, numbered(1))
    assert executed(path, "PRAGMA user_version") == [(2,)]
    assert executed(path, "SELECT count(*) FROM notes") == [(0,)]


async def test_new_file_takes_all_steps(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_MIGRATIONS", (*sqlite._MIGRATIONS, STEP))

    async with aclosing(SQLiteStore(path)) as store:
        await store.put(FULL)
        found = await store.get(ORIGIN)

    assert found == FULL
    assert executed(path, "PRAGMA user_version") == [(2,)]


async def test_step_that_fails_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with aclosing(SQLiteStore(path)) as store:
        await store.put(FULL)
    with monkeypatch.context() as patch:
        patch.setattr(
            sqlite, "_MIGRATIONS", (*sqlite._MIGRATIONS, "DROP TABLE entries; NONSENSE")
        )
        with pytest.raises(StoreError, match="syntax error"):
            SQLiteStore(path)

    async with aclosing(SQLiteStore(path)) as store:
        found = await store.get(ORIGIN)

    assert found == FULL
    assert executed(path, "PRAGMA user_version") == [(1,)]


async def test_entry_of_an_unknown_version_is_a_miss_that_is_told_once(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with aclosing(SQLiteStore(path)) as store:
        for number in (1, 2):
            await store.put(numbered(number))
        executed(path, "UPDATE entries SET entry = ?", b"\x02another format")
        missed = [await store.get(f"http://{number}") for number in (1, 2, 1)]
        await store.put(numbered(1))
        found = await store.get("http://1")

    (record,) = caplog.records
    assert missed == [None, None, None]
    assert found == numbered(1)
    assert (record.name, record.levelno) == ("robotsgate.stores", logging.WARNING)
    assert record.getMessage() == (
        f"{path}: expected an entry of version 1, got 2; such entries are fetched anew"
    )


# --- damage ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "octets",
    [
        pytest.param(encoded(FULL)[:-1], id="cut off"),
        pytest.param(encoded(FULL) + b"\0", id="too long"),
        pytest.param(encoded(FULL).replace(b"no", b"na"), id="changed"),
        pytest.param(encoded(numbered(1)), id="of another origin"),
        pytest.param(b"", id="empty"),
    ],
)
async def test_damaged_entry_raises_and_can_be_replaced(
    path: Path, octets: bytes
) -> None:
    async with aclosing(SQLiteStore(path)) as store:
        await store.put(FULL)
        executed(path, "UPDATE entries SET entry = ?", octets)
        with pytest.raises(StoreError, match=f"{re.escape(str(path))}.*{ORIGIN}"):
            await store.get(ORIGIN)
        await store.put(BARE)
        found = await store.get(ORIGIN)

    assert found == BARE


@pytest.mark.parametrize("value", [7, 1.5, "text", ""])
async def test_entry_that_is_no_octets_is_a_miss_or_an_error_of_the_store(
    path: Path, value: object
) -> None:
    """SQLite lets a column hold anything."""
    async with aclosing(SQLiteStore(path)) as store:
        await store.put(FULL)
        executed(path, "UPDATE entries SET entry = ?", value)
        try:
            found = await store.get(ORIGIN)
        except StoreError:
            found = None

    assert found is None


# SQLite's own; the first holds the table of tables.
PAGE = 4_096


async def filled_file(path: Path) -> dict[str, Entry]:
    """Entries of all sizes, in a closed file."""
    entries = [numbered(number, octets=number**3 // 3) for number in range(30)]
    async with aclosing(SQLiteStore(path)) as store:
        await put_together(store, *entries)
    return {entry.origin: entry for entry in entries}


def damage_all_but_the_first_page(path: Path) -> None:
    octets = path.read_bytes()
    with path.open("r+b") as file:  # the same file, which others have opened
        file.write(octets[:PAGE].ljust(len(octets), b"\xff"))


async def test_file_damaged_after_it_was_opened_raises(path: Path) -> None:
    entries = await filled_file(path)

    async with aclosing(SQLiteStore(path)) as store:
        damage_all_but_the_first_page(path)
        for origin, entry in entries.items():
            with pytest.raises(StoreError, match=re.escape(str(path))):
                await store.get(origin)
            with pytest.raises(StoreError, match=re.escape(str(path))):
                await store.put(entry)


async def test_checker_answers_right_on_a_damaged_file(path: Path) -> None:
    async with aclosing(SQLiteStore(path)) as store:
        await store.put(entry_of(ORIGIN, body=b"User-agent: *\nDisallow: /public"))
    site = site_of()

    async with aclosing(SQLiteStore(path)) as store:
        damage_all_but_the_first_page(path)
        async with checker_of(site, store=store) as checker:
            answers = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])

    assert answers == [False, True]
    assert site.requests == [ROBOTS_TXT]
    assert checker.stats.store_failures == 2  # to get, and to put


def damage_somewhere(path: Path, victim: Path, chance: Random) -> None:
    """Make `victim` of `path`, with a few or many octets changed."""
    damaged = bytearray(path.read_bytes())
    for _ in range(chance.choice([1, 3, 100])):
        length = chance.choice([1, 2, 200])
        # The first octets tell that it is a database: another test's subject.
        place = chance.randrange(100, len(damaged) - length)
        damaged[place : place + length] = chance.randbytes(length)
    victim.write_bytes(damaged)


async def test_damage_anywhere_never_gives_a_wrong_entry(
    path: Path, tmp_path: Path
) -> None:
    entries = await filled_file(path)
    chance = Random(1)  # noqa: S311 (reproducible, no secret)
    outcomes = {"right": 0, "missing": 0, "error": 0}

    for number in range(60):
        victim = tmp_path / f"{number}.db"
        damage_somewhere(path, victim, chance)
        try:
            store = SQLiteStore(victim)
        except StoreError:
            outcomes["error"] += 1
            continue
        async with aclosing(store):
            for origin, entry in entries.items():
                try:
                    found = await store.get(origin)
                except StoreError:
                    outcomes["error"] += 1
                else:
                    assert found in (None, entry), f"seed 1, file {number}"
                    outcomes["missing" if found is None else "right"] += 1

    assert min(outcomes.values()) > 0


async def test_full_disk_raises_and_the_store_goes_on(path: Path) -> None:
    async with aclosing(SQLiteStore(path)) as store:
        await store.put(FULL)
        # SQLite's own limit, which fails as a disk does that is full.
        store._writer.execute("PRAGMA max_page_count = 20")
        with pytest.raises(StoreError, match="disk is full"):
            await store.put(numbered(1, octets=200_000))
        await store.put(numbered(2))
        found = [await store.get(origin) for origin in (ORIGIN, "http://1", "http://2")]

    assert found == [FULL, None, numbered(2)]


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(dataclasses.replace(BARE, failures=-1), id="a count below 0"),
        pytest.param(dataclasses.replace(BARE, checked_at=float("nan")), id="no time"),
        pytest.param(dataclasses.replace(BARE, retain_until=10**400), id="no float"),
    ],
)
async def test_entry_that_cannot_be_stored_is_no_trouble_to_the_others(
    path: Path, bad: Entry
) -> None:
    """They are written in one batch, but they do not fail together."""
    errors: list[StoreError] = []

    async with aclosing(SQLiteStore(path)) as store:

        async def put_bad() -> None:
            try:
                await store.put(bad)
            except StoreError as error:
                errors.append(error)

        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as tasks:
                with locked(path):
                    tasks.start_soon(store.put, numbered(0))
                    await let_others_run()
                    tasks.start_soon(store.put, numbered(1))
                    tasks.start_soon(put_bad)
                    tasks.start_soon(store.put, numbered(2))
                    await let_others_run()
        found = await kept(store, 3)

    assert found == [0, 1, 2]
    assert len(errors) == 1


async def test_time_that_is_a_large_int_is_kept(path: Path) -> None:
    """A float holds it, SQLite's integers do not."""
    entry = dataclasses.replace(BARE, checked_at=2**70, retain_until=2**80)

    async with aclosing(SQLiteStore(path)) as store:
        await store.put(entry)
        found = await store.get(ORIGIN)

    assert found == entry


# --- room --------------------------------------------------------------------------


def used_octets(path: Path) -> int:
    ((pages, free),) = executed(
        path,
        "SELECT page_count, freelist_count"
        " FROM pragma_page_count, pragma_freelist_count",
    )
    assert isinstance(pages, int)
    assert isinstance(free, int)
    return (pages - free) * PAGE


async def test_entries_checked_longest_ago_go_when_there_is_no_room(
    path: Path,
) -> None:
    order = list(range(150))
    Random(1).shuffle(order)  # noqa: S311 (reproducible, no secret)

    async with aclosing(SQLiteStore(path, max_bytes=MEBIBYTE)) as store:
        for number in range(150):
            await store.put(numbered(number, octets=20_000))
        found = await kept(store, 150)

    assert found == list(range(150 - len(found), 150))
    assert 35 < len(found) < 53  # of 20 KB each
    assert used_octets(path) < 1.1 * MEBIBYTE


async def test_many_entries_at_once_do_not_take_more_room_than_there_is(
    path: Path,
) -> None:
    async with aclosing(SQLiteStore(path, max_bytes=MEBIBYTE)) as store:
        for first in range(0, 400, 200):
            await put_together(
                store,
                *(numbered(first + n, octets=20_000) for n in range(200)),
            )
        found = await kept(store, 400)

    assert used_octets(path) < 1.1 * MEBIBYTE
    assert found == list(range(400 - len(found), 400))
    assert len(found) > 35


async def put_in_one_batch(path: Path, store: Store, *entries: Entry) -> None:
    """Put all of `entries` in one transaction, but for the first."""
    first, *others = entries
    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            with locked(path):
                tasks.start_soon(store.put, first)
                await let_others_run()
                for entry in others:
                    tasks.start_soon(store.put, entry)
                await let_others_run()


@pytest.mark.parametrize("mebibytes", [1, 2])
@pytest.mark.parametrize(
    "order",
    [
        pytest.param(range(501), id="oldest first"),
        pytest.param(range(500, -1, -1), id="newest first"),
        pytest.param(Random(1).sample(range(501), 501), id="in any order"),  # noqa: S311 (reproducible, no secret)
    ],
)
async def test_batch_of_many_times_the_room_does_not_make_the_file_larger(
    path: Path, order: Sequence[int], mebibytes: int
) -> None:
    """Room was once made at its end only, when the file had grown by all of it."""
    max_bytes = mebibytes * MEBIBYTE
    octets = 20_000

    async with aclosing(SQLiteStore(path, max_bytes=max_bytes)) as store:
        entries = [numbered(number, octets=octets) for number in order]
        await put_in_one_batch(path, store, *entries)
        found = await kept(store, 501)

    ((pages,),) = executed(path, "PRAGMA page_count")
    assert isinstance(pages, int)
    assert pages * PAGE <= max_bytes + max_bytes // 20 + octets + 10 * PAGE
    newest = 35 * mebibytes
    assert found[-newest:] == list(range(501 - newest, 501))


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([3], [[3]], id="one row"),
        pytest.param([30], [[30]], id="one row that is too large"),
        pytest.param([3, 3, 3], [[3, 3, 3]], id="less than there may be"),
        pytest.param([3, 3, 4], [[3, 3, 4]], id="just as much as there may be"),
        pytest.param([3, 3, 4, 1], [[3, 3, 4], [1]], id="one row more"),
        pytest.param([30, 40, 50], [[30], [40], [50]], id="large rows only"),
        pytest.param([0, 0, 0], [[0, 0, 0]], id="empty rows"),
        pytest.param([10, 1, 9, 2], [[10], [1, 9], [2]], id="several parts"),
    ],
)
def test_rows_are_cut_in_order_where_there_are_enough_octets(
    sizes: list[int], expected: list[list[int]]
) -> None:
    rows = [(f"http://{place}", NOW, NOW, bytes(n)) for place, n in enumerate(sizes)]

    parts = list(sqlite._slices(rows, 10))

    assert [[len(row[3]) for row in part] for part in parts] == expected
    assert [row for part in parts for row in part] == rows


def test_part_of_rows_has_no_more_octets_than_asked_for_but_for_its_last_row() -> None:
    chance = Random(1)  # noqa: S311 (reproducible, no secret)
    rows = [
        (f"http://{place}", NOW, NOW, bytes(chance.randrange(300)))
        for place in range(1_000)
    ]

    parts = list(sqlite._slices(rows, 1_000))

    sizes = [[len(row[3]) for row in part] for part in parts]
    assert [row for part in parts for row in part] == rows
    assert all(sum(part[:-1]) < 1_000 for part in sizes)
    assert all(sum(part) >= 1_000 for part in sizes[:-1])


async def test_larger_entries_make_room_for_themselves(path: Path) -> None:
    async with aclosing(SQLiteStore(path, max_bytes=MEBIBYTE)) as store:
        await put_together(store, *(numbered(n, octets=1_000) for n in range(500)))
        for number in range(500, 520):
            await store.put(numbered(number, octets=300_000))
        found = await kept(store, 520)

    assert used_octets(path) < 1.5 * MEBIBYTE
    assert found[-1] == 519


async def test_entry_larger_than_the_file_may_be_harms_nothing(path: Path) -> None:
    async with aclosing(SQLiteStore(path, max_bytes=MEBIBYTE)) as store:
        await store.put(numbered(0, octets=3 * MEBIBYTE))
        await store.put(numbered(1))
        found = await store.get("http://1")

    assert found == numbered(1)
    assert used_octets(path) < MEBIBYTE


async def test_purge_goes_in_slices_and_lets_others_write_between(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_ROWS_OF_A_SLICE", 10)
    statements: list[str] = []
    dropped: list[int] = []

    async with aclosing(SQLiteStore(path)) as store:
        await put_together(store, *map(numbered, range(35)))
        for number in range(35, 40):
            entry = dataclasses.replace(numbered(number), retain_until=NOW + 1)
            await store.put(entry)

        async def purge() -> None:
            dropped.append(await store.purge(NOW))

        store._writer.set_trace_callback(statements.append)
        with anyio.fail_after(PATIENCE_SECONDS):
            async with anyio.create_task_group() as tasks:
                with locked(path):  # so that all have come before anything is done
                    tasks.start_soon(purge)
                    await let_others_run()
                    tasks.start_soon(
                        store.put, dataclasses.replace(FULL, origin="http://new")
                    )
                    await let_others_run()
        found = await kept(store, 40)

    changes = [
        statement.split()[0]
        for statement in statements
        if statement.startswith(("DELETE FROM entries WHERE rowid", "INSERT"))
    ]
    assert dropped == [35]
    assert found == [35, 36, 37, 38, 39]
    assert changes == ["DELETE", "INSERT", "DELETE", "DELETE", "DELETE"]


async def test_purge_of_exactly_full_slices_ends(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_ROWS_OF_A_SLICE", 10)

    async with aclosing(SQLiteStore(path)) as store:
        await put_together(store, *map(numbered, range(20)))
        dropped = await store.purge(NOW)

    assert dropped == 20


# --- others at the file ------------------------------------------------------------


async def test_loop_runs_and_reads_go_on_while_another_holds_the_file(
    path: Path,
) -> None:
    gaps: list[float] = []

    async def tick() -> None:
        before = time.perf_counter()
        while True:
            with anyio.move_on_after(0.001):
                await anyio.sleep_forever()
            gaps.append(time.perf_counter() - before)
            before += gaps[-1]

    async with aclosing(SQLiteStore(path)) as store:
        await put_together(store, *map(numbered, range(100)))
        async with anyio.create_task_group() as background:
            background.start_soon(tick)
            async with anyio.create_task_group() as writers:
                with locked(path):
                    for number in range(100, 200):
                        writers.start_soon(store.put, numbered(number))
                    await let_others_run()
                    found_before = await kept(store, 200)
                    with anyio.move_on_after(0.3):
                        await anyio.sleep_forever()
            background.cancel_scope.cancel()
        found_after = await kept(store, 200)

    assert found_before == list(range(100))
    assert found_after == list(range(200))
    # A put that waited on the loop would hold it up for all of the busy time-out.
    assert max(gaps) < sqlite._BUSY_SECONDS / 4


async def test_file_locked_for_too_long_raises_and_works_again_afterwards(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.02)

    async with aclosing(SQLiteStore(path)) as store:
        await store.put(BARE)
        with locked(path):
            for call in (
                lambda: store.put(FULL),
                lambda: store.delete(ORIGIN),
                lambda: store.purge(NOW + 1e9),
            ):
                with pytest.raises(StoreError, match="locked"):
                    await call()
            during = await store.get(ORIGIN)
        await store.put(FULL)
        after = await store.get(ORIGIN)

    assert during == BARE
    assert after == FULL


@pytest.mark.parametrize("attempts", [1, 20])
def test_new_file_that_another_holds_for_too_long_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch, attempts: int
) -> None:
    monkeypatch.setattr(sqlite, "_BUSY_SECONDS", 0.02)
    monkeypatch.setattr(sqlite, "_ATTEMPTS_TO_OPEN", attempts)

    with locked(path), pytest.raises(StoreError, match="locked"):
        SQLiteStore(path)


async def test_known_store_that_another_holds_is_opened_without_waiting(
    path: Path,
) -> None:
    await SQLiteStore(path).aclose()

    with anyio.fail_after(sqlite._BUSY_SECONDS / 2), locked(path):
        store = SQLiteStore(path)
        is_there = await store.get(ORIGIN) is not None
    await store.put(entry_of())
    await store.aclose()

    assert not is_there


async def test_store_whose_context_is_cancelled_is_closed(path: Path) -> None:
    with anyio.CancelScope() as scope:
        async with SQLiteStore(path) as store:
            scope.cancel()
            await anyio.lowlevel.checkpoint()

    assert scope.cancelled_caught
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        store._writer.execute("SELECT 1")


async def test_known_file_that_cannot_be_written_is_refused(path: Path) -> None:
    """By a connection that may not write, because tests may run as root."""
    await SQLiteStore(path).aclose()
    reading = sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None)

    with (
        closing(reading),
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        sqlite._migrate(reading, str(path))


def test_checker_that_cannot_be_made_leaves_no_file_open(path: Path) -> None:
    with pytest.raises(TypeError, match="AsyncClient"):
        RobotsChecker(client=object(), store=f"sqlite:///{path}")

    assert not path.exists()


async def test_new_file_that_another_holds_for_a_moment_is_waited_for(
    path: Path,
) -> None:
    stores: list[SQLiteStore] = []

    async def open_one() -> None:
        stores.append(await anyio.to_thread.run_sync(SQLiteStore, path))

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            with locked(path):
                tasks.start_soon(open_one)
                with anyio.move_on_after(0.2):
                    await anyio.sleep_forever()
                opened_early = len(stores)
    async with aclosing(stores[0]) as store:
        await store.put(FULL)
        found = await store.get(ORIGIN)

    assert opened_early == 0
    assert found == FULL


def test_several_processes_on_one_file_keep_nobody_out(path: Path) -> None:
    crowd = crowd_on(path, processes=4, calls=1_000)

    assert crowd.errors == ()
    assert crowd.calls == 4_000


def test_what_was_put_is_there_after_the_process_was_killed(path: Path) -> None:
    losses = kill_writers(path, kills=10, seed=1)

    assert losses.kills == 10
    assert len(losses.acknowledged) > 10
    assert losses.lost == []
    assert losses.damage == []


# --- forked ------------------------------------------------------------------------

# What a server does that opens everything before it makes its workers. The exit
# code of the child is the number of calls that were refused.
FORK = """
import os, sys
import anyio
from robotsgate import StoreError
from robotsgate.stores.sqlite import SQLiteStore
from robotsgate.testing.stores import NOW, entry_of

CALLS = {
    "get": lambda store: store.get("http://before"),
    "put": lambda store: store.put(entry_of("http://child")),
    "delete": lambda store: store.delete("http://before"),
    "purge": lambda store: store.purge(NOW + 1e9),
}

async def in_child(store):
    refusals = 0
    for call in CALLS.values():
        try:
            await call(store)
        except StoreError as error:
            refusals += "opened after the fork" in str(error)
    await store.aclose()
    return refusals

async def in_parent(store):
    await store.put(entry_of("http://after"))
    origins = ["http://before", "http://child", "http://after"]
    found = [origin for origin in origins if await store.get(origin) is not None]
    await store.aclose()
    return found

async def fill(path):
    async with SQLiteStore(path) as store:
        await store.put(entry_of("http://before"))

anyio.run(fill, sys.argv[1])
store = SQLiteStore(sys.argv[1])
child = os.fork()
if child == 0:
    code = 99
    try:
        code = anyio.run(in_child, store)
    finally:
        os._exit(code)
_, status = os.waitpid(child, 0)
print(os.waitstatus_to_exitcode(status), *anyio.run(in_parent, store))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_child_of_a_fork_is_refused_and_harms_nothing(path: Path) -> None:
    process = subprocess.run(  # noqa: S603 (this very interpreter)
        [sys.executable, "-c", FORK, str(path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=6 * PATIENCE_SECONDS,
    )

    assert process.stderr == ""
    assert process.stdout.split() == ["4", "http://before", "http://after"]
    assert executed(path, "PRAGMA integrity_check") == [("ok",)]
    assert list(path.parent.iterdir()) == [path]


CALLS: dict[str, Callable[[Store], Coroutine[object, object, object]]] = {
    "get": lambda store: store.get(ORIGIN),
    "put": lambda store: store.put(FULL),
    "delete": lambda store: store.delete(ORIGIN),
    "purge": lambda store: store.purge(NOW + 1e9),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=list(CALLS))
async def test_store_of_another_process_refuses_and_changes_nothing(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Callable[[Store], Coroutine[object, object, object]],
) -> None:
    async with aclosing(SQLiteStore(path)) as store:
        await store.put(BARE)
        with monkeypatch.context() as patch:
            patch.setattr(os, "getpid", lambda: -1)
            with pytest.raises(StoreError, match=f"{path.name} to be opened after"):
                await call(store)
        found = await store.get(ORIGIN)

    assert found == BARE


async def test_closing_the_store_of_another_process_leaves_its_connections_open(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SQLiteStore(path)
    await store.put(BARE)

    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: -1)
        await store.aclose()
    found = [
        connection.execute("SELECT origin FROM entries").fetchall()
        for connection in (store._reader, store._writer)
    ]
    await store.aclose()

    assert found == [[(ORIGIN,)], [(ORIGIN,)]]
    assert list(path.parent.iterdir()) == [path]


# --- cancelled, closed -------------------------------------------------------------


async def test_call_cancelled_at_any_place_leaves_a_store_that_works(
    path: Path,
) -> None:
    async with aclosing(SQLiteStore(path)) as store:
        calls = {
            "get": lambda: store.get(ORIGIN),
            "put": lambda: store.put(FULL),
            "delete": lambda: store.delete(ORIGIN),
            "purge": lambda: store.purge(NOW),
        }
        for name, call in calls.items():
            for number in range(1, MOST_CHECKPOINTS):
                await store.put(BARE)
                with anyio.fail_after(PATIENCE_SECONDS):
                    was_cancelled = await cancelled_at(number, call)
                    found = await store.get(ORIGIN)
                assert (
                    found
                    in {
                        "get": (BARE,),
                        "put": (BARE, FULL),
                        "delete": (BARE, None),
                        "purge": (BARE,),
                    }[name]
                )
                if not was_cancelled:
                    break
            else:
                raise AssertionError(f"{MOST_CHECKPOINTS} checkpoints and no end")


async def test_closed_store_raises_and_says_so(path: Path) -> None:
    store = SQLiteStore(path)
    await store.aclose()

    for call in (
        lambda: store.get(ORIGIN),
        lambda: store.put(FULL),
        lambda: store.delete(ORIGIN),
        lambda: store.purge(NOW),
    ):
        with pytest.raises(StoreError, match=f"{re.escape(str(path))} is closed"):
            await call()


async def test_closing_waits_for_what_is_under_way(path: Path) -> None:
    store = SQLiteStore(path)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            with locked(path):
                tasks.start_soon(store.put, numbered(0))
                await let_others_run()
                tasks.start_soon(store.put, numbered(1))
                await let_others_run()
                tasks.start_soon(store.aclose)
                await let_others_run()
    async with aclosing(SQLiteStore(path)) as store:
        found = await kept(store, 2)

    assert found == [0, 1]


async def test_closing_that_was_cancelled_can_be_done_again(path: Path) -> None:
    store = SQLiteStore(path)
    await store.put(FULL)
    beside = [path.with_name(f"{path.name}-{end}") for end in ("shm", "wal")]

    for number in range(1, MOST_CHECKPOINTS):
        if not await cancelled_at(number, store.aclose):
            break

    assert not any(file.exists() for file in beside)


@pytest.mark.skipif(os.name == "nt", reason="Windows lets nobody delete an open file")
async def test_file_deleted_while_it_is_open_harms_nobody(path: Path) -> None:
    """Entries live on until the store is closed; a new store begins with none."""
    async with aclosing(SQLiteStore(path)) as store:
        await store.put(FULL)
        for file in list(path.parent.iterdir()):
            file.unlink()
        try:
            found = await store.get(ORIGIN)
        except StoreError:
            found = None
    async with aclosing(SQLiteStore(path)) as other:
        later = await other.get(ORIGIN)

    assert found in (None, FULL)
    assert later is None
