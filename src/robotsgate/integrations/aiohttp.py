"""robots.txt for aiohttp sessions: a middleware and a fetcher.

Needs the aiohttp extra. Like aiohttp itself, it only works on asyncio.
"""

from __future__ import annotations

from robotsgate.integrations._wrapping import (
    TurnOfResponse,
    asked_url,
    check_arguments,
    missing_extra,
)

try:
    import aiohttp
except ImportError as error:
    raise missing_extra("aiohttp") from error

from contextlib import contextmanager
from contextvars import ContextVar
from http.cookies import SimpleCookie
from typing import TYPE_CHECKING

from yarl import URL

from robotsgate import (
    DisallowedError,
    FetchedResponse,
    FetchFailedError,
    InvalidURLError,
    UnsupportedError,
)
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

    from aiohttp import (
        ClientHandlerType,
        ClientMiddlewareType,
        ClientRequest,
        ClientResponse,
    )

    from robotsgate import PolitenessGate, RobotsChecker

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
    check_arguments(checker, agent, gate)

    async def obey(request: ClientRequest, send: ClientHandlerType) -> ClientResponse:
        if _is_ignored.get():
            return await send(request)
        sent = request.url
        try:
            url = asked_url(
                sent.scheme, sent.raw_host or "", sent.port, sent.raw_path_qs
            )
            if url is None:
                return await send(request)
            if gate is not None:
                return await _send_in_turn(request, url, send, gate)
            verdict = await checker.refusal(agent, url)
        except (InvalidURLError, UnsupportedError) as error:
            raise aiohttp.InvalidURL(sent, str(error)) from error
        if verdict is not None:
            raise RobotsDisallowedError(verdict)
        return await send(request)

    return obey


async def _send_in_turn(
    request: ClientRequest, url: str, send: ClientHandlerType, gate: PolitenessGate
) -> ClientResponse:
    try:
        turn = await TurnOfResponse.begun(gate, url)
    except DisallowedError as error:
        raise RobotsDisallowedError(error.verdict) from error
    async with turn:
        response = await send(request)
        turn.report(response)
        if response.connection is not None:
            turn.outlive_block()
            response.connection.add_callback(turn.end_soon)
        return response


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
