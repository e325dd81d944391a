"""Checkers on a real Valkey server: a fleet of them, and a server that goes wrong."""

from __future__ import annotations

import gc
import itertools
import sys
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from robotsgate import Policy, RobotsChecker, SQLiteStore, StoreError, SystemClock
from robotsgate.stores.redis import RedisStore
from robotsgate.testing import ManualClock
from robotsgate.testing.stores import LATER
from tests.checking.builders import (
    AGENT,
    DAY,
    HOUR,
    ORIGIN,
    PRIVATE,
    PUBLIC,
    RULES,
    ClosableStore,
    GatedSite,
    checker_of,
    site_of,
)
from tests.servers.loopback import dead_port

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from robotsgate.testing import FakeSite
    from tests.servers.valkey import Valkey

pytestmark = pytest.mark.anyio

_NUMBERS = itertools.count()

# Far more than anything here takes.
_PATIENCE_SECONDS = 10.0

# The server drops keys by its own clock, which must not be later than the checkers'.
NOW = LATER


@pytest.fixture(scope="module", autouse=True)
def nothing_is_left() -> Iterator[None]:
    """The collector finds what coredis has left here, and in no other module."""
    yield
    gc.collect()


@pytest.fixture
def prefix() -> str:
    return f"test{next(_NUMBERS)}:"


@pytest.fixture(params=[True, False], ids=["kept connections", "a connection each"])
def opened(request: pytest.FixtureRequest) -> Callable[[RedisStore], Any]:
    """Uses a store as a context manager, or does without."""
    return (lambda store: store) if request.param else nullcontext


# --- the store that a checker makes ------------------------------------------------


@pytest.mark.parametrize("url", ["redis://user:s3cret@host:port", "s3cret@host:6379"])
def test_wrong_url_raises_without_showing_a_password(url: str) -> None:
    with pytest.raises(StoreError, match="expected") as raised:
        RobotsChecker(user_agent=AGENT, store=url)

    assert "s3cret" not in str(raised.value)


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coredis", None)
    for module in ("redis", "_redis_server"):
        monkeypatch.delitem(sys.modules, f"robotsgate.stores.{module}", raising=False)

    with pytest.raises(StoreError, match=r"robotsgate\[redis\]"):
        RobotsChecker(user_agent=AGENT, store="redis://host")


def test_checker_that_cannot_be_made_leaves_no_file_open(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="AsyncClient"):
        RobotsChecker(
            user_agent=AGENT, client=object(), store=f"sqlite:///{tmp_path}/robots.db"
        )

    assert list(tmp_path.iterdir()) == []


async def test_checker_closes_the_store_that_it_has_made(tmp_path: Path) -> None:
    checker = checker_of(site_of(), store=f"sqlite:///{tmp_path}/robots.db")
    own_store = checker._own_store
    assert own_store is not None

    async with checker:
        await checker.can_fetch(AGENT, ORIGIN)

    with pytest.raises(StoreError, match="closed"):
        await own_store.get(ORIGIN)


async def test_checker_does_not_close_a_store_that_it_was_given() -> None:
    store = ClosableStore()

    async with checker_of(site_of(), store=store) as checker:
        await checker.can_fetch(AGENT, ORIGIN)

    assert not store.is_closed


async def test_checker_keeps_the_connections_of_its_own_redis_until_its_end(
    own_valkey: Valkey,
) -> None:
    urls = [f"http://{number}.example/" for number in range(20)]

    async with checker_of(site_of(), store=own_valkey.url) as checker:
        for url in urls:
            await checker.can_fetch(AGENT, url)
        connections = _connections(own_valkey)

    assert checker.stats.store_failures == 0
    assert connections <= 1 + 1  # of the store, and of the question
    # The server learns of it a moment later; each look is a connection of its own.
    while "connected_clients:1\r\n" not in str(own_valkey.ask("INFO", "clients")):
        pass


