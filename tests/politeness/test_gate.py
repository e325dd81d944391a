from __future__ import annotations

import logging
import math
from contextlib import nullcontext
from datetime import timedelta
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
    Origin,
    Policy,
    Reason,
    TurnDeadlockError,
    TurnNotInTimeError,
)
from robotsgate.events import (
    DelayClamped,
    GateStats,
    HostBlocked,
)
from robotsgate.politeness._gate import HostStatus, PolitenessGate
from robotsgate.politeness._host_record import (
    FIRST_BACK_OFF,
    HostState,
    Pace,
)
from robotsgate.politeness._ledger import Grant, LocalLedger, Wait
from tests.cancellation import cancelled_at, each_way
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
from tests.tables import cases

from .crawl import DELAY, Crawl, SlowLedger
from .test_turn_end import of_requests

pytestmark = pytest.mark.anyio

HOST = "example.com"
HTTP_ORIGIN = "http://example.com"
OTHER_PAGE = f"{OTHER_ORIGIN}/page"
URLS = (PUBLIC, OTHER_PAGE)


# --- robots.txt first, then the page ------------------------------------------------


async def test_delay_factor_lengthens_the_delay_after_a_slow_page() -> None:
    crawl = Crawl(delay_factor=5.0)

    await crawl.run(100, *[partial(crawl.visit, seconds=4)] * 2)

    assert crawl.times == [DELAY, DELAY + 4 + 5 * 4]


async def test_disallowed_url_is_refused_without_waiting(crawl: Crawl) -> None:
    async with crawl.open_turn():
        with pytest.raises(DisallowedError) as caught:
            await crawl.visit(PRIVATE)

    assert caught.value.verdict.reason is Reason.DISALLOWED_BY_RULE
    assert crawl.gate.stats.disallowed == 1


async def test_turn_that_is_ready_begins_without_suspending(crawl: Crawl) -> None:
    answered_at_once(crawl.visit())


@pytest.mark.parametrize("url", ["HTTPS://EXAMPLE.com:443/public", httpx.URL(PUBLIC)])
async def test_turn_normalizes_urls_and_accepts_url_objects(
    crawl: Crawl, url: str | httpx.URL
) -> None:
    await crawl.visit(url)

    assert crawl.gate.status(PUBLIC).ready_at == crawl.clock.now() + DELAY


# --- robots.txt changes during the wait ---------------------------------------------


async def test_url_that_becomes_disallowed_during_the_wait_gets_no_turn() -> None:
    crawl = Crawl()
    crawl.serve(headers={"Cache-Control": "max-age=3700"})
    await crawl.warm_up()
    crawl.serve("Disallow: /\n")
    await crawl.visit(status=429, retry_after="200")

    await crawl.run(500, crawl.visit)

    assert len(crawl.starts) == 1
    assert [type(error) for error in crawl.errors] == [DisallowedError]
    assert crawl.site.requests == [ROBOTS_TXT, ROBOTS_TXT]


async def test_turns_keep_order_and_delay_if_robots_txt_expires_during_the_wait() -> (
    None
):
    crawl = Crawl()
    crawl.serve(headers={"Cache-Control": "max-age=3700"})
    await crawl.warm_up()
    await crawl.visit(status=429, retry_after="200")
    urls = [f"{ORIGIN}/{number}" for number in range(3)]

    await crawl.run(500, *[partial(crawl.visit, url) for url in urls])

    assert [url for _, url in crawl.starts[1:]] == urls
    assert crawl.times[1] == 3_800 + 1.6 * DELAY, "the fetch comes before the page"
    assert crawl.site.requests == [ROBOTS_TXT, ROBOTS_TXT]


async def test_pages_get_turns_even_if_robots_txt_expires_within_the_delay() -> None:
    crawl = Crawl(policy=Policy(min_lifetime=60))
    crawl.serve(crawl_delay=300, headers={"Cache-Control": "max-age=60"})

    await crawl.run(10_000, *[crawl.visit] * 3)

    assert len(crawl.starts) == 3
    assert len(crawl.site.requests) <= 4


async def test_crawl_delay_refreshed_by_another_task_is_kept(crawl: Crawl) -> None:
    """The first page after the fetch used to start too soon."""
    await crawl.visit()
    crawl.serve(crawl_delay=60)

    async def refresh() -> None:
        await crawl.checker.refresh(PUBLIC)
        await crawl.checker.can_fetch(AGENT, PUBLIC)

    await crawl.run(100, crawl.visit, refresh)

    assert crawl.times == [3_600, 3_600 + 60]


