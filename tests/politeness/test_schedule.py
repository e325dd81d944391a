from __future__ import annotations

import asyncio
import gc
from contextlib import aclosing, suppress
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from robotsgate import (
    DisallowedError,
    HostBlocked,
    HostLeftOut,
    InvalidURLError,
    Origin,
    PolitenessGate,
    TurnNotInTimeError,
    UnsupportedError,
    URLLeftOut,
    WindowFilled,
)
from robotsgate.politeness import _permissions
from robotsgate.testing import ManualClock
from tests.checking.builders import (
    AGENT,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    checker_of,
    let_others_run,
)

from .crawl import DELAY, Crawl, SlowLedger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

    from robotsgate import GateEvent, ScheduledTurn, TurnSchedule
    from robotsgate.politeness._turns import Claim, Turn

pytestmark = pytest.mark.anyio

PAGES = [f"{ORIGIN}/{number}" for number in range(3)]
OTHER_PAGES = [f"{OTHER_ORIGIN}/{number}" for number in range(3)]


async def enter(crawl: Crawl, url: object, turn: Turn, seconds: float = 0.0) -> None:
    """One request that takes so many `seconds`."""
    async with turn:
        crawl.began.append((crawl.seconds, str(url)))
        await crawl.clock.wait(seconds)


async def crawl_all(crawl: Crawl, urls: Any, seconds: float = 0.0) -> None:  # noqa: ANN401 (those of schedule)
    """Ask for each of `urls` in a task of its own."""
    async with anyio.create_task_group() as tasks:
        async for url, turn in crawl.gate.schedule(urls):
            tasks.start_soon(enter, crawl, url, turn, seconds)


async def test_urls_come_as_their_hosts_become_free() -> None:
    crawl = Crawl(default_delay=1.0)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(crawl_all, crawl, PAGES + OTHER_PAGES, 3.0)
        await crawl.clock.pass_time(100)

    own = [(round(time, 6), url) for time, url in crawl.began if url in PAGES]
    others = [(round(time, 6), url) for time, url in crawl.began if url in OTHER_PAGES]
    assert own == list(zip([10, 23, 36], PAGES, strict=True))
    assert others == list(zip([1, 5, 9], OTHER_PAGES, strict=True))


async def test_urls_may_be_fetched_in_the_loop() -> None:
    crawl = Crawl()

    async def work() -> None:
        async for url, turn in crawl.gate.schedule(PAGES):
            await enter(crawl, url, turn, 3.0)

    await crawl.run(100, work)

    assert crawl.times == pytest.approx([DELAY, 2 * DELAY + 3, 3 * DELAY + 6])


async def test_turn_that_nobody_enters_within_a_second_goes_back() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async def work() -> None:
        async for url, turn in crawl.gate.schedule(PAGES):
            if url == PAGES[2]:
                await enter(crawl, url, turn)

    await crawl.run(10, work)

    assert crawl.began == [(3_602, PAGES[2])]
    assert crawl.gate.stats.under_way == 0


async def test_turn_goes_back_if_the_loop_is_left_before_it_is_entered() -> None:
    """The host stood still for `max_turn_seconds`."""
    crawl = Crawl()
    await crawl.warm_up()

    async for _ in crawl.gate.schedule(PAGES):
        break
    await crawl.run(400, crawl.visit)

    assert crawl.times == [3_600]
    assert len(crawl.gate._sources) == 0


async def test_turn_that_is_entered_after_it_went_back_waits_again() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    schedule = crawl.gate.schedule(PAGES[:2])

    async def work() -> None:
        url, turn = await anext(schedule)
        second_url, second_turn = await anext(schedule)
        await enter(crawl, second_url, second_turn)
        await enter(crawl, url, turn)

    await crawl.run(2 * DELAY, work)

    assert crawl.began == [(3_601, PAGES[1]), (3_601 + DELAY, PAGES[0])]
    with pytest.raises(StopAsyncIteration):
        await anext(schedule)


async def test_urls_that_may_not_be_fetched_are_left_out_and_told() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    urls = ["relative", PRIVATE, "ftp://example.com/", "https://me:secret@x y/", PUBLIC]

    await crawl.run(DELAY, lambda: crawl_all(crawl, urls))

    told = [(event.url, type(event.error)) for event in left_out(crawl)]
    assert sorted(told) == sorted(
        [
            ("relative", InvalidURLError),
            ("ftp://example.com/", UnsupportedError),
            ("https://me:secret@x y/", InvalidURLError),
            (PRIVATE, DisallowedError),
        ]
    )
    assert [url for _, url in crawl.began] == [PUBLIC]
    assert "secret" not in f"{crawl.events} {[one.as_dict() for one in crawl.events]}"


