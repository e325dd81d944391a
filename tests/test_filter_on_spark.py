"""`examples/filter_on_spark.py`, if PySpark and Java are installed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="PySpark is not installed")
if shutil.which("java") is None:
    pytest.skip("Java is not installed", allow_module_level=True)

_ROOT = Path(__file__).parents[1]
_EXAMPLE = _ROOT / "examples/filter_on_spark.py"


def test_page_shows_the_output_of_the_example() -> None:
    output = subprocess.run(  # noqa: S603 (our own example)
        [sys.executable, _EXAMPLE],
        timeout=300,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout

    page = (_ROOT / "docs/how-to/read-archives.md").read_text(encoding="utf-8")
    assert f"$ python examples/filter_on_spark.py\n{output.rstrip()}\n```" in page
