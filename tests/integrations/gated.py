"""A uniform way to open clients whose requests wait for their turns."""

from __future__ import annotations

import ssl
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
import httpx2

from robotsgate.integrations.aiohttp import robots_middleware
from robotsgate.integrations.httpx import RobotsTransport
from tests.checking.builders import AGENT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from types import ModuleType

    from robotsgate import PolitenessGate, RobotsChecker

    Send = Callable[[str], AbstractAsyncContextManager[Any]]
    Open = Callable[[RobotsChecker, PolitenessGate], AbstractAsyncContextManager[Send]]

# Loading the default certificates takes longer than any test of these clients.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


@asynccontextmanager
async def httpx_client(
    library: ModuleType, checker: RobotsChecker, gate: PolitenessGate
) -> AsyncIterator[Send]:
    """Yield a function that sends GETs with httpx or httpx2, in turns of `gate`."""
    transport = RobotsTransport(
        checker, AGENT, wrapped=library.AsyncHTTPTransport(verify=NO_TLS), gate=gate
    )
    async with library.AsyncClient(
        transport=transport, follow_redirects=True
    ) as client:
        yield partial(client.stream, "GET")


@asynccontextmanager
async def aiohttp_session(
    checker: RobotsChecker, gate: PolitenessGate
) -> AsyncIterator[Send]:
    """Yield a function that sends GETs with aiohttp, in turns of `gate`."""
    middleware = robots_middleware(checker, AGENT, gate=gate)
    async with aiohttp.ClientSession(middlewares=(middleware,)) as session:
        yield session.get


GATED: dict[str, tuple[str, Open]] = {
    "httpx on asyncio": ("asyncio", partial(httpx_client, httpx)),
    "httpx on trio": ("trio", partial(httpx_client, httpx)),
    "httpx2 on asyncio": ("asyncio", partial(httpx_client, httpx2)),
    "httpx2 on trio": ("trio", partial(httpx_client, httpx2)),
    "aiohttp": ("asyncio", aiohttp_session),
}
"""The event loop and the function that opens the client, by name."""
