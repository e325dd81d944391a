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

from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

from crawlee import RequestState
from crawlee.errors import ContextPipelineInterruptedError
from pydantic import AnyHttpUrl, ValidationError

from robotsgate import DisallowedError, InvalidURLError
from robotsgate.fetching import passes_unasked
from robotsgate.integrations._wrapping import Client, end_soon

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from contextlib import AsyncExitStack

    import impit
    from crawlee import Request
    from crawlee.crawlers import BasicCrawler, BasicCrawlingContext

    from robotsgate import Turn, Verdict
    from robotsgate.integrations._wrapping import Door

    Crawler: TypeAlias = BasicCrawler[Any, Any]
    Run: TypeAlias = Callable[[BasicCrawlingContext], Awaitable[None]]


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


def check_hops(crawler: Crawler, door: Door) -> None:
    """Make `crawler`'s HTTP client send each hop through `door`.

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
            return SimpleNamespace(request=partial(_send_by_impit, wrapped, door))
        transport, name = wrapped._transport, "handle_async_request"  # noqa: SLF001 (see the top)
        if name not in vars(transport):
            row = _client_of_httpx()
            _replace(
                transport, name, lambda send: partial(door.send, send=send, client=row)
            )
        return wrapped

    _replace(client, "_get_client", lambda get: lambda proxy_url: check(get(proxy_url)))


def is_a(value: object, name: str) -> bool:
    """Whether `value` is an instance of a crawlee class that may not be installed."""
    return any(kind.__name__ == name for kind in type(value).__mro__)


async def _send_by_impit(
    client: impit.AsyncClient,
    door: Door,
    *,
    url: str,
    **options: Any,  # noqa: ANN401 (impit's options)
) -> object:
    try:
        url = str(AnyHttpUrl(url))  # impit uses the same parser, so it sends this URL
    except ValidationError as error:
        raise InvalidURLError(str(error), url=url) from error
    row = _IMPIT if options["stream"] else _IMPIT._replace(hold=_unheld)
    return await door.send(url, lambda url: client.request(url=url, **options), row)


def _unheld(response: impit.Response, *_: object) -> impit.Response:
    return response


class _StreamInTurn:
    """An impit response whose body has not been read; closing it ends the turn."""

    def __init__(
        self, response: impit.Response, turn: Turn, block: AsyncExitStack
    ) -> None:
        self._response = response
        self._turn = turn
        self._end = block.pop_all()

    def __getattr__(self, name: str) -> object:
        return getattr(self._response, name)

    def close(self) -> None:
        try:
            self._response.close()
        finally:
            end_soon(self._turn, self._end)


def _refusal(verdict: Verdict, **_: object) -> DisallowedError:
    return DisallowedError(verdict)


def _url_error(message: str, *, request: Any) -> InvalidURLError:  # noqa: ANN401 (a client's)
    return InvalidURLError(message, url=str(getattr(request, "url", request)))


_IMPIT = Client(
    lambda url: [] if passes_unasked(url) else [url],
    _refusal,
    _url_error,
    hold=_StreamInTurn,
)


def _client_of_httpx() -> Client:
    from robotsgate.integrations._httpx2 import CLIENT  # noqa: PLC0415 (may be missing)

    return CLIENT._replace(refusal=_refusal, url_error=_url_error)


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
