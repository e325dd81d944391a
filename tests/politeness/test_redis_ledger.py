"""A fleet's ledger on a real Valkey server."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
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
from .contract import HOST, ONE, LedgerContract, get_grant, request_page, wait_seconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractContextManager

    from robotsgate import LedgerEvent
    from robotsgate.politeness._host_record import Pace
    from tests.servers.valkey import Valkey

pytestmark = pytest.mark.anyio

_NUMBERS = itertools.count()

# Far longer than anything here takes.
_TIMEOUT_SECONDS = 10.0


class Fleet:
    """Processes that share a server; the test controls the time of both."""

    def __init__(self, valkey: Valkey) -> None:
        self.valkey = valkey
        self.clock = ManualClock()
        self.prefix = f"test{next(_NUMBERS)}:"
        self.events: list[LedgerEvent] = []

    def ledger(self, **options: Any) -> RedisLedger:  # noqa: ANN401 (RedisLedger's)
        defaults = {"workers": 1, "prefix": self.prefix, "clock": self.clock}
        return RedisLedger(
            self.valkey.url, on_event=self.events.append, **{**defaults, **options}
        )

    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)
        for key in self.list_keys():
            ttl_ms = self.valkey.ask("PTTL", key)
            assert isinstance(ttl_ms, int)
            self.valkey.ask("PEXPIRE", key, ttl_ms - int(seconds * 1_000))

    async def wait_for_return(self) -> None:
        """Wait until a process that was alone has returned to the fleet.

        The steps are short: while a busy machine connects, many of them pass, and the
        ledger forgets the host after an hour.
        """
        with anyio.fail_after(_TIMEOUT_SECONDS):
            while not isinstance(self.events[-1], LedgerReturned):
                await self.clock.pass_time(0.05)

    def list_keys(self) -> list[object]:
        keys = self.valkey.ask("KEYS", f"{self.prefix}*")
        assert isinstance(keys, list)
        return keys


@pytest.fixture(autouse=True)
def response_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a busy machine from looking like a hung server."""
    monkeypatch.setattr(redis_ledger, "_ANSWER_SECONDS", _TIMEOUT_SECONDS)


@pytest.fixture
def fleet(valkey: Valkey) -> Fleet:
    return Fleet(valkey)


@pytest.fixture
def own_fleet(own_valkey: Valkey) -> Fleet:
    """A fleet on a server that the test may pause or kill."""
    return Fleet(own_valkey)


