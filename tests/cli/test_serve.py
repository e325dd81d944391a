"""`robotsgate serve`: the tester page's server, as installed."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import anyio
import httpx
import pytest
from starlette.applications import Starlette

from robotsgate.cli.tester import _server
from tests.cli.conftest import running
from tests.servers.answers import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Result
    from tests.servers.loopback import LoopbackServer


@pytest.mark.parametrize(
    ("options", "access"),
    [([], "refused"), (["--allow-private"], "successful")],
    ids=["public addresses only", "private addresses as well"],
)
def test_page_is_served_until_ctrl_c(
    serve: Callable[..., LoopbackServer], options: list[str], access: str
) -> None:
    query = {"text": None, "url": serve(Reply()).url, "agents": [], "paths": []}

    with running("serve", "--port", "0", *options) as process:
        url = process.stdout.readline().decode().strip()
        page = httpx.get(url, trust_env=False)
        answer = httpx.post(f"{url}answers", json=query, trust_env=False)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)

    assert "<h1>robots.txt tester</h1>" in page.text
    assert answer.json()["source"]["access"] == access
    assert (process.returncode, stderr) == (130, b"")


def test_proxy_headers_do_not_evade_the_fetch_limit() -> None:
    query = {"text": None, "agents": [], "paths": []}

    with running("serve", "--port", "0") as process:
        url = process.stdout.readline().decode().strip()
        with httpx.Client(base_url=url, trust_env=False) as client:
            for number in range(1, 22):
                last = client.post(
                    "answers",
                    json=query | {"url": f"http://127.0.0.1:{number}/"},
                    headers={"X-Forwarded-For": f"198.51.100.{number}"},
                )
        process.send_signal(signal.SIGINT)

    assert last.status_code == 429


def test_every_response_has_the_security_headers_and_none_redirects() -> None:
    with running("serve", "--port", "0") as process:
        url = process.stdout.readline().decode().strip()
        with httpx.Client(base_url=url, trust_env=False) as client:
            responses = {
                path: client.get(path, headers={"Host": "evil.example"})
                for path in ("/", "/tester.js", "/tester.css", "/answers", "/answers/")
            }
        process.send_signal(signal.SIGINT)

    statuses = [response.status_code for response in responses.values()]
    assert statuses == [200, 200, 200, 405, 404]
    for response in responses.values():
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 's")
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"


_INCOMPLETE = {
    "head": b"POST /answers HTTP/1.1\r\nHost: h\r\nContent-Len",
    "body": b"POST /answers HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n"
            b"Content-Type: application/json\r\n\r\n{",
}  # fmt: skip


@pytest.mark.parametrize("incomplete", _INCOMPLETE.values(), ids=_INCOMPLETE)
def test_slow_clients_do_not_lock_others_out(incomplete: bytes) -> None:
    with ExitStack() as clients, running("serve", "--port", "0") as process:
        url = httpx.URL(process.stdout.readline().decode().strip())
        slow = []
        for _ in range(120):
            client = socket.create_connection((url.host, url.port), timeout=10)
            slow.append(clients.enter_context(client))
            with suppress(OSError):
                client.sendall(incomplete)
        page = httpx.get(url, trust_env=False)
        with suppress(ConnectionResetError):
            assert slow[0].recv(1) == b""
        process.terminate()
        _, stderr = process.communicate(timeout=30)

    assert page.status_code == 200
    assert (process.returncode, stderr) == (143, b"")


def test_second_ctrl_c_shows_no_traceback() -> None:
    with running("serve", "--port", "0") as process:
        url = httpx.URL(process.stdout.readline().decode().strip())
        with socket.create_connection((url.host, url.port)) as slow:
            slow.sendall(_INCOMPLETE["body"])
            httpx.get(url, trust_env=False)
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
            process.send_signal(signal.SIGINT)
            _, stderr = process.communicate(timeout=30)

    assert process.returncode in {130, -signal.SIGINT}
    assert stderr == b""


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize(("bound", "value"), [
    ("_CLIENT_SECONDS", 0.5), ("_MOST_CONNECTIONS", 1),
])  # fmt: skip
async def test_slow_client_is_dropped_after_a_timeout_or_for_another_client(
    monkeypatch: pytest.MonkeyPatch, bound: str, value: float
) -> None:
    monkeypatch.setattr(_server, bound, value)
    ends = (anyio.EndOfStream, anyio.BrokenResourceError)
    server = _server.page_server(Starlette(), fetch_seconds=0.05)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            async with await anyio.connect_tcp(host, port) as slow:
                await slow.send(_INCOMPLETE["head"])
                async with await anyio.connect_tcp(host, port):
                    with anyio.fail_after(10), pytest.raises(ends):
                        await slow.receive()
            server.should_exit = True


def test_early_disconnect_is_not_reported() -> None:
    with running("serve", "--port", "0") as process:
        url = httpx.URL(process.stdout.readline().decode().strip())
        with socket.create_connection((url.host, url.port)) as leaving:
            leaving.sendall(
                b"POST /answers HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n"
                b"Content-Type: application/json\r\n\r\n"
            )
        httpx.get(url, trust_env=False)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)

    assert stderr == b""


def test_server_without_its_extra_says_what_to_install(
    program: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "robotsgate.cli.tester._server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    result = program("serve", "--port", "0")

    assert result.code == 2
    assert "pip install 'robotsgate[cli,tester]'" in result.stderr


def test_port_in_use_is_a_one_line_error(
    program: Callable[..., Result], serve: Callable[..., LoopbackServer]
) -> None:
    result = program("serve", "--port", serve(Reply()).port)

    assert (result.code, result.stderr.count("\n")) == (2, 1)
