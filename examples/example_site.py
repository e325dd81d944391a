"""A small site on this machine, for the other examples to crawl."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, TypeAlias, cast

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Pages: TypeAlias = "Mapping[str, str | tuple[int, str]]"
"""Maps each path to the page's HTML, or to a status and a redirect target."""

PAGES: Pages = {
    "/robots.txt": "User-agent: *\nDisallow: /diary\n",
    "/": '<a href="/about">About</a> <a href="/diary/monday">Diary</a>',
    "/about": '<a href="/">Home</a>',
    "/diary/monday": "Secrets",
    "/today": (302, "/diary/monday"),
}
PATHS = ("/about", "/diary/monday", "/today")


class Site(ThreadingHTTPServer):
    """An origin with some pages."""

    def __init__(self, pages: Pages, host: str) -> None:
        """Listen on a free port of `host`."""
        super().__init__((host, 0), Handler)
        self.pages = pages


class Handler(BaseHTTPRequestHandler):
    """Handles a request to a `Site`."""

    def do_GET(self) -> None:
        """Send the page, its status or redirect, or a 404."""
        page = cast("Site", self.server).pages.get(self.path, (404, ""))
        content, status, location = page, 200, ""
        if isinstance(page, tuple):
            content, (status, location) = "", page
        print(f"    the site answers GET {self.path} with {status}", flush=True)
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        body = str(content).encode()
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


def serving(
    pages: Pages = PAGES, *, host: str = "127.0.0.1"
) -> AbstractContextManager[str]:
    """Run a site with `pages` until the end of the block; yields its origin."""
    return running(Site(pages, host))


@contextmanager
def running(server: ThreadingHTTPServer) -> Iterator[str]:
    """Run `server` until the end of the block; yields its origin."""
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        host, port = server.server_address[:2]
        yield f"http://{host!s}:{port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
