"""Crawls many hosts over real sockets; the hosts time the requests themselves.

Each wrapped client crawls, and httpx also follows a gate's schedule.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import aiohttp
import anyio
import anyio.to_thread
import httpx
import httpx2
import pytest

from robotsgate import PolitenessGate, RobotsChecker
from robotsgate._clock import SystemClock
from tests.checking.builders import AGENT
from tests.integrations.gated import GATED, NO_TLS
from tests.servers.answers import Late, Reply, redirect
from tests.servers.loopback import Connection, LoopbackServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

    from tests.integrations.gated import Open
    from tests.servers.loopback import Request

    Get = Callable[[str], Awaitable[Any]]

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

KINDS = ("good", "slow", "reset", "429", "503", "elsewhere", "hangs", "wrong", "good")

_HOSTS = 20
_DELAY = 20.0  # in seconds of the crawl's clock
_SPEED = 200.0
_WORKERS = 20
_SLOW_SECONDS = 0.05
_MAX_SECONDS = 60  # for one crawl in the tests
_ERRORS = (httpx.HTTPError, httpx2.HTTPError, aiohttp.ClientError, ValueError)


class FastClock(SystemClock):
    """A clock that runs faster, so that tests can wait for a minute."""

    def now(self) -> float:  # type: ignore[override] (a builtin there)
        return time.time() * _SPEED  # noqa: TID251 (a clock)

    def monotonic(self) -> float:  # type: ignore[override]
        return time.monotonic() * _SPEED  # noqa: TID251

    async def wait(self, seconds: float, *, event: anyio.Event | None = None) -> bool:
        return await super().wait(seconds / _SPEED, event=event)


class Host:
    """A host on a loopback address that has a crawl-delay and records its requests.

    Attributes:
        spans: when each request arrived and ended; the end is recorded just before
            the client can notice it.
        hang_event: set while a request hangs, until its client gives up.
    """

    def __init__(self) -> None:
        self.spans: list[list[float]] = []
        self.targets: set[str] = set()
        self.hang_event = threading.Event()

    @property
    def gaps(self) -> list[float]:
        """Seconds from the end of each request to the start of the next."""
        return [start - end for (_, end), (start, _) in pairwise(self.spans)]

    def end(self) -> None:
        """Record that the last request ends now."""
        self.hang_event.clear()
        self.spans[-1][1] = time.monotonic()  # noqa: TID251 (the host's own clock)

    def answer(self, request: Request, connection: Connection) -> None:
        """Respond as the target specifies."""
        self.spans.append([time.monotonic(), math.inf])  # noqa: TID251
        self.targets.add(request.target)
        reply = Reply()
        match request.target.split("/")[1:]:
            case ["robots.txt"]:
                rules = f"User-agent: *\nCrawl-delay: {_DELAY}\n"
                reply = Reply(body=rules.encode())
            case ["slow", _]:
                Late(_SLOW_SECONDS, lambda *_: None)(request, connection)
            case ["429" | "503" as status, _]:
                reply = Reply(status=int(status), headers={"Retry-After": "30"})
            case ["elsewhere", _]:
                reply = redirect("/good/again")
            case ["reset", _]:
                self.end()
                connection.reset()
                return
            case ["hangs", _]:
                self.hang_event.set()
                connection.hang()
                return
        self.end()
        connection.send(reply.octets)


class Crawl:
    """Hosts with several kinds of pages, and a crawler with a gate.

    Attributes:
        hosts: keyed by name.
        urls: all pages; each host has the kinds in a different order.
    """

    def __init__(self) -> None:
        self.hosts: dict[str, Host] = defaultdict(Host)
        self.urls: list[str] = []

    @property
    def short_gaps(self) -> list[float]:
        """The gaps shorter than the delay."""
        gaps = [gap for host in self.hosts.values() for gap in host.gaps]
        return [gap for gap in gaps if gap < _DELAY / _SPEED]

    @asynccontextmanager
    async def started(self) -> AsyncIterator[tuple[RobotsChecker, PolitenessGate]]:
        """Start the hosts; yield a checker and a gate."""

        def answer(request: Request, connection: Connection) -> None:
            self.hosts[request.headers["host"]].answer(request, connection)

        async with (
            RobotsChecker(user_agent=AGENT, clock=FastClock()) as checker,
            PolitenessGate(
                checker,
                AGENT,
                default_delay=0.0,
                max_delay=2 * _DELAY,
                max_turn_seconds=_MAX_SECONDS * _SPEED,
            ) as gate,
        ):
            # Listens on all loopback addresses.
            with LoopbackServer(answer, host="0.0.0.0") as server:  # noqa: S104
                chance = Random(7)  # noqa: S311 (no secret)
                for number in range(1, _HOSTS + 1):
                    kinds = chance.sample(KINDS, len(KINDS))
                    site = f"http://127.0.1.{number}:{server.port}"
                    self.urls += [f"{site}/{kind}/{n}" for n, kind in enumerate(kinds)]
                chance.shuffle(self.urls)
                yield checker, gate

    async def follow(self, gate: PolitenessGate, get: Get) -> None:
        """Crawl in the order of the gate's schedule."""
        schedule = gate.schedule(self.urls)

        async def work() -> None:
            async for url, turn in schedule:
                with suppress(*_ERRORS):
                    async with turn:
                        response = await self._get(get, str(url))
                        if response is None:
                            continue
                        if "/wrong/" in str(url):
                            raise ValueError("unreadable page")
                        turn.report(response)
                        if "location" in response.headers:
                            schedule.add(f"{str(url).rsplit('/', 2)[0]}/good/again")

        async with anyio.create_task_group() as tasks:
            for _ in range(_WORKERS):
                tasks.start_soon(work)

    async def send_all(self, get: Get) -> None:
        """Crawl with a client that waits for turns itself, in one task per host."""
        by_host: dict[str, list[str]] = defaultdict(list)
        for url in self.urls:
            by_host[url.split("/")[2]].append(url)

        async def visit(urls: Sequence[str]) -> None:
            for url in urls:
                with suppress(*_ERRORS):
                    await self._get(get, url)

        async with anyio.create_task_group() as tasks:
            for urls in by_host.values():
                tasks.start_soon(visit, urls)

    async def _get(self, get: Get, url: str) -> Any:  # noqa: ANN401 (of any client)
        """The response; `None` if the client gave up."""
        if "/hangs/" not in url:
            return await get(url)
        host = self.hosts[url.split("/")[2]]

        async def give_up() -> None:
            wait = partial(host.hang_event.wait, _MAX_SECONDS)
            await anyio.to_thread.run_sync(wait, abandon_on_cancel=True)
            host.end()
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(give_up)
            return await get(url)
        return None


