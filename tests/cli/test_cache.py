"""`robotsgate cache`: what a store holds, listed, shown and deleted."""

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

    from tests.cli.conftest import Ran
    from tests.servers.loopback import LoopbackServer
    from tests.servers.valkey import Valkey

_BODY = b"User-agent: *\nDisallow: /\n"


@pytest.fixture
def site(serve: Callable[..., LoopbackServer]) -> str:
    return serve(Reply(body=_BODY)).url


@pytest.fixture
def dead() -> str:
    return f"http://127.0.0.1:{dead_port()}"


@pytest.fixture
def store(program: Callable[..., Ran], tmp_path: Path, site: str, dead: str) -> str:
    """A store with two entries of one origin, one of a dead one, and a broken one."""
    store = f"sqlite:///{tmp_path}/robots.db"
    program("check", "--store", store, site, dead)
    program("check", "--store", store, "--policy", "strict", site)
    with closing(sqlite3.connect(tmp_path / "robots.db", isolation_level=None)) as file:
        file.execute(
            "INSERT INTO kept (key, keep_until, value) VALUES ('http://x', 1, x'00')"
        )
    return store


def test_entries_are_listed(
    program: Callable[..., Ran], store: str, site: str, dead: str
) -> None:
    ran = program("cache", "ls", "--store", store)
    records = program("cache", "ls", "--store", store, "--json").records

    rows = [row.split("\t") for row in ran.stdout.splitlines()]
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
    program: Callable[..., Ran], store: str, site: str, dead: str
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


def test_origin_without_an_entry_is_trouble(
    program: Callable[..., Ran], store: str
) -> None:
    ran = program("cache", "show", "--store", store, "http://y/")

    assert (ran.code, ran.stdout) == (2, "")
    assert ran.stderr == "robotsgate: the store has no entry for http://y\n"


def test_origin_is_forgotten_under_all_terms(
    program: Callable[..., Ran], store: str, site: str
) -> None:
    ran = program("cache", "forget", "--store", store, site, "http://y/")
    again = program("cache", "forget", "--store", store, "--json", site)

    assert (ran.code, ran.stdout) == (0, "2 deleted\n")
    assert (again.code, again.records) == (0, [{"deleted": 0}])
    assert program("cache", "show", "--store", store, site).code == 2


def test_useless_entries_are_purged(program: Callable[..., Ran], store: str) -> None:
    ran = program("cache", "purge", "--store", store, "--json")
    again = program("cache", "purge", "--store", store)

    assert (ran.code, ran.records) == (0, [{"deleted": 1}])
    assert (again.code, again.stdout) == (0, "0 deleted\n")


def test_entries_are_counted(program: Callable[..., Ran], store: str) -> None:
    text = program("cache", "stats", "--store", store).stdout
    (record,) = program("cache", "stats", "--store", store, "--json").records

    assert text == "entries\t4\nsuccessful\t2\nunreachable\t1\nunreadable\t1\n"
    assert record == {"entries": 4, "successful": 2, "unreachable": 1, "unreadable": 1}


def test_empty_store_has_no_entries(program: Callable[..., Ran]) -> None:
    ran = program("cache", "stats", "--store", "memory:", "--json")

    assert ran.records == [{"entries": 0}]


def test_store_that_is_not_there_is_not_made(
    program: Callable[..., Ran], tmp_path: Path
) -> None:
    ran = program("cache", "ls", "--store", f"sqlite:///{tmp_path}/x")

    assert (ran.code, ran.stderr.count("\n")) == (2, 1)
    assert list(tmp_path.iterdir()) == []


def test_store_of_a_fleet_is_listed(
    program: Callable[..., Ran], valkey: Valkey, site: str
) -> None:
    program("check", "--store", valkey.url, site)

    (record,) = program("cache", "ls", "--store", valkey.url, "--json").records

    assert (record["origin"], record["access"]) == (site, "successful")
