"""Processes of their own for the tests of a store, and what they write."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from robotsgate import AccessResult, Copy, Entry

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["child", "entry_about"]

_ROOT = Path(__file__).parents[2]

# A child that goes wrong must not hang the test: nothing takes a tenth of this.
_PATIENCE_SECONDS = 60.0

_NOW = 1_800_000_000.0
_MOST_NUMBERS = 400


def entry_about(origin: str) -> Entry:
    """The one entry of `origin`: whoever finds another has found a wrong one."""
    chance = Random(origin)  # noqa: S311 (reproducible, no secret)
    numbers = range(chance.randrange(_MOST_NUMBERS))
    lines = [f"Disallow: /{chance.getrandbits(40):x}\n" for _ in numbers]
    return Entry(
        origin=origin,
        access=AccessResult.SUCCESSFUL,
        checked_at=_NOW,
        next_fetch_at=_NOW + 1,
        retain_until=_NOW + 1,
        status=200,
        copy=Copy.of("".join(lines).encode(), fetched_at=_NOW, fresh_until=_NOW + 1),
    )


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