def left_out(crawl: Crawl) -> Iterator[URLLeftOut]:
    for event in crawl.events:
        if not isinstance(event, HostBlocked):
            assert isinstance(event, URLLeftOut)
            yield event


async def test_endless_source_is_read_a_window_ahead() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    read: list[str] = []

    def endless() -> Iterator[str]:
        for number in count():
            read.append(f"{ORIGIN}/{number}")
            yield read[-1]

    async with aclosing(crawl.gate.schedule(endless(), window=5)) as schedule:
        async for url, turn in schedule:
            await enter(crawl, url, turn)
            break
        await let_others_run()

    assert len(read) == 6


async def test_source_may_wait_for_what_is_found_on_earlier_pages() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    send, receive = anyio.create_memory_object_stream[str](5)
    send.send_nowait(PAGES[0])

    async def work() -> None:
        async for url, turn in crawl.gate.schedule(receive):
            await enter(crawl, url, turn)
            if url == PAGES[2]:
                send.close()
            else:
                send.send_nowait(PAGES[PAGES.index(str(url)) + 1])

    await crawl.run(100, work)
    receive.close()

    assert [url for _, url in crawl.began] == PAGES


async def test_error_of_the_source_comes_after_what_it_gave_before() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async def broken() -> AsyncIterator[str]:
        yield PUBLIC
        raise KeyError("broken")

    async def work() -> None:
        with pytest.raises(KeyError, match="broken"):
            await crawl_one_by_one(crawl, broken())

    await crawl.run(100, work)

    assert len(crawl.began) == 1


async def crawl_one_by_one(crawl: Crawl, urls: Any) -> None:  # noqa: ANN401 (those of schedule)
    async for url, turn in crawl.gate.schedule(urls):
        await enter(crawl, url, turn)


async def test_what_is_no_url_at_all_is_an_error() -> None:
    with pytest.raises(InvalidURLError):
        await crawl_one_by_one(Crawl(), [None])


async def test_schedule_that_is_closed_gives_the_last_turn_back() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    schedule = crawl.gate.schedule(PAGES)
    await anext(schedule)

    await schedule.aclose()

    await crawl.visit(patience=0)
    with pytest.raises(StopAsyncIteration):
        await anext(schedule)


async def test_wait_ends_when_the_gate_is_closed() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit()

    await crawl.run(0, lambda: crawl_one_by_one(crawl, PAGES), crawl.gate.aclose)

    assert [str(error) for error in crawl.errors] == ["the gate is closed"]
    with pytest.raises(RuntimeError, match="the gate is closed"):
        await crawl_one_by_one(crawl, PAGES)


async def test_loop_that_is_cancelled_anywhere_loses_no_url() -> None:
    for number in range(1, 100):
        crawl = Crawl(default_delay=0.0)
        crawl.serve(crawl_delay=0)
        schedule = crawl.gate.schedule([PUBLIC])

        async def one(schedule: Any = schedule) -> None:  # noqa: ANN401 (a TurnSchedule)
            await anext(schedule)

        if not await crawl.is_cancelled_at(number, one):
            break
        await crawl.run(1, one)
        assert crawl.errors == []
    assert number > 2


