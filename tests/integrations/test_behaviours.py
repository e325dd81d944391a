"""One table of behaviours, run for every wrapped client against real servers."""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING

import anyio
import pytest

from robotsgate import DisallowedError, Reason
from tests.checking.builders import RULES
from tests.integrations.wraps import WRAPS
from tests.servers.answers import Held, Raw, Reply, Routes, redirect
from tests.servers.loopback import Connection, dead_port
from tests.servers.proxy import forward_proxy

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from tests.integrations.wraps import Get, Wrap
    from tests.servers.loopback import Answer, LoopbackServer

    Open = Callable[..., AbstractAsyncContextManager[Get]]
    Serve = Site = Callable[..., LoopbackServer]

pytestmark = pytest.mark.anyio

ROBOTS = Reply(body=RULES.encode())
PAGE = Reply(body=b"page")
SILENCE = Raw(b"", Connection.hang)


@pytest.fixture(params=WRAPS.values(), ids=WRAPS)
def wrap(request: pytest.FixtureRequest) -> Wrap:
    wrap: Wrap = request.param
    return wrap


@pytest.fixture
def anyio_backend(wrap: Wrap) -> str:
    return wrap.backend


@pytest.fixture
def opened(wrap: Wrap, client_tls: ssl.SSLContext) -> Open:
    return partial(wrap.open, client_tls)


@pytest.fixture
def site(serve: Serve) -> Site:
    """Starts an origin with pages and, at /robots.txt, an answer."""

    def start(
        robots: Answer = ROBOTS,
        *,
        tls: ssl.SSLContext | None = None,
        **pages: Answer,
    ) -> LoopbackServer:
        named = {"public": PAGE, "private": PAGE} | pages
        answers = {f"/{name}": answer for name, answer in named.items()}
        return serve(Routes({**answers, "/robots.txt": robots}), ssl_context=tls)

    return start


async def test_allowed_page_comes(opened: Open, site: Site) -> None:
    server = site()

    async with opened() as get:
        statuses = [await get(f"{server.url}/public") for _ in range(2)]

    assert statuses == [200, 200]
    assert server.targets == ["/robots.txt", "/public", "/public"]


async def test_disallowed_page_is_never_requested(
    opened: Open, site: Site, wrap: Wrap
) -> None:
    server = site()

    async with opened() as get:
        with pytest.raises(DisallowedError) as refusal:
            await get(f"{server.url}/private")

    assert server.targets == ["/robots.txt"]
    assert isinstance(refusal.value, wrap.error)
    assert refusal.value.verdict.reason is Reason.DISALLOWED_BY_RULE
    copy = pickle.loads(pickle.dumps(refusal.value))  # noqa: S301 (our own)
    assert type(copy) is type(refusal.value)
    assert copy.verdict == refusal.value.verdict


async def test_redirect_to_a_disallowed_page_is_not_followed(
    opened: Open, site: Site
) -> None:
    other = site()
    server = site(away=redirect(f"{other.url}/private"))

    async with opened() as get:
        with pytest.raises(DisallowedError) as refusal:
            await get(f"{server.url}/away")

    assert refusal.value.verdict.url == f"{other.url}/private"
    assert server.targets == ["/robots.txt", "/away"]
    assert other.targets == ["/robots.txt"]


@pytest.mark.parametrize("location", ["http://1.2.3.4.5/", "http://h.test:8x/"])
async def test_redirect_to_a_host_that_cannot_be_is_an_error_of_the_client(
    opened: Open, site: Site, wrap: Wrap, location: str
) -> None:
    """It was an `InvalidURLError` alone: a server could end a crawl."""
    server = site(away=redirect(location))

    async with opened() as get:
        with pytest.raises(wrap.error):
            await get(f"{server.url}/away")

    assert server.targets == ["/robots.txt", "/away"]


async def test_redirect_to_ftp_is_an_error_of_the_client(
    opened: Open, site: Site, wrap: Wrap
) -> None:
    """It was an `UnsupportedError`, which no handler of the client's errors caught."""
    server = site(away=redirect(f"ftp://127.0.0.1:{dead_port()}/file"))

    async with opened(shares=True) as get:
        with pytest.raises(wrap.error):
            await get(f"{server.url}/away")

    assert server.targets == ["/robots.txt", "/away"]


async def test_request_that_ignores_robots_txt_asks_nobody(
    opened: Open, site: Site
) -> None:
    server = site(away=redirect("/private"))

    async with opened() as get:
        assert await get(f"{server.url}/away", is_ignoring=True) == 200
        with pytest.raises(DisallowedError):
            await get(f"{server.url}/private")

    assert server.targets == ["/away", "/private", "/robots.txt"]


async def test_robots_txt_itself_is_requested_unasked(opened: Open, site: Site) -> None:
    server = site()

    async with opened() as get:
        assert await get(f"{server.url}/robots.txt") == 200

    assert server.targets == ["/robots.txt"]


@pytest.mark.parametrize(
    "wrap", [wrap for wrap in WRAPS.values() if not wrap.is_blocking]
)
async def test_cancelled_request_for_a_page_is_never_sent(
    opened: Open, site: Site
) -> None:
    robots = Held(ROBOTS)
    server = site(robots)

    async with opened() as get:
        with anyio.move_on_after(0.05) as scope:
            await get(f"{server.url}/public")
        robots.release()
        assert await get(f"{server.url}/public") == 200

    assert scope.cancelled_caught
    assert server.targets == ["/robots.txt", "/public"]


async def test_silence_at_a_page_is_a_time_out_of_the_client(
    opened: Open, site: Site, wrap: Wrap
) -> None:
    server = site(public=SILENCE)

    async with opened(seconds=0.1) as get:
        with pytest.raises(wrap.timeout):
            await get(f"{server.url}/public")

    assert server.targets == ["/robots.txt", "/public"]


@pytest.mark.parametrize("is_secure", [False, True], ids=["http", "https"])
async def test_shared_client_takes_all_through_its_proxy(
    opened: Open,
    site: Site,
    serve: Serve,
    server_tls: ssl.SSLContext,
    *,
    is_secure: bool,
) -> None:
    server = site(tls=server_tls if is_secure else None)
    proxy = serve(forward_proxy)

    async with opened(shares=True, proxy=proxy.url) as get:
        assert await get(f"{server.url}/public") == 200
        with pytest.raises(DisallowedError):
            await get(f"{server.url}/private")

    assert server.targets == ["/robots.txt", "/public"]
    asked = f"127.0.0.1:{server.port}" if is_secure else f"{server.url}/robots.txt"
    assert proxy.targets[0] == asked
