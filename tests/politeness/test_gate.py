from __future__ import annotations

import logging
import math
import re
from contextlib import suppress
from functools import partial
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import httpx
import pytest

from robotsgate import (
    DisallowedError,
    InvalidProductTokenError,
    InvalidURLError,
    MemoryStore,
    Policy,
    Reason,
    TurnNotInTimeError,
    UnsupportedError,
)
from robotsgate.politeness._events import (
    BlockForgotten,
    DelayClamped,
    GateStats,
    HostBlocked,
    HostStatus,
    RetryAfterIgnored,
    TurnsOverdue,
)
from robotsgate.politeness._gate import PolitenessGate
from robotsgate.politeness._host_record import (
    FIRST_BACK_OFF,
    HostState,
    Pace,
)
from robotsgate.politeness._ledger import Grant, LocalLedger, Wait
from robotsgate.testing import ManualClock
from tests.checking.builders import (
    AGENT,
    DAY,
    NOW,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    GatedStore,
    answered_at_once,
    checker_of,
    let_others_run,
    site_of,
)

from .crawl import DELAY, Crawl, SlowLedger

pytestmark = pytest.mark.anyio

HOST = "example.com"
HTTP_ORIGIN = "http://example.com"
OTHER_PAGE = f"{OTHER_ORIGIN}/page"


# --- robots.txt first, then the host ------------------------------------------------


async def test_first_page_waits_from_the_end_of_the_fetch_of_robots_txt() -> None:
    crawl = Crawl()
    crawl.serve(delay=3)

    await crawl.run(20, crawl.visit)

    assert crawl.times == [3 + DELAY]


async def test_pages_of_a_host_keep_its_delay_from_end_to_start() -> None:
    crawl = Crawl()

    await crawl.run(100, *[partial(crawl.visit, seconds=4)] * 3)

    assert crawl.times == [DELAY, 2 * DELAY + 4, 3 * DELAY + 8]


async def test_slow_page_makes_the_delay_longer_if_there_is_a_factor() -> None:
    crawl = Crawl(delay_factor=5.0)

    await crawl.run(100, *[partial(crawl.visit, seconds=4)] * 2)

    assert crawl.times == [DELAY, DELAY + 4 + 5 * 4]


async def test_hosts_do_not_wait_for_each_other() -> None:
    crawl = Crawl(default_delay=1.0)
    other = partial(crawl.visit, OTHER_PAGE)

    await crawl.run(100, crawl.visit, crawl.visit, other, other)

    assert sorted(crawl.began) == [
        (1, OTHER_PAGE),
        (2, OTHER_PAGE),
        (DELAY, PUBLIC),
        (2 * DELAY, PUBLIC),
    ]


async def test_turns_come_in_the_order_of_arrival() -> None:
    crawl = Crawl()
    urls = [f"{ORIGIN}/{number}" for number in range(5)]

    await crawl.run(100, *[partial(crawl.visit, url) for url in urls])

    assert [url for _, url in crawl.began] == urls


async def test_refused_url_waits_for_no_turn() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async with crawl.held():
        with pytest.raises(DisallowedError) as caught:
            await crawl.visit(PRIVATE)

    assert caught.value.verdict.reason is Reason.DISALLOWED_BY_RULE
    assert crawl.gate.stats.disallowed == 1


async def test_turn_that_need_not_wait_never_suspends() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    answered_at_once(crawl.visit())


@pytest.mark.parametrize("url", ["HTTPS://EXAMPLE.com:443/public", httpx.URL(PUBLIC)])
async def test_turn_takes_urls_as_the_checker_does(url: str | httpx.URL) -> None:
    crawl = Crawl()
    await crawl.warm_up()

    await crawl.visit(url)

    assert crawl.gate.status(PUBLIC).ready_at == crawl.clock.now() + DELAY


# --- a file that changes during the wait --------------------------------------------


async def test_url_that_is_refused_after_the_wait_has_no_turn() -> None:
    crawl = Crawl()
    crawl.serve(headers={"Cache-Control": "max-age=3700"})
    await crawl.warm_up()
    crawl.serve("Disallow: /\n")
    await crawl.visit(status=429, retry_after="200")

    await crawl.run(500, crawl.visit)

    assert len(crawl.began) == 1
    assert [type(error) for error in crawl.errors] == [DisallowedError]
    assert crawl.site.requests == [ROBOTS_TXT, ROBOTS_TXT]


async def test_turn_after_the_next_fetch_keeps_its_place_and_the_delay() -> None:
    crawl = Crawl()
    crawl.serve(headers={"Cache-Control": "max-age=3700"})
    await crawl.warm_up()
    await crawl.visit(status=429, retry_after="200")
    urls = [f"{ORIGIN}/{number}" for number in range(3)]

    await crawl.run(500, *[partial(crawl.visit, url) for url in urls])

    assert [url for _, url in crawl.began[1:]] == urls
    assert crawl.times[1] >= 3_800 + 2 * DELAY, "the fetch comes before the page"
    assert crawl.site.requests == [ROBOTS_TXT, ROBOTS_TXT]


async def test_file_that_is_fresh_for_less_than_the_delay_stops_nobody() -> None:
    crawl = Crawl(policy=Policy(min_lifetime=60))
    crawl.serve(crawl_delay=300, headers={"Cache-Control": "max-age=60"})

    await crawl.run(10_000, *[crawl.visit] * 3)

    assert len(crawl.began) == 3
    assert len(crawl.site.requests) <= 4


async def test_file_that_another_task_has_fetched_meanwhile_is_obeyed() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit()
    crawl.serve("Disallow: /\n")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crawl.checker.refresh, PUBLIC)
        await let_others_run()
        await crawl.run(100, crawl.visit)

    assert [type(error) for error in crawl.errors] == [DisallowedError]


