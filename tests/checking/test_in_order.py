"""`check_many`: results in the order of the URLs, while later ones are prepared."""

from __future__ import annotations

import gc
from contextlib import aclosing
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from robotsgate import CheckResult, InvalidProductTokenError, InvalidURLError
from robotsgate.testing import FakeSite

from .builders import (
    AGENT,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    RULES,
    GatedSite,
    checker_of,
    let_others_run,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable

    import httpx

    from robotsgate import RobotsChecker

pytestmark = pytest.mark.anyio


async def asynchronous(urls: Iterable[str]) -> AsyncGenerator[str, None]:
    for url in urls:
        await anyio.lowlevel.checkpoint()
        yield url


LAZY: list[Callable[[Iterable[str]], Any]] = [iter, asynchronous]


@pytest.fixture(params=[list, *LAZY])
def source_of(request: pytest.FixtureRequest) -> Callable[[Iterable[str]], Any]:
    """A function that turns URLs into a source of each kind."""
    source: Callable[[Iterable[str]], Any] = request.param
    return source


async def all_of(
    checker: RobotsChecker, urls: Iterable[str] | AsyncIterable[str], **window: int
) -> list[CheckResult]:
    return [checked async for checked in checker.check_many(AGENT, urls, **window)]


@pytest.mark.parametrize("window", [1, 2, 1_000])
async def test_results_are_in_order_and_explain_missing_verdicts(
    source_of: Callable[[Iterable[str]], Any], window: int
) -> None:
    site = site_of()
    urls = ["mailto:me", PRIVATE, f"{OTHER_ORIGIN}/a", "http://[::1", PUBLIC, PRIVATE]
    checker = checker_of(site)

    every = await all_of(checker, source_of(urls), window=window)

    assert [checked.url for checked in every] == urls
    allowed = [getattr(checked.verdict, "allowed", None) for checked in every]
    assert allowed == [None, False, True, None, True, False]
    errors = [type(checked.error) for checked in every if checked.verdict is None]
    assert errors == [InvalidURLError] * 2
    assert "got 'mailto:me'" in str(every[0].error)
    assert sorted(site.requests) == [ROBOTS_TXT, f"{OTHER_ORIGIN}/robots.txt"]
    assert checker.stats.checks == 4


async def test_later_origins_are_fetched_while_the_first_is_slow() -> None:
    site = GatedSite()
    checker = checker_of(site)
    urls = [f"https://host{number}.example/" for number in range(9)]
    answers: list[str] = []

    async def work() -> None:
        answers.extend(checked.url for checked in await all_of(checker, urls, window=5))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        await let_others_run()
        under_way = site.under_way
        site.gate.set()

    assert (under_way, answers) == (5, urls)


@pytest.mark.parametrize("source_of", LAZY)
async def test_no_more_than_the_window_is_read_ahead_from_an_endless_source(
    source_of: Callable[[Iterable[str]], Any],
) -> None:
    read: list[str] = []

    def endless() -> Iterable[str]:
        for number in count():
            read.append(f"{ORIGIN}/{number}")
            yield read[-1]

    checker = checker_of(site_of())
    answers = checker.check_many(AGENT, source_of(endless()), window=10)

    for number in range(100):
        checked = await anext(answers)
        await let_others_run()
        assert checked.url == f"{ORIGIN}/{number}"
        assert len(read) <= number + 1 + 10


async def test_source_may_depend_on_earlier_results() -> None:
    """As in a crawl, whose frontier grows with the links in allowed pages."""
    send, frontier = anyio.create_memory_object_stream[str](100)
    send.send_nowait(f"{ORIGIN}/0")
    visited = []

    async with send, frontier:
        async for checked in checker_of(site_of()).check_many(AGENT, frontier):
            visited.append(checked.url)
            if len(visited) == 5:
                break
            send.send_nowait(f"https://host{len(visited)}.example/")

    assert len(visited) == 5


@pytest.mark.parametrize(
    "is_slow", [True, False], ids=["during a fetch", "at a result"]
)
async def test_leaving_the_loop_leaves_nothing_behind(
    source_of: Callable[[Iterable[str]], Any], *, is_slow: bool
) -> None:
    """Neither a task that reads the source, nor a warning from trio."""
    site = GatedSite() if is_slow else FakeSite()
    checker = checker_of(site)
    source = source_of(f"https://host{number}.example/" for number in range(2_000))

    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as tasks:
            if is_slow:
                tasks.start_soon(let_others_run_and_cancel, scope)
            async for _ in checker.check_many(AGENT, source, window=3):
                break
    await let_others_run()
    reading = len(checker._sources)
    gc.collect()
    await checker.aclose()

    assert scope.cancelled_caught is is_slow
    assert reading == 0


async def test_closed_iterator_reads_no_further_even_while_referenced(
    source_of: Callable[[Iterable[str]], Any],
) -> None:
    checker = checker_of(FakeSite())
    urls = [f"https://host{number}.example/" for number in range(100)]

    async with aclosing(checker.check_many(AGENT, source_of(urls), window=3)) as every:
        await anext(every)
    reading = len(checker._sources)
    await every.aclose()

    assert reading == 0
    assert [checked async for checked in every] == []


async def test_closing_the_iterator_elsewhere_ends_a_waiting_loop() -> None:
    send, receive = anyio.create_memory_object_stream[str]()
    every = checker_of(FakeSite()).check_many(AGENT, receive)
    answers: list[CheckResult] = []

    async def work() -> None:
        answers.extend([checked async for checked in every])

    with send, receive:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await let_others_run()
            await every.aclose()

    assert answers == []


async def test_iterator_dropped_by_another_thread_leaves_nothing_behind() -> None:
    """The garbage collector can run in any thread."""
    checker = checker_of(site_of())
    iterators = [checker.check_many(AGENT, [PUBLIC] * 100, window=3)]
    await anext(iterators[0])

    await anyio.to_thread.run_sync(iterators.clear)
    await let_others_run()

    assert len(checker._sources) == 0


async def let_others_run_and_cancel(scope: anyio.CancelScope) -> None:
    await let_others_run()
    scope.cancel()


async def test_async_generator_is_closed_on_leaving_the_loop() -> None:
    closed = []

    async def source() -> AsyncGenerator[str, None]:
        try:
            for number in count():
                yield f"{ORIGIN}/{number}"
        finally:
            closed.append(True)

    async for _ in checker_of(site_of()).check_many(AGENT, source(), window=5):
        break
    await let_others_run()

    assert closed == [True]


async def test_stream_used_as_a_source_stays_open() -> None:
    send, receive = anyio.create_memory_object_stream[str](10)
    send.send_nowait(PUBLIC)
    with send, receive:
        async for _ in checker_of(site_of()).check_many(AGENT, receive):
            break
        await let_others_run()
        send.send_nowait(PRIVATE)

        assert receive.receive_nowait() == PRIVATE


@pytest.mark.parametrize("source_of", LAZY)
async def test_exception_in_the_source_is_raised_after_earlier_results(
    source_of: Callable[[Iterable[str]], Any],
) -> None:
    def broken() -> Iterable[str]:
        yield PUBLIC
        yield "mailto:me"
        message = "the file is gone"
        raise LookupError(message)

    answers = checker_of(site_of()).check_many(AGENT, source_of(broken()))
    before = [await anext(answers), await anext(answers)]

    with pytest.raises(LookupError, match="the file is gone"):
        await anext(answers)

    assert [checked.url for checked in before] == [PUBLIC, "mailto:me"]


async def test_cancelled_caller_can_continue_with_the_same_result() -> None:
    site = GatedSite()
    site.serve(ORIGIN, RULES)
    answers = checker_of(site).check_many(AGENT, [PRIVATE, PUBLIC])

    with anyio.CancelScope() as scope:
        scope.cancel()
        await anext(answers)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(let_others_run_and_cancel, tasks.cancel_scope)
        await anext(answers)
    site.gate.set()

    assert [checked.url async for checked in answers] == [PRIVATE, PUBLIC]


async def test_second_task_at_the_same_time_is_refused() -> None:
    """It would take the result that the first one is waiting for."""
    site = GatedSite()
    site.serve(ORIGIN, RULES)
    answers = checker_of(site).check_many(AGENT, [PRIVATE, PUBLIC])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anext, answers)
        await let_others_run()
        with pytest.raises(RuntimeError, match="one task at a time"):
            await anext(answers)
        site.gate.set()

    assert [checked.url async for checked in answers] == [PUBLIC]


