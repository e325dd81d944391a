"""Fetching robots.txt over FTP; `tests/faults/ftp.py` has more faulty servers."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING

import anyio
import pytest

from robotsgate import AddressGuard, FailureKind, Policy
from robotsgate.caching._outcome import Outcome
from robotsgate.fetching._fetcher import own_fetch
from robotsgate.fetching._ftp import FtpFetcher, _Session
from tests.fetching.fetches import PATIENCE_SECONDS, RULES, fetch_of, fetched
from tests.fetching.switchboard import Switchboard
from tests.servers.ftp import FtpPart, FtpServer
from tests.servers.loopback import Connection, LoopbackServer, dead_port

if TYPE_CHECKING:
    from pathlib import Path

    from robotsgate.fetching._fetcher import FetchedResponse

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"], ids=["PASV", "EPSV"])
async def test_file_is_retrieved(tmp_path: Path, host: str) -> None:
    (tmp_path / "robots.txt").write_bytes(RULES)

    with FtpServer(tmp_path, host=host) as server:
        outcome = await fetched(server.url)

    assert outcome == Outcome(status=226, body=RULES)


async def test_guard_also_applies_to_ftp(tmp_path: Path) -> None:
    policy = Policy(address_guard=AddressGuard.PUBLIC_ONLY)

    with FtpServer(tmp_path) as server:
        outcome = await fetched(server.url, policy=policy)

    assert outcome.failure is FailureKind.ADDRESS_REFUSED


async def retrieve(url: str, *addresses: str) -> FetchedResponse:
    """Fetch `url` from a host whose name resolves to `addresses`."""
    url = url.replace("127.0.0.1", "files.example")
    board = Switchboard({"files.example": [" ".join(addresses)]}, {})
    token = own_fetch.set(fetch_of(url))
    try:
        with anyio.fail_after(PATIENCE_SECONDS):
            return await FtpFetcher(resolve=board.resolve).get(
                f"{url}/robots.txt", (), max_bytes=512_001
            )
    finally:
        own_fetch.reset(token)


async def test_next_address_is_tried_if_one_refuses(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_bytes(RULES)

    with FtpServer(tmp_path) as server:
        response = await retrieve(server.url, "127.0.0.9", "127.0.0.1")

    assert (response.status, response.body) == (226, RULES)


async def test_connection_error_is_raised_if_every_address_refuses() -> None:
    url = f"ftp://127.0.0.1:{dead_port()}"

    with pytest.raises(ConnectionRefusedError):
        await retrieve(url, "127.0.0.9", "127.0.0.1")


@pytest.mark.parametrize(
    "reply",
    [b"229", b"229 (", b"229 ()", b"229 (|||)", b"229 (||||||)", b"229 (|||x|)",
     b"229 (|||" + b"9" * 40 + b"|)", b"229-", b"\xff", b"x" * 9_000],
    ids=lambda reply: repr(reply[:20]),
)  # fmt: skip
async def test_hostile_reply_to_epsv_is_a_failure(reply: bytes) -> None:
    part = FtpPart(replies={"EPSV": reply + b"\r\n"})

    with LoopbackServer(part, host="::1", reads_requests=False) as server:
        outcome = await fetched(
            server.url.replace("http", "ftp"), policy=Policy(read_timeout=0.2)
        )

    assert outcome.failure is not None
    assert len(outcome.error) < 500


async def test_session_ended_before_it_starts_leaves_no_connection() -> None:
    with LoopbackServer(FtpPart(), reads_requests=False) as server:
        session = _Session([ip_address("127.0.0.1")], server.port, Policy(), 512_001)
        session.end()

        with pytest.raises(EOFError):
            await anyio.to_thread.run_sync(session.retrieve)

        assert await anyio.to_thread.run_sync(server.is_left_alone)


async def test_file_in_too_many_pieces_is_a_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """512 KB in pieces of one byte used to take three seconds of processor time."""
    monkeypatch.setattr("robotsgate.fetching._ftp._CHUNK_BYTES", 1)
    part = FtpPart(data=lambda connection: connection.send(b"#" * 10_000))

    with LoopbackServer(part, reads_requests=False) as server:
        outcome = await fetched(server.url.replace("http", "ftp"))

    assert outcome.failure is FailureKind.PROTOCOL
    assert "3158 for 3157 bytes" in outcome.error


async def test_connection_closed_by_the_server_is_a_transfer_failure() -> None:
    part = FtpPart(replies={"RETR": Connection.close})

    with LoopbackServer(part, reads_requests=False) as server:
        outcome = await fetched(server.url.replace("http", "ftp"))

    assert outcome.failure is FailureKind.TRANSFER
