"""robots.txt for httpx and httpx2 clients: an event hook and a transport.

`_httpx2.py` contains the httpx2 versions of the classes in this module. An
`AsyncClient` works on asyncio and trio; a sync `Client` needs a checker from
`robotsgate.sync`.
"""

from __future__ import annotations

import inspect
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, overload

import httpx

from robotsgate import DisallowedError, InvalidURLError, UnsupportedError
from robotsgate.integrations._wrapping import (
    BodyInTurn,
    DisallowedRequestError,
    HttpxClasses,
    SyncBodyInTurn,
    TurnOfResponse,
    asked_url,
    check_arguments,
    enter_turn,
    is_blocking,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence

    from robotsgate import (
        AsyncTransportLike,
        PolitenessGate,
        RobotsChecker,
        Verdict,
        sync,
    )

__all__ = [
    "RobotsDisallowedError",
    "RobotsTransport",
    "SyncRobotsTransport",
    "SyncTransportLike",
    "robots_hook",
]


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
    blocks = is_blocking(checker)
    check_arguments(checker, agent, is_blocking=blocks)
    ask: Any = checker.refusal

    async def refuse_disallowed(request: httpx.Request) -> None:
        with _errors_of_client(request):
            url = _asked_url(request)
            _raise_refusal(await ask(agent, url) if url else None)

    def hook(request: httpx.Request) -> Awaitable[None] | None:
        # A sync client would send the request without awaiting the hook. An event loop
        # may be running in either case, so only the caller's frame tells them apart.
        frame = inspect.currentframe()
        caller = frame and frame.f_back
        is_awaited = bool(caller and caller.f_code.co_flags & inspect.CO_COROUTINE)
        if blocks and is_awaited:
            raise TypeError(
                "expected a sync Client for a checker from robotsgate.sync, got an"
                " AsyncClient, or an async function around the hook"
            )
        if not (blocks or is_awaited):
            raise TypeError(
                "expected an AsyncClient to call the hook directly, got a sync client,"
                " or a plain function around the hook"
            )
        if hasattr(request, "status_code"):
            raise TypeError("expected the hook to be used for requests, got a response")
        if not blocks:
            return refuse_disallowed(request)
        with _errors_of_client(request):
            url = _asked_url(request)
            _raise_refusal(ask(agent, url) if url else None)
        return None

    return hook


class RobotsTransport(httpx.AsyncBaseTransport):
    """A transport that refuses disallowed requests and forwards all others.

    A client bypasses it for requests sent through `proxy=` or `mounts=`, whereas
    `robots_hook` sees every request. Both exempt the same requests from the check.
    """

    def __init__(
        self,
        checker: RobotsChecker,
        agent: str | Sequence[str],
        *,
        wrapped: AsyncTransportLike | None = None,
        gate: PolitenessGate | None = None,
    ) -> None:
        """Wrap a transport.

        Args:
            checker: checks the URLs; close it yourself.
            agent: as in `RobotsChecker.can_fetch`.
            wrapped: the transport that sends the requests, closed together with this
                one; by default, an `httpx.AsyncHTTPTransport`. An httpx2 client needs
                an httpx2 transport.
            gate: provides a turn for each checked request; the turn ends when the
                response is closed. The gate uses its own checker and agent.

        Raises:
            TypeError: `checker` is not a checker, or `gate` is not a gate.
            InvalidProductTokenError: `agent` is not the name of a crawler.
        """
        check_arguments(checker, agent, gate)
        self._checker = checker
        self._agent = agent
        self._wrapped: Any = httpx.AsyncHTTPTransport() if wrapped is None else wrapped
        self._gate = gate

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request` through the wrapped transport if it is allowed.

        Raises:
            RobotsDisallowedError: `request` is disallowed.
            RequestError: the checker does not support the URL; this is the client's own
                class.
        """
        with _errors_of_client(request):
            url = _asked_url(request)
            turn = None
            if url is not None and self._gate is not None:
                turn = await TurnOfResponse.begun(self._gate, url)
            elif url is not None:
                _raise_refusal(await self._checker.refusal(self._agent, url))
        if turn is None:
            return await self._send(request)
        async with turn:
            response = await self._send(request)
            turn.report(response)
            response.stream = _classes_of(request).body(response.stream, turn)
            turn.outlive_block()
            return response

    def handle_request(self, *_: object) -> NoReturn:
        """Refuse a sync client, which cannot await the response.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            "expected an AsyncClient around a RobotsTransport, got a sync Client,"
            " which needs a SyncRobotsTransport"
        )

    __enter__ = handle_request

    async def aclose(self) -> None:
        """Close the wrapped transport."""
        await self._wrapped.aclose()

    async def _send(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = await self._wrapped.handle_async_request(request)
        return response


class SyncRobotsTransport(httpx.BaseTransport):
    """A `RobotsTransport` for a sync `Client`."""

    def __init__(
        self,
        checker: sync.RobotsChecker,
        agent: str | Sequence[str],
        *,
        wrapped: SyncTransportLike | None = None,
        gate: sync.PolitenessGate | None = None,
    ) -> None:
        """See `RobotsTransport`; `checker` and `gate` come from `robotsgate.sync`.

        By default, `wrapped` is an `httpx.HTTPTransport`.
        """
        check_arguments(checker, agent, gate, is_blocking=True)
        self._checker = checker
        self._agent = agent
        self._wrapped: Any = httpx.HTTPTransport() if wrapped is None else wrapped
        self._gate = gate

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See `RobotsTransport.handle_async_request`."""
        with ExitStack() as block:
            with _errors_of_client(request):
                url = _asked_url(request)
                turn = enter_turn(
                    [url] if url else [],
                    self._checker,
                    self._agent,
                    gate=self._gate,
                    block=block,
                )
            response: httpx.Response = self._wrapped.handle_request(request)
            if turn is not None:
                turn.report(response)
                response.stream = _classes_of(request).sync_body(
                    response.stream, block.pop_all()
                )
            return response

    async def handle_async_request(self, *_: object) -> NoReturn:
        """Refuse an `AsyncClient`, because its event loop would be blocked.

        Raises:
            TypeError: always.
        """
        raise TypeError(
            "expected a sync Client around a SyncRobotsTransport, got an"
            " AsyncClient, which needs a RobotsTransport"
        )

    __aenter__ = handle_async_request

    def close(self) -> None:
        """Close the wrapped transport."""
        self._wrapped.close()


class _Body(BodyInTurn, httpx.AsyncByteStream):
    pass


class _SyncBody(SyncBodyInTurn, httpx.SyncByteStream):
    pass


_CLASSES = HttpxClasses(
    error=RobotsDisallowedError,
    url_error=httpx.RequestError,
    body=_Body,
    sync_body=_SyncBody,
)


def _classes_of(request: object) -> HttpxClasses:
    if isinstance(request, httpx.Request):
        return _CLASSES
    from robotsgate.integrations._httpx2 import CLASSES  # noqa: PLC0415 (may be missing)

    return CLASSES


@contextmanager
def _errors_of_client(request: httpx.Request) -> Iterator[None]:
    """Turn refusals and URL errors into the client's own.

    Even a valid URL may be redirected to one that the checker does not support.
    """
    try:
        yield
    except DisallowedError as error:
        refusal = _classes_of(request).error
        raise refusal(error.verdict, request=request) from error
    except (InvalidURLError, UnsupportedError) as error:
        url_error = _classes_of(request).url_error
        raise url_error(str(error), request=request) from error


def _raise_refusal(verdict: Verdict | None) -> None:
    if verdict is not None:
        raise DisallowedError(verdict)


def _asked_url(request: httpx.Request) -> str | None:
    """The URL of `request` as it will be sent; `None` if no check is needed.

    Raises:
        InvalidURLError: as in `asked_url`.
    """
    if request.extensions.get("robots") == "ignore":
        return None
    url = request.url
    target: bytes = request.extensions.get("target", url.raw_path)
    return asked_url(
        url.scheme, url.raw_host.decode("ascii"), url.port, target.decode("latin-1")
    )
