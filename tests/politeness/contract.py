"""The tests that every ledger must pass, whether in memory or for a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from robotsgate.caching._freshness import with_jitter
from robotsgate.politeness._host_record import FIRST_BACK_OFF, HostState, Pace, TurnEnd
from robotsgate.politeness._ledger import Grant, Wait
from tests.tables import cases

from .builders import pace

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.politeness._ledger import Ledger

HOST = "example.com"
BACK_OFF = with_jitter(FIRST_BACK_OFF, HOST)
ONE = pace(2.0)


async def get_grant(
    ledger: Ledger,
    host: str = HOST,
    *,
    pace: Pace = ONE,
    is_robots_txt: bool = False,
) -> Grant:
    """Start a request that the ledger must grant immediately."""
    answer = await ledger.start(host, pace, is_robots_txt=is_robots_txt)
    assert isinstance(answer, Grant)
    return answer


async def request_page(ledger: Ledger, host: str = HOST, *, pace: Pace = ONE) -> None:
    """Make one request that takes no time."""
    await ledger.end(await get_grant(ledger, host, pace=pace), TurnEnd.GOOD)


async def wait_seconds(ledger: Ledger) -> float:
    """How long the ledger makes a page wait."""
    answer = await ledger.start(HOST, ONE)
    assert isinstance(answer, Wait)
    return answer.seconds


class LedgerContract:
    """The tests; subclasses provide the fixtures `ledger` and `pass_time`.

    Attributes:
        real_seconds: how much more time than `pass_time` specifies may pass.
    """

    real_seconds = 0.0

    async def test_second_turn_waits_while_the_first_is_open(
        self, ledger: Ledger, pass_time: Callable[[float], None]
    ) -> None:
        await get_grant(ledger)
        pass_time(10)

        assert await wait_seconds(ledger) == pytest.approx(2.0, abs=self.real_seconds)

    async def test_hosts_do_not_wait_for_each_other(self, ledger: Ledger) -> None:
        await get_grant(ledger, "one.example")

        await get_grant(ledger, "two.example")

    async def test_robots_txt_fetch_starts_during_a_turn_and_delays_the_next_one(
        self, ledger: Ledger, pass_time: Callable[[float], None]
    ) -> None:
        turn = await get_grant(ledger)
        pass_time(2.01)
        fetch = await get_grant(ledger, is_robots_txt=True)
        await ledger.end(turn, TurnEnd.UNUSED)
        pass_time(5)

        assert await wait_seconds(ledger) == pytest.approx(2.0, abs=self.real_seconds)
        await ledger.end(fetch, TurnEnd.GOOD)
        pass_time(2.01)
        await get_grant(ledger)

    @cases("end retry_after seconds state", {
        "an incident": (TurnEnd.INCIDENT, 500.0, 500, HostState.BLOCKED),
        "an incident without it": (TurnEnd.INCIDENT, None, BACK_OFF, HostState.BLOCKED),
        "another response": (TurnEnd.GOOD, 500.0, 500, HostState.OPEN),
    })  # fmt: skip
    async def test_host_rests_for_the_retry_after_of(
        self,
        ledger: Ledger,
        end: TurnEnd,
        retry_after: float | None,
        seconds: float,
        state: HostState,
    ) -> None:
        grant = await get_grant(ledger)
        await ledger.end(grant, end, retry_after=retry_after)

        waits = await wait_seconds(ledger)

        assert waits == pytest.approx(seconds, abs=self.real_seconds)
        assert ledger.peek(HOST, ONE).state is state

    @pytest.mark.parametrize("end", [TurnEnd.INCIDENT, TurnEnd.FAILURE])
    async def test_forgotten_host_only_waits_for_its_delay(
        self, ledger: Ledger, end: TurnEnd
    ) -> None:
        await ledger.end(await get_grant(ledger), end, retry_after=500.0)

        await ledger.forget(HOST, ONE)
        await ledger.forget("unknown.example", ONE)

        assert await wait_seconds(ledger) == pytest.approx(2.0, abs=self.real_seconds)
        assert ledger.peek(HOST, ONE).state is HostState.OPEN

    async def test_turn_that_is_never_closed_ends_and_is_reported_once(
        self, ledger: Ledger, pass_time: Callable[[float], None]
    ) -> None:
        await get_grant(ledger)
        pass_time(301)

        first = await ledger.start(HOST, ONE)
        pass_time(1.01)
        second = await get_grant(ledger)

        assert isinstance(first, Wait)
        assert first.seconds == pytest.approx(1.0, abs=self.real_seconds)
        assert first.overdue + second.overdue == 1

    @cases("end seconds state numbers", {
        "turn is open": (None, 0, HostState.OPEN, (2.0, 1, 2.0)),
        "delay pending": (TurnEnd.GOOD, 0.5, HostState.OPEN, (2.0, 0, 1.5)),
        "ready": (TurnEnd.GOOD, 50, HostState.OPEN, (2.0, 0, 0.0)),
        "block is over": (
            TurnEnd.INCIDENT, FIRST_BACK_OFF + 10, HostState.PROBING, (4.0, 0, 0.0),
        ),
        "incident is forgotten": (
            TurnEnd.INCIDENT, 10_000, HostState.OPEN, (2.0, 0, 0.0),
        ),
    })  # fmt: skip
    async def test_peek_returns_the_state_of_a_host(
        self,
        *,
        ledger: Ledger,
        pass_time: Callable[[float], None],
        end: TurnEnd | None,
        seconds: float,
        state: HostState,
        numbers: tuple[float, int, float],
    ) -> None:
        grant = await get_grant(ledger)
        if end is not None:
            await ledger.end(grant, end)
        pass_time(seconds)

        status = ledger.peek(HOST, ONE)

        assert status.state is state
        assert (status.delay, status.under_way, status.wait_seconds) == pytest.approx(
            numbers, abs=self.real_seconds
        )

    async def test_closing_twice_is_harmless(self, ledger: Ledger) -> None:
        await ledger.aclose()
        await ledger.aclose()
