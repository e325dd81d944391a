"""`robotsgate serve`: the server of the tester page, as it is installed."""

from __future__ import annotations

import signal
import socket
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.cli.conftest import running
from tests.servers.answers import Reply

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cli.conftest import Ran
    from tests.servers.loopback import LoopbackServer


@pytest.mark.parametrize(
    ("options", "access"),
    [([], "refused"), (["--allow-private"], "successful")],
    ids=["public addresses alone", "private addresses as well"],
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


def test_client_gets_no_more_fetches_by_headers_of_a_proxy() -> None:
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


def test_client_that_leaves_early_is_not_reported() -> None:
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
    program: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    ran = program("serve", "--port", "0")

    assert ran.code == 2
    assert "pip install 'robotsgate[cli,tester]'" in ran.stderr


def test_port_that_is_taken_is_one_line(
    program: Callable[..., Ran], serve: Callable[..., LoopbackServer]
) -> None:
    ran = program("serve", "--port", serve(Reply()).port)

    assert (ran.code, ran.stderr.count("\n")) == (2, 1)
