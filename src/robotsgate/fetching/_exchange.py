"""Sends one GET through whatever the caller brought: a client or a transport."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import httpx

from robotsgate.fetching._transport import GUARD_EXTENSION, OneRequestTransport
from robotsgate.urls._origin import Origin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from robotsgate.caching._policy import Policy
    from robotsgate.fetching._address_guard import FetchGuard

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


# What frames a body of many small chunks may take as many octets as the body.
_OCTETS_OF_FRAMING = 2
_LEAST_BYTES = 256 * 1024


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

    is_blind: bool
    """Whether addresses are dialled that the guard does not see.

    It sees those that a URL names by number all the same.
    """

    async def get(
        self, url: str, headers: Mapping[str, str], guard: FetchGuard
    ) -> httpx.Response:
        """Send a GET without cookies and credentials; the body is left unread.

        The caller closes the response.

        Raises:
            AddressRefusedError: the guard refuses the host, or as the cause of
                another exception the addresses that it resolves to.
        """
        ...


def exchange_for(client: object | None, policy: Policy) -> Exchange:
    """The way to send requests through `client`.

    Args:
        client: shaped like an `httpx.AsyncClient` or like one of its transports;
            `None`: a transport of our own.
        policy: time-outs and sizes; a client brings its own time-outs.

    Raises:
        TypeError: `client` is shaped like neither.
    """
    if client is None:
        max_bytes = _OCTETS_OF_FRAMING * policy.max_body_bytes + _LEAST_BYTES
        return TransportExchange(OneRequestTransport(max_bytes=max_bytes), policy)
    if not isinstance(client, type | httpx.Client):
        if isinstance(client, AsyncTransportLike):
            return TransportExchange(client, policy)
        if isinstance(client, AsyncClientLike):
            return ClientExchange(client, policy)
    message = f"expected an httpx.AsyncClient or an async transport, got {client!r}"
    raise TypeError(message)


class TransportExchange:
    """Straight over a transport: about half the price of a client."""

    def __init__(self, transport: AsyncTransportLike, policy: Policy) -> None:
        """Use `transport`, which stays its owner's to close.

        Args:
            transport: where requests go.
            policy: the time-outs.
        """
        self._transport = transport
        self._timeouts = {
            "connect": policy.connect_timeout,
            "read": policy.read_timeout,
            "write": policy.read_timeout,
            "pool": _pool_timeout(policy),
        }
        self._asks_guard = isinstance(transport, OneRequestTransport)
        self.is_blind = not (
            self._asks_guard
            or isinstance(transport, httpx.MockTransport)
            or getattr(transport, "dials_nothing", False)
        )

    async def get(
        self, url: str, headers: Mapping[str, str], guard: FetchGuard
    ) -> httpx.Response:
        """As `Exchange.get`."""
        extensions: dict[str, object] = {"timeout": self._timeouts}
        if self._asks_guard:
            extensions[GUARD_EXTENSION] = guard
        else:
            guard.check_host(Origin.from_url(url).host)
        request = httpx.Request("GET", url, headers=headers, extensions=extensions)
        return await self._transport.handle_async_request(request)


class ClientExchange:
    """Through the caller's client, with its proxies, certificates and hooks."""

    is_blind = True

    def __init__(self, client: AsyncClientLike, policy: Policy) -> None:
        """Use `client`, which stays its owner's to close.

        Args:
            client: with time-outs of its own.
            policy: the deadline, which its pool must not outwait.
        """
        self._client = client
        self._pool_timeout = _pool_timeout(policy)

    async def get(
        self, url: str, headers: Mapping[str, str], guard: FetchGuard
    ) -> httpx.Response:
        """As `Exchange.get`.

        Keeps the client's own headers, but for those that identify somebody or
        make the GET conditional, and none of its URL parameters.
        httpx works out where a redirect leads even when it is not to follow, and
        raises where it cannot; that is a failure then, and not a redirect to
        nowhere, because what it cannot read may be a good place.
        """
        guard.check_host(Origin.from_url(url).host)
        request = self._client.build_request("GET", url, headers=headers)
        request.url = type(request.url)(url)
        timeouts = dict(request.extensions.get("timeout", {}))
        pool = timeouts.get("pool")
        if pool is None or pool > self._pool_timeout:
            timeouts["pool"] = self._pool_timeout
            request.extensions = {**request.extensions, "timeout": timeouts}
        for name in _NEVER_SENT:
            request.headers.pop(name, None)
        return await self._client.send(
            request, stream=True, auth=None, follow_redirects=False
        )


def _pool_timeout(policy: Policy) -> float:
    """How long to wait for a free connection, seconds.

    Less than the deadline, which would be blamed on the origin.
    """
    return policy.fetch_deadline / 2
