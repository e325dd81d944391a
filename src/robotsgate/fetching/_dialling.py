"""Opens a TCP connection to an address that the guard permits.

A host is resolved once, its addresses are looked at, and one of those is dialled:
between the look and the call nobody can change what the name means (DNS
rebinding). Several addresses are tried as RFC 8305 (happy eyeballs) proposes.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from ipaddress import IPv4Address, ip_address
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import httpcore

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from robotsgate.fetching._address_guard import FetchGuard
    from robotsgate.urls._address_class import IPAddress

Resolve = Callable[[str, int], Awaitable["Sequence[IPAddress]"]]
"""Finds the addresses of a host, for a port."""

_Connect = Callable[[str], Awaitable[httpcore.AsyncNetworkStream]]

CLOSE_SECONDS = 2.0
"""Closing a socket needs no answer of the peer; this only bounds a broken one."""

# RFC 8305 §8: the recommended delay between two attempts.
_ATTEMPT_DELAY_SECONDS = 0.25

# Whose name has more addresses would let us knock at the doors of others.
_MOST_ADDRESSES = 8


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Dials for one fetch what its guard permits."""

    def __init__(
        self,
        guard: FetchGuard,
        *,
        resolve: Resolve,
        network: httpcore.AsyncNetworkBackend,
    ) -> None:
        """Dial through `network`, and only literal addresses.

        Args:
            guard: of the fetch.
            resolve: the addresses of a host.
            network: what opens connections.
        """
        self._guard = guard
        self._resolve = resolve
        self._network = network

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 (the name is httpcore's)
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """A connection to `host`, resolved and opened within `timeout` seconds.

        Raises:
            httpcore.ConnectError: no address answers, or none may be dialled.
            httpcore.ConnectTimeout: neither happened in time.
        """
        connect = partial(
            self._network.connect_tcp,
            port=port,
            local_address=local_address,
            socket_options=socket_options,
        )
        try:
            with anyio.fail_after(timeout):
                found = await self._resolve(host, port)
                addresses = self._guard.permitted(host, found)
                return await _first_to_answer(addresses, connect)
        except TimeoutError as error:
            raise httpcore.ConnectTimeout(str(error)) from error
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(str(error)) from error


async def resolved(host: str, port: int) -> Sequence[IPAddress]:
    """The addresses of `host`, in the order in which the system prefers them.

    Raises:
        OSError: it has none.
    """
    with suppress(ValueError):
        return [ip_address(host)]
    found = await anyio.to_thread.run_sync(
        partial(socket.getaddrinfo, host.encode(), port, type=socket.SOCK_STREAM),
        # A thread for each name: a server of names that says nothing must not hold
        # up the look-ups of others.
        limiter=anyio.CapacityLimiter(math.inf),
        abandon_on_cancel=True,
    )
    addresses = dict.fromkeys(ip_address(place[0]) for *_, place in found)
    return list(addresses)


async def _first_to_answer(
    addresses: Sequence[IPAddress], connect: _Connect
) -> httpcore.AsyncNetworkStream:
    """A connection to whichever of `addresses` answers first.

    The next one is tried when one has failed, or has not answered for a while.

    Raises:
        httpcore.ConnectError: none answers.
    """
    if len(addresses) == 1:
        return await connect(str(addresses[0]))
    winners: list[httpcore.AsyncNetworkStream] = []
    errors: list[Exception] = []

    async def attempt(address: str, is_over: anyio.Event) -> None:
        try:
            winners.append(await connect(address))
            attempts.cancel_scope.cancel()
        except (httpcore.NetworkError, httpcore.TimeoutException) as error:
            errors.append(error)
        finally:
            is_over.set()

    try:
        async with anyio.create_task_group() as attempts:
            for address in _interleaved(addresses)[:_MOST_ADDRESSES]:
                is_over = anyio.Event()
                attempts.start_soon(attempt, str(address), is_over)
                with anyio.move_on_after(_ATTEMPT_DELAY_SECONDS):
                    await is_over.wait()
    except BaseException:  # a cancellation must not leave a socket open either
        await _close(winners)
        raise
    await _close(winners[1:])
    if not winners:
        group = ExceptionGroup("no address answers", errors)
        raise httpcore.ConnectError(str(errors[0])) from group
    return winners[0]


def _interleaved(addresses: Sequence[IPAddress]) -> list[IPAddress]:
    """The two families in turn, beginning with that of the first (RFC 8305 §4)."""
    is_first_v4 = isinstance(addresses[0], IPv4Address)
    first = [one for one in addresses if isinstance(one, IPv4Address) == is_first_v4]
    second = [one for one in addresses if isinstance(one, IPv4Address) != is_first_v4]
    in_turn = chain.from_iterable(zip_longest(first, second))
    return [address for address in in_turn if address is not None]


async def _close(streams: Iterable[httpcore.AsyncNetworkStream]) -> None:
    with anyio.move_on_after(CLOSE_SECONDS, shield=True):
        for stream in streams:
            await stream.aclose()