async def test_delay_of_a_file_that_another_task_has_fetched_meanwhile_is_kept() -> (
    None
):
    """The first page after the fetch came too soon."""
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit()
    crawl.serve(crawl_delay=60)

    async def refresh() -> None:
        await crawl.checker.refresh(PUBLIC)
        await crawl.checker.can_fetch(AGENT, PUBLIC)

    await crawl.run(100, crawl.visit, refresh)

    assert crawl.times == [3_600, 3_600 + 60]


class CountingLedger(LocalLedger):
    """Counts the calls of `start`, and the turns that it begins."""

    called = started = 0

    async def start(
        self, host: str, pace: Pace, *, is_robots_txt: bool = False
    ) -> Grant | Wait:
        self.called += 1
        answer = await super().start(host, pace, is_robots_txt=is_robots_txt)
        self.started += isinstance(answer, Grant)
        return answer


async def test_ledger_is_not_called_if_a_caller_behind_others_gives_up() -> None:
    clock = ManualClock()
    ledger = CountingLedger(clock=clock)
    crawl = Crawl(clock=clock, ledger=ledger)
    await crawl.warm_up()
    await crawl.visit()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crawl.visit)
        await let_others_run()
        called = ledger.called
        with anyio.move_on_after(0):
            await crawl.visit()
        await let_others_run()

        assert ledger.called == called
        await clock.pass_time(100)
    assert len(crawl.began) == 2


async def test_permission_that_has_not_changed_during_the_wait_is_not_asked_again() -> (
    None
):
    clock = ManualClock()
    ledger = CountingLedger(clock=clock)
    crawl = Crawl(clock=clock, ledger=ledger)
    await crawl.warm_up()

    await crawl.run(100, crawl.visit, crawl.visit)

    assert len(crawl.began) == ledger.started == 2


# --- 429 and 503 of robots.txt ------------------------------------------------------


async def busy_crawl(*, store: MemoryStore | None = None) -> Crawl:
    """A crawl with a copy of a robots.txt that has just been answered by a 429."""
    crawl = Crawl(store=store)
    await crawl.warm_up()
    crawl.site.serve(ORIGIN, status=429, headers={"Retry-After": "3600"})
    crawl.clock.advance(DAY)
    return crawl


async def test_page_waits_for_the_retry_after_that_a_plain_question_has_seen() -> None:
    """A stale copy allowed the page, and its turn came at once."""
    crawl = await busy_crawl()
    assert await crawl.checker.can_fetch(AGENT, PUBLIC)
    crawl.serve()
    began_at = crawl.seconds

    assert crawl.gate.ready_at(PUBLIC) >= crawl.clock.now() + 3_600
    await crawl.run(4_000, crawl.visit)

    assert crawl.times == [began_at + 3_600 + DELAY]  # robots.txt first


async def test_page_waits_for_the_retry_after_that_another_process_has_seen() -> None:
    store = MemoryStore()
    crawl = await busy_crawl(store=store)
    other = checker_of(crawl.site, store=store, clock=crawl.clock)
    await other.can_fetch(AGENT, PUBLIC)
    crawl.serve()
    began_at = crawl.seconds

    await crawl.run(4_000, crawl.visit)

    assert crawl.times == [began_at + 3_600 + DELAY]


async def test_page_waits_for_the_retry_after_of_a_429_that_is_an_answer() -> None:
    """Where a 429 counts as "no file", its Retry-After bound nobody."""
    crawl = Crawl(policy=Policy.rfc9309())
    crawl.site.serve(ORIGIN, status=429, headers={"Retry-After": "7200"})
    assert await crawl.checker.can_fetch(AGENT, PUBLIC)
    began_at = crawl.seconds

    assert crawl.gate.ready_at(PUBLIC) == crawl.clock.now() + 7_200
    await crawl.run(8_000, crawl.visit)

    assert crawl.times == [began_at + 7_200]


async def test_patience_shorter_than_the_retry_after_tells_when_that_is_over() -> None:
    crawl = await busy_crawl()
    await crawl.checker.can_fetch(AGENT, PUBLIC)

    with pytest.raises(TurnNotInTimeError) as caught:
        await crawl.visit(patience=60)

    assert caught.value.ready_at == crawl.clock.now() + 3_600


async def test_origin_that_asks_for_less_holds_up_no_other_origin_of_its_host() -> None:
    crawl = await busy_crawl()
    await crawl.checker.can_fetch(AGENT, PUBLIC)
    await crawl.checker.can_fetch(AGENT, f"{HTTP_ORIGIN}/")
    crawl.serve()
    began_at = crawl.seconds

    await crawl.run(4_000, crawl.visit, partial(crawl.visit, f"{HTTP_ORIGIN}/"))

    assert crawl.began[0] == (began_at, f"{HTTP_ORIGIN}/")
    assert crawl.began[1][0] >= began_at + 3_600


async def test_clock_that_is_set_back_makes_no_old_file_new() -> None:
    """An entry from our future seemed to have been fetched during the wait."""
    crawl = Crawl()
    await crawl.warm_up()
    crawl.serve("Disallow: /\n")
    crawl.clock.set(NOW - 2 * DAY)

    await crawl.run(100, crawl.visit)

    assert [type(error) for error in crawl.errors] == [DisallowedError]


async def test_closed_gate_ends_the_wait_for_the_retry_after() -> None:
    crawl = await busy_crawl()
    await crawl.checker.can_fetch(AGENT, PUBLIC)

    await crawl.run(0, crawl.visit, crawl.gate.aclose)

    assert [str(error) for error in crawl.errors] == ["the gate is closed"]


# --- patience -----------------------------------------------------------------------


async def test_patience_that_ends_before_the_turn_tells_when_that_would_come() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit()

    with pytest.raises(TurnNotInTimeError, match=r"at least 10\.0 s away") as caught:
        answered_at_once(crawl.visit(patience=0))
    with pytest.raises(TurnNotInTimeError):
        answered_at_once(crawl.visit(patience=DELAY - 1))

    assert caught.value.ready_at == crawl.clock.now() + DELAY
    assert crawl.gate.stats.not_in_time == 2


