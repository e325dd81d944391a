"""Many URLs: results in order, while later origins are being fetched."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import anyio
import pytest

from robotsgate import CheckResult, InvalidProductTokenError, InvalidURLError
from robotsgate.testing import FakeSite, ManualClock

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
    from collections.abc import Iterable, Iterator

    import httpx

    from robotsgate import RobotsChecker, URLLike

pytestmark = pytest.mark.anyio


async def all_of(
    checker: RobotsChecker, urls: Iterable[str], **window: int
) -> list[CheckResult]:
    return [checked async for checked in checker.check_many(AGENT, urls, **window)]


@pytest.mark.parametrize("window", [1, 2, 1_000])
async def test_results_are_in_order_and_explain_missing_verdicts(
    window: int,
) -> None:
    site = site_of()
    urls = ["mailto:me", PRIVATE, f"{OTHER_ORIGIN}/a", "http://[::1", PUBLIC, PRIVATE]
    checker = checker_of(site)

    every = await all_of(checker, iter(urls), window=window)

    assert [checked.url for checked in every] == urls
    allowed = [getattr(checked.verdict, "allowed", None) for checked in every]
    assert allowed == [None, False, True, None, True, False]
    errors = [type(checked.error) for checked in every if checked.verdict is None]
    assert errors == [InvalidURLError] * 2
    assert "got 'mailto:me'" in str(every[0].error)
    assert sorted(site.requests) == [ROBOTS_TXT, f"{OTHER_ORIGIN}/robots.txt"]
    assert checker.stats.checks == 4


async def test_later_origins_are_fetched_while_the_first_is_slow() -> None:
    site, clock = GatedSite(), ManualClock()
    checker = checker_of(site, clock=clock)
    urls = [f"https://host{number}.example/" for number in range(9)]
    answers: list[str] = []

    async def work() -> None:
        source = slowly(urls, clock)
        answers.extend(one.url for one in await all_of(checker, source, window=5))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        await let_others_run()
        under_way = site.under_way
        site.gate.set()

    assert (under_way, answers) == (5, urls)


def slowly(urls: Iterable[str], clock: ManualClock) -> Iterator[str]:
    """The `urls`, one a second."""
    for url in urls:
        clock.advance(1)
        yield url


@pytest.mark.parametrize("url", [PUBLIC, "mailto:me"])
async def test_slow_source_does_not_delay_a_result_that_is_ready(url: str) -> None:
    clock = ManualClock()
    checker = checker_of(site_of(), clock=clock)
    await checker.prefetch([ORIGIN])
    began_at = clock.now()

    async for _ in checker.check_many(AGENT, slowly([url, PRIVATE], clock)):
        break

    assert clock.now() == began_at + 1


async def test_no_more_than_the_window_is_read_ahead_from_an_endless_source() -> None:
    numbers = count()
    urls = (f"{ORIGIN}/{number}" for number in numbers)
    answers = checker_of(site_of()).check_many(AGENT, urls, window=10)

    visited = [(await anext(answers)).url for _ in range(100)]

    assert visited == [f"{ORIGIN}/{number}" for number in range(100)]
    assert next(numbers) == 109


async def test_exception_in_the_source_is_raised_after_earlier_results() -> None:
    def broken() -> Iterator[str]:
        yield PUBLIC
        yield "mailto:me"
        message = "the file is gone"
        raise LookupError(message)

    answers = checker_of(site_of()).check_many(AGENT, broken())
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
        tasks.start_soon(anext, answers)
        await let_others_run()
        tasks.cancel_scope.cancel()
    site.gate.set()

    assert [checked.url async for checked in answers] == [PRIVATE, PUBLIC]


async def test_tasks_that_share_the_iterator_get_different_results() -> None:
    site = GatedSite()
    site.serve(ORIGIN, RULES)
    answers = checker_of(site).check_many(AGENT, [PRIVATE, PUBLIC])
    urls: list[str | URLLike] = []

    async def work() -> None:
        urls.append((await anext(answers)).url)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        tasks.start_soon(work)
        await let_others_run()
        site.gate.set()

    assert urls == [PRIVATE, PUBLIC]


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
