"""What only the wraps of httpx and httpx2 do; `test_behaviours.py` has the rest."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import httpx
import httpx2
import pytest

from robotsgate import PolitenessGate
from robotsgate.integrations.httpx import (
    RobotsDisallowedError,
    RobotsTransport,
    robots_hook,
)
from tests.checking.builders import AGENT, PRIVATE, PUBLIC, RULES, checker_of, site_of
from tests.servers.answers import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import ModuleType

    from tests.servers.loopback import LoopbackServer

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def library(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


async def test_error_names_its_request_and_is_not_one_to_retry(
    library: ModuleType,
) -> None:
    async with checker_of(site_of()) as checker:
        hook = robots_hook(checker, AGENT)
        with pytest.raises(library.RequestError) as refusal:
            await hook(library.Request("GET", PRIVATE))

    error = pickle.loads(pickle.dumps(refusal.value))  # noqa: S301 (our own)
    assert str(error.request.url) == PRIVATE
    assert isinstance(error, RobotsDisallowedError) == (library is httpx)
    assert not isinstance(error, library.TransportError)


async def test_closed_response_closes_the_stream_behind_the_turn(
    library: ModuleType,
) -> None:
    class Stream(library.AsyncByteStream):
        is_closed = False

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield b"page"

        async def aclose(self) -> None:
            self.is_closed = True

    stream = Stream()
    transport = library.MockTransport(lambda _: library.Response(200, stream=stream))
    async with (
        checker_of(site_of()) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
        library.AsyncClient(
            transport=RobotsTransport(checker, AGENT, wrapped=transport, gate=gate)
        ) as client,
        client.stream("GET", PUBLIC),
    ):
        assert not stream.is_closed

    assert stream.is_closed


async def test_transport_may_answer_with_the_verdict_instead(
    library: ModuleType,
) -> None:
    async with checker_of(site_of("User-agent: *\nDisallow: /prï*")) as checker:
        transport = RobotsTransport(checker, AGENT, on_disallowed="response")
        async with library.AsyncClient(transport=transport) as client:
            response = await client.get("https://example.com/prïvate")

    assert response.status_code == 403
    assert isinstance(response, library.Response)
    header = response.headers["x-robotsgate-verdict"]
    assert header.startswith("disallowed by line 2 (")


async def test_transport_sends_by_itself_where_none_is_wrapped(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply())

    async with checker_of(site_of()) as checker:
        transport = RobotsTransport(checker, AGENT)
        async with httpx.AsyncClient(transport=transport) as client:
            await client.get(f"{server.url}/robots.txt")

    assert server.targets == ["/robots.txt"]


async def test_scheme_without_robots_txt_is_left_to_the_client() -> None:
    async with (
        checker_of(site_of()) as checker,
        httpx.AsyncClient(
            event_hooks={"request": [robots_hook(checker, AGENT)]}
        ) as client,
    ):
        with pytest.raises(httpx.UnsupportedProtocol):
            await client.get("gopher://example.com/private")


def get_by_blocking_client(library: ModuleType) -> None:
    """Expect that a blocking client is refused before it sends anything."""
    sent = []
    hook = robots_hook(checker_of(site_of()), AGENT)
    with (
        library.Client(
            transport=library.MockTransport(sent.append),
            event_hooks={"request": [hook]},
        ) as client,
        pytest.raises(TypeError, match="an AsyncClient that calls the hook itself"),
    ):
        client.get(PRIVATE)
    assert sent == []


def test_blocking_client_is_refused(library: ModuleType) -> None:
    """It drops the coroutine of a hook, so every page was fetched."""
    get_by_blocking_client(library)


async def test_blocking_client_is_refused_where_an_event_loop_runs(
    library: ModuleType,
) -> None:
    """As in a notebook, or in an async handler: there it sent the request."""
    get_by_blocking_client(library)


async def test_target_that_an_extension_names_is_the_one_that_is_asked(
    serve: Callable[..., LoopbackServer], library: ModuleType
) -> None:
    """Only the path of the URL was asked about."""
    server = serve(Reply())
    async with (
        checker_of(site_of(), overrides={server.url: RULES}) as checker,
        library.AsyncClient(
            event_hooks={"request": [robots_hook(checker, AGENT)]}
        ) as client,
    ):
        for target in (b"/private", b"*", b"http://other.example/private"):
            with pytest.raises(library.RequestError):
                await client.get(server.url, extensions={"target": target})

    assert server.targets == []


def test_unknown_answer_to_refusals_is_refused() -> None:
    with pytest.raises(ValueError, match="'raise' or 'response', got 'log'"):
        RobotsTransport(checker_of(site_of()), AGENT, on_disallowed="log")  # type: ignore[arg-type]