async def test_patience_that_is_long_enough_brings_the_turn() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit()

    await crawl.run(100, partial(crawl.visit, patience=DELAY))

    assert len(crawl.began) == 2


async def test_patience_of_one_behind_others_counts_their_delays() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crawl.visit)
        tasks.start_soon(crawl.visit)
        await let_others_run()
        with pytest.raises(TurnNotInTimeError) as caught:
            answered_at_once(crawl.visit(patience=3 * DELAY - 1))
        tasks.start_soon(partial(crawl.visit, patience=3 * DELAY))
        await crawl.clock.pass_time(3 * DELAY)

    assert caught.value.ready_at == NOW + 3_600 + 3 * DELAY
    assert len(crawl.began) == 4


async def test_patience_counts_on_good_answers_to_those_before() -> None:
    """Those who came in time were sent away while an incident was wearing off."""
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit(status=429, retry_after="5")

    await crawl.run(100, *[crawl.visit] * 3, partial(crawl.visit, patience=65))

    assert crawl.times[-1] - crawl.times[0] < 65
    assert crawl.errors == []


async def test_patience_ends_behind_a_turn_that_takes_longer_than_thought() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(crawl.visit, seconds=100))
        tasks.start_soon(crawl.visit)
        await let_others_run()
        await crawl.run(60, partial(crawl.visit, patience=50))
        await crawl.clock.pass_time(200)

    assert [type(error) for error in crawl.errors] == [TurnNotInTimeError]


async def test_patience_covers_the_fetch_of_robots_txt_too() -> None:
    crawl = Crawl()
    crawl.serve(delay=8)

    await crawl.run(10, partial(crawl.visit, patience=7))
    await crawl.run(20, partial(crawl.visit, patience=DELAY))

    assert [type(error) for error in crawl.errors] == [TurnNotInTimeError]
    assert crawl.site.requests == [ROBOTS_TXT], "the fetch went on"
    assert crawl.times == [8 + DELAY]


async def test_without_patience_the_fetch_of_robots_txt_begins_all_the_same() -> None:
    crawl = Crawl()

    with pytest.raises(TurnNotInTimeError):
        answered_at_once(crawl.visit(patience=0))
    await crawl.clock.pass_time(DELAY)

    await crawl.visit(patience=0)


# --- what the site says of its load -------------------------------------------------


@pytest.mark.parametrize(
    ("report", "seconds"),
    [
        ({"status": 429}, FIRST_BACK_OFF),
        ({"status": 503}, FIRST_BACK_OFF),
        ({"failure": True}, FIRST_BACK_OFF),
        # aiohttp accepts such a status, and some clients do over HTTP/2.
        ({"response": SimpleNamespace(status=0, headers={})}, FIRST_BACK_OFF),
        ({"status": 429, "retry_after": "500"}, 500),
        ({"status": 429, "retry_after": "Fri, 15 Jan 2027 09:10:00 GMT"}, 600),
        ({"status": 503, "retry_after": "999999"}, DAY),
        ({"status": 429, "retry_after": "soon"}, FIRST_BACK_OFF),
    ],
    ids=str,
)
async def test_incident_blocks_the_host(report: dict[str, Any], seconds: float) -> None:
    crawl = Crawl()
    await crawl.warm_up()

    await crawl.visit(**report)

    status = crawl.gate.status(PUBLIC)
    assert status.state is HostState.BLOCKED
    assert seconds <= status.ready_at - crawl.clock.now() <= 1.1 * seconds
    assert crawl.gate.stats.incidents == 1


@pytest.mark.parametrize(
    "report",
    [
        {"status": 200},
        {"status": 404},
        {"status": 500},
        {"status": 301, "retry_after": "500"},
        {},
    ],
    ids=str,
)
async def test_any_other_end_leaves_the_host_open(report: dict[str, Any]) -> None:
    crawl = Crawl()
    await crawl.warm_up()

    await crawl.visit(**report)

    assert crawl.gate.status(PUBLIC).state is HostState.OPEN
    assert crawl.events == []


async def test_last_report_counts() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async with crawl.gate.turn(PUBLIC) as turn:
        turn.report(status=429, retry_after="500")
        turn.report(status=200)

    assert crawl.gate.status(PUBLIC).state is HostState.OPEN


async def test_retry_after_that_makes_no_sense_is_told_and_cut() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    await crawl.visit(status=429, retry_after="x" * 1_000)

    assert crawl.events[0] == RetryAfterIgnored(host=HOST, value="x" * 200)
    assert crawl.events[0].as_dict()["event"] == "RetryAfterIgnored"


@pytest.mark.parametrize(
    ("error", "report", "state"),
    [
        (ValueError("broken"), {}, HostState.BLOCKED),
        (ValueError("broken"), {"status": 200}, HostState.OPEN),
        (KeyboardInterrupt(), {}, HostState.OPEN),
    ],
    ids=["exception", "exception after a report", "interrupt"],
)
async def test_turn_that_is_left_by_an_exception_has_failed_unless_reported(
    error: BaseException, report: dict[str, Any], state: HostState
) -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async def fail() -> None:
        async with crawl.gate.turn(PUBLIC) as turn:
            if report:
                turn.report(**report)
            raise error

    with pytest.raises(type(error)):
        await fail()

    assert crawl.gate.status(PUBLIC).state is state


@pytest.mark.parametrize("url", [PRIVATE, PUBLIC])
async def test_redirect_that_has_no_turn_is_no_failure_of_the_host(url: str) -> None:
    crawl = Crawl()
    await crawl.warm_up()

    with pytest.raises((DisallowedError, TurnNotInTimeError)):
        async with crawl.gate.turn(PUBLIC):
            await crawl.visit(url, patience=0)

    assert crawl.gate.status(PUBLIC).state is HostState.OPEN


