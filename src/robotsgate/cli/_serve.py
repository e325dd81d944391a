"""`robotsgate serve`: the tester page and its server, for the person at this machine.

The page and its script are in `static/`. Apart from those files, the server returns
only JSON, which the script inserts into the page as text. It listens only on the
loopback interface. Other websites can send requests to it through the browser, but it
refuses them, and they cannot read its responses.
"""

from __future__ import annotations

import json
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from itertools import product
from pathlib import Path
from socketserver import ThreadingTCPServer
from typing import TYPE_CHECKING, Any, ClassVar

import click

from robotsgate import AccessResult, Origin, RobotsError, RobotsTxt
from robotsgate.cli._explain import (
    BadRequestError,
    Query,
    about_text,
    answer_of,
    has_scheme,
    shown_file,
)
from robotsgate.cli._shell import Settings, fetching_options, tell

if TYPE_CHECKING:
    from robotsgate import Verdict
    from robotsgate.sync import RobotsChecker

_STATIC = Path(__file__).with_name("static")

_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/tester.css": ("tester.css", "text/css; charset=utf-8"),
    "/tester.js": ("tester.js", "text/javascript; charset=utf-8"),
    "/answers.js": ("answers.js", "text/javascript; charset=utf-8"),
}

# A name that resolves to this machine may belong to a hostile website.
_OWN_NAMES = {"127.0.0.1", "localhost"}

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}

_SOURCE = (
    *("access", "status", "redirects", "error", "is_stale"),
    *("fetched_at", "fresh_until"),
)


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8000,
    show_default=True,
    help="The port to listen on; 0 picks a free one.",
)
@fetching_options
def serve(*, port: int, settings: Settings) -> None:
    """Serve a web page for testing a robots.txt, only on this machine.

    Paste a file or enter a URL, add agents and paths, and see the results at once.

    \b
    Example:
      robotsgate serve
    """  # noqa: D301 (\b stops click from rewrapping)
    from robotsgate.sync import RobotsChecker  # noqa: PLC0415 (slow)

    client, store = settings.client(), settings.store
    checker = settings.made_by(RobotsChecker, client, store=store)
    with checker, PageServer(checker, port=port) as server:
        tell(f"http://127.0.0.1:{server.server_address[1]}/")
        server.serve_forever()


class PageServer(ThreadingTCPServer):
    """Serves the page; each connection has its own thread."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 100

    def __init__(self, checker: RobotsChecker, *, port: int) -> None:
        self.checker = checker
        super().__init__(("127.0.0.1", port), _Connection)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 (as in socketserver)
        """Print the exception, unless the browser has left or the program ends."""
        is_ending = self.socket.fileno() < 0
        if not (is_ending or isinstance(sys.exception(), ConnectionError)):
            super().handle_error(request, client_address)


class _Connection(BaseHTTPRequestHandler):
    server: PageServer  # type: ignore[mutable-override]  # it makes all connections
    protocol_version = "HTTP/1.1"
    # Browsers keep connections open that they may never use.
    timeout: ClassVar[float | None] = 10.0

    def do_GET(self) -> None:
        if self.path not in _FILES:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        name, kind = _FILES[self.path]
        self._send(HTTPStatus.OK, (_STATIC / name).read_bytes(), kind)

    def do_POST(self) -> None:
        status, content = self._answer()
        self._send(status, json.dumps(content).encode(), "application/json")

    def _answer(self) -> tuple[int, dict[str, Any]]:
        host = self.headers.get("Host", "").partition(":")[0]
        if host not in _OWN_NAMES:
            return _error(HTTPStatus.FORBIDDEN, "expected the host localhost")
        # Other sites can submit forms, but not with this content type.
        kind = "application/json"
        if self.headers.get("Content-Type") != kind:
            return _error(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"expected {kind}")
        try:
            query = Query.of(self._body())
            if query.text is None:
                return HTTPStatus.OK, _about_site(query, self.server.checker)
            return HTTPStatus.OK, about_text(query)
        except (BadRequestError, RobotsError) as error:
            return _error(HTTPStatus.BAD_REQUEST, str(error))

    def _body(self) -> object:
        try:
            size = int(self.headers.get("Content-Length", "0"))
            return json.loads(self.rfile.read(size))
        except (ValueError, RecursionError) as error:
            raise BadRequestError("expected JSON") from error

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if status != HTTPStatus.OK:  # the request's body may not have been read
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def end_headers(self) -> None:
        """Add the headers that every response has."""
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (as in http.server)
        """Do not log requests."""


def _error(status: int, message: str) -> tuple[int, dict[str, Any]]:
    return status, {"error": message}


def _about_site(query: Query, checker: RobotsChecker) -> dict[str, Any]:
    """The file at `query.url` and the result of each check."""
    origin, verdict = _fetch(query.url, checker)
    robots = checker.robots_txt(f"{origin}/") or RobotsTxt.parse("")
    told = verdict.as_dict()
    answers = [
        _answer_at(origin, agent, path, checker)
        for path, agent in product(query.paths, query.agents)
    ]
    return shown_file(robots) | {
        "answers": answers,
        "source": {"url": origin.robots_url} | {name: told[name] for name in _SOURCE},
    }


def _fetch(url: str, checker: RobotsChecker) -> tuple[Origin, Verdict]:
    """Fetch from a site, trying HTTPS before HTTP if `url` has no scheme."""
    if has_scheme(url):
        origin = Origin.from_url(url)
        return origin, checker.check("*", f"{origin}/")
    https, http = (Origin.from_url(f"{s}://{url}") for s in ("https", "http"))
    verdict = checker.check("*", f"{https}/")
    if verdict.access is AccessResult.UNREACHABLE and verdict.status is None:
        over_http = checker.check("*", f"{http}/")
        if over_http.access is not AccessResult.UNREACHABLE:
            return http, over_http
    return https, verdict


def _answer_at(
    origin: Origin, agent: str, path: str, checker: RobotsChecker
) -> dict[str, Any]:
    url = f"{origin}{path}" if path.startswith("/") else path
    try:
        if Origin.from_url(url) != origin:
            error = f"expected a URL of {origin}"
            return answer_of(agent, path, (None, None, error))
        verdict = checker.check(agent, url)
    except RobotsError as error:
        return answer_of(agent, path, (None, None, str(error)))
    line = None if verdict.rule is None else verdict.rule.line
    _, _, reason = str(verdict).partition(" ")
    return answer_of(agent, path, (verdict.allowed, line, reason))