class WatchedLedger(LocalLedger):
    """Keeps its answers.

    Attributes:
        closes: a gate that is closed before the ledger answers.
    """

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 (LocalLedger's)
        super().__init__(**options)
        self.answers: list[Grant | Wait] = []
        self.closes: PolitenessGate | None = None

    async def start(
        self, host: str, pace: Pace, *, is_robots_txt: bool = False
    ) -> Grant | Wait:
        answer = await super().start(host, pace, is_robots_txt=is_robots_txt)
        self.answers.append(answer)
        if self.closes is not None:
            await self.closes.aclose()
        return answer


async def test_ledger_is_not_called_when_a_queued_caller_gives_up() -> None:
    crawl = await Crawl(ledger=WatchedLedger).warm_up()
    await crawl.visit()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crawl.visit)
        await let_others_run()
        calls = len(crawl.ledger.answers)
        with anyio.move_on_after(0):
            await crawl.visit()
        await let_others_run()

        assert len(crawl.ledger.answers) == calls
        await crawl.clock.pass_time(100)
    assert len(crawl.starts) == 2


async def test_unchanged_permission_needs_no_second_grant_from_the_ledger() -> None:
    crawl = await Crawl(ledger=WatchedLedger).warm_up()

    await crawl.run(100, crawl.visit, crawl.visit)

    grants = sum(isinstance(answer, Grant) for answer in crawl.ledger.answers)
    assert len(crawl.starts) == grants == 2


# --- 429 and 503 for robots.txt -----------------------------------------------------


@pytest.fixture
async def busy(crawl: Crawl) -> Crawl:
    """A crawl with a stale copy of robots.txt, after a direct check has got a 429."""
    crawl.site.serve(ORIGIN, status=429, headers={"Retry-After": "3600"})
    crawl.clock.advance(DAY)
    assert await crawl.checker.can_fetch(AGENT, PUBLIC)
    crawl.serve()
    return crawl


async def test_page_waits_for_the_retry_after_seen_by_a_check(busy: Crawl) -> None:
    """The stale copy used to let the page start immediately."""
    began_at = busy.seconds

    with pytest.raises(TurnNotInTimeError) as caught:
        await busy.visit(patience=60)
    await busy.run(4_000, busy.visit)

    assert caught.value.ready_at == busy.clock.now() - 4_000 + 3_600
    assert busy.times == [began_at + 3_600 + DELAY]  # robots.txt first


async def test_page_waits_for_the_retry_after_of_a_429_that_allows_everything() -> None:
    """Retry-After used to be ignored if the policy treats a 429 as "no file"."""
    crawl = Crawl(policy=Policy.rfc9309())
    crawl.site.serve(ORIGIN, status=429, headers={"Retry-After": "7200"})
    assert await crawl.checker.can_fetch(AGENT, PUBLIC)
    began_at = crawl.seconds

    assert crawl.gate.ready_at(PUBLIC) == crawl.clock.now() + 7_200
    await crawl.run(8_000, crawl.visit)

    assert crawl.times == [began_at + 7_200]


async def test_retry_after_of_one_origin_does_not_delay_others(busy: Crawl) -> None:
    await busy.checker.can_fetch(AGENT, f"{HTTP_ORIGIN}/")
    began_at = busy.seconds

    await busy.run(4_000, busy.visit, partial(busy.visit, f"{HTTP_ORIGIN}/"))

    assert busy.starts[0] == (began_at, f"{HTTP_ORIGIN}/")
    assert busy.starts[1][0] >= began_at + 3_600


async def test_clock_set_back_does_not_make_an_old_file_look_new(crawl: Crawl) -> None:
    """An entry from the future used to count as fetched during the wait."""
    crawl.serve("Disallow: /\n")
    crawl.clock.set(NOW - 2 * DAY)

    await crawl.run(100, crawl.visit)

    assert [type(error) for error in crawl.errors] == [DisallowedError]


async def test_closing_the_gate_ends_the_wait_for_the_retry_after(busy: Crawl) -> None:
    await busy.run(0, busy.visit, busy.gate.aclose)

    assert [str(error) for error in busy.errors] == ["the gate is closed"]


# --- forgetting incidents -----------------------------------------------------------