class TestRedisLedger(LedgerContract):
    real_seconds = _TIMEOUT_SECONDS

    @pytest.fixture
    async def ledger(self, fleet: Fleet) -> AsyncIterator[RedisLedger]:
        """A ledger that is opened in one task and closed in another."""
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
    async def test_turn_of_one_process_makes_the_others_wait(
        self, fleet: Fleet
    ) -> None:
        async with fleet.ledger() as one, fleet.ledger() as other:
            grant = await get_grant(one)
            fleet.pass_time(10)
            during = await wait_seconds(other)
            await one.end(grant, TurnEnd.GOOD)
            after = await wait_seconds(other)
            fleet.pass_time(20.1)
            await get_grant(other)

        waits = (during, after)
        assert waits == pytest.approx((20.0, 20.0), abs=_TIMEOUT_SECONDS)

    async def test_incident_of_one_process_blocks_the_host_for_the_others(
        self, fleet: Fleet
    ) -> None:
        async with fleet.ledger() as one, fleet.ledger() as other:
            grant = await get_grant(one)
            await one.end(grant, TurnEnd.INCIDENT, retry_after=500.0)

            assert 490 < await wait_seconds(other) < 550
            assert 490 < other.peek(HOST, ONE).wait_seconds < 550

    async def test_turn_of_a_dead_process_ends_when_overdue(self, fleet: Fleet) -> None:
        short = pace(20.0, max_turn_seconds=50.0)
        async with fleet.ledger() as victim:
            await get_grant(victim, pace=short)

        async with fleet.ledger() as other:
            fleet.pass_time(40.0)
            first = await other.start(HOST, short)
            fleet.pass_time(30.1)
            second = await get_grant(other, pace=short)

        assert isinstance(first, Wait)
        assert second.overdue == 1

    async def test_every_key_expires(self, fleet: Fleet) -> None:
        async with fleet.ledger() as one, fleet.ledger() as other:
            await get_grant(one, "busy.example")
            await request_page(one, "idle.example")
            await one.end(await get_grant(one), TurnEnd.INCIDENT, retry_after=86_400.0)
            await wait_seconds(other)

        keys = fleet.list_keys()
        ttls = [fleet.valkey.ask("PTTL", key) for key in keys]
        assert len(ttls) == 3
        assert all(isinstance(ttl, int) and ttl > 0 for ttl in ttls)

    async def test_redis_user_needs_only_a_few_permissions(
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
            await request_page(ledger)

        assert own_fleet.events == []

    @pytest.mark.slow
    async def test_ledger_works_on_a_cluster(self) -> None:
        events: list[LedgerEvent] = []
        with running_cluster() as (first, *_):

            def client() -> RedisCluster[bytes]:
                return RedisCluster(NODE, first.port, verify_version=False)

            async with RedisLedger(client, workers=1, on_event=events.append) as ledger:
                for number in range(30):
                    await request_page(ledger, f"{number}.example")

        assert events == []

    @pytest.mark.slow
    async def test_block_survives_the_failover_to_a_replica(self) -> None:
        events: list[LedgerEvent] = []
        with running_sentinel() as (primary, replica, server):
            async with Sentinel([TCPLocation(NODE, server.port)]) as sentinel:

                def client() -> Redis[bytes]:
                    return sentinel.primary_for(NAME)

                async with RedisLedger(
                    client, workers=1, on_event=events.append
                ) as ledger:
                    await ledger.end(
                        await get_grant(ledger), TurnEnd.INCIDENT, retry_after=500.0
                    )
                    primary.ask("WAIT", 1, 0)
                    primary.kill()
                    await request_page(ledger, "another.example")
                    with anyio.fail_after(3 * _TIMEOUT_SECONDS):
                        while not isinstance(events[-1], LedgerReturned):
                            await anyio.lowlevel.checkpoint()
                async with RedisLedger(client, workers=1) as other:
                    seconds = await wait_seconds(other)

            assert "role:master" in str(replica.ask("INFO", "replication"))
        assert isinstance(events[0], LedgerFailed)
        assert 450 < seconds < 550


_RECORD = "1 2 3 4 5 6 7 8 9 10 11 12 0"


class TestUnreadableRecord:
    @cases("command value", {
        "wrong type": ("RPUSH", "a"),
        "other text": ("SET", "a b"),
        "no hash": ("SET", _RECORD),
        "wrong hash": ("SET", f"{'0' * 40} {_RECORD}"),
    })  # fmt: skip
    async def test_unreadable_record_is_replaced_and_affects_only_its_host(
        self, fleet: Fleet, command: str, value: str
    ) -> None:
        """The process used to resend its end forever, and never rejoined the fleet."""
        key = f"{fleet.prefix}{{{HOST}}}"
        async with fleet.ledger() as one, fleet.ledger() as other:
            grant = await get_grant(one)
            for use_record in (
                lambda: one.end(grant, TurnEnd.GOOD),
                lambda: wait_seconds(other),
            ):
                fleet.valkey.ask("DEL", key)
                fleet.valkey.ask(command, key, value)
                await use_record()
            await request_page(one, "another.example")
            fleet.pass_time(20.1)
            await get_grant(other)

        assert fleet.events == [HostRecordReplaced(host=HOST)] * 2
        assert len(fleet.list_keys()) == 2


class TestWithoutServer:
    async def test_process_without_server_uses_its_share_of_the_rate(
        self, own_fleet: Fleet
    ) -> None:
        own_fleet.valkey.kill()

        async with own_fleet.ledger(workers=3) as ledger:
            await request_page(ledger)
            own_fleet.clock.advance(59)
            assert isinstance(await ledger.start(HOST, ONE), Wait)
            assert ledger.peek(HOST, ONE).delay == 60.0
            own_fleet.clock.advance(1)
            await get_grant(ledger)

        (event,) = own_fleet.events
        assert isinstance(event, LedgerFailed)
        assert isinstance(event.error, StoreError)

    async def test_process_without_server_uses_its_share_of_the_turns(
        self, own_fleet: Fleet
    ) -> None:
        own_fleet.valkey.kill()
        six = pace(0.0, max_at_once=6)

        async with own_fleet.ledger(workers=3) as ledger:
            answers = [await ledger.start(HOST, six) for _ in range(3)]

        assert [type(answer) for answer in answers] == [Grant, Grant, Wait]

    async def test_process_without_server_remembers_blocks(
        self, own_fleet: Fleet
    ) -> None:
        """Including blocks that it learned about from other processes."""
        async with own_fleet.ledger() as one, own_fleet.ledger() as other:
            grant = await get_grant(one)
            await one.end(grant, TurnEnd.INCIDENT, retry_after=500.0)
            await wait_seconds(other)
            own_fleet.valkey.kill()
            own_fleet.clock.advance(490)

            assert isinstance(await one.start(HOST, ONE), Wait)
            assert isinstance(await other.start(HOST, ONE), Wait)
            own_fleet.clock.advance(60)
            await get_grant(other)

    async def test_process_without_server_tries_again_within_five_seconds(
        self, own_fleet: Fleet
    ) -> None:
        own_fleet.valkey.kill()

        async with own_fleet.ledger(workers=100) as ledger:
            await request_page(ledger)
            own_fleet.clock.advance(20)

            assert await ledger.start(HOST, ONE) == Wait(seconds=5.0, overdue=0)

    async def test_server_that_comes_back_is_used_again(self, own_fleet: Fleet) -> None:
        """Without being called, the ledger notices that the server is back."""
        async with own_fleet.ledger() as one, own_fleet.ledger() as other:
            own_fleet.valkey.kill()
            await request_page(one)
            own_fleet.valkey.start()
            own_fleet.clock.advance(20)
            await own_fleet.wait_for_return()
            await wait_seconds(one)  # the server has lost the host
            own_fleet.pass_time(20.1)
            await get_grant(one)
            assert isinstance(await other.start(HOST, ONE), Wait)

        failed, returned = own_fleet.events
        assert isinstance(failed, LedgerFailed)
        assert isinstance(returned, LedgerReturned)
        assert returned.elapsed_seconds >= 20.0

    async def test_host_that_the_server_has_lost_is_not_contacted_for_a_delay(
        self, own_fleet: Fleet
    ) -> None:
        """Another process may have contacted the host without this one knowing."""
        async with own_fleet.ledger() as ledger:
            await request_page(ledger)
            own_fleet.pass_time(100)
            own_fleet.valkey.ask("FLUSHALL")

            seconds = await wait_seconds(ledger)

        assert seconds == pytest.approx(20.0, abs=_TIMEOUT_SECONDS)

    async def test_end_that_the_server_missed_is_sent_later(self) -> None:
        with running_valkey(appendonly="yes", appendfsync="always") as server:
            fleet = Fleet(server)
            async with fleet.ledger() as one, fleet.ledger() as other:
                grant = await get_grant(one)
                server.kill()
                await one.end(grant, TurnEnd.GOOD)
                server.start()
                await fleet.wait_for_return()
                fleet.pass_time(20.1)
                await get_grant(other)

    async def test_end_is_resent_until_the_server_accepts_it(
        self, own_fleet: Fleet
    ) -> None:
        """It used to be sent only once: others waited for `max_turn_seconds`."""
        server = own_fleet.valkey
        async with own_fleet.ledger() as one, own_fleet.ledger() as other:
            grant = await get_grant(one)
            server.ask("ACL", "SETUSER", "default", "-evalsha")
            await one.end(grant, TurnEnd.GOOD)
            await anyio.wait_all_tasks_blocked()
            server.ask("ACL", "SETUSER", "default", "+evalsha")
            await own_fleet.wait_for_return()
            own_fleet.pass_time(20.1)
            await get_grant(other)

    async def test_late_report_of_an_end_does_not_lengthen_the_turn(
        self, own_fleet: Fleet
    ) -> None:
        server, by_duration = own_fleet.valkey, pace(20.0, delay_factor=5.0)
        async with own_fleet.ledger() as one, own_fleet.ledger() as other:
            grant = await get_grant(one, pace=by_duration)
            server.ask("ACL", "SETUSER", "default", "-evalsha")
            await one.end(grant, TurnEnd.GOOD)
            own_fleet.pass_time(30)
            server.ask("ACL", "SETUSER", "default", "+evalsha")
            await own_fleet.wait_for_return()
            own_fleet.pass_time(20.1)
            await get_grant(other, pace=by_duration)

    async def test_end_refused_for_one_host_does_not_prevent_return_to_the_fleet(
        self, own_fleet: Fleet
    ) -> None:
        server, prefix = own_fleet.valkey, own_fleet.prefix
        async with own_fleet.ledger() as one, own_fleet.ledger() as other:
            grant = await get_grant(one)
            server.ask(
                *("ACL", "SETUSER", "default", "resetkeys"),
                *(f"~{prefix}{{}}", f"~{prefix}{{another.example}}"),
            )
            await one.end(grant, TurnEnd.GOOD)
            await own_fleet.wait_for_return()
            await get_grant(one, "another.example")

            assert isinstance(await other.start("another.example", ONE), Wait)

    async def test_server_that_refuses_the_script_counts_as_unreachable(
        self, own_fleet: Fleet
    ) -> None:
        own_fleet.valkey.ask("ACL", "SETUSER", "default", "-eval")

        async with own_fleet.ledger() as ledger:
            await request_page(ledger)

        assert [type(event) for event in own_fleet.events] == [LedgerFailed]


class TestHungServer:
    @pytest.fixture
    def hang(
        self, own_fleet: Fleet, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[[], AbstractContextManager[None]]:
        """Makes the server hang, and the ledger wait for it only briefly."""

        @contextmanager
        def hang() -> Iterator[None]:
            own_fleet.valkey.pause()
            with monkeypatch.context() as patch:
                patch.setattr(redis_ledger, "_ANSWER_SECONDS", 0.5)
                yield
            own_fleet.valkey.resume()

        return hang

    async def test_only_the_first_turns_wait_and_the_server_is_used_once_it_responds(
        self, own_fleet: Fleet, hang: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Each start and each end used to wait for it again."""
        async with own_fleet.ledger() as ledger:
            await request_page(ledger)
            with hang():
                async with anyio.create_task_group() as first:
                    first.start_soon(request_page, ledger, "first.example")
                    first.start_soon(request_page, ledger, "second.example")
                with anyio.fail_after(_TIMEOUT_SECONDS):
                    for number in range(20):
                        await request_page(ledger, f"{number}.example")
            await own_fleet.wait_for_return()

        assert str(own_fleet.events[0]) == (
            "LedgerFailed(error=TimeoutError('no response within 0.5 s'))"
        )
        assert len(own_fleet.events) == 2

    async def test_turn_granted_too_late_is_given_back(
        self, own_fleet: Fleet, hang: Callable[[], AbstractContextManager[None]]
    ) -> None:
        async with own_fleet.ledger() as one, own_fleet.ledger() as other:
            await request_page(one, "another.example")
            with hang():
                await get_grant(one)

            await _wait_for_grant(other)


class TestCancellation:
    async def test_start_cancelled_at_any_point_begins_no_turn(
        self, fleet: Fleet
    ) -> None:
        number = 0
        is_cancelled = True
        free = pace(0.0)

        async with fleet.ledger() as one, fleet.ledger() as other:
            await request_page(one, "another.example")
            while is_cancelled:
                number += 1
                is_cancelled = await cancelled_at(number, lambda: one.start(HOST, free))
                if is_cancelled:
                    with anyio.fail_after(_TIMEOUT_SECONDS):
                        grant = await _wait_for_grant(other, free)
                    await other.end(grant, TurnEnd.GOOD)

        assert number > 1


class TestBadInput:
    async def test_start_outside_async_with_raises(self, fleet: Fleet) -> None:
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


async def _wait_for_grant(ledger: RedisLedger, host_pace: Pace = ONE) -> Grant:
    """A grant, once the server has taken another one back."""
    with anyio.fail_after(_TIMEOUT_SECONDS):
        while not isinstance(answer := await ledger.start(HOST, host_pace), Grant):
            await anyio.lowlevel.checkpoint()
    return answer
