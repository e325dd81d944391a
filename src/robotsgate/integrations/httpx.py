"""Obeys robots.txt in clients of httpx and httpx2: by an event hook, or a transport.

Both libraries have classes of the same names: `_httpx2.py` has the classes of this
module for httpx2. Runs on asyncio and trio.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Literal

import httpx

from robotsgate import DisallowedError, InvalidURLError, UnsupportedError
from robotsgate.integrations._wrapping import (
    BodyInTurn,
    DisallowedRequestError,
    HttpxClasses,
    TurnOfResponse,
    asked_url,
    check_arguments,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from robotsgate import AsyncTransportLike, PolitenessGate, RobotsChecker, Verdict

__all__ = ["RobotsDisallowedError", "RobotsTransport", "robots_hook"]


_NOT_ASKED = (InvalidURLError, UnsupportedError)


class RobotsDisallowedError(DisallowedRequestError, httpx.RequestError):
    """A request that was not sent, because robots.txt does not allow it.

    Both a `DisallowedError` and an `httpx.RequestError`, but not an
    `httpx.TransportError`, which a library for retries would send again. A client of
    httpx2 raises a class of the same name, with the errors of httpx2 as bases.

    Attributes:
        request: the one that was not sent; after a redirect the one that follows it.
        verdict: the whole answer, with the rule and the line that decided.
    """


def robots_hook(
    checker: RobotsChecker, agent: str | Sequence[str]
) -> Callable[[Any], Awaitable[None]]:
    """An event hook that refuses what robots.txt disallows, redirects included.

    Use it as `AsyncClient(event_hooks={"request": [robots_hook(checker, agent)]})`.
    These requests pass without a question: those with
    `extensions={"robots": "ignore"}` and their redirects, those for /robots.txt, and
    those of the checker, which may have the same client. The timeouts of the client do
    not count while the checker fetches; `Policy.fetch_deadline` bounds that.

    Args:
        checker: answers; close it yourself.
        agent: as in `RobotsChecker.can_fetch`.

    Returns:
        The hook. It raises a `RobotsDisallowedError`, or a `RequestError` of the
        client for a URL that the checker cannot ask about, and a TypeError in a client
        that blocks or as a hook for responses.

    Raises:
        TypeError: `checker` is not a checker.
    """
    check_arguments(checker)

    async def refuse_disallowed(request: httpx.Request) -> None:
        try:
            url = _asked_url(request)
            verdict = await checker.refusal(agent, url) if url else None
        except _NOT_ASKED as error:
            raise _url_error(request, error) from error
        if verdict is not None:
            raise _classes_of(request).error(verdict, request=request)

    def hook(request: httpx.Request) -> Awaitable[None]:
        # A blocking client would send the request without awaiting the answer. It may
        # be used where an event loop runs, so only the caller's frame tells them apart.
        frame = inspect.currentframe()
        caller = frame and frame.f_back
        if not (caller and caller.f_code.co_flags & inspect.CO_COROUTINE):
            raise TypeError(
                "expected an AsyncClient that calls the hook itself, got a blocking"
                " one, or a plain function around the hook"
            )
        if hasattr(request, "status_code"):
            raise TypeError("expected a hook for requests, got a response")
        return refuse_disallowed(request)

    return hook


class RobotsTransport(httpx.AsyncBaseTransport):
    """A transport that refuses what robots.txt disallows, and sends the rest on.

    A client does not use it for requests through `proxy=` or `mounts=`, but
    `robots_hook` sees all requests. Both let the same requests pass without a question.
    """

    def __init__(
        self,
        checker: RobotsChecker,
        agent: str | Sequence[str],
        *,
        wrapped: AsyncTransportLike | None = None,
        gate: PolitenessGate | None = None,
        on_disallowed: Literal["raise", "response"] = "raise",
    ) -> None:
        """Wrap a transport.

        Args:
            checker: answers; close it yourself.
            agent: as in `RobotsChecker.can_fetch`.
            wrapped: sends the requests; closed with this one. `None`: an
                `httpx.AsyncHTTPTransport`. A client of httpx2 needs one of httpx2.
            gate: gives each request its turn, which ends when the response is closed.
                The gate asks its own checker about its own agent. A request that
                passes without a question has no turn.
            on_disallowed: "raise" a `RobotsDisallowedError`, or answer with a
                "response": 403, with the verdict in the header x-robotsgate-verdict.

        Raises:
            TypeError: `checker` is not a checker, or `gate` is not a gate.
            ValueError: `on_disallowed` is neither of these.
        """
        check_arguments(checker, gate)
        if on_disallowed not in ("raise", "response"):
            raise ValueError(
                f"expected on_disallowed to be 'raise' or 'response',"
                f" got {on_disallowed!r}"
            )
        self._checker = checker
        self._agent = agent
        self._wrapped: Any = httpx.AsyncHTTPTransport() if wrapped is None else wrapped
        self._gate = gate
        self._raises = on_disallowed == "raise"

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request` through the wrapped transport, if it may be sent.

        Raises:
            RobotsDisallowedError: it may not.
            RequestError: of the client: the checker cannot ask about its URL.
        """
        try:
            url = _asked_url(request)
            if url is None:
                return await self._send(request)
            if self._gate is not None:
                return await self._send_in_turn(request, url, self._gate)
            verdict = await self._checker.refusal(self._agent, url)
        except _NOT_ASKED as error:
            raise _url_error(request, error) from error
        if verdict is not None:
            return self._refusal(request, verdict)
        return await self._send(request)

    async def aclose(self) -> None:
        """Close the wrapped transport."""
        await self._wrapped.aclose()

    async def _send(self, request: httpx.Request) -> httpx.Response:
        response: httpx.Response = await self._wrapped.handle_async_request(request)
        return response

    async def _send_in_turn(
        self, request: httpx.Request, url: str, gate: PolitenessGate
    ) -> httpx.Response:
        try:
            turn = await TurnOfResponse.begun(gate, url)
        except DisallowedError as error:
            return self._refusal(request, error.verdict)
        async with turn:
            response = await self._send(request)
            turn.report(
                status=response.status_code,
                retry_after=response.headers.get("retry-after"),
            )
            response.stream = _classes_of(request).body(response.stream, turn)
            turn.outlive_block()
            return response

    def _refusal(self, request: httpx.Request, verdict: Verdict) -> httpx.Response:
        classes = _classes_of(request)
        if self._raises:
            raise classes.error(verdict, request=request)
        # The verdict quotes a rule, which may hold any characters.
        text = str(verdict).encode("unicode_escape")
        return classes.response(403, headers={b"x-robotsgate-verdict": text})


class _Body(BodyInTurn, httpx.AsyncByteStream):
    pass


_CLASSES = HttpxClasses(
    error=RobotsDisallowedError,
    url_error=httpx.RequestError,
    response=httpx.Response,
    body=_Body,
)


def _classes_of(request: object) -> HttpxClasses:
    if isinstance(request, httpx.Request):
        return _CLASSES
    from robotsgate.integrations._httpx2 import CLASSES  # noqa: PLC0415 (may be missing)

    return CLASSES


def _url_error(request: httpx.Request, error: Exception) -> httpx.RequestError:
    """The client's own error, because a redirect may lead to any URL."""
    return _classes_of(request).url_error(str(error), request=request)


def _asked_url(request: httpx.Request) -> str | None:
    """The URL of `request` as it will be sent; `None` if it passes unasked.

    Raises:
        InvalidURLError: as `asked_url`.
    """
    if request.extensions.get("robots") == "ignore":
        return None
    url = request.url
    target: bytes = request.extensions.get("target", url.raw_path)
    return asked_url(
        url.scheme, url.raw_host.decode("ascii"), url.port, target.decode("latin-1")
    )
