"""A uniform way to open and use third-party clients that obey robots.txt."""

from __future__ import annotations

import ssl
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
import anyio.to_thread
import curl_cffi
import httpx
import httpx2
import requests
from requests.adapters import HTTPAdapter

from robotsgate import (
    DisallowedError,
    PolitenessGate,
    RobotsChecker,
    sync,
)
from robotsgate.integrations.aiohttp import (
    AiohttpFetcher,
    robots_ignored,
    robots_middleware,
)
from robotsgate.integrations.hops import robots_get
from robotsgate.integrations.httpx import (
    RobotsTransport,
    robots_hook,
)
from robotsgate.integrations.requests import RobotsAdapter
from tests.checking.builders import AGENT
from tests.fetching.fetches import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from types import ModuleType

__all__ = ["NO_TLS", "WRAPS", "Get", "Setting", "Wrap"]

# Loading the default certificates takes longer than any test of these clients.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@dataclass(frozen=True, kw_only=True)
class Setting:
    """How a test configures a client and its checker.

    Attributes:
        tls: the certificates that the client trusts.
        proxy: the proxy's URL; `None` for no proxy.
        shares: whether the checker uses the client's connections, or at least its
            proxy.
        delay: seconds between the gate's turns; `None` for no gate.
    """

    tls: ssl.SSLContext
    proxy: str | None = None
    shares: bool = False
    delay: float | None = None


@dataclass(frozen=True, kw_only=True)
class Get:
    """A wrapped client; call it to send a GET and follow its redirects.

    Attributes:
        send: sends the GET and returns the status; accepts `headers`.
        send_ignoring: the same, without a check.
        stream: sends the GET, and closes the unread response at the end of the block.
        checker: the client's checker.
        gate: the client's gate, if any.
    """

    send: Callable[..., Awaitable[int]]
    send_ignoring: Callable[[str], Awaitable[int]]
    stream: Callable[[str], AbstractAsyncContextManager[object]] | None = None
    checker: RobotsChecker | sync.RobotsChecker
    gate: Any = None

    async def __call__(
        self, url: str, *, is_ignoring: bool = False, host: str | None = None
    ) -> int:
        """Return the status of the last response; `host` is the Host header to send."""
        if host is not None:
            return await self.send(url, headers={"Host": host})
        return await (self.send_ignoring if is_ignoring else self.send)(url)


@dataclass(frozen=True, kw_only=True)
class Wrap:
    """One way to wrap one client.

    Attributes:
        backend: the event loop.
        open: opens a client around a new checker, both until the block ends.
        error: what a refused request raises; also a `DisallowedError`.
        failure: what the client raises for an invalid response, if not `error`.
        takes_gate: whether a request can wait for its turn.
        streams: whether a response can be closed unread.
        is_blocking: whether it blocks a thread, which cannot be cancelled.
        returns_bad_redirects: whether it returns a redirect that cannot be followed,
            rather than raising.
        is_http2: whether client and checker speak HTTP/2, which needs https and a
            shared client.
    """

    backend: str = "asyncio"
    open: Callable[[Setting], AbstractAsyncContextManager[Get]]
    error: type[Exception]
    failure: type[Exception] | None = None
    takes_gate: bool = True
    streams: bool = True
    is_blocking: bool = False
    returns_bad_redirects: bool = False
    is_http2: bool = False


@asynccontextmanager
async def _checker(
    setting: Setting, client: object
) -> AsyncIterator[tuple[RobotsChecker, PolitenessGate | None]]:
    """A checker that may fetch through `client`, and its gate, if any."""
    async with AsyncExitStack() as stack:
        checker = await stack.enter_async_context(
            RobotsChecker(
                user_agent=AGENT,
                client=client if setting.shares else None,  # type: ignore[arg-type]
            )
        )
        gate = None
        if setting.delay is not None:
            gate = PolitenessGate(checker, AGENT, default_delay=setting.delay)
            await stack.enter_async_context(gate)
        yield checker, gate


@contextmanager
def _blocking_checker(
    setting: Setting,
) -> Iterator[tuple[sync.RobotsChecker, sync.PolitenessGate | None]]:
    # Its client is async, so it cannot be the one that fetches the pages.
    client = httpx.AsyncClient(verify=setting.tls, proxy=setting.proxy)
    with ExitStack() as stack:
        checker = stack.enter_context(
            sync.RobotsChecker(
                user_agent=AGENT,
                client=client if setting.shares else None,
            )
        )
        gate = None
        if setting.delay is not None:
            gate = sync.PolitenessGate(checker, AGENT, default_delay=setting.delay)
            stack.enter_context(gate)
        yield checker, gate


