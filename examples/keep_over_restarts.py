"""Keep robots.txt files in a SQLite file, over the end of the process.

Starts a small server on this machine, lets one process ask about it, takes the
server's robots.txt away, and lets a second process ask:

    python examples/keep_over_restarts.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import anyio
from example_site import serving

from robotsgate import RobotsChecker, SystemClock
from robotsgate.testing import ManualClock

AGENT = "ExampleBot"
DAY = 86_400


async def ask(store: str, origin: str, days_later: int) -> None:
    """What each of the processes does."""
    # A clock that the example moves, so that days pass at once.
    clock = ManualClock(SystemClock().now() + days_later * DAY)
    async with RobotsChecker(user_agent=AGENT, store=store, clock=clock) as checker:
        for path in ("/", "/private"):
            print(f"    {path}: {await checker.check(AGENT, origin + path)}")


def main() -> None:
    """Run the processes, one after the other."""
    pages: dict[str, str | tuple[int, str]] = {
        "/robots.txt": "User-agent: *\nDisallow: /private\n"
    }
    with tempfile.TemporaryDirectory() as folder, serving(pages) as origin:
        store = f"sqlite:///{Path(folder) / 'robots.db'}"
        run("The first process, while the server is up:", store, origin, 0)
        pages["/robots.txt"] = (503, "")
        run("A second one, two days later; the server is down:", store, origin, 2)
        run("A third one, in the middle of the outage:", store, origin, 20)
        run("A fourth one, after 30 days of outage:", store, origin, 33)


def run(title: str, store: str, origin: str, days_later: int) -> None:
    """Let a new process ask."""
    print(title, flush=True)
    command = [sys.executable, __file__, store, origin, str(days_later)]
    subprocess.run(command, check=True)  # noqa: S603 (this very file)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(ask, sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main()
