"""One of several processes that use an SQLite file at once, until it is killed.

python -m tests.stores.crowd PATH NAME KEYS

Prints each key once it has been written.
"""

from __future__ import annotations

import sys
from contextlib import aclosing

import anyio

from robotsgate.stores.sqlite import SQLiteStore
from tests.stores.child import bytes_of
from tests.stores.contracts import to

# Several tasks, so that transactions contain several keys.
_TASKS = 10

# The file is reopened so often that first and last connections come and go.
_KEYS_OF_AN_OPENING = 100

_SHARED_KEYS = 50


async def work(path: str, name: str, keys: str) -> None:
    """Write keys of its own, and some that all processes write."""
    for first in range(0, int(keys), _KEYS_OF_AN_OPENING):
        async with (
            aclosing(SQLiteStore(path)) as store,
            anyio.create_task_group() as tasks,
        ):
            for task in range(_TASKS):
                numbers = range(first + task, first + _KEYS_OF_AN_OPENING, _TASKS)
                tasks.start_soon(_write, store, name, numbers)


async def _write(store: SQLiteStore, name: str, numbers: range) -> None:
    for number in numbers:
        for key in (f"{name}-{number}", f"shared-{number % _SHARED_KEYS}"):
            await store.update(key, to(bytes_of(key)))
            assert await store.get(key) == bytes_of(key)
            sys.stdout.write(f"{key}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    anyio.run(work, *sys.argv[1:])
