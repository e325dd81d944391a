"""Processes of their own for the tests of a store, and what they write."""

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

# A child that goes wrong must not hang the test: nothing takes a tenth of this.
_PATIENCE_SECONDS = 60.0

_MOST_BYTES = 4_000


def bytes_of(key: str) -> bytes:
    """The one value of `key`: a reader that gets another has got a wrong one."""
    chance = Random(key)  # noqa: S311 (reproducible, no secret)
    return chance.randbytes(chance.randrange(_MOST_BYTES))


@contextmanager
def child(module: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Run `module` with pipes; killed at the end of the block, if not before."""
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
            process.wait(_PATIENCE_SECONDS)
