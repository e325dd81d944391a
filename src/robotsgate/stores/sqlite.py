"""Entries in one SQLite file, which several processes may share."""

from __future__ import annotations

import math
import os
import sqlite3
from contextlib import ExitStack, closing, contextmanager
from typing import TYPE_CHECKING, Self

import anyio

from robotsgate.errors import StoreError
from robotsgate.stores._batches import Batches
from robotsgate.stores._entry_octets import EntryReader, octets_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from robotsgate.caching._entry import Entry

__all__ = ["SQLiteStore"]

_MEBIBYTE = 2**20

# What SQLite takes for a database that ends with its connection.
_NO_FILES = ("", ":memory:")

# "robt": no other program's file is taken for ours, nor ours for another's.
_APPLICATION_ID = 0x726F6274

# Each brings a file from the version of its place to the next; never change one.
_MIGRATIONS = (
    """
    CREATE TABLE entries (
        origin TEXT PRIMARY KEY,
        checked_at REAL NOT NULL,
        retain_until REAL NOT NULL,
        entry BLOB NOT NULL
    );
    CREATE INDEX entries_by_age ON entries (checked_at);
    """,
)

# Another process holds the file for milliseconds, some of them for a second or two.
_BUSY_SECONDS = 4.0
_ATTEMPTS_TO_OPEN = 20

# As many as SQLite takes in one statement everywhere, and as one commit should hold.
_MOST_AT_ONCE = 500

_KeptRow = tuple[str, float, float, bytes]
_Row = tuple[float, float, bytes]
"""`checked_at`, `retain_until` and the octets of an entry."""

# What goes at once when there is no room, and in one slice of a sweep.
_SHARE_TO_EVICT = 20
_ROWS_OF_A_SLICE = 5_000


