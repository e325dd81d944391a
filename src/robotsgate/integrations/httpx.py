"""robots.txt for httpx and httpx2 clients: an event hook and a transport.

`_httpx2.py` contains the httpx2 versions of the classes in this module. An
`AsyncClient` works on asyncio and trio; a sync `Client` needs a checker from
`robotsgate.sync`.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, overload
from urllib.request import getproxies

import httpx

from robotsgate.integrations._door import (
    ASYNC,
    BLOCKING,
    BodyInTurn,
    Client,
    DisallowedRequestError,
    Door,
    at_once,
    client_of_library,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from robotsgate import AsyncTransportLike, PolitenessGate, RobotsChecker, sync

__all__ = [
    "RobotsDisallowedError",
    "RobotsTransport",
    "SyncTransportLike",
    "robots_hook",
]

_NOT_ASYNC = (
    "expected an AsyncClient that awaits each check; a sync Client needs a checker from"
    " robotsgate.sync"
)
_NOT_SYNC = (
    "expected a sync Client for a checker from robotsgate.sync, got an AsyncClient"
)
_NO_PROXY = (
    "{0}_PROXY is set, but a RobotsTransport ignores it: pass"
    " wrapped=httpx.{1}(proxy=...), or wrapped=httpx.{1}() to connect directly"
)


class RobotsDisallowedError(DisallowedRequestError, httpx.RequestError):
    """A request that was not sent because robots.txt does not allow it.

    Both a `DisallowedError` and an `httpx.RequestError`, but not an
    `httpx.TransportError`, which retry libraries would retry. An httpx2 client raises a
    class of the same name that inherits from httpx2's errors instead.

    Attributes:
        request: the request that was not sent, which may be for the target of a
            redirect.
        verdict: the full verdict, including the rule and its line.
    """


class SyncTransportLike(Protocol):
    """The part of a `BaseTransport` that robotsgate uses."""

    def handle_request(self, request: Any) -> Any:  # noqa: ANN401 (its own library's)
        """Send `request` without reading the response body."""
        ...

    def close(self) -> None:
        """Close the transport's connections."""
        ...


@overload
def robots_hook(
    checker: RobotsChecker, agent: str | Sequence[str]
) -> Callable[[Any], Awaitable[None]]: ...


@overload
def robots_hook(
    checker: sync.RobotsChecker, agent: str | Sequence[str]
) -> Callable[[Any], None]: ...


def robots_hook(
    checker: RobotsChecker | sync.RobotsChecker, agent: str | Sequence[str]
) -> Callable[[Any], Awaitable[None] | None]:
    """Create an event hook that refuses disallowed requests, including redirects.

    Use it as `AsyncClient(event_hooks={"request": [robots_hook(checker, agent)]})`. A
    sync `Client` needs a checker from `robotsgate.sync`. The hook does not check
    requests with `extensions={"robots": "ignore"}` or their redirects, requests for
    /robots.txt, or the checker's own requests if it uses the same client. The client's
    timeouts do not include the time for fetching robots.txt, which
    `Policy.fetch_deadline` limits. There is no `gate` argument, because a request hook
    cannot end a turn; use a transport instead.

    Args:
        checker: checks the URLs; close it yourself.
        agent: as in `RobotsChecker.can_fetch`.

    Returns:
        The hook. It raises `RobotsDisallowedError`, or the client's `RequestError` if
        the checker does not support the URL. It raises a TypeError if it is used as a
        response hook, or if the checker is async and the client is sync, or vice versa.

    Raises:
        TypeError: `checker` is not a checker.
        InvalidProductTokenError: `agent` is not the name of a crawler.
    """
    door = Door(checker, agent, modules=[ASYNC, BLOCKING])

    async def check(request: httpx.Request) -> None:
        # The client itself sends the request.
        await door.send(request, lambda _: None, _client_of(request))

    async def check_and_release(request: httpx.Request, body: Any) -> None:  # noqa: ANN401
        try:
            await check(request)
        finally:
            request.stream = body

    def hook(request: httpx.Request) -> Any:  # noqa: ANN401 (only awaited)
        if hasattr(request, "status_code"):
            raise TypeError("expected the hook to be used for requests, got a response")
        if door.is_blocking:
            at_once(check(request))
            return _NotAwaitable()
        body: Any = request.stream
        if type(body) is _Unchecked:  # the request is being sent twice
            body = body.body
        request.stream = _Unchecked(body)  # type: ignore[assignment] # cannot be sent
        return check_and_release(request, body)

    return hook


