"""`robotsgate cache`: listing, showing and deleting the entries of a store."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import Result
from tests.servers.answers import Reply
from tests.servers.loopback import dead_port
from tests.tables import cases

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Program, Serve

_BODY = b"User-agent: *\nDisallow: /\n"


@pytest.fixture
def site(serve: Serve) -> str:
    return serve(Reply(body=_BODY)).url


@pytest.fixture
def dead() -> str:
    return f"http://127.0.0.1:{dead_port()}"


@pytest.fixture
def store(program: Program, tmp_path: Path, site: str, dead: str) -> str:
    """A store with two entries for a live origin, one for a dead one, and a bad one."""
    store = f"sqlite:///{tmp_path}/robots.db"
    program("check", "--store", store, site, dead)
    program("check", "--store", store, "--policy", "strict", site)
    with closing(sqlite3.connect(tmp_path / "robots.db", isolation_level=None)) as file:
        file.execute(
            "INSERT INTO kept (key, keep_until, value) VALUES ('http://x', 1, x'00')"
        )
    return store


def test_entries_are_listed(program: Program, store: str, site: str, dead: str) -> None:
    result = program("cache", "ls", "--store", store)
    records = program("cache", "ls", "--store", store, "--json").records

    rows = [row.split("\t") for row in result.stdout.splitlines()]
    listed = {(row[0].partition(" ")[0], row[1]) for row in rows}
    assert listed == {
        (site, "successful"),
        (dead, "unreachable"),
        ("http://x", "unreadable"),
    }
    assert len(rows) == 4
    shown = {(one["origin"], one["access"] or "unreadable") for one in records}
    assert (shown, len(records)) == (listed, 4)


def test_entries_of_an_origin_are_shown(
    program: Program, store: str, site: str, dead: str
) -> None:
    text = program("cache", "show", "--store", store, f"{dead}/page").stdout
    records = program("cache", "show", "--store", store, "--json", site).records
    broken = program("cache", "show", "--store", store, "--json", "http://x/").records

    assert "outage failure\tconnect\n" in text
    assert re.search("^outage since\t20.+T.+Z$", text, re.MULTILINE)
    assert [one["answer"]["body_bytes"] for one in records] == [len(_BODY)] * 2
    assert {one["outage"] for one in records} == {None}
    assert sorted(bool(one["terms"]) for one in records) == [False, True]
    assert [one["access"] for one in broken] == [None]


def test_cached_file_is_printed_unchanged(
    program: Program, serve: Serve, store: str, dead: str
) -> None:
    body = b"User-agent: *\r\nDisallow: /\xc3\xa9"
    url = serve(Reply(body=body)).url
    program("check", "--store", store, url)

    result = program("cache", "show", "--store", store, "--raw", f"{url}/page")
    without = program("cache", "show", "--store", store, "--raw", dead)

    assert (result.code, result.stdout.encode()) == (0, body)
    assert (without.code, without.stdout) == (2, "")
    assert without.stderr.endswith(" has no file (unreachable)\n")


@cases("arguments expected", {
    "stats": (["stats"], Result(code=0, stderr="",
        stdout="entries\t4\nsuccessful\t2\nunreachable\t1\nunreadable\t1\n")),
    "stats as JSON": (["stats", "--json"], Result(code=0, stderr="",
        stdout='{"entries": 4, "successful": 2, "unreachable": 1, "unreadable": 1}\n')),
    "an origin without an entry": (["show", "http://y/"], Result(code=2, stdout="",
        stderr="robotsgate: the store has no entry for http://y\n")),
    "no entry, and thus no file": (["show", "--raw", "http://y/"], Result(code=2,
        stdout="", stderr="robotsgate: the store has no entry for http://y\n")),
    "an entry without a file": (["show", "--raw", "http://x/"], Result(code=2,
        stdout="", stderr="robotsgate: the entry for http://x has no file"
        " (unreadable)\n")),
    "two forms": (["show", "--raw", "--json", "http://x/"], Result(code=2, stdout="",
        stderr="robotsgate: expected --raw or --json, got both"
        " (see robotsgate cache show --help)\n")),
})  # fmt: skip
def test_command_prints_about_the_store(
    program: Program, store: str, arguments: list[str], expected: Result
) -> None:
    result = program("cache", arguments[0], "--store", store, *arguments[1:])

    assert result == expected


@cases("arguments count", {
    "an origin, under all terms": (["forget", "{}", "http://y/"], 2),
    "unusable entries": (["purge"], 1),
})  # fmt: skip
def test_entries_are_deleted(
    program: Program, store: str, site: str, arguments: list[str], count: int
) -> None:
    command = ["cache", *(one.format(site) for one in arguments), "--store", store]

    result = program(*command)
    again = program(*command, "--json")

    assert (result.code, result.stdout) == (0, f"deleted\t{count}\n")
    assert (again.code, again.records) == (0, [{"deleted": 0}])


def test_empty_store_has_no_entries_and_a_missing_one_is_not_created(
    program: Program, tmp_path: Path
) -> None:
    empty = program("cache", "stats", "--store", "memory:", "--json")
    missing = program("cache", "ls", "--store", f"sqlite:///{tmp_path}/x")

    assert empty.records == [{"entries": 0}]
    assert (missing.code, missing.stderr.count("\n")) == (2, 1)
    assert list(tmp_path.iterdir()) == []