class SQLiteStore:
    """A store that lasts: what `put` has returned from survives the process.

    All work is done in worker threads, for one event loop. Processes on one machine
    may share a file; do not put it on a network file system. When there is no room,
    the entries that were checked longest ago go.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, max_bytes: int = 1024 * _MEBIBYTE
    ) -> None:
        """Open the file, and make it if there is none; takes milliseconds.

        Args:
            path: of the file; "-wal" and "-shm" are added for two more beside it.
            max_bytes: what the file may hold, about, ≥ 1 MiB.

        Raises:
            StoreError: the file cannot be opened or written, is damaged, is no
                store of robotsgate, or is one of a later version.
            ValueError: `max_bytes` is too small.
        """
        if max_bytes < _MEBIBYTE:
            message = f"expected max_bytes of {_MEBIBYTE} or more, got {max_bytes!r}"
            raise ValueError(message)
        self._path = os.fspath(path)
        if self._path in _NO_FILES:
            raise StoreError(f"expected the path of a file, got {self._path!r}")
        self._max_bytes = max_bytes
        with _store_errors(self._path), ExitStack() as opened:
            self._writer = opened.enter_context(closing(_opened(self._path)))
            _migrate(self._writer, self._path)
            self._reader = opened.enter_context(closing(_opened(self._path)))
            opened.pop_all()  # all is well: they stay open
        self._reads = Batches(self._read, most=_MOST_AT_ONCE)
        self._writes = Batches(self._write, most=_MOST_AT_ONCE)
        self._entries = EntryReader(self._path)
        self._is_closed = False
        self._process = os.getpid()

    async def __aenter__(self) -> Self:
        """The store."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.aclose()

    async def get(self, origin: str) -> Entry | None:
        """As `Store.get`.

        Raises:
            StoreError: the file cannot be read, or the entry is damaged.
        """
        self._check_open()
        return self._entries.entry(await self._reads.result_of(origin), origin)

    async def put(self, entry: Entry) -> None:
        """As `Store.put`; returns when the entry is in the file.

        Raises:
            StoreError: the file cannot be written.
        """
        self._check_open()
        # Here, and not in the batch, whose others it would spoil.
        await self._writes.result_of((entry.origin, _row(entry)))

    async def delete(self, origin: str) -> None:
        """As `Store.delete`.

        Raises:
            StoreError: the file cannot be written.
        """
        self._check_open()
        await self._writes.result_of((origin, None))

    async def purge(self, now: float) -> int:
        """As `Store.purge`, in slices, so that other writers get their turn.

        Raises:
            StoreError: the file cannot be written.
        """
        dropped = 0
        while True:
            self._check_open()
            rows = await self._writes.alone(lambda: self._drop_slice(now))
            dropped += rows
            if rows < _ROWS_OF_A_SLICE:
                return dropped

    async def aclose(self) -> None:
        """As `Store.aclose`; waits for what is under way."""
        self._is_closed = True
        if self._process != os.getpid():  # the connections are the parent's
            return
        # Not cancelled: what waits here are milliseconds, but for a locked file.
        with anyio.CancelScope(shield=True):
            await self._reads.alone(self._reader.close)
            await self._writes.alone(self._writer.close)

    # --- in a worker thread ---------------------------------------------------------

    def _read(self, origins: Sequence[str]) -> Sequence[bytes | None]:
        marks = ",".join("?" * len(origins))
        query = (
            f"SELECT origin, CAST(entry AS BLOB) FROM entries WHERE origin IN ({marks})"  # noqa: S608 (marks only)
        )
        with _store_errors(self._path):
            found = dict(self._reader.execute(query, origins).fetchall())
        return [found.get(origin) for origin in origins]

    def _write(self, changes: Sequence[tuple[str, _Row | None]]) -> Sequence[None]:
        """Commit `changes`; the last of each origin counts."""
        last = dict(changes)
        kept = [(origin, *row) for origin, row in last.items() if row is not None]
        dropped = [(origin,) for origin, row in last.items() if row is None]
        with _store_errors(self._path), _transaction(self._writer):
            self._writer.executemany("DELETE FROM entries WHERE origin = ?", dropped)
            for rows in _slices(kept, self._max_bytes // _SHARE_TO_EVICT):
                self._writer.executemany(
                    "INSERT INTO entries VALUES (?, ?, ?, ?) ON CONFLICT (origin)"
                    " DO UPDATE SET checked_at = excluded.checked_at,"
                    " retain_until = excluded.retain_until, entry = excluded.entry",
                    rows,
                )
                self._make_room()
        return [None] * len(changes)

    def _make_room(self) -> None:
        """Let the oldest entries go while there are too many octets."""
        rows = 1
        while rows > 0 and self._used_bytes() > self._max_bytes:
            (count,) = self._writer.execute("SELECT count(*) FROM entries").fetchone()
            rows = self._writer.execute(
                "DELETE FROM entries WHERE rowid IN"
                " (SELECT rowid FROM entries ORDER BY checked_at LIMIT ?)",
                (count // _SHARE_TO_EVICT + 1,),
            ).rowcount

    def _used_bytes(self) -> int:
        pages = _pragma(self._writer, "page_count")
        free = _pragma(self._writer, "freelist_count")
        return (pages - free) * _pragma(self._writer, "page_size")

    def _drop_slice(self, now: float) -> int:
        with _store_errors(self._path), _transaction(self._writer):
            cursor = self._writer.execute(
                "DELETE FROM entries WHERE rowid IN"
                " (SELECT rowid FROM entries WHERE retain_until <= ? LIMIT ?)",
                (now, _ROWS_OF_A_SLICE),
            )
        return cursor.rowcount

    # --- in the loop ----------------------------------------------------------------

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError(f"the store {self._path} is closed")
        if self._process != os.getpid():
            raise StoreError(f"expected {self._path} to be opened after the fork")


def _row(entry: Entry) -> _Row:
    """What stands in the file for `entry`, but its origin.

    Raises:
        StoreError: a number of it is out of range.
    """
    octets = octets_of(entry)
    row = float(entry.checked_at), float(entry.retain_until), octets
    if math.isnan(row[0]) or math.isnan(row[1]):
        raise StoreError(f"expected an entry of {entry.origin} with times")
    return row


def _slices(rows: Sequence[_KeptRow], octets: int) -> Iterator[list[_KeptRow]]:
    """`rows` in parts of about so many octets, or of one row."""
    part: list[_KeptRow] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row[3])
        if size >= octets:
            yield part
            part, size = [], 0
    if part:
        yield part


@contextmanager
def _store_errors(path: str) -> Iterator[None]:
    """Raise what SQLite raises as a StoreError that names the file."""
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:  # a damaged text is no UTF-8
        raise StoreError(f"the store {path} failed: {error}") from error


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; begins with the right to write, which never has to be had later.

    A transaction that reads first and writes then can fail at once where another
    process writes, without waiting for it.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite itself may have given it up
            connection.execute("ROLLBACK")
        raise


def _opened(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    try:
        _check_file(connection, path)  # before anything is changed
        _set_up(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _set_up(connection: sqlite3.Connection) -> None:
    # Every commit survives the end of the process; the last ones before a power
    # failure may be lost, but nothing is damaged by that.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {64 * _MEBIBYTE}")
    attempts = 0
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            # Another process is doing the same, and SQLite does not wait for that.
            attempts += 1
            if attempts == _ATTEMPTS_TO_OPEN:
                raise
            with _transaction(connection):  # waits
                pass
        else:
            return


def _check_file(connection: sqlite3.Connection, path: str) -> int:
    """The version of the file; 0 for a new one.

    Raises:
        StoreError: it is of another program, or of a later version of this one.
    """
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if tables and _pragma(connection, "application_id") != _APPLICATION_ID:
        message = f"expected a store of robotsgate, got another program's file: {path}"
        raise StoreError(message)
    version = _pragma(connection, "user_version")
    if version > len(_MIGRATIONS):
        raise StoreError(
            f"expected {path} in version {len(_MIGRATIONS)} or before,"
            f" got {version}: a later robotsgate has written it"
        )
    return version


def _migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the file to the version of this program.

    Raises:
        StoreError: it is of a later one, or of another program.
    """
    if _check_file(connection, path) == len(_MIGRATIONS):
        _check_writable(connection)
        return
    with _transaction(connection):
        version = _check_file(connection, path)  # another process may be doing it
        for script in _MIGRATIONS[version:]:
            for statement in script.split(";"):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(_MIGRATIONS)}")


def _check_writable(connection: sqlite3.Connection) -> None:
    """Refuse a file that cannot be written, without waiting for another writer."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        with _transaction(connection):  # which a file that may not be written allows
            connection.execute(f"PRAGMA user_version = {len(_MIGRATIONS)}")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(_BUSY_SECONDS * 1_000)}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    with closing(connection.execute(f"PRAGMA {name}")) as cursor:
        (value,) = cursor.fetchone()
    return int(value)
