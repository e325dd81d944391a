"""Make a niquests session obey robots.txt, on a small site on this machine.

Use a separate venv, because niquests replaces urllib3:

pip install '.[niquests]'
python examples/wrap_niquests.py
"""

from __future__ import annotations

import niquests
from example_site import PATHS, serving

from robotsgate import DisallowedError
from robotsgate.integrations.niquests import RobotsAdapter
from robotsgate.sync import RobotsChecker

USER_AGENT = "ExampleBot/1.0 (+https://example.com/bot)"


def main(origin: str) -> None:
    """Get the pages that the site allows."""
    with (
        RobotsChecker(user_agent=USER_AGENT) as checker,
        niquests.Session() as session,
    ):
        for scheme in ("http://", "https://"):
            session.mount(scheme, RobotsAdapter(checker, "ExampleBot"))
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
