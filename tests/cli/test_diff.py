"""`robotsgate diff`: which answers differ between two files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.servers.answers import Reply
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result
    from tests.servers.loopback import LoopbackServer

_OLD = "User-agent: a\nDisallow: /p\n\nUser-agent: *\nDisallow: /s\n"
_NEW = "User-agent: a\nDisallow: /p/*/x$\n\nUser-agent: *\nDisallow: /s # c\n"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    paths = [tmp_path / "old", tmp_path / "new"]
    for path, text in zip(paths, (_OLD, _NEW), strict=True):
        path.write_text(text)
    return paths


def test_paths_to_compare_are_derived_from_the_patterns(
    program: Callable[..., Result], files: list[Path]
) -> None:
    result = program("diff", *files)

    assert (result.code, result.stderr) == (1, "")
    assert result.stdout.splitlines() == [
        "/p a: disallowed (line 2: Disallow: /p) -> allowed",
        "/p//xx a: disallowed (line 2: Disallow: /p) -> allowed",
        "/px a: disallowed (line 2: Disallow: /p) -> allowed",
    ]


@cases("agents urls differing", {
    "given agents": (["-ab", "-ax,a"], ["/p"], [[["x", "a"], "/p"]]),
    "given URLs": ([], ["/s", "http://h/p"], [["a", "http://h/p"]]),
})  # fmt: skip
def test_only_the_given_agents_or_urls_are_compared(
    program: Callable[..., Result],
    files: list[Path],
    agents: list[str],
    urls: list[str],
    differing: list[list[object]],
) -> None:
    result = program("diff", "--json", *agents, *files, *urls)

    assert [[one["agent"], one["url"]] for one in result.records] == differing
    assert {one["new"]["allowed"] for one in result.records} == {True}


def test_crawler_with_two_names_is_printed_as_given(
    program: Callable[..., Result], files: list[Path]
) -> None:
    result = program("diff", "-a", "x,a", *files, "/p")

    assert result.stdout.startswith("/p x,a: ")


def test_equivalent_files_have_no_differences(
    program: Callable[..., Result], serve: Callable[..., LoopbackServer]
) -> None:
    server = serve(Reply(body=_OLD.encode()))

    result = program("diff", server.url, "-", stdin=_OLD.replace("/p", "/p*").encode())

    assert (result.code, result.stdout) == (0, "")


@pytest.mark.parametrize("url", ["", "x", "gopher://h/"])
def test_invalid_url_is_an_error(
    program: Callable[..., Result], files: list[Path], url: str
) -> None:
    assert program("diff", *files, url).code == 2


def test_unreadable_file_is_an_error(
    program: Callable[..., Result], files: list[Path], tmp_path: Path
) -> None:
    assert program("diff", files[0], tmp_path / "none").code == 2
