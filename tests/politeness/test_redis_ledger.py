"""The ledger of a fleet, on a real Valkey server."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from coredis import Redis, RedisCluster, Sentinel
from coredis.connection import TCPLocation

from robotsgate import HostRecordReplaced, LedgerFailed, LedgerReturned, StoreError
from robotsgate.politeness import redis_ledger
from robotsgate.politeness._host_record import TurnEnd
from robotsgate.politeness._ledger import Grant, Wait
from robotsgate.politeness.redis_ledger import RedisLedger
from robotsgate.testing import ManualClock
from tests.cancellation import cancelled_at
from tests.servers.valkey import running_valkey
from tests.servers.valkey_cluster import HOST as NODE
from tests.servers.valkey_cluster import running_cluster
from tests.servers.valkey_sentinel import NAME, running_sentinel
from tests.tables import cases

from .builders import pace
from .contract import HOST, ONE, LedgerContract, ask, granted, wait_seconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from robotsgate import LedgerEvent
    from robotsgate.politeness._host_record import Pace
    from tests.servers.valkey import Valkey

pytestmark = pytest.mark.anyio

_NUMBERS = itertools.count()

# Far more than anything here takes.
_PATIENCE_SECONDS = 10.0


class Fleet:
    """Processes on one server, whose time passes when the test says so."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.clock = ManualClock()
        self.prefix = f"test{next(_NUMBERS)}:"
        self.events: list[LedgerEvent] = []

    def ledger(self, **options: Any) -> RedisLedger:  # noqa: ANN401 (those of RedisLedger)
        usual = {"workers": 1, "prefix": self.prefix, "clock": self.clock}
        return RedisLedger(
            self.valkey.url, on_event=self.events.append, **{**usual, **options}
        )

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for key in self.listed_keys():
            left = self.valkey.ask("PTTL", key)
            assert isinstance(left, int)
            self.valkey.ask("PEXPIRE", key, left - int(seconds * 1_000))

    async def returned(self) -> None:
        """Once a process that was alone is back in the fleet."""
        with anyio.fail_after(_PATIENCE_SECONDS):
            while not isinstance(self.events[-1], LedgerReturned):
                await self.clock.pass_time(1.0)

    def listed_keys(self) -> list[object]:
        keys = self.valkey.ask("KEYS", f"{self.prefix}*")
        assert isinstance(keys, list)
        return keys


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is not a server that hangs."""
    monkeypatch.setattr(redis_ledger, "_ANSWER_SECONDS", _PATIENCE_SECONDS)


@pytest.fixture
def fleet(valkey: Valkey) -> Fleet:
    return Fleet(valkey)


@pytest.fixture
def own_fleet(own_valkey: Valkey) -> Fleet:
    """On a server to pause and to kill."""
    return Fleet(own_valkey)


class TestRedisLedger(LedgerContract):
    real_seconds = 1.0

    @pytest.fixture
    async def ledger(self, fleet: Fleet) -> AsyncIterator[RedisLedger]:
        """Opened in one task, and closed in another."""
        ledger = fleet.ledger()
        async with anyio.create_task_group() as opening:
            opening.start_soon(ledger.__aenter__)
        yield ledger
        async with anyio.create_task_group() as closing:
            closing.start_soon(ledger.aclose)

    @pytest.fixture
    def pass_time(self, fleet: Fleet) -> Callable[[float], None]:
        return fleet.pass_time


class TestFleet:
    async def test_turn_of_one_process_holds_up_the_others(self, fleet: Fleet) -> None:
        async with fleet.ledger() as one, fleet.ledger() as other:
            grant = await granted(one)
            fleet.pass_time(10)
            during = await wait_seconds(other)
            await one.end(grant, TurnEnd.GOOD)
            after = await wait_seconds(other)
            fleet.pass_time(2.01)
            await granted(other)

        assert (during, after) == pytest.approx((2.0, 2.0), abs=1.0)

    async def test_incident_of_one_process_blocks_the_host_for_the_others(
        self, fleet: Fleet
    ) -> None:
        async with fleet.ledger() as one, fleet.ledger() as other:
            grant = await granted(one)
            await one.end(grant, TurnEnd.INCIDENT, retry_after=500.0)

            assert 490 < await wait_seconds(other) < 550
            assert 490 < other.peek(HOST, ONE).wait_seconds < 550

    async def test_process_that_dies_holds_its_turn_until_it_is_overdue(
        self, fleet: Fleet
    ) -> None:
        short = pace(2.0, max_turn_seconds=5.0)
        async with fleet.ledger() as victim:
            await granted(victim, pace=short)

        async with fleet.ledger() as other:
            fleet.pass_time(4.0)
            first = await other.start(HOST, short)
            fleet.pass_time(3.01)
            second = await granted(other, pace=short)

        assert isinstance(first, Wait)
        assert second.overdue == 1

    async def test_every_key_ends_by_itself(self, fleet: Fleet) -> None:
        async with fleet.ledger() as one, fleet.ledger() as other:
            await granted(one, "busy.example")
            await ask(one, "idle.example")
            await one.end(await granted(one), TurnEnd.INCIDENT, retry_after=86_400.0)
            await wait_seconds(other)

        keys = fleet.listed_keys()
        lives = [fleet.valkey.ask("PTTL", key) for key in keys]
        assert len(lives) == 3
        assert all(isinstance(life, int) and life > 0 for life in lives)

    async def test_user_needs_few_rights_and_not_the_time_of_the_server(
        self, own_fleet: Fleet
    ) -> None:
        own_fleet.valkey.ask(
            *("ACL", "SETUSER", "crawler", "on", ">secret", "~robotsgate:turn:*"),
            *("-@all", "+evalsha", "+eval", "+get", "+set", "+pttl"),
        )
        url = own_fleet.valkey.url.replace("//", "//crawler:secret@")

        async with RedisLedger(
            url, workers=1, on_event=own_fleet.events.append
        ) as ledger:
            await ask(ledger)

        assert own_fleet.events == []

    @pytest.mark.slow
    async def test_cluster_keeps_each_host_at_one_node(self) -> None:
        events: list[LedgerEvent] = []
        with running_cluster() as (first, *_):

            def client() -> RedisCluster[bytes]:
                return RedisCluster(NODE, first.port, verify_version=False)

            async with RedisLedger(client, workers=1, on_event=events.append) as ledger:
                for number in range(30):
                    await ask(ledger, f"{number}.example")

        assert events == []

    @pytest.mark.slow
    async def test_replica_that_takes_over_knows_which_hosts_are_blocked(self) -> None:
        events: list[LedgerEvent] = []
        with running_sentinel() as (primary, replica, server):
            async with Sentinel([TCPLocation(NODE, server.port)]) as sentinel:

                def client() -> Redis[bytes]:
                    return sentinel.primary_for(NAME)

                async with RedisLedger(
                    client, workers=1, on_event=events.append
                ) as ledger:
                    await ledger.end(
                        await granted(ledger), TurnEnd.INCIDENT, retry_after=500.0
                    )
                    primary.ask("WAIT", 1, 0)
                    primary.kill()
                    await ask(ledger, "another.example")
                    with anyio.fail_after(3 * _PATIENCE_SECONDS):
                        while not isinstance(events[-1], LedgerReturned):
                            await anyio.lowlevel.checkpoint()
                async with RedisLedger(client, workers=1) as other:
                    seconds = await wait_seconds(other)

            assert "role:master" in str(replica.ask("INFO", "replication"))
        assert isinstance(events[0], LedgerFailed)
        assert 450 < seconds < 550


_NUMBERS_OF_A_RECORD = "1 2 3 4 5 6 7 8 9 10 11 12"


class TestUnreadableRecord:
    @cases("command value", {
        "wrong type": ("RPUSH", "a"),
        "foreign text": ("SET", "a b"),
        "empty": ("SET", ""),
        "too short": ("SET", "1 2 3"),
        "fewer turns than it says": ("SET", f"{_NUMBERS_OF_A_RECORD} 2 1"),
        "half a place in the queue": ("SET", f"{_NUMBERS_OF_A_RECORD} 0 1"),
        "no number": ("SET", f"{_NUMBERS_OF_A_RECORD} nan"),
        "infinite": ("SET", f"{_NUMBERS_OF_A_RECORD} 0 1 inf"),
        "minus infinity in each place": ("SET", "-inf " * 12 + "0"),
        "no life of a key": ("SET", "9e99 " * 12 + "0"),
        "a far future": ("SET", "4e9 " * 12 + "0"),
        "hexadecimal": ("SET", "0x10 " * 12 + "0"),
        "more turns than Lua unpacks": ("SET", "1 " * 12 + "9000 " + "1 " * 9_000),
        "numbers that make sense": ("SET", f"{_NUMBERS_OF_A_RECORD} 0"),
        "another hash": ("SET", f"{'0' * 40} {_NUMBERS_OF_A_RECORD} 0"),
    })  # fmt: skip
    async def test_unreadable_record_is_replaced_and_concerns_its_host_alone(
        self, fleet: Fleet, command: str, value: str
    ) -> None:
        """The process sent its end again and again, and stayed alone for good."""
        key = f"{fleet.prefix}{{{HOST}}}"
        async with fleet.ledger() as one, fleet.ledger() as other:
            grant = await granted(one)
            for needs_record in (
                lambda: one.end(grant, TurnEnd.GOOD),
                lambda: wait_seconds(other),
            ):
                fleet.valkey.ask("DEL", key)
                fleet.valkey.ask(command, key, value)
                await needs_record()
            await ask(one, "another.example")
            fleet.pass_time(2.01)
            await granted(other)

        assert fleet.events == [HostRecordReplaced(host=HOST)] * 2
        assert len(fleet.listed_keys()) == 2


class TestAlone:
    async def test_process_without_its_server_takes_its_share_of_a_host(
        self, own_fleet: Fleet
    ) -> None:
        own_fleet.valkey.kill()

        async with own_fleet.ledger(workers=3) as ledger:
            await ask(ledger)
            own_fleet.clock.advance(5.9)
            assert isinstance(await ledger.start(HOST, ONE), Wait)
            assert ledger.peek(HOST, ONE).delay == 6.0
            own_fleet.clock.advance(0.1)
            await granted(ledger)

        (event,) = own_fleet.events
        assert isinstance(event, LedgerFailed)
        assert isinstance(event.error, StoreError)

    async def test_process_without_its_server_takes_its_share_of_the_places(
        self, own_fleet: Fleet
    ) -> None:
        own_fleet.valkey.kill()
        six = pace(0.0, max_at_once=6)

        async with own_fleet.ledger(workers=3) as ledger:
            answers = [await ledger.start(HOST, six) for _ in range(3)]

        assert [type(answer) for answer in answers] == [Grant, Grant, Wait]

    async def test_process_goes_on_by_what_it_knows_of_the_host(
        self, own_fleet: Fleet
    ) -> None:
        """Also by what it has heard of other processes."""
        async with own_fleet.ledger() as one, own_fleet.ledger() as other:
            grant = await granted(one)
            await one.end(grant, TurnEnd.INCIDENT, retry_after=500.0)
            await wait_seconds(other)
            own_fleet.valkey.kill()
            own_fleet.clock.advance(490)

            assert isinstance(await one.start(HOST, ONE), Wait)
            assert isinstance(await other.start(HOST, ONE), Wait)
            own_fleet.clock.advance(60)
            await granted(other)

    async def test_process_that_waits_alone_looks_for_its_server_soon(
        self, own_fleet: Fleet
    ) -> None:
        own_fleet.valkey.kill()

        async with own_fleet.ledger(workers=100) as ledger:
            await ask(ledger)
            own_fleet.clock.advance(2)

            assert await ledger.start(HOST, ONE) == Wait(seconds=5.0, overdue=0)

    async def test_server_that_comes_back_is_used_again(self, own_fleet: Fleet) -> None:
        """Without a call that looks for it."""
        async with own_fleet.ledger() as one, own_fleet.ledger() as other:
            own_fleet.valkey.kill()
            await ask(one)
            own_fleet.valkey.start()
            own_fleet.clock.advance(10)
            await own_fleet.returned()
            await wait_seconds(one)  # the server has lost the host
            own_fleet.pass_time(2.01)
            await granted(one)
            assert isinstance(await other.start(HOST, ONE), Wait)

        failed, returned = own_fleet.events
        assert isinstance(failed, LedgerFailed)
        assert isinstance(returned, LedgerReturned)
        assert returned.elapsed_seconds >= 10.0

    async def test_host_is_left_alone_for_a_delay_where_the_server_has_lost_it(
        self, own_fleet: Fleet
    ) -> None:
        """Another process may have asked the host, which this one cannot know."""
        async with own_fleet.ledger() as ledger:
            await ask(ledger)
            own_fleet.pass_time(10)
            own_fleet.valkey.ask("FLUSHALL")

            assert await wait_seconds(ledger) == pytest.approx(2.0, abs=1.0)

    async def test_end_of_a_turn_that_the_server_missed_is_sent_later(self) -> None:
        with running_valkey(appendonly="yes", appendfsync="always") as server:
            fleet = Fleet(server)
            async with fleet.ledger() as one, fleet.ledger() as other:
                grant = await granted(one)
                server.kill()
                await one.end(grant, TurnEnd.GOOD)
                server.start()
                await fleet.returned()
                fleet.pass_time(2.01)
                await granted(other)

    async def test_end_of_a_turn_is_sent_again_until_the_server_takes_it(
        self, own_fleet: Fleet
    ) -> None:
        """The first attempt lost it: the others waited for `max_turn_seconds`."""
        server = own_fleet.valkey
        async with own_fleet.ledger() as one, own_fleet.ledger() as other:
            grant = await granted(one)
            server.ask("ACL", "SETUSER", "default", "-evalsha")
            await one.end(grant, TurnEnd.GOOD)
            await anyio.wait_all_tasks_blocked()
            server.ask("ACL", "SETUSER", "default", "+evalsha")
            await own_fleet.returned()
            own_fleet.pass_time(2.01)
            await granted(other)

    async def test_turn_is_no_longer_because_the_server_hears_of_its_end_later(
        self, own_fleet: Fleet
    ) -> None:
        server, by_length = own_fleet.valkey, pace(2.0, delay_factor=5.0)
        async with own_fleet.ledger() as one, own_fleet.ledger() as other:
            grant = await granted(one, pace=by_length)
            server.ask("ACL", "SETUSER", "default", "-evalsha")
            await one.end(grant, TurnEnd.GOOD)
            own_fleet.pass_time(30)
            server.ask("ACL", "SETUSER", "default", "+evalsha")
            await own_fleet.returned()
            own_fleet.pass_time(2.01)
            await granted(other, pace=by_length)

    async def test_end_that_the_server_refuses_for_one_host_keeps_none_alone(
        self, own_fleet: Fleet
    ) -> None:
        server, prefix = own_fleet.valkey, own_fleet.prefix
        async with own_fleet.ledger() as one, own_fleet.ledger() as other:
            grant = await granted(one)
            server.ask(
                *("ACL", "SETUSER", "default", "resetkeys"),
                *(f"~{prefix}{{}}", f"~{prefix}{{another.example}}"),
            )
            await one.end(grant, TurnEnd.GOOD)
            await own_fleet.returned()
            await granted(one, "another.example")

            assert isinstance(await other.start("another.example", ONE), Wait)

    async def test_server_that_refuses_the_script_is_as_good_as_gone(
        self, own_fleet: Fleet
    ) -> None:
        own_fleet.valkey.ask("ACL", "SETUSER", "default", "-eval")

        async with own_fleet.ledger() as ledger:
            await ask(ledger)

        assert [type(event) for event in own_fleet.events] == [LedgerFailed]


class TestHungServer:
    @pytest.fixture(autouse=True)
    def patience(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(redis_ledger, "_ANSWER_SECONDS", 0.5)

    async def test_only_the_first_turns_wait_and_the_server_is_used_when_it_answers(
        self, own_fleet: Fleet
    ) -> None:
        """Each start and each end waited for it again."""
        async with own_fleet.ledger() as ledger:
            await ask(ledger)
            own_fleet.valkey.pause()
            async with anyio.create_task_group() as first:
                first.start_soon(ask, ledger, "first.example")
                first.start_soon(ask, ledger, "second.example")
            with anyio.fail_after(5):
                for number in range(20):
                    await ask(ledger, f"{number}.example")
            own_fleet.valkey.resume()
            await own_fleet.returned()

        assert str(own_fleet.events[0]) == (
            "LedgerFailed(error=TimeoutError('no response within 0.5 s'))"
        )
        assert len(own_fleet.events) == 2

    async def test_turn_that_is_granted_too_late_is_given_back(
        self, own_fleet: Fleet
    ) -> None:
        async with own_fleet.ledger() as one, own_fleet.ledger() as other:
            await ask(one, "another.example")
            own_fleet.valkey.pause()
            await granted(one)
            own_fleet.valkey.resume()

            await _granted_soon(other)


class TestCancellation:
    async def test_start_that_is_cancelled_anywhere_begins_nothing(
        self, fleet: Fleet
    ) -> None:
        number = 0
        is_cancelled = True
        free = pace(0.0)

        async with fleet.ledger() as one, fleet.ledger() as other:
            await ask(one, "another.example")
            while is_cancelled:
                number += 1
                is_cancelled = await cancelled_at(number, lambda: one.start(HOST, free))
                if is_cancelled:
                    with anyio.fail_after(_PATIENCE_SECONDS):
                        grant = await _granted_soon(other, free)
                    await other.end(grant, TurnEnd.GOOD)

        assert number > 1


class TestBadInput:
    async def test_ledger_that_is_not_entered_says_so(self, fleet: Fleet) -> None:
        with pytest.raises(RuntimeError, match="inside async with"):
            await fleet.ledger().start(HOST, ONE)

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({}, TypeError),
            ({"workers": 0}, ValueError),
            ({"workers": 2.0}, TypeError),
            ({"workers": 1, "max_hosts": 0}, ValueError),
            ({"workers": 1, "on_event": 1}, TypeError),
            ({"workers": 1, "url": "http://host"}, StoreError),
        ],
    )
    def test_bad_argument_raises(
        self, options: dict[str, Any], error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            RedisLedger(**{"url": "redis://host", **options})


async def _granted_soon(ledger: RedisLedger, host_pace: Pace = ONE) -> Grant:
    """Leave that comes when the server has taken another back."""
    with anyio.fail_after(_PATIENCE_SECONDS):
        while not isinstance(answer := await ledger.start(HOST, host_pace), Grant):
            await anyio.lowlevel.checkpoint()
    return answer