async def test_checker_without_its_context_uses_redis_all_the_same(
    own_valkey: Valkey,
) -> None:
    async with aclosing(
        checker_of(site_of(), store=own_valkey.url, clock=ManualClock(NOW))
    ) as checker:
        await checker.can_fetch(AGENT, ORIGIN)

    assert checker.stats.store_failures == 0
    assert own_valkey.ask("EXISTS", f"robotsgate:{ORIGIN}") == 1


async def test_checker_answers_right_on_a_damaged_file(tmp_path: Path) -> None:
    site, path = site_of(), tmp_path / "robots.db"
    await SQLiteStore(path).aclose()  # so that nothing is left in the log

    async with SQLiteStore(path) as store:
        octets = path.read_bytes()
        with path.open("r+b") as file:  # the same file, which the store has opened
            file.write(octets[:4_096].ljust(len(octets), b"\xff"))
        async with checker_of(site, store=store) as checker:
            answers = await checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC])

    assert answers == [False, True]
    assert len(site.requests) == 1
    assert checker.stats.store_failures == 2  # to get, and to update


# --- a server that goes wrong ------------------------------------------------------


SITES = {f"http://{number}.example": number % 2 == 0 for number in range(8)}
"""Whether the whole of a site is allowed."""


def _many_sites() -> FakeSite:
    site = site_of()
    for origin, is_allowed in SITES.items():
        site.serve(origin, "User-agent: *\n" + ("" if is_allowed else "Disallow: /\n"))
    return site


async def _is_right(checker: RobotsChecker, *numbers: int) -> bool:
    """Whether `checker` answers rightly for the sites of these numbers."""
    origins = [list(SITES)[number] for number in numbers]
    answers = [await checker.can_fetch(AGENT, f"{origin}/x") for origin in origins]
    return answers == [SITES[origin] for origin in origins]


def _fill(server: Valkey) -> None:
    server.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
    server.ask("CONFIG", "SET", "maxmemory", "1")


def _connections(server: Valkey) -> int:
    """How many connections there have been, this one included."""
    lines = str(server.ask("INFO", "stats")).splitlines()
    found = dict(line.split(":") for line in lines if ":" in line)
    return int(found["total_connections_received"])


