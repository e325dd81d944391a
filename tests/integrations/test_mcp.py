"""`examples/mcp_fetch_server.py`, over stdio and by the client of the MCP SDK."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from robotsgate import SystemClock
from tests.servers.answers import Reply, Routes, redirect

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import Connection, LoopbackServer, Request

    Serve = Callable[..., LoopbackServer]

mcp = pytest.importorskip("mcp", reason="the MCP SDK is not installed")

pytestmark = pytest.mark.anyio

_EXAMPLE = Path(__file__).parents[2] / "examples/mcp_fetch_server.py"


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of aiohttp, which the server fetches pages with."""
    return "asyncio"


async def fetched(urls: list[str], *networks: str) -> list[Any]:
    """What the tool of one server answers, to one call after the other."""
    program = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-W", "error", str(_EXAMPLE), *networks],
        env={"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    )
    async with mcp.Client(program) as client:
        results = [await client.call_tool("fetch", {"url": url}) for url in urls]
    return [
        result.content[0].text if result.is_error else result.structured_content
        for result in results
    ]


async def test_page_comes_in_its_turn_and_with_what_it_may_be_used_for(
    serve: Serve,
) -> None:
    clock = SystemClock()
    times: list[float] = []

    def robots(request: Request, connection: Connection) -> None:
        times.append(clock.monotonic())
        Reply(body=b"User-agent: *\nContent-Signal: search=yes\n")(request, connection)

    def page(request: Request, connection: Connection) -> None:
        times.append(clock.monotonic())
        headers = {"Content-Usage": "train-ai=n"}
        Reply(headers=headers, body=b"A poem")(request, connection)

    site = serve(Routes({"/robots.txt": robots, "/old": redirect("/"), "/": page}))

    [result] = await fetched([f"{site.url}/old"], "127.0.0.0/8")

    assert site.targets == ["/robots.txt", "/old", "/"]
    asked, answered = times
    assert answered - asked > 2 * 1.0 - 0.1  # two turns, a second after another request
    assert (result["url"], result["text"]) == (f"{site.url}/", "A poem")
    usage = result["usage"]
    assert usage["content-usage"]["train-ai"]["preference"] == "disallow"
    assert usage["content-signal"]["search"] == {"preference": "allow", "line": 2}


async def test_refusal_names_the_rule_or_the_address(serve: Serve) -> None:
    elsewhere = serve(Reply())
    inside = f"http://127.0.0.2:{elsewhere.port}"
    site = serve(
        Routes(
            {
                "/robots.txt": Reply(body=b"User-agent: *\nDisallow: /diary\n"),
                "/to-diary": redirect("/diary"),
                "/to-page": redirect(f"{inside}/"),
                "/to-robots": redirect(f"{inside}/robots.txt"),
            }
        )
    )
    urls = ["/diary", "/to-diary", "/to-page", "/to-robots"]
    rule = "line 2 (Disallow: /diary, for all agents)"
    address = "the address guard refused 127.0.0.2 (loopback)"

    refusals = await fetched([site.url + path for path in urls], "127.0.0.1/32")

    assert [rule in text for text in refusals] == [True, True, False, False]
    assert address in refusals[2]
    # Nobody asks the robots.txt about itself.
    assert "127.0.0.2 is not a public address" in refusals[3]
    assert site.targets == ["/robots.txt", *urls[1:]]


async def test_this_machine_is_not_public_unless_it_is_named(serve: Serve) -> None:
    site = serve(Reply())
    name = site.url.replace("127.0.0.1", "localhost")
    urls = [f"{site.url}/", f"{site.url}/robots.txt", f"{name}/", f"{name}/robots.txt"]

    refusals = await fetched(urls)

    by_checker, by_socket = "the address guard refused", "is not a public address"
    for text, reason in zip(refusals, [by_checker, by_socket] * 2, strict=True):
        assert reason in text
    assert site.targets == []
