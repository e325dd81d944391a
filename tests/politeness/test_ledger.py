from __future__ import annotations

import re

import pytest

from robotsgate.politeness._ledger import (
    Grant,
    Ledger,
    LedgerStatus,
    LocalLedger,
    Wait,
)
from robotsgate.politeness._schedule import (
    FIRST_BACK_OFF,
    HostState,
    Pace,
    TurnEnd,
)
from robotsgate.testing import ManualClock

from .builders import pace

pytestmark = pytest.mark.anyio

HOST = "example.com"
ONE = pace(2.0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def ledger(clock: ManualClock) -> LocalLedger:
    return LocalLedger(clock=clock, max_hosts=4)


async def granted(
    ledger: Ledger,
    host: str = HOST,
    *,
    pace: Pace = ONE,
    is_robots_txt: bool = False,
) -> Grant:
    """Leave that must come at once."""
    answer = await ledger.start(host, pace, is_robots_txt=is_robots_txt)
    assert isinstance(answer, Grant)
    return answer


async def ask(ledger: Ledger, host: str = HOST, *, pace: Pace = ONE) -> None:
    """One request that takes no time."""
    await ledger.end(await granted(ledger, host, pace=pace), TurnEnd.GOOD)


async def test_next_request_starts_when_the_delay_since_the_last_end_is_over(
    ledger: LocalLedger, clock: ManualClock
) -> None:
    grant = await granted(ledger)
    clock.advance(10)
    await ledger.end(grant, TurnEnd.GOOD)
    clock.advance(0.5)

    assert await ledger.start(HOST, ONE) == Wait(seconds=1.5, overdue=0)
    clock.advance(1.5)
    await granted(ledger)


async def test_second_turn_waits_while_the_first_is_under_way(
    ledger: LocalLedger, clock: ManualClock
) -> None:
    await granted(ledger)
    clock.advance(10)

    assert await ledger.start(HOST, ONE) == Wait(seconds=2.0, overdue=0)


async def test_hosts_do_not_wait_for_each_other(ledger: LocalLedger) -> None:
    await granted(ledger, "one.example")

    await granted(ledger, "two.example")


async def test_robots_txt_is_fetched_during_a_turn_and_spaces_the_next_one(
    ledger: LocalLedger, clock: ManualClock
) -> None:
    turn = await granted(ledger)
    clock.advance(2)
    fetch = await granted(ledger, is_robots_txt=True)
    await ledger.end(turn, TurnEnd.UNUSED)
    clock.advance(5)

    assert await ledger.start(HOST, ONE) == Wait(seconds=2.0, overdue=0)
    await ledger.end(fetch, TurnEnd.GOOD)
    clock.advance(2)
    await granted(ledger)


async def test_incident_blocks_the_host_for_as_long_as_it_asks(
    ledger: LocalLedger,
) -> None:
    await ledger.end(await granted(ledger), TurnEnd.INCIDENT, retry_after=500.0)

    answer = await ledger.start(HOST, ONE)

    assert isinstance(answer, Wait)
    assert 500 < answer.seconds < 550, "jitter goes upwards only"


async def test_hosts_that_fail_together_are_not_asked_together(
    ledger: LocalLedger,
) -> None:
    hosts = ["one.example", "two.example", "three.example"]
    for host in hosts:
        await ledger.end(await granted(ledger, host), TurnEnd.INCIDENT)

    waits = {ledger.peek(host, ONE).wait_seconds for host in hosts}

    assert len(waits) == 3
    assert all(FIRST_BACK_OFF < wait < 1.1 * FIRST_BACK_OFF for wait in waits)


async def test_turn_that_is_never_closed_ends_and_is_told_once(
    ledger: LocalLedger, clock: ManualClock
) -> None:
    await granted(ledger)
    clock.advance(301)

    assert await ledger.start(HOST, ONE) == Wait(seconds=1.0, overdue=1)
    clock.advance(1)
    assert (await granted(ledger)).overdue == 0


async def test_late_end_of_a_forgotten_host_spaces_the_next_request(
    ledger: LocalLedger, clock: ManualClock
) -> None:
    grant = await granted(ledger)
    clock.advance(1_000_000)
    for number in range(4):
        await ask(ledger, f"{number}.example")

    await ledger.end(grant, TurnEnd.INCIDENT, retry_after=100.0)

    assert ledger.peek(HOST, ONE).state is HostState.BLOCKED


@pytest.mark.parametrize(
    ("end", "seconds", "expected"),
    [
        pytest.param(
            None,
            0,
            LedgerStatus(
                state=HostState.OPEN, delay=2.0, under_way=1, wait_seconds=2.0
            ),
            id="turn under way",
        ),
        pytest.param(
            TurnEnd.GOOD,
            0.5,
            LedgerStatus(
                state=HostState.OPEN, delay=2.0, under_way=0, wait_seconds=1.5
            ),
            id="delay pending",
        ),
        pytest.param(
            TurnEnd.GOOD,
            50,
            LedgerStatus(
                state=HostState.OPEN, delay=2.0, under_way=0, wait_seconds=0.0
            ),
            id="ready",
        ),
        pytest.param(
            TurnEnd.INCIDENT,
            70,
            LedgerStatus(
                state=HostState.PROBING, delay=4.0, under_way=0, wait_seconds=0.0
            ),
            id="block is over",
        ),
        pytest.param(
            TurnEnd.INCIDENT,
            10_000,
            LedgerStatus(
                state=HostState.OPEN, delay=2.0, under_way=0, wait_seconds=0.0
            ),
            id="incident is forgotten",
        ),
    ],
)
async def test_peek_tells_how_a_host_stands(
    ledger: LocalLedger,
    clock: ManualClock,
    end: TurnEnd | None,
    seconds: float,
    expected: LedgerStatus,
) -> None:
    grant = await granted(ledger)
    if end is not None:
        await ledger.end(grant, end)
    clock.advance(seconds)

    assert ledger.peek(HOST, ONE) == expected


async def test_fetch_of_robots_txt_is_under_way_too(ledger: LocalLedger) -> None:
    await granted(ledger, is_robots_txt=True)

    assert ledger.peek(HOST, ONE).under_way == 1


async def test_clock_that_is_set_changes_no_wait(
    ledger: LocalLedger, clock: ManualClock
) -> None:
    await ask(ledger)

    clock.set(clock.now() - 86_400)

    assert await ledger.start(HOST, ONE) == Wait(seconds=2.0, overdue=0)


async def test_hosts_that_no_longer_matter_make_room(clock: ManualClock) -> None:
    ledger = LocalLedger(clock=clock)
    for number in range(100):
        await ask(ledger, f"{number}.old.example")
    clock.advance(ONE.max_delay)

    for number in range(34):
        await ask(ledger, f"{number}.new.example")

    assert len(ledger._records) == 34
    assert len(ledger._round) == 34


async def test_idle_host_is_forgotten_over_the_bound_unless_it_is_blocked(
    ledger: LocalLedger,
) -> None:
    await ledger.end(await granted(ledger, "blocked.example"), TurnEnd.INCIDENT)
    held = [await granted(ledger, "busy.example")]
    held.append(await granted(ledger, "robots.example", is_robots_txt=True))

    for number in range(20):
        await ask(ledger, f"{number}.example")

    assert len(ledger._records) == 4
    states = {host: ledger.peek(host, ONE) for host in ledger._records}
    assert states["blocked.example"].state is HostState.BLOCKED
    assert states["busy.example"].under_way == 1
    assert states["robots.example"].under_way == 1


async def test_hosts_with_a_turn_under_way_are_kept_over_the_bound(
    ledger: LocalLedger,
) -> None:
    hosts = [f"{number}.example" for number in range(20)]
    for host in hosts:
        await granted(ledger, host)

    assert [ledger.peek(host, ONE).under_way for host in hosts] == [1] * 20


@pytest.mark.parametrize("max_hosts", [0, -1])
async def test_bound_below_one_is_an_error(max_hosts: int) -> None:
    with pytest.raises(ValueError, match=re.escape(f"1 or more, got {max_hosts}")):
        LocalLedger(max_hosts=max_hosts)


async def test_closing_twice_does_nothing(ledger: LocalLedger) -> None:
    await ledger.aclose()
    await ledger.aclose()
