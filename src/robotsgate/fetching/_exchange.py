"""Sends one GET through whatever the caller brought: a client or a transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import httpx

from robotsgate.fetching._transport import OneRequestTransport

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AsyncClientLike",
    "AsyncTransportLike",
    "ClientExchange",
    "Exchange",
    "TransportExchange",
    "exchange_for",
]

_NEVER_SENT = (
    "authorization",
    "cookie",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "proxy-authorization",
    "range",
)


@runtime_checkable
class AsyncClientLike(Protocol):
    """The part of `httpx.AsyncClient` that is used."""

    def build_request(
        self, method: str, url: str, *, headers: Mapping[str, str]
    ) -> httpx.Request:
        """A request with the client's settings."""
        ...

    async def send(
        self,
        request: httpx.Request,
        *,
        stream: bool,
        auth: None,
        follow_redirects: bool,
    ) -> httpx.Response:
        """Send `request`; the body is left unread."""
        ...


@runtime_checkable
class AsyncTransportLike(Protocol):
    """The part of `httpx.AsyncBaseTransport` that is used."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send `request`; the body is left unread."""
        ...


class Exchange(Protocol):
    """One request, one response."""

    async def get(self, url: str, headers: Mapping[str, str]) -> httpx.Response:
        """Send a GET without cookies and credentials; the body is left unread.

        The caller closes the response.
        """
        ...


def exchange_for(client: object | None, *, timeout: float) -> Exchange:
    """The way to send requests through `client`.

    Args:
        client: shaped like an `httpx.AsyncClient` or like one of its transports;
            `None`: a transport of our own.
        timeout: for each step of a request over a transport, seconds.

    Raises:
        TypeError: `client` is shaped like neither.
    """
    if client is None:
        return TransportExchange(OneRequestTransport(), timeout=timeout)
    if not isinstance(client, type | httpx.Client):
        if isinstance(client, AsyncTransportLike):
            return TransportExchange(client, timeout=timeout)
        if isinstance(client, AsyncClientLike):
            return ClientExchange(client)
    message = f"expected an httpx.AsyncClient or an async transport, got {client!r}"
    raise TypeError(message)


class TransportExchange:
    """Straight over a transport: about half the price of a client."""

    def __init__(self, transport: AsyncTransportLike, *, timeout: float) -> None:
        """Use `transport`, which stays its owner's to close.

        Args:
            transport: where requests go.
            timeout: for each step of a request, seconds.
        """
        self._transport = transport
        self._extensions = {
            "timeout": dict.fromkeys(("connect", "read", "write", "pool"), timeout)
        }

    async def get(self, url: str, headers: Mapping[str, str]) -> httpx.Response:
        """As `Exchange.get`."""
        request = httpx.Request(
            "GET", url, headers=headers, extensions=self._extensions
        )
        return await self._transport.handle_async_request(request)


class ClientExchange:
    """Through the caller's client, with its proxies, certificates and hooks."""

    def __init__(self, client: AsyncClientLike) -> None:
        """Use `client`, which stays its owner's to close."""
        self._client = client

    async def get(self, url: str, headers: Mapping[str, str]) -> httpx.Response:
        """As `Exchange.get`.

        Keeps the client's own headers, but for those that identify somebody or
        make the GET conditional, and none of its URL parameters.
        httpx works out where a redirect leads even when it is not to follow, and
        raises where it cannot; that is a failure then, and not a redirect to
        nowhere, because what it cannot read may be a good place.
        """
        request = self._client.build_request("GET", url, headers=headers)
        request.url = type(request.url)(url)
        for name in _NEVER_SENT:
            request.headers.pop(name, None)
        return await self._client.send(
            request, stream=True, auth=None, follow_redirects=False
        )
