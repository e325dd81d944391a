"""Behaviours that all wrapped clients share, tested against real servers."""

from __future__ import annotations

import pickle
import ssl
from itertools import pairwise
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from robotsgate import DisallowedError, Reason, RobotsChecker, SystemClock
from tests.checking.builders import RULES, let_others_run
from tests.integrations.wraps import WRAPS, Setting
from tests.servers.answers import Held, Late, Raw, Reply, Routes, redirect
from tests.servers.http2 import HTTP2Connection
from tests.servers.loopback import Connection, dead_port
from tests.servers.proxy import forward_proxy

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    import trustme

    from tests.integrations.wraps import Get, Wrap
    from tests.servers.loopback import Answer, LoopbackServer, Request

    Open = Callable[..., AbstractAsyncContextManager[Get]]
    Serve = Site = Callable[..., LoopbackServer]

pytestmark = pytest.mark.anyio

ROBOTS = Reply(body=RULES.encode())
PAGE = Reply(body=b"page")
SILENCE = Raw(b"", Connection.hang)
HALF = Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf", Connection.hang)


def _only(is_selected: Callable[[Wrap], bool]) -> pytest.MarkDecorator:
    """Run a test only for the wraps that are selected."""
    selected = {name: wrap for name, wrap in WRAPS.items() if is_selected(wrap)}
    return pytest.mark.parametrize("wrap", selected.values(), ids=selected)


@pytest.fixture(params=WRAPS.values(), ids=WRAPS)
def wrap(request: pytest.FixtureRequest) -> Wrap:
    wrap: Wrap = request.param
    return wrap


@pytest.fixture
def anyio_backend(wrap: Wrap) -> str:
    return wrap.backend


@pytest.fixture
def opened(wrap: Wrap, client_tls: ssl.SSLContext) -> Open:
    """Opens the client; accepts the fields of `Setting`."""
    defaults = {"tls": client_tls, "shares": wrap.is_http2}
    return lambda **fields: wrap.open(Setting(**(defaults | fields)))


