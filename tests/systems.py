"""Skips tests of what not every system or event loop has."""

from __future__ import annotations

import sys

import pytest


def need_linux() -> None:
    if sys.platform != "linux":
        pytest.skip("expected Linux, for /proc")


def need_posix() -> None:
    if sys.platform == "win32":
        pytest.skip("expected POSIX: signals, a shell, terminals, /dev or os.fork")


def need_own_loop() -> None:
    if "uvloop" in sys.modules:
        pytest.skip("expected asyncio's own event loop")
