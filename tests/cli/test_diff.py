"""`robotsgate diff`: which answers a change of the file changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.servers.answers import Reply
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Ran
    from tests.servers.loopback import LoopbackServer

_OLD = "User-agent: a\nDisallow: /p\n\nUser-agent: *\nDisallow: /s\n"
_NEW = "User-agent: a\nDisallow: /p/*/x$\n\nUser-agent: *\nDisallow: /s # c\n"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "old", tmp_path / "new"]
    for path, text in zip(paths, (_OLD, _NEW), strict=True):
        path.write_text(text)
    return paths


def test_answers_are_asked_that_the_patterns_stand_for(
    program: Callable[..., Ran], files: list[Path]
) -> None:
    ran = program("diff", *files)

    assert (ran.code, ran.stderr) == (1, "")
    assert ran.stdout.splitlines() == [
        "/p a: disallowed (line 2: Disallow: /p) -> allowed",
        "/p//xx a: disallowed (line 2: Disallow: /p) -> allowed",
        "/px a: disallowed (line 2: Disallow: /p) -> allowed",
    ]


@cases("agents urls differing", {
    "agents that are named": (["-ab", "-ax,a"], ["/p"], [[["x", "a"], "/p"]]),
    "URLs that are given": ([], ["/s", "http://h/p"], [["a", "http://h/p"]]),
})  # fmt: skip
def test_only_what_was_named_is_asked(
    program: Callable[..., Ran],
    files: list[Path],
    agents: list[str],
    urls: list[str],
    differing: list[list[object]],
) -> None:
    ran = program("diff", "--json", *agents, *files, *urls)

    assert [[one["agent"], one["url"]] for one in ran.records] == differing
    assert {one["new"]["allowed"] for one in ran.records} == {True}


def test_crawler_with_two_names_is_told_as_it_was_given(
    program: Callable[..., Ran], files: list[Path]
) -> None:
    ran = program("diff", "-a", "x,a", *files, "/p")

    assert ran.stdout.startswith("/p x,a: ")


def test_files_that_decide_the_same_differ_in_nothing(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer]
) -> None:
    server = serve(Reply(body=_OLD.encode()))

    ran = program("diff", server.url, "-", stdin=_OLD.replace("/p", "/p*").encode())

    assert (ran.code, ran.stdout) == (0, "")


@pytest.mark.parametrize("url", ["", "x", "gopher://h/"])
def test_what_is_no_url_is_trouble(
    program: Callable[..., Ran], files: list[Path], url: str
) -> None:
    assert program("diff", *files, url).code == 2


def test_file_that_cannot_be_read_is_trouble(
    program: Callable[..., Ran], files: list[Path], tmp_path: Path
) -> None:
    assert program("diff", files[0], tmp_path / "none").code == 2
