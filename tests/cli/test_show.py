"""`robotsgate show`: a file's groups as rows or JSON, or the raw file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.servers.answers import Reply
from tests.servers.loopback import dead_port
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result
    from tests.servers.loopback import LoopbackServer

_BODY = b"""\
Host: h
User-agent: a
User-agent: (
Disallow: /p\x1b # c
Crawl-delay: 5
Request-rate: 1/5
Clean-param: x
\tAllow: /p/ok
User-agent: *
Crawl-delay: 2m
Sitemap: /s.xml # c
Sitemap:
"""


def test_rows_show_what_applies_to_which_agents(program: Callable[..., Result]) -> None:
    result = program("show", "-", stdin=_BODY)

    assert (result.code, result.stderr) == (0, "")
    assert [row.split("\t") for row in result.stdout.splitlines()] == [
        ["2", "a, (none)", "crawl-delay", "5"],
        ["2", "a, (none)", "request-rate", "1/5"],
        ["4", "a, (none)", "disallow", r"/p\x1b"],
        ["7", "a, (none)", "clean-param", "x"],
        ["8", "a, (none)", "allow", "/p/ok"],
        ["9", "*", "(no rules)", ""],
        ["9", "*", "crawl-delay", "120"],
        ["1", "", "host", "h"],
        ["11", "", "sitemap", "/s.xml"],
    ]


@pytest.mark.parametrize(("agent", "lines"), [("A/1.0", "22478"), ("b", "99")])
def test_only_what_applies_to_the_agent_is_shown(
    program: Callable[..., Result], agent: str, lines: str
) -> None:
    rows = program("show", "--agent", agent, "-", stdin=_BODY).stdout.splitlines()
    (shown,) = program("show", "-a", agent, "--json", "-", stdin=_BODY).records

    assert [row[0] for row in rows] == list(lines)
    assert [str(group["line"]) for group in shown["groups"]] == [lines[0]]


def test_stated_usage_preferences_are_shown_by_category(
    program: Callable[..., Result],
) -> None:
    body = b"User-agent: *\nContent-Usage: train-ai=n\nContent-Signal: search=yes\n"

    rows = program("show", "-", stdin=body).stdout.splitlines()
    (shown,) = program("show", "--json", "-", stdin=body).records

    assert rows[-2:] == ["2\t*\ttrain-ai of /\tdisallow", "3\t*\tsearch of /\tallow"]
    uses = shown["usage_preferences"]["content-usage"]
    assert uses["train-ai"] == {"preference": "disallow", "line": 2}


def test_raw_file_is_printed_unchanged(
    program: Callable[..., Result], serve: Callable[..., LoopbackServer]
) -> None:
    result = program("show", "--raw", serve(Reply(body=_BODY)).url)

    assert result.stdout.encode() == _BODY


@cases("answer reason", {
    "no file": (Reply(status=404), "is unavailable (404)"),
    "an error": (Reply(status=500), "is unreachable (500)"),
})  # fmt: skip
def test_url_without_a_file_is_an_error(
    program: Callable[..., Result],
    serve: Callable[..., LoopbackServer],
    answer: Reply,
    reason: str,
) -> None:
    server = serve(answer)

    result = program("show", f"{server.url}/robots.txt")

    assert (result.code, result.stdout) == (2, "")
    assert f"{server.url}/robots.txt {reason}" in result.stderr


@pytest.mark.parametrize("command", ["show", "lint"])
def test_unreadable_source_is_an_error(
    program: Callable[..., Result], tmp_path: Path, command: str
) -> None:
    for source in (tmp_path, "a\0b", f"http://127.0.0.1:{dead_port()}/"):
        result = program(command, source)

        assert result.code == 2
        assert result.stderr.startswith("robotsgate: ")
        assert result.stderr.count("\n") == 1


@cases("source hint", {
    "a host": ("example.com", "; for a site, write https://example.com\n"),
    "a URL without a scheme":
        ("example.com/robots.txt",
         "; for a site, write https://example.com/robots.txt\n"),
    "a file": ("robots.txt", "No such file or directory: 'robots.txt'\n"),
    "a path": ("./no.such/file", "No such file or directory: 'no.such/file'\n"),
})  # fmt: skip
def test_missing_file_that_looks_like_a_site_gets_a_hint(
    program: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    hint: str,
) -> None:
    monkeypatch.chdir(tmp_path)

    for command in (["show"], ["lint"], ["diff", "-"]):
        result = program(*command, source)

        assert (result.code, result.stdout) == (2, "")
        assert result.stderr.startswith("robotsgate: cannot read the file: ")
        assert result.stderr.endswith(hint)
