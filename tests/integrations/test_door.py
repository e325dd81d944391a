"""What all client wraps share: argument checks and own requests."""

from __future__ import annotations

import gc
from contextlib import AsyncExitStack
from functools import partial
from types import SimpleNamespace
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
    InvalidURLError,
    RobotsChecker,
    sync,
)
from robotsgate.integrations._door import (
    Client,
    Door,
    at_once,
    end_soon,
    urls_by_host,
)
from robotsgate.integrations.aiohttp import robots_middleware
from robotsgate.integrations.crawl4ai import RobotsParser
from robotsgate.integrations.httpx import (
    RobotsTransport,
    robots_hook,
)
from robotsgate.integrations.requests import RobotsAdapter
from tests.checking.builders import AGENT, PRIVATE, PUBLIC, RULES, checker_of, site_of
from tests.fetching.fetches import PATIENCE_SECONDS
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import ModuleType


WRAPS: list[tuple[Any, ModuleType]] = [
    (RobotsTransport, robotsgate),
    (RobotsTransport, sync),
    (robots_middleware, robotsgate),
    (RobotsAdapter, sync),
]
"""Each wrap, and the module that provides its checker and gate."""


@pytest.fixture
def checkers() -> Iterator[dict[ModuleType, Any]]:
    """A checker of each kind, by module."""
    with sync.RobotsChecker(client=site_of()) as blocking:
        yield {robotsgate: RobotsChecker(client=site_of()), sync: blocking}


@pytest.mark.parametrize(("wrap", "needed"), WRAPS)
def test_checker_or_gate_of_the_other_kind_is_refused_at_once(
    wrap: Any,  # noqa: ANN401 (their arguments differ)
    needed: ModuleType,
    checkers: dict[ModuleType, Any],
) -> None:
    """An async checker's coroutines are truthy, so every page used to be fetched."""
    (other,) = checkers.keys() - {needed}
    gate = other.PolitenessGate(checkers[other], AGENT)

    expected = rf"expected gate to be a {needed.__name__}\.PolitenessGate, got <robots"
    with pytest.raises(TypeError, match=expected):
        wrap(checkers[needed], AGENT, gate=gate)
    if wrap is not RobotsTransport:  # which accepts both
        expected = rf"expected a {needed.__name__}\.RobotsChecker, got <robotsgate\."
        with pytest.raises(TypeError, match=expected):
            wrap(checkers[other], AGENT)


@pytest.mark.parametrize(
    "wrap", [robots_hook, RobotsTransport, robots_middleware, RobotsAdapter]
)
def test_swapped_arguments_are_refused_at_once(wrap: Any) -> None:  # noqa: ANN401 (their arguments differ)
    with pytest.raises(TypeError, match=r"a robotsgate.*\.RobotsChecker, got 'Exampl"):
        wrap(AGENT, RobotsChecker(client=site_of()))


@pytest.mark.parametrize(
    ("wrap", "needed"),
    [(robots_hook, sync), (RobotsParser, robotsgate), *WRAPS],
)
@pytest.mark.parametrize("agent", ["", "Mozilla/5.0 (Windows NT 10.0)"])
def test_agent_that_names_no_crawler_is_refused_at_once(
    wrap: Any,  # noqa: ANN401 (their arguments differ)
    needed: ModuleType,
    agent: str,
    checkers: dict[ModuleType, Any],
) -> None:
    with pytest.raises(InvalidProductTokenError):
        wrap(checkers[needed], agent)


@pytest.mark.anyio
async def test_hook_registered_for_responses_is_refused() -> None:
    checker = RobotsChecker(client=site_of())
    hooks = {"response": [robots_hook(checker, AGENT)]}

    async with httpx.AsyncClient(transport=site_of(), event_hooks=hooks) as client:
        with pytest.raises(TypeError, match="used for requests, got a response"):
            await client.get(PUBLIC)


@cases("host expected", {
    "own name": ("example.com", []),
    "own name, in capitals, with a dot and port": ("EXAMPLE.com.:443", []),
    "another port": ("example.com:8443", ["https://example.com:8443/a?b"]),
    "another name": ("other.example", ["https://other.example/a?b"]),
    "an address": ("[::1]", ["https://[::1]/a?b"]),
    "as bytes": (b"other.example", ["https://other.example/a?b"]),
})  # fmt: skip
def test_host_header_adds_the_url_on_that_host(
    host: str | bytes, expected: list[str]
) -> None:
    headers = [("Accept", "*/*"), ("HOST", host)]

    urls = list(urls_by_host("https://example.com/a?b", headers))

    assert urls == ["https://example.com/a?b", *expected]


