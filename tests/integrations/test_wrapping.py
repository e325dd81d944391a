"""What the wraps of clients share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest
import yarl

import robotsgate
from robotsgate import (
    AccessResult,
    DisallowedError,
    FetchedResponse,
    InvalidProductTokenError,
    PolitenessGate,
    Reason,
    RobotsChecker,
    sync,
)
from robotsgate.integrations._wrapping import TurnOfResponse
from robotsgate.integrations.aiohttp import robots_middleware
from robotsgate.integrations.crawl4ai import RobotsParser
from robotsgate.integrations.httpx import (
    RobotsTransport,
    SyncRobotsTransport,
    robots_hook,
)
from robotsgate.integrations.requests import RobotsAdapter
from tests.checking.builders import AGENT, PRIVATE, PUBLIC, RULES, checker_of, site_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType


@pytest.mark.anyio
async def test_refusal_counts_as_one_check() -> None:
    async with RobotsChecker(user_agent=AGENT, client=site_of()) as checker:
        answers = [
            await checker.refusal(AGENT, url) is None
            for url in (PRIVATE, PRIVATE, PUBLIC)
        ]

    assert answers == [False, False, True]
    assert checker.stats.disallowed == {Reason.DISALLOWED_BY_RULE: 2}
    assert checker.stats.checks == 3


@pytest.mark.anyio
async def test_turn_of_a_response_that_is_closed_twice_ends_once() -> None:
    checker = RobotsChecker(user_agent=AGENT, client=site_of())
    async with checker, PolitenessGate(checker, AGENT, default_delay=0) as gate:
        turn = await TurnOfResponse.begun(gate, PUBLIC)
        turn.report(httpx.Response(500))

        await turn.aclose()
        await turn.aclose()

        assert gate.stats.under_way == 0


def test_refusal_of_a_blocking_checker_counts_as_one_check() -> None:
    with sync.RobotsChecker(user_agent=AGENT, client=site_of()) as checker:
        for url in (PUBLIC, PRIVATE, PRIVATE, PUBLIC):
            checker.refusal(AGENT, url)

        assert checker.stats.disallowed == {Reason.DISALLOWED_BY_RULE: 2}
        assert checker.stats.checks == 4


WRAPS: dict[Any, ModuleType] = {
    RobotsTransport: robotsgate,
    robots_middleware: robotsgate,
    SyncRobotsTransport: sync,
    RobotsAdapter: sync,
}
"""By what wraps a client: the module of the checker and the gate that it needs."""


@pytest.fixture
def checkers() -> Iterator[dict[ModuleType, Any]]:
    """A checker of each kind, by its module."""
    with sync.RobotsChecker(client=site_of()) as blocking:
        yield {robotsgate: RobotsChecker(client=site_of()), sync: blocking}


@pytest.mark.parametrize(("wrap", "needed"), WRAPS.items())
def test_checker_of_the_other_kind_is_refused_at_once(
    wrap: Any,  # noqa: ANN401 (each has other arguments)
    needed: ModuleType,
    checkers: dict[ModuleType, Any],
) -> None:
    """The coroutines of an asynchronous one are true, so every page was fetched."""
    other = checkers.keys() - {needed}

    with pytest.raises(TypeError) as error:
        wrap(checkers[other.pop()], AGENT)

    expected = rf"expected a {needed.__name__}\.RobotsChecker, got <robotsgate\."
    assert re.match(expected, str(error.value))


@pytest.mark.parametrize(("wrap", "needed"), WRAPS.items())
def test_gate_of_the_other_kind_is_refused_at_once(
    wrap: Any,  # noqa: ANN401 (each has other arguments)
    needed: ModuleType,
    checkers: dict[ModuleType, Any],
) -> None:
    (other,) = checkers.keys() - {needed}
    gate = other.PolitenessGate(checkers[other], AGENT)

    with pytest.raises(TypeError) as error:
        wrap(checkers[needed], AGENT, gate=gate)

    expected = rf"expected gate to be a {needed.__name__}\.PolitenessGate, got <robots"
    assert re.match(expected, str(error.value))


@pytest.mark.parametrize("wrap", [robots_hook, *WRAPS])
def test_arguments_that_are_swapped_are_refused_at_once(wrap: Any) -> None:  # noqa: ANN401 (each has other arguments)
    with pytest.raises(TypeError, match=r"a robotsgate.*\.RobotsChecker, got 'Exampl"):
        wrap(AGENT, RobotsChecker(client=site_of()))


@pytest.mark.parametrize(
    ("wrap", "needed"),
    [(robots_hook, sync), (RobotsParser, robotsgate), *WRAPS.items()],
)
@pytest.mark.parametrize("agent", ["", "Mozilla/5.0 (Windows NT 10.0)"])
def test_agent_that_names_no_crawler_is_refused_at_once(
    wrap: Any,  # noqa: ANN401 (each has other arguments)
    needed: ModuleType,
    agent: str,
    checkers: dict[ModuleType, Any],
) -> None:
    with pytest.raises(InvalidProductTokenError):
        wrap(checkers[needed], agent)


@pytest.mark.anyio
async def test_hook_for_responses_is_refused() -> None:
    checker = RobotsChecker(client=site_of())
    hooks = {"response": [robots_hook(checker, AGENT)]}

    async with httpx.AsyncClient(transport=site_of(), event_hooks=hooks) as client:
        with pytest.raises(TypeError, match="used for requests, got a response"):
            await client.get(PUBLIC)


class OtherTaskFetcher:
    """Sends through a client, which asks the checker, in a task of its own.

    Attributes:
        client: set later, because its hook needs the checker of this fetcher.
        url: what the task gets as well, once the fetch is over; `None`: nothing.
        error: what that raised.
    """

    def __init__(self, tasks: anyio.abc.TaskGroup, *, url: str | None = None) -> None:
        self.client: httpx.AsyncClient
        self.is_over = anyio.Event()
        self.is_left = anyio.Event()
        self.url = url
        self.error: Exception | None = None
        self._tasks = tasks

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        del headers, max_bytes
        responses: list[httpx.Response] = []
        has_answered = anyio.Event()

        async def send() -> None:
            # In the spelling of another client than httpx.
            responses.append(await self.client.get(str(yarl.URL(url))))
            has_answered.set()
            if self.url is not None:
                await self.is_over.wait()
                try:
                    await self.client.get(self.url)
                except DisallowedError as error:
                    self.error = error
                self.is_left.set()

        self._tasks.start_soon(send)
        await has_answered.wait()
        (response,) = responses
        return FetchedResponse(
            status=response.status_code,
            headers=response.headers.multi_items(),
            body=response.content,
            is_decoded=True,
        )


@pytest.mark.anyio
@pytest.mark.parametrize("location", [
    "/a~b", "/a%7Eb", "/a%7eb", "/a b", "/a%20b", "/a%2Cb", "/a?", "/é?é",
    "//b\u00fccher.example/a", "//EXAMPLE.com.:443/a", "/b/%2e%2e/a", "\\a\\b",
])  # fmt: skip
async def test_own_request_in_another_task_does_not_wait_for_itself(
    location: str,
) -> None:
    """If the hop is not recognised, the fetch waits for itself until its deadline."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/robots.txt":
            return httpx.Response(302, headers={"Location": location.encode()})
        return httpx.Response(200, text=RULES)

    async with anyio.create_task_group() as tasks:
        fetcher = OtherTaskFetcher(tasks)
        async with checker_of(fetcher) as checker:
            hooks = {"request": [robots_hook(checker, AGENT)]}
            transport = httpx.MockTransport(answer)
            fetcher.client = httpx.AsyncClient(transport=transport, event_hooks=hooks)

            with anyio.fail_after(5):
                verdict = await checker.check(AGENT, PRIVATE)

    assert verdict.access is AccessResult.SUCCESSFUL


@pytest.mark.anyio
@pytest.mark.parametrize("is_over", [False, True], ids=["during", "after"])
async def test_task_that_begins_in_a_fetch_passes_with_its_current_get_only(
    *, is_over: bool
) -> None:
    """All later requests of such a task passed unasked."""
    async with anyio.create_task_group() as tasks:
        fetcher = OtherTaskFetcher(tasks, url=PRIVATE)
        async with checker_of(fetcher) as checker:
            hooks = {"request": [robots_hook(checker, AGENT)]}
            transport = site_of()
            fetcher.client = httpx.AsyncClient(transport=transport, event_hooks=hooks)
            if not is_over:
                fetcher.is_over.set()

            await checker.check(AGENT, PUBLIC)
            fetcher.is_over.set()
            with anyio.fail_after(5):
                await fetcher.is_left.wait()

    assert isinstance(fetcher.error, DisallowedError)