def _get(
    client: Any,  # noqa: ANN401 (httpx's or httpx2's)
    checker: RobotsChecker,
    gate: PolitenessGate | None = None,
) -> Get:
    async def send(url: str, **options: Any) -> int:  # noqa: ANN401 (the client's)
        status: int = (await client.get(url, **options)).status_code
        return status

    return Get(
        send=send,
        send_ignoring=partial(send, extensions={"robots": "ignore"}),
        stream=partial(client.stream, "GET"),
        checker=checker,
        gate=gate,
    )


def _blocking_get(
    get: Callable[..., Any],
    get_ignoring: Callable[..., Any],
    get_unread: Callable[[str], Any] | None,
    checker: sync.RobotsChecker,
    gate: sync.PolitenessGate | None,
) -> Get:
    """A `Get` that sends in threads."""

    @asynccontextmanager
    async def stream(url: str) -> AsyncIterator[object]:
        response = await anyio.to_thread.run_sync(get_unread, url)
        try:
            yield response
        finally:
            await anyio.to_thread.run_sync(response.close)

    async def send(get: Callable[..., Any], url: str, **options: Any) -> int:  # noqa: ANN401 (the client's)
        response = await anyio.to_thread.run_sync(partial(get, url, **options))
        status: int = response.status_code
        return status

    return Get(
        send=partial(send, get),
        send_ignoring=partial(send, get_ignoring),
        stream=stream,
        checker=checker,
        gate=gate,
    )


def _httpx_hook(library: ModuleType, backend: str, *, is_http2: bool = False) -> Wrap:
    @asynccontextmanager
    async def opened(setting: Setting) -> AsyncIterator[Get]:
        async with (
            library.AsyncClient(
                verify=setting.tls,
                proxy=setting.proxy,
                http2=is_http2,
                timeout=PATIENCE_SECONDS,
                follow_redirects=True,
            ) as client,
            _checker(setting, client) as (checker, _),
        ):
            client.event_hooks = {"request": [robots_hook(checker, AGENT)]}
            yield _get(client, checker)

    return Wrap(
        backend=backend,
        open=opened,
        error=library.RequestError,
        takes_gate=False,
        is_http2=is_http2,
    )


def _httpx_transport(
    library: ModuleType, backend: str, *, is_http2: bool = False
) -> Wrap:
    @asynccontextmanager
    async def opened(setting: Setting) -> AsyncIterator[Get]:
        inner = library.AsyncHTTPTransport(
            verify=setting.tls, proxy=setting.proxy, http2=is_http2
        )
        async with (
            _checker(setting, inner) as (checker, gate),
            library.AsyncClient(
                transport=RobotsTransport(checker, AGENT, wrapped=inner, gate=gate),
                timeout=PATIENCE_SECONDS,
                follow_redirects=True,
            ) as client,
        ):
            yield _get(client, checker, gate)

    return Wrap(
        backend=backend,
        open=opened,
        error=library.RequestError,
        is_http2=is_http2,
    )


def _blocking_httpx(library: ModuleType, *, by_hook: bool) -> Wrap:
    @asynccontextmanager
    async def opened(setting: Setting) -> AsyncIterator[Get]:
        inner = library.HTTPTransport(verify=setting.tls, proxy=setting.proxy)
        with _blocking_checker(setting) as (checker, gate):
            hooks = [robots_hook(checker, AGENT)] if by_hook else []
            if not by_hook:
                inner = RobotsTransport(checker, AGENT, wrapped=inner, gate=gate)
            with library.Client(
                transport=inner,
                event_hooks={"request": hooks},
                timeout=PATIENCE_SECONDS,
                follow_redirects=True,
            ) as client:
                ignoring = partial(client.get, extensions={"robots": "ignore"})

                def unread(url: str) -> object:
                    return client.send(client.build_request("GET", url), stream=True)

                yield _blocking_get(client.get, ignoring, unread, checker, gate)

    return Wrap(
        open=opened,
        error=library.RequestError,
        takes_gate=not by_hook,
        is_blocking=True,
    )


