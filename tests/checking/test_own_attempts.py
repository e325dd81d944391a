"""What a checker believes of other checkers' failures, and what it does after its own.

The tables of what counts as current are in tests/caching/test_entry.py.
"""

from __future__ import annotations

import gc
import logging
import weakref
from typing import TYPE_CHECKING

import anyio
import pytest

from robotsgate import (
    AccessResult,
    FailureKind,
    FetchedResponse,
    FetchFailedError,
    MemoryStore,
    Origin,
    Policy,
    RobotsChecker,
)
from robotsgate.caching._outcome import Outcome
from robotsgate.events import RobotsTxtFetched
from robotsgate.testing import FakeSite, ManualClock

from .builders import (
    AGENT,
    DAY,
    MINUTE,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    RULES,
    GatedSite,
    LeaseStore,
    StoreBehind,
    add_answer,
    checker_of,
    let_others_run,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.events import CheckerEvent

pytestmark = pytest.mark.anyio

LOCAL = FailureKind.LOCAL


def site_that_fails(kind: FailureKind = FailureKind.CONNECT) -> FakeSite:
    site = FakeSite()
    site.fail(ORIGIN, FetchFailedError("failed", kind=kind))
    return site


# --- attempts of others ---------------------------------------------------------


@pytest.mark.parametrize(
    "ill",
    [
        pytest.param(site_that_fails(), id="no connection"),
        pytest.param(site_of(status=407), id="407"),
    ],
)
async def test_failure_of_another_checker_is_not_believed(ill: FakeSite) -> None:
    """A worker without file descriptors used to close healthy sites for all others."""
    clock, store, site = ManualClock(), MemoryStore(), site_of()
    await checker_of(ill, store=store, clock=clock).refresh(ORIGIN)

    assert await checker_of(site, store=store, clock=clock).can_fetch(AGENT, PUBLIC)
    assert site.requests == [ROBOTS_TXT]
    # The answer is for all.
    clock.advance(2 * MINUTE)
    assert await checker_of(ill, store=store, clock=clock).can_fetch(AGENT, PUBLIC)


async def test_back_off_is_not_lengthened_by_the_failures_of_another_checker() -> None:
    """A checker's own failure of a minute used to close the origin for an hour."""
    clock, store, site = ManualClock(), MemoryStore(), site_that_fails()
    checker = checker_of(site, store=store, clock=clock, max_origins=1)
    other = checker_of(site_that_fails(), store=store, clock=clock)
    await checker.can_fetch(AGENT, PUBLIC)
    site.serve(ORIGIN, b"")
    for _ in range(10):
        await other.refresh(ORIGIN)
    await checker.can_fetch(AGENT, OTHER_ORIGIN)  # evicts the origin

    answers = []
    for _ in range(8):
        answers.append(await checker.can_fetch(AGENT, PUBLIC))
        clock.advance(10)

    assert answers == [*7 * [False], True]


async def test_own_answer_ends_the_own_back_off() -> None:
    clock, store, site = ManualClock(), MemoryStore(), site_that_fails()
    policy = Policy(min_lifetime=0)
    checker = checker_of(site, store=store, clock=clock, policy=policy)
    await checker.can_fetch(AGENT, PUBLIC)
    site.serve(ORIGIN, b"", headers={"cache-control": "max-age=0"})
    await checker.refresh(ORIGIN)

    await checker_of(
        site_that_fails(), store=store, clock=clock, policy=policy
    ).refresh(ORIGIN)
    await checker.can_fetch(AGENT, PUBLIC)

    assert len(site.requests) == 3


async def test_lease_is_not_waited_for_once_its_holder_has_failed() -> None:
    clock, store, site = ManualClock(), LeaseStore(), site_of()
    store.owners[ORIGIN] = "a slow process"
    checker = checker_of(site, store=store, clock=clock)
    allowed: list[bool] = []

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add_answer, allowed, checker, PUBLIC)
        await let_others_run()
        assert site.requests == []
        failing = checker_of(site_that_fails(), store=store.behind, clock=clock)
        await failing.refresh(ORIGIN)
        await clock.pass_time(1)

    assert allowed == [True]
    assert store.owners == {ORIGIN: "a slow process"}


