"""Make an aiohttp session obey robots.txt, on a small site on this machine.

pip install '.[aiohttp]'
python examples/wrap_aiohttp.py
"""

from __future__ import annotations

import asyncio

import aiohttp
from example_site import PATHS, serving

from robotsgate import DisallowedError, RobotsChecker
from robotsgate.integrations.aiohttp import robots_middleware

USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"


async def main(origin: str) -> None:
    """Get the pages that the site allows."""
    async with (
        RobotsChecker(user_agent=USER_AGENT) as checker,
        aiohttp.ClientSession(
            middlewares=(robots_middleware(checker, "ExampleBot"),),
            headers={"User-Agent": USER_AGENT},
        ) as session,
    ):
        for path in PATHS:
            try:
                async with session.get(origin + path) as response:
                    print(f"{path}: {await response.text()}")
            except DisallowedError as error:
                print(f"{path}: {error.verdict}")


if __name__ == "__main__":
    with serving() as origin:
        asyncio.run(main(origin))