class TestCheckerOnBadServer:
    async def test_server_that_is_down_from_the_start_is_done_without(self) -> None:
        site = _many_sites()
        url = f"redis://127.0.0.1:{dead_port()}"

        async with checker_of(site, store=url, clock=ManualClock(NOW)) as checker:
            is_right = await _is_right(checker, *range(8), *range(8))

        assert is_right
        assert len(site.requests) == 8
        assert checker.stats.store_failures > 0

    async def test_checker_comes_back_to_a_server_that_is_restarted(
        self, own_valkey: Valkey, opened: Callable[..., Any]
    ) -> None:
        site = _many_sites()
        store = RedisStore(own_valkey.url)

        async with (
            opened(store),
            checker_of(site, store=store, clock=ManualClock(NOW)) as checker,
        ):
            before = await _is_right(checker, 0, 1)
            failures_before = checker.stats.store_failures
            own_valkey.stop()
            meanwhile = await _is_right(checker, 0, 1, 2, 3)
            failures_meanwhile = checker.stats.store_failures
            own_valkey.start()
            after = await _is_right(checker, 0, 1, 2, 3, 4, 5)
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

    async def test_checker_leaves_a_hanging_server_alone_and_comes_back(
        self, own_valkey: Valkey, opened: Callable[..., Any]
    ) -> None:
        site, clock = _many_sites(), ManualClock(NOW)
        store = RedisStore(own_valkey.url)
        policy = Policy(store_timeout=0.5)

        async with (
            opened(store),
            checker_of(site, store=store, policy=policy, clock=clock) as checker,
        ):
            before = await _is_right(checker, 0, 1)
            own_valkey.pause()
            meanwhile = await _is_right(checker, 0, 1, 2, 3)
            hung = checker.stats
            own_valkey.resume()
            clock.advance(31)
            after = await _is_right(checker, 4, 5)
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

    async def test_checker_comes_back_after_many_questions_at_once_have_hung(
        self, own_valkey: Valkey
    ) -> None:
        site, clock = site_of(), ManualClock(NOW)
        policy = Policy(store_timeout=0.1)

        async with (
            RedisStore(own_valkey.url) as store,
            checker_of(site, store=store, policy=policy, clock=clock) as checker,
        ):
            own_valkey.pause()
            for number in range(3):
                urls = [f"http://{n}.{number}.example/" for n in range(100)]
                answers = await checker.can_fetch_many(AGENT, urls)
                assert answers == [True] * 100
                clock.advance(31)
            own_valkey.resume()
            key, number = "", 0
            with anyio.fail_after(_PATIENCE_SECONDS):
                # It may take a moment to work off what it was asked meanwhile.
                while not key or not own_valkey.ask("EXISTS", key):
                    number += 1
                    clock.advance(31)
                    await checker.can_fetch(AGENT, f"http://new{number}.example/")
                    key = f"robotsgate:http://new{number}.example"

        assert own_valkey.ask("EXISTS", key) == 1

    @pytest.mark.parametrize("fault", ["read-only", "full"])
    async def test_checker_answers_rightly_when_it_cannot_write(
        self, own_valkey: Valkey, fault: str, opened: Callable[..., Any]
    ) -> None:
        site = _many_sites()
        store = RedisStore(own_valkey.url)
        async with checker_of(
            site, store=own_valkey.url, clock=ManualClock(NOW)
        ) as other:
            await _is_right(other, 6, 7)

        async with (
            opened(store),
            checker_of(site, store=store, clock=ManualClock(NOW)) as checker,
        ):
            before = await _is_right(checker, 0, 1)
            if fault == "full":
                _fill(own_valkey)
            else:
                own_valkey.ask("REPLICAOF", "127.0.0.1", dead_port())
            meanwhile = await _is_right(checker, 0, 1, 2, 3, 6, 7)
            failures = checker.stats.store_failures
            own_valkey.ask("CONFIG", "SET", "maxmemory", "0")
            own_valkey.ask("REPLICAOF", "NO", "ONE")
            after = await _is_right(checker, 0, 1, 2, 3, 4, 5, 6, 7)

        assert before
        assert meanwhile
        assert after
        assert len(site.requests) == 8
        assert checker.stats.store_failures == failures > 0
        assert own_valkey.ask("EXISTS", "robotsgate:http://4.example") == 1


@asynccontextmanager
async def _workers(
    server: Valkey, prefix: str, *checkers: dict[str, Any]
) -> AsyncIterator[list[RobotsChecker]]:
    """Checkers with these arguments, each with a store of its own, on one server."""
    async with AsyncExitStack() as stack:
        made = []
        for arguments in checkers:
            store = RedisStore(server.url, prefix=prefix)
            await stack.enter_async_context(store)
            checker = checker_of(
                **{"store": store, "clock": SystemClock(), **arguments}
            )
            made.append(await stack.enter_async_context(checker))
        yield made


async def _until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(_PATIENCE_SECONDS):
        while not is_so():
            await anyio.lowlevel.checkpoint()


def _gated_site(body: str, *, status: int = 200) -> GatedSite:
    site = GatedSite()
    site.serve(ORIGIN, body, status=status)
    return site


