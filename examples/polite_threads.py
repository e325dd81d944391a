"""Get pages with requests in four threads, one request per second to each host.

pip install '.[requests]'
python examples/polite_threads.py
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

from example_site import serving

from robotsgate import DisallowedError
from robotsgate.integrations.requests import RobotsSession
from robotsgate.sync import PolitenessGate, RobotsChecker

USER_AGENT = "ExampleBot/1.0 (+https://example.org/bot)"
PAGES = {
    "/robots.txt": "User-agent: *\nDisallow: /basket\n",
    "/shoes": "Shoes",
    "/hats": "Hats",
}
PATHS = ("/shoes", "/basket", "/hats")

own = threading.local()  # because requests sessions are not thread-safe


def crawl(urls: list[str]) -> None:
    """Get the pages that robots.txt allows."""
    with (
        RobotsChecker(user_agent=USER_AGENT) as checker,
        PolitenessGate(checker, "ExampleBot") as gate,
        ThreadPoolExecutor(4, "crawler", open_session, (checker, gate)) as threads,
    ):
        for line in threads.map(get, urls):
            print(line)


def open_session(checker: RobotsChecker, gate: PolitenessGate) -> None:
    """Open a session for this thread; all sessions share the gate."""
    own.session = RobotsSession(checker, "ExampleBot", gate=gate)
    own.session.headers["User-Agent"] = USER_AGENT


def get(url: str) -> str:
    """The outcome of a request."""
    try:
        response = own.session.get(url, timeout=10)
    except DisallowedError as error:
        return str(error)
    return f"{monotonic() - BEGAN_AT:.0f} s: {url}: {response.text}"


BEGAN_AT = monotonic()

if __name__ == "__main__":
    with serving(PAGES) as site:
        crawl([site + path for path in PATHS])
