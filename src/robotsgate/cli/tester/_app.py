"""The tester page's ASGI app: static files and one JSON endpoint."""

from __future__ import annotations

import json
from contextlib import aclosing
from functools import partial
from importlib.resources import files
from ipaddress import IPv6Address, ip_address
from itertools import product
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from cachetools import LRUCache
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from robotsgate import AccessResult, Origin, RobotsError, RobotsTxt
from robotsgate.cli.tester._answers import (
    BadRequestError,
    Query,
    answer_of,
    answers_in,
    has_scheme,
    in_each_dialect,
    shown_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from robotsgate import RobotsChecker, Verdict

_Result = TypeVar("_Result")

# `Query` limits the text; in JSON, most of its characters take at most twice the bytes.
_MOST_BYTES = 4 * 2**20

_FETCHES_AT_ONCE, _SECONDS_EACH = 20, 3.0

_STATIC = files(__package__) / "static"

_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/tester.css": ("tester.css", "text/css; charset=utf-8"),
    "/tester.js": ("tester.js", "text/javascript; charset=utf-8"),
    "/answers.js": ("answers.js", "text/javascript; charset=utf-8"),
}

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers that the server adds to every response, including errors."""


def page_app(
    checker: RobotsChecker,
    *,
    monotonic: Callable[[], float],
    own_name: str | None = None,
) -> Starlette:
    """Create the app.

    Args:
        checker: fetches files, with its own address guard; the caller closes it.
        monotonic: returns the current time in seconds.
        own_name: the only host name to accept besides IP addresses and localhost,
            because an attacker could point a name of their own at this server (DNS
            rebinding). `None` to accept all names.
    """
    answerer = _Answerer(checker, monotonic=monotonic, own_name=own_name)
    routes = [
        Route(path, partial(_give_file, name, kind))
        for path, (name, kind) in _FILES.items()
    ]
    routes.append(Route("/answers", answerer.answer, methods=["POST"]))
    app = Starlette(routes=routes)
    # Such a redirect would go to whatever host the client named.
    app.router.redirect_slashes = False
    return app


async def _give_file(name: str, kind: str, _request: Request) -> Response:
    body = (_STATIC / name).read_bytes()
    return Response(body, headers={"Content-Type": kind})


class _Answerer:
    """Handles the page's requests."""

    def __init__(
        self,
        checker: RobotsChecker,
        *,
        monotonic: Callable[[], float],
        own_name: str | None,
    ) -> None:
        self._checker = checker
        self._own_name = own_name
        self._monotonic = monotonic
        self._limit = RateLimit(burst=_FETCHES_AT_ONCE, seconds_each=_SECONDS_EACH)
        self._threads = anyio.CapacityLimiter(2)

    async def answer(self, request: Request) -> Response:
        """Return the file with its findings, and a result for each agent and path."""
        name = request.url.hostname or ""
        if self._own_name is not None and not (
            name in {self._own_name, "localhost"} or _is_address(name)
        ):
            return _error(403, f"expected the host {self._own_name!r}, got another")
        # Other sites can submit forms, but not with this content type.
        if request.headers.get("content-type") != "application/json":
            return _error(415, "expected application/json")
        try:
            query = Query.of(await _json_of(request))
            if query.text is not None:
                content = await self._about_text(query.text, query)
            else:
                address = "" if request.client is None else request.client.host
                content = await self._about_url(query, client_of(address))
        except _TooManyError as error:
            return _error(429, str(error))
        except (BadRequestError, RobotsError, ClientDisconnect) as error:
            return _error(400, str(error))
        return JSONResponse(content)

    async def _about_text(self, text: str, query: Query) -> dict[str, Any]:
        files = in_each_dialect(text)
        content = await self._in_thread(partial(shown_file, files[0]))
        content["answers"] = [
            answer
            for path, agent in product(query.paths, query.agents)
            for answer in await self._in_thread(partial(answers_in, files, agent, path))
        ]
        return content | {"source": None}

    async def _about_url(self, query: Query, client: str) -> dict[str, Any]:
        origin, verdict = await self._fetch(query.url, client)
        robots = await self._checker.robots_txt(f"{origin}/")
        shown = partial(shown_file, robots or RobotsTxt.parse(""))
        content = await self._in_thread(shown)
        content["answers"] = [
            await self._answer_at(origin, agent, path)
            for path, agent in product(query.paths, query.agents)
        ]
        told = verdict.as_dict()
        names = ("access", "status", "redirects", "error", "is_stale")
        dates = ("fetched_at", "fresh_until")
        source = {name: told[name] for name in (*names, *dates)}
        return content | {"source": {"url": origin.robots_url, **source}}

    async def _fetch(self, url: str, client: str) -> tuple[Origin, Verdict]:
        """Fetch from a site, trying HTTPS before HTTP if `url` has no scheme."""
        if has_scheme(url):
            origin = Origin.from_url(url)
            return origin, await self._fetch_origin(origin, client)
        https, http = (Origin.from_url(f"{s}://{url}") for s in ("https", "http"))
        verdict = await self._fetch_origin(https, client)
        if verdict.access is not AccessResult.UNREACHABLE or verdict.status is not None:
            return https, verdict
        over_http = await self._checker.check("*", f"{http}/")  # the same site: free
        if over_http.access is AccessResult.UNREACHABLE:
            return https, verdict
        return http, over_http

    async def _fetch_origin(self, origin: Origin, client: str) -> Verdict:
        root = f"{origin}/"
        is_known = self._checker.peek("*", root) is not None
        if not is_known and not self._limit.take(client, self._monotonic()):
            raise _TooManyError("too many fetches: try again in a few seconds")
        return await self._checker.check("*", root)

    async def _answer_at(self, origin: Origin, agent: str, path: str) -> dict[str, Any]:
        url = f"{origin}{path}" if path.startswith("/") else path
        try:
            if Origin.from_url(url) != origin:
                error = f"expected a URL of {origin}"
                return answer_of(agent, path, (None, None, error))
            verdict = await self._checker.check(agent, url)
        except RobotsError as error:
            return answer_of(agent, path, (None, None, str(error)))
        line = None if verdict.rule is None else verdict.rule.line
        _, _, reason = str(verdict).partition(" ")
        return answer_of(agent, path, (verdict.allowed, line, reason))

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
        return await anyio.to_thread.run_sync(work, limiter=self._threads)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def client_of(address: str) -> str:
    """The client at an IP address; a /64 IPv6 network counts as a single client."""
    try:
        ip = ip_address(address)
    except ValueError:
        return address
    if isinstance(ip, IPv6Address) and ip.ipv4_mapped is None:
        return str(IPv6Address(int(ip) >> 64 << 64))
    return address


class _TooManyError(Exception):
    """A client has used up its fetches."""


async def _json_of(request: Request) -> object:
    body = b""
    async with aclosing(request.stream()) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) > _MOST_BYTES:
                raise BadRequestError(f"expected at most {_MOST_BYTES} bytes of JSON")
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequestError("expected JSON") from error


def _error(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status_code=status)


_MOST_CLIENTS = 10_000


class RateLimit:
    """A token bucket for each client."""

    def __init__(self, *, burst: int, seconds_each: float) -> None:
        """Start each client with `burst` tokens; add one every `seconds_each`."""
        self._burst = burst
        self._seconds_each = seconds_each
        self._full_at: LRUCache[str, float] = LRUCache(_MOST_CLIENTS)

    def take(self, client: str, now: float) -> bool:
        """Take a token from `client`'s bucket, and return whether there was one.

        Args:
            client: the client's address.
            now: the current monotonic time in seconds.
        """
        full_at = max(self._full_at.get(client, now), now) + self._seconds_each
        if full_at > now + self._burst * self._seconds_each:
            return False
        self._full_at[client] = full_at
        return True
