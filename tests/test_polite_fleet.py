"""Processes of their own that share one host: it sees them as one polite crawler."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.fleet.polite_host import PoliteHost
from tests.fleet.polite_worker import PoliteAssignment
from tests.servers.valkey import running_valkey
from tests.stores.child import child

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from tests.servers.valkey import Valkey

pytestmark = pytest.mark.slow

WORKERS = 6
DELAY = 0.2
MAX_TURN_SECONDS = 3.0

_PATIENCE_SECONDS = 240.0


@contextmanager
def working(
    redis: Valkey, host: PoliteHost, *, requests: int
) -> Iterator[list[subprocess.Popen[str]]]:
    """The workers; each ends by itself."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                child(
                    "tests.fleet.polite_worker",
                    json.dumps(
                        asdict(
                            PoliteAssignment(
                                name=f"worker-{number}",
                                redis=redis.url,
                                url=host.url,
                                workers=WORKERS,
                                requests=requests,
                                gate={
                                    "default_delay": 0.0,
                                    "max_turn_seconds": MAX_TURN_SECONDS,
                                },
                            )
                        )
                    ),
                )
            )
            for number in range(WORKERS)
        ]


def wait_for(workers: list[subprocess.Popen[str]]) -> None:
    for worker in workers:
        _, error = worker.communicate(timeout=_PATIENCE_SECONDS)
        assert worker.returncode == 0, error


def test_fleet_is_as_polite_as_one() -> None:
    with (
        running_valkey() as redis,
        PoliteHost(crawl_delay=DELAY) as host,
        working(redis, host, requests=300 // WORKERS) as workers,
    ):
        wait_for(workers)

    gaps = [gap for *_, gap in host.gaps]
    assert len(host.pages) == 300
    assert min(gaps) >= DELAY
    # Each has its share as long as all are there.
    first = host.pages[: 20 * WORKERS]
    shares = [
        sum(visit.agent == f"worker-{number}" for visit in first)
        for number in range(WORKERS)
    ]
    assert min(shares) >= 10


def test_turn_of_a_killed_worker_ends_when_it_is_overdue() -> None:
    with (
        running_valkey() as redis,
        PoliteHost(crawl_delay=DELAY, agent_to_hold="worker-0") as host,
        working(redis, host, requests=10) as (victim, *others),
    ):
        host.wait_until_it_holds()
        victim.kill()
        host.release()
        wait_for(others)

    gaps = [gap for *_, gap in host.gaps]
    assert len(host.pages) >= 10 * (WORKERS - 1)
    assert min(gaps) >= DELAY
    assert MAX_TURN_SECONDS / 2 < max(gaps) < 2 * MAX_TURN_SECONDS


def test_each_worker_takes_its_share_while_the_server_is_gone() -> None:
    with (
        running_valkey() as redis,
        PoliteHost(crawl_delay=DELAY) as host,
        working(redis, host, requests=15) as workers,
    ):
        host.wait_until(lambda: len(host.visits) >= 30)
        redis.stop()
        host.wait_until(lambda: sum(visit.is_alone for visit in host.visits) >= 12)
        redis.start()
        wait_for(workers)

    shared = [gap for _, following, gap in host.gaps if not following.is_alone]
    assert len(host.pages) == 15 * WORKERS
    assert len(shared) >= 60
    assert min(shared) >= DELAY
    for number in range(WORKERS):
        own = [visit for visit in host.pages if visit.agent == f"worker-{number}"]
        assert all(
            following.began_at - visit.ended_at >= WORKERS * DELAY
            for visit, following in pairwise(own)
            if following.is_alone
        )
