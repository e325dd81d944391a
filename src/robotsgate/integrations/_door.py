"""The door through which the requests of all wrapped clients go.

    asked_urls ──► refusal, or a turn ──► send ──► report ──► hold
                          │                                     │
                    error of the client           the turn ends with the response's
                                                  body, or else here

A client is a `Client`: it says which URLs a request will be sent to, which errors are
raised, and which body ends the turn. A blocking client uses the same door: its checker,
gate and transport return results instead of awaitables, so `at_once` can run the steps.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from importlib import import_module
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from robotsgate import (
    DisallowedError,
    InvalidURLError,
    Origin,
    RobotsTxt,
    UnsupportedError,
)
from robotsgate.fetching import passes_unasked, sent_url
from robotsgate.urls import split_url

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Callable,
        Coroutine,
        Iterable,
        Iterator,
        Sequence,
    )

    import httpx

    from robotsgate import PolitenessGate, RobotsChecker, Turn, Verdict, sync

    _Headers = Iterable[tuple[str, str | bytes]]

_Result = TypeVar("_Result")

NO_RULES = RobotsTxt.parse(b"")

ASYNC, BLOCKING = "robotsgate", "robotsgate.sync"

# Some clients escape any other characters, and would then connect to another host.
ORIGIN_OF_EACH_CLIENT = re.compile(r"[a-z]+://[0-9a-z._\-\[\]:]+/")

# The tasks that end turns; asyncio itself keeps only weak references to tasks.
_ends: set[asyncio.Task[None]] = set()


def asked_urls(
    scheme: str, host: str, port: int | None, *targets: str, headers: _Headers
) -> Iterator[str]:
    """The URLs to check before a request that is sent to one of `targets`.

    Takes the same arguments and raises the same exceptions as `sent_url` and
    `urls_by_host`.
    """
    for target in dict.fromkeys(targets):
        url = sent_url(scheme, host, port, target)
        if url is not None:
            yield from urls_by_host(url, headers)


def urls_by_host(url: str, headers: _Headers) -> Iterator[str]:
    """The URLs to check before a request that is sent to `url` with `headers`.

    A server treats a request as addressed to the host in its Host header (RFC 9110
    §7.1). If the caller has set another host there, its robots.txt must allow the
    request, too. There are none if no check is needed.

    Args:
        url: in the form that `sent_url` returns.
        headers: pairs (name, value); only those named Host are used.

    Raises:
        InvalidURLError: a Host header does not name a host.
    """
    if passes_unasked(url):
        return
    yield url
    origin, target = split_url(url)
    for value in (value for name, value in headers if name.lower() == "host"):
        host = value.decode("latin-1") if isinstance(value, bytes) else value
        site = f"{origin.scheme}://{host.lower()}/"
        if not ORIGIN_OF_EACH_CLIENT.fullmatch(site):
            raise InvalidURLError(f"expected a host as Host, got {host!r}", url=url)
        other = f"{Origin.from_url(site)}{target}"
        if other != url:
            yield other


def at_once(steps: Coroutine[Any, Any, _Result]) -> _Result:
    """Run the steps of a blocking client, which never wait for an event loop."""
    try:
        steps.send(None)
    except StopIteration as end:
        result: _Result = end.value
        return result
    steps.close()
    raise TypeError("expected blocking functions, got one whose result must be awaited")


async def _result(result: Any) -> Any:  # noqa: ANN401 (of any call)
    """What an async client awaits, or what a blocking client already has."""
    return await result if isawaitable(result) else result


async def _close(response: Any, *, is_async: bool) -> None:  # noqa: ANN401 (the client's)
    """Close a response that its caller will not get.

    Responses of httpx have both methods, those of aiohttp and requests only `close`,
    and those of other clients perhaps none.
    """
    close = getattr(response, "close", None)
    if is_async:
        close = getattr(response, "aclose", close)
    if close is not None:
        await _result(close())


class Client(NamedTuple):
    """What differs between clients.

    Attributes:
        asked_urls: the URLs that a request may be sent to; empty if no check is needed.
            May raise an `InvalidURLError`.
        hold: returns the response to a request that has a turn. To let the turn outlast
            the call, it moves the turn's end out of the exit stack and into the body.
        refusal: the error for a disallowed request, from its verdict; `None` for a
            `DisallowedError`.
        url_error: the error for a URL that the checker does not support, from a
            message; `None` for the checker's own. Even a valid URL may be redirected to
            one.
    """

    asked_urls: Callable[[Any], Iterable[str]]
    hold: Callable[[Any, Any, AsyncExitStack], Any]
    refusal: Callable[..., Exception] | None = None
    url_error: Callable[..., Exception] | None = None


class Door:
    """Lets the allowed requests of one wrapped client through, each in its turn."""

    def __init__(
        self,
        checker: RobotsChecker | sync.RobotsChecker,
        agent: str | Sequence[str],
        gate: PolitenessGate | sync.PolitenessGate | None = None,
        *,
        modules: Sequence[str] = (ASYNC,),
    ) -> None:
        """Check the arguments.

        `checker` must come from one of `modules`, and `gate` from the same one.

        Raises:
            TypeError: `checker` or `gate` has the wrong type.
            InvalidProductTokenError: `agent` is not the name of a crawler.
        """
        for name in modules:
            module = import_module(name)  # only here, as most programs use only one
            if isinstance(checker, module.RobotsChecker):
                break
        else:
            kinds = " or ".join(f"a {name}.RobotsChecker" for name in modules)
            raise TypeError(f"expected {kinds}, got {checker!r}")
        if not isinstance(gate, module.PolitenessGate | None):
            raise TypeError(
                f"expected gate to be a {name}.PolitenessGate, got {gate!r}"
            )
        NO_RULES.rules_for(agent)
        self.is_blocking = name == BLOCKING
        self._checker = checker
        self._agent = agent
        self._gate: Any = gate  # of either kind

    async def send(
        self,
        request: Any,  # noqa: ANN401 (the client's)
        send: Callable[[Any], Any],
        client: Client,
    ) -> Any:  # noqa: ANN401 (the client's)
        """Return the response to `request` if it is allowed."""
        async with AsyncExitStack() as block:
            try:
                turn = await self.enter(client.asked_urls(request), block)
            except DisallowedError as error:
                if client.refusal is None:
                    raise
                raise client.refusal(error.verdict, request=request) from error
            except (InvalidURLError, UnsupportedError) as error:
                if client.url_error is None:
                    raise
                raise client.url_error(str(error), request=request) from error
            response = await _result(send(request))
            if turn is None:
                return response
            try:
                turn.report(response)
                return client.hold(response, turn, block)
            except BaseException:
                await _close(response, is_async=not self.is_blocking)
                raise

    async def enter(self, urls: Iterable[str], block: AsyncExitStack) -> Any:  # noqa: ANN401 (a turn)
        """Check the URLs of a request, and wait for its turn, which `block` ends.

        Returns the turn; `None` without a gate, or without URLs.
        """
        rest = list(urls)
        turn = None
        if rest and self._gate is not None:
            turn = self._gate.turn(rest.pop(0))
            if self.is_blocking:
                block.enter_context(turn)
            else:
                await block.enter_async_context(turn)
        for url in rest:
            await self.check(url)
        return turn

    async def check(self, url: str) -> None:
        """Raise a `DisallowedError` if robots.txt disallows `url`."""
        verdict = await _result(self._checker.refusal(self._agent, url))
        if verdict is not None:
            raise DisallowedError(verdict)


class DisallowedRequestError(DisallowedError):
    """Raised for a refused request; subclasses also inherit from a client's error."""

    def __init__(self, verdict: Verdict, *, request: Any) -> None:  # noqa: ANN401 (the client's)
        super().__init__(verdict)
        self.request: Any = request


