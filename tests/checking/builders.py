"""Builds the checkers, sites and stores that the tests of the checker talk about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel
import pytest

from robotsgate import MemoryStore, RobotsChecker
from robotsgate.testing import FakeSite, ManualClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    import httpx

    from robotsgate import Entry

MINUTE = 60.0
HOUR = 3_600.0
DAY = 86_400.0

AGENT = "ExampleBot"
ORIGIN = "https://example.com"
OTHER_ORIGIN = "https://other.example"
RULES = "User-agent: *\nDisallow: /private\nAllow: /private/open\n"
PUBLIC = f"{ORIGIN}/public"
PRIVATE = f"{ORIGIN}/private"
ROBOTS_TXT = f"{ORIGIN}/robots.txt"

_Answer = TypeVar("_Answer")


class GatedSite(FakeSite):
    """Lets nobody have an answer before its gate is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = anyio.Event()
        self.under_way = 0
        self.most_under_way = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await self.gate.wait()
            return await super().handle_async_request(request)
        finally:
            self.under_way -= 1


class SlowSite(FakeSite):
    """Takes its time, by the clock that it turns, for each answer."""

    def __init__(self, clock: ManualClock, *, seconds: float) -> None:
        super().__init__()
        self._clock = clock
        self._seconds = seconds

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._clock.advance(self._seconds)
        return await super().handle_async_request(request)


class CountingClock(ManualClock):
    """Counts how often it is looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0

    def now(self) -> float:
        self.looks += 1
        return super().now()


class FailingStore(MemoryStore):
    """Cannot do what it is told to fail at."""

    def __init__(self, *failing: str) -> None:
        super().__init__()
        self._failing = failing

    async def get(self, origin: str) -> Entry | None:
        self._fail_at("get")
        return await super().get(origin)

    async def put(self, entry: Entry) -> None:
        self._fail_at("put")
        await super().put(entry)

    async def delete(self, origin: str) -> None:
        self._fail_at("delete")
        await super().delete(origin)

    def _fail_at(self, operation: str) -> None:
        if operation in self._failing:
            message = f"the disk is full at {operation}"
            raise OSError(message)


class GatedStore(MemoryStore):
    """Holds back whatever is named until its gate is opened."""

    def __init__(self, *gated: str) -> None:
        super().__init__()
        self.gate = anyio.Event()
        self.waiting = 0
        self._gated = gated

    async def get(self, origin: str) -> Entry | None:
        await self._wait_at("get")
        return await super().get(origin)

    async def put(self, entry: Entry) -> None:
        await self._wait_at("put")
        await super().put(entry)

    async def _wait_at(self, operation: str) -> None:
        if operation in self._gated:
            self.waiting += 1
            await self.gate.wait()
            self.waiting -= 1


class ClosableStore(MemoryStore):
    """Knows whether it was closed."""

    is_closed = False

    async def aclose(self) -> None:
        self.is_closed = True
        await super().aclose()


def site_of(
    body: bytes | str = RULES, *, status: int = 200, **headers: str
) -> FakeSite:
    """A site that answers for `ORIGIN`; `cache_control` for a header."""
    site = FakeSite()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    site.serve(ORIGIN, body, status=status, headers=named)
    return site


def checker_of(
    site: FakeSite,
    **arguments: Any,  # noqa: ANN401 (those of RobotsChecker)
) -> RobotsChecker:
    """A checker of `site` whose clock stands still."""
    return RobotsChecker(client=site, **{"clock": ManualClock(), **arguments})


def answered_at_once(coroutine: Coroutine[Any, Any, _Answer]) -> _Answer:
    """What `coroutine` returns, which must not suspend."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        answer: _Answer = end.value
        return answer
    coroutine.close()
    pytest.fail("the coroutine suspended")


async def let_others_run() -> None:
    """Give every other task the time to come as far as it can."""
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


async def concurrently(
    count: int, call: Callable[[], Awaitable[_Answer]]
) -> list[_Answer]:
    """What `count` calls at once return, in the order of their ends."""
    answers: list[_Answer] = []

    async def keep_answer() -> None:
        answers.append(await call())

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(keep_answer)
    return answers
