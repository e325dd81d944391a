from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from robotsgate.politeness._host_record import HostState, TurnEnd
from robotsgate.politeness._ledger import LocalLedger, Wait
from robotsgate.testing import ManualClock

from .contract import HOST, ONE, LedgerContract, get_grant, request_page

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def ledger(clock: ManualClock) -> LocalLedger:
    return LocalLedger(clock=clock, max_hosts=4)


class TestLocalLedger(LedgerContract):
    @pytest.fixture
    def pass_time(self, clock: ManualClock) -> Callable[[float], None]:
        return clock.advance


async def test_late_incident_of_a_forgotten_host_still_blocks_it(
    ledger: LocalLedger, clock: ManualClock
) -> None:
    grant = await get_grant(ledger)
    clock.advance(1_000_000)
    for number in range(4):
        await request_page(ledger, f"{number}.example")

    await ledger.end(grant, TurnEnd.INCIDENT, retry_after=100.0)

    assert ledger.peek(HOST, ONE).state is HostState.BLOCKED


async def test_setting_the_clock_does_not_change_waits(
    ledger: LocalLedger, clock: ManualClock
) -> None:
    await request_page(ledger)

    clock.set(clock.now() - 86_400)

    assert await ledger.start(HOST, ONE) == Wait(seconds=2.0, overdue=0)


async def test_obsolete_hosts_are_dropped_as_others_arrive(clock: ManualClock) -> None:
    ledger = LocalLedger(clock=clock)
    for number in range(100):
        await request_page(ledger, f"{number}.old.example")
    clock.advance(ONE.max_delay)

    for number in range(34):
        await request_page(ledger, f"{number}.new.example")

    assert len(ledger._records) == 34
    assert len(ledger._round) == 34


async def test_only_idle_unblocked_hosts_are_evicted(ledger: LocalLedger) -> None:
    await ledger.end(await get_grant(ledger, "blocked.example"), TurnEnd.INCIDENT)
    await get_grant(ledger, "busy.example")
    await get_grant(ledger, "robots.example", is_robots_txt=True)

    for number in range(20):
        await request_page(ledger, f"{number}.example")

    assert len(ledger._records) == 4
    states = {host: ledger.peek(host, ONE) for host in ledger._records}
    assert states["blocked.example"].state is HostState.BLOCKED
    assert states["busy.example"].under_way == 1
    assert states["robots.example"].under_way == 1


@pytest.mark.parametrize("end", [TurnEnd.INCIDENT, TurnEnd.GOOD])
async def test_hosts_that_asked_to_wait_are_evicted_last(
    clock: ManualClock, end: TurnEnd
) -> None:
    """They used to survive only if considered along with other hosts."""
    ledger = LocalLedger(clock=clock, max_hosts=100)
    held_back = [f"{number}.busy.example" for number in range(90)]
    for host in held_back:
        await ledger.end(await get_grant(ledger, host), end, retry_after=99.0)
        for number in range(10):
            await request_page(ledger, f"{number}.of.{host}")

    waits = [ledger.peek(host, ONE).wait_seconds for host in held_back]

    assert min(waits) >= 99
    assert len(ledger._records) == 100


@pytest.mark.parametrize("max_hosts", [0, -1])
async def test_max_hosts_below_one_raises(max_hosts: int) -> None:
    with pytest.raises(ValueError, match=re.escape(f"1 or more, got {max_hosts}")):
        LocalLedger(max_hosts=max_hosts)