@pytest.mark.parametrize(
    ("error", "state"),
    [(None, HostState.OPEN), (ValueError("broken"), HostState.BLOCKED)],
)
async def test_turn_that_is_left_by_a_group_of_errors_is_judged_by_all_of_them(
    error: Exception | None, state: HostState
) -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async def fail() -> None:
        if error is not None:
            raise error

    async def visit_all() -> None:
        async with crawl.gate.turn(PUBLIC), anyio.create_task_group() as tasks:
            tasks.start_soon(fail)
            tasks.start_soon(crawl.visit, PRIVATE)

    with pytest.raises(ExceptionGroup):
        await visit_all()

    assert crawl.gate.status(PUBLIC).state is state


async def test_cancelled_turn_is_no_failure_of_the_host() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    with anyio.CancelScope() as scope:
        async with crawl.gate.turn(PUBLIC):
            scope.cancel()
            await anyio.lowlevel.checkpoint()

    assert crawl.gate.status(PUBLIC).state is HostState.OPEN
    assert crawl.gate.status(PUBLIC).under_way == 0


# --- cancellation, and turns that nobody ends ---------------------------------------


async def test_place_of_a_cancelled_waiter_goes_to_the_next() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit()

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as first:
                first.start_soon(crawl.visit)
                await let_others_run()
                tasks.start_soon(partial(crawl.visit, f"{ORIGIN}/next"))
                await let_others_run()
                scope.cancel()
        await crawl.clock.pass_time(DELAY)

    assert crawl.began[1:] == [(3_600 + DELAY, f"{ORIGIN}/next")]


@pytest.mark.parametrize("delay", [0.0, 1.0])
async def test_turn_that_is_cancelled_anywhere_leaves_nothing_behind(
    delay: float,
) -> None:
    for number in range(1, 100):
        clock = ManualClock()
        crawl = Crawl(clock=clock, ledger=SlowLedger(clock=clock), default_delay=0.0)
        crawl.serve(crawl_delay=delay)
        is_cancelled = await crawl.is_cancelled_at(number, crawl.visit)

        status = crawl.gate.status(PUBLIC)
        assert (status.waiting, status.under_way) == (0, 0)
        assert status.state is HostState.OPEN
        assert crawl.gate.stats.under_way == 0
        if not is_cancelled:
            break
    assert number > 2


async def test_turn_that_is_never_closed_ends_when_it_is_too_old() -> None:
    crawl = Crawl(max_turn_seconds=60)
    await crawl.warm_up()
    leaked = crawl.gate.turn(PUBLIC)
    await leaked.__aenter__()

    await crawl.run(100, crawl.visit)

    assert crawl.times == [3_600 + 60 + DELAY]
    assert crawl.events == [TurnsOverdue(host=HOST, count=1)]
    assert crawl.gate.stats.under_way == 0
    await leaked.__aexit__(None, None, None)
    assert crawl.gate.status(PUBLIC).ready_at == crawl.clock.now() + DELAY


# --- several turns at once ----------------------------------------------------------


async def test_only_turns_that_are_too_old_are_ended() -> None:
    crawl = Crawl(max_concurrent_per_host=2, default_delay=1.0, max_turn_seconds=60)
    leaked = crawl.gate.turn(OTHER_PAGE)

    visits = [partial(crawl.visit, OTHER_PAGE, seconds=59.5)] * 2
    await crawl.run(200, leaked.__aenter__, *visits)

    assert crawl.times == [2, 62.5]  # a delay after the end of the second
    assert [type(event) for event in crawl.events] == [TurnsOverdue]
    assert crawl.gate.stats.under_way == 0


async def test_same_task_cannot_wait_for_itself() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async with crawl.gate.turn(PUBLIC):
        with pytest.raises(RuntimeError, match="that would be a deadlock"):
            await crawl.visit()
        with pytest.raises(TurnNotInTimeError):
            await crawl.visit(patience=0)

    assert crawl.gate.status(PUBLIC).waiting == 0


async def test_same_task_cannot_wait_for_itself_while_a_host_has_one_at_a_time() -> (
    None
):
    """After an incident it waited for `max_turn_seconds`."""
    crawl = Crawl(max_concurrent_per_host=2, default_delay=1.0)

    async def visit_twice() -> None:
        async with crawl.gate.turn(OTHER_PAGE):
            await crawl.clock.wait(10)
            await crawl.visit(OTHER_PAGE)

    visit = partial(crawl.visit, OTHER_PAGE, status=429, retry_after="5")
    await crawl.run(1_000, visit_twice, visit)

    assert [type(error) for error in crawl.errors] == [RuntimeError]


async def test_child_task_waits_for_the_turn_of_its_parent() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async with anyio.create_task_group() as tasks:
        async with crawl.gate.turn(PUBLIC):
            tasks.start_soon(crawl.visit)
            await crawl.clock.pass_time(30)
        await crawl.clock.pass_time(30)

    assert crawl.times == [3_630 + DELAY]


async def test_several_turns_of_a_host_start_a_delay_apart() -> None:
    crawl = Crawl(max_concurrent_per_host=2, default_delay=1.0)

    visits = [partial(crawl.visit, OTHER_PAGE, seconds=time) for time in (20, 30, 20)]
    await crawl.run(100, *visits)

    assert crawl.times == [1, 2, 22]


async def test_end_of_a_turn_wakes_the_next_where_there_is_no_delay() -> None:
    crawl = Crawl(default_delay=0.0)
    await crawl.run(10, *[partial(crawl.visit, OTHER_PAGE, seconds=0.01)] * 3)

    assert crawl.times == pytest.approx([0, 0.01, 0.02])