@asynccontextmanager
async def _aiohttp(setting: Setting) -> AsyncIterator[Get]:
    async with (
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=setting.tls),
            proxy=setting.proxy,
            timeout=aiohttp.ClientTimeout(sock_read=PATIENCE_SECONDS),
        ) as session,
        _checker(setting, AiohttpFetcher(session)) as (checker, gate),
    ):
        middleware = robots_middleware(checker, AGENT, gate=gate)

        get = partial(session.get, middlewares=(middleware,))

        async def send(url: str, *, is_ignoring: bool = False, **options: Any) -> int:  # noqa: ANN401 (the client's)
            with robots_ignored() if is_ignoring else nullcontext():
                async with get(url, **options) as response:
                    return response.status

        yield Get(
            send=send,
            send_ignoring=partial(send, is_ignoring=True),
            stream=get,
            checker=checker,
            gate=gate,
        )


class _TLSAdapter(HTTPAdapter):
    """Trusts the tests' certificates."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().init_poolmanager(*arguments, ssl_context=self._tls, **options)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:  # noqa: ANN401
        return super().proxy_manager_for(proxy, ssl_context=self._tls, **options)


@asynccontextmanager
async def _requests(setting: Setting) -> AsyncIterator[Get]:
    with (
        _blocking_checker(setting) as (checker, gate),
        requests.Session() as session,
    ):
        inner = _TLSAdapter(setting.tls)
        adapter = RobotsAdapter(checker, AGENT, wrapped=inner, gate=gate)
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        session.proxies = {"all": setting.proxy} if setting.proxy else {}
        get = partial(session.get, timeout=PATIENCE_SECONDS)

        def get_ignoring(url: str) -> requests.Response:
            prefix = f"{url.rpartition('/')[0]}/"
            session.mount(prefix, HTTPAdapter())
            try:
                return get(url)
            finally:
                session.adapters.pop(prefix).close()

        unread = partial(get, stream=True)
        yield _blocking_get(get, get_ignoring, unread, checker, gate)


@asynccontextmanager
async def _curl_cffi(setting: Setting) -> AsyncIterator[Get]:
    async with (
        httpx.AsyncClient(verify=setting.tls, proxy=setting.proxy) as client,
        _checker(setting, client) as (checker, gate),
        # curl_cffi accepts no TLS context.
        curl_cffi.AsyncSession(
            verify=False, proxy=setting.proxy, timeout=PATIENCE_SECONDS
        ) as session,
    ):
        get = robots_get(checker, AGENT, session.get, gate=gate)

        async def send(url: str, **options: Any) -> int:  # noqa: ANN401 (the client's)
            return (await get(url, **options)).status_code

        async def send_ignoring(url: str) -> int:
            return (await session.get(url)).status_code

        yield Get(send=send, send_ignoring=send_ignoring, checker=checker, gate=gate)


@asynccontextmanager
async def _blocking_curl_cffi(setting: Setting) -> AsyncIterator[Get]:
    with (
        _blocking_checker(setting) as (checker, gate),
        curl_cffi.Session(
            verify=False, proxy=setting.proxy, timeout=PATIENCE_SECONDS
        ) as session,
    ):
        get = robots_get(checker, AGENT, session.get, gate=gate)
        yield _blocking_get(get, session.get, None, checker, gate)


WRAPS = {
    f"{library.__name__} {how} on {backend}": wrap(library, backend)
    for how, wrap in {
        "hook": _httpx_hook,
        "hook over HTTP/2": partial(_httpx_hook, is_http2=True),
        "transport": _httpx_transport,
        "transport over HTTP/2": partial(_httpx_transport, is_http2=True),
    }.items()
    for library in (httpx, httpx2)
    for backend in ("asyncio", "trio")
}
for library in (httpx, httpx2):
    for how in ("hook", "transport"):
        name = f"{library.__name__} blocking {how}"
        WRAPS[name] = _blocking_httpx(library, by_hook=how == "hook")
WRAPS["aiohttp"] = Wrap(
    open=_aiohttp,
    error=aiohttp.ClientError,
)
for name, opened in {
    "curl_cffi": _curl_cffi,
    "curl_cffi blocking": _blocking_curl_cffi,
}.items():
    WRAPS[name] = Wrap(
        open=opened,
        error=DisallowedError,
        failure=curl_cffi.requests.exceptions.RequestException,
        is_blocking=opened is _blocking_curl_cffi,
        returns_bad_redirects=True,
        streams=False,
    )
WRAPS["requests"] = Wrap(
    open=_requests,
    error=requests.RequestException,
    is_blocking=True,
)
