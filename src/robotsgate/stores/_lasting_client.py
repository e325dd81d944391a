"""Keeps a coredis client open, and replaces it when it fails.

A coredis pool keeps connections that no longer respond. It permanently loses a slot if
a call is cancelled while connecting or, on trio, if its connection is cut off. So every
call runs to completion, even if its caller gives up. If a call fails without a response
from the server, the client is replaced.

A coredis client must be closed by the task that opened it. So each client has its own
task; any task may open and close a `LastingClient`.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import anyio
from coredis.exceptions import ResponseError

from robotsgate._flights import Flights
from robotsgate.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from coredis import Redis, RedisCluster

    Client = Redis[bytes] | RedisCluster[bytes]

# Calls that take longer fail. The checker does not wait that long.
CALL_SECONDS = 10.0

_Result = TypeVar("_Result")


class _Connection:
    """One client with its connection pool.

    Attributes:
        client: the client; `None` before it is opened and after it is closed.
        error: why the client could not be opened, or `None`.
        settled_event: set once the client is open or has failed to open.
        is_retired: whether to close the client as soon as no call is using it.
        unused_event: set when the client is retired and no call is using it.
        calls: the number of calls that are using the client.
    """

    def __init__(self) -> None:
        self.client: Client | None = None
        self.error: Exception | None = None
        self.settled_event = anyio.Event()
        self.is_retired = False
        self.unused_event = anyio.Event()
        self.calls = 0

    async def open_client(self) -> Client:
        """Wait until the client is open, and return it.

        Raises:
            Exception: the client could not be opened.
        """
        await self.settled_event.wait()
        if self.client is None:
            raise self.error or ConnectionError("the client is not open")
        return self.client

    def close_if_unused(self) -> None:
        """Allow the client to be closed if it is retired and unused."""
        if self.is_retired and self.calls == 0:
            self.unused_event.set()


class LastingClient:
    """A client that stays open until it is closed, and is replaced when it fails."""

    def __init__(self, make: Callable[[], Client]) -> None:
        """Use clients created by `make`; each one is opened when it is needed."""
        self._make = make
        self._current: _Connection | None = None
        self._next: _Connection | None = None
        self._connections: Flights[bool] = Flights("connection to Redis")
        self._calls: Flights[bool] = Flights("connection to Redis")

    async def aclose(self) -> None:
        """Cancel the pending calls and close the connections."""
        try:
            await self._calls.aclose()
        finally:
            await self._connections.aclose()

    async def result_of(self, work: Callable[[Client], Awaitable[_Result]]) -> _Result:
        """Call `work` with the client, and return its result.

        Raises:
            StoreError: `aclose` was called.
            TimeoutError: `work` takes longer than `CALL_SECONDS`.
            Exception: raised by `work`, or while opening the client.
        """
        results: list[_Result] = []
        errors: list[Exception] = []

        async def call() -> bool:
            try:
                results.append(await self._result_of_call(work))
            except Exception as error:  # noqa: BLE001 (raised to the caller)
                errors.append(error)
            return True

        try:
            await self._calls.begin(call, call).result()
        except RuntimeError as error:
            raise StoreError(str(error)) from error
        if errors:
            raise errors[0]
        return results[0]

    async def _result_of_call(
        self, work: Callable[[Client], Awaitable[_Result]]
    ) -> _Result:
        connection = self._current or self._next_connection()
        connection.calls += 1
        try:
            with anyio.fail_after(CALL_SECONDS):
                return await work(await connection.open_client())
        except ResponseError:
            raise
        except Exception:
            if connection is self._current:
                self._next_connection()
            raise
        finally:
            connection.calls -= 1
            connection.close_if_unused()

    def _next_connection(self) -> _Connection:
        """The connection that will replace the current one once it is open."""
        if self._next is None:
            connection = _Connection()
            self._connections.begin(connection, partial(self._hold_open, connection))
            self._next = connection
        return self._next

    async def _hold_open(self, connection: _Connection) -> bool:
        try:
            with anyio.move_on_after(CALL_SECONDS) as scope:
                async with self._make() as client:
                    scope.deadline = math.inf
                    connection.client = client
                    connection.settled_event.set()
                    self._retire(self._current)
                    self._current, self._next = connection, None
                    await connection.unused_event.wait()
        except Exception as error:  # noqa: BLE001 (raised to the waiting calls)
            connection.error = error
        finally:
            connection.client = None
            connection.settled_event.set()
            if self._next is connection:
                self._next = None
            if self._current is connection:
                self._current = None
        return True

    @staticmethod
    def _retire(connection: _Connection | None) -> None:
        if connection is not None:
            connection.is_retired = True
            connection.close_if_unused()