@pytest.fixture(scope="module")
def http2_tls(certificate_authority: trustme.CA) -> ssl.SSLContext:
    """The TLS context of a server that speaks only HTTP/2."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate_authority.issue_cert("127.0.0.1").configure_cert(context)
    context.set_alpn_protocols(["h2"])
    return context


@pytest.fixture
def site(serve: Serve, wrap: Wrap, http2_tls: ssl.SSLContext) -> Site:
    """Starts an origin with pages and a robots.txt."""

    def start(
        robots: Answer = ROBOTS,
        *,
        tls: ssl.SSLContext | None = None,
        **pages: Answer,
    ) -> LoopbackServer:
        named = {"public": PAGE, "private": PAGE} | pages
        answers = {f"/{name}": answer for name, answer in named.items()}
        routes = Routes({**answers, "/robots.txt": robots})
        if wrap.is_http2:
            return serve(routes, ssl_context=http2_tls, connection_type=HTTP2Connection)
        return serve(routes, ssl_context=tls)

    return start


async def test_allowed_page_is_fetched(opened: Open, site: Site) -> None:
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


async def test_robots_txt_of_the_host_in_a_host_header_must_allow_the_request(
    opened: Open, site: Site
) -> None:
    """A server takes the request for one to that host, whose rules were not asked."""
    server, other = site(Reply()), site()
    own, others = f"127.0.0.1:{server.port}", f"127.0.0.1:{other.port}"

    async with opened() as get:
        for page, host in [("private", own), ("public", others)]:
            assert await get(f"{server.url}/{page}", host=host) == 200
        with pytest.raises(DisallowedError) as refusal:
            await get(f"{server.url}/private", host=others)

    assert refusal.value.verdict.url == f"{other.url}/private"
    assert server.targets == ["/robots.txt", "/private", "/public"]
    assert other.targets == ["/robots.txt"]


@pytest.mark.parametrize(
    "location",
    ["http://1.2.3.4.5/", "http://h.test:8x/", f"ftp://127.0.0.1:{dead_port()}/file"],
    ids=["invalid address", "invalid port", "ftp"],
)
async def test_redirect_that_cannot_be_followed_is_left_to_the_client(
    opened: Open, site: Site, wrap: Wrap, location: str
) -> None:
    """It used to raise just an `InvalidURLError` or an `UnsupportedError`.

    Handlers for the client's errors did not catch those, so a server could end a crawl.
    """
    server = site(away=redirect(location))

    async with opened(shares=True) as get:
        if wrap.returns_bad_redirects:
            assert await get(f"{server.url}/away") == 302
        else:
            with pytest.raises(wrap.error):
                await get(f"{server.url}/away")

    assert server.targets == ["/robots.txt", "/away"]


async def test_request_that_ignores_robots_txt_is_not_checked(
    opened: Open, site: Site
) -> None:
    server = site(away=redirect("/private"))

    async with opened() as get:
        assert await get(f"{server.url}/away", is_ignoring=True) == 200
        with pytest.raises(DisallowedError):
            await get(f"{server.url}/private")

    assert server.targets == ["/away", "/private", "/robots.txt"]


async def test_robots_txt_itself_is_fetched_without_a_check(
    opened: Open, site: Site
) -> None:
    server = site()

    async with opened() as get:
        assert await get(f"{server.url}/robots.txt") == 200

    assert server.targets == ["/robots.txt"]


@_only(lambda wrap: wrap.takes_gate)
async def test_gate_delays_each_hop_from_the_end_of_the_one_before(
    opened: Open, site: Site
) -> None:
    times = []

    def timed(answer: Answer) -> Answer:
        def timed_answer(request: Request, connection: Connection) -> None:
            times.append(SystemClock().monotonic())
            answer(request, connection)

        return Late(0.05, timed_answer)

    server = site(timed(ROBOTS), away=timed(redirect("/public")), public=timed(PAGE))

    async with opened(delay=0.05) as get:
        await get(f"{server.url}/away")
        with pytest.raises(DisallowedError):
            await get(f"{server.url}/private")
        await get(f"{server.url}/public")

    assert server.targets == ["/robots.txt", "/away", "/public", "/public"]
    assert min(after - before for before, after in pairwise(times)) >= 0.05 + 0.05


@_only(lambda wrap: wrap.takes_gate and wrap.streams and not wrap.is_http2)
async def test_turn_lasts_until_the_response_is_closed(
    opened: Open, site: Site
) -> None:
    server = site(away=redirect("/half"), half=HALF)

    async with opened(delay=0) as get:
        async with get.stream(f"{server.url}/away"):
            assert (get.gate.stats.turns, get.gate.stats.under_way) == (2, 1)
        assert await anyio.to_thread.run_sync(server.is_left_alone)
        await get(f"{server.url}/public")

        assert (get.gate.stats.turns, get.gate.stats.under_way) == (3, 0)


@_only(lambda wrap: wrap.takes_gate and wrap.streams and not wrap.is_blocking)
async def test_turn_of_a_response_may_be_followed_by_one_from_the_gate(
    opened: Open, site: Site
) -> None:
    """The first turn had not started to end, so the gate reported a deadlock."""
    server = site()

    async with opened(delay=0) as get:
        async with get.stream(f"{server.url}/public"):
            pass
        async with get.gate.turn(f"{server.url}/other"):
            assert get.gate.stats.turns == 2


@_only(lambda wrap: wrap.takes_gate)
@pytest.mark.parametrize(("status", "incidents"), [(503, 1), (404, 0)])
async def test_gate_waits_for_the_retry_after_of_a_response(
    opened: Open, site: Site, status: int, incidents: int
) -> None:
    server = site(public=Reply(status=status, headers={"Retry-After": "99"}))

    async with opened(delay=0) as get:
        before = get.gate.ready_at(server.url)
        assert await get(f"{server.url}/public") == status

        assert get.gate.ready_at(server.url) > before + 90
        assert get.gate.stats.incidents == incidents
        assert get.gate.stats.under_way == 0


@_only(lambda wrap: wrap.takes_gate and not wrap.is_http2)
async def test_failed_request_ends_its_turn_as_an_incident(
    opened: Open, site: Site, wrap: Wrap
) -> None:
    # Not a closed connection: aiohttp would resend the request.
    server = site(public=Raw(b"rubbish\r\n\r\n"))

    async with opened(delay=0) as get:
        with pytest.raises(wrap.failure or wrap.error):
            await get(f"{server.url}/public")

        assert (get.gate.stats.incidents, get.gate.stats.under_way) == (1, 0)


@_only(lambda wrap: wrap.takes_gate and not wrap.is_blocking)
async def test_cancelled_request_ends_its_turn(opened: Open, site: Site) -> None:
    server = site(public=SILENCE)

    async with opened(delay=0) as get, anyio.create_task_group() as tasks:
        tasks.start_soon(get, f"{server.url}/public")
        while "/public" not in server.targets:
            await let_others_run()
        tasks.cancel_scope.cancel()

    assert get.gate.stats.turns == 1
    assert (get.gate.stats.incidents, get.gate.stats.under_way) == (0, 0)


@_only(lambda wrap: wrap.takes_gate)
async def test_disallowed_page_and_robots_txt_have_no_turn(
    opened: Open, site: Site
) -> None:
    server = site()

    async with opened(delay=0) as get:
        with pytest.raises(DisallowedError):
            await get(f"{server.url}/private")
        await get(f"{server.url}/robots.txt")

        assert get.gate.stats.turns == 0
    assert server.targets == ["/robots.txt"] * 2


async def test_request_fails_once_the_checker_is_closed(
    opened: Open, site: Site
) -> None:
    server = site()

    async with opened() as get:
        if isinstance(get.checker, RobotsChecker):
            await get.checker.aclose()
        else:
            await anyio.to_thread.run_sync(get.checker.close)
        with pytest.raises(RuntimeError, match="closed"):
            await get(f"{server.url}/public")

    assert server.targets == []


@_only(lambda wrap: not wrap.is_blocking)
async def test_page_request_cancelled_during_the_check_is_never_sent(
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


@pytest.mark.parametrize("is_secure", [False, True], ids=["http", "https"])
async def test_shared_client_sends_everything_through_its_proxy(
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
    uses_connect = server.url.startswith("https:")
    first_target = (
        f"127.0.0.1:{server.port}" if uses_connect else f"{server.url}/robots.txt"
    )
    assert proxy.targets[0] == first_target
