"""The httpx and httpx2 wraps: what `test_behaviours.py` does not cover."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import httpx
import httpx2
import pytest

from robotsgate import PolitenessGate, sync
from robotsgate.integrations.httpx import (
    RobotsDisallowedError,
    RobotsTransport,
    robots_hook,
)
from tests.checking.builders import AGENT, PRIVATE, PUBLIC, RULES, checker_of, site_of
from tests.servers.answers import Reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from types import ModuleType

    from tests.servers.loopback import LoopbackServer

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def library(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


async def test_error_has_its_request_and_is_not_a_transport_error(
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


async def test_closing_the_response_closes_the_wrapped_stream(
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


def test_reading_a_blocking_response_closes_the_wrapped_stream(
    library: ModuleType, blocking: sync.RobotsChecker
) -> None:
    class Stream(library.SyncByteStream):
        is_closed = False

        def __iter__(self) -> Iterator[bytes]:
            yield b"page"

        def close(self) -> None:
            self.is_closed = True

    stream = Stream()
    inner = library.MockTransport(lambda _: library.Response(200, stream=stream))
    with sync.PolitenessGate(blocking, AGENT, default_delay=0) as gate:
        transport = RobotsTransport(blocking, AGENT, wrapped=inner, gate=gate)
        with library.Client(transport=transport) as client:
            assert client.get(PUBLIC).content == b"page"

    assert stream.is_closed


async def test_transport_sends_requests_itself_if_it_wraps_none(
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


def expect_refusal_of_blocking_client(library: ModuleType) -> None:
    """Check that a blocking client is refused before it sends anything."""
    sent = []
    hook = robots_hook(checker_of(site_of()), AGENT)
    with (
        library.Client(
            transport=library.MockTransport(sent.append),
            event_hooks={"request": [hook]},
        ) as client,
        pytest.raises(TypeError, match="an AsyncClient that awaits each check, got "),
    ):
        client.get(PRIVATE)
    assert sent == []


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_blocking_client_is_refused(library: ModuleType) -> None:
    """It drops the hook's coroutine, so every page used to be fetched."""
    expect_refusal_of_blocking_client(library)


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_blocking_client_is_refused_inside_an_event_loop(
    library: ModuleType,
) -> None:
    """In a notebook or an async handler, it used to send the request."""
    expect_refusal_of_blocking_client(library)


def test_async_transport_refuses_a_blocking_client(library: ModuleType) -> None:
    transport = RobotsTransport(checker_of(site_of()), AGENT)

    with pytest.raises(TypeError, match="got a sync Client, which needs a checker fr"):
        library.Client(transport=transport).get(PRIVATE)
    with pytest.raises(TypeError, match="got a sync Client"):
        transport.close()


@pytest.fixture
def blocking() -> Iterator[sync.RobotsChecker]:
    with sync.RobotsChecker(client=site_of()) as checker:
        yield checker


async def test_blocking_hook_refuses_an_async_client(
    library: ModuleType, blocking: sync.RobotsChecker
) -> None:
    sent: list[object] = []
    hooks = {"request": [robots_hook(blocking, AGENT)]}
    transport = library.MockTransport(sent.append)

    async with library.AsyncClient(transport=transport, event_hooks=hooks) as client:
        with pytest.raises(TypeError, match=r"robotsgate\.sync, got an AsyncClient"):
            await client.get(PUBLIC)

    assert sent == []


async def test_blocking_transport_refuses_an_async_client(
    library: ModuleType, blocking: sync.RobotsChecker
) -> None:
    transport = RobotsTransport(blocking, AGENT)

    with pytest.raises(TypeError, match=r"robotsgate\.sync, got an AsyncClient"):
        await library.AsyncClient(transport=transport).get(PRIVATE)
    with pytest.raises(TypeError, match="got an AsyncClient"):
        await transport.aclose()


async def test_target_extension_is_checked_instead_of_the_url(
    serve: Callable[..., LoopbackServer], library: ModuleType
) -> None:
    """Only the URL's path used to be checked."""
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


async def test_error_for_a_relative_url_quotes_it(library: ModuleType) -> None:
    """It used to quote ":///nohost"."""
    async with (
        checker_of(site_of()) as checker,
        library.AsyncClient(
            event_hooks={"request": [robots_hook(checker, AGENT)]}
        ) as client,
    ):
        with pytest.raises(library.RequestError, match=r"got '/nohost'$"):
            await client.get("nohost")
