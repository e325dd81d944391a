"""The tutorial, typed in: the terminals show what the page shows."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.servers.loopback import dead_port

PAGE = Path(__file__).parents[1] / "docs/tutorial/first-crawl.md"
FILE = re.compile(
    r"^```{code-block} \w+\n:caption: (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
COMMAND = re.compile(r"^\$ \.venv/bin/python (.+)\n((?:(?!```).*\n)*)", re.MULTILINE)
LOG = re.compile(r"^```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow  # the crawl waits for the delays of a real site
def test_terminals_show_what_the_page_shows(tmp_path: Path) -> None:
    page = PAGE.read_text(encoding="utf-8").replace("8000", str(dead_port()))
    for name, content in FILE.findall(page):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    (serve, greeting), *asks, ask_in_vain = COMMAND.findall(page)

    with subprocess.Popen(  # noqa: S603 (our own tutorial)
        [sys.executable, "-u", *serve.split()],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == greeting
        for ask, shown in asks:
            assert _output(ask, tmp_path) == shown
        server.terminate()
        log = server.communicate()[1]

    assert asks
    assert _output(ask_in_vain[0], tmp_path) == ask_in_vain[1]
    assert _without_dates(log).startswith(_without_dates("".join(LOG.findall(page))))


def _output(command: str, folder: Path) -> str:
    result = subprocess.run(  # noqa: S603 (our own tutorial)
        [sys.executable, "-W", "error", *command.split()],
        cwd=folder,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return result.stdout


def _without_dates(log: str) -> str:
    return re.sub(r"\[.*?\]", "[date]", log)
