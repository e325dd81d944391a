"""What is private in crawlee, and what stands in its place; no other module touches it.

crawlee has no public way to skip a request, or to look at the hops of a redirect. So a
crawler and its HTTP client get methods of ours in place of these:

    _is_allowed_based_on_robots_txt_file   of a URL that is added, or comes next
    _run_request_handler                   takes a request from its first hop to the end
    _get_client                            gives the client of another library

`_respect_robots_txt_file`, `_handle_skipped_request`, `_http_client` and the
`_transport` of an httpx2 client are used as they are.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import WeakSet

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
    # Waits until a hop may be sent, and gives its turn; raises what refuses it.
    Begin: TypeAlias = Callable[[str], Awaitable[TurnOfResponse | None]]


def replace_methods(
    crawler: Crawler,
    *,
    is_allowed: Callable[[str], Awaitable[bool]],
    wrapped_run: Callable[[Run], Run],
) -> None:
    """Let `crawler` ask `is_allowed` about each URL, and handle requests in our way.

    Raises:
        ValueError: its option `respect_robots_txt_file` is on; or it obeys already.
        RuntimeError: it lacks a method to replace.
    """
    if crawler._respect_robots_txt_file:  # noqa: SLF001 (see the top)
        raise ValueError("expected respect_robots_txt_file=False, got True")
    _replace(crawler, "_is_allowed_based_on_robots_txt_file", lambda _: is_allowed)
    _replace(crawler, "_run_request_handler", wrapped_run)


async def skip(crawler: Crawler, request: Request, error: Exception) -> None:
    """End `request` as crawlee ends those that it skips.

    Raises:
        ContextPipelineInterruptedError: so crawlee marks the request as handled.
    """
    request.state = RequestState.SKIPPED
    await crawler._handle_skipped_request(request, "robots_txt")  # noqa: SLF001 (see the top)
    raise ContextPipelineInterruptedError(str(error)) from error


def check_hops(crawler: Crawler, begin: Begin) -> None:
    """Let the HTTP client of `crawler` wait for `begin` before it sends a hop.

    Raises:
        TypeError: nobody can see the hops of a client of this kind.
        ValueError: the client belongs to a crawler that obeys already.
        RuntimeError: it lacks a method to replace.
    """
    client = crawler._http_client  # noqa: SLF001 (see the top)
    is_impit = is_a(client, "ImpitHttpClient")
    if not (is_impit or is_a(client, "HttpxHttpClient")):
        raise TypeError(
            f"expected an ImpitHttpClient or an HttpxHttpClient, got {client!r}"
        )
    checked: WeakSet[httpx2.AsyncClient] = WeakSet()

    def check(wrapped: Any) -> object:  # noqa: ANN401 (a client of impit or httpx2)
        if is_impit:  # crawlee follows redirects by itself, and calls only that
            return SimpleNamespace(request=partial(_send_by_impit, wrapped, begin))
        if wrapped not in checked:
            checked.add(wrapped)
            _replace(
                wrapped._transport,  # noqa: SLF001 (see the top)
                "handle_async_request",
                lambda send: partial(_send_by_httpx, send, begin),
            )
        return wrapped

    _replace(client, "_get_client", lambda get: lambda proxy_url: check(get(proxy_url)))


def is_a(value: object, name: str) -> bool:
    """Whether `value` is of a class of crawlee that needs one of its extras."""
    return any(kind.__name__ == name for kind in type(value).__mro__)


async def _send_by_impit(
    client: impit.AsyncClient,
    begin: Begin,
    *,
    url: str,
    stream: bool,
    **options: Any,  # noqa: ANN401 (of impit)
) -> impit.Response | _StreamInTurn:
    try:
        url = str(AnyHttpUrl(url))  # by the parser of impit: this is what it sends
    except ValidationError as error:
        raise InvalidURLError(str(error), url=url) from error
    turn = await begin(url)
    async with turn or nullcontext():
        response = await client.request(url=url, stream=stream, **options)
        if turn is None:
            return response
        turn.report(
            status=response.status_code,
            retry_after=response.headers.get("retry-after"),
        )
        if not stream:
            return response
        turn.outlive_block()
        return _StreamInTurn(response, turn)


class _StreamInTurn:
    """A response of impit whose body is still to come; when closed, the turn ends."""

    def __init__(self, response: impit.Response, turn: TurnOfResponse) -> None:
        self._response = response
        self._turn = turn

    def __getattr__(self, name: str) -> object:
        return getattr(self._response, name)

    def close(self) -> None:
        self._response.close()
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
            turn.report(
                status=response.status_code,
                retry_after=response.headers.get("retry-after"),
            )
            turn.outlive_block()
            response.stream = CLASSES.body(response.stream, turn)
        return response


def _replace(owner: object, name: str, wrapped: Callable[[Any], Any]) -> None:
    """Replace the method `name` of `owner` with what `wrapped` makes of it."""
    if not hasattr(owner, name):
        raise RuntimeError(
            f"expected crawlee>=1.11,<1.12, got a {type(owner).__name__} without {name}"
        )
    if name in vars(owner):  # each request would wait for two turns
        raise ValueError(
            f"expected a crawler and an HTTP client of its own, got {owner!r},"
            " which obeys robots.txt already"
        )
    setattr(owner, name, wrapped(getattr(owner, name)))
