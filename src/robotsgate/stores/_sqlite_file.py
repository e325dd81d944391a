"""Creates, opens and reads a store's file, and refuses other files."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from robotsgate.errors import StoreError
from robotsgate.stores._base import HOST_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# "robt", so that the file is not confused with other programs' files.
_APPLICATION_ID = 0x726F6274

# Changes together with the entries' version (`caching/_codec.py`), so that a file with
# unreadable entries is refused once, instead of entry by entry.
_VERSION = 3

# Each write gets a new id, so ids follow the order of writes. The bytes are in the last
# column, so that a sweep does not read them.
_TABLE = """
CREATE TABLE kept (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, keep_until REAL, value BLOB
)
"""

# The rows of origins. A ledger's records of hosts are neither listed nor evicted.
_IS_ORIGIN = f"key NOT GLOB '{HOST_PREFIX}*'"

# How long SQLite itself waits for another process. A store is opened in the event
# loop, which must not be blocked for longer.
_BUSY_SECONDS = 0.05

# How many bytes the log may keep after a large transaction.
_MOST_LOG_BYTES = 64 * 2**20

# These bits of an SQLite error code identify the kind of error.
_PRIMARY_CODE = 0xFF


@contextmanager
def store_errors(path: str) -> Iterator[None]:
    """Turn SQLite errors into StoreErrors that name the file."""
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:  # damaged text is not UTF-8
        raise StoreError(_explanation(path, error)) from error


def _explanation(path: str, error: Exception) -> str:
    """What is wrong; SQLite does not say why it cannot open or write a file."""
    if _primary_code(error) in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY}:
        file = Path(path).absolute()
        if _is_folder(file):
            return f"expected the path of a file, got the folder {path}"
        if not _is_folder(file.parent):
            return f"expected a file in an existing folder, got {path}"
        if not os.access(file.parent, os.W_OK):
            return f"expected a file in a writable folder, got {path}"
        if os.access(file, os.F_OK) and not os.access(file, os.W_OK):
            return f"expected a writable file, got {path}"
    return f"the store {path} failed: {error}"


def _is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 (`Path.is_dir` may raise)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Acquire the write lock, then commit everything or nothing.

    A transaction that reads before it acquires the lock can fail immediately if another
    process is writing, instead of waiting for it.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite itself may have rolled it back
            connection.execute("ROLLBACK")
        raise


def is_locked(error: BaseException) -> bool:
    """Whether `error` means that another process has locked the file."""
    return _primary_code(error) == sqlite3.SQLITE_BUSY


def _primary_code(error: BaseException) -> int | None:
    """The kind of SQLite error, or `None` if it is not one."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _PRIMARY_CODE


def connect(path: str) -> sqlite3.Connection:
    """Return a connection to the file; any thread may use it."""
    return sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )


def prepare(connection: sqlite3.Connection, path: str) -> None:
    """Initialize a new file, or check that an existing file is a writable store.

    Can be called again if the file was locked.

    Raises:
        StoreError: the file is another program's, or was written by another version.
        sqlite3.Error: the file is damaged or locked.
    """
    is_known = _check_file(connection, path)  # before anything is changed
    # Every commit survives the end of the process. A power failure may lose the most
    # recent commits, but does not damage the file.
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_MOST_LOG_BYTES}")
    try:
        connection.execute("PRAGMA journal_mode = WAL")
    except sqlite3.OperationalError:
        # Another process is doing the same, and SQLite does not wait for it.
        with suppress(sqlite3.OperationalError):
            connection.executescript("BEGIN IMMEDIATE; ROLLBACK")  # waits
        raise
    if is_known:
        _check_writable(connection)
        return
    with transaction(connection):
        if _check_file(connection, path):  # another process has just created it
            return
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def _check_file(connection: sqlite3.Connection, path: str) -> bool:
    """Whether the file is a store; `False` if it is new.

    Raises:
        StoreError: the file is another program's, or was written by another version.
    """
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not tables:
        return False
    if pragma(connection, "application_id") != _APPLICATION_ID:
        raise StoreError(
            f"expected a robotsgate store, got another program's file: {path}"
        )
    version = pragma(connection, "user_version")
    if version < _VERSION:
        raise StoreError(
            f"expected {path} to be version {_VERSION}, got {version}: it was"
            " written by an earlier, unreleased version of robotsgate; delete it"
        )
    if version > _VERSION:
        raise StoreError(
            f"expected {path} to be version {_VERSION}, got {version}: it was"
            " written by a later version of robotsgate"
        )
    return True


def _check_writable(connection: sqlite3.Connection) -> None:
    """Refuse a read-only file, without waiting for another writer."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        with transaction(connection):  # a read-only file permits an empty transaction
            connection.execute(f"PRAGMA user_version = {_VERSION}")
    except sqlite3.OperationalError as error:
        if not is_locked(error):
            raise
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(_BUSY_SECONDS * 1_000)}")


def pragma(connection: sqlite3.Connection, name: str) -> int:
    with closing(connection.execute(f"PRAGMA {name}")) as cursor:
        (value,) = cursor.fetchone()
    return int(value)


def value_of(connection: sqlite3.Connection, key: str) -> bytes | None:
    """The bytes under `key`; `None` if there are none."""
    # Cast, because another program may have written text or a number.
    query = "SELECT CAST(value AS BLOB) FROM kept WHERE key = ?"
    row = connection.execute(query, (key,)).fetchone()
    return None if row is None else row[0]


def values_of(connection: sqlite3.Connection, keys: Iterable[str]) -> dict[str, bytes]:
    """The bytes under `keys`, omitting keys without bytes."""
    values = ((key, value_of(connection, key)) for key in keys)
    return {key: value for key, value in values if value is not None}


def slice_of_keys(connection: sqlite3.Connection, after: str, rows: int) -> list[str]:
    """The next keys after `after` in sorted order, at most `rows` of them."""
    query = f"SELECT key FROM kept WHERE key > ? AND {_IS_ORIGIN} ORDER BY key LIMIT ?"  # noqa: S608 (a constant)
    return [key for (key,) in connection.execute(query, (after, rows))]


def count(connection: sqlite3.Connection) -> int:
    """Return the number of origins' keys."""
    query = f"SELECT count(*) FROM kept WHERE {_IS_ORIGIN}"  # noqa: S608 (a constant)
    (count,) = connection.execute(query).fetchone()
    return int(count)


def evict(connection: sqlite3.Connection, rows: int) -> int:
    """Delete the origins written longest ago, at most `rows` of them."""
    oldest = f"SELECT id FROM kept WHERE {_IS_ORIGIN} ORDER BY id LIMIT ?"  # noqa: S608 (a constant)
    query = f"DELETE FROM kept WHERE id IN ({oldest})"  # noqa: S608 (a constant)
    return connection.execute(query, (rows,)).rowcount
