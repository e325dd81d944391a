"""Cancelled at whatever place, a fetch leaves nothing behind."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest

from robotsgate.fetching._direct import DirectFetcher
from tests.cancellation import cancelled_at
from tests.fetching.fetches import PATIENCE_SECONDS, RULES, fetched
from tests.servers.answers import Raw, Reply, Routes, chunked, redirect
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from tests.servers.loopback import LoopbackServer

    Serve = Callable[..., LoopbackServer]

pytestmark = pytest.mark.anyio

# A fetch suspends 2 to 90 times; more than that would be a loop.
MOST_CHECKPOINTS = 1_000


async def cancelled_everywhere(
    url: str, server: LoopbackServer, client: DirectFetcher | None = None
) -> int:
    """Cancel a fetch at each of its checkpoints, and look at what is left.

    Returns:
        How many checkpoints there were.
    """
    for number in range(1, MOST_CHECKPOINTS):
        was_cancelled = await cancelled_at(number, lambda: fetched(url, client=client))
        assert server.is_left_alone()
        if not was_cancelled:
            return number - 1
    raise AssertionError(f"{MOST_CHECKPOINTS} checkpoints and no end")


async def test_cancelled_anywhere_over_http(serve: Serve) -> None:
    coded = gzip.compress(RULES + b"# \n" * 40_000)
    file = Reply(
        headers={"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"},
        body=chunked(coded[:90], coded[90:]),
    )
    answers = {"/robots.txt": redirect("/a"), "/a": redirect("/b"), "/b": file}
    server = serve(Routes(answers))

    assert await cancelled_everywhere(server.url, server) > 5


async def test_cancelled_anywhere_over_tls(
    serve: Serve, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    server = serve(Reply(body=RULES), ssl_context=server_tls)
    client = DirectFetcher(ssl_context=client_tls)

    assert await cancelled_everywhere(server.url, server, client) > 3


async def test_cancelled_anywhere_in_a_missing_page(serve: Serve) -> None:
    page = b"<title>Not found</title>" + b"x" * 100_000
    server = serve(Reply(status=500, body=page))

    assert await cancelled_everywhere(server.url, server) > 1


async def test_cancelled_while_the_server_is_silent(
    serve: Serve, client_tls: ssl.SSLContext
) -> None:
    """In the TLS handshake."""
    server = serve(Raw(b"", Connection.hang), reads_requests=False)
    url = server.url.replace("http:", "https:")
    client = DirectFetcher(ssl_context=client_tls)

    async def fetch() -> None:
        await fetched(url, client=client)

    with anyio.fail_after(PATIENCE_SECONDS):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fetch)
            assert await anyio.to_thread.run_sync(server.has_accepted, 1)
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()

    assert server.is_left_alone()