@pytest.mark.parametrize(("arguments", "error"), [
    ({"urls": PUBLIC}, TypeError),
    ({"urls": 7}, TypeError),
    ({"window": 0}, ValueError),
    ({"patience": -1}, ValueError),
    ({"patience": "1"}, TypeError),
])  # fmt: skip
async def test_bad_arguments_of_a_schedule_are_clear_errors(
    arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        Crawl().gate.schedule(**arguments)


# --- Many workers -------------------------------------------------------------------


async def worker(crawl: Crawl, schedule: TurnSchedule, seconds: float = 1.0) -> None:
    async for url, turn in schedule:
        await enter(crawl, url, turn, seconds)


async def work_for(crawl: Crawl, seconds: float, schedule: TurnSchedule) -> None:
    """Let a worker work for so long, and no longer."""
    await end_within(crawl, seconds, partial(worker, crawl, schedule))
    await schedule.aclose()


async def end_within(
    crawl: Crawl, seconds: float, *visits: Callable[[], Awaitable[None]]
) -> bool:
    """Whether all `visits` end within so many seconds; they are cancelled then."""
    ended = 0

    async def count(visit: Callable[[], Awaitable[None]]) -> None:
        nonlocal ended
        await visit()
        ended += 1

    async with anyio.create_task_group() as tasks:
        for visit in visits:
            tasks.start_soon(count, visit)
            await let_others_run()
        await crawl.clock.pass_time(seconds)
        tasks.cancel_scope.cancel()
    return ended == len(visits)


def sites(count: int) -> list[str]:
    return [f"https://site{number}.example/" for number in range(count)]


async def test_workers_share_a_schedule_and_are_as_many_as_the_requests() -> None:
    crawl = Crawl()
    most = 0

    async def counting(schedule: TurnSchedule) -> None:
        nonlocal most
        async for url, turn in schedule:
            async with turn:
                crawl.began.append((crawl.seconds, str(url)))
                most = max(most, crawl.gate.stats.under_way)
                await crawl.clock.wait(1)

    schedule = crawl.gate.schedule(sites(30))
    await crawl.run(100, *[partial(counting, schedule)] * 3)

    assert sorted(url for _, url in crawl.began) == sorted(sites(30))
    assert most == 3
    assert crawl.times[-1] == pytest.approx(1 + 9, abs=0.1)


async def test_host_that_is_left_alone_holds_up_no_other() -> None:
    crawl = Crawl()
    crawl.serve(crawl_delay=3_600)
    urls = [url for site in sites(50) for url in (site, f"{ORIGIN}/of-{site[8:-1]}")]

    await work_for(crawl, 60, crawl.gate.schedule(urls))

    assert sorted(url for _, url in crawl.began) == sorted(sites(50))


async def test_full_window_of_hosts_that_rest_is_told_once_a_minute() -> None:
    crawl = Crawl()
    crawl.serve(crawl_delay=3_600)
    urls = (f"{ORIGIN}/{number}" for number in count())

    await work_for(crawl, 3_599, crawl.gate.schedule(urls, window=5))

    events = [one for one in crawl.events if isinstance(one, WindowFilled)]
    assert [one.hosts for one in events] == [1]
    assert events[0].ready_at == crawl.clock.now() + 1


async def test_nothing_polls_while_hosts_rest() -> None:
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


async def test_few_robots_txt_are_fetched_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_permissions, "_MOST_HOSTS_AHEAD", 5)
    crawl = Crawl()
    schedule = crawl.gate.schedule(sites(30))

    url, turn = await first_of(crawl, schedule)
    await crawl.clock.pass_time(0.5)
    before = len(crawl.site.requests)
    await crawl.run(
        100, lambda: enter(crawl, url, turn), partial(worker, crawl, schedule)
    )

    assert before == 5
    assert len(crawl.began) == 30


async def first_of(crawl: Crawl, schedule: TurnSchedule) -> ScheduledTurn:
    scheduled: list[ScheduledTurn] = []

    async def get() -> None:
        scheduled.append(await anext(schedule))

    await crawl.run(1, get)
    return scheduled[0]


async def test_worker_that_is_cancelled_leaves_its_wake_up_to_another() -> None:
    crawl = Crawl()
    await crawl.warm_up()
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


async def test_error_of_the_source_is_raised_to_one_worker() -> None:
    crawl = Crawl()

    async def broken() -> AsyncIterator[str]:
        yield PUBLIC
        raise KeyError("broken")

    errors: list[Exception] = []
    schedule = crawl.gate.schedule(broken())

    async def work() -> None:
        try:
            await worker(crawl, schedule)
        except KeyError as error:
            errors.append(error)

    await crawl.run(100, work, work, work)

    assert len(errors) == len(crawl.began) == 1


# --- What an attack has found ---------------------------------------------------------


async def test_turn_that_is_dropped_before_it_is_entered_goes_back() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    schedule = crawl.gate.schedule(PAGES[:2])

    async def leave() -> None:
        async for _ in schedule:
            return

    await end_within(crawl, 1_000, leave, partial(worker, crawl, schedule))

    assert crawl.times == [3_600 + DELAY]


async def test_host_that_has_left_does_not_come_again_at_its_old_moment() -> None:
    """The schedule ended before its last URLs."""
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
                crawl.began.append((crawl.seconds, str(url)))
                await crawl.clock.wait(100)
                number = int(str(url)[-1])
                if number < 5:
                    schedule.add(f"https://b.example/{number + 1}")

    assert await end_within(crawl, 5_000, work)
    assert [url[-1] for _, url in crawl.began] == list("012345")


