"""An MCP server whose tool obeys robots.txt and connects only to public addresses.

Its arguments are further networks to treat as public, such as 127.0.0.0/8 in a test.
"""

import asyncio
import socket
import sys
from errno import EACCES
from typing import Any

import aiohttp
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from robotsgate import AddressGuard, Policy, PolitenessGate, RobotsChecker
from robotsgate.fetching import counts_as_public
from robotsgate.integrations.aiohttp import robots_middleware

AGENT = "ExampleBot/1.0 (+https://example.com/bot)"
POLICY = Policy(address_guard=AddressGuard.PUBLIC_ONLY, allowed_networks=sys.argv[1:])


def public_socket(dialled: aiohttp.AddrInfoType) -> socket.socket:
    """A socket for a page; checks the address, which may have changed by now."""
    if not counts_as_public(str(dialled[4][0]), POLICY):
        raise PermissionError(EACCES, f"{dialled[4][0]} is not a public address")
    return socket.socket(*dialled[:3])


async def main() -> None:
    """Serve over stdin and stdout until stdin ends."""
    server = MCPServer("fetch")
    async with (
        RobotsChecker(user_agent=AGENT, policy=POLICY) as checker,
        PolitenessGate(checker, AGENT) as gate,
        aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(socket_factory=public_socket),
            headers={"User-Agent": AGENT},
            middlewares=[robots_middleware(checker, AGENT, gate=gate)],
            timeout=aiohttp.ClientTimeout(total=60),  # includes the wait for a turn
        ) as session,
    ):

        @server.tool()
        async def fetch(url: str) -> dict[str, Any]:
            """Fetch a page if robots.txt allows it, and report how it may be used."""
            try:
                async with session.get(url) as page:
                    text = await page.text(errors="replace")
            except (aiohttp.ClientError, TimeoutError) as error:
                raise ToolError(str(error) or "timed out") from error
            use = await checker.usage_preferences(AGENT, page.url, headers=page.headers)
            return {"url": str(page.url), "usage": use.as_dict(), "text": text}

        await server.run_stdio_async()


if __name__ == "__main__":
    asyncio.run(main())
