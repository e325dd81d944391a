from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing, suppress
from functools import partial
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from robotsgate import (
    DisallowedError,
    InvalidURLError,
    Origin,
    PolitenessGate,
    RetriesExhaustedError,
    TurnNotInTimeError,
    UnsupportedError,
)
from robotsgate.events import HostBlocked, HostSkipped, URLSkipped, WindowFilled
from robotsgate.politeness import _turns
from tests.cancellation import InterruptedAt, each_way
from tests.checking.builders import (
    AGENT,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    UnreadableSite,
    checker_of,
    let_others_run,
)
from tests.tables import cases

from .crawl import DELAY, Crawl, SlowLedger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from robotsgate.events import GateEvent
    from robotsgate.politeness import TurnSchedule
    from robotsgate.politeness._hosts import Claim
    from robotsgate.politeness._turns import Turn

pytestmark = pytest.mark.anyio

PAGES = [f"{ORIGIN}/{number}" for number in range(3)]
OTHER_PAGES = [f"{OTHER_ORIGIN}/{number}" for number in range(3)]


async def crawl_all(crawl: Crawl, urls: Any, seconds: float = 0.0) -> None:  # noqa: ANN401 (schedule's)
    """Visit each of `urls` in its own task."""
    async with anyio.create_task_group() as tasks:
        async for url, turn in crawl.gate.schedule(urls):
            tasks.start_soon(crawl.enter, url, turn, seconds)


async def test_urls_are_returned_as_their_hosts_become_ready() -> None:
    crawl = Crawl(default_delay=1.0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crawl_all, crawl, PAGES + OTHER_PAGES, 3.0)
        await crawl.clock.pass_time(100)

    own = [(round(time, 6), url) for time, url in crawl.starts if url in PAGES]
    others = [(round(time, 6), url) for time, url in crawl.starts if url in OTHER_PAGES]
    assert own == list(zip([10, 23, 36], PAGES, strict=True))
    assert others == list(zip([1, 5, 9], OTHER_PAGES, strict=True))


async def test_turn_is_given_back_if_the_loop_ends_before_entry(crawl: Crawl) -> None:
    """The host used to be blocked for `max_turn_seconds`."""
    async for _ in crawl.gate.schedule(PAGES):
        break
    await crawl.run(400, crawl.visit)

    assert crawl.times == [3_600]
    assert len(crawl.gate._sources) == 0


async def test_turn_entered_after_being_given_back_waits_again(crawl: Crawl) -> None:
    schedule = crawl.gate.schedule(PAGES[:2])

    async def work() -> None:
        url, turn = await anext(schedule)
        second_url, second_turn = await anext(schedule)
        await crawl.enter(second_url, second_turn)
        await crawl.enter(url, turn)

    await crawl.run(2 * DELAY, work)

    assert crawl.starts == [(3_601, PAGES[1]), (3_601 + DELAY, PAGES[0])]
    with pytest.raises(StopAsyncIteration):
        await anext(schedule)


async def test_unfetchable_urls_are_skipped_and_reported(crawl: Crawl) -> None:
    urls = ["relative", PRIVATE, "ftp://example.com/", "https://me:secret@x y/", PUBLIC]

    await crawl.run(DELAY, lambda: crawl_all(crawl, urls))

    reported = [(event.url, type(event.error)) for event in skipped(crawl)]
    assert {event.ready_at for event in skipped(crawl)} == {None}
    assert sorted(reported) == sorted(
        [
            ("relative", InvalidURLError),
            ("ftp://example.com/", UnsupportedError),
            ("https://me:secret@x y/", InvalidURLError),
            (PRIVATE, DisallowedError),
        ]
    )
    assert [url for _, url in crawl.starts] == [PUBLIC]
    assert (
        "secret" not in f"{crawl.events} {[event.as_dict() for event in crawl.events]}"
    )


