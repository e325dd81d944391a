"""Chooses how GETs are sent through the client of the caller."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

from robotsgate.fetching._direct import DirectExchange
from robotsgate.fetching._httpx import (
    AsyncClientLike,
    AsyncTransportLike,
    ClientExchange,
    TransportExchange,
)

if TYPE_CHECKING:
    from typing import TypeGuard

    from robotsgate.fetching._fetcher import FetchedResponse, Fetcher
    from robotsgate.fetching._hop import Exchange, Hop


def exchange_for(client: object | None) -> Exchange:
    """The way to send GETs through `client`.

    Args:
        client: a `Fetcher`, or an object with the methods of an `AsyncClient` of
            httpx or httpx2, or of one of their transports; `None`: a new connection
            for each GET.

    Raises:
        TypeError: `client` is something else.
    """
    if client is None:
        return DirectExchange()
    if isinstance(client, DirectExchange):
        return client
    is_blocking = hasattr(client, "__enter__") and not hasattr(client, "__aenter__")
    if not isinstance(client, type) and not is_blocking:
        if isinstance(client, AsyncTransportLike):
            return TransportExchange(client)
        if isinstance(client, AsyncClientLike):
            return ClientExchange(client)
        if _is_fetcher(client):
            return FetcherExchange(client)
    raise TypeError(
        "expected an AsyncClient or an async transport of httpx or httpx2, or a"
        f" Fetcher, got {client!r}"
    )


def _is_fetcher(client: object) -> TypeGuard[Fetcher]:
    """Whether `client` has the `get` of a Fetcher, and not that of a session."""
    get = getattr(client, "get", None)
    return callable(get) and "max_bytes" in inspect.signature(get).parameters


class FetcherExchange:
    """Sends each GET through a `Fetcher` of the caller."""

    is_blind = True

    def __init__(self, fetcher: Fetcher) -> None:
        """Use `fetcher`; its owner closes it."""
        self._fetcher = fetcher

    async def get(self, hop: Hop) -> FetchedResponse:
        """As `Exchange.get`."""
        hop.guard.check_host(hop.origin.host)
        return await self._fetcher.get(
            hop.url, hop.headers, max_bytes=hop.policy.max_body_bytes + 1
        )
