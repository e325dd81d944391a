"""Keep robotsgate out of networks that a stranger's redirect should not reach.

Starts two small servers on this machine. One plays a public site, at 127.0.0.1,
whose robots.txt redirects to the other, a service "inside", at 127.0.0.2:

    python examples/closed_network.py

Needs a system where all of 127.0.0.0/8 is this machine, such as Linux.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import anyio

from robotsgate import AddressGuard, Policy, RobotsChecker

if TYPE_CHECKING:
    from collections.abc import Iterator

AGENT = "ExampleBot"

POLICIES = {
    "the public web only": Policy(
        address_guard=AddressGuard.PUBLIC_ONLY,
        # So that 127.0.0.1 may play the public web here.
        allowed_networks=["127.0.0.1/32"],
    ),
    "the public web and the network of the service": Policy(
        address_guard=AddressGuard.PUBLIC_ONLY, allowed_networks=["127.0.0.0/8"]
    ),
    "a closed network, no guard": Policy(address_guard=AddressGuard.OFF),
}


async def main() -> None:
    """Ask the same question under each policy."""
    asked: list[str] = []
    with (
        serving("127.0.0.2", asked, "service") as service,
        serving("127.0.0.1", asked, "site", location=f"{service}/admin") as site,
    ):
        for name, policy in POLICIES.items():
            asked.clear()
            async with RobotsChecker(user_agent="ExampleBot", policy=policy) as checker:
                verdict = await checker.check(AGENT, f"{site}/page")
            print(f"{name}:\n    {verdict}\n    asked: {', '.join(asked)}")


@contextmanager
def serving(
    host: str, asked: list[str], name: str, *, location: str | None = None
) -> Iterator[str]:
    """The origin of a server that redirects to `location`, or has no rules."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(name)
            self.send_response(302 if location else 200)
            if location:
                self.send_header("Location", location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer((host, 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://{host}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    anyio.run(main)
