"""`robotsgate cache`: listing, showing and deleting the entries of a store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from tests.servers.answers import Reply
from tests.servers.loopback import dead_port

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.cli.conftest import Result
    from tests.servers.loopback import LoopbackServer

_BODY = b"User-agent: *\nDisallow: /\n"


@pytest.fixture
def site(serve: Callable[..., LoopbackServer]) -> str:
    return serve(Reply(body=_BODY)).url


@pytest.fixture
def dead() -> str:
    return f"http://127.0.0.1:{dead_port()}"


@pytest.fixture
def store(program: Callable[..., Result], tmp_path: Path, site: str, dead: str) -> str:
    """A store with two entries for a live origin, one for a dead one, and a bad one."""
    store = f"sqlite:///{tmp_path}/robots.db"
    program("check", "--store", store, site, dead)
    program("check", "--store", store, "--policy", "strict", site)
    with closing(sqlite3.connect(tmp_path / "robots.db", isolation_level=None)) as file:
        file.execute(
            "INSERT INTO kept (key, keep_until, value) VALUES ('http://x', 1, x'00')"
        )
    return store


def test_entries_are_listed(
    program: Callable[..., Result], store: str, site: str, dead: str
) -> None:
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
    program: Callable[..., Result], store: str, site: str, dead: str
) -> None:
    text = program("cache", "show", "--store", store, f"{dead}/page").stdout
    records = program("cache", "show", "--store", store, "--json", site).records
    broken = program("cache", "show", "--store", store, "--json", "http://x/").records

    assert "outage failure\tconnect\n" in text
    assert "outage since\t2" in text
    assert [one["answer"]["body_bytes"] for one in records] == [len(_BODY)] * 2
    assert {one["outage"] for one in records} == {None}
    assert sorted(bool(one["terms"]) for one in records) == [False, True]
    assert [one["access"] for one in broken] == [None]


def test_origin_without_an_entry_is_an_error(
    program: Callable[..., Result], store: str
) -> None:
    result = program("cache", "show", "--store", store, "http://y/")

    assert (result.code, result.stdout) == (2, "")
    assert result.stderr == "robotsgate: the store has no entry for http://y\n"


def test_origin_is_forgotten_under_all_terms(
    program: Callable[..., Result], store: str, site: str
) -> None:
    result = program("cache", "forget", "--store", store, site, "http://y/")
    again = program("cache", "forget", "--store", store, "--json", site)

    assert (result.code, result.stdout) == (0, "deleted\t2\n")
    assert (again.code, again.records) == (0, [{"deleted": 0}])
    assert program("cache", "show", "--store", store, site).code == 2


def test_unusable_entries_are_purged(
    program: Callable[..., Result], store: str
) -> None:
    result = program("cache", "purge", "--store", store, "--json")
    again = program("cache", "purge", "--store", store)

    assert (result.code, result.records) == (0, [{"deleted": 1}])
    assert (again.code, again.stdout) == (0, "deleted\t0\n")


def test_entries_are_counted(program: Callable[..., Result], store: str) -> None:
    text = program("cache", "stats", "--store", store).stdout
    (record,) = program("cache", "stats", "--store", store, "--json").records

    assert text == "entries\t4\nsuccessful\t2\nunreachable\t1\nunreadable\t1\n"
    assert record == {"entries": 4, "successful": 2, "unreachable": 1, "unreadable": 1}


def test_empty_store_has_no_entries(program: Callable[..., Result]) -> None:
    result = program("cache", "stats", "--store", "memory:", "--json")

    assert result.records == [{"entries": 0}]


def test_missing_store_is_not_created(
    program: Callable[..., Result], tmp_path: Path
) -> None:
    result = program("cache", "ls", "--store", f"sqlite:///{tmp_path}/x")

    assert (result.code, result.stderr.count("\n")) == (2, 1)
    assert list(tmp_path.iterdir()) == []
