"""A store in a single SQLite file, which several processes may share.

At the end are the functions that create, open and check the file.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from concurrent.futures import Future
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio

from robotsgate._flights import Threads, finish
from robotsgate._public import set_module
from robotsgate.errors import StoreError
from robotsgate.stores._base import HOST_PREFIX

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from robotsgate.stores._base import Change

_MEBIBYTE = 2**20

# SQLite treats these as temporary databases.
_NO_FILES = ("", ":memory:")

# How many operations one commit may contain.
_MOST_AT_ONCE = 500

# Other processes lock the file for milliseconds, rarely for a second or two. Including
# the time that SQLite waits in each attempt, the tries add up to four seconds.
_MOST_TRIES = 80

# When the file is full, one key in 20 is evicted.
_SHARE_TO_EVICT = 20

# The number of rows in one slice of a sweep or listing.
_ROWS_OF_A_SLICE = 5_000

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

_Result = TypeVar("_Result")


@set_module("robotsgate")
class SQLiteStore:
    """A store in a file: once `update` has returned, the bytes survive the process.

    A store belongs to one event loop, and does all its work in worker threads.
    Processes on the same machine may share a file; do not put it on a network file
    system. When the file is full, the keys that were written longest ago are evicted.

    A call raises `StoreError` if the file cannot be read or written.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, max_bytes: int = 1024 * _MEBIBYTE
    ) -> None:
        """Open the file, or create it if it does not exist; this takes milliseconds.

        If another process has locked the file, the first operation opens it instead and
        may then raise these errors.

        Args:
            path: the path of the file; SQLite keeps two more files next to it, whose
                names end in "-wal" and "-shm".
            max_bytes: the approximate maximum size of the file in bytes, ≥ 1,048,576.

        Raises:
            StoreError: the file cannot be opened or written, is damaged, is not a
                robotsgate store, or was written by another version.
            ValueError: `max_bytes` is too small.
        """
        if max_bytes < _MEBIBYTE:
            raise ValueError(
                f"expected max_bytes to be {_MEBIBYTE} or more, got {max_bytes!r}"
            )
        self._path = os.fspath(path)
        if self._path in _NO_FILES:
            raise StoreError(f"expected the path of a file, got {self._path!r}")
        self._max_bytes = max_bytes
        # Two connections, because writes may wait for another process, but reads never
        # do.
        with _store_errors(self._path):
            self._writes = _Worker(self._path, _transaction)
            try:
                self._writes.prepare()
            except BaseException as error:
                if not _is_locked(error):
                    self._writes.connection.close()
                    raise
            self._reads = _Worker(self._path, nullcontext)
        self._writer = self._writes.connection
        self._reader = self._reads.connection
        self._written_bytes = 0
        self._is_closed = False
        self._process = os.getpid()

    def __repr__(self) -> str:
        """The store and its path."""
        return f"<robotsgate.SQLiteStore path={self._path!r}>"

    async def __aenter__(self) -> Self:
        """The store."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close."""
        await self.aclose()

    async def get(self, key: str) -> bytes | None:
        """See `Store.get`."""
        return await self._result_of(self._reads, lambda: _value_of(self._reader, key))

    async def get_many(self, keys: Sequence[str]) -> dict[str, bytes]:
        """The bytes under `keys`, read in one go; keys without bytes are omitted."""
        return await self._result_of(self._reads, lambda: self._values_of(keys))

    async def update(self, key: str, change: Change) -> None:
        """See `Store.update`. Returns once the bytes are in the file.

        Raises:
            Exception: raised by `change`.
        """
        error = await self._result_of(self._writes, lambda: self._apply(key, change))
        if error is not None:
            raise error

    async def delete(self, key: str) -> None:
        """See `Store.delete`."""
        await self._result_of(
            self._writes,
            lambda: self._writer.execute("DELETE FROM kept WHERE key = ?", (key,)),
        )

    async def purge(self, now: float) -> int:
        """See `Store.purge`. Works in slices, so that other writers don't wait long."""
        dropped = 0
        while True:
            rows = await self._result_of(self._writes, lambda: self._drop_slice(now))
            dropped += rows
            if rows < _ROWS_OF_A_SLICE:
                return dropped

    async def keys(self) -> AsyncIterator[str]:
        """See `ListableStore.keys`. Reads the keys in slices."""
        last = ""  # keys are sorted, so that none is listed twice
        while True:
            keys = await self._result_of(
                self._reads, partial(self._slice_of_keys, last)
            )
            for key in keys:
                yield key
            if len(keys) < _ROWS_OF_A_SLICE:
                return
            last = keys[-1]

    async def count(self) -> int:
        """See `ListableStore.count`."""
        return await self._result_of(self._reads, lambda: _count(self._reader))

    async def aclose(self) -> None:
        """See `Store.aclose`. Waits for pending work."""
        self._is_closed = True
        if self._process != os.getpid():  # the connections belong to the parent
            return
        # This takes only a few milliseconds unless the file is locked.
        await finish(self._close)

    async def _close(self) -> None:
        await self._reads.aclose()
        await self._writes.aclose()

    async def _result_of(self, worker: _Worker, work: Callable[[], _Result]) -> _Result:
        if self._is_closed:
            raise StoreError(f"the store {self._path} is closed")
        if self._process != os.getpid():
            raise StoreError(f"expected {self._path} to be opened after the fork")
        with _store_errors(self._path):
            return await worker.result_of(work)

    # --- in a worker thread ---------------------------------------------------------

    def _values_of(self, keys: Sequence[str]) -> dict[str, bytes]:
        values = ((key, _value_of(self._reader, key)) for key in keys)
        return {key: value for key, value in values if value is not None}

    def _slice_of_keys(self, after: str) -> list[str]:
        query = (
            f"SELECT key FROM kept WHERE key > ? AND {_IS_ORIGIN} ORDER BY key LIMIT ?"  # noqa: S608 (a constant)
        )
        rows = self._reader.execute(query, (after, _ROWS_OF_A_SLICE))
        return [key for (key,) in rows]

    def _apply(self, key: str, change: Change) -> Exception | None:
        """Apply `change` to `key`; return the error that `change` raises, if any.

        If the error were raised here, it would roll back all changes in the
        transaction.
        """
        kept = _value_of(self._writer, key)
        try:
            new = change(kept)
        except Exception as error:  # noqa: BLE001 (raised to the caller)
            return error
        if new is None:
            return None
        value, keep_until = new
        self._writer.execute(
            "REPLACE INTO kept (key, keep_until, value) VALUES (?, ?, ?)",
            (key, keep_until, value),
        )
        # The key is in the index as well.
        self._written_bytes += 2 * len(key) + len(value)
        # This happens even within a large transaction, so that the file does not grow
        # by the transaction's size.
        if self._written_bytes > self._max_bytes // (4 * _SHARE_TO_EVICT):
            self._make_room()
        return None

    def _make_room(self) -> None:
        """Evict the keys written longest ago until the file is small enough."""
        self._written_bytes = 0
        oldest = f"SELECT id FROM kept WHERE {_IS_ORIGIN} ORDER BY id LIMIT ?"  # noqa: S608 (a constant)
        query = f"DELETE FROM kept WHERE id IN ({oldest})"  # noqa: S608 (a constant)
        evicted = 1
        while evicted > 0 and self._used_bytes() > self._max_bytes:
            rows = _count(self._writer) // _SHARE_TO_EVICT + 1
            evicted = self._writer.execute(query, (rows,)).rowcount

    def _used_bytes(self) -> int:
        pages = _pragma(self._writer, "page_count")
        free = _pragma(self._writer, "freelist_count")
        return (pages - free) * _pragma(self._writer, "page_size")

    def _drop_slice(self, now: float) -> int:
        return self._writer.execute(
            "DELETE FROM kept WHERE id IN"
            " (SELECT id FROM kept WHERE keep_until <= ? LIMIT ?)",
            (now, _ROWS_OF_A_SLICE),
        ).rowcount


