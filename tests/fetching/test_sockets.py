from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from robotsgate.fetching._dialling import SocketStream, connect
from tests.fetching.fetches import PATIENCE_SECONDS
from tests.servers.loopback import dead_port

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio


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
    await first.send_eof()

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
    wait_readable = anyio.wait_readable
    waits: list[object] = []

    async def wake_up_too_early(waiting: socket.socket) -> None:
        waits.append(waiting)
        if len(waits) == 1:
            await anyio.lowlevel.checkpoint()
            return
        await first.send(b"x")
        await wait_readable(waiting)

    monkeypatch.setattr(anyio, "wait_readable", wake_up_too_early)

    assert await second.receive() == b"x"


async def test_receiving_from_a_closed_stream_raises(pair: Pair) -> None:
    first, _ = pair

    await first.aclose()

    with pytest.raises(anyio.ClosedResourceError):
        await first.receive()


async def test_connecting_to_a_dead_port_raises_an_error_with_errno() -> None:
    with pytest.raises(ConnectionRefusedError) as caught:
        await connect("127.0.0.1", dead_port())

    assert caught.value.errno