async def test_forgotten_host_lets_callers_try_robots_txt_again(busy: Crawl) -> None:
    began_at = busy.seconds

    async def refresh_and_forget() -> None:
        await busy.gate.forget(OTHER_PAGE)
        await busy.gate.forget(PUBLIC)  # only waits again
        await busy.checker.refresh(PUBLIC)
        await busy.gate.forget(PUBLIC)

    await busy.run(5_000, busy.visit, refresh_and_forget)

    assert busy.times == [began_at]


async def test_forgetting_what_is_not_a_url_raises() -> None:
    with pytest.raises(InvalidURLError):
        await Crawl().gate.forget("shop")


@each_way
async def test_cancelled_forget_wakes_callers(way: str) -> None:
    crawl = await Crawl(ledger=SlowLedger).warm_up()
    await crawl.visit(status=429, retry_after="3600")

    async def forget() -> None:
        assert await cancelled_at(1, partial(crawl.gate.forget, PRIVATE), way=way)

    await crawl.run(5_000, crawl.visit, forget)

    assert crawl.times == [3_600, 3_600 + DELAY]


# --- patience -----------------------------------------------------------------------


async def test_too_little_patience_raises_at_once_with_the_time(crawl: Crawl) -> None:
    await crawl.visit()

    with pytest.raises(TurnNotInTimeError, match=r"at least 10\.0 s away") as caught:
        answered_at_once(crawl.visit(patience=0))
    with pytest.raises(TurnNotInTimeError):
        answered_at_once(crawl.visit(patience=DELAY - 1))

    assert caught.value.ready_at == crawl.clock.now() + DELAY
    assert crawl.gate.stats.not_in_time == 2


async def test_patience_must_cover_the_delays_of_callers_ahead(crawl: Crawl) -> None:
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
    assert len(crawl.starts) == 4


async def test_patience_assumes_good_responses_for_callers_ahead(crawl: Crawl) -> None:
    """Callers with enough patience used to be refused while an incident wore off."""
    await crawl.visit(status=429, retry_after="5")

    await crawl.run(100, *[crawl.visit] * 3, partial(crawl.visit, patience=65))

    assert crawl.times[-1] - crawl.times[0] < 65
    assert crawl.errors == []


async def test_patience_includes_the_robots_txt_fetch() -> None:
    crawl = Crawl()
    crawl.serve(delay=8)

    await crawl.run(10, partial(crawl.visit, patience=7))
    await crawl.run(20, partial(crawl.visit, patience=DELAY))

    assert [type(error) for error in crawl.errors] == [TurnNotInTimeError]
    assert crawl.site.requests == [ROBOTS_TXT], "the fetch continued"
    assert crawl.times == [8 + DELAY]


# --- reports and incidents ----------------------------------------------------------


