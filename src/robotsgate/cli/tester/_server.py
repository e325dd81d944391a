"""The tester page's server, for the person at this machine.

It listens only on the loopback interface. Other websites can send requests to it
through the browser, but it refuses them, and they cannot read its responses.
"""

from __future__ import annotations

import json
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from importlib.resources import files
from socketserver import ThreadingTCPServer
from typing import TYPE_CHECKING, Any, ClassVar

from robotsgate import RobotsError
from robotsgate.cli.tester._answers import BadRequestError, Query, about_text
from robotsgate.cli.tester._site import about_site

if TYPE_CHECKING:
    from robotsgate.sync import RobotsChecker

_STATIC = files(__package__) / "static"

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


class PageServer(ThreadingTCPServer):
    """Serves the page; each connection has its own thread.

    Attributes:
        checker: fetches files; the caller closes it.
    """

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 100

    def __init__(self, checker: RobotsChecker, *, port: int) -> None:
        """Listen on `port`; 0 picks a free one.

        Raises:
            OSError: the port is in use.
        """
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
        """Return a static file."""
        if self.path not in _FILES:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        name, kind = _FILES[self.path]
        self._send(HTTPStatus.OK, (_STATIC / name).read_bytes(), kind)

    def do_POST(self) -> None:
        """Return the file with its findings, and a result for each agent and path."""
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
                return HTTPStatus.OK, about_site(query, self.server.checker)
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