def skipped(crawl: Crawl) -> Iterator[URLSkipped]:
    for event in crawl.events:
        if not isinstance(event, HostBlocked | WindowFilled):
            assert isinstance(event, URLSkipped)
            yield event


async def worker(
    crawl: Crawl,
    schedule: TurnSchedule,
    seconds: float = 1.0,
    **report: Any,  # noqa: ANN401 (Turn.report's)
) -> None:
    async for url, turn in schedule:
        await crawl.enter(url, turn, seconds, **report)


async def test_closing_the_gate_ends_the_wait(crawl: Crawl) -> None:
    await crawl.visit()

    work = partial(worker, crawl, crawl.gate.schedule(PAGES))

    await crawl.run(0, work, crawl.gate.aclose, work)

    assert [str(error) for error in crawl.errors] == ["the gate is closed"] * 2


@each_way
async def test_loop_cancelled_at_any_point_loses_no_url(way: str) -> None:
    for number in range(1, 100):
        crawl = Crawl(default_delay=0.0)
        crawl.serve(crawl_delay=0)
        schedule = crawl.gate.schedule([PUBLIC])

        async def get_one(schedule: Any = schedule) -> None:  # noqa: ANN401 (a TurnSchedule)
            await anext(schedule)

        if not await crawl.is_cancelled_at(number, get_one, way=way):
            break
        await crawl.run(1, get_one)
        assert crawl.errors == []
    assert 2 < number < 99


