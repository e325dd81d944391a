"""`robotsgate show`: the groups of a file, as rows, JSON or raw."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.servers.answers import Reply
from tests.servers.loopback import dead_port
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Ran
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


def test_rows_tell_what_holds_for_whom(program: Callable[..., Ran]) -> None:
    ran = program("show", "-", stdin=_BODY)

    assert (ran.code, ran.stderr) == (0, "")
    assert [row.split("\t") for row in ran.stdout.splitlines()] == [
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
def test_only_what_binds_an_agent_is_shown(
    program: Callable[..., Ran], agent: str, lines: str
) -> None:
    rows = program("show", "--agent", agent, "-", stdin=_BODY).stdout.splitlines()
    (shown,) = program("show", "-a", agent, "--json", "-", stdin=_BODY).records

    assert [row[0] for row in rows] == list(lines)
    assert [str(group["line"]) for group in shown["groups"]] == [lines[0]]


def test_stated_usage_preferences_are_shown_by_their_categories(
    program: Callable[..., Ran],
) -> None:
    body = b"User-agent: *\nContent-Usage: train-ai=n\nContent-Signal: search=yes\n"

    rows = program("show", "-", stdin=body).stdout.splitlines()
    (shown,) = program("show", "--json", "-", stdin=body).records

    assert rows[-2:] == ["2\t*\ttrain-ai of /\tdisallow", "3\t*\tsearch of /\tallow"]
    uses = shown["usage_preferences"]["content-usage"]
    assert uses["train-ai"] == {"preference": "disallow", "line": 2}


def test_raw_file_is_printed_as_it_is(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer]
) -> None:
    ran = program("show", "--raw", serve(Reply(body=_BODY)).url)

    assert ran.stdout.encode() == _BODY


@cases("answer reason", {
    "no file": (Reply(status=404), "is unavailable (404)"),
    "an error": (Reply(status=500), "is unreachable (500)"),
})  # fmt: skip
def test_url_without_a_file_is_trouble(
    program: Callable[..., Ran],
    serve: Callable[..., LoopbackServer],
    answer: Reply,
    reason: str,
) -> None:
    server = serve(answer)

    ran = program("show", f"{server.url}/robots.txt")

    assert (ran.code, ran.stdout) == (2, "")
    assert f"{server.url}/robots.txt {reason}" in ran.stderr


@pytest.mark.parametrize("command", ["show", "lint"])
def test_what_cannot_be_read_is_trouble(
    program: Callable[..., Ran], tmp_path: Path, command: str
) -> None:
    for source in (tmp_path, "a\0b", f"http://127.0.0.1:{dead_port()}/"):
        ran = program(command, source)

        assert ran.code == 2
        assert ran.stderr.startswith("robotsgate: ")
        assert ran.stderr.count("\n") == 1


@cases("source hint", {
    "a host": ("example.com", "; for a site, write https://example.com\n"),
    "a URL without a scheme":
        ("example.com/robots.txt",
         "; for a site, write https://example.com/robots.txt\n"),
    "a file": ("robots.txt", "No such file or directory: 'robots.txt'\n"),
    "a path": ("./no.such/file", "No such file or directory: 'no.such/file'\n"),
})  # fmt: skip
def test_site_without_a_scheme_is_told_what_to_write(
    program: Callable[..., Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    source: str,
    hint: str,
) -> None:
    monkeypatch.chdir(tmp_path)

    for command in (["show"], ["lint"], ["diff", "-"]):
        ran = program(*command, source)

        assert (ran.code, ran.stdout) == (2, "")
        assert ran.stderr.startswith("robotsgate: cannot read the file: ")
        assert ran.stderr.endswith(hint)
