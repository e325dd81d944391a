"""Separate processes that share a store: few fetches and no wrong answers."""

from __future__ import annotations

import json
import threading
from collections import Counter
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.fleet.worker import PAGES, host_of, robots_txt
from tests.servers.answers import Reply
from tests.servers.loopback import LoopbackServer
from tests.servers.valkey import running_valkey
from tests.stores.child import child

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from tests.servers.loopback import Connection, Request
    from tests.servers.valkey import Valkey

pytestmark = pytest.mark.slow

SITES = 20
WORKERS = 3
ALL_PAGES = SITES * PAGES

_TIMEOUT_SECONDS = 60.0


class Sites(LoopbackServer):
    """All sites: answers on every loopback address, and records all requests.

    Attributes:
        gets: the host and the User-Agent of each request, in order of arrival.
        to_hold: an agent, and how many of its requests get no response.
        held: the hosts that sent no response.
    """

    def __init__(self) -> None:
        # Includes all addresses in 127.0.0.0/8, which cannot be listed one by one.
        super().__init__(self._respond, host="0.0.0.0")  # noqa: S104
        self.gets: list[tuple[str, str]] = []
        self.held: list[str] = []
        self.to_hold: tuple[str, int] = ("", 0)
        self._recorded = threading.Condition()

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until a condition holds; it is checked after each request."""
        with self._recorded:
            assert self._recorded.wait_for(condition, _TIMEOUT_SECONDS), self.gets

    def _respond(self, request: Request, connection: Connection) -> None:
        host = request.headers["host"].partition(":")[0]
        agent = request.headers["user-agent"]
        name, count = self.to_hold
        with self._recorded:
            self.gets.append((host, agent))
            is_held = agent == name and len(self.held) < count
            if is_held:
                self.held.append(host)
            self._recorded.notify_all()
        if is_held:
            connection.hang()
        else:
            Reply(body=robots_txt(host))(request, connection)


@pytest.fixture
def sites() -> Iterator[Sites]:
    with Sites() as server:
        yield server


@contextmanager
def running_workers(
    sites: Sites, store: str, *, rounds: int, deadline: float = 30.0
) -> Iterator[list[subprocess.Popen[str]]]:
    """Run `WORKERS` workers, named "fleet-0" and so on."""
    with ExitStack() as stack:
        workers = [
            stack.enter_context(
                child(
                    "tests.fleet.worker",
                    *(f"fleet-{number}", store, sites.port, SITES, rounds, deadline),
                )
            )
            for number in range(WORKERS)
        ]
        for worker in workers:
            assert _line(worker) == "ready\n"
        yield workers


def start(*workers: subprocess.Popen[str]) -> None:
    """Begin a round."""
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()


def failures(workers: Sequence[subprocess.Popen[str]]) -> int:
    """End a round: no answer was wrong; return how often the store failed."""
    results = [json.loads(_line(worker)) for worker in workers]
    assert [result[:2] for result in results] == [[ALL_PAGES, 0]] * len(workers)
    return sum(result[2] for result in results)


def _line(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    assert worker.stderr is not None
    watchdog = threading.Timer(_TIMEOUT_SECONDS, worker.kill)
    watchdog.start()
    line = worker.stdout.readline()
    watchdog.cancel()
    assert line, worker.stderr.read()[-2_000:]
    return line


def counts(gets: Sequence[tuple[str, str]]) -> Counter[str]:
    """The number of requests to each host."""
    return Counter(host for host, _ in gets)


def test_fleet_with_leases_fetches_each_origin_once(
    sites: Sites, valkey: Valkey
) -> None:
    with running_workers(sites, valkey.url, rounds=4) as workers:
        for _ in range(4):
            start(*workers)
            assert failures(workers) == 0

    assert counts(sites.gets) == Counter(map(host_of, range(SITES)))


def test_fetches_of_a_killed_worker_are_taken_over(
    sites: Sites, valkey: Valkey
) -> None:
    with running_workers(sites, valkey.url, rounds=2, deadline=3.0) as workers:
        victim, *others = workers
        sites.to_hold = ("fleet-0", 4)
        start(victim)
        sites.wait_until(lambda: len(sites.held) == 4)
        start(*others)
        sites.wait_until(
            lambda: len(sites.gets) >= SITES or sites.gets[-1][1] != "fleet-0"
        )
        victim.kill()
        assert failures(others) == 0

    of_victim = {host for host, agent in sites.gets if agent == "fleet-0"}
    for host, count in counts(sites.gets).items():
        assert count == 2 if host in sites.held else count <= 1 + (host in of_victim)
    assert len(counts(sites.gets)) == SITES


def test_fleet_keeps_working_while_its_server_restarts(sites: Sites) -> None:
    gets_of_rounds = []
    with (
        running_valkey() as valkey,
        running_workers(sites, valkey.url, rounds=4) as workers,
    ):
        for number in range(4):
            before = len(sites.gets)
            start(*workers)
            if number == 0:
                sites.wait_until(lambda: len(sites.gets) >= SITES // 2)
                valkey.kill()
                # Each worker now fetches for itself what it has not cached.
                sites.wait_until(lambda: len(sites.gets) >= SITES * 3 // 2)
                valkey.start()
            assert (failures(workers) > 0) == (number == 0)
            gets_of_rounds.append(counts(sites.gets[before:]))

    during, from_memory, by_new_checkers, afterwards = gets_of_rounds
    assert max(during.values()) <= WORKERS
    assert max(by_new_checkers.values(), default=0) <= 1  # the store lost some entries
    assert not from_memory + afterwards


def test_fleet_sharing_a_sqlite_file_gives_correct_answers(
    sites: Sites, tmp_path: Path
) -> None:
    store = f"sqlite:///{tmp_path / 'fleet.db'}"
    with running_workers(sites, store, rounds=2) as workers:
        for _ in range(2):
            start(*workers)
            assert failures(workers) == 0

    assert max(counts(sites.gets).values()) <= WORKERS