class TestWorkers:
    @pytest.mark.parametrize(
        ("status", "expected"),
        [(200, [True, False]), (404, [True, True]), (503, [False, False])],
    )
    @pytest.mark.parametrize("ahead", [0.0, -180.0, 180.0])
    async def test_workers_asked_at_once_make_one_request(
        self,
        valkey: Valkey,
        prefix: str,
        *,
        status: int,
        expected: list[bool],
        ahead: float,
    ) -> None:
        # A failure is asked about again after half a minute of anybody's clock.
        policy = Policy(retry_initial=HOUR, retry_initial_503=HOUR, retry_max=HOUR)
        site = _gated_site(RULES, status=status)
        clocks = ManualClock(NOW), ManualClock(NOW + ahead)
        answers: dict[int, list[bool]] = {}

        async with _workers(
            valkey,
            prefix,
            *({"site": site, "clock": c, "policy": policy} for c in clocks),
        ) as workers:

            async def ask(number: int) -> None:
                urls = [PUBLIC, PRIVATE]
                answers[number] = await workers[number].can_fetch_many(AGENT, urls)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask, 0)
                await _until(lambda: site.under_way == 1)
                tasks.start_soon(ask, 1)
                await _until(lambda: workers[1].stats.lease_waits > 0)
                site.gate.set()
                while 1 not in answers:
                    await clocks[1].pass_time(1)

        assert len(site.requests) == 1
        assert answers == {0: expected, 1: expected}
        assert [worker.stats.fetches for worker in workers] == [1, 0]
        assert valkey.ask("EXISTS", f"{prefix}lease:{ORIGIN}") == 0

    @pytest.mark.parametrize("ahead", [-180.0, 180.0, -2 * DAY, 2 * DAY, -HOUR])
    async def test_worker_never_keeps_to_old_rules_for_longer_than_their_lifetime(
        self, valkey: Valkey, prefix: str, ahead: float
    ) -> None:
        site = site_of()
        clocks = ManualClock(NOW), ManualClock(NOW + ahead)
        arguments = [{"site": site, "clock": clock} for clock in clocks]

        async with _workers(valkey, prefix, *arguments) as workers:
            for worker in workers:
                await worker.can_fetch(AGENT, PUBLIC)
            site.serve(ORIGIN, "User-agent: *\nDisallow: /\n")
            for clock in clocks:
                clock.advance(DAY + 181)  # the lifetime, and the skew
            answers = [await worker.can_fetch(AGENT, PUBLIC) for worker in workers]

        assert answers == [False, False]
        assert len(site.requests) <= 4

    @pytest.mark.parametrize("ahead", [-2 * DAY, 2 * DAY])
    async def test_worker_whose_clock_is_days_off_asks_by_itself_and_is_right(
        self, valkey: Valkey, prefix: str, ahead: float
    ) -> None:
        site = site_of()
        clocks = ManualClock(NOW), ManualClock(NOW + ahead)
        arguments = [{"site": site, "clock": clock} for clock in clocks]
        answers = []

        async with _workers(valkey, prefix, *arguments) as workers:
            for worker in workers * 3:
                answers.append(await worker.can_fetch(AGENT, PRIVATE))
                answers.append(not await worker.can_fetch(AGENT, PUBLIC))

        assert not any(answers)
        assert len(site.requests) == 2

    async def test_worker_takes_over_when_the_owner_has_died(
        self, valkey: Valkey, prefix: str
    ) -> None:
        site = site_of()
        dead = RedisStore(valkey.url, prefix=prefix)
        await dead.acquire(ORIGIN, "dead", 0.2)

        async with _workers(valkey, prefix, {"site": site}) as [worker]:
            with anyio.fail_after(_PATIENCE_SECONDS):
                answer = await worker.can_fetch(AGENT, PRIVATE)

        assert not answer
        assert len(site.requests) == 1
        assert worker.stats.lease_waits > 0  # it has waited

    async def test_lease_that_never_ends_is_waited_for_by_time(
        self, valkey: Valkey, prefix: str
    ) -> None:
        """Another tool has written it, so it is nobody's, and has no expiry."""
        valkey.ask("SET", f"{prefix}lease:{ORIGIN}", "another tool")
        clock, site = ManualClock(NOW), site_of()
        policy = Policy(fetch_deadline=4.0, store_timeout=2.0)
        arguments = {"site": site, "clock": clock, "policy": policy}
        answers = []

        async with _workers(valkey, prefix, arguments) as [worker]:

            async def ask() -> None:
                answers.append(await worker.can_fetch(AGENT, PRIVATE))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ask)
                pauses = 0
                while not answers:  # no time passes while the server is asked
                    if worker.stats.lease_waits > pauses:
                        pauses = worker.stats.lease_waits
                        await clock.pass_time(1)
                    await anyio.lowlevel.checkpoint()

        assert answers == [False]
        assert 2 * 10 <= clock.monotonic() < 3 * 10
        assert valkey.ask("PTTL", f"{prefix}lease:{ORIGIN}") == -1

    async def test_lease_lasts_for_a_fetch_and_the_store_around_it(
        self, valkey: Valkey, prefix: str
    ) -> None:
        policy = Policy(fetch_deadline=100.0, store_timeout=10.0)
        site = _gated_site(RULES)

        async with (
            _workers(valkey, prefix, {"site": site, "policy": policy}) as [worker],
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(worker.can_fetch, AGENT, PUBLIC)
            await _until(lambda: site.under_way == 1)
            left = valkey.ask("PTTL", f"{prefix}lease:{ORIGIN}")
            site.gate.set()

        assert isinstance(left, int)
        assert 110_000 < left <= 130_000

    async def test_checker_that_is_closed_gives_way_at_once(
        self, valkey: Valkey, prefix: str
    ) -> None:
        site = _gated_site(RULES)
        errors = []

        async def ask(worker: RobotsChecker) -> None:
            try:
                await worker.can_fetch(AGENT, PUBLIC)
            except RuntimeError as error:
                errors.append(error)

        async with (
            _workers(valkey, prefix, {"site": site}) as [worker],
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(ask, worker)
            await _until(lambda: site.under_way == 1)
            await worker.aclose()

        assert len(errors) == 1
        assert valkey.ask("EXISTS", f"{prefix}lease:{ORIGIN}") == 0

    async def test_refresh_asks_although_the_fleet_knows(
        self, valkey: Valkey, prefix: str
    ) -> None:
        site = site_of()

        async with _workers(valkey, prefix, {"site": site}, {"site": site}) as workers:
            await workers[0].can_fetch(AGENT, PUBLIC)
            site.serve(ORIGIN, "User-agent: *\nDisallow: /\n")
            await workers[1].refresh(PUBLIC)
            refreshed = await workers[1].can_fetch(AGENT, PUBLIC)
            not_yet = await workers[0].can_fetch(AGENT, PUBLIC)

        assert (refreshed, not_yet) == (False, True)
        assert len(site.requests) == 2

    async def test_refresh_waits_for_the_fetch_of_another_and_asks_itself(
        self, valkey: Valkey, prefix: str
    ) -> None:
        site = _gated_site(RULES)

        async with (
            _workers(valkey, prefix, {"site": site}, {"site": site}) as workers,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(workers[0].can_fetch, AGENT, PUBLIC)
            await _until(lambda: site.under_way == 1)
            tasks.start_soon(workers[1].refresh, PUBLIC)
            await _until(lambda: workers[1].stats.lease_waits > 0)
            site.gate.set()

        assert site.most_under_way == 1
        assert [worker.stats.fetches for worker in workers] == [1, 1]

    async def test_two_checkers_of_one_store_make_one_request(
        self, valkey: Valkey, prefix: str
    ) -> None:
        site = _gated_site(RULES)
        answers = []

        async def ask(worker: RobotsChecker) -> None:
            answers.append(await worker.can_fetch(AGENT, PRIVATE))

        async with (
            RedisStore(valkey.url, prefix=prefix) as store,
            _workers(valkey, prefix, *[{"site": site, "store": store}] * 2) as workers,
            anyio.create_task_group() as tasks,
        ):
            for worker in workers:
                tasks.start_soon(ask, worker)
            await _until(lambda: site.under_way == 1)
            await _until(lambda: any(w.stats.lease_waits > 0 for w in workers))
            site.gate.set()

        assert answers == [False, False]
        assert len(site.requests) == 1
