"""`robotsgate serve`: the tester page's server, as installed."""

from __future__ import annotations

import signal
import socket
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx

from tests.cli.conftest import running
from tests.servers.answers import Raw, Reply
from tests.servers.loopback import Connection

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Result
    from tests.servers.loopback import LoopbackServer


def test_page_is_served_until_ctrl_c(serve: Callable[..., LoopbackServer]) -> None:
    query = {"text": None, "url": serve(Reply()).url, "agents": [], "paths": []}

    with running("serve", "--port", "0") as process:
        url = process.stdout.readline().decode().strip()
        page = httpx.get(url, trust_env=False)
        answer = httpx.post(f"{url}answers", json=query, trust_env=False)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)

    assert url.startswith("http://127.0.0.1:")
    assert "<h1>robots.txt tester</h1>" in page.text
    assert answer.json()["source"]["access"] == "successful"
    assert (process.returncode, stderr) == (130, b"")


def test_signals_during_a_fetch_show_no_traceback(
    serve: Callable[..., LoopbackServer],
) -> None:
    server = serve(Raw(b"", Connection.hang))
    query = f'{{"text":null,"url":"{server.url}","agents":[],"paths":[]}}'.encode()
    head = b"POST /answers HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n"

    with running("serve", "--port", "0") as process:
        url = httpx.URL(process.stdout.readline().decode().strip())
        with socket.create_connection((url.host, url.port)) as waiting:
            waiting.sendall(head % len(query))
            waiting.sendall(b"Content-Type: application/json\r\n\r\n" + query)
            assert server.has_accepted(1)
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=30)

    assert process.returncode in {130, -signal.SIGINT}
    assert stderr == b""


def test_port_in_use_is_a_one_line_error(
    program: Callable[..., Result], serve: Callable[..., LoopbackServer]
) -> None:
    result = program("serve", "--port", serve(Reply()).port)

    assert (result.code, result.stderr.count("\n")) == (2, 1)
