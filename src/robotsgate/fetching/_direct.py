"""The default fetcher: each GET opens its own connection, using h11 over sockets.

Each origin needs only one request, so a pool or HTTP/2 would not help.
"""

from __future__ import annotations

import os
import ssl
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import h11

from robotsgate.caching._outcome import FailureKind
from robotsgate.fetching._dialling import connect, resolve
from robotsgate.fetching._exchange import Exchange
from robotsgate.fetching._fetcher import FetchFailedError, own_fetch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robotsgate.fetching._dialling import Connect, Resolve
    from robotsgate.fetching._fetcher import FetchedResponse, OwnFetch
    from robotsgate.urls._address_class import IPAddress

# Libraries that mock requests by patching httpx's transports. Tracers and recorders
# patch the same methods, but only observe requests.
_MOCKS = {"respx", "pytest_httpx"}
_MOCKED = (("httpcore", "AsyncConnectionPool"), ("httpx", "AsyncHTTPTransport"))


class DirectFetcher:
    """Sends each GET over a new connection, on asyncio and trio.

    Ignores proxies from the environment; to use a proxy, pass a client to the checker.
    """

    guard_setting = None  # the guard sees the addresses

    def __init__(
        self,
        *,
        ssl_context: ssl.SSLContext | None = None,
        resolve: Resolve = resolve,
        connect: Connect = connect,
    ) -> None:
        """Create a fetcher without connecting.

        Args:
            ssl_context: for https; if `None`, a context that trusts the same
                certificates as httpx is created for the first https origin.
            resolve: resolves host names; by default, with the system's resolver.
            connect: connects to IP addresses.
        """
        self._ssl_context = ssl_context
        self._making_context = anyio.Lock()
        self._resolve = resolve
        self._connect = connect

    async def get(
        self, url: str, headers: Sequence[tuple[str, str]], *, max_bytes: int
    ) -> FetchedResponse:
        """See `Fetcher.get`. Ends at the fetch's deadline.

        Raises:
            TimeoutError: the network or the server failed; this may also raise other
                exceptions.
        """
        fetch = own_fetch.get()
        if _are_requests_mocked():
            return await self._get_through_httpx(url, headers, max_bytes)
        context = None
        if fetch.origin.scheme == "https":
            context = self._ssl_context or await self._shared_context(fetch)
        host, _, path = url.partition("://")[2].partition("/")
        exchange = Exchange(
            fetch,
            h11.Request(
                method="GET",
                target=f"/{path}",
                headers=[("Host", host), *headers],
            ),
            max_bytes=max_bytes,
            ssl_context=context,
            resolve=self._resolve,
            connect=self._connect,
        )
        try:
            return await exchange.response()
        finally:  # even a cancellation must not leave a socket open
            exchange.close()

    async def _shared_context(self, fetch: OwnFetch) -> ssl.SSLContext:
        with anyio.move_on_after(fetch.deadline - anyio.current_time()):
            async with self._making_context:
                if self._ssl_context is None:
                    self._ssl_context = await _load_context(fetch)
                return self._ssl_context
        raise FetchFailedError(  # not the origin's fault
            "the certificate authorities were not loaded in time",
            kind=FailureKind.LOCAL,
        )

    async def _get_through_httpx(
        self, url: str, headers: Sequence[tuple[str, str]], max_bytes: int
    ) -> FetchedResponse:
        """The response from a mock, or from the server that the mock forwards to."""
        from httpx import AsyncHTTPTransport  # noqa: PLC0415 (only in users' tests)

        from robotsgate.fetching._httpx import TransportFetcher  # noqa: PLC0415 (same)

        fetch = own_fetch.get()
        addresses: Sequence[IPAddress] = ()
        looking_up = await self._resolve(fetch)
        with anyio.fail_after(fetch.deadline - anyio.current_time()):
            # A mock may respond for a name that does not exist.
            with (
                suppress(OSError, UnicodeError),
                anyio.fail_after(fetch.policy.connect_timeout),
            ):
                addresses = await looking_up
            if addresses:
                fetch.guard.permit(fetch.dialled_host, addresses)
            context = self._ssl_context or await self._shared_context(fetch)
            async with AsyncHTTPTransport(verify=context) as transport:
                return await TransportFetcher(transport).get(
                    url, headers, max_bytes=max_bytes
                )


async def _load_context(fetch: OwnFetch) -> ssl.SSLContext:
    # In a thread, because reading all root certificates takes 0.1 s.
    making = await fetch.threads.begin(default_context, fetch.queue_timeout())
    try:
        return await making
    except OSError as error:  # not the origin's fault
        raise RuntimeError(
            f"cannot load the certificate authorities: {error}"
        ) from error


def default_context() -> ssl.SSLContext:
    """A context that trusts SSL_CERT_FILE, SSL_CERT_DIR or certifi, as httpx does."""
    file, folder = (os.environ.get(f"SSL_CERT_{kind}") for kind in ("FILE", "DIR"))
    if folder and not file:
        return ssl.create_default_context(capath=folder)
    if not file:
        import certifi  # noqa: PLC0415 (only for https)

        file = certifi.where()
    return ssl.create_default_context(cafile=file)


def proxy_variable() -> str | None:
    """The environment variable that sets a proxy, or `None` if there is none."""
    for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"):
        for variable in (name, name.lower()):
            if os.environ.get(variable):
                return variable
    return None


def _are_requests_mocked() -> bool:
    """Whether a test has patched httpx's transports."""
    for library, name in _MOCKED:
        kind = getattr(sys.modules.get(library), name, None)
        method = getattr(kind, "handle_async_request", None)
        if str(getattr(method, "__module__", "")).partition(".")[0] in _MOCKS:
            return True
    return False
