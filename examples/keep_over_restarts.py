"""Keep robots.txt files in a SQLite file, over the end of the process.

Starts a small server on this machine, lets one process ask about it, takes the
server's robots.txt away, and lets a second process ask:

    python examples/keep_over_restarts.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio

from robotsgate import RobotsChecker, SystemClock
from robotsgate.testing import ManualClock

AGENT = "ExampleBot"
DAY = 86_400


async def ask(store: str, origin: str, days_later: int) -> None:
    """What each of the processes does."""
    # A clock to turn, so that days pass without anybody waiting for them.
    clock = ManualClock(SystemClock().now() + days_later * DAY)
    async with RobotsChecker(user_agent=AGENT, store=store, clock=clock) as checker:
        for path in ("/", "/private"):
            print(f"    {path}: {await checker.check(AGENT, origin + path)}")


def main() -> None:
    """Run the processes, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        store = f"sqlite:///{Path(folder) / 'robots.db'}"
        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            origin = f"http://127.0.0.1:{server.server_port}"
            run("The first process, while the server is up:", store, origin, 0)
            Handler.status = 503
            run("A second one, two days later; the server is down:", store, origin, 2)
            run("A third one, in the middle of the outage:", store, origin, 20)
            run("A fourth one, after 30 days of outage:", store, origin, 33)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def run(title: str, store: str, origin: str, days_later: int) -> None:
    """Let a new process ask."""
    print(title, flush=True)
    command = [sys.executable, __file__, store, origin, str(days_later)]
    subprocess.run(command, check=True)  # noqa: S603 (this very file)


class Handler(BaseHTTPRequestHandler):
    """The server: its rules, or 503."""

    status = 200

    def do_GET(self) -> None:
        """Answer."""
        body = b"User-agent: *\nDisallow: /private\n" if self.status == 200 else b""  # noqa: PLR2004
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(ask, sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        main()