async def test_results_continue_after_one_raises() -> None:
    class Broken(FakeSite):
        async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.host == "broken.example":
                raise TypeError("a mistake of the client")
            return await super().handle_async_request(request)

    urls = ["https://broken.example/", PUBLIC]
    answers = checker_of(Broken()).check_many(AGENT, urls)

    with pytest.raises(TypeError, match="a mistake of the client"):
        await anext(answers)
    assert [checked.url async for checked in answers] == [PUBLIC]


async def test_invalid_arguments_and_closed_checkers_are_refused() -> None:
    checker = checker_of(site_of())
    with pytest.raises(InvalidProductTokenError):
        checker.check_many("", [])
    with pytest.raises(ValueError, match="window to be 1 or more, got 0"):
        checker.check_many(AGENT, [], window=0)

    await checker.aclose()

    with pytest.raises(RuntimeError, match="the checker is closed"):
        await all_of(checker, [PUBLIC])


async def test_closing_the_checker_ends_the_loop() -> None:
    send, receive = anyio.create_memory_object_stream[str]()
    checker = checker_of(site_of())
    errors = []

    async def work() -> None:
        with pytest.raises(RuntimeError) as caught:
            await all_of(checker, receive)
        errors.append(str(caught.value))

    with send, receive:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(work)
            await let_others_run()
            await checker.aclose()

    assert errors == ["the checker is closed"]
