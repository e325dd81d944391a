"""Make a blocking httpx client obey robots.txt, on a small site on this machine.

    python examples/wrap_httpx_blocking.py

For an httpx2 client, pass `wrapped=httpx2.HTTPTransport()`.
"""

from __future__ import annotations

import httpx
from example_site import PATHS, serving

from robotsgate import DisallowedError
from robotsgate.integrations.httpx import RobotsTransport
from robotsgate.sync import PolitenessGate, RobotsChecker

USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"


def main(origin: str) -> None:
    """Get the pages that the site allows, one request a second."""
    with (
        RobotsChecker(user_agent=USER_AGENT) as checker,
        PolitenessGate(checker, "ExampleBot") as gate,
        httpx.Client(
            transport=RobotsTransport(checker, "ExampleBot", gate=gate),
            headers={"User-Agent": USER_AGENT},
            follow_redirects=True,
        ) as client,
    ):
        for path in PATHS:
            try:
                response = client.get(origin + path)
            except DisallowedError as error:
                print(f"{path}: {error.verdict}")
            else:
                print(f"{path}: {response.text}")


if __name__ == "__main__":
    with serving() as origin:
        main(origin)
