"""All access to crawlee's private methods; no other module touches them.

crawlee has no public way to skip a request or to see each hop of a redirect. So these
private methods of a crawler and its HTTP client are replaced with our own:

    _is_allowed_based_on_robots_txt_file   checks a URL when it is added or dequeued
    _run_request_handler                   processes a request from its first hop on
    _get_client                            returns the underlying library's client

`_respect_robots_txt_file`, `_handle_skipped_request`, `_http_client` and the
`_transport` of an httpx2 client are used, but not replaced.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

from crawlee import RequestState
from crawlee.errors import ContextPipelineInterruptedError
from pydantic import AnyHttpUrl, ValidationError

from robotsgate import InvalidURLError
from robotsgate.integrations._wrapping import asked_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    import httpx2
    import impit
    from crawlee import Request
    from crawlee.crawlers import BasicCrawler, BasicCrawlingContext

    from robotsgate.integrations._wrapping import TurnOfResponse

    Crawler: TypeAlias = BasicCrawler[Any, Any]
    Run: TypeAlias = Callable[[BasicCrawlingContext], Awaitable[None]]
    # Waits until a hop may be sent, and returns its turn; raises if the hop is refused.
    Begin: TypeAlias = Callable[[str], Awaitable[TurnOfResponse | None]]


def replace_methods(
    crawler: Crawler,
    *,
    is_allowed: Callable[[str], Awaitable[bool]],
    wrapped_run: Callable[[Run], Run],
) -> None:
    """Make `crawler` check each URL with `is_allowed`, and wrap its request handling.

    Raises:
        ValueError: the crawler's option `respect_robots_txt_file` is on, or `crawler`
            already obeys robots.txt.
        RuntimeError: `crawler` lacks one of the methods to replace.
    """
    if crawler._respect_robots_txt_file:  # noqa: SLF001 (see the top)
        raise ValueError("expected respect_robots_txt_file=False, got True")
    _replace(crawler, "_is_allowed_based_on_robots_txt_file", lambda _: is_allowed)
    _replace(crawler, "_run_request_handler", wrapped_run)


async def skip(crawler: Crawler, request: Request, error: Exception) -> None:
    """Skip `request` the way crawlee itself does.

    Raises:
        ContextPipelineInterruptedError: always, so that crawlee marks the request as
            handled.
    """
    request.state = RequestState.SKIPPED
    await crawler._handle_skipped_request(request, "robots_txt")  # noqa: SLF001 (see the top)
    raise ContextPipelineInterruptedError(str(error)) from error


def check_hops(crawler: Crawler, begin: Begin) -> None:
    """Make `crawler`'s HTTP client wait for `begin` before it sends each hop.

    Raises:
        TypeError: this kind of client does not expose individual hops.
        ValueError: the client belongs to a crawler that already obeys robots.txt.
        RuntimeError: the client lacks one of the methods to replace.
    """
    client = crawler._http_client  # noqa: SLF001 (see the top)
    is_impit = is_a(client, "ImpitHttpClient")
    if not (is_impit or is_a(client, "HttpxHttpClient")):
        raise TypeError(
            f"expected an ImpitHttpClient or an HttpxHttpClient, got {client!r}"
        )

    def check(wrapped: Any) -> object:  # noqa: ANN401 (an impit or httpx2 client)
        if is_impit:  # crawlee follows redirects itself, and only calls `request`
            return SimpleNamespace(request=partial(_send_by_impit, wrapped, begin))
        transport, name = wrapped._transport, "handle_async_request"  # noqa: SLF001 (see the top)
        if name not in vars(transport):
            _replace(transport, name, lambda send: partial(_send_by_httpx, send, begin))
        return wrapped

    _replace(client, "_get_client", lambda get: lambda proxy_url: check(get(proxy_url)))


def is_a(value: object, name: str) -> bool:
    """Whether `value` is an instance of a crawlee class that may not be installed."""
    return any(kind.__name__ == name for kind in type(value).__mro__)


async def _send_by_impit(
    client: impit.AsyncClient,
    begin: Begin,
    *,
    url: str,
    stream: bool,
    **options: Any,  # noqa: ANN401 (impit's options)
) -> impit.Response | _StreamInTurn:
    try:
        url = str(AnyHttpUrl(url))  # impit uses the same parser, so it sends this URL
    except ValidationError as error:
        raise InvalidURLError(str(error), url=url) from error
    turn = await begin(url)
    async with turn or nullcontext():
        response = await client.request(url=url, stream=stream, **options)
        if turn is None:
            return response
        turn.report(response)
        if not stream:
            return response
        turn.outlive_block()
        return _StreamInTurn(response, turn)


class _StreamInTurn:
    """An impit response whose body has not been read; closing it ends the turn."""

    def __init__(self, response: impit.Response, turn: TurnOfResponse) -> None:
        self._response = response
        self._turn = turn

    def __getattr__(self, name: str) -> object:
        return getattr(self._response, name)

    def close(self) -> None:
        try:
            self._response.close()
        finally:
            self._turn.end_soon()


async def _send_by_httpx(
    send: Callable[[httpx2.Request], Awaitable[httpx2.Response]],
    begin: Begin,
    request: httpx2.Request,
) -> httpx2.Response:
    from robotsgate.integrations._httpx2 import CLASSES  # noqa: PLC0415 (may be missing)

    sent = request.url
    host, target = sent.raw_host.decode("ascii"), sent.raw_path.decode("ascii")
    url = asked_url(sent.scheme, host, sent.port, target)
    turn = None if url is None else await begin(url)
    async with turn or nullcontext():
        response = await send(request)
        if turn is not None:
            turn.report(response)
            turn.outlive_block()
            response.stream = CLASSES.body(response.stream, turn)
        return response


def _replace(owner: object, name: str, wrapped: Callable[[Any], Any]) -> None:
    """Replace `owner`'s method `name` with the result of `wrapped`."""
    if not hasattr(owner, name):
        raise RuntimeError(
            f"expected crawlee>=1.11,<1.12, got a {type(owner).__name__} without {name}"
        )
    if name in vars(owner):  # otherwise, each request would wait for two turns
        raise ValueError(
            f"expected a new crawler with its own HTTP client, got {owner!r},"
            " which already obeys robots.txt"
        )
    setattr(owner, name, wrapped(getattr(owner, name)))