# --- failures of our own machine --------------------------------------------------


async def test_own_failure_is_not_stored_and_can_be_forgotten() -> None:
    clock, store, site = ManualClock(), LeaseStore(), site_that_fails(LOCAL)
    checker = checker_of(site, store=store, clock=clock)

    verdict = await checker.check(AGENT, PUBLIC)

    assert (verdict.allowed, verdict.access) == (False, AccessResult.UNREACHABLE)
    assert verdict.fresh_until == clock.now() + 5
    assert await store.get(ORIGIN) is None
    assert store.owners == {}
    assert (checker.stats.local_failures, checker.stats.fetches) == (1, 0)
    site.serve(ORIGIN, b"")
    await checker.forget(ORIGIN)
    assert await checker.can_fetch(AGENT, PUBLIC)


async def test_copy_applies_during_an_own_failure() -> None:
    clock, site = ManualClock(), site_of()
    checker = checker_of(site, clock=clock)
    await checker.refresh(ORIGIN)
    clock.advance(DAY)
    site.fail(ORIGIN, FetchFailedError("no file", kind=LOCAL))

    for _ in range(2):  # the second lookup does not fetch
        assert await checker.can_fetch_many(AGENT, [PUBLIC, PRIVATE]) == [True, False]

    assert site.requests == 2 * [ROBOTS_TXT]


async def test_pause_after_own_failures_doubles_up_to_retry_max() -> None:
    clock, site = ManualClock(), site_that_fails(LOCAL)
    policy = Policy(retry_max=30, retry_initial=30)
    checker = checker_of(site, clock=clock, policy=policy)
    fetched_at = []

    for second in range(130):
        before = len(site.requests)
        await checker.can_fetch(AGENT, PUBLIC)
        fetched_at += [second] * (len(site.requests) - before)
        clock.advance(1)

    assert fetched_at == [0, 5, 15, 35, 65, 95, 125]


async def test_request_to_another_origin_shortens_the_pause() -> None:
    """A machine that works again used to refuse a site for up to an hour."""
    clock, site = ManualClock(), site_that_fails(LOCAL)
    site.serve(OTHER_ORIGIN, b"")
    checker = checker_of(site, clock=clock)
    for seconds in (5, 10, 20, 5):
        await checker.can_fetch(AGENT, PUBLIC)
        clock.advance(seconds)
    await checker.can_fetch(AGENT, OTHER_ORIGIN)
    site.serve(ORIGIN, b"")

    assert await checker.can_fetch(AGENT, PUBLIC)


async def test_refresh_during_a_pause_does_not_lengthen_it() -> None:
    clock, site = ManualClock(), site_that_fails(LOCAL)
    checker = checker_of(site, clock=clock)

    for _ in range(10):
        await checker.refresh(ORIGIN)

    verdict = await checker.check(AGENT, PUBLIC)
    assert verdict.fresh_until == clock.now() + 5
    assert site.requests == 10 * [ROBOTS_TXT]


async def test_wait_that_a_server_asks_for_holds_after_anothers_failure() -> None:
    """Responses are believed, whoever received them."""
    clock, store, site = ManualClock(), MemoryStore(), site_of()
    busy = site_of(status=429, retry_after="3600")
    await checker_of(busy, store=store, clock=clock).refresh(ORIGIN)
    await checker_of(site_that_fails(), store=store, clock=clock).refresh(ORIGIN)

    verdict = await checker_of(site, store=store, clock=clock).check(AGENT, PUBLIC)

    assert (verdict.allowed, verdict.status) == (False, 429)
    assert verdict.fresh_until == clock.now() + 3600
    assert site.requests == []


async def test_pause_does_not_keep_the_exception_alive() -> None:
    """With its frames, it took up 8 KB for each of 100,000 origins."""
    error = FetchFailedError("no file", kind=LOCAL)
    is_alive = weakref.ref(error)
    site = FakeSite()
    site.fail(ORIGIN, error)
    checker = checker_of(site)
    await checker.can_fetch(AGENT, PUBLIC)

    site.serve(ORIGIN, b"")
    del error
    gc.collect()

    assert is_alive() is None


