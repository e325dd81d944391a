"""Checkers with a real Valkey server: a fleet, and a server that fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from robotsgate import Policy, RobotsChecker
from robotsgate.stores.redis import RedisStore
from robotsgate.testing import ManualClock
from tests.checking.builders import (
    AGENT,
    ORIGIN,
    PRIVATE,
    RULES,
    GatedSite,
    checker_of,
    site_of,
)
from tests.stores.contracts import LATER

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.testing import FakeSite
    from tests.servers.valkey import Valkey

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    """redis-py runs on asyncio only."""
    return "asyncio"


# Far longer than anything here takes.
_TIMEOUT_SECONDS = 10.0

# The server drops keys by its own clock, which must not be later than the checkers'.
NOW = LATER


SITES = {f"http://{number}.example": number % 2 == 0 for number in range(6)}
"""Whether each site allows everything or nothing."""


def _many_sites() -> FakeSite:
    site = site_of()
    for origin, is_allowed in SITES.items():
        site.serve(origin, "User-agent: *\n" + ("" if is_allowed else "Disallow: /\n"))
    return site


async def _has_right_results(checker: RobotsChecker, *numbers: int) -> bool:
    """Whether `checker` gives the right results for the sites with these numbers."""
    origins = [list(SITES)[number] for number in numbers]
    answers = [await checker.can_fetch(AGENT, f"{origin}/x") for origin in origins]
    return answers == [SITES[origin] for origin in origins]


async def test_checker_uses_a_server_again_after_a_restart(
    own_valkey: Valkey,
) -> None:
    site = _many_sites()

    async with (
        RedisStore(own_valkey.url) as store,
        checker_of(site, store=store, clock=ManualClock(NOW)) as checker,
    ):
        before = await _has_right_results(checker, 0, 1)
        failures_before = checker.stats.store_failures
        own_valkey.stop()
        meanwhile = await _has_right_results(checker, 0, 1, 2, 3)
        failures_meanwhile = checker.stats.store_failures
        own_valkey.start()
        after = await _has_right_results(checker, 0, 1, 2, 3, 4, 5)
        failures_after = checker.stats.store_failures

    keys = own_valkey.ask("KEYS", "*")
    assert isinstance(keys, list)
    assert before
    assert meanwhile
    assert after
    assert len(site.requests) == 6
    assert failures_before == 0
    assert failures_meanwhile == failures_after > 0
    assert sorted(keys) == [f"robotsgate:http://{n}.example" for n in (4, 5)]


async def test_checker_stops_using_a_hanging_server_until_it_responds(
    own_valkey: Valkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, clock = _many_sites(), ManualClock(NOW)
    store = RedisStore(own_valkey.url)
    patient, impatient = (Policy(store_timeout=timeout) for timeout in (10.0, 0.5))

    async with (
        store,
        checker_of(site, store=store, policy=patient, clock=clock) as checker,
    ):
        before = await _has_right_results(checker, 0, 1)
        own_valkey.pause()
        monkeypatch.setattr(checker._entries, "_policy", impatient)
        meanwhile = await _has_right_results(checker, 0, 1, 2, 3)
        hung = checker.stats
        monkeypatch.setattr(checker._entries, "_policy", patient)
        own_valkey.resume()
        clock.advance(31)
        after = await _has_right_results(checker, 4, 5)
        ended = checker.stats

    keys = own_valkey.ask("KEYS", "robotsgate:http*")
    assert isinstance(keys, list)
    assert before
    assert meanwhile
    assert after
    assert hung.store_failures == 1
    assert hung.store_skips > 0
    assert (ended.store_failures, ended.store_skips) == (1, hung.store_skips)
    assert {f"robotsgate:http://{n}.example" for n in (4, 5)} <= set(keys)


async def test_two_workers_with_concurrent_lookups_make_one_request(
    own_valkey: Valkey,
) -> None:
    site, clock = GatedSite(), ManualClock(NOW)
    site.serve(ORIGIN, RULES)
    answers = []

    async def look_up(worker: RobotsChecker) -> None:
        answers.append(await worker.can_fetch(AGENT, PRIVATE))

    async with (
        RedisStore(own_valkey.url) as store,
        RedisStore(own_valkey.url) as other_store,
        checker_of(site, store=store, clock=clock) as one,
        checker_of(site, store=other_store, clock=clock) as other,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(look_up, one)
        await _until(lambda: site.under_way == 1)
        tasks.start_soon(look_up, other)
        await _until(lambda: other.stats.lease_waits > 0)
        site.gate.set()
        while len(answers) < 2:
            await clock.pass_time(1)

    assert answers == [False, False]
    assert len(site.requests) == 1
    assert [one.stats.fetches, other.stats.fetches] == [1, 0]
    assert own_valkey.ask("EXISTS", f"robotsgate:lease:{ORIGIN}") == 0


async def _until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(_TIMEOUT_SECONDS):
        while not condition():
            await anyio.lowlevel.checkpoint()
