"""Wherever it is cancelled, a fetch leaves nothing behind."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from robotsgate.fetching._direct import DirectFetcher
from tests.cancellation import cancelled_at, each_way, suspensions
from tests.fetching.fetches import RULES, fetched
from tests.servers.answers import Reply, Routes, chunked, redirect

if TYPE_CHECKING:
    import ssl

    from tests.servers.loopback import LoopbackServer, Serve

pytestmark = pytest.mark.anyio


async def cancel_everywhere(
    url: str, server: LoopbackServer, way: str, client: DirectFetcher | None = None
) -> int:
    """Cancel a fetch at each of its suspensions and check that nothing is left over.

    Returns:
        The number of suspensions.
    """
    count = await suspensions(lambda: fetched(url, client=client))
    for number in range(1, count + 1):
        await cancelled_at(number, lambda: fetched(url, client=client), way=way)
        assert server.is_left_alone()
    return count


@each_way
async def test_fetch_over_http_can_be_cancelled_anywhere(
    serve: Serve, way: str
) -> None:
    coded = gzip.compress(RULES + b"# \n" * 40_000)
    file = Reply(
        headers={"Content-Encoding": "gzip", "Transfer-Encoding": "chunked"},
        body=chunked(coded[:90], coded[90:]),
    )
    answers = {"/robots.txt": redirect("/a"), "/a": redirect("/b"), "/b": file}
    server = serve(Routes(answers))

    assert await cancel_everywhere(server.url, server, way) > 5


@each_way
async def test_fetch_over_tls_can_be_cancelled_anywhere(
    serve: Serve,
    way: str,
    server_tls: ssl.SSLContext,
    client_tls: ssl.SSLContext,
) -> None:
    server = serve(Reply(body=RULES), ssl_context=server_tls)
    client = DirectFetcher(ssl_context=client_tls)

    assert await cancel_everywhere(server.url, server, way, client) > 3


@each_way
async def test_fetch_of_an_error_page_can_be_cancelled_anywhere(
    serve: Serve, way: str
) -> None:
    page = b"<title>Not found</title>" + b"x" * 100_000
    server = serve(Reply(status=500, body=page))

    assert await cancel_everywhere(server.url, server, way) > 1
