"""Make a curl_cffi session obey robots.txt, on a small site on this machine.

pip install . curl_cffi
python examples/wrap_curl_cffi.py
"""

from __future__ import annotations

import asyncio
from functools import partial

from curl_cffi.requests import AsyncSession
from example_site import PATHS, serving

from robotsgate import DisallowedError, RobotsChecker
from robotsgate.integrations.hops import robots_get

USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"


async def main(origin: str) -> None:
    """Get the pages that the site allows."""
    async with (
        RobotsChecker(user_agent=USER_AGENT) as checker,
        AsyncSession(headers={"User-Agent": USER_AGENT}) as session,
    ):
        get = robots_get(checker, "ExampleBot", partial(session.get, quote=False))
        for path in PATHS:
            try:
                response = await get(origin + path)
            except DisallowedError as error:
                print(f"{path}: {error.verdict}")
            else:
                print(f"{path}: {response.text}")


if __name__ == "__main__":
    with serving() as origin:
        asyncio.run(main(origin))