async def _by_schedule(crawl: Crawl) -> None:
    async with (
        crawl.started() as (_, gate),
        httpx.AsyncClient(verify=NO_TLS) as client,
    ):
        await crawl.follow(gate, client.get)


async def _wrapped(opened: Open, crawl: Crawl) -> None:
    async with crawl.started() as (checker, gate), opened(checker, gate) as send:

        async def get(url: str) -> None:
            async with send(url):
                pass

        await crawl.send_all(get)


CRAWLS: dict[str, tuple[str, Callable[[Crawl], Awaitable[None]]]] = {
    "schedule on asyncio": ("asyncio", _by_schedule),
    "schedule on trio": ("trio", _by_schedule),
} | {
    f"wrapped {name}": (backend, partial(_wrapped, opened))
    for name, (backend, opened) in GATED.items()
}
"""The event loop and the function that crawls, by name."""


@pytest.mark.parametrize(("anyio_backend", "run"), CRAWLS.values(), ids=CRAWLS)
async def test_no_gap_is_shorter_than_the_delay_however_requests_fail(
    run: Callable[[Crawl], Awaitable[None]],
) -> None:
    crawl = Crawl()

    await run(crawl)

    # The pages, robots.txt, and the target of the redirect.
    targets = {len(host.targets) for host in crawl.hosts.values()}
    assert (len(crawl.hosts), targets) == (_HOSTS, {len(KINDS) + 2})
    assert crawl.short_gaps == []
