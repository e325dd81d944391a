"""The lasting client on real servers that hang, fall silent or cut connections."""

from __future__ import annotations

import itertools
import socket
import threading
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
import pytest
from coredis import Redis, RedisCluster
from coredis.exceptions import RedisError, ResponseError

from robotsgate import StoreError
from robotsgate.stores import _lasting_client
from robotsgate.stores._lasting_client import LastingClient
from robotsgate.stores._redis_server import RedisServer
from tests.servers.valkey_cluster import HOST, running_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from robotsgate.stores._lasting_client import Client
    from tests.servers.loopback import Connection, LoopbackServer, Request
    from tests.servers.valkey import Valkey

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_is_left")]

_NUMBERS = itertools.count()

# Far longer than anything here takes.
_TIMEOUT_SECONDS = 10.0

# Few connections, so that a leaked one is soon noticed.
_MAX_CONNECTIONS = 8

# How often connections are cut before the test gives up on seeing a client replaced:
# usually, a few hundred times suffice.
_MAX_CUTS = 50_000
_CLIENTS_BEFORE = 1

_FAILURES = (RedisError, OSError, EOFError, ExceptionGroup)


@pytest.fixture
def key() -> str:
    return f"key{next(_NUMBERS)}"


@pytest.fixture
def set_timeout(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the timeout for calls that start from now on, in seconds."""
    return lambda seconds: monkeypatch.setattr(_lasting_client, "CALL_SECONDS", seconds)


class ClientFactory:
    """Creates and counts clients; the functions `first` create the first ones."""

    def __init__(self, port: int, *first: Callable[[], Any]) -> None:
        self.count = 0
        self._port = port
        self._first = first

    def __call__(self) -> Any:  # noqa: ANN401 (a client or a substitute)
        self.count += 1
        if self.count <= len(self._first):
            return self._first[self.count - 1]()
        return Redis("127.0.0.1", self._port, max_connections=_MAX_CONNECTIONS)


class HangingClient:
    """A client that hangs while it is being opened."""

    async def __aenter__(self) -> None:
        await anyio.sleep_forever()

    async def __aexit__(self, *_: object) -> None:
        """Nothing: it is never entered."""


class FailingClient:
    """A client that cannot be opened."""

    async def __aenter__(self) -> None:
        raise ExceptionGroup("of its tasks", [ConnectionRefusedError()])

    async def __aexit__(self, *_: object) -> None:
        """Nothing: it is never entered."""


def no_client() -> None:
    raise ConnectionRefusedError


CANNOT_BE_OPENED: dict[str, Callable[[], object]] = {
    "cannot be created": no_client,
    "cannot be opened": FailingClient,
    "hangs while it is being opened": HangingClient,
}


class ForgetfulProxy:
    """Forwards to `server`, but returns no responses on forgotten connections."""

    def __init__(self, server: Valkey) -> None:
        self._server = server
        self._forgotten = 0

    def forget(self) -> None:
        """Forget all current connections, without closing them."""
        self._forgotten += 1

    def __call__(self, _request: Request, connection: Connection) -> None:
        forgotten = self._forgotten
        with socket.create_connection(("127.0.0.1", self._server.port)) as plain:

            def pass_back() -> None:
                with suppress(OSError):
                    while data := plain.recv(65_536):
                        if forgotten == self._forgotten:
                            connection.send(data)

            back = threading.Thread(target=pass_back)
            back.start()
            with suppress(OSError):
                while data := connection.receive():
                    plain.sendall(data)
            with suppress(OSError):
                plain.shutdown(socket.SHUT_RDWR)
            back.join(_TIMEOUT_SECONDS)


@asynccontextmanager
async def opened(make: Callable[[], Any]) -> AsyncIterator[LastingClient]:
    with anyio.fail_after(3 * _TIMEOUT_SECONDS):
        async with aclosing(LastingClient(make)) as lasting:
            yield lasting


def get(key: str) -> Callable[[Any], Awaitable[object]]:
    return lambda client: client.get(key)


async def fail(_client: object) -> None:
    raise ConnectionResetError


async def _wait_until(condition: Callable[[], bool]) -> None:
    with anyio.fail_after(_TIMEOUT_SECONDS):
        while not condition():
            await anyio.lowlevel.checkpoint()


async def _wait_until_settled(lasting: LastingClient) -> None:
    """Wait until no client is being opened any more, successfully or not."""
    await _wait_until(lambda: lasting._next is None)


def _open_connections(server: Valkey) -> int:
    """How many connections are open, except the one used to find out."""
    return len(str(server.ask("CLIENT", "LIST")).strip().splitlines()) - 1


async def _expect(
    error: type[Exception] | tuple[type[Exception], ...],
    lasting: LastingClient,
    work: Callable[[Any], Awaitable[object]],
    *,
    match: str | None = None,
) -> None:
    with pytest.raises(error, match=match):
        await lasting.result_of(work)


class TestLifecycle:
    async def test_client_is_opened_when_needed_and_closed_at_the_end(
        self, own_valkey: Valkey, key: str
    ) -> None:
        factory = ClientFactory(own_valkey.port)

        async with opened(factory) as lasting:
            before = (factory.count, _open_connections(own_valkey))
            values = [await lasting.result_of(get(key)) for _ in range(5)]
            meanwhile = (factory.count, _open_connections(own_valkey))

        await _wait_until(lambda: _open_connections(own_valkey) == 0)
        assert before == (0, 0)
        assert meanwhile == (1, 1)
        assert values == [None] * 5

    async def test_concurrent_calls_share_the_client_being_opened(
        self, valkey: Valkey, key: str
    ) -> None:
        factory = ClientFactory(valkey.port)

        async with opened(factory) as lasting, anyio.create_task_group() as tasks:
            for _ in range(3 * _MAX_CONNECTIONS):
                tasks.start_soon(lasting.result_of, get(key))

        assert factory.count == 1

    async def test_call_continues_after_its_caller_gives_up(
        self, valkey: Valkey, key: str
    ) -> None:
        factory, gate = ClientFactory(valkey.port), anyio.Event()

        async def put_late(client: Client) -> None:
            await gate.wait()
            await client.set(key, "late")

        async with opened(factory) as lasting:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(lasting.result_of, put_late)
                    await anyio.wait_all_tasks_blocked()
                    scope.cancel()
            gate.set()
            await _wait_until(lambda: valkey.ask("EXISTS", key) == 1)
            value = await lasting.result_of(get(key))

        assert scope.cancelled_caught
        assert value == b"late"
        assert factory.count == 1


class TestReplacing:
    async def test_error_response_does_not_replace_the_client(
        self, own_valkey: Valkey, key: str
    ) -> None:
        factory = ClientFactory(own_valkey.port)
        own_valkey.ask("LPUSH", key, "element")

        async with opened(factory) as lasting:
            for _ in range(3):
                await _expect(ResponseError, lasting, get(key), match="wrong kind")
            value = await lasting.result_of(get("another"))
            connections = _open_connections(own_valkey)

        assert value is None
        assert (factory.count, connections) == (1, 1)

    @pytest.mark.parametrize("calls", [1, _MAX_CONNECTIONS, 3 * _MAX_CONNECTIONS])
    @pytest.mark.parametrize("is_warm", [False, True])
    async def test_calls_work_again_after_the_server_has_hung(
        self,
        own_valkey: Valkey,
        key: str,
        set_timeout: Callable[[float], None],
        *,
        calls: int,
        is_warm: bool,
    ) -> None:
        factory = ClientFactory(own_valkey.port)

        async with opened(factory) as lasting:
            if is_warm:
                await lasting.result_of(get(key))
            set_timeout(0.3)
            own_valkey.pause()
            async with anyio.create_task_group() as tasks:
                for _ in range(calls):
                    tasks.start_soon(_expect, _FAILURES, lasting, get(key))
                await anyio.wait_all_tasks_blocked()
                set_timeout(_TIMEOUT_SECONDS)
            own_valkey.resume()
            await _wait_until_settled(lasting)
            with anyio.fail_after(_TIMEOUT_SECONDS):
                values = [
                    await lasting.result_of(get(key)) for _ in range(_MAX_CONNECTIONS)
                ]

        assert values == [None] * _MAX_CONNECTIONS
        # All the failed calls used the same client.
        assert factory.count == 2

    async def test_connection_that_falls_silent_is_replaced(
        self,
        valkey: Valkey,
        key: str,
        serve: Callable[..., LoopbackServer],
        set_timeout: Callable[[float], None],
    ) -> None:
        proxy = ForgetfulProxy(valkey)
        server = serve(proxy, reads_requests=False)
        factory = ClientFactory(server.port)
        valkey.ask("SET", key, "value")
        values: list[object] = []

        async with opened(factory) as lasting:
            for _ in range(3):
                values.append(await lasting.result_of(get(key)))
                proxy.forget()
                set_timeout(0.3)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_expect, TimeoutError, lasting, get(key))
                    await anyio.wait_all_tasks_blocked()
                    set_timeout(_TIMEOUT_SECONDS)
                await _wait_until_settled(lasting)
            values.append(await lasting.result_of(get(key)))

        assert values == [b"value"] * 4
        assert factory.count == server.accepted == 4
        assert server.is_left_alone()

    @pytest.mark.slow
    async def test_client_works_after_its_connections_were_cut_repeatedly(
        self, own_valkey: Valkey, key: str, set_timeout: Callable[[float], None]
    ) -> None:
        factory = ClientFactory(own_valkey.port)
        is_over = False

        async def call_repeatedly() -> None:
            while not is_over:
                with suppress(*_FAILURES):
                    await lasting.result_of(get(key))
                await anyio.lowlevel.checkpoint()

        def cut_repeatedly() -> None:
            with own_valkey.connection() as (connection, replies):
                for _ in range(_MAX_CUTS):
                    if factory.count > _CLIENTS_BEFORE:
                        break
                    connection.sendall(b"CLIENT KILL TYPE normal SKIPME yes\r\n")
                    replies.readline()

        set_timeout(_TIMEOUT_SECONDS / 2)
        async with opened(factory) as lasting:
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(call_repeatedly)
                await anyio.to_thread.run_sync(cut_repeatedly)
                is_over = True
            with anyio.fail_after(_TIMEOUT_SECONDS):
                await _wait_until_it_works(lasting, key)
                async with anyio.create_task_group() as tasks:
                    for _ in range(3 * _MAX_CONNECTIONS):
                        tasks.start_soon(lasting.result_of, get(key))
            await _wait_until(lambda: _open_connections(own_valkey) <= _MAX_CONNECTIONS)

        assert factory.count > _CLIENTS_BEFORE

    async def test_other_calls_finish_on_the_client_being_replaced(
        self, own_valkey: Valkey, key: str
    ) -> None:
        factory, gate = ClientFactory(own_valkey.port), anyio.Event()
        own_valkey.ask("SET", key, "value")
        values: list[object] = []

        async def get_late(client: Client) -> None:
            await client.get(key)
            await gate.wait()
            values.append(await client.get(key))

        async with opened(factory) as lasting:
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(lasting.result_of, get_late)
                await anyio.wait_all_tasks_blocked()
                await _expect(ConnectionResetError, lasting, fail)
                await _wait_until_settled(lasting)
                values.append(await lasting.result_of(get(key)))
                replaced = _open_connections(own_valkey)
                gate.set()
            # The replaced client is closed once its last call is over.
            await _wait_until(lambda: _open_connections(own_valkey) < replaced)
            values.append(await lasting.result_of(get(key)))
            remaining = _open_connections(own_valkey)

        assert values == [b"value"] * 5
        assert (factory.count, remaining) == (2, 1)


class TestOpening:
    @pytest.mark.parametrize("first", CANNOT_BE_OPENED.values(), ids=CANNOT_BE_OPENED)
    async def test_server_works_as_soon_as_a_client_can_be_opened(
        self,
        valkey: Valkey,
        key: str,
        first: Callable[[], object],
        set_timeout: Callable[[float], None],
    ) -> None:
        factory = ClientFactory(valkey.port, first, first)

        async with aclosing(RedisServer(factory, None)) as server:
            server.open()
            set_timeout(0.1)
            for _ in range(2):
                with pytest.raises(StoreError, match="Redis failed"):
                    await server.result_of(get(key))
                assert server._lasting_client is not None
                await _wait_until_settled(server._lasting_client)
            set_timeout(_TIMEOUT_SECONDS)
            value = await server.result_of(get(key))

        assert value is None
        assert factory.count == 3

    async def test_call_fails_when_opening_its_client_times_out(
        self, valkey: Valkey, key: str, set_timeout: Callable[[float], None]
    ) -> None:
        """Even if the call started later and has time left."""
        factory = ClientFactory(valkey.port, HangingClient)

        with anyio.fail_after(_TIMEOUT_SECONDS):
            async with opened(factory) as lasting:
                async with anyio.create_task_group() as tasks:
                    set_timeout(1.0)
                    tasks.start_soon(_expect, _FAILURES, lasting, get(key))
                    await _wait_until(lambda: factory.count == 1)
                    set_timeout(10 * _TIMEOUT_SECONDS)
                    await _expect(ConnectionError, lasting, get(key))
                value = await lasting.result_of(get(key))

        assert value is None
        assert factory.count == 2

    @pytest.mark.parametrize("then", CANNOT_BE_OPENED.values(), ids=CANNOT_BE_OPENED)
    async def test_client_stays_in_use_while_no_other_can_be_opened(
        self,
        own_valkey: Valkey,
        key: str,
        then: Callable[[], object],
        set_timeout: Callable[[float], None],
    ) -> None:
        factory = ClientFactory(
            own_valkey.port, ClientFactory(own_valkey.port), then, then
        )
        values: list[object] = []
        counts = []

        async with opened(factory) as lasting:
            for _ in range(3):
                values.append(await lasting.result_of(get(key)))
                set_timeout(0.1)
                await _expect(_FAILURES, lasting, fail)
                await _wait_until_settled(lasting)
                counts.append(factory.count)
                set_timeout(_TIMEOUT_SECONDS)
            values.append(await lasting.result_of(get(key)))
            await _wait_until(lambda: _open_connections(own_valkey) == 1)

        assert values == [None] * 4
        assert counts == [2, 3, 4]

    @pytest.mark.slow
    async def test_cluster_works_without_its_first_node(self, key: str) -> None:
        with running_cluster() as (first, *others):
            for node in (first, *others):
                node.ask("CONFIG", "SET", "cluster-require-full-coverage", "no")
            names = [f"{key}:{number}" for number in range(30)]
            on_first = [name for name in names if _has_slot(first, name)]
            count = 0

            def make() -> RedisCluster[bytes]:
                nonlocal count
                count += 1
                return RedisCluster(HOST, first.port, verify_version=False)

            async with opened(make) as lasting:
                before = [await lasting.result_of(get(name)) for name in names]
                first.kill()
                for _ in range(2):
                    await _expect(_FAILURES, lasting, get(on_first[0]))
                    await _wait_until_settled(lasting)
                after = [
                    await lasting.result_of(get(name))
                    for name in names
                    if name not in on_first
                ]

        assert before == [None] * 30
        assert after == [None] * (30 - len(on_first))
        assert 0 < len(on_first) < 30
        assert count == 3


class TestClosing:
    async def test_closing_abandons_a_client_being_opened(
        self, valkey: Valkey, key: str, set_timeout: Callable[[float], None]
    ) -> None:
        set_timeout(10 * _TIMEOUT_SECONDS)

        with anyio.fail_after(_TIMEOUT_SECONDS):
            async with (
                anyio.create_task_group() as tasks,
                opened(ClientFactory(valkey.port, HangingClient)) as lasting,
            ):
                for _ in range(3):
                    tasks.start_soon(_expect_closed, lasting, get(key))
                await anyio.wait_all_tasks_blocked()

    @pytest.mark.parametrize("calls", [1, 3 * _MAX_CONNECTIONS])
    @pytest.mark.parametrize("is_warm", [False, True])
    async def test_closing_abandons_hanging_calls(
        self,
        own_valkey: Valkey,
        key: str,
        set_timeout: Callable[[float], None],
        *,
        calls: int,
        is_warm: bool,
    ) -> None:
        set_timeout(10 * _TIMEOUT_SECONDS)

        with anyio.fail_after(_TIMEOUT_SECONDS):
            async with (
                anyio.create_task_group() as tasks,
                opened(ClientFactory(own_valkey.port)) as lasting,
            ):
                if is_warm:
                    await lasting.result_of(get(key))
                own_valkey.pause()
                for _ in range(calls):
                    tasks.start_soon(_expect_closed, lasting, get(key))
                await anyio.wait_all_tasks_blocked()
            own_valkey.resume()
            await _wait_until(lambda: _open_connections(own_valkey) == 0)

    async def test_cancellation_abandons_hanging_calls(
        self, own_valkey: Valkey, key: str, set_timeout: Callable[[float], None]
    ) -> None:
        set_timeout(10 * _TIMEOUT_SECONDS)

        with anyio.fail_after(_TIMEOUT_SECONDS):
            async with anyio.create_task_group() as tasks:
                with anyio.CancelScope() as scope:
                    async with opened(ClientFactory(own_valkey.port)) as lasting:
                        await lasting.result_of(get(key))
                        own_valkey.pause()
                        for _ in range(3 * _MAX_CONNECTIONS):
                            tasks.start_soon(_expect_closed, lasting, get(key))
                        await anyio.wait_all_tasks_blocked()
                        scope.cancel()
                        await anyio.lowlevel.checkpoint()
            own_valkey.resume()
            await _wait_until(lambda: _open_connections(own_valkey) == 0)

        assert scope.cancelled_caught


async def _expect_closed(
    lasting: LastingClient, work: Callable[[Any], Awaitable[object]]
) -> None:
    await _expect(StoreError, lasting, work, match="closed")


async def _wait_until_it_works(lasting: LastingClient, key: str) -> None:
    """Retry until a call succeeds; calls on cut connections still fail."""
    works = False
    while not works:
        with suppress(*_FAILURES):
            await lasting.result_of(get(key))
            works = True


def _has_slot(node: Valkey, key: str) -> bool:
    """Whether `node` has the slot of `key`."""
    try:
        node.ask("GET", key)
    except RuntimeError:  # it names another node
        return False
    return True