@cases("reports error cause seconds", {
    "429": ([{"status": 429}], None, "429", FIRST_BACK_OFF),
    "failure": ([{"failure": True}], None, "failure", FIRST_BACK_OFF),
    # aiohttp accepts such a status, and so do some clients over HTTP/2.
    "status below 100": (
        [{"response": SimpleNamespace(status=0, headers={})}], None, "failure", 60,
    ),
    "Retry-After": ([{"status": 429, "retry_after": "500"}], None, "429", 500),
    "httpx": ([{"response": httpx.Response(429, headers=[
        ("Retry-After", "60"), ("Retry-After", "500"),
    ])}], None, "429", 500),
    "only the status": ([{"response": 429, "retry_after": "500"}], None, "429", 500),
    "nothing": ([], None, "", 0),
    "replaced report": (
        [{"status": 429, "retry_after": "500"}, {"status": 200}], None, "", 0,
    ),
    "bug": ([], ValueError("broken"), "", 0),
    "failure of the network": ([], TimeoutError(), "TimeoutError", FIRST_BACK_OFF),
    "failure after a report": ([{"status": 200}], TimeoutError(), "", 0),
    "exception with a status": ([], of_requests(429), "429", 7),
    "exception with the status of another host": (
        [], of_requests(429, OTHER_PAGE), "", 0,
    ),
})  # fmt: skip
async def test_result_of_a_turn_may_block_its_host(
    *,
    crawl: Crawl,
    reports: list[dict[str, Any]],
    error: BaseException | None,
    cause: str,
    seconds: float,
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def visit() -> None:
        async with crawl.gate.turn(PUBLIC) as turn:
            for report in reports:
                turn.report(**report)
            if error is not None:
                raise error

    with nullcontext() if error is None else pytest.raises(type(error)):
        await visit()

    status = crawl.gate.status(PUBLIC)
    waits = status.ready_at - crawl.clock.now()
    assert status.state is (HostState.BLOCKED if cause else HostState.OPEN)
    assert crawl.gate.stats.incidents == bool(cause)
    assert max(seconds, DELAY) <= waits <= 1.1 * max(seconds, 2 * DELAY)
    if not cause:
        assert (crawl.events, caplog.messages) == ([], [])
        return
    event = HostBlocked(host=HOST, cause=cause, ready_at=status.ready_at)
    assert crawl.events == [event]
    text = f"backing off from {HOST} for {waits:.1f} s: {cause}"
    assert caplog.record_tuples == [("robotsgate.politeness", logging.WARNING, text)]


# --- cancellation, and turns that are never closed ----------------------------------


async def test_place_of_a_cancelled_waiter_goes_to_the_next(crawl: Crawl) -> None:
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

    assert crawl.starts[1:] == [(3_600 + DELAY, f"{ORIGIN}/next")]


@each_way
@pytest.mark.parametrize("delay", [0.0, 1.0])
async def test_turn_cancelled_at_any_point_leaves_nothing_behind(
    way: str, delay: float
) -> None:
    for number in range(1, 100):
        crawl = Crawl(ledger=SlowLedger, default_delay=0.0)
        crawl.serve(crawl_delay=delay)
        is_cancelled = await crawl.is_cancelled_at(number, crawl.visit, way=way)

        status = crawl.gate.status(PUBLIC)
        assert (status.waiting, status.under_way) == (0, 0)
        assert status.state is HostState.OPEN
        assert crawl.gate.stats.under_way == 0
        if not is_cancelled:
            break
    assert 2 < number < 99


async def test_turn_that_is_never_closed_ends_when_overdue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    crawl = await Crawl(max_turn_seconds=60).warm_up()
    leaked = crawl.gate.turn("https://name:secret@example.com/")
    await leaked.__aenter__()

    await crawl.run(100, crawl.visit)

    assert crawl.times == [3_600 + 60 + DELAY]
    stats = crawl.gate.stats
    assert (stats.overdue, stats.under_way) == (1, 0)
    assert caplog.messages[-1] == (
        f"after 60 s, open turns for {HOST} no longer count (1): https://example.com/"
    )
    await leaked.__aexit__(None, None, None)
    assert crawl.gate.status(PUBLIC).ready_at == crawl.clock.now() + DELAY


# --- several turns at once ----------------------------------------------------------


async def test_only_overdue_turns_are_ended() -> None:
    crawl = Crawl(max_concurrent_per_host=2, default_delay=1.0, max_turn_seconds=60)
    leaked = crawl.gate.turn(OTHER_PAGE)

    visits = [partial(crawl.visit, OTHER_PAGE, seconds=59.5)] * 2
    await crawl.run(200, leaked.__aenter__, *visits)

    assert crawl.times == [2, 62.5]  # a delay after the second one ends
    stats = crawl.gate.stats
    assert (stats.overdue, stats.under_way) == (1, 0)


@cases("retry_afters blocks", {
    "the same": ([None, None, None], 1),
    "a longer one": ([None, None, "1000"], 2),
})  # fmt: skip
async def test_block_is_reported_once(
    retry_afters: list[str | None], blocks: int
) -> None:
    crawl = Crawl(max_concurrent_per_host=3, default_delay=0.0)
    await crawl.checker.can_fetch(AGENT, OTHER_PAGE)
    visit = partial(crawl.visit, OTHER_PAGE, status=503, seconds=1)

    await crawl.run(2, *[partial(visit, retry_after=each) for each in retry_afters])

    assert sum(isinstance(event, HostBlocked) for event in crawl.events) == blocks


async def test_task_cannot_wait_for_its_own_turn(crawl: Crawl) -> None:
    async with crawl.gate.turn(PUBLIC):
        with pytest.raises(TurnDeadlockError, match=f"turn of '{PUBLIC}'"):
            await crawl.visit()
        with pytest.raises(TurnNotInTimeError):
            await crawl.visit(patience=0)

    assert crawl.gate.status(PUBLIC).waiting == 0


@cases("max_at_once visits waits", {
    "a long turn": (1, [100, 0, 0], [(1, 30, 0)]),
    "two long turns": (2, [100, 70, 0, 0], [(2, 30, 0)]),
    "a long turn that leaves room": (2, [200, 25, 25, 25, 25], []),
    "many short turns": (1, [25, 25, 25, 25], []),
    "another turn after an incident": (2, [100, 429, 0, 0], [(2, 61, 0)]),
    "no turn after an incident": (2, [429, 0], []),
})  # fmt: skip
async def test_first_in_the_queue_tells_once_that_it_waits_for(
    caplog: pytest.LogCaptureFixture,
    max_at_once: int,
    visits: list[int],
    waits: list[tuple[int, int, int]],
) -> None:
    """Each visit takes as many seconds as given, or ends at once with a 429."""
    crawl = Crawl(max_concurrent_per_host=max_at_once, default_delay=0.0)
    await crawl.checker.can_fetch(AGENT, OTHER_PAGE)
    urls = [f"{OTHER_PAGE}/{number}" for number in range(len(visits))]

    await crawl.run(1_000, *[
        partial(crawl.visit, url, status=429)
        if seconds == 429
        else partial(crawl.visit, url, seconds=seconds)
        for url, seconds in zip(urls, visits, strict=True)
    ])  # fmt: skip

    assert [text for text in caplog.messages if "waiting" in text] == [
        f"{urls[waiting]} is still waiting after {seconds} s, because the turn of"
        f" {urls[held]} is open"
        for waiting, seconds, held in waits
    ]


async def test_turn_may_outlive_its_task() -> None:
    """A later task with the same id used to get an error about a deadlock."""
    crawl = Crawl(default_delay=0.0)
    await crawl.checker.can_fetch(AGENT, OTHER_PAGE)
    first = crawl.gate.turn(OTHER_PAGE)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(first.__aenter__)

    end = partial(first.__aexit__, None, None, None)
    await crawl.run(10, *[partial(crawl.visit, OTHER_PAGE)] * 20, end)

    assert (crawl.errors, len(crawl.starts)) == ([], 20)


# --- robots.txt fetches -------------------------------------------------------------


async def test_robots_txt_fetch_goes_ahead_of_waiting_pages(crawl: Crawl) -> None:
    await crawl.visit()

    await crawl.run(
        100,
        crawl.visit,
        partial(crawl.visit, f"{HTTP_ORIGIN}/"),
        partial(crawl.visit, f"{HTTP_ORIGIN}:81/"),
    )

    assert crawl.times[1:] == [3_600 + wait * DELAY for wait in (3, 4, 5)]


@cases("status retry_after seconds state", {
    "429": (429, "1000", 1_000, HostState.BLOCKED),
    "503": (503, None, FIRST_BACK_OFF, HostState.BLOCKED),
    "500 that asks to wait": (500, "1000", 1_000, HostState.OPEN),
    "404, which allows all pages": (404, "1000", 1, HostState.OPEN),
})  # fmt: skip
async def test_response_for_robots_txt_delays_the_hosts_pages(
    status: int, retry_after: str | None, seconds: float, state: HostState
) -> None:
    crawl = Crawl()
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    crawl.site.serve(ORIGIN, status=status, headers=headers)

    await crawl.run(0, partial(crawl.visit, patience=0))
    host = crawl.gate.status(PUBLIC)

    assert host.state is state
    assert seconds <= host.ready_at - crawl.clock.now() <= 1.1 * seconds
    causes = [event.cause for event in crawl.events if isinstance(event, HostBlocked)]
    assert causes == [str(status)] * (state is HostState.BLOCKED)


@cases("error seconds", {
    "refused": (httpx.ConnectError("refused"), 1),
    "never sent": (httpx.PoolTimeout("all connections are in use"), 0),
})  # fmt: skip
async def test_failed_fetch_causes_a_delay_if_it_was_sent_but_no_block(
    error: Exception, seconds: float
) -> None:
    crawl = Crawl()
    crawl.site.fail(ORIGIN, error)

    await crawl.run(0, crawl.visit)

    status = crawl.gate.status(PUBLIC)
    assert status.state is HostState.OPEN
    assert status.ready_at == crawl.clock.now() + seconds


async def test_bug_in_the_client_is_raised_even_without_patience(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A schedule used to fetch again and again without reporting the bug."""
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


async def test_failed_fetch_does_not_end_probing(crawl: Crawl) -> None:
    await crawl.visit(failure=True)
    crawl.clock.advance(2 * FIRST_BACK_OFF)
    crawl.site.fail(HTTP_ORIGIN, httpx.ConnectError("refused"))

    await crawl.run(0, partial(crawl.visit, f"{HTTP_ORIGIN}/"))

    assert crawl.gate.status(PUBLIC).state is HostState.PROBING


async def test_file_in_the_store_needs_no_turn() -> None:
    store = MemoryStore()
    crawl = Crawl(store=store)
    crawl.serve(origin=HTTP_ORIGIN)
    await crawl.warm_up()
    other = checker_of(crawl.site, store=store, clock=crawl.clock)
    await other.can_fetch(AGENT, HTTP_ORIGIN)

    private = partial(crawl.visit, f"{HTTP_ORIGIN}/private", patience=0.1)
    async with crawl.open_turn():
        await crawl.run(1, private)

    assert [type(error) for error in crawl.errors] == [DisallowedError]


async def test_turn_for_a_file_fetched_by_a_check_is_given_back(crawl: Crawl) -> None:
    url = f"{HTTP_ORIGIN}/"

    async def check() -> None:
        await crawl.checker.can_fetch(AGENT, url)

    await crawl.run(100, crawl.visit, partial(crawl.visit, url), check)

    assert crawl.site.requests.count(f"{HTTP_ORIGIN}/robots.txt") == 1
    assert crawl.times == [3_600, 3_600 + DELAY]


async def test_turn_of_a_fetch_ends_before_a_slow_store_saves_the_result() -> None:
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
    assert len(crawl.starts) == 1


# --- hosts and their delays ---------------------------------------------------------


@pytest.mark.parametrize("max_hosts", [1, 2], ids=["one is evicted", "both known"])
async def test_each_host_may_have_a_default_delay_of_its_own(max_hosts: int) -> None:
    delays = {HOST: DELAY + 5, Origin.from_url(OTHER_ORIGIN).host: 3.0}
    crawl = Crawl(default_delay=delays.__getitem__, max_hosts=max_hosts)
    visit_other = partial(crawl.visit, OTHER_PAGE)

    await crawl.run(100, crawl.visit, visit_other, crawl.visit, visit_other)

    times = {url: [at for at, page in crawl.starts if page == url] for url in URLS}
    assert times == {PUBLIC: [15, 30], OTHER_PAGE: [3, 6]}


async def test_default_delay_that_changes_applies_from_the_next_turn_on() -> None:
    delays = {HOST: 60.0}
    crawl = await Crawl(default_delay=delays.__getitem__).warm_up()

    for delay, expected in [(60, 60), (1, DELAY), (30, 30)]:
        delays[HOST] = delay
        await crawl.run(100, crawl.visit, crawl.visit)

        assert crawl.times[-1] - crawl.times[-2] == expected
        assert crawl.gate.status(PUBLIC).delay == expected


async def test_removed_crawl_delay_is_dropped_at_the_next_turn(crawl: Crawl) -> None:
    await crawl.visit()
    crawl.site.serve(ORIGIN, "")
    await crawl.run(20, partial(crawl.checker.refresh, PUBLIC))

    assert crawl.gate.status(PUBLIC).delay == DELAY
    await crawl.visit()

    assert crawl.gate.status(PUBLIC).delay == 1


async def test_delay_above_max_delay_is_clamped_and_reported_once() -> None:
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
async def test_host_is_the_host_name_without_the_port(url: str, host: str) -> None:
    assert Crawl().gate.status(url).host == host


async def test_host_with_many_origins_keeps_a_few_and_the_longest_delay() -> None:
    """Each new origin used to take as much time and memory as all earlier ones."""
    crawl = Crawl(host_of=lambda _: HOST)
    await crawl.gate.aclose()  # so that nothing waits
    for number in range(60):
        origin = f"https://{number}.com"
        crawl.serve(origin=origin, crawl_delay=60 - number)
        await crawl.checker.can_fetch(AGENT, f"{origin}/")

        assert crawl.gate.status(f"{origin}/").delay == 60

    assert len(crawl.gate._hosts._hosts[HOST].stated) < 60


async def test_host_of_gets_the_url_with_a_normalized_origin() -> None:
    """Most functions used to treat `http://A.com.` and `http://a.com` as two hosts."""
    seen = []
    gate = Crawl(host_of=lambda url: seen.append(url) or HOST).gate

    gate.status("HTTP://me:secret@A.com.:80/a/../b?c#d")

    assert seen == ["http://a.com/a/../b?c"]


async def test_host_of_that_returns_no_host_name_raises() -> None:
    for name in (None, "", 7):
        with pytest.raises(TypeError, match="expected host_of to return the name"):
            Crawl(host_of=lambda _, name=name: name).gate.status(PUBLIC)


# --- status, stats and events -------------------------------------------------------


async def test_status_and_stats_count_open_and_waiting_turns(crawl: Crawl) -> None:
    async with crawl.open_turn(), anyio.create_task_group() as tasks:
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


async def test_waiting_time_is_counted_even_if_no_turn_is_granted() -> None:
    crawl = Crawl()
    crawl.serve(delay=3)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(partial(crawl.visit, seconds=100))
        await let_others_run()
        await crawl.run(80, partial(crawl.visit, patience=60))
        waited = crawl.gate.stats.seconds_waited
        await crawl.clock.pass_time(40)

    # After 53 s it tried again, and another DELAY would have exceeded its patience.
    assert waited == (3 + DELAY) + 53
    assert crawl.gate.stats.not_in_time == 1


async def test_evictions_of_blocked_hosts_are_counted() -> None:
    crawl = await Crawl(max_hosts=1).warm_up()
    await crawl.visit(status=429, retry_after="600")

    await crawl.run(20, partial(crawl.visit, OTHER_PAGE))

    assert crawl.gate.stats.blocks_forgotten == 1


async def test_failing_listener_is_counted_and_otherwise_ignored() -> None:
    crawl = Crawl()
    crawl.gate._listener._on_event = lambda _: 1 / 0  # type: ignore[assignment,return-value]
    await crawl.warm_up()

    await crawl.visit(status=429)

    assert crawl.gate.stats.event_failures == 1


# --- closing the gate ---------------------------------------------------------------


async def test_closing_fails_waiters_but_not_turns_and_fetches(crawl: Crawl) -> None:
    url = f"{HTTP_ORIGIN}/"

    async with crawl.open_turn():
        await crawl.run(0, crawl.visit, partial(crawl.visit, url), crawl.gate.aclose)
    await crawl.run(0, crawl.visit)

    assert [str(error) for error in crawl.errors] == ["the gate is closed"] * 3
    assert await crawl.checker.can_fetch(AGENT, url)


@pytest.mark.parametrize("is_busy", [False, True], ids=["a grant", "a wait"])
async def test_ledger_answer_after_closing_begins_no_turn(*, is_busy: bool) -> None:
    crawl = await Crawl(ledger=WatchedLedger).warm_up()
    if is_busy:
        await crawl.visit()
    crawl.ledger.closes = crawl.gate

    with pytest.raises(RuntimeError, match="the gate is closed"):
        await crawl.visit()

    assert len(crawl.starts) == is_busy
    assert crawl.gate.status(PUBLIC).under_way == 0


async def test_closing_the_gate_ends_a_fetchs_turn_but_not_the_fetch() -> None:
    crawl = Crawl()
    crawl.serve(delay=5.0)

    async with crawl.gate as gate:
        await crawl.run(0, crawl.visit, gate.aclose)

    assert gate.status(PUBLIC).under_way == 0
    await crawl.clock.pass_time(5)
    assert crawl.checker.peek(AGENT, PUBLIC) is True
    assert [str(error) for error in crawl.errors] == ["the gate is closed"]


# --- bad arguments and misuse -------------------------------------------------------


_FINITE = "to be finite and"


@cases("arguments error message", {
    "delay below 0": ({"default_delay": -1}, ValueError, f"{_FINITE} 0 or more"),
    "delay is nan": ({"default_delay": math.nan}, ValueError, "or more, got nan"),
    "delay is infinite": ({"default_delay": math.inf}, ValueError, "got inf"),
    "delay is a bool": ({"default_delay": True}, TypeError, "a float, got True"),
    "short max_delay": ({"max_delay": 0.5}, ValueError, f"max_delay {_FINITE} 1"),
    "factor below 0": ({"delay_factor": -1}, ValueError, f"delay_factor {_FINITE} 0"),
    "max_turn_seconds is 0": ({"max_turn_seconds": 0}, ValueError, "above 0, got 0"),
    "negative max_delay":
        ({"max_delay": timedelta(-1)}, ValueError, "1 or more, got -86400.0"),
    "factor is a duration": ({"delay_factor": timedelta(1)}, TypeError, "a float, got"),
    "endless turn": ({"max_turn_seconds": math.inf}, ValueError, "turn_seconds to be"),
    "zero turns": ({"max_concurrent_per_host": 0}, ValueError, "1 or more, got 0"),
    "zero hosts": ({"max_hosts": 0}, ValueError, "max_hosts to be 1 or more, got 0"),
    "host_of is a name": ({"host_of": "a"}, TypeError, "to be callable, got 'a'"),
    "ledger is a dict": ({"ledger": {}}, TypeError, "ledger to have start, end, peek"),
    "on_event is an int": ({"on_event": 7}, TypeError, "a sync callable, got 7"),
    "bad agent": ({"agent": "!"}, InvalidProductTokenError, "a crawler's name"),
    "checker is a name": ({"checker": AGENT}, TypeError, f"Checker, got '{AGENT}'"),
})  # fmt: skip
async def test_bad_argument_raises_and_leaves_the_checker_usable(
    arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    checker = checker_of(site_of())

    with pytest.raises(error, match=message):
        PolitenessGate(**({"checker": checker, "agent": AGENT} | arguments))

    await PolitenessGate(checker, AGENT).aclose()


@cases("delay", {
    "a timedelta": (timedelta(minutes=2),),
    "a function that returns a timedelta": (lambda _: timedelta(minutes=2),),
})  # fmt: skip
async def test_durations_can_be_timedeltas(delay: Any) -> None:  # noqa: ANN401 (a timedelta or a function)
    crawl = await Crawl(default_delay=delay, max_delay=timedelta(hours=1)).warm_up()
    await crawl.visit()

    with pytest.raises(TurnNotInTimeError, match=r"at least 120\.0 s away"):
        answered_at_once(crawl.visit(patience=timedelta(minutes=1)))


@cases("result error message", {
    "no delay": (None, TypeError, r"default_delay\('example.com'\) to be a float, got"),
    "below 0": (-1.0, ValueError, r"\('example.com'\) to be finite and 0 or more, got"),
    "not a number": (math.nan, ValueError, "or more, got nan"),
    "too long": (4e3, ValueError, r"at most max_delay \(3600\), got 4000.0"),
    "an exception": (KeyError("shop"), KeyError, "shop"),
})  # fmt: skip
async def test_bad_default_delay_of_a_host_raises(
    result: object, error: type[Exception], message: str
) -> None:
    def delay_of(_: str) -> Any:  # noqa: ANN401 (a bad delay)
        if isinstance(result, Exception):
            raise result
        return result

    crawl = Crawl(default_delay=delay_of)

    with pytest.raises(error, match=message):
        await crawl.visit()
    assert crawl.gate.stats.waiting == 0


@cases("report error message", {
    "status is a str": ({"status": "200"}, TypeError, "an int, got '200'"),
    "status is a bool": ({"status": True}, TypeError, "an int, got True"),
    "status is too small": ({"status": 99}, ValueError, "three-digit status, got 99"),
    "status is too large": ({"status": 1_000}, ValueError, "status, got 1000"),
    "only a status, too small": ({"response": 7}, ValueError, "status, got 7"),
    "only a bool": ({"response": False}, TypeError, "an int, got False"),
    "Retry-After is an int": ({"retry_after": 7}, TypeError, "to be a str .*, got 7"),
    "no response": ({"response": "200"}, TypeError, "with status and headers, got '2"),
})  # fmt: skip
async def test_bad_report_raises_and_does_not_block_the_host(
    crawl: Crawl, report: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await crawl.visit(**report)

    assert crawl.gate.status(PUBLIC).state is HostState.OPEN


async def test_reporting_outside_the_turn_or_reentering_it_raises(crawl: Crawl) -> None:
    turn = crawl.gate.turn(PUBLIC)
    with pytest.raises(RuntimeError, match="expected a report during the turn"):
        turn.report(status=200)

    async with turn:
        pass

    with pytest.raises(RuntimeError, match="expected a report during the turn"):
        turn.report(status=200)
    with pytest.raises(RuntimeError, match="got one already entered"):
        await turn.__aenter__()