async def test_several_turns_of_a_host_at_once_give_each_url_once() -> None:
    crawl = Crawl(default_delay=0.0, max_concurrent_per_host=4)
    crawl.site.serve(ORIGIN)
    await crawl.warm_up()
    todo = [f"{ORIGIN}/{number}" for number in range(40)]
    urls, under_way, most = sorted(todo), 0, 0

    async def next_url(_host: str) -> str | None:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await crawl.clock.wait(0.01)
        under_way -= 1
        return todo.pop() if todo else None

    schedule = crawl.gate.schedule_hosts(["example.com"], next_url)
    seconds = (0.03 * number % 0.1 for number in count())

    async def work() -> None:
        async for url, turn in schedule:
            await enter(crawl, url, turn, next(seconds))

    assert await end_within(crawl, 1_000, work, work, work)
    assert sorted(url for _, url in crawl.began) == urls
    assert most == 1


async def test_hosts_come_although_their_robots_txt_was_fetched_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_permissions, "_MOST_HOSTS_AHEAD", 5)
    crawl = Crawl()
    schedule = crawl.gate.schedule(sites(30))

    async def ask() -> None:
        for site in sites(30):
            await crawl.checker.can_fetch(AGENT, site)

    assert await end_within(crawl, 100, partial(worker, crawl, schedule), ask)
    assert len(crawl.began) == 30


async def test_slow_hosts_take_no_place_of_those_whose_robots_txt_comes_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_permissions, "_MOST_HOSTS_AHEAD", 5)
    crawl = Crawl()
    for site in sites(20):
        crawl.serve(origin=site, crawl_delay=3_600)

    await work_for(crawl, 600, crawl.gate.schedule(sites(40)))

    assert len(crawl.began) == 20


async def test_robots_txt_that_memory_has_lost_is_not_fetched_again_for_a_turn() -> (
    None
):
    crawl = Crawl()
    checker = checker_of(crawl.site, clock=crawl.clock, max_origins=4)
    crawl.gate = PolitenessGate(checker, AGENT)
    schedule = crawl.gate.schedule(sites(50))

    assert await end_within(crawl, 600, *[partial(worker, crawl, schedule)] * 4)
    assert len(crawl.site.requests) == len(crawl.began) == 50


async def test_turn_comes_although_robots_txt_expires_before_the_delay_is_over() -> (
    None
):
    crawl = Crawl()
    crawl.serve(crawl_delay=3_600, headers={"Cache-Control": "no-store"})

    await work_for(crawl, 20_000, crawl.gate.schedule([PUBLIC]))

    assert crawl.times == [3_600]


async def test_host_that_waits_within_the_patience_is_not_left_out() -> None:
    crawl = Crawl()
    urls = Urls(crawl, *PAGES)
    schedule = crawl.gate.schedule_hosts(urls.urls, urls.next_url, patience=15)

    await crawl.run(100, partial(worker, crawl, schedule, 0.0))

    assert crawl.events == []
    assert len(crawl.began) == 3


async def test_source_is_read_on_when_late_urls_have_made_room() -> None:
    crawl = Crawl(default_delay=1.0)
    crawl.serve(crawl_delay=50)
    urls = [*(f"{ORIGIN}/{number}" for number in range(10)), OTHER_PAGES[0]]

    schedule = crawl.gate.schedule(urls, patience=60, window=10)
    await crawl.run(100, partial(worker, crawl, schedule))

    assert crawl.began[0][1] == OTHER_PAGES[0]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_source_that_was_cancelled_is_an_error() -> None:
    crawl = Crawl()

    async def broken() -> AsyncIterator[str]:
        yield PUBLIC
        task = asyncio.ensure_future(asyncio.Event().wait())
        task.cancel()
        await task

    schedule = crawl.gate.schedule(broken())
    await crawl.run(
        100, partial(worker, crawl, schedule), partial(worker, crawl, schedule)
    )

    assert [str(error) for error in crawl.errors] == ["the source was cancelled"]