# --- the fetches of robots.txt ------------------------------------------------------


async def test_robots_txt_is_fetched_while_a_page_of_its_host_has_the_turn() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    await crawl.run(
        100, partial(crawl.visit, seconds=50.0), partial(crawl.visit, HTTP_ORIGIN)
    )

    assert f"{HTTP_ORIGIN}/robots.txt" in crawl.site.requests
    assert crawl.times == [3_600, 3_600 + 50 + DELAY]


async def test_fetch_of_robots_txt_goes_before_waiting_pages() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit()

    await crawl.run(
        100,
        crawl.visit,
        partial(crawl.visit, f"{HTTP_ORIGIN}/"),
        partial(crawl.visit, f"{HTTP_ORIGIN}:81/"),
    )

    assert crawl.times[1:] == [3_600 + wait * DELAY for wait in (3, 4, 5)]


async def test_question_beside_a_gate_waits_for_no_turn() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit(status=429, retry_after="1000")

    assert await crawl.checker.can_fetch(AGENT, f"{HTTP_ORIGIN}/page")

    assert crawl.site.requests[-1] == f"{HTTP_ORIGIN}/robots.txt"


@pytest.mark.parametrize(
    ("status", "headers", "state"),
    [
        (429, {"Retry-After": "1000"}, HostState.BLOCKED),
        (503, {}, HostState.BLOCKED),
        (500, {}, HostState.OPEN),
    ],
)
async def test_robots_txt_tells_of_incidents_too(
    status: int, headers: dict[str, str], state: HostState
) -> None:
    crawl = Crawl()
    crawl.site.serve(ORIGIN, status=status, headers=headers)

    await crawl.run(0, crawl.visit)

    assert crawl.gate.status(PUBLIC).state is state
    assert crawl.gate.status(PUBLIC).ready_at > crawl.clock.now()
    causes = [event.cause for event in crawl.events if isinstance(event, HostBlocked)]
    assert causes == [str(status)] * (state is HostState.BLOCKED)


async def test_429_that_counts_as_an_answer_is_an_incident_too() -> None:
    site, policy = site_of(status=429), Policy.rfc9309()
    async with PolitenessGate(checker_of(site, policy=policy), AGENT) as gate:
        with pytest.raises(TurnNotInTimeError):
            await gate.turn(PUBLIC, patience=1).__aenter__()

        assert gate.status(PUBLIC).state is HostState.BLOCKED


async def test_fetch_that_was_never_sent_keeps_no_delay() -> None:
    crawl = Crawl()
    crawl.site.fail(ORIGIN, httpx.PoolTimeout("all connections are in use"))

    await crawl.run(0, crawl.visit)

    assert crawl.gate.status(PUBLIC).ready_at == crawl.clock.now()


