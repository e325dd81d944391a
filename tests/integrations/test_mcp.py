"""`examples/mcp_fetch_server.py`, called over stdio with the MCP SDK's client."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from robotsgate import SystemClock
from tests.servers.answers import Reply, Routes, redirect

if TYPE_CHECKING:
    from tests.servers.loopback import Connection, Request, Serve


mcp = pytest.importorskip("mcp", reason="the MCP SDK is not installed")

pytestmark = pytest.mark.anyio

_EXAMPLE = Path(__file__).parents[2] / "examples/mcp_fetch_server.py"


@pytest.fixture
def anyio_backend() -> str:
    """One is enough: the server, another process, always runs on asyncio."""
    return "asyncio"


async def call_fetch_tool(urls: list[str], *networks: str) -> list[Any]:
    """Call one server's tool for each URL in turn, and return the results."""
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


async def test_page_is_fetched_in_its_turn_with_its_usage_preferences(
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

    [result] = await call_fetch_tool([f"{site.url}/old"], "127.0.0.0/8")

    assert site.targets == ["/robots.txt", "/old", "/"]
    robots_time, page_time = times
    # Two turns, each a second after the previous request.
    assert page_time - robots_time > 2 * 1.0 - 0.1
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

    refusals = await call_fetch_tool([site.url + path for path in urls], "127.0.0.1/32")

    assert [rule in text for text in refusals] == [True, True, False, False]
    assert address in refusals[2]
    # robots.txt itself is requested without a check.
    assert "127.0.0.2 is not a public address" in refusals[3]
    assert site.targets == ["/robots.txt", *urls[1:]]


async def test_loopback_addresses_are_refused_by_default(serve: Serve) -> None:
    site = serve(Reply())
    name = site.url.replace("127.0.0.1", "localhost")
    urls = [f"{site.url}/", f"{site.url}/robots.txt", f"{name}/", f"{name}/robots.txt"]

    refusals = await call_fetch_tool(urls)

    by_checker, by_socket = "the address guard refused", "is not a public address"
    for text, reason in zip(refusals, [by_checker, by_socket] * 2, strict=True):
        assert reason in text
    assert site.targets == []
