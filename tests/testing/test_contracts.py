"""The contracts, in modules that inherit from them and in a pytest of their own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.servers.valkey import Valkey

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


def test_examples_in_the_reference_pass_on_a_real_server(
    valkey: Valkey, tmp_path: Path
) -> None:
    page = (_ROOT / "docs/reference/api/testing.md").read_text(encoding="utf-8")
    _, _, contracts = page.partition("\n## StoreContract\n")
    code = "".join(re.findall(r"```python\n(.*?)```", contracts, re.DOTALL))
    code = code.replace("redis://localhost:6379", valkey.url)
    (tmp_path / "test_own.py").write_text(code, encoding="utf-8")

    result = _pytest(cwd=tmp_path)

    assert result.returncode == 0, result.stdout


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
