"""What every ledger must do, in memory or for a fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from robotsgate.politeness._host_record import FIRST_BACK_OFF, HostState, Pace, TurnEnd
from robotsgate.politeness._ledger import Grant, Wait

from .builders import pace

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate.politeness._ledger import Ledger

HOST = "example.com"
ONE = pace(2.0)


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


async def wait_seconds(ledger: Ledger) -> float:
    """How long a page must wait."""
    answer = await ledger.start(HOST, ONE)
    assert isinstance(answer, Wait)
    return answer.seconds


class LedgerContract:
    """The tests; the fixtures `ledger` and `pass_time` say of what.

    Attributes:
        real_seconds: how much more may pass than what `pass_time` lets pass.
    """

    real_seconds = 0.0

    async def test_next_request_starts_when_the_delay_since_the_last_end_is_over(
        self, ledger: Ledger, pass_time: Callable[[float], None]
    ) -> None:
        grant = await granted(ledger)
        pass_time(10)
        await ledger.end(grant, TurnEnd.GOOD)
        pass_time(0.5)

        assert await wait_seconds(ledger) == pytest.approx(1.5, abs=self.real_seconds)
        pass_time(1.51)
        await granted(ledger)

    async def test_second_turn_waits_while_the_first_is_under_way(
        self, ledger: Ledger, pass_time: Callable[[float], None]
    ) -> None:
        await granted(ledger)
        pass_time(10)

        assert await wait_seconds(ledger) == pytest.approx(2.0, abs=self.real_seconds)

    async def test_several_turns_are_under_way_where_the_host_allows_it(
        self, ledger: Ledger, pass_time: Callable[[float], None]
    ) -> None:
        two = pace(2.0, max_at_once=2)

        for _ in range(2):
            await granted(ledger, pace=two)
            pass_time(2.01)

        assert isinstance(await ledger.start(HOST, two), Wait)

    async def test_hosts_do_not_wait_for_each_other(self, ledger: Ledger) -> None:
        await granted(ledger, "one.example")

        await granted(ledger, "two.example")

    async def test_turn_that_was_not_used_leaves_no_delay(self, ledger: Ledger) -> None:
        await ledger.end(await granted(ledger), TurnEnd.UNUSED)

        await granted(ledger)

    async def test_robots_txt_is_fetched_during_a_turn_and_spaces_the_next_one(
        self, ledger: Ledger, pass_time: Callable[[float], None]
    ) -> None:
        turn = await granted(ledger)
        pass_time(2.01)
        fetch = await granted(ledger, is_robots_txt=True)
        await ledger.end(turn, TurnEnd.UNUSED)
        pass_time(5)

        assert await wait_seconds(ledger) == pytest.approx(2.0, abs=self.real_seconds)
        await ledger.end(fetch, TurnEnd.GOOD)
        pass_time(2.01)
        await granted(ledger)

    async def test_incident_blocks_the_host_for_as_long_as_it_asks(
        self, ledger: Ledger
    ) -> None:
        grant = await granted(ledger)
        await ledger.end(grant, TurnEnd.INCIDENT, retry_after=500.0)

        seconds = await wait_seconds(ledger)

        assert 500 < seconds < 550, "jitter goes upwards only"

    async def test_turn_that_is_never_closed_ends_and_is_told_once(
        self, ledger: Ledger, pass_time: Callable[[float], None]
    ) -> None:
        await granted(ledger)
        pass_time(301)

        first = await ledger.start(HOST, ONE)
        pass_time(1.01)
        second = await granted(ledger)

        assert isinstance(first, Wait)
        assert first.seconds == pytest.approx(1.0, abs=self.real_seconds)
        assert first.overdue + second.overdue == 1

    @pytest.mark.parametrize(
        ("end", "seconds", "state", "numbers"),
        [
            pytest.param(None, 0, HostState.OPEN, (2.0, 1, 2.0), id="under way"),
            pytest.param(
                TurnEnd.GOOD, 0.5, HostState.OPEN, (2.0, 0, 1.5), id="delay pending"
            ),
            pytest.param(TurnEnd.GOOD, 50, HostState.OPEN, (2.0, 0, 0.0), id="ready"),
            pytest.param(
                TurnEnd.INCIDENT,
                FIRST_BACK_OFF + 10,
                HostState.PROBING,
                (4.0, 0, 0.0),
                id="block is over",
            ),
            pytest.param(
                TurnEnd.INCIDENT,
                10_000,
                HostState.OPEN,
                (2.0, 0, 0.0),
                id="incident is forgotten",
            ),
        ],
    )
    async def test_peek_tells_how_a_host_stands(
        self,
        *,
        ledger: Ledger,
        pass_time: Callable[[float], None],
        end: TurnEnd | None,
        seconds: float,
        state: HostState,
        numbers: tuple[float, int, float],
    ) -> None:
        grant = await granted(ledger)
        if end is not None:
            await ledger.end(grant, end)
        pass_time(seconds)

        status = ledger.peek(HOST, ONE)

        assert status.state is state
        assert (status.delay, status.under_way, status.wait_seconds) == pytest.approx(
            numbers, abs=self.real_seconds
        )

    async def test_fetch_of_robots_txt_is_under_way_too(self, ledger: Ledger) -> None:
        await granted(ledger, is_robots_txt=True)

        assert ledger.peek(HOST, ONE).under_way == 1

    async def test_closing_twice_does_nothing(self, ledger: Ledger) -> None:
        await ledger.aclose()
        await ledger.aclose()
