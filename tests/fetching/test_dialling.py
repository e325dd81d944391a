from __future__ import annotations

import socket
import threading
from functools import partial
from ipaddress import ip_address
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from robotsgate.fetching import _dialling
from robotsgate.fetching._dialling import SocketStream, connect_to_any, resolve
from tests.fetching.fetches import PATIENCE_SECONDS
from tests.fetching.switchboard import Switchboard
from tests.servers.answers import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import LoopbackServer

    Serve = Callable[..., LoopbackServer]

pytestmark = pytest.mark.anyio

V4 = ["93.184.216.34", "1.1.1.1", "8.8.8.8"]
V6 = ["2606:4700::1111", "2001:4860:4860::8888"]


async def dial(board: Switchboard, name: str = "a.test") -> SocketStream:
    addresses = await board.resolve(name, 80)
    return await connect_to_any(addresses, 80, board.connect)


@pytest.mark.parametrize(
    ("host", "address"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1")]
)
async def test_literal_address_resolves_to_itself(host: str, address: str) -> None:
    assert await resolve(host, 80) == [ip_address(address)]


async def test_name_is_resolved_by_the_system() -> None:
    addresses = await resolve("localhost", 80)

    assert {address.is_loopback for address in addresses} == {True}
    assert len(set(addresses)) == len(addresses)


async def test_name_that_does_not_exist_raises() -> None:
    with pytest.raises(socket.gaierror):
        await resolve("name.invalid", 80)


async def test_first_address_that_answers_is_used(serve: Serve) -> None:
    server = serve(Reply())
    board = Switchboard({"a.test": [" ".join(V4)]}, {V4[1]: server})

    (await dial(board)).close()

    assert board.dialled == V4[:2]
    assert server.is_left_alone()


async def test_silent_address_does_not_hold_up_the_next(serve: Serve) -> None:
    server = serve(Reply())
    board = Switchboard({"a.test": [" ".join(V4)]}, {V4[0]: None, V4[1]: server})

    (await dial(board)).close()

    assert board.dialled == V4[:2]


async def test_address_families_alternate() -> None:
    board = Switchboard({"a.test": [" ".join([*V6, *V4])]}, {})

    with pytest.raises(ConnectionError):
        await dial(board)

    assert board.dialled == [V6[0], V4[0], V6[1], V4[1], V4[2]]


async def test_at_most_eight_addresses_are_dialled() -> None:
    addresses = " ".join(f"8.8.8.{number}" for number in range(100))
    board = Switchboard({"a.test": [addresses]}, {})

    with pytest.raises(ConnectionError):
        await dial(board)

    assert len(board.dialled) == 8


async def test_error_includes_the_cause_for_every_address_that_refuses() -> None:
    board = Switchboard({"a.test": [" ".join(V4)]}, {})

    with pytest.raises(ConnectionError) as caught:
        await dial(board)

    group = caught.value.__cause__
    assert isinstance(group, ExceptionGroup)
    assert len(group.exceptions) == 3


@pytest.mark.parametrize("addresses", [V4[:1], V4])
async def test_dialling_silent_addresses_can_be_cancelled(
    addresses: list[str],
) -> None:
    board = Switchboard({"a.test": [" ".join(addresses)]}, dict.fromkeys(V4))

    with anyio.move_on_after(0.05) as scope:
        await dial(board)

    assert scope.cancelled_caught


class OpenStream(SocketStream):
    def __init__(self) -> None:
        super().__init__(socket.socket())

    @property
    def is_closed(self) -> bool:
        return self._socket.fileno() < 0


async def test_two_addresses_that_answer_together_leave_one_connection() -> None:
    streams: list[OpenStream] = []
    both_called = anyio.Event()

    async def connect(_address: str, _port: int) -> SocketStream:
        streams.append(OpenStream())
        stream = streams[-1]
        if len(streams) == 2:
            both_called.set()
        with anyio.CancelScope(shield=True):  # like a connection that completes anyway
            await both_called.wait()
        return stream

    addresses = [ip_address(text) for text in V4]
    winner = await connect_to_any(addresses, 80, connect)

    assert [stream.is_closed for stream in streams].count(False) == 1
    assert isinstance(winner, OpenStream)
    assert not winner.is_closed
    winner.close()


async def test_cancellation_after_connecting_closes_the_connection() -> None:
    """One connection is open, and the other attempts are being cancelled."""
    streams: list[OpenStream] = []
    scope = anyio.CancelScope()

    async def connect(_address: str, _port: int) -> SocketStream:
        if not streams:
            streams.append(OpenStream())
            await anyio.sleep_forever()
        scope.cancel()
        streams.append(OpenStream())
        return streams[-1]

    with scope:
        addresses = [ip_address(text) for text in V4]
        await connect_to_any(addresses, 80, connect)

    assert scope.cancelled_caught
    assert streams[1].is_closed
    streams[0].close()


async def test_hanging_lookups_do_not_hold_up_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are more of them than asyncio has resolver threads (at most 32)."""
    may_answer = threading.Event()

    def answer(host: bytes, *_: object, **__: object) -> list[object]:
        if host.startswith(b"silent"):
            may_answer.wait(PATIENCE_SECONDS)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 80))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(partial(resolve, f"silent{number}.test", 80))
        await anyio.wait_all_tasks_blocked()
        addresses = await resolve("quick.test", 80)
        group.cancel_scope.cancel()
        may_answer.set()

    assert addresses == [ip_address("93.184.216.34")]


async def test_number_of_threads_for_hanging_lookups_is_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every abandoned lookup used to leave a thread behind; now later lookups wait."""
    monkeypatch.setattr(_dialling, "_MOST_LOOK_UPS", 2)
    hosts: list[bytes] = []
    has_started, may_answer = threading.Semaphore(0), threading.Event()

    def answer(host: bytes, *_: object, **__: object) -> list[object]:
        hosts.append(host)
        has_started.release()
        may_answer.wait(PATIENCE_SECONDS)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 80))]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(resolve, "silent.test", 80)
            await anyio.to_thread.run_sync(
                partial(has_started.acquire, timeout=PATIENCE_SECONDS)
            )
        group.cancel_scope.cancel()
    for _ in range(4):
        with anyio.move_on_after(0.05):
            await resolve("silent.test", 80)
    started = len(hosts)
    may_answer.set()
    with anyio.fail_after(PATIENCE_SECONDS):
        await resolve("quick.test", 80)

    assert started == 2
    assert hosts[2:] == [b"quick.test"]
