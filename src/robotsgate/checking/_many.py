"""Lookups for many URLs: plain booleans, or full results in order for any iterable.

An invalid URL does not stop the others; it gets a result like any other URL.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

import anyio
import anyio.lowlevel

from robotsgate.caching._question import Agent, Question
from robotsgate.checking._in_order import InOrder, LoopTurns
from robotsgate.errors import InvalidURLError, UnsupportedError
from robotsgate.urls._url import Origin, URLLike, is_url_like

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Iterable,
        Sequence,
    )

    from robotsgate.caching._verdict import Verdict
    from robotsgate.checking._answers import Answers
    from robotsgate.checking._renewal import Renewals

_Item = TypeVar("_Item")
_URL = str | URLLike

# Looking up this many at once in a file takes a hundredth of the time of single
# lookups.
_LOADED_AT_ONCE = 100

_NO_QUESTION = (InvalidURLError, UnsupportedError)


class CheckResult(NamedTuple):
    """The result of `check_many` for one URL.

    Attributes:
        url: the URL as passed by the caller; it may contain a password.
        verdict: the verdict; `None` if there is an error.
        error: why `url` was not checked (it has no origin, or the checker's client
            cannot fetch it); `None` if there is a verdict.
    """

    url: str | URLLike
    verdict: Verdict | None
    error: InvalidURLError | UnsupportedError | None


async def answer_each(
    agent: str | Sequence[str],
    urls: Iterable[_URL],
    *,
    answers: Answers,
    renewals: Renewals,
) -> list[bool]:
    """Whether `agent` may fetch each of `urls`; `False` for a URL without an origin.

    Args:
        agent: as passed by the caller.
        urls: read to the end before anything is fetched.
        answers: the checker's `Answers`.
        renewals: the checker's `Renewals`.
    """
    known_agent = Agent.of(agent)
    turns = LoopTurns(answers.clock.monotonic)
    allowed: list[bool | None] = []
    unknown: dict[Origin, list[tuple[int, _URL]]] = {}
    # Keyed by origin: most URLs start with that key, and only the first one with each
    # key is parsed.
    origins: dict[str, Origin] = {}

    def from_memory(url: _URL) -> bool | Origin:
        """The result, or the URL's origin if its entry is not in memory."""
        try:
            question = Question.of(agent, url, answers.grammar)
            renewals.check_usable(question.origin)
        except _NO_QUESTION:
            if not is_url_like(url):
                raise
            return False
        answer = answers.from_memory(question)
        return question.origin if answer is None else answer

    for number, url in enumerate(urls):
        answer = answers.at_once(agent, url)
        if answer is None:
            known = origins.get(_beginning(url)) or from_memory(url)
            if isinstance(known, Origin):
                unknown.setdefault(known, []).append((number, url))
                origins[known.key] = known
            else:
                answer = known
        allowed.append(answer)
        await turns.after_item()

    async def answer_origin(origin: Origin) -> None:
        rules = await answers.rules_for(known_agent, origin)
        for number, url in unknown[origin]:
            answer = answers.at_once(agent, url)
            if answer is None:
                question = Question.of(agent, url, answers.grammar)
                answer = await answers.allows(rules, question)
            allowed[number] = answer
            await turns.after_item()

    others = await _work_on_stored(unknown, answer_origin, renewals=renewals)
    await for_each(others, answer_origin, at_once=renewals.max_concurrent_fetches)
    return cast("list[bool]", allowed)  # no `None` is left


async def _work_on_stored(
    origins: Iterable[Origin],
    work: Callable[[Origin], Awaitable[None]],
    *,
    renewals: Renewals,
) -> list[Origin]:
    """Do `work` for those `origins` that are in the store; return the others."""
    waiting = iter(origins)
    others = []
    while some := [*islice(waiting, _LOADED_AT_ONCE)]:
        await renewals.load(some)
        for origin in some:
            if renewals.current(origin) is None:
                others.append(origin)
            else:
                await work(origin)
    return others


def _beginning(url: _URL) -> str:
    """The part of `url` that is usually its origin's key; may be empty."""
    return url[: max(url.find("/", 8), 0)] if isinstance(url, str) else ""


async def prefetch(
    urls: Iterable[_URL],
    *,
    renewals: Renewals,
    monotonic: Callable[[], float],
) -> None:
    """Fetch the uncached origins of `urls`."""
    turns = LoopTurns(monotonic)
    usable: dict[Origin, None] = {}
    for url in urls:
        try:
            origin = Origin.from_url(url)
            renewals.check_usable(origin)
        except _NO_QUESTION:
            if not is_url_like(url):
                raise
        else:
            usable[origin] = None
        await turns.after_item()

    async def prepare(origin: Origin) -> None:
        standing = await renewals.standing(origin)
        standing.forget_body()  # it may not be needed soon

    await for_each(usable, prepare, at_once=renewals.max_concurrent_fetches)


def check_in_order(
    agent: str | Sequence[str],
    urls: Iterable[_URL],
    *,
    answers: Answers,
    renewals: Renewals,
    window: int,
) -> AsyncIterator[CheckResult]:
    """The results for `urls`, in order; up to `window` URLs are read ahead."""
    Agent.of(agent)

    def prepare(url: _URL) -> Question | CheckResult:
        try:
            question = Question.of(agent, url, answers.grammar)
            if renewals.current(question.origin) is None:
                renewals.begin(question.origin)
        except _NO_QUESTION as error:
            return CheckResult(url, None, error)
        return question

    def is_ready(prepared: Question | CheckResult) -> bool:
        if isinstance(prepared, CheckResult):
            return True
        return renewals.current(prepared.origin) is not None

    async def answer(prepared: Question | CheckResult) -> CheckResult:
        if isinstance(prepared, CheckResult):
            return prepared
        return CheckResult(prepared.url, await answers.verdict(prepared), None)

    return InOrder(
        urls,
        prepare=prepare,
        is_ready=is_ready,
        answer=answer,
        window=window,
        monotonic=answers.clock.monotonic,
    )


async def for_each(
    items: Iterable[_Item], work: Callable[[_Item], Awaitable[None]], *, at_once: int
) -> None:
    """Do `work` for each of `items`, letting other tasks run in between.

    Args:
        items: the items, in the order in which to start them.
        work: the work for one item.
        at_once: the maximum number of concurrent calls, ≥ 1.

    Raises:
        Exception: the first exception raised by `work`, not wrapped in a group; all
            other work is cancelled.
    """
    every = list(items)
    waiting = iter(every)
    failures: list[Exception] = []

    async def worker() -> None:
        for item in waiting:
            try:
                await work(item)
            except Exception as error:  # noqa: BLE001 (raised below, by itself)
                failures.append(error)
                tasks.cancel_scope.cancel()
                return
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        for _ in range(min(at_once, len(every))):
            tasks.start_soon(worker)
    if failures:
        raise failures[0]
