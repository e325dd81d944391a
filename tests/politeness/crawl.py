"""A crawler with a gate, a manual clock and an in-memory site."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Self

import anyio
import anyio.lowlevel

from robotsgate import Policy, RobotsError
from robotsgate.politeness._gate import PolitenessGate
from robotsgate.politeness._ledger import LocalLedger
from robotsgate.testing import FakeSite, ManualClock
from tests.cancellation import cancelled_at
from tests.checking.builders import AGENT, ORIGIN, PUBLIC, checker_of, let_others_run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from robotsgate import Store, Turn
    from robotsgate.events import GateEvent
    from robotsgate.politeness._host_record import Pace, TurnEnd
    from robotsgate.politeness._ledger import Grant, Wait
    from robotsgate.urls._url import URLLike

DELAY = 10.0
RULES = "Disallow: /private\n"


class SlowLedger(LocalLedger):
    """Lets other tasks run before each call, like a ledger on a server."""

    async def start(
        self, host: str, pace: Pace, *, is_robots_txt: bool = False
    ) -> Grant | Wait:
        await anyio.lowlevel.checkpoint()
        return await super().start(host, pace, is_robots_txt=is_robots_txt)

    async def end(
        self, grant: Grant, end: TurnEnd, *, retry_after: float | None = None
    ) -> None:
        await anyio.lowlevel.checkpoint()
        await super().end(grant, end, retry_after=retry_after)

    async def forget(self, host: str, pace: Pace) -> None:
        await super().forget(host, pace)
        await anyio.lowlevel.checkpoint()


class Crawl:
    """A gate and a crawler that uses it.

    Attributes:
        ledger: an instance of the given class; otherwise, the gate has its own.
        site: has a robots.txt at `ORIGIN` with a crawl-delay of `DELAY`.
        starts: when each turn began, in seconds since the crawl started, and its URL.
        errors: the exceptions that visits have raised.
        events: the events that the gate has reported.
    """

    def __init__(
        self,
        *,
        ledger: type[LocalLedger] | None = None,
        store: Store | None = None,
        policy: Policy | None = None,
        **arguments: Any,  # noqa: ANN401 (PolitenessGate's)
    ) -> None:
        self.clock = ManualClock()
        if ledger is not None:
            self.ledger: Any = ledger(clock=self.clock)
            arguments["ledger"] = self.ledger
        self.site = FakeSite(clock=self.clock)
        self.serve()
        self.checker = checker_of(
            self.site, clock=self.clock, store=store, policy=policy or Policy()
        )
        self.errors: list[Exception] = []
        self.events: list[GateEvent] = []
        self.starts: list[tuple[float, str]] = []
        self.gate = PolitenessGate(
            self.checker, AGENT, on_event=self.events.append, **arguments
        )

    @property
    def seconds(self) -> float:
        """How long the crawl has been running."""
        return self.clock.monotonic()

    @property
    def times(self) -> list[float]:
        """When each turn began."""
        return [time for time, _ in self.starts]

    def serve(
        self,
        rules: str = RULES,
        *,
        origin: str = ORIGIN,
        crawl_delay: float | str = DELAY,
        **options: Any,  # noqa: ANN401 (FakeSite.serve's)
    ) -> None:
        """Serve a robots.txt for `origin`; `crawl_delay` is in seconds."""
        body = f"User-agent: *\nCrawl-delay: {crawl_delay}\n{rules}"
        self.site.serve(origin, body, **options)

    async def visit(
        self,
        url: str | URLLike = PUBLIC,
        *,
        seconds: float = 0.0,
        patience: float | None = None,
        **report: Any,  # noqa: ANN401 (Turn.report's)
    ) -> None:
        """Make one request that takes `seconds`."""
        await self.enter(url, self.gate.turn(url, patience=patience), seconds, **report)

    async def enter(
        self,
        url: str | URLLike,
        turn: Turn,
        seconds: float = 0.0,
        **report: Any,  # noqa: ANN401 (Turn.report's)
    ) -> None:
        """Make one request that takes `seconds`, in a given turn."""
        async with turn:
            self.starts.append((self.seconds, str(url)))
            if seconds:
                await self.clock.wait(seconds)
            if report:
                turn.report(**report)

    async def run(self, seconds: float, *visits: Callable[[], Awaitable[None]]) -> None:
        """Start `visits` in order, then let time pass."""

        async def keep_error(visit: Callable[[], Awaitable[None]]) -> None:
            try:
                await visit()
            except (RobotsError, RuntimeError) as error:
                self.errors.append(error)

        async with anyio.create_task_group() as tasks:
            for visit in visits:
                tasks.start_soon(keep_error, visit)
                await let_others_run()
            await self.clock.pass_time(seconds)

    async def is_cancelled_at(
        self, number: int, work: Callable[[], Awaitable[None]], *, way: str
    ) -> bool:
        """Cancel `work` at its `number`-th suspension; return whether it got there."""
        outcomes: list[bool] = []

        async def cancel() -> None:
            outcomes.append(await cancelled_at(number, work, way=way))

        await self.run(10, cancel)
        return outcomes[0]

    async def warm_up(self) -> Self:
        """Cache robots.txt and let the delay pass."""
        await self.checker.can_fetch(AGENT, PUBLIC)
        self.clock.advance(3_600)
        return self

    @asynccontextmanager
    async def open_turn(self, url: str = PUBLIC) -> AsyncIterator[None]:
        """Keep a turn of another task open during the block."""
        end = anyio.Event()

        async def keep_open() -> None:
            async with self.gate.turn(url):
                await end.wait()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(keep_open)
            await let_others_run()
            yield
            end.set()