async def test_schedule_that_is_closed_while_turns_begin_keeps_none(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for steps in range(20):
        clock = ManualClock()
        crawl = Crawl(clock=clock, ledger=SlowLedger(clock=clock), default_delay=0.0)
        await crawl.checker.prefetch(sites(4))
        schedule = crawl.gate.schedule(sites(4))

        async def get(schedule: TurnSchedule = schedule) -> None:
            with suppress(StopAsyncIteration):
                await anext(schedule)

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(get)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            await schedule.aclose()
        assert crawl.gate.stats.under_way == 0
    assert caplog.records == []


async def test_turn_that_was_entered_and_lost_keeps_no_schedule_open() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    schedule = crawl.gate.schedule(PAGES[:1])

    async def work() -> None:
        async for scheduled in schedule:
            await scheduled.turn.__aenter__()
            del scheduled
            gc.collect()

    assert await end_within(crawl, 1_000, work)


async def test_listener_may_add_urls() -> None:
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
    assert [event.url for event in left_out(crawl)] == PAGES[:2]

    schedule = crawl.gate.schedule((f"{ORIGIN}/{n}" for n in count()), window=5)
    await work_for(crawl, 100, schedule)
    assert [url for _, url in crawl.began] == [OTHER_PAGES[0]]


# --- Patience -----------------------------------------------------------------------


async def test_urls_whose_turn_comes_too_late_are_handed_back() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    pages = [f"{ORIGIN}/{number}" for number in range(5)]
    schedule = crawl.gate.schedule(pages, patience=25)

    await crawl.run(100, partial(worker, crawl, schedule, 0.0))

    assert [url for _, url in crawl.began] == pages[:3]
    start = crawl.clock.now() - 100
    assert [(event.url, event.ready_at) for event in left_out(crawl)] == [
        (pages[4], start + 4 * DELAY),
        (pages[3], start + 3 * DELAY),
    ]
    assert all(isinstance(one.error, TurnNotInTimeError) for one in left_out(crawl))


async def test_urls_of_a_host_with_a_long_delay_are_handed_back() -> None:
    crawl = Crawl()
    crawl.serve(crawl_delay=3_600)

    schedule = crawl.gate.schedule(PAGES, patience=60)
    await crawl.run(10, partial(worker, crawl, schedule))

    assert sorted(event.url for event in left_out(crawl)) == PAGES
    assert crawl.began == []


async def test_urls_of_a_host_that_is_blocked_before_its_try_are_handed_back() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    schedule = crawl.gate.schedule(patience=60)
    schedule.add(PAGES[0])
    await crawl.visit(status=429, retry_after="3600")
    schedule.add(PAGES[1])

    await crawl.run(10, partial(worker, crawl, schedule))

    assert [event.url for event in left_out(crawl)] == [PAGES[1], PAGES[0]]


async def test_urls_of_a_host_that_is_blocked_meanwhile_are_handed_back() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    schedule = crawl.gate.schedule(PAGES, patience=60)

    async def work() -> None:
        async for _, turn in schedule:
            async with turn:
                turn.report(status=429, retry_after="3600")

    await crawl.run(100, work)

    assert [event.url for event in left_out(crawl)] == PAGES[:0:-1]
    retry_at = crawl.clock.now() - 100 + 3_600
    assert all((event.ready_at or 0) >= retry_at for event in left_out(crawl))


async def test_urls_of_an_origin_that_is_down_come_at_once_with_the_next_try() -> None:
    crawl = Crawl()
    crawl.serve(status=503)

    await crawl.run(1, lambda: crawl_one_by_one(crawl, PAGES))

    verdict = await crawl.checker.check(AGENT, PUBLIC)
    assert [(event.url, event.ready_at) for event in left_out(crawl)] == [
        (page, verdict.fresh_until) for page in PAGES
    ]


# --- A crawl that grows -------------------------------------------------------------


async def test_crawl_that_adds_links_ends_by_itself() -> None:
    crawl = Crawl()
    schedule = crawl.gate.schedule()
    schedule.add(PAGES[0])

    async def work() -> None:
        async for url, turn in schedule:
            async with turn:
                crawl.began.append((crawl.seconds, str(url)))
                if url in PAGES[:2]:
                    schedule.add(PAGES[PAGES.index(str(url)) + 1])

    await crawl.run(100, work, work)

    assert crawl.times == [DELAY, 2 * DELAY, 3 * DELAY]
    with pytest.raises(RuntimeError, match="still running"):
        schedule.add(PUBLIC)


async def test_added_urls_count_in_the_window() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    read: list[str] = []

    def source() -> Iterator[str]:
        for url in PAGES:
            read.append(url)
            yield url

    schedule = crawl.gate.schedule(source(), window=3)
    for number in range(3):
        schedule.add(f"{ORIGIN}/added{number}")

    await work_for(crawl, DELAY - 1, schedule)

    assert read == PAGES[:1]


async def test_add_in_another_thread_is_an_error() -> None:
    crawl = Crawl()
    schedule = crawl.gate.schedule()

    with pytest.raises(RuntimeError, match="from the thread that runs the schedule"):
        await anyio.to_thread.run_sync(schedule.add, PUBLIC)
    with pytest.raises(TypeError, match="expected a URL, got 7"):
        schedule.add(7)  # type: ignore[arg-type]


async def test_turn_that_nobody_enters_keeps_a_schedule_open_until_it_is_gone() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    schedule = crawl.gate.schedule(PAGES[:1])
    kept = [await anext(schedule)]
    ended: list[bool] = []

    async def work() -> None:
        await worker(crawl, schedule)
        ended.append(True)

    async def drop() -> None:
        await crawl.clock.wait(10)
        assert not ended
        kept.clear()
        gc.collect()

    await crawl.run(20, work, drop)

    assert ended


# --- A frontier of the caller -------------------------------------------------------


class Urls:
    """A frontier in memory.

    Attributes:
        urls: those that wait, by host.
        asked: when it was asked for which host.
    """

    def __init__(self, crawl: Crawl, *urls: str) -> None:
        self.crawl = crawl
        self.urls: dict[str, list[str]] = {}
        self.asked: list[tuple[float, str]] = []
        for url in urls:
            self.urls.setdefault(Origin.from_url(url).host, []).append(url)

    async def next_url(self, host: str) -> str | None:
        self.asked.append((self.crawl.seconds, host))
        await let_others_run()
        return next(iter(self.urls.get(host, ())), None) and self.urls[host].pop(0)


async def test_frontier_is_asked_when_a_host_may_be_asked() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    frontier = Urls(crawl, *PAGES)
    schedule = crawl.gate.schedule_hosts(["example.com"], frontier.next_url)

    await crawl.run(100, partial(worker, crawl, schedule, 3.0))

    times = [3_600, 3_613, 3_626]
    assert crawl.began == list(zip(times, PAGES, strict=True))
    assert [time for time, _ in frontier.asked] == [*times, 3_639]


async def test_host_that_comes_again_while_its_url_is_looked_up_is_asked_again() -> (
    None
):
    crawl = Crawl()
    await crawl.warm_up()
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

    assert [url for _, url in crawl.began] == [PUBLIC]


async def test_url_of_another_host_ends_the_schedule() -> None:
    crawl = Crawl()
    schedule = crawl.gate.schedule_hosts(["example.com"], lambda _: "http://other/")

    with pytest.raises(ValueError, match=r"on 'example.com', got one on 'other'"):
        await anext(schedule)
    with pytest.raises(StopAsyncIteration):
        await anext(schedule)


async def test_host_that_is_blocked_for_too_long_leaves_the_schedule() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit(status=429, retry_after="3600")
    frontier = Urls(crawl, *PAGES, "https://other.example/")
    schedule = crawl.gate.schedule_hosts(frontier.urls, frontier.next_url, patience=60)

    await crawl.run(100, partial(worker, crawl, schedule))

    _, event = crawl.events
    assert isinstance(event, HostLeftOut)
    assert event.host == "example.com"
    assert event.ready_at >= crawl.clock.now() - 100 + 3_600
    assert crawl.began[1:] == [(3_601, "https://other.example/")]
    assert frontier.urls["example.com"] == PAGES


async def test_hosts_are_read_as_far_as_the_window_takes() -> None:
    crawl = Crawl()
    read: list[int] = []

    def hosts() -> Iterator[str]:
        for number in count():
            read.append(number)
            yield f"site{number}.example"

    schedule = crawl.gate.schedule_hosts(
        hosts(), lambda host: f"https://{host}/", window=5
    )
    await first_of(crawl, schedule)

    assert len(read) == 5
    await schedule.aclose()


@pytest.mark.parametrize(("hosts", "next_url", "error"), [
    ("example.com", print, TypeError),
    (["example.com"], None, TypeError),
])  # fmt: skip
async def test_bad_arguments_of_a_schedule_of_hosts_are_clear_errors(
    hosts: Any,  # noqa: ANN401 (the mistake under test)
    next_url: Any,  # noqa: ANN401 (the mistake under test)
    error: type[Exception],
) -> None:
    with pytest.raises(error):
        Crawl().gate.schedule_hosts(hosts, next_url)


async def test_what_is_no_name_of_a_host_is_an_error() -> None:
    schedule = Crawl().gate.schedule_hosts([7], print)  # type: ignore[list-item]

    with pytest.raises(
        TypeError, match="expected the name of a host to be a str, got 7"
    ):
        await anext(schedule)
