"""Runs a fleet with one store and one server, and counts the requests per site."""

from __future__ import annotations

import json
import tempfile
import threading
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.fleet.page import PAGES
from tests.fleet.server import CountingServer
from tests.fleet.worker import Assignment, Round
from tests.servers.valkey import Valkey, running_valkey
from tests.stores.child import child

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Sequence

_WORKER = "tests.fleet.worker"

# A broken fleet must not hang a test.
_TIMEOUT_SECONDS = 120.0

# The worker to kill waits for one in this many sites.
_SITES_PER_HELD_SITE = 5

_MAX_ERROR_CHARACTERS = 2_000


@dataclass(kw_only=True)
class Figures:
    """The results of a fleet.

    Attributes:
        processes: the number of workers.
        sites: the number of sites.
        rounds: the results of each worker that was not killed, by round.
        gets: the number of requests to each site, by round.
        held: the sites whose responses the killed worker was waiting for.
        by_victim: the sites to which this worker had sent requests.
    """

    processes: int
    sites: int
    rounds: list[list[Round]] = field(default_factory=list)
    gets: list[Counter[int]] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    by_victim: set[int] = field(default_factory=set)

    @property
    def gets_by_site(self) -> Counter[int]:
        """The number of requests to each site, in all rounds."""
        return sum(self.gets, Counter())

    @property
    def wrong(self) -> int:
        """The number of wrong verdicts."""
        return sum(result.wrong for results in self.rounds for result in results)

    @property
    def verdicts(self) -> int:
        """The number of verdicts."""
        return sum(result.verdicts for results in self.rounds for result in results)

    @property
    def expected_verdicts(self) -> int:
        """The number of verdicts expected from workers that were not killed."""
        survivors = self.processes - bool(self.by_victim)
        return survivors * len(self.rounds) * self.sites * PAGES

    def failures(self, number: int) -> int:
        """How often a store failed or was skipped in a round; 0 is the first round."""
        results = self.rounds[number]
        return sum(result.store_failures + result.store_skips for result in results)


def run_fleet(
    *,
    processes: int,
    sites: int,
    rounds: int,
    store: str = "redis",
    kills: bool = False,
    restarts: bool = False,
    fetch_deadline: float = 30.0,
    store_timeout: float = 5.0,
) -> Figures:
    """Run a fleet that checks pages of all sites in all rounds.

    Args:
        processes: the number of workers, ≥ 1; ≥ 2 for `kills`.
        sites: the number of sites.
        rounds: the number of rounds; the workers begin each one at the same time.
        store: "redis" or "sqlite".
        kills: whether a worker is killed in the first round, while the server
            holds back responses to it.
        restarts: whether the Redis server is killed in the first round, after
            requests to half of the sites, and restarted, empty, a little later.
        fetch_deadline: for the workers' policy.
        store_timeout: for the workers' policy.
    """
    figures = Figures(processes=processes, sites=sites)
    with ExitStack() as stack:
        server = stack.enter_context(CountingServer())
        redis: Valkey | None = None
        if store == "redis":
            redis = stack.enter_context(running_valkey())
            url = redis.url
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            url = f"sqlite:///{Path(folder, 'fleet.db')}"
        workers = [
            _Worker(
                stack,
                Assignment(
                    name=f"fleet-{number}",
                    store=url,
                    port=server.port,
                    sites=sites,
                    rounds=rounds,
                    fetch_deadline=fetch_deadline,
                    store_timeout=store_timeout,
                ),
            )
            for number in range(processes)
        ]
        for worker in workers:
            worker.read_line()
        for number in range(rounds):
            gets_before = len(server.gets)
            if kills and number == 0:
                workers = _start_and_kill(workers, server, figures)
            else:
                _start(workers)
            if restarts and number == 0:
                assert redis is not None
                _restart_during_round(redis, server, sites)
            figures.rounds.append([Round(**json.loads(w.read_line())) for w in workers])
            gets = server.gets[gets_before:]
            figures.gets.append(Counter(site for site, _ in gets))
    return figures


class _Worker:
    """A worker process."""

    def __init__(self, stack: ExitStack, assignment: Assignment) -> None:
        self.name = assignment.name
        self._process: subprocess.Popen[str] = stack.enter_context(
            child(_WORKER, json.dumps(asdict(assignment)))
        )

    def go(self) -> None:
        """Start a round."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def read_line(self) -> str:
        """The next line of its output.

        Raises:
            RuntimeError: the worker has died or hangs; contains its error output.
        """
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        watchdog = threading.Timer(_TIMEOUT_SECONDS, self._process.kill)
        watchdog.start()
        line = self._process.stdout.readline()
        watchdog.cancel()
        if not line:
            self._process.kill()
            error = self._process.stderr.read()[-_MAX_ERROR_CHARACTERS:]
            raise RuntimeError(f"worker {self.name} has ended:\n{error}")
        return line

    def kill(self) -> None:
        """End it immediately (SIGKILL)."""
        self._process.kill()
        self._process.wait(_TIMEOUT_SECONDS)


def _start(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.go()


def _start_and_kill(
    workers: list[_Worker], server: CountingServer, figures: Figures
) -> list[_Worker]:
    """Kill the first worker during its fetches; return the others."""
    victim, *others = workers
    count = max(figures.sites // _SITES_PER_HELD_SITE, 1)
    server.hold(victim.name, count=count)
    victim.go()
    server.wait_until(lambda server: len(server.held) >= count)
    _start(others)
    # Wait until the others have sent requests, or there is nothing left to fetch.
    server.wait_until(
        lambda server: (
            any(name != victim.name for _, name in server.gets)
            or len(server.gets) >= figures.sites
        )
    )
    victim.kill()
    figures.held = server.held
    figures.by_victim = {site for site, name in server.gets if name == victim.name}
    return others


def _restart_during_round(redis: Valkey, server: CountingServer, sites: int) -> None:
    server.wait_until(lambda server: len(server.gets) >= sites // 2)
    redis.kill()
    # Each worker now fetches for itself what it has not cached.
    server.wait_until(lambda server: len(server.gets) >= sites * 3 // 2)
    redis.start()