async def test_own_failures_are_reported_but_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock, site = ManualClock(), FakeSite()
    events: list[CheckerEvent] = []
    checker = checker_of(site, clock=clock, on_event=events.append)
    urls = [f"https://{number}.example/" for number in range(20)]
    for url in urls:
        site.fail(url, FetchFailedError("[Errno 24] no file", kind=LOCAL))
    caplog.set_level(logging.WARNING)

    for url in urls:
        await checker.can_fetch(AGENT, url)
        clock.advance(6.1)

    fetched = [one for one in events if isinstance(one, RobotsTxtFetched)]
    assert [one.failure for one in fetched] == 20 * [LOCAL]
    warned = [record.getMessage() for record in caplog.records]
    assert warned == [
        f"https://{number}.example was not fetched, because this machine failed:"
        " FetchFailedError: [Errno 24] no file"
        for number in (0, 10)
    ]


class RedirectingSite:
    """Redirects `ORIGIN` elsewhere, where our own machine fails."""

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        del headers, max_bytes
        if url != ROBOTS_TXT:
            raise FetchFailedError("no file", kind=LOCAL)
        location = [("Location", f"{OTHER_ORIGIN}/robots.txt")]
        return FetchedResponse(status=301, headers=location, body=b"", is_decoded=True)


async def test_own_failure_after_a_redirect_tells_that_a_request_was_sent() -> None:
    """A gate must not give the turn for that request back as unused."""
    checker = RobotsChecker(user_agent=AGENT, client=RedirectingSite())
    origin = Origin.from_url(ORIGIN)

    flight = checker._renewals.begin(origin)
    await flight.result()

    assert isinstance(flight.interim, Outcome)
    assert len(flight.interim.redirects) == 1


async def test_request_to_an_origin_ends_its_pause() -> None:
    site = site_that_fails(LOCAL)
    checker = checker_of(site, policy=Policy(min_lifetime=0))
    await checker.can_fetch(AGENT, PUBLIC)
    site.serve(ORIGIN, b"", headers={"cache-control": "max-age=0"})
    await checker.refresh(ORIGIN)

    verdict = await checker.check(AGENT, PUBLIC)

    assert verdict.access is AccessResult.SUCCESSFUL
    assert len(site.requests) == 3


class SlowlyDeletingStore(StoreBehind):
    """Lets a fetch end after a deletion and before its caller knows of it."""

    def __init__(self, site: GatedSite) -> None:
        super().__init__()
        self._site = site

    async def delete(self, key: str) -> None:
        await super().delete(key)
        self._site.gate.set()
        await let_others_run()


async def test_copy_deleted_during_a_fetch_that_fails_is_not_stored_again() -> None:
    clock, site = ManualClock(), GatedSite()
    site.serve(ORIGIN, RULES)
    site.gate.set()
    checker = checker_of(site, clock=clock, store=SlowlyDeletingStore(site))
    await checker.refresh(ORIGIN)
    clock.advance(DAY)
    site.gate = anyio.Event()
    site.serve(ORIGIN, b"", status=503)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, AGENT, PUBLIC)
        await let_others_run()
        await checker.forget(ORIGIN)

    assert not await checker.can_fetch(AGENT, PUBLIC)


@pytest.mark.parametrize("kind", [LOCAL, FailureKind.CONNECT])
async def test_copy_forgotten_during_a_fetch_that_fails_is_not_used(
    kind: FailureKind,
) -> None:
    clock, site = ManualClock(), GatedSite()
    site.serve(ORIGIN, RULES)
    site.gate.set()
    checker = checker_of(site, clock=clock)
    await checker.refresh(ORIGIN)
    clock.advance(DAY)
    site.gate = anyio.Event()
    site.fail(ORIGIN, FetchFailedError("failed", kind=kind))
    allowed: list[bool] = []

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(add_answer, allowed, checker, PUBLIC)
        await let_others_run()
        await checker.forget(ORIGIN)
        site.gate.set()

    assert allowed == [False]
