"""Make a requests session obey robots.txt, on a small site on this machine.

pip install '.[requests]'
python examples/wrap_requests.py
"""

from __future__ import annotations

from example_site import PATHS, serving

from robotsgate import DisallowedError
from robotsgate.integrations.requests import RobotsSession
from robotsgate.sync import RobotsChecker

USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"


def main(origin: str) -> None:
    """Get the pages that the site allows."""
    with (
        RobotsChecker(user_agent=USER_AGENT) as checker,
        RobotsSession(checker, "ExampleBot") as session,
    ):
        session.headers["User-Agent"] = USER_AGENT
        for path in PATHS:
            try:
                response = session.get(origin + path, timeout=10)
            except DisallowedError as error:
                print(f"{path}: {error.verdict}")
            else:
                print(f"{path}: {response.text}")


if __name__ == "__main__":
    with serving() as origin:
        main(origin)
