"""Builds checkers, sites and stores for the tests of the checker."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.lowlevel
import pytest

from robotsgate import AccessResult, FetchedResponse, MemoryStore, RobotsChecker
from robotsgate.caching._entry import Answer, Entry, pack
from robotsgate.testing import FakeSite, ManualClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    import httpx

    from robotsgate import Fetcher
    from robotsgate.caching._entry import Outage
    from robotsgate.stores._base import Change

MINUTE = 60.0
HOUR = 3_600.0
DAY = 86_400.0

NOW = 1_800_000_000.0
"""When a `ManualClock` starts."""

AGENT = "ExampleBot"
ORIGIN = "https://example.com"
OTHER_ORIGIN = "https://other.example"
RULES = "User-agent: *\nDisallow: /private\nAllow: /private/open\n"
PUBLIC = f"{ORIGIN}/public"
PRIVATE = f"{ORIGIN}/private"
ROBOTS_TXT = f"{ORIGIN}/robots.txt"

_Answer = TypeVar("_Answer")

Call = Callable[[RobotsChecker, Any, Any], Coroutine[Any, Any, object]]

CALLS_WITH_AGENT: dict[str, Call] = {
    "can_fetch": RobotsChecker.can_fetch,
    "check": RobotsChecker.check,
    "can_fetch_many": lambda checker, agent, url: checker.can_fetch_many(agent, [url]),
    "crawl_delay": RobotsChecker.crawl_delay,
    "request_rate": RobotsChecker.request_rate,
    "usage_preferences": RobotsChecker.usage_preferences,
}

# Every method that may fetch an origin.
CALLS: dict[str, Call] = CALLS_WITH_AGENT | {
    "robots_txt": lambda checker, _, url: checker.robots_txt(url),
    "sitemaps": lambda checker, _, url: checker.sitemaps(url),
    "prefetch": lambda checker, _, url: checker.prefetch([url]),
    "refresh": lambda checker, _, url: checker.refresh(url),
}


class GatedSite(FakeSite):
    """Sends no response until its gate is open."""

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


class Unreadable(str):
    """A header value that raises when it is read, as for a bug that nobody knows of."""

    __slots__ = ()

    def _raise(self, *_: object) -> Any:  # noqa: ANN401 (stands for several methods)
        message = "a value that we cannot handle"
        raise LookupError(message)

    replace = split = strip = _raise


class UnreadableSite:
    """A `Fetcher` whose response for `ORIGIN` has an `Unreadable` header.

    For other origins, it returns `RULES`.
    """

    dials_nothing = True

    def __init__(self, status: int, name: str) -> None:
        self._response = _fetched(status, (name, Unreadable("9")))

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        del headers, max_bytes
        return self._response if url == ROBOTS_TXT else _fetched(200)


def _fetched(status: int, *headers: tuple[str, str]) -> FetchedResponse:
    return FetchedResponse(
        status=status, headers=headers, body=RULES.encode(), is_decoded=True
    )


class TickingClock(ManualClock):
    """Advances by a millisecond whenever it is read."""

    def monotonic(self) -> float:
        self.advance(0.001)
        return super().monotonic()


class StoreBehind:
    """Passes every call on to a `MemoryStore` that the checker does not know of."""

    def __init__(self, behind: MemoryStore | None = None) -> None:
        self.behind = MemoryStore() if behind is None else behind

    async def get(self, key: str) -> bytes | None:
        await self.begin("get")
        return await self.behind.get(key)

    async def update(self, key: str, change: Change) -> None:
        await self.begin("update")
        await self.behind.update(key, change)

    async def delete(self, key: str) -> None:
        await self.begin("delete")
        await self.behind.delete(key)

    async def purge(self, now: float) -> int:
        await self.begin("purge")
        return await self.behind.purge(now)

    async def aclose(self) -> None:
        await self.behind.aclose()

    async def begin(self, operation: str) -> None:
        """Called at the beginning of each operation."""


class FailingStore(StoreBehind):
    """Raises an exception in each operation listed in `failing`."""

    def __init__(self, *failing: str) -> None:
        super().__init__()
        self.failing = failing

    async def begin(self, operation: str) -> None:
        if operation in self.failing:
            raise OSError(f"the disk is full at {operation}")


class GatedStore(StoreBehind):
    """Delays the named operations until its gate is open."""

    def __init__(self, *gated: str) -> None:
        super().__init__()
        self.gate = anyio.Event()
        self.waiting = 0
        self._gated = gated

    async def begin(self, operation: str) -> None:
        if operation in self._gated:
            self.waiting += 1
            await self.gate.wait()
            self.waiting -= 1


class LeaseStore(StoreBehind):
    """Has a lease for each key, which is free unless it has an owner.

    Attributes:
        owners: the owners of leases, by key.
    """

    def __init__(self) -> None:
        super().__init__()
        self.owners: dict[str, str] = {}

    async def acquire(self, key: str, owner: str, seconds: float) -> bool:
        del seconds
        if key in self.owners:
            return False
        self.owners[key] = owner
        return True

    async def release(self, key: str, owner: str) -> None:
        await anyio.lowlevel.checkpoint()  # as when contacting a server
        if self.owners.get(key) == owner:
            del self.owners[key]


def entry_of(
    body: bytes = RULES.encode(),
    *,
    origin: str = ORIGIN,
    access: AccessResult = AccessResult.SUCCESSFUL,
    answered_at: float = NOW,
    outage: Outage | None = None,
) -> Entry:
    """An entry with an answer that is fresh for a day."""
    packed = pack(body) if access is AccessResult.SUCCESSFUL else None
    answer = Answer(
        access=access,
        answered_at=answered_at,
        fresh_until=answered_at + DAY,
        status=200,
        packed=packed,
    )
    return Entry(origin=origin, answer=answer, outage=outage)


def site_of(
    body: bytes | str = RULES, *, status: int = 200, **headers: str
) -> FakeSite:
    """A site with a robots.txt at `ORIGIN`, sent with headers like `cache_control`."""
    site = FakeSite()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    site.serve(ORIGIN, body, status=status, headers=named)
    return site


def checker_of(
    site: httpx.AsyncBaseTransport | httpx.AsyncClient | Fetcher,
    **arguments: Any,  # noqa: ANN401 (RobotsChecker's arguments)
) -> RobotsChecker:
    """A checker for `site` with a clock that stands still."""
    defaults = {"user_agent": AGENT, "clock": ManualClock()}
    return RobotsChecker(client=site, **(defaults | arguments))


def answered_at_once(coroutine: Coroutine[Any, Any, _Answer]) -> _Answer:
    """The result of `coroutine`, which must not suspend."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        answer: _Answer = end.value
        return answer
    coroutine.close()
    pytest.fail("the coroutine suspended")


async def let_others_run() -> None:
    """Let every other task run as far as it can."""
    for _ in range(20):
        await anyio.lowlevel.checkpoint()


async def add_answer(answers: list[bool], checker: RobotsChecker, url: str) -> None:
    """Add to `answers` whether `AGENT` may fetch `url`."""
    answers.append(await checker.can_fetch(AGENT, url))


async def concurrently(
    count: int, call: Callable[[], Awaitable[_Answer]]
) -> list[_Answer]:
    """The results of `count` concurrent calls, in the order in which they finish."""
    answers: list[_Answer] = []

    async def add_answer() -> None:
        answers.append(await call())

    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(add_answer)
    return answers
