"""The niquests wrap: what `test_sessions.py` does not cover.

niquests replaces urllib3, so these tests run in their own venv.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from robotsgate import DisallowedError, RobotsChecker, sync
from robotsgate.integrations.hops import robots_get
from tests.checking.builders import AGENT, site_of
from tests.servers.answers import Reply, Routes, redirect

niquests = pytest.importorskip("niquests")

from robotsgate.integrations.niquests import (  # noqa: E402 (needs niquests)
    RobotsAdapter,
    RobotsDisallowedError,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.servers.loopback import LoopbackServer


@pytest.fixture
def server(serve: Callable[..., LoopbackServer]) -> LoopbackServer:
    server: LoopbackServer = serve(Reply(body=b"page"))
    return server


@pytest.fixture
def adapter() -> Iterator[RobotsAdapter]:
    """An adapter that allows every page of a loopback server."""
    with sync.RobotsChecker(client=site_of()) as checker:
        yield RobotsAdapter(checker, AGENT)


def test_multiplexed_request_is_refused(
    adapter: RobotsAdapter, server: LoopbackServer
) -> None:
    """niquests would follow its redirects without the adapter.

    After a TypeError, it would resend the request without that option.
    """
    with niquests.Session(multiplexed=True) as session:
        session.mount("http://", adapter)
        with pytest.raises(niquests.exceptions.MultiplexingError) as refusal:
            session.get(server.url)

    assert refusal.value.request.url == server.url
    assert server.targets == []


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_async_session_is_refused(
    adapter: RobotsAdapter, server: LoopbackServer
) -> None:
    async with niquests.AsyncSession() as session:
        session.mount("http://", adapter)
        with pytest.raises(TypeError, match=r"a niquests\.Session .* an AsyncSession"):
            await session.get(server.url)
        session.adapters.pop("http://")  # which the session cannot close

    assert server.targets == []


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_robots_get_checks_each_hop_of_an_async_session(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Routes({"/start": redirect("https://example.com/private")}))
    async with (
        RobotsChecker(client=site_of()) as checker,
        niquests.AsyncSession() as session,
    ):
        get = robots_get(checker, AGENT, session.get)
        with pytest.raises(DisallowedError, match=r"example\.com/private"):
            await get(f"{server.url}/start")

    assert server.targets == ["/start"]


@pytest.mark.parametrize("scheme", ["psse", "ws"])
def test_scheme_that_niquests_sends_over_http_is_refused(
    adapter: RobotsAdapter, server: LoopbackServer, scheme: str
) -> None:
    with niquests.Session() as session:
        session.mount("http://", adapter)
        with pytest.raises(niquests.exceptions.InvalidURL, match="an http or https"):
            session.get(server.url.replace("http", scheme))

    assert server.targets == []


def test_error_is_a_niquests_exception(adapter: RobotsAdapter) -> None:
    with niquests.Session() as session:
        session.mount("https://", adapter)
        with pytest.raises(niquests.RequestException) as refusal:
            session.get("https://example.com/private")

    assert isinstance(refusal.value, RobotsDisallowedError)
    assert refusal.value.request.url == "https://example.com/private"
