"""Crawls many hosts over real sockets; the hosts time the requests themselves.

Each client crawls twice: following a gate's schedule, and wrapped by the gate.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
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
    from types import ModuleType

    from tests.integrations.gated import Open
    from tests.servers.loopback import Request

    Get = Callable[[str], Awaitable[Any]]
    Client = tuple[str, Callable[["Crawl"], Awaitable[None]]]

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

GOOD = ("good",)
CHAOS = ("good", "slow", "reset", "429", "503", "elsewhere", "hangs", "wrong", "good")

_WORKERS = 20
_SLOW_SECONDS = 0.05
_MAX_SECONDS = 60  # for one crawl in the tests
_ERRORS = (httpx.HTTPError, httpx2.HTTPError, aiohttp.ClientError, ValueError)


class FastClock(SystemClock):
    """A clock that runs faster, so that tests can wait for a minute."""

    def __init__(self, speed: float) -> None:
        self.speed = speed

    def now(self) -> float:  # type: ignore[override] (a builtin there)
        return time.time() * self.speed  # noqa: TID251 (a clock)

    def monotonic(self) -> float:  # type: ignore[override]
        return time.monotonic() * self.speed  # noqa: TID251

    async def wait(self, seconds: float, *, event: anyio.Event | None = None) -> bool:
        return await super().wait(seconds / self.speed, event=event)


class Host:
    """A host on a loopback address that has a crawl-delay and records its requests.

    Attributes:
        spans: when each request arrived and ended; the end is recorded just before
            the client can notice it.
        hang_event: set while a request hangs, until its client gives up.
    """

    def __init__(self, delay: float) -> None:
        self._delay = delay
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
                rules = f"User-agent: *\nCrawl-delay: {self._delay}\n"
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

    def __init__(
        self, kinds: Sequence[str], *, hosts: int, delay: float, speed: float = 1.0
    ) -> None:
        """Prepare a crawl; `delay` is in seconds of a clock that runs at `speed`."""
        self._clock = FastClock(speed)
        self._delay = delay
        self.hosts: dict[str, Host] = defaultdict(lambda: Host(delay))
        self._kinds = kinds
        self._count = hosts
        self.urls: list[str] = []

    @property
    def short_gaps(self) -> list[float]:
        """The gaps shorter than the delay."""
        minimum = self._delay / self._clock.speed
        return [
            gap for host in self.hosts.values() for gap in host.gaps if gap < minimum
        ]

    @property
    def lateness(self) -> float:
        """How much longer than necessary the slowest host took, as a fraction."""
        return max(map(self._lateness, self.hosts.values()))

    @asynccontextmanager
    async def started(self) -> AsyncIterator[tuple[RobotsChecker, PolitenessGate]]:
        """Start the hosts; yield a checker and a gate."""

        def answer(request: Request, connection: Connection) -> None:
            self.hosts[request.headers["host"]].answer(request, connection)

        async with (
            RobotsChecker(user_agent=AGENT, clock=self._clock) as checker,
            PolitenessGate(
                checker,
                AGENT,
                default_delay=0.0,
                max_delay=2 * self._delay,
                max_turn_seconds=_MAX_SECONDS * self._clock.speed,
            ) as gate,
        ):
            # Listens on all loopback addresses.
            with LoopbackServer(answer, host="0.0.0.0") as server:  # noqa: S104
                chance = Random(7)  # noqa: S311 (no secret)
                for number in range(1, self._count + 1):
                    kinds = chance.sample(self._kinds, len(self._kinds))
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

    def _lateness(self, host: Host) -> float:
        took = host.spans[-1][1] - host.spans[0][0]
        requests = sum(end - start for start, end in host.spans)
        ideal = requests + (len(host.spans) - 1) * self._delay / self._clock.speed
        return took / ideal - 1


@asynccontextmanager
async def _bare_httpx(library: ModuleType, _: RobotsChecker) -> AsyncIterator[Get]:
    async with library.AsyncClient(verify=NO_TLS) as client:
        yield client.get


async def _send_once(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Prevent aiohttp from retrying a request within a turn."""
    try:
        return await handler(request)
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise aiohttp.ClientConnectionError(str(error)) from error


@asynccontextmanager
async def _bare_aiohttp(_: RobotsChecker) -> AsyncIterator[Get]:
    async with aiohttp.ClientSession(middlewares=(_send_once,)) as session:
        yield partial(session.get, allow_redirects=False)


async def _by_schedule(
    opened: Callable[[RobotsChecker], AbstractAsyncContextManager[Get]], crawl: Crawl
) -> None:
    async with crawl.started() as (checker, gate), opened(checker) as get:
        await crawl.follow(gate, get)


async def _wrapped(opened: Open, crawl: Crawl) -> None:
    async with crawl.started() as (checker, gate), opened(checker, gate) as send:

        async def get(url: str) -> None:
            async with send(url):
                pass

        await crawl.send_all(get)


CRAWLS: dict[str, tuple[str, Callable[[Crawl], Awaitable[None]]]] = {
    f"schedule, {name}": (backend, partial(_by_schedule, opened))
    for name, backend, opened in (
        ("httpx on asyncio", "asyncio", partial(_bare_httpx, httpx)),
        ("httpx on trio", "trio", partial(_bare_httpx, httpx)),
        ("httpx2 on asyncio", "asyncio", partial(_bare_httpx, httpx2)),
        ("httpx2 on trio", "trio", partial(_bare_httpx, httpx2)),
        ("aiohttp", "asyncio", _bare_aiohttp),
    )
} | {
    f"wrapped {name}": (backend, partial(_wrapped, opened))
    for name, (backend, opened) in GATED.items()
}
"""The event loop and the function that crawls, by name."""


@pytest.fixture(params=CRAWLS.values(), ids=CRAWLS)
def client(
    request: pytest.FixtureRequest,
) -> Client:
    client: Client = request.param
    return client


@pytest.fixture
def anyio_backend(client: tuple[str, object]) -> str:
    return client[0]


async def test_no_gap_is_shorter_than_the_delay_however_requests_fail(
    client: Client,
) -> None:
    crawl = Crawl(CHAOS, hosts=20, delay=20, speed=200)

    await client[1](crawl)

    # The pages, robots.txt, and the target of the redirect.
    targets = {len(host.targets) for host in crawl.hosts.values()}
    assert (len(crawl.hosts), targets) == (20, {len(CHAOS) + 2})
    assert crawl.short_gaps == []


@pytest.mark.parametrize("client", [CRAWLS["schedule, httpx on asyncio"]])
async def test_schedule_takes_less_than_three_times_the_ideal_time(
    client: Client,
) -> None:
    crawl = Crawl(GOOD * 20, hosts=50, delay=0.3)

    await client[1](crawl)

    assert crawl.short_gaps == []
    assert crawl.lateness < 2  # on a busy machine
