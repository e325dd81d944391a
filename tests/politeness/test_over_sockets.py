"""What 50 hosts see of a crawl over real sockets, by their own clock."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

import anyio
import pytest

from robotsgate import PolitenessGate, RobotsChecker
from tests.servers.answers import Late, Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate import Turn
    from tests.servers.loopback import Connection, LoopbackServer, Request

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

HOSTS = 50
PAGES = 20

# Short ones, with which a busy machine may take up to three times the ideal time.
DELAYS = (0.18, 0.3, 0.42)


@dataclass
class Host:
    """A loopback address with a delay, and when its requests came and ended."""

    delay: float
    seconds: float
    came: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)

    @property
    def gaps(self) -> list[float]:
        """Seconds from the end of each request to the next one."""
        pairs = zip(self.ended, self.came[1:], strict=False)
        return [came - ended for ended, came in pairs]

    @property
    def lateness(self) -> float:
        """By which part the last request ended later than it could have."""
        ideal = self.seconds + PAGES * (self.delay + self.seconds)
        return (self.ended[-1] - self.came[0]) / ideal - 1

    def answer(self, request: Request, connection: Connection) -> None:
        """Answer after some time; the request ends just before the client sees that."""
        self.came.append(time.monotonic())  # noqa: TID251 (the host's own clock)
        body = b""
        if request.target == "/robots.txt":
            body = f"User-agent: *\nCrawl-delay: {self.delay}\n".encode()
        Late(self.seconds, lambda *_: None)(request, connection)
        self.ended.append(time.monotonic())  # noqa: TID251
        connection.send(Reply(body=body).octets)


async def visit(port: int, url: str, turn: Turn) -> None:
    """One request in its turn."""
    host = url.split("/")[2].partition(":")[0]
    head = f"GET {url} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()
    async with turn, await anyio.connect_tcp(host, port) as connection:
        await connection.send(head)
        await connection.receive()


async def test_no_host_sees_a_gap_below_its_delay_and_each_is_done_in_time(
    serve: Callable[..., LoopbackServer],
) -> None:
    chance = Random(7)  # noqa: S311 (no secret)
    hosts: dict[str, Host] = defaultdict(
        lambda: Host(chance.choice(DELAYS), chance.choice([0, 0.01, 0.03]))
    )
    server = serve(
        lambda request, connection: hosts[request.headers["host"]].answer(
            request, connection
        ),
        host="0.0.0.0",  # noqa: S104 (for all addresses of the loopback network)
    )
    names = [f"127.0.1.{number}:{server.port}" for number in range(1, HOSTS + 1)]
    urls = [f"http://{name}/{page}" for name in names for page in range(PAGES)]
    chance.shuffle(urls)

    async with RobotsChecker(user_agent="ExampleBot") as checker:
        gate = PolitenessGate(checker, "ExampleBot", default_delay=0.0)
        async with gate, anyio.create_task_group() as tasks:
            async for url, turn in gate.schedule(urls, window=len(urls)):
                tasks.start_soon(visit, server.port, url, turn)

    assert [len(host.came) for host in hosts.values()] == [PAGES + 1] * HOSTS
    assert [
        gap for host in hosts.values() for gap in host.gaps if gap < host.delay
    ] == []
    lateness = max(host.lateness for host in hosts.values())
    print(f"the last host is {lateness:.1%} late")  # noqa: T201 (for a run by hand)
    assert lateness < 2