class _Unchecked:
    """Takes the place of a request's body until the check has been awaited.

    A sync client does not await it. Clients of both kinds look at the class of the body
    before they send a request.
    """

    def __init__(self, body: object) -> None:
        self.body = body

    @property  # type: ignore[misc] # `object.__class__` can be set
    def __class__(self) -> Any:  # noqa: ANN401
        raise TypeError(_NOT_ASYNC)


class _NotAwaitable:
    """What the hook of a blocking client returns. Only an `AsyncClient` awaits it."""

    def __await__(self) -> NoReturn:
        raise TypeError(_NOT_SYNC)


class RobotsTransport(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """A transport that refuses disallowed requests and forwards all others.

    A client bypasses it for requests sent through `proxy=` or `mounts=`, whereas
    `robots_hook` sees every request. Both exempt the same requests from the check.

    Like any transport, it replaces the client's own, so the client ignores the proxies
    of the environment and its own `verify`, `cert`, `http1`, `http2` and `limits`: pass
    these to the wrapped transport.
    """

    def __init__(
        self,
        checker: RobotsChecker | sync.RobotsChecker,
        agent: str | Sequence[str],
        *,
        wrapped: AsyncTransportLike | SyncTransportLike | None = None,
        gate: PolitenessGate | sync.PolitenessGate | None = None,
    ) -> None:
        """Wrap a transport.

        Args:
            checker: checks the URLs; close it yourself. A sync `Client` needs a checker
                from `robotsgate.sync`.
            agent: as in `RobotsChecker.can_fetch`.
            wrapped: the transport that sends the requests, closed together with this
                one; by default, an `httpx.AsyncHTTPTransport` or `httpx.HTTPTransport`,
                with a RuntimeWarning if the environment sets a proxy, which it would
                not use. An httpx2 client needs an httpx2 transport.
            gate: provides a turn for each checked request; the turn ends when the
                response is closed. The gate uses its own checker and agent; it comes
                from `robotsgate.sync` if `checker` does.

        Raises:
            TypeError: `checker` is not a checker, or `gate` is not a gate of its kind.
            InvalidProductTokenError: `agent` is not the name of a crawler.
        """
        self._door = Door(checker, agent, gate, modules=[ASYNC, BLOCKING])
        blocks = self._door.is_blocking
        kind = httpx.HTTPTransport if blocks else httpx.AsyncHTTPTransport
        scheme = _proxied_scheme() if wrapped is None else None
        if scheme is not None:
            message = _NO_PROXY.format(scheme.upper(), kind.__name__)
            warnings.warn(message, RuntimeWarning, stacklevel=2)
        self._wrapped: Any = kind() if wrapped is None else wrapped

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a sync client's request like `handle_async_request`."""
        self._expect_client(is_sync=True)
        send, client = self._wrapped.handle_request, _client_of(request)
        response: httpx.Response = at_once(self._door.send(request, send, client))
        return response

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request` through the wrapped transport if it is allowed.

        Raises:
            RobotsDisallowedError: `request` is disallowed.
            RequestError: the checker does not support the URL; this is the client's own
                class.
            TypeError: `checker` is for the other kind of client.
        """
        self._expect_client(is_sync=False)
        send, client = self._wrapped.handle_async_request, _client_of(request)
        response: httpx.Response = await self._door.send(request, send, client)
        return response

    def close(self) -> None:
        """Close the wrapped transport."""
        self._expect_client(is_sync=True)
        self._wrapped.close()

    async def aclose(self) -> None:
        """Close the wrapped transport."""
        self._expect_client(is_sync=False)
        await self._wrapped.aclose()

    def _expect_client(self, *, is_sync: bool) -> None:
        if is_sync != self._door.is_blocking:
            raise TypeError(_NOT_ASYNC if is_sync else _NOT_SYNC)


def _proxied_scheme() -> str | None:
    """A scheme for which a client without a transport would use a proxy, or "all"."""
    proxies = getproxies()
    if "*" in [host.strip() for host in proxies.get("no", "").split(",")]:
        return None
    return next(filter(proxies.get, ("https", "http", "all")), None)


class _Body(BodyInTurn, httpx.SyncByteStream, httpx.AsyncByteStream):
    pass


_CLIENT = client_of_library(RobotsDisallowedError, httpx.RequestError, _Body)


def _client_of(request: object) -> Client:
    if isinstance(request, httpx.Request):
        return _CLIENT
    from robotsgate.integrations._httpx2 import CLIENT  # noqa: PLC0415 (may be missing)

    return CLIENT