async def test_mistake_of_a_client_reaches_a_caller_without_patience(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A schedule fetched again and again, and nobody learned of the mistake."""
    crawl = Crawl()
    crawl.site.fail(ORIGIN, TypeError("a mistake"))

    with pytest.raises(TurnNotInTimeError):
        await crawl.visit(patience=0)
    await let_others_run()
    with pytest.raises(TypeError, match="a mistake"):
        await crawl.visit(patience=0)

    assert crawl.site.requests == [ROBOTS_TXT]
    assert [record.getMessage() for record in caplog.records] == [
        f"{ORIGIN} failed, and no caller was waiting for it"
    ]


async def test_fetch_that_failed_keeps_the_delay_and_blocks_nobody() -> None:
    crawl = Crawl()
    crawl.site.fail(ORIGIN, httpx.ConnectError("refused"))

    await crawl.run(0, crawl.visit)

    assert crawl.gate.status(PUBLIC).state is HostState.OPEN
    assert crawl.gate.status(PUBLIC).ready_at == crawl.clock.now() + 1


async def test_fetch_that_failed_does_not_end_the_probing_of_a_host() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit(failure=True)
    crawl.clock.advance(2 * FIRST_BACK_OFF)
    crawl.site.fail(HTTP_ORIGIN, httpx.ConnectError("refused"))

    await crawl.run(0, partial(crawl.visit, f"{HTTP_ORIGIN}/"))

    assert crawl.gate.status(PUBLIC).state is HostState.PROBING


async def test_file_of_the_store_needs_no_turn() -> None:
    store = MemoryStore()
    crawl = Crawl(store=store)
    crawl.serve(origin=HTTP_ORIGIN)
    await crawl.warm_up()
    other = checker_of(crawl.site, store=store, clock=crawl.clock)
    await other.can_fetch(AGENT, HTTP_ORIGIN)

    private = partial(crawl.visit, f"{HTTP_ORIGIN}/private", patience=0.1)
    async with crawl.held():
        await crawl.run(1, private)

    assert [type(error) for error in crawl.errors] == [DisallowedError]


class LateStore(GatedStore):
    """Reads at once, and gives what it has read when its gate is opened."""

    async def get(self, key: str) -> bytes | None:
        data = await self.behind.get(key)
        await self._wait_at("get")
        return data


async def test_file_that_is_forgotten_while_the_store_reads_it_is_fetched() -> None:
    store = LateStore("get")
    crawl = Crawl(store=store)
    other = checker_of(crawl.site, store=store.behind, clock=crawl.clock)
    await other.can_fetch(AGENT, PUBLIC)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crawl.visit)
        while not store.waiting:
            await anyio.lowlevel.checkpoint()
        await crawl.checker.forget(PUBLIC)
        store.gate.set()
        await let_others_run()
        await crawl.clock.pass_time(DELAY)

    assert crawl.site.requests == [ROBOTS_TXT] * 2


async def test_turn_for_a_file_that_another_process_has_fetched_is_given_back() -> None:
    store = MemoryStore()
    crawl = Crawl(store=store)
    await crawl.warm_up()
    url = f"{HTTP_ORIGIN}/"
    other = checker_of(crawl.site, store=store, clock=crawl.clock)

    async def fetch_elsewhere() -> None:
        await other.can_fetch(AGENT, url)

    await crawl.run(100, crawl.visit, partial(crawl.visit, url), fetch_elsewhere)

    assert crawl.site.requests.count(f"{HTTP_ORIGIN}/robots.txt") == 1
    assert crawl.times == [3_600, 3_600 + DELAY]


async def test_turn_for_a_file_that_a_plain_question_has_fetched_is_given_back() -> (
    None
):
    crawl = Crawl()
    await crawl.warm_up()
    url = f"{HTTP_ORIGIN}/"

    async def ask() -> None:
        await crawl.checker.can_fetch(AGENT, url)

    await crawl.run(100, crawl.visit, partial(crawl.visit, url), ask)

    assert crawl.site.requests.count(f"{HTTP_ORIGIN}/robots.txt") == 1
    assert crawl.times == [3_600, 3_600 + DELAY]


async def test_caller_that_gives_up_ends_neither_the_turn_nor_the_fetch() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit()
    url = f"{HTTP_ORIGIN}/"

    with pytest.raises(TurnNotInTimeError):
        await crawl.visit(url, patience=0)
    await crawl.clock.pass_time(DELAY)

    assert crawl.checker.peek(AGENT, url) is True


async def test_turn_of_a_fetch_ends_before_a_slow_store_has_its_result() -> None:
    store = GatedStore("update")
    crawl = Crawl(store=store)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crawl.visit)
        while not store.waiting:
            await anyio.lowlevel.checkpoint()
        await let_others_run()
        under_way = crawl.gate.status(PUBLIC).under_way
        store.gate.set()
        await let_others_run()
        await crawl.clock.pass_time(DELAY)

    assert under_way == 0
    assert len(crawl.began) == 1


async def test_gates_that_share_a_ledger_keep_one_pace() -> None:
    clock = ManualClock()
    ledger = LocalLedger(clock=clock)
    crawl = Crawl(clock=clock, ledger=ledger)
    await crawl.warm_up()
    await crawl.visit()

    async with PolitenessGate(crawl.checker, AGENT, ledger=ledger) as other:
        with pytest.raises(TurnNotInTimeError) as caught:
            await other.turn(PUBLIC, patience=1).__aenter__()

    assert caught.value.ready_at == clock.now() + DELAY


# --- which host, and its delay ------------------------------------------------------


async def test_delay_is_the_largest_over_the_origins_of_the_host() -> None:
    crawl = Crawl()
    crawl.site.serve(HTTP_ORIGIN, "User-agent: *\nRequest-rate: 1/30\n")
    await crawl.warm_up()
    await crawl.visit()

    await crawl.run(100, partial(crawl.visit, f"{HTTP_ORIGIN}/page"), crawl.visit)

    assert crawl.times == [3_600, 3_600 + DELAY + 30, 3_600 + DELAY + 60]


async def test_delay_is_taken_back_when_the_file_no_longer_asks_for_it() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit()
    crawl.site.serve(ORIGIN, "")
    await crawl.run(20, partial(crawl.checker.refresh, PUBLIC))

    assert crawl.gate.status(PUBLIC).delay == DELAY
    await crawl.visit()

    assert crawl.gate.status(PUBLIC).delay == 1


async def test_delay_beyond_the_largest_is_cut_and_told_once() -> None:
    crawl = Crawl()
    crawl.serve(crawl_delay="2h")
    await crawl.warm_up()

    await crawl.visit()
    crawl.clock.advance(DAY / 2)
    await crawl.visit()

    assert crawl.gate.status(PUBLIC).delay == 3_600
    assert crawl.events == [
        DelayClamped(host=HOST, origin=ORIGIN, stated_delay=7_200, delay=3_600)
    ]


async def test_hosts_beyond_the_bound_lose_their_delay_until_their_next_turn() -> None:
    crawl = Crawl(max_hosts=1)
    crawl.serve(origin=OTHER_ORIGIN)
    await crawl.warm_up()
    await crawl.visit()
    await crawl.run(DELAY, partial(crawl.visit, OTHER_PAGE))

    await crawl.visit()

    assert crawl.gate.status(PUBLIC).delay == DELAY


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://example.com/", "example.com"),
        ("https://example.com:8443/", "example.com"),
        ("http://[2001:db8::1]/", "[2001:db8::1]"),
        ("http://[2001:db8::1]:81/", "[2001:db8::1]"),
        ("http://a.com./", "a.com"),
    ],
)
async def test_host_is_the_host_name_whatever_the_port(url: str, host: str) -> None:
    assert Crawl().gate.status(url).host == host


async def test_hosts_may_be_named_otherwise() -> None:
    crawl = Crawl(host_of=lambda url: url.split("/")[2].rpartition(".")[2])

    await crawl.run(100, crawl.visit, partial(crawl.visit, "https://b.com/"))

    assert crawl.times == [2 * DELAY, 3 * DELAY]


async def test_host_of_many_origins_keeps_the_longest_delay_and_a_few_of_them() -> None:
    """Each origin more took as long, and as much memory, as all before it."""
    crawl = Crawl(host_of=lambda _: HOST)
    await crawl.gate.aclose()  # nothing waits
    for number in range(60):
        origin = f"https://{number}.com"
        crawl.serve(origin=origin, crawl_delay=60 - number)
        await crawl.checker.can_fetch(AGENT, f"{origin}/")

        assert crawl.gate.status(f"{origin}/").delay == 60

    assert len(crawl.gate._hosts._hosts[HOST].stated) < 60


async def test_host_of_gets_the_url_with_its_normalised_origin() -> None:
    """`http://A.com.` and `http://a.com` were two hosts for most functions."""
    seen = []
    gate = Crawl(host_of=lambda url: seen.append(url) or HOST).gate

    gate.status("HTTP://me:secret@A.com.:80/a/../b?c#d")

    assert seen == ["http://a.com/a/../b?c"]


@pytest.mark.parametrize("host", [None, "", 7])
async def test_host_of_that_names_no_host_is_an_error(host: object) -> None:
    crawl = Crawl(host_of=lambda _: host)

    with pytest.raises(
        TypeError, match="expected host_of to return the name of a host"
    ):
        await crawl.visit()


# --- what it tells ------------------------------------------------------------------


async def test_status_tells_how_the_host_stands() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async with crawl.held(), anyio.create_task_group() as tasks:
        tasks.start_soon(crawl.visit)
        await let_others_run()
        status, stats = crawl.gate.status(PUBLIC), crawl.gate.stats
        tasks.cancel_scope.cancel()

    assert status == HostStatus(
        host=HOST,
        state=HostState.OPEN,
        delay=DELAY,
        waiting=1,
        under_way=1,
        ready_at=crawl.clock.now() + 2 * DELAY,
    )
    assert stats == GateStats(turns=1, waiting=1, under_way=1)
    assert stats.as_dict()["under_way"] == 1


@pytest.mark.parametrize(
    ("error", "report", "cause"),
    [
        (None, {"status": 503}, "503"),
        (None, {"failure": True}, "failure"),
        (None, {"status": 200, "failure": True}, "failure"),
        (TypeError("a mistake"), {}, "TypeError"),
    ],
    ids=["status", "failure", "no page in spite of a 200", "exception"],
)
async def test_host_that_is_blocked_is_told_with_the_cause(
    error: Exception | None,
    report: dict[str, Any],
    cause: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "robotsgate.politeness")
    crawl = Crawl()
    await crawl.warm_up()

    async def visit() -> None:
        async with crawl.gate.turn(PUBLIC) as turn:
            if error is not None:
                raise error
            turn.report(**report)

    with suppress(TypeError):
        await visit()

    ready_at = crawl.gate.ready_at(PUBLIC)
    assert crawl.events == [HostBlocked(host=HOST, cause=cause, ready_at=ready_at)]
    seconds = ready_at - crawl.clock.now()
    assert caplog.messages == [f"backing off from {HOST} for {seconds:.1f} s: {cause}"]


async def test_waits_for_turns_are_counted_even_if_no_turn_comes() -> None:
    crawl = Crawl()
    crawl.serve(delay=3)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(crawl.visit, seconds=100))
        await let_others_run()
        await crawl.run(80, partial(crawl.visit, patience=60))
        waited = crawl.gate.stats.seconds_waited
        await crawl.clock.pass_time(40)

    # After 53 seconds it asked again, and would have had to wait for DELAY at least.
    assert waited == (3 + DELAY) + 53
    assert crawl.gate.stats.not_in_time == 1


async def test_host_that_is_forgotten_while_it_is_blocked_is_told() -> None:
    crawl = Crawl(max_hosts=1)
    await crawl.warm_up()
    await crawl.visit(status=429, retry_after="600")

    await crawl.run(20, partial(crawl.visit, OTHER_PAGE))

    assert crawl.events[1:] == [BlockForgotten(host=HOST)]
    assert crawl.gate.stats.blocks_forgotten == 1


async def test_host_is_ready_now_where_nothing_is_known() -> None:
    crawl = Crawl()

    assert crawl.gate.ready_at(PUBLIC) == crawl.clock.now()
    assert crawl.site.requests == []


async def test_failing_listener_is_counted_and_stops_nothing() -> None:
    crawl = Crawl()
    crawl.gate._listener._on_event = lambda _: 1 / 0  # type: ignore[assignment,return-value]
    await crawl.warm_up()

    await crawl.visit(status=429, retry_after="soon")

    assert crawl.gate.stats.event_failures == 2


# --- the end ------------------------------------------------------------------------


async def test_closed_gate_sends_waiters_away_and_lets_turns_end() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async with crawl.held(), anyio.create_task_group() as tasks:

        async def wait() -> None:
            with pytest.raises(RuntimeError, match="the gate is closed"):
                await crawl.visit()

        tasks.start_soon(wait)
        await let_others_run()
        await crawl.gate.aclose()

    with pytest.raises(RuntimeError, match="the gate is closed"):
        await crawl.visit()


class GatedLedger(LocalLedger):
    """Gives its answers once its gate is open."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock=clock)
        self.gate = anyio.Event()

    async def start(
        self, host: str, pace: Pace, *, is_robots_txt: bool = False
    ) -> Grant | Wait:
        answer = await super().start(host, pace, is_robots_txt=is_robots_txt)
        await self.gate.wait()
        return answer


@pytest.mark.parametrize("is_busy", [False, True], ids=["a grant", "a wait"])
async def test_answer_of_a_ledger_after_the_close_begins_no_turn(
    *, is_busy: bool
) -> None:
    clock = ManualClock()
    ledger = GatedLedger(clock)
    crawl = Crawl(clock=clock, ledger=ledger)
    await crawl.warm_up()
    if is_busy:
        ledger.gate.set()
        await crawl.visit()
        ledger.gate = anyio.Event()

    async def open_ledger() -> None:
        ledger.gate.set()

    await crawl.run(0, crawl.visit, crawl.gate.aclose, open_ledger)

    assert [str(error) for error in crawl.errors] == ["the gate is closed"]
    assert len(crawl.began) == is_busy
    assert crawl.gate.status(PUBLIC).under_way == 0


async def test_closed_gate_ends_the_wait_for_robots_txt() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit()

    async def wait() -> None:
        with pytest.raises(RuntimeError, match="the gate is closed"):
            await crawl.visit(f"{HTTP_ORIGIN}/")

    await crawl.run(0, wait, crawl.gate.aclose)

    assert await crawl.checker.can_fetch(AGENT, f"{HTTP_ORIGIN}/")


async def test_closed_gate_ends_the_turn_of_a_fetch_and_lets_the_fetch_go_on() -> None:
    clock = ManualClock()
    ledger = LocalLedger(clock=clock)
    crawl = Crawl(clock=clock, ledger=ledger)
    crawl.serve(delay=5.0)

    await crawl.run(0, crawl.visit, crawl.gate.aclose)

    async with PolitenessGate(crawl.checker, AGENT, ledger=ledger) as gate:
        assert gate.status(PUBLIC).under_way == 0
    await clock.pass_time(5)
    assert crawl.checker.peek(AGENT, PUBLIC) is True
    assert [str(error) for error in crawl.errors] == ["the gate is closed"]


# --- what callers do wrong ----------------------------------------------------------


BAD_ARGUMENTS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "delay below 0": (
        {"default_delay": -1},
        ValueError,
        "default_delay to be finite and 0 or more",
    ),
    "delay nan": (
        {"default_delay": math.nan},
        ValueError,
        "default_delay to be finite and 0 or more, got nan",
    ),
    "delay infinite": ({"default_delay": math.inf}, ValueError, "got inf"),
    "delay no number": ({"default_delay": "1"}, TypeError, "to be a float, got '1'"),
    "delay a bool": ({"default_delay": True}, TypeError, "to be a float, got True"),
    "max below default": (
        {"max_delay": 0.5},
        ValueError,
        "max_delay to be finite and 1",
    ),
    "max infinite": ({"max_delay": math.inf}, ValueError, "got inf"),
    "factor below 0": (
        {"delay_factor": -1},
        ValueError,
        "delay_factor to be finite and 0 or more",
    ),
    "turn of no time": ({"max_turn_seconds": 0}, ValueError, "above 0, got 0"),
    "no turn": ({"max_concurrent_per_host": 0}, ValueError, "to be 1 or more, got 0"),
    "half a turn": ({"max_concurrent_per_host": 0.5}, TypeError, "an int, got 0.5"),
    "no host": ({"max_hosts": 0}, ValueError, "max_hosts to be 1 or more, got 0"),
    "host_of a name": (
        {"host_of": "example"},
        TypeError,
        "to be callable, got 'example'",
    ),
    "ledger no ledger": ({"ledger": {}}, TypeError, "ledger to have start, end, peek"),
    "on_event no callable": ({"on_event": 7}, TypeError, "a sync callable, got 7"),
    "agent a browser": ({"agent": "!"}, InvalidProductTokenError, "a crawler's name"),
    "no checker": ({"checker": AGENT}, TypeError, "a RobotsChecker, got 'ExampleBot'"),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS)
