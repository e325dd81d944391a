"""The tester page's server: uvicorn with limits on what clients can do.

On its own, uvicorn waits forever for request headers, for a body, and for a client that
does not read the response, even at shutdown.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from robotsgate.cli.tester._app import HEADERS, client_of

if TYPE_CHECKING:
    import asyncio
    import socket
    from types import FrameType

    from starlette.applications import Starlette

# How long a client may take to send a request and to read the response.
_CLIENT_SECONDS = 30.0

# A browser opens six connections. Each may carry a 4 MiB request and a 3 MiB response.
_MOST_CONNECTIONS = 100
_MOST_CONNECTIONS_OF_A_CLIENT = 20


def page_server(app: Starlette, *, fetch_seconds: float) -> uvicorn.Server:
    """The server for `app`, whose fetches take at most `fetch_seconds` each."""
    both = 2 * fetch_seconds  # over HTTPS, then over HTTP
    bounds = {"seconds": both + _CLIENT_SECONDS, "clients": {}}
    return _Server(
        uvicorn.Config(
            app,
            http=type("_BoundedConnection", (_Connection,), bounds),
            ws="none",  # upgraded connections would have no limits
            lifespan="off",
            log_level="warning",
            headers=list(HEADERS.items()),
            server_header=False,
            proxy_headers=False,  # anyone could forge them to get more fetches
        )
    )


class _Server(uvicorn.Server):
    """Stops immediately after a signal, even with open connections."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:  # a second Ctrl-C has nothing more to do
            super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Otherwise, uvicorn would log each response that is cancelled here.
        logging.getLogger("uvicorn.error").disabled = True
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        for task in self.server_state.tasks:
            task.cancel()
        await super().shutdown(sockets)


class _Connection(H11Protocol):
    """A connection that is closed if a request and its response take too long.

    Attributes:
        seconds: how long a request and its response may take in total.
        clients: the client of each open connection; the connection that has been idle
            the longest comes first.
    """

    seconds: float
    clients: dict[_Connection, str]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._wait_for_answer()
        client = self.clients[self]
        of_client = [one for one in self.clients if self.clients[one] == client]
        if len(of_client) > _MOST_CONNECTIONS_OF_A_CLIENT:
            of_client[0].drop()
        elif len(self.clients) > _MOST_CONNECTIONS:
            next(iter(self.clients)).drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._forget()
        self._wait_for_answer()
        super().on_response_complete()

    def _wait_for_answer(self) -> None:
        self.clients[self] = client_of(self.client[0] if self.client else "")
        self._deadline = self.loop.call_later(self.seconds, self.drop)

    def _forget(self) -> None:
        self.clients.pop(self, None)
        self._deadline.cancel()

    def drop(self) -> None:
        self._forget()
        self.transport.abort()
