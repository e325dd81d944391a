"""Runs child processes for the store tests, and defines the values they write."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ROOT = Path(__file__).parents[2]

# A broken child must not hang the test; nothing takes a tenth of this.
_TIMEOUT_SECONDS = 60.0

_MAX_BYTES = 4_000


def bytes_of(key: str) -> bytes:
    """The only value that is ever written for `key`."""
    chance = Random(key)  # noqa: S311 (reproducible, no secret)
    return chance.randbytes(chance.randrange(_MAX_BYTES))


@contextmanager
def child(module: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run `module` with pipes, and kill it at the end of the block."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(  # noqa: S603 (this very interpreter)
        command,
        cwd=_ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
            process.wait(_TIMEOUT_SECONDS)
