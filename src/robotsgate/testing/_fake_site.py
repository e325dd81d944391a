"""An in-memory fake web for tests."""

from __future__ import annotations

import math
import sys
from http import HTTPStatus
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import anyio.lowlevel
import httpx

from robotsgate import Origin, SystemClock
from robotsgate._public import set_module

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from robotsgate import Clock


@set_module("robotsgate.testing")
class FakeSite(httpx.AsyncBaseTransport):
    """An httpx transport that serves any number of origins from memory.

    Pass it as `RobotsChecker(client=...)`, and as `transport` to the httpx or httpx2
    `AsyncClient` that fetches the pages. It responds with 404 to any URL that it does
    not serve.

    Attributes:
        requests: the requested URLs, in order.
        dials_nothing: always true, because no connections are made and an address guard
            has nothing to check.
    """

    dials_nothing: bool = True

    def __init__(self, *, clock: Clock = SystemClock()) -> None:
        """Create a site that serves nothing yet.

        Args:
            clock: the clock for delayed responses.
        """
        self.requests: list[str] = []
        self._clock = clock
        # The answers to successive requests for a URL, and the delay before each.
        self._answers: dict[str, tuple[list[httpx.Response | Exception], float]] = {}

    def serve(
        self,
        origin: str,
        body: bytes | str | httpx.Response | Sequence[httpx.Response | Exception] = b"",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        delay: float = 0.0,
    ) -> None:
        """From now on, serve a robots.txt for `origin`.

        Args:
            origin: the origin's URL without a path, or the URL of its robots.txt.
            body: the response body; a `str` is encoded as UTF-8. Can also be an httpx
                response, or a sequence of responses and exceptions, one for each
                request; the last one is repeated. Exceptions are raised.
            status: the response status, 100 to 999; only if `body` is bytes or a `str`.
            headers: the response headers; only if `body` is bytes or a `str`.
            delay: seconds to wait before each response, by the site's clock, ≥ 0.

        Raises:
            TypeError: an item of `body` is neither a response nor an exception.
            ValueError: `origin` is not an http or https origin, or has another path;
                `body` is an empty sequence; `delay` is negative or not finite; or
                `status` or `headers` are combined with responses.
        """
        self._serve(_robots_url(origin), _answers_of(body, status, headers), delay)

    def serve_page(
        self,
        url: str,
        body: bytes | str | httpx.Response | Sequence[httpx.Response | Exception] = b"",
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        delay: float = 0.0,
    ) -> None:
        """From now on, serve a page at `url`.

        Args:
            url: the page's http or https URL, including the query; a fragment is
                ignored.
            body: as in `serve`, but a `str` is sent as text/html unless `headers`
                specifies another Content-Type.
            status: as in `serve`.
            headers: as in `serve`.
            delay: as in `serve`.

        Raises:
            TypeError: as in `serve`.
            ValueError: `url` is not an absolute http or https URL, or as in `serve`.
        """
        _http_origin(url)
        if isinstance(body, str):
            html = {"content-type": "text/html; charset=utf-8"}
            headers = {**html, **httpx.Headers(headers)}
        answers = _answers_of(body, status, headers)
        self._serve(_as_sent(httpx.URL(url)), answers, delay)

    def fail(self, origin: str, error: Exception, *, delay: float = 0.0) -> None:
        """From now on, raise `error` whenever the robots.txt of `origin` is requested.

        `origin`, `delay` and the ValueError are as in `serve`.
        """
        self.serve(origin, [error], delay=delay)

    def _serve(
        self, url: str, answers: list[httpx.Response | Exception], delay: float
    ) -> None:
        if not 0 <= delay < math.inf:
            raise ValueError(f"expected delay to be 0 or more seconds, got {delay!r}")
        self._answers[url] = answers, delay

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Let other tasks run, as a real request would, then respond as configured."""
        self.requests.append(str(request.url))
        url = _as_sent(request.url)
        answers, delay = self._answers.get(url, ([httpx.Response(404)], 0.0))
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        await (self._clock.wait(delay) if delay else anyio.lowlevel.checkpoint())
        if isinstance(answer, Exception):
            raise answer
        # httpx and httpx2 reject each other's responses.
        library = sys.modules[type(request).__mro__[-2].__module__]
        response: type[httpx.Response] = library.Response
        return response(
            answer.status_code,
            headers=answer.headers.raw,
            # The bytes as sent over the network; `answer.content` is decoded.
            content=b"".join(cast("httpx.SyncByteStream", answer.stream)),
        )


def _robots_url(origin: str) -> str:
    """The URL of `origin`'s robots.txt. Raises the same errors as `FakeSite.serve`."""
    named = _http_origin(origin)
    parts = urlsplit(origin)
    path = f"{parts.path}?{parts.query}" if parts.query else parts.path
    if path not in {"", "/", "/robots.txt"}:
        raise ValueError(
            f"expected an origin or the URL of its robots.txt, got the path {path!r}"
        )
    return named.robots_url


def _answers_of(
    body: bytes | str | httpx.Response | Sequence[httpx.Response | Exception],
    status: int,
    headers: Mapping[str, str] | None,
) -> list[httpx.Response | Exception]:
    """The responses to successive requests. Raises the same errors as `serve`."""
    if isinstance(body, bytes | str):
        return [httpx.Response(status, headers=headers, content=body)]
    if status != HTTPStatus.OK or headers is not None:
        raise ValueError("expected the responses to carry their own status and headers")
    if isinstance(body, httpx.Response):
        return [body]
    if not body:
        raise ValueError(f"expected at least one response, got {body!r}")
    for answer in body:
        if not isinstance(answer, httpx.Response | Exception):
            raise TypeError(f"expected responses or exceptions, got {answer!r}")
    return list(body)


def _http_origin(url: str) -> Origin:
    """The origin of `url`; raises a ValueError if the scheme is not http or https."""
    origin = Origin.from_url(url)
    if origin.scheme == "ftp":
        raise ValueError(f"expected an http or https URL, got {url!r}")
    return origin


def _as_sent(url: httpx.URL) -> str:
    """`url` as a client requests it: with a path, but no userinfo or fragment."""
    return f"{url.scheme}://{url.netloc.decode()}{url.raw_path.decode()}"
