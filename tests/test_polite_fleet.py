"""Separate processes that share a host act as one polite crawler."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.fleet.polite_host import PoliteHost
from tests.fleet.polite_worker import MAX_TURN_SECONDS
from tests.servers.valkey import Valkey, running_valkey
from tests.stores.child import child

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterator
    from pathlib import Path


pytestmark = pytest.mark.slow

WORKERS = 6
DELAY = 0.2

_TIMEOUT_SECONDS = 240.0


@contextmanager
def running_workers(
    store: str, host: PoliteHost, *, requests: int, workers: int = WORKERS
) -> Iterator[list[subprocess.Popen[str]]]:
    """Start workers; each exits by itself."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                child(
                    "tests.fleet.polite_worker",
                    *(f"worker-{number}", store, host.url, workers, requests),
                )
            )
            for number in range(workers)
        ]


def url_in(folder: Path) -> str:
    """The URL of a file in `folder`."""
    return f"sqlite:///{folder / 'hosts.db'}"


def wait_for(workers: list[subprocess.Popen[str]]) -> None:
    for worker in workers:
        _, error = worker.communicate(timeout=_TIMEOUT_SECONDS)
        assert worker.returncode == 0, error


def test_processes_with_one_file_are_as_polite_as_one_process(tmp_path: Path) -> None:
    with (
        PoliteHost(crawl_delay=DELAY) as host,
        running_workers(url_in(tmp_path), host, requests=300 // WORKERS) as workers,
    ):
        wait_for(workers)

    gaps = [gap for *_, gap in host.gaps]
    assert len(host.pages) == 300
    assert min(gaps) >= DELAY
    # While all workers run, each gets its share.
    first = host.pages[: 20 * WORKERS]
    shares = [
        sum(visit.agent == f"worker-{number}" for visit in first)
        for number in range(WORKERS)
    ]
    assert min(shares) >= 10


def test_turn_of_a_killed_worker_ends_when_it_is_overdue(tmp_path: Path) -> None:
    with (
        PoliteHost(crawl_delay=DELAY, agent_to_hold="worker-0") as host,
        running_workers(url_in(tmp_path), host, requests=10) as (
            victim,
            *others,
        ),
    ):
        host.wait_until_it_holds()
        victim.kill()
        host.release()
        wait_for(others)

    gaps = [gap for *_, gap in host.gaps]
    assert len(host.pages) >= 10 * (WORKERS - 1)
    assert min(gaps) >= DELAY
    assert MAX_TURN_SECONDS / 2 < max(gaps) < 2 * MAX_TURN_SECONDS


@pytest.mark.parametrize(("fail", "recover"), [
    (Valkey.stop, Valkey.start), (Valkey.pause, Valkey.resume),
], ids=["is down", "hangs"])  # fmt: skip
def test_each_worker_keeps_to_its_share_while_the_server(
    fail: Callable[[Valkey], None], recover: Callable[[Valkey], None]
) -> None:
    with (
        running_valkey() as redis,
        PoliteHost(crawl_delay=DELAY) as host,
        running_workers(redis.url, host, requests=15) as workers,
    ):
        host.wait_until(lambda: len(host.visits) >= 30)
        fail(redis)
        host.wait_until(lambda: sum(visit.is_alone for visit in host.visits) >= 12)
        recover(redis)
        wait_for(workers)

    shared = [
        gap
        for visit, following, gap in host.gaps
        if not (visit.is_alone or following.is_alone)
    ]
    assert len(host.pages) == 15 * WORKERS
    assert len(shared) >= 50
    assert min(shared) >= DELAY
    for number in range(WORKERS):
        own = [visit for visit in host.pages if visit.agent == f"worker-{number}"]
        assert all(
            following.began_at - visit.ended_at >= WORKERS * DELAY
            for visit, following in pairwise(own)
            if visit.is_alone and following.is_alone
        )
