"""The blocking checker, which gives the same answers as the asynchronous one."""

from __future__ import annotations

import inspect
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from robotsgate import InvalidURLError, Reason, sync
from robotsgate.testing import ManualClock
from tests.checking.builders import (
    AGENT,
    ORIGIN,
    PRIVATE,
    PUBLIC,
    GatedSite,
    checker_of,
    site_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_TIMEOUT_SECONDS = 30.0

RULES = (
    "User-agent: *\nDisallow: /private\nCrawl-delay: 2\nRequest-rate: 1/5\nSitemap: /s"
)


@pytest.fixture
def checker() -> Iterator[sync.RobotsChecker]:
    with open_checker(site_of(RULES)) as checker:
        yield checker


def open_checker(site: Any) -> sync.RobotsChecker:  # noqa: ANN401 (a site from the builders)
    return sync.RobotsChecker(user_agent=AGENT, client=site, clock=ManualClock())


METHODS: dict[str, Callable[[Any], Any]] = {
    "can_fetch": lambda checker: checker.can_fetch(AGENT, PRIVATE),
    "can_fetch_many": lambda checker: checker.can_fetch_many(AGENT, [PRIVATE, PUBLIC]),
    "check": lambda checker: checker.check(AGENT, PRIVATE),
    "crawl_delay": lambda checker: checker.crawl_delay(AGENT, ORIGIN),
    "forget": lambda checker: checker.forget(ORIGIN),
    "peek": lambda checker: checker.peek(AGENT, PRIVATE),
    "prefetch": lambda checker: checker.prefetch([PRIVATE]),
    "purge": lambda checker: checker.purge(),
    "refresh": lambda checker: checker.refresh(ORIGIN),
    "request_rate": lambda checker: checker.request_rate(AGENT, ORIGIN),
    "usage_preferences": lambda checker: checker.usage_preferences(AGENT, ORIGIN),
    "refusal": lambda checker: checker.refusal(AGENT, PRIVATE),
    "robots_txt": lambda checker: checker.robots_txt(ORIGIN).as_dict(),
    "sitemaps": lambda checker: checker.sitemaps(ORIGIN),
    "stats": lambda checker: checker.stats,
}


@pytest.mark.parametrize("call", METHODS.values(), ids=METHODS)
def test_method_returns_the_same_as_the_asynchronous_one(
    checker: sync.RobotsChecker, call: Callable[[Any], Any]
) -> None:
    class Awaited:
        """Awaits the results of the asynchronous checker's methods."""

        def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (any method)
            member = getattr(asynchronous, name)
            if not inspect.iscoroutinefunction(member):
                return member
            return lambda *arguments: anyio.run(member, *arguments)

    asynchronous = checker_of(site_of(RULES))

    assert call(checker) == call(Awaited())


def test_check_many_keeps_the_order_and_stops_when_it_is_closed(
    checker: sync.RobotsChecker,
) -> None:
    results = checker.check_many(AGENT, [PRIVATE, "junk", PUBLIC])
    assert [bool(verdict) for _, verdict, _ in results] == [False, False, True]

    urls = count()
    endless = checker.check_many(AGENT, (f"{PUBLIC}/{n}" for n in urls), window=2)
    assert next(endless).url == f"{PUBLIC}/0"
    endless.close()  # type: ignore[attr-defined]  # a generator
    checker.purge()  # lets the event loop finish its work
    reached = next(urls)
    checker.purge()
    assert next(urls) == reached + 1


def test_bad_arguments_raise_in_the_calling_thread(checker: sync.RobotsChecker) -> None:
    with pytest.raises(InvalidURLError):
        checker.can_fetch(AGENT, "junk")
    with pytest.raises(TypeError):
        checker.check_many(AGENT, PRIVATE)


def test_cached_lookup_works_while_a_loop_is_busy(checker: sync.RobotsChecker) -> None:
    checker.can_fetch(AGENT, PUBLIC)
    may_go_on = threading.Event()
    checker._loop.portal.start_task_soon(may_go_on.wait, _TIMEOUT_SECONDS)

    answers = [checker.can_fetch(AGENT, PUBLIC), checker.peek(AGENT, PRIVATE)]

    assert not may_go_on.is_set()
    may_go_on.set()
    assert answers == [True, False]


def test_refusal_counts_as_one_check(checker: sync.RobotsChecker) -> None:
    for url in (PUBLIC, PRIVATE, PRIVATE, PUBLIC):
        checker.refusal(AGENT, url)

    assert checker.stats.disallowed == {Reason.DISALLOWED_BY_RULE: 2}
    assert checker.stats.checks == 4


def test_threads_that_look_up_a_new_origin_share_one_fetch() -> None:
    site = site_of()
    with open_checker(site) as checker, ThreadPoolExecutor(16) as threads:
        answers = threads.map(lambda url: checker.can_fetch(AGENT, url), [PUBLIC] * 64)

        assert [*answers] == [True] * 64

    assert len(site.requests) == 1


def test_closing_ends_waiting_lookups_and_refuses_new_ones() -> None:
    site = GatedSite()
    with open_checker(site) as checker, ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(checker.check, AGENT, PUBLIC)
        while not checker.stats.fetches_under_way:
            pass

        checker.close()
        checker.close()

        with pytest.raises(RuntimeError, match="the checker is closed"):
            waiting.result(_TIMEOUT_SECONDS)
    with pytest.raises(RuntimeError, match="the checker is closed"):
        checker.can_fetch(AGENT, PUBLIC)


def test_error_on_opening_or_closing_is_raised_in_the_calling_thread() -> None:
    class Site(GatedSite):
        async def aclose(self) -> None:
            raise OSError("still in use")

    with pytest.raises(ValueError, match="max_origins"):
        sync.RobotsChecker(user_agent=AGENT, client=Site(), max_origins=0)
    with pytest.raises(TypeError, match=r"sign .* got 7"):
        sync.RobotsChecker(client=Site(), sign=7)  # type: ignore[arg-type]
    with pytest.raises(OSError, match="still in use"):
        open_checker(Site()).close()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_checker_in_a_thread_with_a_loop_works_and_warns_once(backend: str) -> None:
    """It used to create its locks for trio but use them in its own event loop."""

    async def check() -> list[bool]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            with open_checker(site_of()) as checker:
                answers = [checker.can_fetch(AGENT, url) for url in (PUBLIC, PRIVATE)]
                checker.refresh(ORIGIN)
            tasks.cancel_scope.cancel()
        return answers

    with pytest.warns(RuntimeWarning, match="use robotsgate.RobotsChecker") as warned:
        assert anyio.run(check, backend=backend) == [True, False]

    assert [one.filename for one in warned] == [__file__]


def test_no_warning_if_no_other_task_has_to_wait(checker: sync.RobotsChecker) -> None:
    async def check() -> None:
        checker.can_fetch(AGENT, PUBLIC)  # the loop has no other task
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            checker.can_fetch(AGENT, PUBLIC)  # from memory
            tasks.cancel_scope.cancel()

    anyio.run(check)


def test_dropped_checker_warns_and_stops_its_thread() -> None:
    checker = sync.RobotsChecker(user_agent=AGENT)
    thread = checker._loop

    with pytest.warns(ResourceWarning, match="unclosed"):
        del checker

    thread.join(_TIMEOUT_SECONDS)
    assert not thread.is_alive()


OPEN_AT_EXIT = """
import contextlib, threading
from robotsgate import sync
from tests.checking.builders import AGENT, PUBLIC, GatedSite

def check():
    with contextlib.suppress(RuntimeError):
        checker.can_fetch(AGENT, PUBLIC)

site = GatedSite()
checker = sync.RobotsChecker(client=site, store="sqlite:///{path}")
threading.Thread(target=check, daemon=True).start()
while not site.under_way:
    checker.stats  # lets the event loop's thread run
"""


def test_open_checker_lets_the_interpreter_exit(tmp_path: Path) -> None:
    result = subprocess.run(  # noqa: S603 (our own code)
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            OPEN_AT_EXIT.format(path=tmp_path / "db"),
        ],
        check=True,
        timeout=_TIMEOUT_SECONDS,
        stderr=subprocess.PIPE,
        text=True,
    )

    assert result.stderr == ""
