"""The code in the README and the docs prints what the pages show.

A `python` block runs in its page's namespace and may use `await`; the `text` block
after it shows the output. A block after the comment `<!-- a/file -->` is an excerpt of
that file, and a block after `<!-- skip: next -->` is not run.
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import importlib
import inspect
import io
import re
import subprocess
import sys
from contextlib import redirect_stdout
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import crawler
import pytest
import respx
from example_site import running
from sybil import Document
from sybil.example import SybilFailure
from sybil.parsers.markdown import CodeBlockParser, SkipParser

from robotsgate import SystemClock
from tests.reference_tables import pages
from tests.servers.loopback import dead_port
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sybil import Example

_ROOT = Path(__file__).parents[1]
_TUTORIAL = _ROOT / "docs/tutorial/first-crawl.md"
_PAGES = [
    page
    for page in (_ROOT / "README.md", *sorted(_ROOT.glob("docs/**/*.md")))
    if "\n```python" in page.read_text(encoding="utf-8") and page != _TUTORIAL
]
_FILE = re.compile(r"<!-- (\S+/\S+) -->\n\Z")


class _Evaluator:
    """Runs the blocks of one page in order."""

    def __init__(self, runner: asyncio.Runner) -> None:
        self._runner = runner
        self._printed: str | None = None

    def run(self, example: Example) -> str | None:
        """Run a block of Python, or compare it with the file it comes from."""
        if named := _FILE.search(example.document.text[: example.start]):
            file = (_ROOT / named[1]).read_text(encoding="utf-8")
            return None if example.parsed in file else f"not in {named[1]}"
        code = compile(
            "\n" * example.line + example.parsed,
            example.path,
            "exec",
            ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
            dont_inherit=True,
        )
        with redirect_stdout(io.StringIO()) as output:
            coroutine = eval(code, example.namespace)  # noqa: S307 (our own pages)
            if code.co_flags & inspect.CO_COROUTINE:
                self._runner.run(coroutine)
        self._printed = output.getvalue()
        return None

    def compare(self, example: Example) -> str | None:
        """Compare a block of text with the output of the code before it."""
        printed, self._printed = self._printed, None
        if printed is None:
            return "no code before it"
        return None if example.parsed == printed else f"the code prints:\n{printed}"

    def call(self, example: Example) -> str | None:
        """Run the example in a console block, and compare its output if it is shown."""
        command, _, shown = example.parsed.partition("\n")
        if not (shown and command.startswith("$ python examples/")):
            return None
        printed = subprocess.run(  # noqa: S603 (our own example)
            [sys.executable, "-W", "error", _ROOT / command.removeprefix("$ python ")],
            timeout=60,
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        ).stdout
        return None if shown == printed else f"the example prints:\n{printed}"


def _run(page: Path) -> None:
    with asyncio.Runner() as runner:
        evaluator = _Evaluator(runner)
        document = Document.parse(
            str(page),
            CodeBlockParser("python", evaluator.run),
            CodeBlockParser("text", evaluator.compare),
            CodeBlockParser("console", evaluator.call),
            SkipParser(),
        )
        document.namespace["__name__"] = "__main__"
        for example in document:
            example.evaluate()


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run pages in a temporary folder, with a clock that runs ten times as fast."""
    monkeypatch.chdir(tmp_path)
    wait, monotonic = SystemClock.wait, SystemClock.monotonic

    async def wait_less(clock: SystemClock, seconds: float, **options: Any) -> bool:  # noqa: ANN401 (those of `wait`)
        return await wait(clock, seconds / 10, **options)

    monkeypatch.setattr(SystemClock, "wait", wait_less)
    monkeypatch.setattr(SystemClock, "monotonic", lambda _: 10 * monotonic())


@pytest.fixture
def _web() -> Iterator[None]:
    """The fictional sites in the pages."""
    with respx.mock(assert_all_called=False) as web:
        rules = "User-agent: *\nDisallow: /basket\n"
        web.get("https://shop.example/robots.txt").respond(text=rules)
        web.get("https://museum.example/robots.txt").respond(404)
        web.get("https://down.example/robots.txt").respond(503)
        page = '<a href="/basket">Basket</a> <a href="/shoes">Shoes</a> <a href="//[">'
        web.get("https://shop.example/").respond(text=page)
        web.get(host="shop.example").respond(200)
        yield


@pytest.mark.usefixtures("_web")
@pytest.mark.parametrize(
    "page", _PAGES, ids=[page.relative_to(_ROOT).as_posix() for page in _PAGES]
)
def test_code_in_page_prints_what_the_page_shows(page: Path) -> None:
    if "from crawlee" in page.read_text(encoding="utf-8"):
        pytest.importorskip("crawlee", reason="crawlee is not installed")
    _run(page)


@pytest.mark.usefixtures("_web")
def test_crawler_prints_what_its_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    anyio.run(crawler.main, "https://shop.example/")

    command = "$ python crawler.py https://shop.example/"
    page = _ROOT / "docs/how-to/write-a-crawler.md"
    shown = f"{command}\n{capsys.readouterr().out}```"
    assert shown in page.read_text(encoding="utf-8")


def test_tutorial_prints_and_logs_what_it_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handler = partial(SimpleHTTPRequestHandler, directory="site")
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    text = _TUTORIAL.read_text(encoding="utf-8")
    page = tmp_path / "page.md"

    with running(server):
        text = text.replace("8000", str(server.server_port))
        page.write_text(text.replace("8001", str(dead_port())), encoding="utf-8")
        _run(page)

    log = re.findall('] (".*)', capsys.readouterr().err)
    assert re.findall('^127.* (".*)', text, re.MULTILINE) == log


@cases("page", {
    "wrong output": ("```python\nawait gather()\nprint(1)\n```\n```text\n2\n```\n",),
    "output without code": ("```text\n2\n```\n",),
    "wrong excerpt": ("<!-- tests/tables.py -->\n```python\n12\n```\n",),
    "wrong output of an example":
        ("```console\n$ python examples/example_site.py\nyes\n```\n",),
})  # fmt: skip
def test_wrong_page_fails(page: str, tmp_path: Path) -> None:
    setup = "```python\nfrom asyncio import gather\n```\n"
    (tmp_path / "page.md").write_text(setup * ("await" in page) + page, "utf-8")

    with pytest.raises(SybilFailure):
        _run(tmp_path / "page.md")


@pytest.mark.parametrize("module", ["page", "robotstxt", "testing"])
def test_examples_in_docstring_of_module_pass(module: str) -> None:
    failed, attempted = doctest.testmod(importlib.import_module(f"robotsgate.{module}"))

    assert attempted
    assert not failed


def test_generated_tables_match_the_code() -> None:
    for page, text in pages():
        shown = page.read_text(encoding="utf-8")
        assert shown == text, "run: python -m tests.reference_tables"


def test_versions_of_clients_are_those_that_are_tested() -> None:
    table = (_ROOT / "docs/how-to/clients.md").read_text(encoding="utf-8")
    tested = "".join(
        (_ROOT / name).read_text() for name in ("pyproject.toml", ".ci/run")
    )

    rows = re.findall(r"`([\w-]+)>=([\d.]+),(<[\d.]+)`( \(oldest)?", table)
    assert len(rows) >= 10
    for package, oldest, limit, is_oldest_tested in rows:
        assert f"{package}>={oldest},{limit}" in tested
        assert bool(is_oldest_tested) == (f"'{package}=={oldest}" in tested)
