from __future__ import annotations

import socket
from ipaddress import ip_address
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from robotsgate.fetching import _direct
from robotsgate.fetching._direct import SocketStream, connect, connect_to_any, resolve
from tests.fetching.fetches import PATIENCE_SECONDS, fetch_of
from tests.fetching.switchboard import Switchboard
from tests.servers.answers import Reply
from tests.servers.loopback import dead_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from robotsgate.urls._address_class import IPAddress
    from tests.servers.loopback import Serve

pytestmark = pytest.mark.anyio

V4 = ["93.184.216.34", "1.1.1.1", "8.8.8.8"]
V6 = ["2606:4700::1111", "2001:4860:4860::8888"]


async def dial(board: Switchboard, name: str = "a.test") -> SocketStream:
    addresses = await board.addresses(name)
    return await connect_to_any(addresses, 80, board.connect)


async def resolved(host: str) -> Sequence[IPAddress]:
    with anyio.fail_after(PATIENCE_SECONDS):
        return await (await resolve(fetch_of(f"http://{host}/")))


@pytest.mark.parametrize(
    ("host", "address"), [("127.0.0.1", "127.0.0.1"), ("[::1]", "::1")]
)
async def test_literal_address_resolves_to_itself(host: str, address: str) -> None:
    assert await resolved(host) == [ip_address(address)]


async def test_name_is_resolved_by_the_system() -> None:
    addresses = await resolved("localhost")

    assert {address.is_loopback for address in addresses} == {True}
    assert len(set(addresses)) == len(addresses)


async def test_name_that_does_not_exist_raises() -> None:
    with pytest.raises(socket.gaierror):
        await resolved("name.invalid")


async def test_replacement_for_the_system_gets_what_callers_usually_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: list[object] = []

    def look_up(*args: object, **options: object) -> list[object]:
        calls.append((args, options))
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (V4[0], 80))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)

    assert await resolved("a.test") == [ip_address(V4[0])]
    assert calls == [(("a.test", 80), {"type": socket.SOCK_STREAM})]


async def test_first_address_that_answers_is_used(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_direct, "_ATTEMPT_DELAY_SECONDS", PATIENCE_SECONDS)
    server = serve(Reply())
    board = Switchboard({"a.test": [" ".join(V4)]}, {V4[1]: server})

    (await dial(board)).close()

    assert board.dialled == V4[:2]
    assert server.is_left_alone()


async def test_silent_address_does_not_hold_up_the_next(serve: Serve) -> None:
    server = serve(Reply())
    board = Switchboard({"a.test": [" ".join(V4[:2])]}, {V4[0]: None, V4[1]: server})

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


# --- one connection ---------------------------------------------------------------


@pytest.fixture
def pair() -> Iterator[tuple[SocketStream, SocketStream]]:
    """Two ends of one connection."""
    ends = socket.socketpair()
    for end in ends:
        end.setblocking(False)  # noqa: FBT003 (positional only)
    first, second = map(SocketStream, ends)
    yield first, second
    first.close()
    second.close()


Pair = tuple[SocketStream, SocketStream]


async def test_sent_bytes_are_received_until_the_end_of_the_stream(pair: Pair) -> None:
    first, second = pair

    await first.send(b"one")
    first.close()

    assert await second.receive() == b"one"
    with pytest.raises(anyio.EndOfStream):
        await second.receive()


async def test_more_than_fits_into_the_buffers_is_sent_in_full(pair: Pair) -> None:
    first, second = pair
    received = 0

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first.send, bytes(5_000_000))
            while received < 5_000_000:
                received += len(await second.receive())

    assert received == 5_000_000


async def test_receive_waits_again_after_a_spurious_wakeup(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = pair
    waits: list[object] = []

    async def is_readable(waiting: socket.socket, _deadline: float) -> bool:
        waits.append(waiting)
        if len(waits) == 2:
            await first.send(b"x")
        return True

    monkeypatch.setattr(_direct, "is_readable", is_readable)

    assert await second.receive() == b"x"


async def test_wait_for_bytes_ends_at_the_deadline(pair: Pair) -> None:
    _, second = pair
    deadline = anyio.current_time() + 0.02
    second.wait_until(deadline)

    with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(TimeoutError):
        await second.receive()

    assert deadline <= anyio.current_time() < deadline + 5


async def test_wait_for_full_buffers_ends_at_the_deadline(pair: Pair) -> None:
    first, _ = pair
    first.wait_until(anyio.current_time() + 0.02)

    with anyio.fail_after(PATIENCE_SECONDS), pytest.raises(TimeoutError):
        await first.send(bytes(5_000_000))


@pytest.mark.parametrize("is_seen", [True, False])
async def test_bytes_are_received_once_after_the_deadline(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, *, is_seen: bool
) -> None:
    """uvloop sees that a deadline has passed before it sees the bytes.

    A server that always has another byte must not hold a TLS record open.
    """
    first, second = pair
    await first.send(b"x")
    second.wait_until(anyio.current_time() - 1)

    async def is_never_readable(*_: object) -> bool:
        return False

    if not is_seen:
        monkeypatch.setattr(_direct, "is_readable", is_never_readable)

    assert await second.receive() == b"x"
    await first.send(b"y")
    with pytest.raises(TimeoutError):
        await second.receive()


async def test_connecting_to_a_dead_port_raises_an_error_with_errno() -> None:
    with pytest.raises(ConnectionRefusedError) as caught:
        await connect("127.0.0.1", dead_port())

    assert caught.value.errno
