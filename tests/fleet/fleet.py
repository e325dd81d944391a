"""Runs a fleet on one store against one server, and tells what was asked how often."""

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

# A fleet that goes wrong must not hang a test.
_PATIENCE_SECONDS = 120.0

# Of the sites, whose answers the worker that is killed waits for.
_SHARE_TO_HOLD = 5

_LONGEST_ERROR = 2_000


@dataclass(kw_only=True)
class Figures:
    """What came of a fleet.

    Attributes:
        processes: how many workers there were.
        sites: how many sites.
        rounds: what each worker that was not killed says, round by round.
        gets: how often each site was asked, in each round.
        held: the sites whose answers a worker waited for when it was killed.
        by_victim: the sites that this worker had asked.
    """

    processes: int
    sites: int
    rounds: list[list[Round]] = field(default_factory=list)
    gets: list[Counter[int]] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    by_victim: set[int] = field(default_factory=set)

    @property
    def gets_by_site(self) -> Counter[int]:
        """How often each site was asked, in all rounds."""
        return sum(self.gets, Counter())

    @property
    def wrong(self) -> int:
        """How many verdicts were wrong."""
        return sum(one.wrong for done in self.rounds for one in done)

    @property
    def verdicts(self) -> int:
        """How many verdicts there were."""
        return sum(one.verdicts for done in self.rounds for one in done)

    @property
    def expected_verdicts(self) -> int:
        """How many there must be of workers that were not killed."""
        survivors = self.processes - bool(self.by_victim)
        return survivors * len(self.rounds) * self.sites * PAGES

    def failures(self, number: int) -> int:
        """How often a store failed or was not tried in a round, 0 for the first."""
        return sum(one.store_failures + one.store_skips for one in self.rounds[number])


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
    """Let a fleet ask all sites in all rounds.

    Args:
        processes: how many workers, ≥ 1; ≥ 2 for `kills`.
        sites: how many.
        rounds: how many; the workers begin each at the same time.
        store: "redis" or "sqlite".
        kills: whether a worker is killed in the first round, while the server
            holds answers to it back.
        restarts: whether the Redis server is killed in the first round when half
            of the sites were asked, and started again, empty, a little later.
        fetch_deadline: of the policy of the workers.
        store_timeout: of the policy of the workers.
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
            worker.hear()
        for number in range(rounds):
            gets_before = len(server.gets)
            if kills and number == 0:
                workers = _begin_and_kill(workers, server, figures)
            else:
                _begin(workers)
            if restarts and number == 0:
                assert redis is not None
                _restart_in_the_middle(redis, server, sites)
            figures.rounds.append([Round(**json.loads(w.hear())) for w in workers])
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
        """Let it begin a round."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def hear(self) -> str:
        """What it says next.

        Raises:
            RuntimeError: it has died or says nothing; with what it wrote.
        """
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        watchdog = threading.Timer(_PATIENCE_SECONDS, self._process.kill)
        watchdog.start()
        line = self._process.stdout.readline()
        watchdog.cancel()
        if not line:
            self._process.kill()
            error = self._process.stderr.read()[-_LONGEST_ERROR:]
            raise RuntimeError(f"worker {self.name} has ended:\n{error}")
        return line

    def kill(self) -> None:
        """End it at once (SIGKILL)."""
        self._process.kill()
        self._process.wait(_PATIENCE_SECONDS)


def _begin(workers: Sequence[_Worker]) -> None:
    for worker in workers:
        worker.go()


def _begin_and_kill(
    workers: list[_Worker], server: CountingServer, figures: Figures
) -> list[_Worker]:
    """Kill the first worker in mid-fetch; the others, which work meanwhile."""
    victim, *others = workers
    most = max(figures.sites // _SHARE_TO_HOLD, 1)
    server.hold(victim.name, most=most)
    victim.go()
    server.wait_until(lambda it: len(it.held) >= most)
    _begin(others)
    # They have begun: some have asked for what the other has not.
    server.wait_until(
        lambda it: (
            any(name != victim.name for _, name in it.gets)
            or len(it.gets) >= figures.sites
        )
    )
    victim.kill()
    figures.held = server.held
    figures.by_victim = {site for site, name in server.gets if name == victim.name}
    return others


def _restart_in_the_middle(redis: Valkey, server: CountingServer, sites: int) -> None:
    server.wait_until(lambda it: len(it.gets) >= sites // 2)
    redis.kill()
    # Each worker asks for itself now what it does not know: it comes to that.
    server.wait_until(lambda it: len(it.gets) >= sites * 3 // 2)
    redis.start()
