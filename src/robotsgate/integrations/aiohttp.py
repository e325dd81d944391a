"""robots.txt for aiohttp sessions: a middleware and a fetcher.

Needs the aiohttp extra. Like aiohttp itself, it only works on asyncio.
"""

from __future__ import annotations

from robotsgate.errors import needs_extra
from robotsgate.integrations._door import Client, Door, asked_urls, end_soon

with needs_extra("aiohttp"):
    import aiohttp

from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING

from yarl import URL

from robotsgate import DisallowedError, FetchedResponse, FetchFailedError
from robotsgate.fetching import (
    NEVER_SENT,
    Body,
    as_pairs,
    failure_kind,
    has_left_origin,
    read_into,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AsyncExitStack

    from aiohttp import (
        ClientHandlerType,
        ClientMiddlewareType,
        ClientRequest,
        ClientResponse,
    )

    from robotsgate import PolitenessGate, RobotsChecker, Turn

__all__ = [
    "AiohttpFetcher",
    "RobotsDisallowedError",
    "robots_ignored",
    "robots_middleware",
]

_is_ignored: ContextVar[bool] = ContextVar("robotsgate.is_ignored", default=False)


class RobotsDisallowedError(DisallowedError, aiohttp.ClientError):
    """A request that was not sent because robots.txt does not allow it.

    Both a `DisallowedError` and an `aiohttp.ClientError`.

    Attributes:
        verdict: the full verdict, including the rule and its line.
    """


def robots_middleware(
    checker: RobotsChecker,
    agent: str | Sequence[str],
    *,
    gate: PolitenessGate | None = None,
) -> aiohttp.ClientMiddlewareType:
    """Create a middleware that refuses disallowed requests, including redirects.

    Use it as `ClientSession(middlewares=(robots_middleware(checker, agent),))`.
    Requests for /robots.txt, the checker's own requests, and requests inside
    `robots_ignored()` are not checked. The session's total timeout includes the time
    spent fetching robots.txt and waiting for a turn.

    Args:
        checker: checks the URLs; close it yourself.
        agent: as in `RobotsChecker.can_fetch`.
        gate: provides a turn for each checked request; the turn ends when the request's
            connection is released. The gate uses its own checker and agent.

    Returns:
        The middleware. It raises `RobotsDisallowedError`, or `aiohttp.InvalidURL` if
        the checker does not support the URL.

    Raises:
        TypeError: `checker` is not a checker, or `gate` is not a gate.
        InvalidProductTokenError: `agent` is not the name of a crawler.
    """
    door = Door(checker, agent, gate)

    async def obey(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        response: ClientResponse = await door.send(request, send, _CLIENT)
        return response

    return obey


def _asked_urls(request: ClientRequest) -> Iterator[str]:
    if _is_ignored.get():
        return iter(())
    url = request.url
    return asked_urls(
        url.scheme,
        url.raw_host or "",
        url.port,
        url.raw_path_qs,
        headers=request.headers.items(),
    )


def _hold(
    response: ClientResponse, turn: Turn, block: AsyncExitStack
) -> ClientResponse:
    if response.connection is not None:  # the body has not been read yet
        response.connection.add_callback(partial(end_soon, turn, block.pop_all()))
    return response


_CLIENT = Client(
    _asked_urls,
    _hold,
    refusal=lambda verdict, request: RobotsDisallowedError(verdict),  # noqa: ARG005
    url_error=lambda message, request: aiohttp.InvalidURL(request.url, message),
)


@contextmanager
def robots_ignored() -> Iterator[None]:
    """Skip the check for requests inside the block.

    This is a context manager because a middleware cannot see a request's options. It
    applies to the task that enters it and to tasks started inside the block.
    """
    token = _is_ignored.set(True)
    try:
        yield
    finally:
        _is_ignored.reset(token)


class AiohttpFetcher:
    """A `Fetcher` that uses an `aiohttp.ClientSession`, its connector and its proxies.

    It never sends the session's cookies or credentials, and stops sending the session's
    other headers once a redirect leads to another origin. It neither uses the session's
    middlewares nor stores cookies. Close the session yourself.
    """

    def __init__(self, session: aiohttp.ClientSession) -> None:
        """Fetch with `session`.

        Args:
            session: sends the requests, with its own timeouts. Its connector should
                allow at least as many connections as the checker's
                `max_concurrent_fetches`, because a timeout while waiting for a
                connection is blamed on the server.

        Raises:
            TypeError: `session` is not an aiohttp session.
        """
        given: object = session
        if not isinstance(given, aiohttp.ClientSession):
            raise TypeError(f"expected an aiohttp.ClientSession, got {given!r}")
        self._session = session

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        """See `Fetcher.get`. The body is not decoded.

        Raises:
            FetchFailedError: there was no usable response.
            RuntimeError: the session is closed.
        """
        try:
            async with self._session.get(
                URL(url, encoded=True),
                headers=headers,
                allow_redirects=False,
                auto_decompress=False,
                raise_for_status=False,
                middlewares=(_anonymous(headers),),
            ) as response:
                body = Body(response.status, (), max_bytes=max_bytes)
                await read_into(body, response.content.iter_any())
                return FetchedResponse(
                    status=response.status,
                    headers=as_pairs(response.raw_headers),
                    body=bytes(body),
                    is_decoded=False,
                )
        except (aiohttp.ClientError, OSError) as error:
            raise FetchFailedError(str(error), kind=failure_kind(error)) from error


def _anonymous(headers: Sequence[tuple[str, str]]) -> ClientMiddlewareType:
    """A middleware that isolates a fetch's requests from the session's state.

    It removes the session's headers from the request, and cookies from the response.
    """
    own = {"host", *(name.lower() for name, _ in headers)}

    async def send_anonymously(
        request: ClientRequest, send: ClientHandlerType
    ) -> ClientResponse:
        for name in set(request.headers):
            if name.lower() in NEVER_SENT or (
                has_left_origin() and name.lower() not in own
            ):
                request.headers.popall(name, None)
        response = await send(request)
        response.cookies = SimpleCookie()
        return response

    return send_anonymously
