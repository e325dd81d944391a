"""Tests for trio fail loudly if pytest-asyncio would run them on asyncio."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_OWN_TESTS = """
import pytest
from robotsgate import MemoryStore
from robotsgate.testing.stores import StoreContract

class TestStore(StoreContract):
    @pytest.fixture
    def make_store(self):
        return MemoryStore
"""


def _pytest(*arguments: str, cwd: Path = _ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(  # noqa: S603 (pytest itself)
        command, cwd=cwd, check=False, timeout=60, capture_output=True, text=True
    )


def test_contract_fails_if_its_tests_for_trio_run_on_asyncio(tmp_path: Path) -> None:
    (tmp_path / "test_store.py").write_text(_OWN_TESTS)

    result = _pytest("--asyncio-mode=auto", "-k", "event_loop", cwd=tmp_path)

    assert "1 failed, 1 passed" in result.stdout
    assert "set asyncio_mode to strict" in result.stdout


def test_our_own_tests_do_not_run_in_auto_mode() -> None:
    result = _pytest("-o", "asyncio_mode=auto", "--collect-only", "-n", "0", __file__)

    assert "expected asyncio_mode to be strict, got auto" in result.stderr
