"""Clients of other people that obey robots.txt, opened and asked in one way."""

from __future__ import annotations

from contextlib import (
    AbstractAsyncContextManager,
    asynccontextmanager,
    nullcontext,
)
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import aiohttp
import anyio.to_thread
import httpx
import httpx2
import requests

from robotsgate import RobotsChecker, sync
from robotsgate.integrations.aiohttp import (
    AiohttpFetcher,
    robots_ignored,
    robots_middleware,
)
from robotsgate.integrations.httpx import RobotsTransport, robots_hook
from robotsgate.integrations.requests import RobotsAdapter
from tests.checking.builders import AGENT

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable
    from types import ModuleType

__all__ = ["WRAPS", "Get", "Wrap"]


class Get(Protocol):
    """Sends a GET, follows its redirects, and gives the status."""

    async def __call__(self, url: str, *, is_ignoring: bool = False) -> int: ...


@dataclass(frozen=True, kw_only=True)
class Wrap:
    """One way to wrap one client.

    Attributes:
        backend: the event loop.
        open: opens a client around a new checker, both until the block ends. Takes
            the TLS context, and perhaps the URL of a `proxy`, the `seconds` that the
            client waits for an answer, and whether it `shares` its connections with
            the checker.
        error: what a refused request raises besides a `DisallowedError`.
        timeout: what the client raises after its own time-out.
        is_blocking: whether it holds a thread, which nobody can cancel.
    """

    backend: str
    open: Callable[..., AbstractAsyncContextManager[Get]]
    error: type[Exception]
    timeout: type[Exception]
    is_blocking: bool = False


def _checker(client: object) -> RobotsChecker:
    return RobotsChecker(user_agent=AGENT, client=client)  # type: ignore[arg-type]


def _get(client: Any) -> Get:  # noqa: ANN401 (of httpx or httpx2)
    async def get(url: str, *, is_ignoring: bool = False) -> int:
        extensions = {"robots": "ignore"} if is_ignoring else None
        status: int = (await client.get(url, extensions=extensions)).status_code
        return status

    return get


def _httpx_hook(library: ModuleType, backend: str) -> Wrap:
    @asynccontextmanager
    async def opened(
        tls: ssl.SSLContext,
        *,
        proxy: str | None = None,
        seconds: float = 5,
        shares: bool = False,
    ) -> AsyncIterator[Get]:
        async with (
            library.AsyncClient(
                verify=tls,
                proxy=proxy,
                timeout=library.Timeout(5, read=seconds),
                follow_redirects=True,
            ) as client,
            _checker(client if shares else None) as checker,
        ):
            client.event_hooks = {"request": [robots_hook(checker, AGENT)]}
            yield _get(client)

    return Wrap(
        backend=backend,
        open=opened,
        error=library.RequestError,
        timeout=library.ReadTimeout,
    )


def _httpx_transport(library: ModuleType, backend: str) -> Wrap:
    @asynccontextmanager
    async def opened(
        tls: ssl.SSLContext,
        *,
        proxy: str | None = None,
        seconds: float = 5,
        shares: bool = False,
    ) -> AsyncIterator[Get]:
        transport = library.AsyncHTTPTransport(verify=tls, proxy=proxy)
        async with _checker(transport if shares else None) as checker:
            wrap = RobotsTransport(checker, AGENT, wrapped=transport)
            async with library.AsyncClient(
                transport=wrap,
                timeout=library.Timeout(5, read=seconds),
                follow_redirects=True,
            ) as client:
                yield _get(client)

    return Wrap(
        backend=backend,
        open=opened,
        error=library.RequestError,
        timeout=library.ReadTimeout,
    )


@asynccontextmanager
async def _aiohttp(
    tls: ssl.SSLContext,
    *,
    proxy: str | None = None,
    seconds: float = 5,
    shares: bool = False,
) -> AsyncIterator[Get]:
    async with (
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=tls),
            proxy=proxy,
            timeout=aiohttp.ClientTimeout(sock_read=seconds),
        ) as session,
        _checker(AiohttpFetcher(session) if shares else None) as checker,
    ):
        middleware = robots_middleware(checker, AGENT)

        async def get(url: str, *, is_ignoring: bool = False) -> int:
            with robots_ignored() if is_ignoring else nullcontext():
                async with session.get(url, middlewares=(middleware,)) as response:
                    return response.status

        yield get


@asynccontextmanager
async def _requests(
    tls: ssl.SSLContext,
    *,
    proxy: str | None = None,
    seconds: float = 5,
    shares: bool = False,
) -> AsyncIterator[Get]:
    # The checker has a client of its own, because a Session is not asynchronous.
    client = httpx.AsyncClient(verify=tls, proxy=proxy) if shares else None
    with (
        sync.RobotsChecker(user_agent=AGENT, client=client) as checker,
        requests.Session() as session,
    ):
        adapter = RobotsAdapter(checker, AGENT, wrapped=_TLSAdapter(tls))
        session.mount("http://", adapter)
        session.mount("https://", adapter)
        session.proxies = {"all": proxy} if proxy else {}

        async def get(url: str, *, is_ignoring: bool = False) -> int:
            own = f"{url.rpartition('/')[0]}/"
            if is_ignoring:
                session.mount(own, requests.adapters.HTTPAdapter())
            work = partial(session.get, url, timeout=(5, seconds))
            response = await anyio.to_thread.run_sync(work)
            if is_ignoring:
                del session.adapters[own]
            return response.status_code

        yield get


class _TLSAdapter(requests.adapters.HTTPAdapter):
    """Trusts the certificates of the tests."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401
        super().init_poolmanager(*arguments, ssl_context=self._tls, **options)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:  # noqa: ANN401
        return super().proxy_manager_for(proxy, ssl_context=self._tls, **options)


WRAPS = {
    f"{library.__name__} {how} on {backend}": wrap(library, backend)
    for how, wrap in {"hook": _httpx_hook, "transport": _httpx_transport}.items()
    for library in (httpx, httpx2)
    for backend in ("asyncio", "trio")
} | {
    "aiohttp": Wrap(
        backend="asyncio",
        open=_aiohttp,
        error=aiohttp.ClientError,
        timeout=TimeoutError,
    ),
    "requests": Wrap(
        backend="asyncio",
        open=_requests,
        error=requests.RequestException,
        timeout=requests.Timeout,
        is_blocking=True,
    ),
}
