"""Sends GETs through an httpx or httpx2 client or transport.

The two libraries have the same classes, but neither accepts the other's. So each class
is taken from the library of the caller's object instead of being imported.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

import anyio
import anyio.lowlevel

from robotsgate._public import set_module
from robotsgate.caching._hops import content_encoding_of, decoder_of
from robotsgate.fetching._body import (
    PIECES_BETWEEN_CHECKPOINTS,
    Body,
    bytes_worth_reading,
    read_into,
)
from robotsgate.fetching._fetcher import (
    NEVER_SENT,
    FetchedResponse,
    as_pairs,
    own_fetch,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence

    import httpx


# Closing does not depend on the peer; this limit only guards against a broken client.
_CLOSE_SECONDS = 2.0

# More than the buffers of a closed connection can hold.
_MOST_PIECES_TO_DRAIN = 20_000


@set_module("robotsgate")
@runtime_checkable
class AsyncClientLike(Protocol):
    """The part of an `AsyncClient` that robotsgate uses."""

    def build_request(
        self, method: str, url: str, *, headers: Mapping[str, str]
    ) -> Any:  # noqa: ANN401 (its own module's Request)
        """A request with the client's settings."""
        ...

    async def send(
        self,
        request: Any,  # noqa: ANN401 (its own module's Request)
        *,
        stream: bool,
        auth: None,
        follow_redirects: bool,
    ) -> Any:  # noqa: ANN401 (its own module's Response)
        """Send `request` without reading the response body."""
        ...


@set_module("robotsgate")
@runtime_checkable
class AsyncTransportLike(Protocol):
    """The part of an `AsyncBaseTransport` that robotsgate uses."""

    async def handle_async_request(self, request: Any) -> Any:  # noqa: ANN401 (of its own module)
        """Send `request` without reading the response body."""
        ...


class TransportFetcher:
    """Sends each GET over a transport, about twice as fast as through a client."""

    guard_setting: str | None = "policy"

    def __init__(self, transport: AsyncTransportLike) -> None:
        self._transport = transport
        self._request_type = _request_type(type(transport))
        if getattr(transport, "dials_nothing", False) or any(
            kind.__name__ == "MockTransport" for kind in type(transport).mro()
        ):
            self.guard_setting = None

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        fetch = own_fetch.get()
        timeouts = {
            "connect": fetch.policy.connect_timeout,
            "read": fetch.policy.read_timeout,
            "write": fetch.policy.read_timeout,
            "pool": fetch.queue_timeout(),
        }
        request = self._request_type(
            "GET",
            url,
            headers=[("Host", fetch.host), *headers],
            extensions={"timeout": timeouts},
        )
        response = await self._transport.handle_async_request(request)
        return await _fetched_response(response, max_bytes)


class ClientFetcher:
    """Sends each GET through the caller's client, with its proxies, hooks, timeouts."""

    def __init__(self, client: AsyncClientLike) -> None:
        self._client = client

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        """See `Fetcher.get`.

        Sends the client's own headers, except `NEVER_SENT`, until a redirect leads to
        another origin. The client's URL parameters and cookie jar are not used. If a
        redirect has an invalid Location, httpx raises an exception even though it does
        not follow redirects here, and the fetch fails.
        """
        fetch = own_fetch.get()
        # A copy shares transports, proxies and hooks with the client, but not cookies.
        client: Any = copy(self._client)
        client.cookies = None
        if fetch.has_left_origin:
            client.headers = {}
        # With a Host header, httpx does not decode international names. Decoding
        # rejects some names that work in browsers and DNS.
        own = {"Host": fetch.host, **dict(headers)}
        request = client.build_request("GET", url, headers=own)
        request.url = type(request.url)(url)
        timeouts = dict(request.extensions.get("timeout", {}))
        pool, longest = timeouts.get("pool"), fetch.queue_timeout()
        if pool is None or pool > longest:
            timeouts["pool"] = longest
            request.extensions = {**request.extensions, "timeout": timeouts}
        for name in NEVER_SENT:
            request.headers.pop(name, None)
        response = await client.send(
            request, stream=True, auth=None, follow_redirects=False
        )
        return await _fetched_response(response, max_bytes)


def _request_type(transport: type) -> type[httpx.Request]:
    """The `Request` class of the library of `transport`; of httpx if it is of none."""
    for kind in transport.mro():
        library = sys.modules[kind.__module__.partition(".")[0]]
        if hasattr(library, "AsyncBaseTransport"):
            return cast("type[httpx.Request]", library.Request)
    from httpx import Request  # noqa: PLC0415 (only here)

    return Request


async def _fetched_response(
    response: httpx.Response, max_bytes: int
) -> FetchedResponse:
    """Read as much of the body as needed for the status, and close `response`."""
    status, headers = response.status_code, as_pairs(response.headers.raw)
    try:
        if response.is_stream_consumed and bytes_worth_reading(status, max_bytes):
            # The body is complete, or a client hook has read and decoded it. A coding
            # that was not requested is an error here, too.
            decoder_of(content_encoding_of(headers))
            content = await response.aread()
        else:
            content = await _read(response, Body(status, headers, max_bytes=max_bytes))
    finally:
        await _close(response)
    return FetchedResponse(
        status=status, headers=headers, body=content, is_decoded=True
    )


async def _read(response: httpx.Response, body: Body) -> bytes:
    # This reads the raw stream, because aiter_bytes decodes without a limit, and
    # aiter_raw refuses the streams of mock transports. The stream is an
    # AsyncByteStream, but its type does not say so.
    chunks = aiter(cast("AsyncIterable[bytes]", response.stream))
    try:
        await read_into(body, chunks)
    finally:
        await _close(response)
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await _drain(chunks)
    return bytes(body)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Exhaust the body of a closed connection.

    On trio, an httpcore generator that is not exhausted causes a warning.
    """
    with suppress(Exception):
        for number in range(_MOST_PIECES_TO_DRAIN):
            await anext(chunks)
            if number % PIECES_BETWEEN_CHECKPOINTS == 0:
                await anyio.lowlevel.checkpoint()


async def _close(response: httpx.Response) -> None:
    """Close `response` even if cancelled; ignore failures, as they have no effect."""
    with anyio.move_on_after(_CLOSE_SECONDS, shield=True), suppress(Exception):
        await response.aclose()