@pytest.mark.parametrize("host", [
    "", "a b", "me@a.example", "a.example/b", "a.example, b.example", "a.example:8x",
    "a.example\n", "[::1", "::1", "b\u00fccher.example", "1.2.3.4.5",
])  # fmt: skip
def test_header_that_names_no_host_raises(host: str) -> None:
    with pytest.raises(InvalidURLError):
        list(urls_by_host("https://example.com/", [("Host", host)]))


@cases("module methods closed_by", {
    "httpx": (robotsgate, {"close", "aclose"}, ["aclose"]),
    "aiohttp": (robotsgate, {"close"}, ["close"]),
    "blocking httpx": (sync, {"close", "aclose"}, ["close"]),
    "requests": (sync, {"close"}, ["close"]),
    "another client": (robotsgate, set(), []),
})  # fmt: skip
def test_response_that_cannot_be_reported_is_closed(
    checkers: dict[ModuleType, Any],
    module: ModuleType,
    methods: set[str],
    closed_by: list[str],
) -> None:
    calls: list[str] = []

    async def aclose() -> None:
        calls.append("aclose")

    closes = {"close": lambda: calls.append("close"), "aclose": aclose}
    response = SimpleNamespace(status="200", headers={})
    vars(response).update({name: closes[name] for name in methods})
    gate = module.PolitenessGate(checkers[module], AGENT)
    door = Door(checkers[module], AGENT, gate, modules=[module.__name__])
    client = Client(lambda _: [PUBLIC], lambda *_: None)
    run: Any = (lambda send: at_once(send())) if module is sync else anyio.run

    with pytest.raises(TypeError, match="expected status to be an int"):
        run(partial(door.send, None, lambda _: response, client))

    assert (calls, gate.stats.under_way) == (closed_by, 0)


def test_connection_released_after_its_loop_leaves_no_coroutine() -> None:
    turn: Any = SimpleNamespace(leave_task=lambda: None)

    with pytest.raises(RuntimeError, match="no running event loop"):
        end_soon(turn, AsyncExitStack())
    gc.collect()  # would warn


class OtherTaskFetcher:
    """A fetcher that sends in another task, through a client wrapped by its checker.

    Attributes:
        client: set later, because its hook needs the checker that uses this fetcher.
        over_event: once set, the task requests `url`.
        done_event: set after that request.
        url: another URL for the task to request; `None` for none.
        error: the error from that request.
    """

    def __init__(self, tasks: anyio.abc.TaskGroup, *, url: str | None = None) -> None:
        self.client: httpx.AsyncClient
        self.over_event = anyio.Event()
        self.done_event = anyio.Event()
        self.url = url
        self.error: Exception | None = None
        self._tasks = tasks

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        del headers, max_bytes
        responses: list[httpx.Response] = []
        answered_event = anyio.Event()

        async def send() -> None:
            # Spelled as a client other than httpx would.
            responses.append(await self.client.get(str(yarl.URL(url))))
            answered_event.set()
            if self.url is not None:
                await self.over_event.wait()
                try:
                    await self.client.get(self.url)
                except DisallowedError as error:
                    self.error = error
                self.done_event.set()

        self._tasks.start_soon(send)
        await answered_event.wait()
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
async def test_fetch_sent_from_another_task_does_not_wait_for_itself(
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

            with anyio.fail_after(PATIENCE_SECONDS):
                verdict = await checker.check(AGENT, PRIVATE)

    assert verdict.access is AccessResult.SUCCESSFUL


@pytest.mark.anyio
@pytest.mark.parametrize("is_over", [False, True], ids=["during", "after"])
async def test_task_started_by_a_fetch_sends_only_its_current_get_unchecked(
    *, is_over: bool
) -> None:
    """All later requests from such a task used to go unchecked."""
    async with anyio.create_task_group() as tasks:
        fetcher = OtherTaskFetcher(tasks, url=PRIVATE)
        async with checker_of(fetcher) as checker:
            hooks = {"request": [robots_hook(checker, AGENT)]}
            transport = site_of()
            fetcher.client = httpx.AsyncClient(transport=transport, event_hooks=hooks)
            if not is_over:
                fetcher.over_event.set()

            await checker.check(AGENT, PUBLIC)
            fetcher.over_event.set()
            with anyio.fail_after(PATIENCE_SECONDS):
                await fetcher.done_event.wait()

    assert isinstance(fetcher.error, DisallowedError)