class _Worker:
    """Does the work of all waiting callers in batches, using one thread at a time.

    Switching to a thread and committing cost much more than handling one more key. If
    another process has locked the file, the worker makes many short attempts, so that
    it stops soon after the callers have given up.
    """

    def __init__(
        self,
        path: str,
        transaction: Callable[[sqlite3.Connection], AbstractContextManager[object]],
    ) -> None:
        """Open the file at `path`; all work is done inside `transaction`."""
        self.connection = _connect(path)
        self._path = path
        self._transaction = transaction
        self._is_prepared = False
        self._tries = 0  # consecutive tries that found the file locked
        self._waiting: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._turn = anyio.Lock()
        self._thread = Threads(1)

    def prepare(self) -> None:
        if not self._is_prepared:
            _prepare(self.connection, self._path)
            self._is_prepared = True

    async def result_of(self, work: Callable[[], _Result]) -> _Result:
        """Do `work` in the thread, and return its result.

        If the caller is cancelled before the work starts, the work is dropped; work
        that has started is completed. `work` may be called again if the file was
        locked. If any work in a batch raises an error, all callers in that batch get
        the same error.
        """
        future: Future[_Result] = Future()
        self._waiting.append((future, work))
        try:
            async with self._turn:
                while not future.done():
                    await self._thread.result_of(self._work_off)
        finally:
            future.cancel()  # no effect once it is done
        return future.result()

    async def aclose(self) -> None:
        """Close the connection once all pending work is done."""
        async with self._turn:
            try:
                await self._thread.result_of(self.connection.close)
            except RuntimeError:  # Python 3.12 and later: no new thread at exit
                self.connection.close()

    def _work_off(self) -> None:
        """Do all pending work, or none of it if the file is locked."""
        batch = [
            self._waiting.popleft()
            for _ in range(min(len(self._waiting), _MOST_AT_ONCE))
        ]
        results: list[Any] = []
        failure: Exception | None = None
        try:
            self.prepare()
            with self._transaction(self.connection):  # waits
                batch = [one for one in batch if not one[0].cancelled()]
                results = [work() for _, work in batch]
        except Exception as error:  # noqa: BLE001 (raised to the callers)
            self._tries += 1
            if _is_locked(error) and self._tries < _MOST_TRIES:
                self._waiting.extendleft(reversed(batch))
                return
            failure = error
        self._tries = 0
        for future, result in zip_longest((future for future, _ in batch), results):
            if not future.set_running_or_notify_cancel():
                continue
            if failure is None:
                future.set_result(result)
            else:
                future.set_exception(failure)


