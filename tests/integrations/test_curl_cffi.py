"""The curl_cffi `Fetcher` from the examples, against real servers."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import pytest

from robotsgate import FailureKind
from robotsgate.caching._outcome import Outcome
from tests.fetching.fetches import RULES, USER_AGENT, fetched
from tests.servers.answers import Raw, Reply, endless
from tests.servers.loopback import dead_port
from tests.tables import cases

if TYPE_CHECKING:
    from tests.servers.loopback import Answer, Serve


requests = pytest.importorskip("curl_cffi.requests")

pytestmark = pytest.mark.anyio

HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.fixture
def anyio_backend() -> str:
    """curl_cffi supports only asyncio."""
    return "asyncio"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 (a module)
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    return importlib.import_module("fetch_with_curl_cffi")


async def fetch_with_curl(example: Any, url: str) -> Outcome:  # noqa: ANN401
    async with requests.AsyncSession() as session:
        return await fetched(url, client=example.CurlFetcher(session))


async def test_curl_sends_only_our_headers(serve: Serve, example: object) -> None:
    server = serve(Reply(body=RULES))

    await fetch_with_curl(example, server.url)

    assert server.requests[0].headers == {
        "host": f"127.0.0.1:{server.port}",
        "user-agent": USER_AGENT,
        "accept": "text/plain, */*;q=0.1",
        "accept-encoding": "gzip, deflate",
    }


@cases("answer outcome", {
    "a file": (Reply(body=RULES), Outcome(status=200, body=RULES)),
    "an endless file": (
        Raw(HEAD + b"\r\n", endless(b"#" * 999)),
        Outcome(status=200, body=b"#" * 512_001),
    ),
    "half a file": (
        Raw(HEAD + b"Content-Length: 99\r\n\r\nhalf"),
        Outcome(failure=FailureKind.PROTOCOL, error=ANY),
    ),
    "no response": (Raw(b""), Outcome(failure=FailureKind.TRANSFER, error=ANY)),
})  # fmt: skip
async def test_response_determines_the_outcome(
    serve: Serve, example: object, answer: Answer, outcome: Outcome
) -> None:
    server = serve(answer)

    assert await fetch_with_curl(example, server.url) == outcome
    assert server.is_left_alone()


async def test_dead_port_is_a_connect_failure(example: object) -> None:
    outcome = await fetch_with_curl(example, f"http://127.0.0.1:{dead_port()}")

    assert outcome == Outcome(failure=FailureKind.CONNECT, error=ANY)
