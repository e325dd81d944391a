"""What only the wrap of niquests does; `test_sessions.py` has what it shares.

Niquests replaces urllib3, so these tests run in a venv of their own.
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
    """One that lets every page pass."""
    with sync.RobotsChecker(client=site_of()) as checker:
        yield RobotsAdapter(checker, AGENT)


def test_multiplexed_request_is_refused(
    adapter: RobotsAdapter, server: LoopbackServer
) -> None:
    """Niquests would follow its redirects past the adapter.

    After a TypeError, niquests would send it once more, without that option.
    """
    with niquests.Session(multiplexed=True) as session:
        session.mount("http://", adapter)
        with pytest.raises(niquests.exceptions.MultiplexingError) as refusal:
            session.get(server.url)

    assert refusal.value.request.url == server.url
    assert server.targets == []


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asynchronous_session_is_refused(
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
async def test_asynchronous_session_asks_before_each_hop_by_robots_get(
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


def test_error_is_one_of_niquests(adapter: RobotsAdapter) -> None:
    with niquests.Session() as session:
        session.mount("https://", adapter)
        with pytest.raises(niquests.RequestException) as refusal:
            session.get("https://example.com/private")

    assert isinstance(refusal.value, RobotsDisallowedError)
    assert refusal.value.request.url == "https://example.com/private"