@contextmanager
def _store_errors(path: str) -> Iterator[None]:
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
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
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


def _is_locked(error: BaseException) -> bool:
    """Whether `error` means that another process has locked the file."""
    return _primary_code(error) == sqlite3.SQLITE_BUSY


def _primary_code(error: BaseException) -> int | None:
    """The kind of SQLite error, or `None` if it is not one."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & _PRIMARY_CODE


def _connect(path: str) -> sqlite3.Connection:
    """Return a connection to the file; any thread may use it."""
    return sqlite3.connect(
        path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )


def _prepare(connection: sqlite3.Connection, path: str) -> None:
    """Initialize a new file, or check that an existing file is a writable store.

    Can be called again if the file was locked.
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
    with _transaction(connection):
        if _check_file(connection, path):  # another process has just created it
            return
        connection.execute(_TABLE)
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")


def _check_file(connection: sqlite3.Connection, path: str) -> bool:
    """Whether the file is a store; `False` if it is new."""
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not tables:
        return False
    if _pragma(connection, "application_id") != _APPLICATION_ID:
        raise StoreError(
            f"expected a robotsgate store, got another program's file: {path}"
        )
    version = _pragma(connection, "user_version")
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
        with _transaction(connection):  # a read-only file permits an empty transaction
            connection.execute(f"PRAGMA user_version = {_VERSION}")
    except sqlite3.OperationalError as error:
        if not _is_locked(error):
            raise
    finally:
        connection.execute(f"PRAGMA busy_timeout = {round(_BUSY_SECONDS * 1_000)}")


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    with closing(connection.execute(f"PRAGMA {name}")) as cursor:
        (value,) = cursor.fetchone()
    return int(value)


def _value_of(connection: sqlite3.Connection, key: str) -> bytes | None:
    # Cast, because another program may have written text or a number.
    query = "SELECT CAST(value AS BLOB) FROM kept WHERE key = ?"
    row = connection.execute(query, (key,)).fetchone()
    return None if row is None else row[0]


def _count(connection: sqlite3.Connection) -> int:
    query = f"SELECT count(*) FROM kept WHERE {_IS_ORIGIN}"  # noqa: S608 (a constant)
    (count,) = connection.execute(query).fetchone()
    return int(count)
