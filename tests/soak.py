"""A soak test: many lookups of many origins, most of them faulty, over real sockets.

    python -m tests.soak [--loop trio] [--origins 720] [--lookups 100000]

Exits with status 1 if an answer is wrong, if the address guard lets a connection
through, if memory grows after the warm-up, or if file descriptors, tasks or threads are
left over. What each response means has tests of its own; here, everything happens at
once: the clock moves on by two days between rounds, callers give up, the store fails,
and the listener raises.

The servers run in a process of their own, so that the figures are the checker's. Needs
Linux, for its loopback network 127.0.0.0/8 and for /proc.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import logging
import os
import resource
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio

from robotsgate import MemoryStore, Policy, RobotsChecker, StoreError
from robotsgate.testing import ManualClock
from tests.servers.answers import Raw, Reply, dripping, endless, redirect
from tests.servers.loopback import Connection, LoopbackServer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence

    from tests.servers.loopback import Answer, Request

_AGENTS = ("SoakBot/1.0 (+https://crawler.example)", "OtherBot")
_BODY = b"User-agent: *\nDisallow: /a/\n\nUser-agent: SoakBot\nDisallow: /b/\n"

_WARM_UP_ROUNDS = 3
_DAYS_OF_A_ROUND = 2  # all rounds are within the 30 days of a stale copy
_STEPS_OF_A_ROUND = 20
_STEP_SECONDS = 120.0  # retries become due
_MAX_GROWTH_MIB = 8
_SETTLING_SECONDS = 15.0  # trio ends an idle thread after ten seconds

_CANCELLED_SHARE = 0.03
_MAX_PATIENCE_SECONDS = 0.1
_STORE_FAILURE_SHARE = 0.02
_LISTENER_ERROR_SHARE = 0.01

# --- the origins ------------------------------------------------------------------


class _Once:
    """Sends a file to the first request, and 503 to all later ones."""

    has_answered = False

    def __call__(self, request: Request, connection: Connection) -> None:
        answer = Reply(status=503) if self.has_answered else _FILE
        self.has_answered = True
        answer(request, connection)


_FILE = Reply(body=_BODY)
_HEAD = b"HTTP/1.1 200 OK\r\n"
_BOMB = gzip.compress(_BODY) + gzip.compress(b"#" * 2**20) * 64
_HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 64

RULES, EVERYTHING, NOTHING, REFUSED = "rules", "everything", "nothing", "refused"

# Each makes an answer from the URL of an internal server.
KINDS: Mapping[str, tuple[str, Callable[[str], Answer]]] = {
    "sends a file": (RULES, lambda _: _FILE),
    "sends a file for an hour": (RULES,
        lambda _: Reply(headers={"Cache-Control": "max-age=3600"}, body=_BODY)),
    "sends gzip that decompresses to 64 MiB": (RULES,
        lambda _: Reply(headers={"Content-Encoding": "gzip"}, body=_BOMB)),
    "sends an endless body": (RULES,
        lambda _: Raw(_HEAD + b"\r\n" + _BODY, endless(b"#" * 16_384))),
    "sends a file once, then fails": (RULES, lambda _: _Once()),
    "has no file": (EVERYTHING, lambda _: Reply(status=404)),
    "redirects in a loop": (EVERYTHING, lambda _: redirect("/robots.txt")),
    "fails": (NOTHING, lambda _: Reply(status=500)),
    "asks for less": (NOTHING, lambda _: Reply(status=429)),
    "closes instead of responding": (NOTHING, lambda _: Raw(b"")),
    "accepts but never responds": (NOTHING, lambda _: Raw(b"", Connection.hang)),
    "stops in the middle of the body":
        (NOTHING, lambda _: Raw(_FILE.octets[:-9], Connection.hang)),
    "announces more than it sends": (NOTHING, lambda _: Raw(_FILE.octets[:-9])),
    "sends its head byte by byte":
        (NOTHING, lambda _: Raw(_HEAD + b"X: ", dripping(b"x"))),
    "sends header lines forever":
        (NOTHING, lambda _: Raw(_HEAD, endless(b"X: x\r\n" * 999))),
    "sends early hints forever": (NOTHING, lambda _: Raw(b"", endless(_HINTS))),
    "redirects to an internal address": (REFUSED, redirect),
}  # fmt: skip


def expected(kind: str, agent: str, path: str) -> bool:
    """Whether `agent` may fetch `path` of such an origin."""
    effect, _ = KINDS[kind]
    if path == "/robots.txt" or effect is EVERYTHING:
        return effect is not REFUSED
    disallowed = "/b/" if agent.startswith("SoakBot") else "/a/"
    return effect is RULES and not path.startswith(disallowed)


# --- the servers' process -----------------------------------------------------------


def _serve(count: int) -> None:
    """Serve `count` origins until the end of standard input.

    Prints their URLs at the start, and the number of connections to the internal
    address at the end.
    """
    internal = LoopbackServer(_FILE).__enter__()
    urls = []
    for number in range(count):
        _, answer_for = KINDS[_kind(number)]
        host = f"127.1.0.{number % 250 + 1}"
        server = LoopbackServer(answer_for(internal.url), host=host).__enter__()
        urls.append(server.url)
    print(json.dumps(urls), flush=True)
    sys.stdin.read()
    print(json.dumps(internal.accepted), flush=True)
    os._exit(0)  # without waiting for the threads of all servers


def _kind(number: int) -> str:
    return [*KINDS][number % len(KINDS)]


@contextmanager
def _running_servers(count: int, breaches: list[int]) -> Iterator[list[str]]:
    """Yield the URLs of the origins; add the number of breaches at the end."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.soak", "--serve", str(count)],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
        process.stdin.close()
        breaches.append(json.loads(process.stdout.readline()))


