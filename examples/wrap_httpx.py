"""Make an httpx client obey robots.txt, on a small site on this machine.

    python examples/wrap_httpx.py

The same code works for an httpx2 client.
"""

from __future__ import annotations

import anyio
import httpx
from example_site import PATHS, serving

from robotsgate import DisallowedError, RobotsChecker
from robotsgate.integrations.httpx import robots_hook

USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"


async def main(origin: str) -> None:
    """Get the pages that the site allows."""
    async with (
        RobotsChecker(user_agent=USER_AGENT) as checker,
        httpx.AsyncClient(
            event_hooks={"request": [robots_hook(checker, "ExampleBot")]},
            headers={"User-Agent": USER_AGENT},
            follow_redirects=True,
        ) as client,
    ):
        for path in PATHS:
            try:
                response = await client.get(origin + path)
            except DisallowedError as error:
                print(f"{path}: {error.verdict}")
            else:
                print(f"{path}: {response.text}")


if __name__ == "__main__":
    with serving() as origin:
        anyio.run(main, origin)
