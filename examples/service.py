"""Serve pages that robots.txt allows, at http://localhost:8080/?url=https://example.com/.

pip install '.[aiohttp]'
python examples/service.py
"""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from errno import EACCES

import aiohttp
from aiohttp import web

from robotsgate import (
    AddressGuard,
    DisallowedError,
    Policy,
    PolitenessGate,
    RobotsChecker,
)
from robotsgate.fetching import counts_as_public
from robotsgate.integrations.aiohttp import robots_middleware

AGENT = "ExampleBot/1.0 (+https://example.com/bot)"
STORE = "sqlite:///robots.db"
MAX_PAGE_BYTES = 5_000_000
POLICY = Policy(address_guard=AddressGuard.PUBLIC_ONLY)
SESSION = web.AppKey("session", aiohttp.ClientSession)


def public_socket(dialled: aiohttp.AddrInfoType) -> socket.socket:
    """A socket for a page; checks the address, which may have changed by now."""
    if not counts_as_public(str(dialled[4][0]), POLICY):
        raise PermissionError(EACCES, f"{dialled[4][0]} is not a public address")
    return socket.socket(*dialled[:3])


async def purge_daily(checker: RobotsChecker) -> None:
    """Delete the entries that are no longer usable, once a day."""
    while True:
        await asyncio.sleep(86_400)
        await checker.purge()


async def open_session(app: web.Application) -> AsyncIterator[None]:
    """Open everything when the service starts, and close it when it stops."""
    async with (
        RobotsChecker(user_agent=AGENT, policy=POLICY, store=STORE) as checker,
        PolitenessGate(checker, AGENT) as gate,
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(socket_factory=public_socket),
            headers={"User-Agent": AGENT},
            middlewares=[robots_middleware(checker, AGENT, gate=gate)],
            timeout=aiohttp.ClientTimeout(total=60),  # includes the wait for a turn
        ) as app[SESSION],
    ):
        purge = asyncio.create_task(purge_daily(checker))
        yield
        purge.cancel()


async def serve_page(request: web.Request) -> web.Response:
    """Return the page at the URL in the query as plain text, or an error."""
    body = bytearray()
    try:
        async with request.app[SESSION].get(request.query.get("url", "")) as page:
            async for chunk in page.content.iter_any():
                body += chunk
                if len(body) > MAX_PAGE_BYTES:
                    return web.Response(text="the page is too large", status=502)
            return web.Response(text=body.decode(errors="replace"), status=page.status)
    except DisallowedError as error:
        return web.json_response(error.verdict.as_dict(), status=403)
    except (aiohttp.ClientError, TimeoutError) as error:
        return web.Response(text=repr(error), status=502)


def application() -> web.Application:
    """Create the service."""
    app = web.Application()
    app.cleanup_ctx.append(open_session)
    app.router.add_get("/", serve_page)
    return app


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    web.run_app(application(), host="localhost", port=8080)