async def test_bad_argument_is_a_clear_error_and_opens_nothing(case: str) -> None:
    arguments, error, message = BAD_ARGUMENTS[case]
    checker = checker_of(site_of())

    with pytest.raises(error, match=re.escape(message)):
        PolitenessGate(**({"checker": checker, "agent": AGENT} | arguments))

    await PolitenessGate(checker, AGENT).aclose()


@pytest.mark.parametrize(
    ("patience", "error"),
    [(-1, ValueError), (math.nan, ValueError), ("1", TypeError)],
)
async def test_bad_patience_is_a_clear_error(
    patience: Any,  # noqa: ANN401
    error: type[Exception],
) -> None:
    with pytest.raises(error, match="expected patience"):
        Crawl().gate.turn(PUBLIC, patience=patience)


@pytest.mark.parametrize(
    ("report", "error", "message"),
    [
        ({"status": "200"}, TypeError, "expected status to be an int, got '200'"),
        ({"status": True}, TypeError, "expected status to be an int, got True"),
        ({"status": 99}, ValueError, "three-digit status, got 99"),
        ({"status": 1_000}, ValueError, "three-digit status, got 1000"),
        ({"status": 429, "retry_after": 7}, TypeError, "to be a str .*, got 7"),
        ({"retry_after": b"7"}, TypeError, "to be a str .*, got b'7'"),
        ({"response": 7}, TypeError, "a response with status and headers, got 7"),
    ],
    ids=str,
)
async def test_bad_report_is_a_clear_error(
    report: dict[str, Any], error: type[Exception], message: str
) -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async with crawl.gate.turn(PUBLIC) as turn:
        with pytest.raises(error, match=message):
            turn.report(**report)


