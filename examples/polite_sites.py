"""Six sites for `polite_crawler.py`, on this machine; they log each request."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple, cast

from example_site import running

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGES = 6


class Request(NamedTuple):
    """One request as seen by the site; the times are from `time.monotonic`."""

    began_at: float
    ended_at: float
    kind: str


class Site(ThreadingHTTPServer):
    """An origin with a few pages that link to each other."""

    def __init__(self, title: str, rules: str, seconds: float, busy_at: int) -> None:
        """Listen on a free port of this machine.

        Args:
            title: the site's name in the picture.
            rules: the rules in its robots.txt.
            seconds: how long each response takes.
            busy_at: after this many requests, one gets a 429; 0 for never.
        """
        super().__init__(("127.0.0.1", 0), Handler)
        self.title = title
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.rules = rules
        self.seconds = seconds
        self.busy_at = busy_at
        self.log: list[Request] = []


class Handler(BaseHTTPRequestHandler):
    """Handles a request to a `Site`."""

    def do_GET(self) -> None:
        """Send robots.txt, the sitemap, a page, or a 429."""
        began_at = time.monotonic()
        site = cast("Site", self.server)
        time.sleep(site.seconds)
        status, content_type, body, kind = 200, "text/html", "", "page"
        if self.path == "/robots.txt":
            body = f"User-agent: *\n{site.rules}\nSitemap: {site.url}/sitemap.xml\n"
            kind = "robots.txt"
        elif len(site.log) == site.busy_at:
            status, kind = 429, "429"
        elif self.path == "/sitemap.xml":
            content_type = "text/xml"
            body = f"<urlset><url><loc>{site.url}/0</loc></url></urlset>"
        else:
            number = int(self.path.rpartition("/")[2])
            body = f'<a href="/{(number + 1) % PAGES}">On</a> <a href="/no/0">No</a>'
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Retry-After", "2")
        self.end_headers()
        site.log.append(Request(began_at, time.monotonic(), kind))
        self.wfile.write(body.encode())

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serving() -> Iterator[list[Site]]:
    """Run the sites until the end of the block; yields them."""
    sites = [
        Site("no crawl-delay", "Disallow: /no", 0.05, busy_at=0),
        Site("no crawl-delay, slow", "Disallow: /no", 0.4, busy_at=0),
        Site("Crawl-delay: 0.5", "Crawl-delay: 0.5\nDisallow: /no", 0.05, busy_at=0),
        Site("Crawl-delay: 1", "Crawl-delay: 1\nDisallow: /no", 0.05, busy_at=0),
        Site("Request-rate: 3/2s", "Request-rate: 3/2\nDisallow: /no", 0.1, busy_at=0),
        Site("429, Retry-After: 2", "Disallow: /no", 0.05, busy_at=4),
    ]
    with ExitStack() as stack:
        for site in sites:
            stack.enter_context(running(site))
        yield sites
