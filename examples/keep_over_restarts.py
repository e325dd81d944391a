"""Keep robots.txt files in a SQLite file, so that they survive restarts.

Starts a small server on this machine, checks URLs in one process, makes the server
fail, and checks the same URLs in further processes:

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
    """Check two URLs; each process runs this once."""
    # A clock that the example advances, so that days pass instantly.
    clock = ManualClock(SystemClock().now() + days_later * DAY)
    async with RobotsChecker(user_agent=AGENT, store=store, clock=clock) as checker:
        for path in ("/", "/private"):
            print(f"    {path}: {await checker.check(AGENT, origin + path)}")


def main() -> None:
    """Run the processes, one after another."""
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
    """Check the URLs in a new process."""
    print(title, flush=True)
    command = [sys.executable, __file__, store, origin, str(days_later)]
    subprocess.run(command, check=True)  # noqa: S603 (this very file)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(ask, sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main()
