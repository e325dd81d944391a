"""The client that lasts, on real servers that hang, fall silent and cut it off."""

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
from robotsgate.stores.redis import RedisStore
from robotsgate.testing.stores import KEY, to
from tests.servers.valkey_cluster import HOST, running_cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from robotsgate.stores._lasting_client import Client
    from tests.servers.loopback import Connection, LoopbackServer, Request
    from tests.servers.valkey import Valkey

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_is_left")]

_NUMBERS = itertools.count()

# Far more than anything here takes.
_PATIENCE_SECONDS = 10.0

# As few connections as let a lost place be noticed soon.
_PLACES = 8

# Of connections, before several clients have been replaced: a few hundred do.
_MOST_CUTS = 50_000
_REPLACED = 1

_FAILURES = (RedisError, OSError, EOFError, ExceptionGroup)


@pytest.fixture
def key() -> str:
    return f"key{next(_NUMBERS)}"


@pytest.fixture
def allow(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets how long a call that begins from now on may take, in seconds."""
    return lambda seconds: monkeypatch.setattr(_lasting_client, "CALL_SECONDS", seconds)


class Maker:
    """Makes clients, the first ones of them by `first`, and counts them."""

    def __init__(self, port: int, *first: Callable[[], Any]) -> None:
        self.count = 0
        self._port = port
        self._first = first

    def __call__(self) -> Any:  # noqa: ANN401 (a client, or what stands for one)
        self.count += 1
        if self.count <= len(self._first):
            return self._first[self.count - 1]()
        return Redis("127.0.0.1", self._port, max_connections=_PLACES)


class NeverOpen:
    """A client whose context is entered for ever."""

    async def __aenter__(self) -> None:
        await anyio.sleep_forever()

    async def __aexit__(self, *_: object) -> None:
        """Nothing: it is never entered."""


class NotOpen:
    """A client whose context cannot be entered."""

    async def __aenter__(self) -> None:
        raise ExceptionGroup("of its tasks", [ConnectionRefusedError()])

    async def __aexit__(self, *_: object) -> None:
        """Nothing: it is never entered."""


def no_client() -> None:
    raise ConnectionRefusedError


CANNOT_BE_OPENED: dict[str, Callable[[], object]] = {
    "cannot be made": no_client,
    "cannot be opened": NotOpen,
    "is opened for ever": NeverOpen,
}


class ForgetfulProxy:
    """Passes on to `server`; nothing comes back in a connection it has forgotten."""

    def __init__(self, server: Valkey) -> None:
        self._server = server
        self._forgotten = 0

    def forget(self) -> None:
        """All connections there are, without closing any."""
        self._forgotten += 1

    def __call__(self, _request: Request, connection: Connection) -> None:
        forgotten = self._forgotten
        with socket.create_connection(("127.0.0.1", self._server.port)) as plain:

            def pass_back() -> None:
                with suppress(OSError):
                    while octets := plain.recv(65_536):
                        if forgotten == self._forgotten:
                            connection.send(octets)

            back = threading.Thread(target=pass_back)
            back.start()
            with suppress(OSError):
                while octets := connection.receive():
                    plain.sendall(octets)
            with suppress(OSError):
                plain.shutdown(socket.SHUT_RDWR)
            back.join(_PATIENCE_SECONDS)


@asynccontextmanager
async def opened(make: Callable[[], Any]) -> AsyncIterator[LastingClient]:
    with anyio.fail_after(3 * _PATIENCE_SECONDS):
        async with aclosing(LastingClient(make)) as lasting:
            yield lasting


def get(key: str) -> Callable[[Any], Awaitable[object]]:
    return lambda client: client.get(key)


async def fail(_client: object) -> None:
    raise ConnectionResetError


async def _until(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(_PATIENCE_SECONDS):
        while not is_so():
            await anyio.lowlevel.checkpoint()


async def _until_settled(lasting: LastingClient) -> None:
    """No client is being opened any more: it is there, or could not be."""
    await _until(lambda: lasting._next is None)


def _open_connections(server: Valkey) -> int:
    """How many connections there are, without the one of the question."""
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


class TestLife:
    async def test_client_is_opened_when_it_is_needed_and_closed_at_the_end(
        self, own_valkey: Valkey, key: str
    ) -> None:
        maker = Maker(own_valkey.port)

        async with opened(maker) as lasting:
            before = (maker.count, _open_connections(own_valkey))
            found = [await lasting.result_of(get(key)) for _ in range(5)]
            meanwhile = (maker.count, _open_connections(own_valkey))

        await _until(lambda: _open_connections(own_valkey) == 0)
        assert before == (0, 0)
        assert meanwhile == (1, 1)
        assert found == [None] * 5

    async def test_calls_at_once_share_the_client_that_is_being_opened(
        self, valkey: Valkey, key: str
    ) -> None:
        maker = Maker(valkey.port)

        async with opened(maker) as lasting, anyio.create_task_group() as tasks:
            for _ in range(3 * _PLACES):
                tasks.start_soon(lasting.result_of, get(key))

        assert maker.count == 1

    async def test_call_whose_caller_gives_up_goes_on(
        self, valkey: Valkey, key: str
    ) -> None:
        maker, gate = Maker(valkey.port), anyio.Event()

        async def put_late(client: Client) -> None:
            await gate.wait()
            await client.set(key, "late")

        async with opened(maker) as lasting:
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(lasting.result_of, put_late)
                    await anyio.wait_all_tasks_blocked()
                    scope.cancel()
            gate.set()
            await _until(lambda: valkey.ask("EXISTS", key) == 1)
            found = await lasting.result_of(get(key))

        assert scope.cancelled_caught
        assert found == b"late"
        assert maker.count == 1


class TestReplacing:
    async def test_error_that_the_server_answers_with_replaces_no_client(
        self, own_valkey: Valkey, key: str
    ) -> None:
        maker = Maker(own_valkey.port)
        own_valkey.ask("LPUSH", key, "element")

        async with opened(maker) as lasting:
            for _ in range(3):
                await _expect(ResponseError, lasting, get(key), match="wrong kind")
            found = await lasting.result_of(get("another"))
            connections = _open_connections(own_valkey)

        assert found is None
        assert (maker.count, connections) == (1, 1)

    @pytest.mark.parametrize("calls", [1, _PLACES, 3 * _PLACES])
    @pytest.mark.parametrize("is_warm", [False, True])
    async def test_calls_work_again_after_the_server_has_hung(
        self,
        own_valkey: Valkey,
        key: str,
        allow: Callable[[float], None],
        *,
        calls: int,
        is_warm: bool,
    ) -> None:
        maker = Maker(own_valkey.port)

        async with opened(maker) as lasting:
            if is_warm:
                await lasting.result_of(get(key))
            allow(0.3)
            own_valkey.pause()
            async with anyio.create_task_group() as tasks:
                for _ in range(calls):
                    tasks.start_soon(_expect, _FAILURES, lasting, get(key))
            own_valkey.resume()
            allow(_PATIENCE_SECONDS)
            await _until_settled(lasting)
            with anyio.fail_after(_PATIENCE_SECONDS):
                found = [await lasting.result_of(get(key)) for _ in range(_PLACES)]

        assert found == [None] * _PLACES
        # All the calls have failed with the same one.
        assert maker.count == 2

    async def test_connection_that_falls_silent_is_replaced(
        self,
        valkey: Valkey,
        key: str,
        serve: Callable[..., LoopbackServer],
        allow: Callable[[float], None],
    ) -> None:
        proxy = ForgetfulProxy(valkey)
        server = serve(proxy, reads_requests=False)
        maker = Maker(server.port)
        valkey.ask("SET", key, "value")
        found: list[object] = []

        async with opened(maker) as lasting:
            for _ in range(3):
                allow(_PATIENCE_SECONDS)
                found.append(await lasting.result_of(get(key)))
                proxy.forget()
                allow(0.3)
                await _expect(TimeoutError, lasting, get(key))
                await _until_settled(lasting)
            allow(_PATIENCE_SECONDS)
            found.append(await lasting.result_of(get(key)))

        assert found == [b"value"] * 4
        assert maker.count == server.accepted == 4
        assert server.is_left_alone()

    @pytest.mark.slow
    async def test_connections_cut_again_and_again_leave_a_client_that_works(
        self, own_valkey: Valkey, key: str, allow: Callable[[float], None]
    ) -> None:
        maker = Maker(own_valkey.port)
        is_over = False

        async def call_again_and_again() -> None:
            while not is_over:
                with suppress(*_FAILURES):
                    await lasting.result_of(get(key))
                await anyio.lowlevel.checkpoint()

        def cut_again_and_again() -> None:
            with own_valkey.connection() as (connection, replies):
                for _ in range(_MOST_CUTS):
                    if maker.count > _REPLACED:
                        break
                    connection.sendall(b"CLIENT KILL TYPE normal SKIPME yes\r\n")
                    replies.readline()

        allow(_PATIENCE_SECONDS / 2)
        async with opened(maker) as lasting:
            async with anyio.create_task_group() as tasks:
                for _ in range(20):
                    tasks.start_soon(call_again_and_again)
                await anyio.to_thread.run_sync(cut_again_and_again)
                is_over = True
            with anyio.fail_after(_PATIENCE_SECONDS):
                await _until_it_works(lasting, key)
                async with anyio.create_task_group() as tasks:
                    for _ in range(3 * _PLACES):
                        tasks.start_soon(lasting.result_of, get(key))
            await _until(lambda: _open_connections(own_valkey) <= _PLACES)

        assert maker.count > _REPLACED

    async def test_other_calls_come_to_their_end_on_the_client_that_is_replaced(
        self, own_valkey: Valkey, key: str
    ) -> None:
        maker, gate = Maker(own_valkey.port), anyio.Event()
        own_valkey.ask("SET", key, "value")
        found: list[object] = []

        async def get_late(client: Client) -> None:
            await client.get(key)
            await gate.wait()
            found.append(await client.get(key))

        async with opened(maker) as lasting:
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(lasting.result_of, get_late)
                await anyio.wait_all_tasks_blocked()
                await _expect(ConnectionResetError, lasting, fail)
                await _until_settled(lasting)
                found.append(await lasting.result_of(get(key)))
                replaced = _open_connections(own_valkey)
                gate.set()
            # The one that was replaced has gone when its last call is over.
            await _until(lambda: _open_connections(own_valkey) < replaced)
            found.append(await lasting.result_of(get(key)))
            left = _open_connections(own_valkey)

        assert found == [b"value"] * 5
        assert (maker.count, left) == (2, 1)


class TestOpening:
    @pytest.mark.parametrize("first", CANNOT_BE_OPENED.values(), ids=CANNOT_BE_OPENED)
    async def test_store_works_as_soon_as_a_client_can_be_opened(
        self,
        valkey: Valkey,
        key: str,
        first: Callable[[], object],
        allow: Callable[[float], None],
    ) -> None:
        maker = Maker(valkey.port, first, first)

        async with RedisStore(maker, prefix=key) as store:
            allow(0.1)
            for _ in range(2):
                with pytest.raises(StoreError, match="Redis failed"):
                    await store.get(KEY)
                assert store._server._lasting_client is not None
                await _until_settled(store._server._lasting_client)
            allow(_PATIENCE_SECONDS)
            await store.update(KEY, to(b"1"))
            found = await store.get(KEY)

        assert found == b"1"
        assert maker.count == 3

    async def test_call_ends_with_the_time_to_open_its_client(
        self, valkey: Valkey, key: str, allow: Callable[[float], None]
    ) -> None:
        """Though it has begun later, and would have more time."""
        maker = Maker(valkey.port, NeverOpen)

        with anyio.fail_after(_PATIENCE_SECONDS):
            async with opened(maker) as lasting:
                async with anyio.create_task_group() as tasks:
                    allow(1.0)
                    tasks.start_soon(_expect, _FAILURES, lasting, get(key))
                    await _until(lambda: maker.count == 1)
                    allow(10 * _PATIENCE_SECONDS)
                    await _expect(ConnectionError, lasting, get(key))
                found = await lasting.result_of(get(key))

        assert found is None
        assert maker.count == 2

    @pytest.mark.parametrize("then", CANNOT_BE_OPENED.values(), ids=CANNOT_BE_OPENED)
    async def test_client_goes_on_while_no_other_can_be_opened(
        self,
        own_valkey: Valkey,
        key: str,
        then: Callable[[], object],
        allow: Callable[[float], None],
    ) -> None:
        maker = Maker(own_valkey.port, Maker(own_valkey.port), then, then)
        found: list[object] = []
        counts = []

        async with opened(maker) as lasting:
            for _ in range(3):
                found.append(await lasting.result_of(get(key)))
                allow(0.1)
                await _expect(_FAILURES, lasting, fail)
                await _until_settled(lasting)
                counts.append(maker.count)
                allow(_PATIENCE_SECONDS)
            found.append(await lasting.result_of(get(key)))
            await _until(lambda: _open_connections(own_valkey) == 1)

        assert found == [None] * 4
        assert counts == [2, 3, 4]

    @pytest.mark.slow
    async def test_cluster_whose_first_node_is_dead_goes_on_with_the_others(
        self, key: str
    ) -> None:
        with running_cluster() as (first, *others):
            for node in (first, *others):
                node.ask("CONFIG", "SET", "cluster-require-full-coverage", "no")
            names = [f"{key}:{number}" for number in range(30)]
            held = [name for name in names if _is_held(first, name)]
            count = 0

            def make() -> RedisCluster[bytes]:
                nonlocal count
                count += 1
                return RedisCluster(HOST, first.port, verify_version=False)

            async with opened(make) as lasting:
                before = [await lasting.result_of(get(name)) for name in names]
                first.kill()
                for _ in range(2):
                    await _expect(_FAILURES, lasting, get(held[0]))
                    await _until_settled(lasting)
                after = [
                    await lasting.result_of(get(name))
                    for name in names
                    if name not in held
                ]

        assert before == [None] * 30
        assert after == [None] * (30 - len(held))
        assert 0 < len(held) < 30
        assert count == 3


class TestClosing:
    async def test_client_that_is_being_opened_is_given_up_at_once(
        self, valkey: Valkey, key: str, allow: Callable[[float], None]
    ) -> None:
        allow(10 * _PATIENCE_SECONDS)

        with anyio.fail_after(_PATIENCE_SECONDS):
            async with (
                anyio.create_task_group() as tasks,
                opened(Maker(valkey.port, NeverOpen)) as lasting,
            ):
                for _ in range(3):
                    tasks.start_soon(_expect_closed, lasting, get(key))
                await anyio.wait_all_tasks_blocked()

    @pytest.mark.parametrize("calls", [1, 3 * _PLACES])
    @pytest.mark.parametrize("is_warm", [False, True])
    async def test_calls_that_hang_are_given_up_at_once(
        self,
        own_valkey: Valkey,
        key: str,
        allow: Callable[[float], None],
        *,
        calls: int,
        is_warm: bool,
    ) -> None:
        allow(10 * _PATIENCE_SECONDS)

        with anyio.fail_after(_PATIENCE_SECONDS):
            async with (
                anyio.create_task_group() as tasks,
                opened(Maker(own_valkey.port)) as lasting,
            ):
                if is_warm:
                    await lasting.result_of(get(key))
                own_valkey.pause()
                for _ in range(calls):
                    tasks.start_soon(_expect_closed, lasting, get(key))
                await anyio.wait_all_tasks_blocked()
            own_valkey.resume()
            await _until(lambda: _open_connections(own_valkey) == 0)

    async def test_cancellation_around_it_ends_everything_at_once(
        self, own_valkey: Valkey, key: str, allow: Callable[[float], None]
    ) -> None:
        allow(10 * _PATIENCE_SECONDS)

        with anyio.fail_after(_PATIENCE_SECONDS):
            async with anyio.create_task_group() as tasks:
                with anyio.CancelScope() as scope:
                    async with opened(Maker(own_valkey.port)) as lasting:
                        await lasting.result_of(get(key))
                        own_valkey.pause()
                        for _ in range(3 * _PLACES):
                            tasks.start_soon(_expect_closed, lasting, get(key))
                        await anyio.wait_all_tasks_blocked()
                        scope.cancel()
                        await anyio.lowlevel.checkpoint()
            own_valkey.resume()
            await _until(lambda: _open_connections(own_valkey) == 0)

        assert scope.cancelled_caught


async def _expect_closed(
    lasting: LastingClient, work: Callable[[Any], Awaitable[object]]
) -> None:
    await _expect(StoreError, lasting, work, match="closed")


async def _until_it_works(lasting: LastingClient, key: str) -> None:
    """Calls that fail are those to a connection that was cut."""
    works = False
    while not works:
        with suppress(*_FAILURES):
            await lasting.result_of(get(key))
            works = True


def _is_held(node: Valkey, key: str) -> bool:
    """Whether the slot of `key` is one of `node`."""
    try:
        node.ask("GET", key)
    except RuntimeError:  # it names another
        return False
    return True