def end_soon(turn: Turn, end: AsyncExitStack) -> None:
    """End a turn from code that cannot await (asyncio only)."""
    turn.leave_task()
    # Without a running loop, the second call would leave a coroutine that never runs.
    task = asyncio.get_running_loop().create_task(end.aclose())
    _ends.add(task)
    task.add_done_callback(_ends.discard)


class BodyInTurn:
    """A response body that ends its turn when it is closed."""

    def __init__(self, stream: Any, end: AsyncExitStack) -> None:  # noqa: ANN401 (the library's)
        self._stream = stream
        self._end = end

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stream)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return aiter(self._stream)

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            at_once(self._end.aclose())

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            await self._end.aclose()


def client_of_library(
    refusal: Callable[..., Exception],
    url_error: Callable[..., Exception],
    body: Callable[[Any, AsyncExitStack], Any],
) -> Client:
    """The `Client` of httpx or httpx2, from the library's errors and bodies."""

    def hold(
        response: httpx.Response, _turn: object, block: AsyncExitStack
    ) -> httpx.Response:
        # The client never closes a response that is closed already, as a mock's is.
        if not response.is_closed:
            response.stream = body(response.stream, block.pop_all())
        return response

    return Client(_urls_of_httpx, hold, refusal, url_error)


def _urls_of_httpx(request: httpx.Request) -> Iterator[str]:
    if request.extensions.get("robots") == "ignore":
        return iter(())
    url = request.url
    target: bytes = request.extensions.get("target", url.raw_path)
    host = url.raw_host.decode("ascii")
    return asked_urls(
        url.scheme,
        host,
        url.port,
        target.decode("latin-1"),
        headers=request.headers.multi_items(),
    )
