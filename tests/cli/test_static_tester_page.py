"""The documentation's tester page, which needs no server, in a real browser."""

from __future__ import annotations

import json
import logging
import runpy
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import tester_page
from selenium.webdriver.common.by import By

from tests.cli.test_tester_page import answers, chromium, wait_for
from tests.systems import need_posix

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def page(tmp_path: Path) -> Iterator[str]:
    """The URL of the page."""
    if shutil.which("chromedriver") is None:
        pytest.skip("expected a browser: apt-get install chromium chromium-driver")
    try:
        tester_page.build(tmp_path / "tester")
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"expected npm and its registry: {error}")
    files = partial(_Files, directory=tmp_path)
    with ThreadingHTTPServer(("127.0.0.1", 0), files) as server:
        threading.Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}/tester/"
        server.shutdown()


def requested(log: Path, page: str) -> list[str]:
    """The URLs that `page` and its worker requested, according to Chromium's log."""
    origin = page.removesuffix("/tester/")
    events = (
        event.get("params", {}) for event in json.loads(log.read_text())["events"]
    )
    return [one["url"] for one in events if one.get("initiator") == origin]


@pytest.mark.slow
def test_page_works_without_a_server(page: str, tmp_path: Path) -> None:
    log = tmp_path / "log.json"

    with chromium(f"--log-net-log={log}") as browser:
        browser.get(page)
        browser.execute_script("""
            window.messages = [];
            window.loaded = performance.getEntriesByType("resource").length;
            const status = document.getElementById("status");
            new MutationObserver(() => messages.push(status.textContent))
                .observe(status, {childList: true});
        """)
        browser.find_element(By.TAG_NAME, "button").click()
        wait_for(browser, "2 disallowed", seconds=60)
        results = answers(browser)
        lines = browser.find_elements(By.CSS_SELECTOR, "#lines .decides")
        applied = [line.text.partition("\n")[0] for line in lines]
        loaded, messages = browser.execute_script("return [loaded, messages]")
        browser_log = browser.get_log("browser")
        browser.execute_async_script(  # forbidden by the Content-Security-Policy
            "fetch('http://localhost:9/').then(arguments[0], () => arguments[0]())"
        )

    assert loaded == len(["tester.css", "tester.js", "answers.js"])
    assert "Loading Python: 10 %" in messages
    assert results == [
        "✗ disallowed",
        "✓ allowed",
        "✓ allowed (RFC 9309)",
        "✗ disallowed (Google)",
    ]
    assert applied == [
        "Disallow: /private/",
        "Allow: /private/open",
        "Disalow: /drafts/",
    ]
    assert browser_log == []
    urls = requested(log, page)
    assert f"{page}pyodide/pyodide.asm.wasm" in urls
    assert [url for url in urls if not url.startswith(page)] == []


def test_query_with_too_many_checks_is_an_error() -> None:
    answer = runpy.run_path(str(tester_page._SOURCES / "answers.py"))["answer"]
    query = {"text": "", "url": "", "agents": [], "paths": ["/"] * 51}

    error = json.loads(answer(json.dumps(query)))["error"]

    assert error == "expected at most 50 checks (agents times paths), got 51"


@pytest.mark.slow
def test_missing_file_is_an_error(page: str, tmp_path: Path) -> None:
    """Pyodide would wait for it forever."""
    (tmp_path / "tester/pyodide/pyodide.asm.wasm").unlink()

    with chromium() as browser:
        browser.get(page)
        browser.find_element(By.TAG_NAME, "button").click()
        wait_for(browser, "Python failed: its files could not be loaded")


def add_page(output: Path) -> str:
    """What Sphinx, which has just built the HTML, adds to `output`."""
    app = SimpleNamespace(outdir=output, builder=SimpleNamespace(format="html"))
    tester_page._add_page(app, None)
    assert [one.name for one in (output / "tester").iterdir()] == ["index.html"]
    return (output / "tester/index.html").read_text()


def test_page_is_left_out_without_npm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", "")
    caplog.set_level(logging.INFO, "sphinx")
    (tmp_path / "tester").mkdir()
    (tmp_path / "tester/pyodide.mjs").touch()  # by an earlier run of Sphinx

    page = add_page(tmp_path)

    assert "robotsgate serve" in page
    (record,) = caplog.records
    assert record.levelname == "INFO"
    assert record.message.startswith("the tester page was left out: ")


def test_failed_download_is_a_warning_of_sphinx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    need_posix()
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}")

    page = add_page(tmp_path)

    assert "could not be downloaded" in page
    assert "npm" not in page
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("sphinx.tester_page", "WARNING")
