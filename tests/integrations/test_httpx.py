"""The httpx and httpx2 wraps: what `test_behaviours.py` does not cover."""

from __future__ import annotations

import pickle
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import httpx2
import pytest

from robotsgate import PolitenessGate, sync
from robotsgate.integrations.httpx import (
    RobotsDisallowedError,
    RobotsTransport,
    robots_hook,
)
from tests.checking.builders import AGENT, PRIVATE, PUBLIC, checker_of, site_of
from tests.servers.answers import Reply
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import ModuleType

    from tests.servers.loopback import LoopbackServer

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[httpx, httpx2], ids=["httpx", "httpx2"])
def library(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


@pytest.fixture
async def client(library: ModuleType) -> AsyncIterator[Any]:
    """A client with a hook, whose requests are all answered."""
    async with (
        checker_of(site_of()) as checker,
        library.AsyncClient(
            transport=library.MockTransport(lambda _: library.Response(200)),
            event_hooks={"request": [robots_hook(checker, AGENT)]},
        ) as client,
    ):
        yield client


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


async def test_transport_sends_requests_itself_if_it_wraps_none(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Reply())

    async with checker_of(site_of()) as checker:
        transport = RobotsTransport(checker, AGENT)
        async with httpx.AsyncClient(transport=transport) as client:
            await client.get(f"{server.url}/robots.txt")

    assert server.targets == ["/robots.txt"]


@cases("environment warning", {
    "https": ({"HTTPS_PROXY": "proxy.test:8"}, "HTTPS_PROXY .*=httpx.AsyncHTTP"),
    "http, in lower case": ({"http_proxy": "http://proxy.test"}, "HTTP_PROXY is set"),
    "all": ({"ALL_PROXY": "http://p.test", "NO_PROXY": "a.test"}, "ALL_PROXY is set"),
    "none for any host": ({"HTTP_PROXY": "http://p.test", "NO_PROXY": "a, *"}, None),
    "empty": ({"HTTPS_PROXY": ""}, None),
    "of another scheme": ({"FTP_PROXY": "http://proxy.test"}, None),
})  # fmt: skip
def test_transport_warns_if_it_wraps_none_and_bypasses_a_proxy(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], warning: str | None
) -> None:
    """httpx ignores these proxies with a transport, so pages saw the real address."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    checker = checker_of(site_of())
    client = httpx.AsyncClient()
    has_proxy = any(client._mounts.values())

    with pytest.warns(RuntimeWarning, match=warning) if warning else nullcontext():
        RobotsTransport(checker, AGENT)

    assert has_proxy == (warning is not None)
    RobotsTransport(checker, AGENT, wrapped=httpx.AsyncHTTPTransport())


async def test_response_that_is_already_read_ends_its_turn(library: ModuleType) -> None:
    """Nobody closes such a response, so its turn used to stay open."""
    mock = library.MockTransport(lambda _: library.Response(200, text="page"))

    async with (
        checker_of(site_of()) as checker,
        PolitenessGate(checker, AGENT, default_delay=0) as gate,
        library.AsyncClient(
            transport=RobotsTransport(checker, AGENT, wrapped=mock, gate=gate)
        ) as client,
    ):
        await client.get(PUBLIC)

        assert (gate.stats.turns, gate.stats.under_way) == (1, 0)


NOT_ASYNC = "an AsyncClient that awaits each check; a sync Client needs a checker from "
NOT_SYNC = r"a sync Client for a checker from robotsgate\.sync, got an AsyncClient"


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
async def test_request_is_not_sent_unless_the_hook_has_been_awaited(
    library: ModuleType,
) -> None:
    """A sync client drops the hook's coroutine, so every page used to be fetched."""
    hook = robots_hook(checker_of(site_of()), AGENT)
    sent: list[object] = []
    transport = library.MockTransport(sent.append)

    async def forget(request: object) -> None:
        hook(request)

    refusing = RobotsTransport(checker_of(site_of()), AGENT)
    clients = [
        library.Client(transport=refusing),
        library.Client(transport=transport, event_hooks={"request": [hook]}),
        library.AsyncClient(transport=transport, event_hooks={"request": [forget]}),
    ]

    for client in clients:
        with pytest.raises(TypeError, match=NOT_ASYNC):
            await client.get(PUBLIC)
    with pytest.raises(TypeError, match=NOT_ASYNC):
        refusing.close()
    assert sent == []


async def test_hook_in_a_plain_function_works_and_leaves_the_body_alone(
    library: ModuleType,
) -> None:
    def send(request: Any) -> object:  # noqa: ANN401 (the library's)
        return library.Response(200, content=request.content)

    def call(request: object) -> object:
        return hook(request)

    async with checker_of(site_of()) as checker:
        hook = robots_hook(checker, AGENT)
        async with library.AsyncClient(
            transport=library.MockTransport(send), event_hooks={"request": [call]}
        ) as client:
            response = await client.post(PUBLIC, content=b"form")
            with pytest.raises(library.RequestError):
                await client.post(PRIVATE, content=b"form")

    assert response.content == b"form"


async def test_request_can_be_sent_twice_at_a_time(client: Any) -> None:  # noqa: ANN401
    async with anyio.create_task_group() as tasks:
        request = client.build_request("GET", PUBLIC)
        for _ in range(2):
            tasks.start_soon(client.send, request)


@pytest.mark.filterwarnings("ignore:.*this thread's event loop:RuntimeWarning")
async def test_blocking_hook_and_transport_refuse_an_async_client(
    library: ModuleType,
) -> None:
    with sync.RobotsChecker(client=site_of()) as checker:
        hook, transport = robots_hook(checker, AGENT), RobotsTransport(checker, AGENT)
        sent: list[object] = []
        hooked = library.AsyncClient(
            transport=library.MockTransport(sent.append),
            event_hooks={"request": [hook]},
        )
        for client in (hooked, library.AsyncClient(transport=transport)):
            with pytest.raises(TypeError, match=NOT_SYNC):
                await client.get(PUBLIC)
        with pytest.raises(TypeError, match=NOT_SYNC):
            await transport.aclose()

    assert sent == []


@pytest.mark.parametrize("target", [b"/private", b"*", b"http://other.example/private"])
async def test_target_extension_is_checked_instead_of_the_url(
    library: ModuleType,
    client: Any,  # noqa: ANN401
    target: bytes,
) -> None:
    """Only the URL's path used to be checked."""
    with pytest.raises(library.RequestError):
        await client.get(PUBLIC, extensions={"target": target})


async def test_error_for_a_relative_url_quotes_it(
    library: ModuleType,
    client: Any,  # noqa: ANN401
) -> None:
    """It used to quote ":///nohost"."""
    with pytest.raises(library.RequestError, match=r"got '/nohost'$"):
        await client.get("nohost")
