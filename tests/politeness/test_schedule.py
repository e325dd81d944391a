from __future__ import annotations

from contextlib import aclosing
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest

from robotsgate import DisallowedError, InvalidURLError, UnsupportedError
from robotsgate.politeness._events import URLLeftOut
from tests.checking.builders import (
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    let_others_run,
)

from .crawl import DELAY, Crawl

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator

    from robotsgate.politeness._turns import Turn

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


async def test_turn_that_nobody_enters_goes_back() -> None:
    crawl = Crawl()
    await crawl.warm_up()

    async for url, turn in crawl.gate.schedule(PAGES):
        if url == PAGES[2]:
            await enter(crawl, url, turn)

    assert crawl.began == [(3_600, PAGES[2])]
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
    turns: list[tuple[object, Turn]] = []

    async for url, turn in crawl.gate.schedule(PAGES[:2]):
        if url == PAGES[1]:
            await enter(crawl, url, turn)
        turns.append((url, turn))
    await crawl.run(DELAY, lambda: enter(crawl, *turns[0]))

    assert crawl.began == [(3_600, PAGES[1]), (3_600 + DELAY, PAGES[0])]


async def test_turn_that_is_entered_too_late_waits_again() -> None:
    crawl = Crawl(max_turn_seconds=60.0)
    await crawl.warm_up()
    schedule = crawl.gate.schedule(PAGES)
    url, turn = await anext(schedule)
    await crawl.run(60 + DELAY, crawl.visit)

    await crawl.run(DELAY, lambda: enter(crawl, url, turn))

    assert crawl.times == [3_660 + DELAY, 3_660 + 2 * DELAY]
    await schedule.aclose()


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
            ("…@x y/", InvalidURLError),
            (PRIVATE, DisallowedError),
        ]
    )
    assert [url for _, url in crawl.began] == [PUBLIC]


def left_out(crawl: Crawl) -> Iterator[URLLeftOut]:
    for event in crawl.events:
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


async def test_second_task_that_waits_is_an_error() -> None:
    crawl = Crawl()
    await crawl.warm_up()
    await crawl.visit()
    schedule = crawl.gate.schedule(PAGES)

    async def wait() -> None:
        await anext(schedule)

    await crawl.run(DELAY, wait, wait)

    assert len(crawl.errors) == 1
    assert "expected one task at a time" in str(crawl.errors[0])
    await schedule.aclose()


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


@pytest.mark.parametrize(
    ("urls", "window", "error"),
    [(PUBLIC, 1, TypeError), (7, 1, TypeError), ([], 0, ValueError)],
)
async def test_bad_arguments_of_a_schedule_are_clear_errors(
    urls: Iterable[str], window: int, error: type[Exception]
) -> None:
    with pytest.raises(error):
        Crawl().gate.schedule(urls, window=window)
