"""How a checker is opened, shared, abandoned and closed."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Self

import anyio
import httpx
import pytest

from robotsgate import MemoryStore, PolitenessGate, Reason, RobotsChecker
from robotsgate.events import CheckerStats
from robotsgate.stores.sqlite import SQLiteStore
from robotsgate.testing import FakeSite
from tests.tables import cases

from .builders import (
    AGENT,
    CALLS,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    RULES,
    GatedSite,
    checker_of,
    concurrently,
    let_others_run,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


@pytest.fixture
def site() -> GatedSite:
    """A site that serves `RULES` once its gate is open."""
    gated = GatedSite()
    gated.serve(ORIGIN, RULES)
    return gated


# --- one event loop ---------------------------------------------------------------

LARGE = "https://large.example/"
NEW = "https://new.example/"
STORED = "https://stored.example/"


async def check_each(checker: RobotsChecker, url: str) -> list[object]:
    return [one async for one in checker.check_many(AGENT, [url])]


async def take_turn(checker: RobotsChecker, url: str) -> None:
    async with PolitenessGate(checker, AGENT) as gate, gate.turn(url):
        pass


@cases("question", {
    "a new origin": (lambda it: it.can_fetch(AGENT, NEW),),
    "a verdict": (lambda it: it.check(AGENT, NEW),),
    "many URLs": (lambda it: it.can_fetch_many(AGENT, [NEW]),),
    "many URLs in the store": (lambda it: it.can_fetch_many(AGENT, [STORED]),),
    "verdicts in order": (lambda it: check_each(it, NEW),),
    "a prefetch": (lambda it: it.prefetch([NEW]),),
    "a refresh": (lambda it: it.refresh(PUBLIC),),
    "a turn at an origin in the store": (lambda it: take_turn(it, STORED),),
    "a large file to parse": (lambda it: it.can_fetch(AGENT, LARGE),),
    "a whole large file": (lambda it: it.robots_txt(LARGE),),
})  # fmt: skip
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_second_event_loop_is_answered_only_from_memory(
    question: Callable[[RobotsChecker], Awaitable[object]], backend: str, tmp_path: Path
) -> None:
    """Only joining a fetch of the first loop used to raise."""
    site = site_of()
    site.serve(LARGE, RULES + "#" * 70_000)
    store = SQLiteStore(tmp_path / "robots.db")
    checker = checker_of(site, store=store)

    async def in_first_loop() -> None:
        async with checker_of(site, store=store) as other:
            await other.prefetch([STORED])
        await checker.can_fetch(AGENT, PUBLIC)
        await checker.prefetch([LARGE])

    async def in_second_loop() -> None:
        assert await checker.can_fetch(AGENT, PUBLIC)
        assert not await checker.check(AGENT, PRIVATE)
        with pytest.raises(RuntimeError, match="each event loop to have its own"):
            await question(checker)

    async def in_first_loop_again() -> None:
        await question(checker)
        await checker.aclose()
        await store.aclose()

    with closing(asyncio.new_event_loop()) as loop:
        loop.run_until_complete(in_first_loop())
        anyio.run(in_second_loop, backend=backend)
        loop.run_until_complete(in_first_loop_again())


# --- one fetch for all callers ----------------------------------------------------


@pytest.mark.anyio
async def test_500_lookups_of_a_cold_origin_make_one_request() -> None:
    site = site_of()
    checker = checker_of(site)

    answers = await concurrently(500, lambda: checker.can_fetch(AGENT, PRIVATE))

    assert answers == [False] * 500
    assert site.requests == [ROBOTS_TXT]
    assert checker.stats == CheckerStats(
        checks=500,
        disallowed={Reason.DISALLOWED_BY_RULE: 500},
        fetches=1,
        successful=1,
        joined=499,
        store_misses=1,
        live_origins=1,
    )


@pytest.mark.anyio
async def test_500_cancelled_lookups_make_one_request_whose_result_is_used(
    site: GatedSite,
) -> None:
    """Each caller that gave up used to cancel the fetch, so there were 500 fetches."""
    checker = checker_of(site)

    for _ in range(500):
        with anyio.CancelScope(deadline=anyio.current_time() - 1) as impatient:
            await checker.can_fetch(AGENT, PRIVATE)
        assert impatient.cancelled_caught
    while_waiting = (checker.peek(AGENT, PRIVATE), checker.stats.fetches_under_way)
    site.gate.set()
    await let_others_run()

    assert while_waiting == (None, 1)
    assert (checker.peek(AGENT, PRIVATE), checker.peek(AGENT, PUBLIC)) == (False, True)
    assert site.requests == [ROBOTS_TXT]
    assert checker.stats.fetches_under_way == 0


# --- closing ----------------------------------------------------------------------


@pytest.mark.anyio
async def test_cancelled_block_closes_its_checker_completely(site: GatedSite) -> None:
    async with anyio.create_task_group() as tasks, checker_of(site) as checker:
        tasks.start_soon(checker.can_fetch, AGENT, PUBLIC)
        await let_others_run()
        is_fetching = site.under_way
        tasks.cancel_scope.cancel()
    await let_others_run()

    assert (is_fetching, site.under_way) == (1, 0)
    with pytest.raises(RuntimeError, match="the checker is closed"):
        await checker.can_fetch(AGENT, PUBLIC)


@pytest.mark.anyio
async def test_closed_checker_refuses_every_call() -> None:
    checker = checker_of(site_of(), overrides={OTHER_ORIGIN: RULES})
    await checker.can_fetch(AGENT, PUBLIC)
    await checker.aclose()

    assert checker.stats.live_origins == 0
    assert checker.peek(AGENT, OTHER_ORIGIN) is None
    with pytest.raises(RuntimeError, match="the checker is closed"):
        await checker.open()
    for call in CALLS.values():
        with pytest.raises(RuntimeError, match="the checker is closed"):
            await call(checker, AGENT, PUBLIC)
    with pytest.raises(RuntimeError, match="the checker is closed"):
        await checker.can_fetch_many(AGENT, ["mailto:x"])
    with pytest.raises(RuntimeError, match="the checker is closed"):
        await checker.prefetch([])


@pytest.mark.anyio
async def test_waiting_callers_get_their_result_even_if_the_first_one_closes() -> None:
    """They used to raise a KeyError if the first one closed the checker."""
    checker = checker_of(site_of())
    answers: list[bool] = []

    async def ask_and_close() -> None:
        answers.append(await checker.can_fetch(AGENT, PRIVATE))
        await checker.aclose()

    async with anyio.create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(ask_and_close)

    assert answers == [False] * 3


async def give_up(checker: RobotsChecker) -> None:
    """Start a fetch without waiting for it."""
    with anyio.CancelScope(deadline=anyio.current_time() - 1):
        await checker.can_fetch(AGENT, PUBLIC)


@pytest.mark.anyio
async def test_checker_can_be_closed_by_another_task(site: GatedSite) -> None:
    checker = checker_of(site)
    await checker.open()
    await give_up(checker)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.aclose)

    assert checker.stats.fetches_under_way == 0


@pytest.mark.anyio
async def test_open_checker_can_be_opened_again(tmp_path: Path) -> None:
    async with checker_of(site_of(), store=tmp_path / "robots.db") as checker:
        await checker.open()

        assert await checker.can_fetch(AGENT, PUBLIC)


@pytest.mark.anyio
async def test_callers_store_and_client_stay_open() -> None:
    store = MemoryStore()
    async with httpx.AsyncClient(transport=site_of()) as client:
        async with checker_of(client, store=store) as checker:
            await checker.can_fetch(AGENT, PUBLIC)

        assert client.is_closed is False
    # An empty `MemoryStore` is falsy, but it must be used.
    assert len(store) == 1


@pytest.mark.anyio
async def test_store_given_as_a_url_is_opened_and_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: list[str] = []

    class OwnStore(MemoryStore):
        async def __aenter__(self) -> Self:
            steps.append("opened")
            return self

        async def __aexit__(self, *_: object) -> None:
            await self.aclose()

        async def aclose(self) -> None:
            steps.append("closed")

    monkeypatch.setattr("robotsgate.checking._checker.open_store", lambda _: OwnStore())

    async with RobotsChecker(client=FakeSite(), store="own:"):
        steps.append("used")
    checker = RobotsChecker(client=FakeSite(), store="own:")
    await checker.open()
    await checker.aclose()

    assert steps == ["opened", "used", "closed", "opened", "closed"]
