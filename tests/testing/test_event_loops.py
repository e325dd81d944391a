"""Tests for trio fail loudly if pytest-asyncio would run them on asyncio."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_OWN_TESTS = """
from robotsgate.testing.stores import {contract}

class TestOwn({contract}):
    pass
"""


def _pytest(*arguments: str, cwd: Path = _ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(  # noqa: S603 (pytest itself)
        command, cwd=cwd, check=False, timeout=60, capture_output=True, text=True
    )


@pytest.mark.parametrize("contract", ["StoreContract", "LeaseContract"])
def test_contract_fails_if_its_tests_for_trio_run_on_asyncio(
    contract: str, tmp_path: Path
) -> None:
    (tmp_path / "test_own.py").write_text(_OWN_TESTS.format(contract=contract))

    result = _pytest("--asyncio-mode=auto", "-k", "event_loop", cwd=tmp_path)

    assert "1 failed, 1 passed" in result.stdout
    assert "set asyncio_mode to strict" in result.stdout


def test_our_own_tests_do_not_run_in_auto_mode() -> None:
    result = _pytest("-o", "asyncio_mode=auto", "--collect-only", "-n", "0", __file__)

    assert "expected asyncio_mode to be strict, got auto" in result.stderr
