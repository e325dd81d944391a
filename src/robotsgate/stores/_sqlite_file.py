"""What file is a store: opens it, makes it, refuses what it is not."""

from __future__ import annotations

import sqlite3
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from robotsgate.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

# "robt": no other program's file is taken for ours, nor ours for another's.
_APPLICATION_ID = 0x726F6274
_VERSION = 2

# Each write takes a new id, so their order is the order of writing. The bytes come
# last, so that a sweep need not read them.
_TABLE = """
CREATE TABLE kept (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, keep_until REAL, value BLOB
)
"""

# Another process holds the file for milliseconds, some of them for a second or two.
_BUSY_SECONDS = 4.0
_ATTEMPTS_TO_OPEN = 20

# What may stay of the log after a large transaction.
_MOST_LOG_BYTES = 64 * 2**20


@contextmanager
def store_errors(path: str) -> Iterator[None]:
    """Raise what SQLite raises as a StoreError that names the file."""
    try:
        yield
    except (sqlite3.Error, UnicodeError) as error:  # a damaged text is not UTF-8
        raise StoreError(f"the store {path} failed: {error}") from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; begins with the right to write.

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


def opened(path: str) -> sqlite3.Connection:
    """A connection to the file, which any thread may use.

    Raises:
        StoreError: it is of another program, or of another version of this one.
        sqlite3.Error: it cannot be opened, or is damaged.
    """
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
    connection.execute(f"PRAGMA journal_size_limit = {_MOST_LOG_BYTES}")
    attempts = 0
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            # Another process is doing the same, and SQLite does not wait for that.
            attempts += 1
            if attempts == _ATTEMPTS_TO_OPEN:
                raise
            with transaction(connection):  # waits
                pass
        else:
            return


def _check_file(connection: sqlite3.Connection, path: str) -> bool:
    """Whether the file is a store; `False` for a new one.

    Raises:
        StoreError: it is of another program, or of another version of this one.
    """
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not tables:
        return False
    if pragma(connection, "application_id") != _APPLICATION_ID:
        raise StoreError(
            f"expected a store of robotsgate, got another program's file: {path}"
        )
    version = pragma(connection, "user_version")
    if version < _VERSION:
        raise StoreError(
            f"expected {path} in version {_VERSION}, got {version}: an earlier,"
            " unreleased robotsgate wrote it; delete it"
        )
    if version > _VERSION:
        raise StoreError(
            f"expected {path} in version {_VERSION}, got {version}: a later robotsgate"
            " wrote it"
        )
    return True


def prepare(connection: sqlite3.Connection, path: str) -> None:
    """Make the table in a new file; see that another can be written.

    Raises:
        StoreError: it is of another program, or of another version of this one.
    """
    if _check_file(connection, path):
        _check_writable(connection)
        return
    with transaction(connection):
        if _check_file(connection, path):  # another process has just made it
            return
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def _check_writable(connection: sqlite3.Connection) -> None:
    """Refuse a file that cannot be written, without waiting for another writer."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        with transaction(connection):  # which a file that may not be written allows
            connection.execute(f"PRAGMA user_version = {_VERSION}")
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(_BUSY_SECONDS * 1_000)}")


def pragma(connection: sqlite3.Connection, name: str) -> int:
    with closing(connection.execute(f"PRAGMA {name}")) as cursor:
        (value,) = cursor.fetchone()
    return int(value)
