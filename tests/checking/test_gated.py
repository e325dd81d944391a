"""Fetches that wait for the turn of their host, and those who ask meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import pytest

from robotsgate import (
    DisallowedError,
    FailureKind,
    MemoryStore,
    Reason,
    TurnNotInTimeError,
)
from robotsgate.checking._flights import until_set
from robotsgate.checking._question import Agent
from robotsgate.testing import FakeSite, ManualClock

from .builders import (
    AGENT,
    DAY,
    NOW,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    LeaseStore,
    checker_of,
    let_others_run,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from robotsgate import Origin, RobotsChecker
    from robotsgate.checking._gated import GatedOrigins, RenewalResult

pytestmark = pytest.mark.anyio


class Turns:
    """Gives a turn once its gate is open; until then, only to those with patience."""

    def __init__(self, clock: ManualClock, *, held: str = ORIGIN) -> None:
        self.gate = anyio.Event()
        self._clock = clock
        self._held = held

    async def in_turn(
        self,
        origin: Origin,
        fetch: Callable[[], Awaitable[RenewalResult]],
        *,
        patience: float,
    ) -> RenewalResult:
        is_free = str(origin) != self._held
        if not (is_free or await self._clock.wait(patience, event=self.gate)):
            raise TurnNotInTimeError("late", ready_at=self.ready_at(origin))
        return await fetch()

    def ready_at(self, origin: Origin) -> float:
        del origin
        return self._clock.now() + 600


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def turns(clock: ManualClock) -> Turns:
    return Turns(clock)


def gated(checker: RobotsChecker, turns: Turns) -> GatedOrigins:
    origins = checker.gated_origins(Agent.of(AGENT))
    origins.open(turns)
    return origins


async def leave(origins: GatedOrigins, url: str = PUBLIC) -> None:
    """Ask as a gate does, with all the patience that there is."""
    await origins.leave(origins.question(url), wait=until_set, is_counted=False)


async def test_fetch_that_waits_for_its_turn_holds_no_lease_and_no_place(
    turns: Turns, clock: ManualClock
) -> None:
    store, site = LeaseStore(), FakeSite()
    checker = checker_of(site, store=store, clock=clock, max_concurrent_fetches=1)
    gated(checker, turns)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, AGENT, PUBLIC)
        await let_others_run()
        waiting = (list(store.owners), list(site.requests))
        await checker.can_fetch(AGENT, OTHER_ORIGIN)
        turns.gate.set()

    assert waiting == ([], [])
    assert site.requests == [f"{OTHER_ORIGIN}/robots.txt", ROBOTS_TXT]


async def test_look_into_the_store_waits_for_no_turn(
    turns: Turns, clock: ManualClock
) -> None:
    store = MemoryStore()
    await checker_of(site_of(), store=store, clock=clock).can_fetch(AGENT, PUBLIC)
    checker = checker_of(FakeSite(), store=store, clock=clock)
    gated(checker, turns)

    assert await checker.can_fetch(AGENT, PRIVATE) is False


async def test_what_another_process_fetches_during_the_wait_is_not_fetched_again(
    turns: Turns, clock: ManualClock
) -> None:
    store, site = MemoryStore(), FakeSite()
    checker = checker_of(site, store=store, clock=clock)
    gated(checker, turns)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, AGENT, PUBLIC)
        await let_others_run()
        await checker_of(site_of(), store=store, clock=clock).can_fetch(AGENT, PUBLIC)
        turns.gate.set()

    assert site.requests == []
    assert await checker.can_fetch(AGENT, PRIVATE) is False


async def test_question_whose_turn_comes_after_the_deadline_makes_no_attempt(
    turns: Turns, clock: ManualClock
) -> None:
    site = site_of()
    checker = checker_of(site, clock=clock)
    gated(checker, turns)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, AGENT, PUBLIC)
        await clock.pass_time(30)
    verdict = await checker.check(AGENT, PUBLIC)

    assert site.requests == []
    assert verdict.reason is Reason.UNREACHABLE
    assert verdict.fresh_until == NOW + 30 + 600
    assert verdict.error == "the host has its next turn in 600 s or later"
    standing = checker._live.by_origin[ORIGIN]
    assert standing.entry.outage is not None
    assert standing.entry.outage.attempts == 0
    assert standing.entry.outage.failure is FailureKind.TURN


async def test_refresh_whose_turn_comes_too_late_leaves_the_answer_in_force(
    turns: Turns, clock: ManualClock
) -> None:
    site = site_of()
    checker = checker_of(site, clock=clock)
    await checker.can_fetch(AGENT, PUBLIC)
    gated(checker, turns)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.refresh, PUBLIC)
        await clock.pass_time(30)

    assert await checker.can_fetch(AGENT, PUBLIC) is True
    assert site.requests == [ROBOTS_TXT]


async def test_stale_copy_serves_those_who_do_not_wait(
    turns: Turns, clock: ManualClock
) -> None:
    checker = checker_of(site_of(), clock=clock)
    await checker.can_fetch(AGENT, PUBLIC)
    origins = gated(checker, turns)
    clock.advance(DAY)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, AGENT, PUBLIC)
        await clock.pass_time(30)

    assert (await checker.check(AGENT, PUBLIC)).is_stale
    assert origins.leave_at_once(PUBLIC) is None, "a gate waits for the fetch"


async def test_gate_waits_for_the_fetch_that_others_do_not_wait_for(
    turns: Turns, clock: ManualClock
) -> None:
    site = site_of()
    checker = checker_of(site, clock=clock)
    origins = gated(checker, turns)
    answers: list[bool] = []

    async def ask_without_gate() -> None:
        answers.append(await checker.can_fetch(AGENT, PUBLIC))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(leave, origins)
        tasks.start_soon(ask_without_gate)
        await clock.pass_time(30)
        early = list(answers)
        await clock.pass_time(600)
        await ask_without_gate()  # the wait that is under way answers at once
        turns.gate.set()

    assert (early, answers) == ([False], [False, False])
    assert site.requests == [ROBOTS_TXT]
    assert await checker.can_fetch(AGENT, PUBLIC) is True


async def test_gate_begins_the_fetch_that_was_put_off(
    turns: Turns, clock: ManualClock
) -> None:
    site = site_of()
    checker = checker_of(site, clock=clock)
    origins = gated(checker, turns)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.can_fetch, AGENT, PUBLIC)
        await clock.pass_time(30)
    turns.gate.set()

    await leave(origins)

    assert site.requests == [ROBOTS_TXT]


async def test_nothing_known_before_it_is_forgotten_is_in_force_while_the_turn_is_late(
    turns: Turns, clock: ManualClock
) -> None:
    checker = checker_of(site_of(), clock=clock)
    await checker.can_fetch(AGENT, PUBLIC)
    gated(checker, turns)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(checker.refresh, PUBLIC)
        await let_others_run()
        await checker.forget(PUBLIC)
        await clock.pass_time(30)

    assert await checker.can_fetch(AGENT, PUBLIC) is False


async def test_refused_url_is_counted_once(turns: Turns, clock: ManualClock) -> None:
    checker = checker_of(site_of(), clock=clock)
    await checker.can_fetch(AGENT, PUBLIC)
    origins = gated(checker, turns)

    is_counted = origins.leave_at_once(PRIVATE) is False
    with pytest.raises(DisallowedError):
        await origins.leave(origins.question(PRIVATE), wait=None, is_counted=is_counted)

    assert checker.stats.disallowed == {Reason.DISALLOWED_BY_RULE: 1}


async def test_caller_without_patience_begins_the_fetch_and_leaves_it(
    clock: ManualClock,
) -> None:
    site = site_of()
    checker = checker_of(site, clock=clock)
    origins = gated(checker, Turns(clock, held=OTHER_ORIGIN))

    question = origins.question(PUBLIC)
    with pytest.raises(TimeoutError):
        await origins.leave(question, wait=None, is_counted=False)
    await let_others_run()

    assert await origins.leave(question, wait=None, is_counted=False)


async def test_one_gate_at_a_time_has_the_fetches_of_a_checker(
    turns: Turns, clock: ManualClock
) -> None:
    checker = checker_of(site_of(), clock=clock)
    first = gated(checker, turns)
    with pytest.raises(RuntimeError, match="expected one open gate"):
        gated(checker, turns)

    first.close()

    gated(checker, Turns(clock, held=OTHER_ORIGIN))
    first.close()
    assert checker._renewals.turns is not None, "the gate of another"
