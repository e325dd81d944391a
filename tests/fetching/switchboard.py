"""A network whose names and addresses lead to servers on loopback.

The sockets are real; only the routing is made up, because tests must not connect to
public addresses.
"""

from __future__ import annotations

import errno
import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel

from robotsgate.fetching import _direct
from robotsgate.fetching._direct import DirectFetcher

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from robotsgate.fetching._fetcher import OwnFetch
    from robotsgate.urls._address_class import IPAddress
    from tests.servers.loopback import LoopbackServer


class Switchboard:
    """Names, addresses and the servers behind them.

    Attributes:
        looked_up: the names that have been resolved, in order.
        dialled: the addresses that have been dialled, in order.
    """

    def __init__(
        self,
        names: Mapping[str, Sequence[str]],
        servers: Mapping[str, LoopbackServer | None],
    ) -> None:
        """Set up the network.

        Args:
            names: each name's lookup results. Each result is a string of addresses
                separated by spaces. Each lookup returns the next result; the last
                one is repeated.
            servers: the server behind each address; an address with `None` never
                answers. All other addresses refuse connections.
        """
        self._names = {name: list(answers) for name, answers in names.items()}
        self._servers = servers
        self.looked_up: list[str] = []
        self.dialled: list[str] = []

    def client(self) -> DirectFetcher:
        """A fetcher that uses this network."""
        return DirectFetcher(resolve=self.resolve, connect=self.connect)

    async def resolve(self, fetch: OwnFetch) -> Awaitable[Sequence[IPAddress]]:
        """Begin to resolve the host of `fetch`."""
        return self.addresses(fetch.dialled_host)

    async def addresses(self, host: str) -> Sequence[IPAddress]:
        """The addresses of `host`."""
        await anyio.lowlevel.checkpoint()
        self.looked_up.append(host)
        answers = self._names.get(host)
        if answers is None:
            try:
                return [ip_address(host)]
            except ValueError:
                raise socket.gaierror(socket.EAI_NONAME, "no such name") from None
        text = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ip_address(address) for address in text.split()]

    async def connect(self, address: str, port: int) -> _direct.SocketStream:
        """A connection to the server behind `address`."""
        self.dialled.append(address)
        if address not in self._servers:
            raise ConnectionRefusedError(errno.ECONNREFUSED, f"{address}:{port}")
        server = self._servers[address]
        if server is None:
            await anyio.sleep_forever()
        return await _direct.connect("127.0.0.1", server.port)