@pytest.mark.parametrize("response", [
    httpx.Response(429, headers=[("Retry-After", "60"), ("Retry-After", "500")]),
    SimpleNamespace(status_code=429, headers={"retry-after": "500"}),
    SimpleNamespace(status=429, headers={"Retry-After": "500"}),  # as aiohttp has it
], ids=["httpx", "requests", "aiohttp"])  # fmt: skip
async def test_turn_takes_the_response_of_any_client(response: object) -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async with crawl.gate.turn(PUBLIC) as turn:
        turn.report(response)

    assert crawl.gate.ready_at(PUBLIC) >= crawl.clock.now() + 500


async def test_report_outside_of_the_turn_is_a_clear_error() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    turn = crawl.gate.turn(PUBLIC)
    with pytest.raises(RuntimeError, match="expected a report during the turn"):
        turn.report(status=200)

    async with turn:
        pass

    with pytest.raises(RuntimeError, match="expected a report during the turn"):
        turn.report(status=200)
    with pytest.raises(RuntimeError, match="got one already entered"):
        await turn.__aenter__()


@pytest.mark.parametrize(
    ("url", "error"),
    [("example.com/", InvalidURLError), ("ftp://example.com/", UnsupportedError)],
)
async def test_url_without_robots_txt_is_a_clear_error(
    url: str, error: type[Exception]
) -> None:
    crawl = Crawl()

    with pytest.raises(error):
        await crawl.visit(url)

    assert crawl.gate.stats == GateStats()