@pytest.mark.parametrize(("name", "arguments", "error"), [
    ("schedule", {"urls": PUBLIC}, TypeError),
    ("schedule", {"urls": 7}, TypeError),
    ("schedule", {"window": 0}, ValueError),
    ("schedule", {"patience": -1}, ValueError),
    ("schedule", {"patience": "1"}, TypeError),
    ("schedule", {"retries": -1}, ValueError),
    ("schedule", {"retries": None}, TypeError),
    ("schedule_hosts", {"hosts": "example.com", "next_url": print}, TypeError),
    ("schedule_hosts", {"hosts": ["example.com"], "next_url": None}, TypeError),
])  # fmt: skip
async def test_bad_argument_raises(
    name: str, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        getattr(Crawl().gate, name)(**arguments)


# --- Several workers ----------------------------------------------------------------


async def work_for(crawl: Crawl, seconds: float, schedule: TurnSchedule) -> None:
    """Run a worker for `seconds`, then close the schedule."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(worker, crawl, schedule)
        await crawl.clock.pass_time(seconds)
        tasks.cancel_scope.cancel()
    await schedule.aclose()


def sites(count: int) -> list[str]:
    return [f"https://site{number}.example/" for number in range(count)]


async def test_host_with_a_long_delay_does_not_delay_other_hosts() -> None:
    crawl = Crawl()
    crawl.serve(crawl_delay=3_600)
    urls = [url for site in sites(50) for url in (site, f"{ORIGIN}/of-{site[8:-1]}")]

    await work_for(crawl, 60, crawl.gate.schedule(urls))

    assert sorted(url for _, url in crawl.starts) == sorted(sites(50))


async def test_window_full_of_one_waiting_host_is_reported_once() -> None:
    crawl = Crawl()
    crawl.serve(crawl_delay=3_600)
    urls = (f"{ORIGIN}/{number}" for number in count())

    await work_for(crawl, 3_599, crawl.gate.schedule(urls, window=5))

    events = [event for event in crawl.events if isinstance(event, WindowFilled)]
    assert [event.hosts for event in events] == [1]
    assert events[0].ready_at == crawl.clock.now() + 1


async def test_added_urls_count_towards_the_window(crawl: Crawl) -> None:
    numbers = count()
    urls = (f"{ORIGIN}/{number}" for number in numbers)
    schedule = crawl.gate.schedule(urls, window=3)
    for page in PAGES:
        schedule.add(page)

    await work_for(crawl, DELAY - 1, schedule)

    assert next(numbers) == 1


async def test_waiting_for_hosts_does_not_poll() -> None:
    crawl = Crawl()
    begun: list[object] = []
    begin = crawl.gate._turns.begin

    async def count_begin(claim: Claim) -> None:
        begun.append(claim.url)
        await begin(claim)

    crawl.gate._turns.begin = count_begin  # type: ignore[method-assign]
    urls = [f"{site}{number}" for site in sites(10) for number in range(3)]
    schedule = crawl.gate.schedule(urls)

    await crawl.run(100, *[partial(worker, crawl, schedule)] * 4)

    assert sorted(map(str, begun)) == urls


async def test_only_a_few_robots_txt_files_are_fetched_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_turns, "_MOST_HOSTS_AHEAD", 5)
    crawl = Crawl()
    schedule = crawl.gate.schedule(sites(30))

    await crawl.run(1.5, partial(anext, schedule))
    before = len(crawl.site.requests)
    await crawl.run(100, partial(worker, crawl, schedule))

    assert before == 5
    assert len(crawl.starts) == 29


async def test_error_in_the_source_is_raised_in_one_worker() -> None:
    crawl = Crawl()

    async def broken() -> AsyncIterator[str]:
        yield PUBLIC
        raise RuntimeError("broken")

    schedule = crawl.gate.schedule(broken())
    await crawl.run(100, *[partial(worker, crawl, schedule)] * 3)

    assert [str(error) for error in crawl.errors] == ["broken"]
    assert len(crawl.starts) == 1


# --- Found by adversarial testing ---------------------------------------------------


async def test_host_that_left_the_schedule_does_not_return_at_its_old_time() -> None:
    """The schedule used to end before its last URLs."""
    crawl = Crawl(default_delay=1.0)
    crawl.serve(crawl_delay=1)
    await crawl.warm_up()
    schedule = crawl.gate.schedule(PAGES, patience=400)

    async def work() -> None:
        async for url, turn in schedule:
            async with turn:
                if url == PAGES[0]:
                    schedule.add("https://b.example/0")
                    turn.report(status=429, retry_after="3600")
                    continue
                crawl.starts.append((crawl.seconds, str(url)))
                await crawl.clock.wait(100)
                number = int(str(url)[-1])
                if number < 5:
                    schedule.add(f"https://b.example/{number + 1}")

    await crawl.run(5_000, work)

    assert [url[-1] for _, url in crawl.starts] == list("012345")


async def test_slow_hosts_do_not_use_up_the_limit_on_hosts_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_turns, "_MOST_HOSTS_AHEAD", 5)
    crawl = Crawl()
    for site in sites(20):
        crawl.serve(origin=site, crawl_delay=3_600)

    await work_for(crawl, 600, crawl.gate.schedule(sites(40)))

    assert len(crawl.starts) == 20


async def test_source_is_read_further_once_late_urls_have_been_skipped() -> None:
    crawl = Crawl(default_delay=1.0)
    crawl.serve(crawl_delay=50)
    urls = [*(f"{ORIGIN}/{number}" for number in range(10)), OTHER_PAGES[0]]

    schedule = crawl.gate.schedule(urls, patience=60, window=10)
    await crawl.run(100, partial(worker, crawl, schedule))

    assert crawl.starts[0][1] == OTHER_PAGES[0]


@cases("urls window first", {
    "a URL has its turn": (
        [PAGES[0], PAGES[1], OTHER_PAGES[0]], 2, [PAGES[0], OTHER_PAGES[0], PAGES[1]],
    ),
    "a URL is late once its host's delay is known": (
        [*PAGES, OTHER_PAGES[0]], 3, [OTHER_PAGES[0], PAGES[0], PAGES[1]],
    ),
})  # fmt: skip
async def test_source_is_read_further_as_soon_as(
    urls: list[str], window: int, first: list[str]
) -> None:
    crawl = Crawl(default_delay=1.0)

    schedule = crawl.gate.schedule(urls, patience=25, window=window)
    await crawl.run(100, partial(worker, crawl, schedule))

    assert [url for _, url in crawl.starts] == first


async def test_hosts_are_read_further_once_a_host_has_no_more_urls() -> None:
    crawl = Crawl()
    frontier = Urls(crawl, PAGES[0], OTHER_PAGES[0])
    hosts = [*frontier.urls]

    schedule = crawl.gate.schedule_hosts(hosts, frontier.next_url, window=1)
    await work_for(crawl, 100, schedule)

    assert [url for _, url in crawl.starts] == [PAGES[0], OTHER_PAGES[0]]


async def test_source_is_closed_with_its_schedule(crawl: Crawl) -> None:
    closed = []

    async def source() -> AsyncIterator[str]:
        try:
            for number in count():
                yield f"{ORIGIN}/{number}"
        finally:
            closed.append(True)

    urls = source()
    schedule = crawl.gate.schedule(urls, window=1)
    await anext(schedule)
    await schedule.aclose()

    assert closed == [True]


async def test_turn_that_was_entered_and_lost_keeps_no_schedule_open(
    crawl: Crawl,
) -> None:
    schedule = crawl.gate.schedule([PUBLIC])
    scheduled = await anext(schedule)
    await scheduled.turn.__aenter__()
    del scheduled
    gc.collect()

    await work_for(crawl, 0, schedule)
    assert not schedule._work._open


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_cancelled_source_raises() -> None:
    crawl = Crawl()

    async def broken() -> AsyncIterator[str]:
        yield PUBLIC
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task

    schedule = crawl.gate.schedule(broken())
    await crawl.run(100, *[partial(worker, crawl, schedule)] * 2)

    assert [str(error) for error in crawl.errors] == ["the source was cancelled"]


async def test_listener_can_add_urls() -> None:
    crawl = Crawl()
    crawl.serve(crawl_delay=3_600)

    def on_event(event: GateEvent) -> None:
        crawl.events.append(event)
        if isinstance(event, WindowFilled):
            schedule.add(OTHER_PAGES[0])
        elif len(crawl.events) == 1:
            schedule.add(PAGES[1])

    crawl.gate = PolitenessGate(crawl.checker, AGENT, on_event=on_event)
    schedule = crawl.gate.schedule(PAGES[:1], patience=60)
    await crawl.run(100, partial(worker, crawl, schedule))
    assert [event.url for event in skipped(crawl)] == PAGES[:2]

    schedule = crawl.gate.schedule((f"{ORIGIN}/{n}" for n in count()), window=5)
    await work_for(crawl, 100, schedule)
    assert [url for _, url in crawl.starts] == [OTHER_PAGES[0]]


async def test_cancelled_worker_leaves_its_wake_up_to_another(crawl: Crawl) -> None:
    await crawl.visit()
    schedule = crawl.gate.schedule(PAGES[:1])

    async with anyio.create_task_group() as tasks:
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as impatient:
                impatient.start_soon(worker, crawl, schedule)
                await let_others_run()
                tasks.start_soon(worker, crawl, schedule)
                await let_others_run()
                scope.cancel()
        await crawl.clock.pass_time(DELAY + 1)

    assert crawl.times == [3_600, 3_600 + DELAY]


async def test_host_that_returns_during_its_lookup_is_tried_again(crawl: Crawl) -> None:
    send, receive = anyio.create_memory_object_stream[str](5)
    send.send_nowait("example.com")
    answers: list[str | None] = [None, PUBLIC]

    async def next_url(host: str) -> str | None:
        if len(answers) == 2:
            send.send_nowait(host)
            send.close()
        await let_others_run()
        return answers.pop(0) if answers else None

    schedule = crawl.gate.schedule_hosts(receive, next_url)
    await crawl.run(100, partial(worker, crawl, schedule))
    receive.close()

    assert [url for _, url in crawl.starts] == [PUBLIC]


# --- Patience -----------------------------------------------------------------------


async def test_urls_that_would_exceed_the_patience_are_skipped(crawl: Crawl) -> None:
    pages = [f"{ORIGIN}/{number}" for number in range(5)]
    schedule = crawl.gate.schedule(pages, patience=25)

    await crawl.run(100, partial(worker, crawl, schedule, 0.0))

    assert [url for _, url in crawl.starts] == pages[:3]
    start = crawl.clock.now() - 100
    assert [(event.url, event.ready_at) for event in skipped(crawl)] == [
        (pages[4], start + 4 * DELAY),
        (pages[3], start + 3 * DELAY),
    ]
    assert all(isinstance(event.error, TurnNotInTimeError) for event in skipped(crawl))


async def test_urls_of_a_host_blocked_before_a_crawl_are_skipped(crawl: Crawl) -> None:
    schedule = crawl.gate.schedule(patience=60)
    schedule.add(PAGES[0])
    await crawl.visit(status=429, retry_after="3600")
    schedule.add(PAGES[1])

    await crawl.run(10, partial(worker, crawl, schedule))

    assert [event.url for event in skipped(crawl)] == [PAGES[1], PAGES[0]]


async def test_schedule_continues_with_a_host_that_is_forgotten(crawl: Crawl) -> None:
    await crawl.visit(status=429, retry_after="3600")
    forget = partial(crawl.gate.forget, PUBLIC)
    elsewhere = crawl.gate.schedule(OTHER_PAGES)

    await crawl.run(
        5_000, partial(worker, crawl, crawl.gate.schedule(PAGES[:1])), forget
    )

    assert crawl.times == [3_600, 3_600 + DELAY]
    await elsewhere.aclose()


async def test_urls_of_an_unreachable_origin_are_skipped_with_the_retry_time() -> None:
    crawl = Crawl()
    crawl.serve(status=503)

    await crawl.run(1, partial(worker, crawl, crawl.gate.schedule(PAGES)))

    verdict = await crawl.checker.check(AGENT, PUBLIC)
    assert [(event.url, event.ready_at) for event in skipped(crawl)] == [
        (page, verdict.fresh_until) for page in PAGES
    ]


# --- A crawl that grows -------------------------------------------------------------


async def test_add_raises_in_another_thread_or_if_given_no_url() -> None:
    crawl = Crawl()
    schedule = crawl.gate.schedule()

    with pytest.raises(RuntimeError, match="from the thread that runs the schedule"):
        await anyio.to_thread.run_sync(schedule.add, PUBLIC)
    with pytest.raises(TypeError, match="expected a URL, got 7"):
        schedule.add(7)  # type: ignore[arg-type]


def no_delay(host: str) -> float:
    raise LookupError(f"no delay for {host}")


HOSTS = ["example.com"]


@cases("name arguments error message", {
    "a value that is not a URL": ("schedule", ([None],), InvalidURLError, "None"),
    "a delay of a URL's host that is not known": (
        "schedule", (PAGES,), LookupError, "no delay",
    ),
    "a delay of a host that is not known": (
        "schedule_hosts", (HOSTS, lambda _: PAGES[0]), LookupError, "no delay",
    ),
    "a host that is not a name": (
        "schedule_hosts", ([7], print), TypeError, "a host to be a str, got 7",
    ),
    "a URL from the frontier that is none": (
        "schedule_hosts", (HOSTS, lambda _: 7), InvalidURLError, "7",
    ),
})  # fmt: skip
async def test_worker_gets_the_error_of(
    name: str, arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    is_delay = error is LookupError
    crawl = Crawl(**{"default_delay": no_delay} if is_delay else {})
    schedule = getattr(crawl.gate, name)(*arguments)

    async with aclosing(schedule):
        with pytest.raises(error, match=message):
            await anext(schedule)


# --- Stopping -----------------------------------------------------------------------


async def test_closed_schedule_reports_each_waiting_or_added_url(crawl: Crawl) -> None:
    """The URLs used to vanish, and `add` raised a RuntimeError in the open turn."""
    schedule = crawl.gate.schedule(PAGES + OTHER_PAGES)

    async def work() -> None:
        async for _, turn in schedule:
            async with turn:
                await schedule.aclose()
                schedule.add(PUBLIC)
                schedule.add("http://[bad")

    await crawl.run(0, work)

    waiting = [*PAGES[1:], *OTHER_PAGES, PUBLIC, "http://[bad"]
    assert sorted(event.url for event in skipped(crawl)) == sorted(waiting)
    now = crawl.clock.now()
    assert {(event.error, event.ready_at) for event in skipped(crawl)} == {(None, now)}
    assert crawl.errors == []


class Spider:
    """A crawl of pages that fail, are disallowed, invalid, or link to another page.

    Attributes:
        found: the URLs that the schedule has read or that were added.
        good: the URLs that were visited successfully, once for each visit.
    """

    def __init__(self) -> None:
        self.crawl = Crawl(ledger=SlowLedger, default_delay=0.0)
        self.crawl.serve(crawl_delay=1)
        self.found: list[str] = []
        self.good: list[str] = []
        self.failures = {PAGES[0]: 1, PAGES[1]: 2}
        self.schedule = self.crawl.gate.schedule(self.source(), window=5, retries=1)

    async def source(self) -> AsyncIterator[str]:
        for url in [*OTHER_PAGES[:2], "http://[bad", *PAGES, PRIVATE]:
            await anyio.lowlevel.checkpoint()
            self.found.append(url)
            yield url

    async def visit(self, url: str, turn: Turn) -> None:
        with suppress(TurnNotInTimeError):  # the schedule was closed
            async with turn:
                await self.crawl.clock.wait(1)
                if self.failures.get(url):
                    self.failures[url] -= 1
                    turn.report(status=503)
                    return
                self.good.append(url)
                if url == PAGES[2]:
                    self.found.append(PUBLIC)
                    self.schedule.add(PUBLIC)

    async def work(self) -> None:
        async with anyio.create_task_group() as tasks:
            with suppress(RuntimeError):  # the gate is closed
                async for url, turn in self.schedule:
                    tasks.start_soon(self.visit, str(url), turn)


@pytest.mark.parametrize("closed", ["gate", "schedule"])
async def test_closing_at_any_point_visits_or_reports_urls_once(closed: str) -> None:
    for number in count(1):
        spider, event = Spider(), anyio.Event()
        owner: Any = spider.schedule if closed == "schedule" else spider.crawl.gate

        async def close(event: anyio.Event = event, owner: Any = owner) -> None:  # noqa: ANN401 (see above)
            await event.wait()
            await owner.aclose()

        async def work(event: anyio.Event = event, spider: Spider = spider) -> None:
            await InterruptedAt(number, spider.work(), event.set)  # noqa: B023 (now)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(close)
            tasks.start_soon(work)
            await spider.crawl.clock.pass_time(10_000)
            is_closed = event.is_set()
            event.set()
        reported = [event.url for event in skipped(spider.crawl)]
        assert sorted(spider.good + reported) == sorted(spider.found)
        assert spider.crawl.gate.stats.under_way == 0
        if not is_closed:
            break
    assert 20 < number < 1_000


async def test_url_disallowed_after_closing_is_reported_once(crawl: Crawl) -> None:
    schedule = crawl.gate.schedule([PRIVATE])
    begin = crawl.gate._turns.begin

    async def begin_late(claim: Claim) -> None:
        await schedule.aclose()
        await begin(claim)

    crawl.gate._turns.begin = begin_late  # type: ignore[method-assign]
    await crawl.run(0, partial(worker, crawl, schedule))

    assert [(event.url, event.error) for event in skipped(crawl)] == [(PRIVATE, None)]


@pytest.mark.parametrize("closed", ["gate", "schedule"])
async def test_urls_of_a_schedule_that_never_began_are_reported(closed: str) -> None:
    crawl = Crawl()
    schedule = crawl.gate.schedule(PAGES)
    owner: Any = schedule if closed == "schedule" else crawl.gate
    schedule.add(PUBLIC)

    await owner.aclose()
    await owner.aclose()
    schedule.add(PRIVATE)

    assert [event.url for event in skipped(crawl)] == [PUBLIC, PRIVATE]


async def test_turn_cannot_be_entered_after_its_url_was_reported(
    crawl: Crawl, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = crawl.gate.schedule(PAGES[:1])
    _, turn = await anext(schedule)

    await schedule.aclose()
    with pytest.raises(TurnNotInTimeError, match="before its schedule was closed"):
        await crawl.enter(PAGES[0], turn)

    assert [event.url for event in skipped(crawl)] == PAGES[:1]
    assert not caplog.records  # of an error in the schedule's task


async def test_url_that_arrives_after_closing_is_reported(crawl: Crawl) -> None:
    frontier = Urls(crawl, *PAGES)
    schedule = crawl.gate.schedule_hosts(["example.com"], frontier.next_url)

    await crawl.run(0, partial(worker, crawl, schedule), schedule.aclose)

    assert [event.url for event in skipped(crawl)] == PAGES[:1]
    assert crawl.starts == []


async def test_other_tasks_run_while_many_urls_are_reported(crawl: Crawl) -> None:
    urls = [f"{ORIGIN}/{number}" for number in range(5_000)]
    schedule = crawl.gate.schedule()
    for url in urls:
        schedule.add(url)
    await anext(schedule)
    counts: list[int] = []

    async def watch() -> None:
        while len(crawl.events) < len(urls):
            counts.append(len(crawl.events))
            await anyio.lowlevel.checkpoint()
        counts.append(len(crawl.events))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await crawl.gate.aclose()

    assert max(after - before for before, after in pairwise(counts)) < 2_000
    assert [event.url for event in skipped(crawl)] == urls


# --- Retries ------------------------------------------------------------------------


@pytest.mark.parametrize(("reports", "retries", "turns", "causes"), [
    pytest.param([503, 200], 1, 2, [], id="a 503, then a good response"),
    pytest.param([429, 503], 1, 2, ["503"], id="failures to the last retry"),
    pytest.param([503, None, None], 2, 3, ["failure"], id="without a response"),
    pytest.param([404], 1, 1, [], id="no incident"),
    pytest.param([503], 0, 1, [], id="no retries"),
])  # fmt: skip
async def test_url_gets_more_turns_after_an_incident(
    crawl: Crawl, reports: list[int | None], retries: int, turns: int, causes: list[str]
) -> None:
    schedule = crawl.gate.schedule([PUBLIC], retries=retries)

    async def work() -> None:
        async for url, turn in schedule:
            async with turn:
                crawl.starts.append((crawl.seconds, str(url)))
                status = reports[len(crawl.starts) - 1]
                turn.report(status=status, failure=status is None)

    await crawl.run(1_000, work)

    assert [url for _, url in crawl.starts] == [PUBLIC] * turns
    assert all(after - before >= 60 for before, after in pairwise(crawl.times))
    errors = [event.error for event in skipped(crawl)]
    assert all(isinstance(error, RetriesExhaustedError) for error in errors)
    assert [getattr(error, "cause", "") for error in errors] == causes
    assert not schedule._work._failures


async def test_exception_in_the_turn_is_the_cause(crawl: Crawl) -> None:
    schedule = crawl.gate.schedule(["https://me:secret@example.com/"], retries=1)

    async def work() -> None:
        async for _, turn in schedule:
            with suppress(ConnectionError):
                async with turn:
                    raise ConnectionResetError

    await crawl.run(1_000, work)

    (event,) = skipped(crawl)
    assert str(event.error) == (
        "https://example.com/ failed 2 times, most recently with ConnectionResetError"
    )


async def test_retry_that_would_exceed_the_patience_is_skipped(crawl: Crawl) -> None:
    schedule = crawl.gate.schedule([PUBLIC], retries=1, patience=30)

    await crawl.run(1_000, partial(worker, crawl, schedule, 0.0, status=503))

    (event,) = skipped(crawl)
    assert isinstance(event.error, TurnNotInTimeError)
    assert len(crawl.starts) == 1
    assert not schedule._work._failures


# --- A frontier supplied by the caller ----------------------------------------------


class Urls:
    """An in-memory frontier.

    Attributes:
        urls: the waiting URLs, by host.
        calls: the time and the host of each call.
    """

    def __init__(self, crawl: Crawl, *urls: str) -> None:
        self.crawl = crawl
        self.urls: dict[str, list[str]] = {}
        self.calls: list[tuple[float, str]] = []
        for url in urls:
            self.urls.setdefault(Origin.from_url(url).host, []).append(url)

    async def next_url(self, host: str) -> str | None:
        self.calls.append((self.crawl.seconds, host))
        await let_others_run()
        return next(iter(self.urls.get(host, ())), None) and self.urls[host].pop(0)


async def test_frontier_is_called_when_a_host_is_ready(crawl: Crawl) -> None:
    frontier = Urls(crawl, *PAGES)
    schedule = crawl.gate.schedule_hosts(["example.com"], frontier.next_url)

    await crawl.run(100, partial(worker, crawl, schedule, 3.0))

    times = [3_600, 3_613, 3_626]
    assert crawl.starts == list(zip(times, PAGES, strict=True))
    assert [time for time, _ in frontier.calls] == [*times, 3_639]


@pytest.mark.parametrize(("url", "message"), [
    pytest.param("http://[bad", "", id="invalid"),
    pytest.param(
        "http://other/", "expected a URL on 'example.com', got one on 'other'",
        id="on another host",
    ),
])  # fmt: skip
async def test_bad_url_from_the_frontier_is_skipped(
    crawl: Crawl, url: str, message: str
) -> None:
    """It used to end the crawl of all hosts."""
    frontier = Urls(crawl, PUBLIC)
    frontier.urls["example.com"].insert(0, url)
    schedule = crawl.gate.schedule_hosts(["example.com"], frontier.next_url)

    await crawl.run(100, partial(worker, crawl, schedule))

    (event,) = skipped(crawl)
    assert (event.url, type(event.error)) == (url, InvalidURLError)
    assert message in str(event.error)
    assert crawl.starts == [(3_600, PUBLIC)]


async def test_host_blocked_beyond_patience_leaves_the_schedule(crawl: Crawl) -> None:
    await crawl.visit(status=429, retry_after="3600")
    frontier = Urls(crawl, *PAGES, "https://other.example/")
    schedule = crawl.gate.schedule_hosts(frontier.urls, frontier.next_url, patience=60)

    await crawl.run(100, partial(worker, crawl, schedule))

    _, event = crawl.events
    assert isinstance(event, HostSkipped)
    assert event.host == "example.com"
    assert event.ready_at >= crawl.clock.now() - 100 + 3_600
    assert crawl.starts[1:] == [(3_601, "https://other.example/")]
    assert frontier.urls["example.com"] == PAGES


async def test_response_that_cannot_be_judged_does_not_end_the_schedule() -> None:
    """A hostile Retry-After of one host used to stop the crawl of all hosts."""
    crawl = Crawl()
    crawl.checker = checker_of(UnreadableSite(503, "Retry-After"), clock=crawl.clock)
    crawl.gate = PolitenessGate(crawl.checker, AGENT, on_event=crawl.events.append)

    await crawl.run(DELAY, lambda: crawl_all(crawl, [PUBLIC, *OTHER_PAGES]))

    assert [url for _, url in crawl.starts] == OTHER_PAGES
    (event,) = skipped(crawl)
    assert (event.url, type(event.error)) == (PUBLIC, DisallowedError)
    assert crawl.errors == []
