"""`examples/filter_on_spark.py`, if PySpark and Java are installed."""

from __future__ import annotations

import os
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
# Run in a separate process, because PySpark warns and leaves sockets open.
_KILLED_WORKER = """
import os, signal, sys
import filter_on_spark as example
from pyspark import TaskContext
from pyspark.sql import SparkSession
from robotsgate import RobotsTxt

def killed_once(batches, answer=example.answer):
    for batch in answer(batches):
        if TaskContext.get().attemptNumber() == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        yield batch

os.environ["PYSPARK_PYTHON"] = sys.executable
local = {"spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false"}
spark = SparkSession.builder.master("local[2,3]").config(map=local).getOrCreate()
bodies = {
    f"https://site{n}.example": f"User-agent: *\\nDisallow: /{n % 7}/".encode()
    for n in range(900)
}
urls = [f"https://site{n % 1000}.example/{n % 7}/{n}" for n in range(100_000)]
files = {origin: RobotsTxt.parse(body) for origin, body in bodies.items()}
expected = []
for url in urls:
    file = files.get(url[:url.index("/", 8)])
    expected.append((url, None if file is None else file.can_fetch("ExampleBot", url)))
example.answer = killed_once
answers = example.with_answers(
    spark.createDataFrame([(url,) for url in urls], "url string"),
    spark.createDataFrame(
        [(origin, 0.0, 200, body) for origin, body in bodies.items()],
        "origin string, fetched_at double, status int, body binary",
    ),
).collect()
key = lambda pair: (pair[0], repr(pair[1]))
assert sorted(map(tuple, answers), key=key) == sorted(expected, key=key)
assert {allowed for _, allowed in expected} == {True, False, None}
"""


def test_killing_a_worker_changes_no_answer() -> None:
    process = subprocess.run(  # noqa: S603 (our own code)
        [sys.executable, "-c", _KILLED_WORKER],
        timeout=300,
        check=True,
        stderr=subprocess.PIPE,
        text=True,
        # Spark workers import the example as well.
        env=os.environ | {"PYTHONPATH": str(_EXAMPLE.parent)},
    )

    assert "Python worker exited unexpectedly" in process.stderr


def test_page_shows_the_output_of_the_example() -> None:
    output = subprocess.run(  # noqa: S603 (our own example)
        [sys.executable, _EXAMPLE],
        timeout=300,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout

    page = (_ROOT / "docs/how-to/filter-a-data-set.md").read_text(encoding="utf-8")
    assert f"$ python examples/filter_on_spark.py\n{output.rstrip()}\n```" in page
