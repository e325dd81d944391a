"""Keep robots.txt files in your own store: a folder with one file per entry.

Starts a small site on this machine; two checkers check its URLs, one after the other:

    python examples/own_store.py

Needs Linux or macOS, because the store locks a file with `fcntl`.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
from example_site import PATHS, serving

from robotsgate import RobotsChecker, StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from robotsgate.stores import Change

AGENT = "ExampleBot"
Result = TypeVar("Result")


# --- The store
class FolderStore:
    """Keeps each entry in a file, for all processes on one machine.

    The first line of a file says until when to keep it, in epoch seconds.
    """

    def __init__(self, folder: Path) -> None:
        """Use `folder`, which must exist."""
        self._folder = folder

    async def get(self, key: str) -> bytes | None:
        """See `Store.get`."""
        return await self._in_thread(partial(value_in, self._file(key)))

    async def update(self, key: str, change: Change) -> None:
        """See `Store.update`."""
        await self._in_thread(partial(self._update, self._file(key), change))

    async def delete(self, key: str) -> None:
        """See `Store.delete`."""
        await self._in_thread(partial(self._delete, self._file(key)))

    async def purge(self, now: float) -> int:
        """See `Store.purge`."""
        return await self._in_thread(partial(self._purge, now))

    async def aclose(self) -> None:
        """See `Store.aclose`; nothing stays open between calls."""

    def _file(self, key: str) -> Path:
        # A key may be too long for a file name.
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.entry"

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        try:
            # A thread finishes what it has started, even if its caller is cancelled.
            return await anyio.to_thread.run_sync(work)
        except OSError as error:
            raise StoreError(f"cannot use the folder {self._folder}") from error

    def _update(self, file: Path, change: Change) -> None:
        with self._locked():
            new = change(value_in(file))
            if new is not None:
                value, keep_until = new
                end = math.inf if keep_until is None else keep_until
                # `replace` is atomic: no reader sees half a file.
                draft = self._folder / "draft"
                draft.write_bytes(f"{end}\n".encode() + value)
                draft.replace(file)

    def _delete(self, file: Path) -> None:
        with self._locked():
            file.unlink(missing_ok=True)

    def _purge(self, now: float) -> int:
        with self._locked():
            files = [
                file for file in self._folder.glob("*.entry") if end_of(file) <= now
            ]
            for file in files:
                file.unlink()
        return len(files)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Admit one writer at a time; if a process dies, its lock is released."""
        with (self._folder / "lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def value_in(file: Path) -> bytes | None:
    """The bytes of `file` after its first line; `None` if it does not exist."""
    try:
        return file.read_bytes().partition(b"\n")[2]
    except FileNotFoundError:
        return None


def end_of(file: Path) -> float:
    """The number on the first line of `file`."""
    with file.open("rb") as lines:
        return float(lines.readline())


# --- Using it
async def ask(folder: Path, origin: str) -> None:
    """Check some URLs with a new checker that keeps its entries in `folder`."""
    store = FolderStore(folder)
    async with RobotsChecker(user_agent=AGENT, store=store) as checker:
        for path in PATHS:
            print(f"    {path}: {await checker.check(AGENT, origin + path)}")


def main() -> None:
    """Check the URLs twice."""
    with tempfile.TemporaryDirectory() as name, serving() as origin:
        for title in ("The first checker fetches:", "The second one need not:"):
            print(title)
            anyio.run(ask, Path(name), origin)


if __name__ == "__main__":
    main()
