"""Get pages with requests in four threads, one request per second to each host.

pip install '.[requests]'
python examples/polite_threads.py https://shop.example/shoes https://shop.example/hats
"""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from requests import RequestException

from robotsgate import DisallowedError
from robotsgate.integrations.requests import RobotsSession
from robotsgate.sync import PolitenessGate, RobotsChecker

USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"

own = threading.local()  # because requests sessions are not thread-safe


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
    except RequestException as error:
        return f"failed: {url} {error!r}"
    return f"{response.status_code} {url}"


def crawl(urls: list[str]) -> None:
    """Request the URLs that robots.txt allows."""
    with (
        RobotsChecker(user_agent=USER_AGENT) as checker,
        PolitenessGate(checker, "ExampleBot") as gate,
        ThreadPoolExecutor(4, "crawler", open_session, (checker, gate)) as threads,
    ):
        for line in threads.map(get, urls):
            print(line)


if __name__ == "__main__":
    crawl(sys.argv[1:])