def _raise_limit(files: int) -> None:
    """Raise the limit on open files, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < files:
        limit = files if hard == resource.RLIM_INFINITY else min(files, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))


# --- the lookups ------------------------------------------------------------------


class Soak(NamedTuple):
    """The options of a soak test."""

    origins: int = 720
    lookups: int = 100_000
    concurrency: int = 500
    rounds: int = 10
    read_timeout: float = 3.0
    seed: int = 0
    loop: str = "asyncio"


class _BadStore(MemoryStore):
    """A store with operations that sometimes raise, hang or return garbage."""

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self._rng = rng

    async def get(self, key: str) -> bytes | None:
        return b"garbage" if await self._fails() else await super().get(key)

    async def update(self, key: str, change: Any) -> None:  # noqa: ANN401
        if await self._fails():
            raise StoreError("the disk is full")
        await super().update(key, change)

    async def _fails(self) -> bool:
        """Whether the caller must fail in its own way; this may also raise or hang."""
        is_bad = self._rng.random() < _STORE_FAILURE_SHARE
        if is_bad and self._rng.random() < 1 / 4:
            raise OSError("the disk is gone")
        if is_bad and self._rng.random() < 1 / 3:
            await anyio.sleep_forever()
        return is_bad


class Resources(NamedTuple):
    """The system resources of this process."""

    mebibytes: float
    descriptors: int
    tasks: int

    @classmethod
    def now(cls) -> Resources:
        """Collect garbage, then count."""
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return cls(
            mebibytes=pages * os.sysconf("SC_PAGE_SIZE") / 2**20,
            descriptors=len([*Path("/proc/self/fd").iterdir()]),
            tasks=len(anyio.get_running_tasks()),
        )


class _Run:
    """One run of a soak test."""

    def __init__(self, soak: Soak, origins: Sequence[str]) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.memory: list[float] = []
        self._soak = soak
        self._origins = origins
        self._rng = Random(soak.seed)
        self._clock = ManualClock()

    async def run(self) -> None:
        """Run all rounds, and count the resources before and after them."""
        self.before = Resources.now()
        async with RobotsChecker(
            user_agent=_AGENTS[0],
            store=_BadStore(self._rng),
            policy=Policy(
                # Long enough for a machine that runs a hundred fetches at once.
                fetch_deadline=7 * self._soak.read_timeout,
                read_timeout=self._soak.read_timeout,
                store_timeout=0.2,
                allowed_networks=("127.1.0.0/16",),
            ),
            clock=self._clock,
            on_event=self._on_event,
        ) as checker:
            for number in range(self._soak.rounds):
                began = time.perf_counter()
                await self._run_round(checker)
                self._clock.advance(_DAYS_OF_A_ROUND * 86_400.0)
                self.memory.append(Resources.now().mebibytes)
                seconds = time.perf_counter() - began
                print(f"round {number + 1}: {seconds:.0f} s", file=sys.stderr)
            self.counts["fetches"] = checker.stats.fetches
            self.counts["failed calls of the store"] = checker.stats.store_failures
        await self._settle()

    async def _run_round(self, checker: RobotsChecker) -> None:
        """Look up every origin, and some in bursts."""
        count = self._soak.lookups // self._soak.rounds
        numbers = [*range(len(self._origins))]
        while len(numbers) < count:
            burst = self._rng.randint(1, 8)
            numbers += [int(len(self._origins) * self._rng.random() ** 2)] * burst
        self._rng.shuffle(numbers)
        lookups = iter(enumerate(numbers))

        async def work() -> None:
            for place, number in lookups:
                if place % (count // _STEPS_OF_A_ROUND) == 0:
                    self._clock.advance(_STEP_SECONDS)
                await self._look_up(checker, number)

        async with anyio.create_task_group() as workers:
            for _ in range(self._soak.concurrency):
                workers.start_soon(work)

    async def _look_up(self, checker: RobotsChecker, number: int) -> None:
        kind = _kind(number)
        agent = self._rng.choice(_AGENTS)
        path = self._rng.choice(("/a/page", "/b/page", "/page", "/robots.txt"))
        (method,) = self._rng.choices([*_METHODS], weights=[*_METHODS.values()])
        is_impatient = self._rng.random() < _CANCELLED_SHARE
        patience = self._rng.uniform(0, _MAX_PATIENCE_SECONDS) if is_impatient else None
        answer: object = None
        with anyio.move_on_after(patience) as scope:
            try:
                answer = await method(checker, agent, self._origins[number] + path)
            except Exception as error:  # noqa: BLE001 (any error is a wrong answer)
                answer = error
        self.counts["lookups"] += 1
        self.counts["cancelled lookups"] += scope.cancelled_caught
        if answer is not expected(kind, agent, path) and not scope.cancelled_caught:
            self.wrong.append(f"{agent} {path}, origin {number} ({kind}): {answer!r}")

    def _on_event(self, _: object) -> None:
        if self._rng.random() < _LISTENER_ERROR_SHARE:
            raise RuntimeError("the listener fails")

    async def _settle(self) -> None:
        """Wait until closed sockets and ended tasks are gone."""
        until = time.perf_counter() + _SETTLING_SECONDS
        self.after = Resources.now()
        while self.after[1:] > self.before[1:] and time.perf_counter() < until:
            await anyio.sleep(0.1)
            self.after = Resources.now()


async def _can_fetch(checker: RobotsChecker, agent: str, url: str) -> bool:
    return await checker.can_fetch(agent, url)


async def _check(checker: RobotsChecker, agent: str, url: str) -> bool:
    return (await checker.check(agent, url)).allowed


async def _can_fetch_many(checker: RobotsChecker, agent: str, url: str) -> bool:
    (answer,) = {*await checker.can_fetch_many(agent, [url, url])}
    return answer


async def _refresh(checker: RobotsChecker, agent: str, url: str) -> bool:
    await checker.refresh(url)
    return await checker.can_fetch(agent, url)


# The methods that look up a URL, with the percentage of each.
_METHODS: dict[Callable[[RobotsChecker, str, str], Awaitable[bool]], int] = {
    _can_fetch: 50,
    _check: 44,
    _can_fetch_many: 5,
    _refresh: 1,
}


def run_soak(soak: Soak) -> dict[str, tuple[float, float]]:
    """Run `soak`; return for each requirement what was measured, and the maximum."""
    breaches: list[int] = []
    with _running_servers(soak.origins, breaches) as origins:
        run, threads = _Run(soak, origins), threading.active_count()
        anyio.run(run.run, backend=soak.loop)
        until = time.perf_counter() + _SETTLING_SECONDS
        while threading.active_count() > threads and time.perf_counter() < until:
            time.sleep(0.1)
        threads = threading.active_count() - threads
    for what, count in run.counts.items():
        print(f"{what}: {count:,}")
    for text in run.wrong[:20]:
        print(f"wrong, seed {soak.seed}: {text}")
    growth = run.memory[-1] - run.memory[:_WARM_UP_ROUNDS][-1]
    more = [now - then for now, then in zip(run.after, run.before, strict=True)]
    return {
        "wrong answers": (len(run.wrong), 0),
        "connections that the guard should have refused": (sum(breaches), 0),
        "additional file descriptors": (more[1], 0),
        "additional tasks": (more[2], 0),
        "additional threads": (threads, 0),
        "MiB of growth after the warm-up": (growth, _MAX_GROWTH_MIB),
    }


def main() -> int:
    """Run the command; the exit status is 1 if a requirement is missed."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    for name, default in Soak()._asdict().items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=type(default), default=default)
    options = vars(parser.parse_args())
    served = options.pop("serve")
    if served is not None:
        _raise_limit(2 * served + 1_000)
        _serve(served)
    logging.getLogger("robotsgate").addHandler(logging.NullHandler())
    figures = run_soak(Soak(**options))
    for what, (value, most) in figures.items():
        print(f"{what}: {value:,.4g} (at most {most})")
    return int(any(value > most for value, most in figures.values()))


if __name__ == "__main__":
    sys.exit(main())
