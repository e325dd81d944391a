"""`robotsgate serve`: the tester page's server, its answers, refusals and headers."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import threading
from contextlib import contextmanager, suppress
from socket import SO_LINGER, SOL_SOCKET
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from robotsgate.cli import _explain, _serve
from robotsgate.cli._serve import PageServer
from robotsgate.sync import RobotsChecker
from robotsgate.testing import FakeSite, ManualClock
from tests.cli.conftest import running
from tests.servers.answers import Raw, Reply
from tests.servers.loopback import Connection
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Serve

_HEADERS = {"Content-Type": "application/json"}

_BODY = "User-agent: *\nDisallow: /p<\x1b\nDisalow: /\n"


@contextmanager
def _page(site: FakeSite | None = None) -> Iterator[httpx.Client]:
    with (
        RobotsChecker(client=site or FakeSite(), clock=ManualClock()) as checker,
        PageServer(checker, port=0) as server,
    ):
        thread = threading.Thread(target=server.serve_forever, args=[0.01])
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            with httpx.Client(base_url=url, trust_env=False) as client:
                yield client
        finally:
            server.shutdown()
            thread.join()


def _query(**more: object) -> dict[str, Any]:
    return {"text": _BODY, "url": "", "agents": [], "paths": []} | more


def _answered(text: str, paths: list[str], *agents: str) -> dict[str, Any]:
    """What the page shows about a pasted file."""
    query = _query(text=text, paths=paths, agents=[*agents])
    return _explain.about_text(_explain.Query.of(query))


def test_page_has_no_inline_scripts_or_styles_and_states_its_limits() -> None:
    with _page() as client:
        page = client.get("/").text

    assert "<script>" not in page
    assert "style=" not in page
    for limit in (
        _explain._MOST_CHECKS,
        _explain._LONGEST_NAME,
        _explain._MOST_LINES,
        _explain._MOST_FINDINGS,
    ):
        assert f" {limit:,} " in page


def test_answer_for_a_pasted_file_has_lines_and_findings() -> None:
    body = "User-agent: *\nDisallow: /p<\x1b\nNoindex: /\n"
    paths = ["/p<\x1b/a", "/q", "/robots.txt", "p<\x1b", "q?u=http://h", "http://"]

    with _page() as client:
        response = client.post("/answers", json=_query(text=body, paths=paths))

    content = response.json()
    answers = [(one["path"], one["allowed"], one["line"]) for one in content["answers"]]
    assert answers == [
        (r"/p<\x1b/a", False, 2),
        ("/q", True, None),
        ("/robots.txt", True, None),
        (r"/p<\x1b", False, 2),
        ("/q?u=http://h", True, None),
        ("http://", None, None),
        ("http://", True, None),
    ]
    assert content["lines"][1] == {"number": 2, "text": r"Disallow: /p<\x1b"}
    assert [one["code"] for one in content["findings"]] == ["unknown-field"]
    assert content["source"] is None


@cases("text shown", {
    "a URL": ("http://h/", "http://h/"),
    "half of a surrogate pair": ("\ud800", "\ufffd" * 3),
})  # fmt: skip
def test_any_text_can_be_pasted_without_a_warning(text: str, shown: str) -> None:
    assert _answered(text, [])["lines"] == [{"number": 1, "text": shown}]


def test_each_agent_has_its_own_answer_and_reason() -> None:
    content = _answered("User-agent: a\nDisallow: /x\n", ["/x", "/y"], "a", "b")

    assert [one["reason"] for one in content["answers"][:3]] == [
        "by line 2 (Disallow: /x, for a)",
        "the file has no group for this agent",
        "none of the rules for a in the file match",
    ]


def test_dialects_that_disagree_are_named() -> None:
    text = "User-agent: *\nDisalow: /x\n"

    content = _answered(text, ["/x", "/y"], "a", "Mozilla/5.0")

    assert [
        (one["path"], one["agent"], one["dialect"], one["allowed"], one["line"])
        for one in content["answers"]
    ] == [
        ("/x", "a", "RFC 9309", True, None),
        ("/x", "a", "Google", False, 2),
        ("/x", "Mozilla/5.0", "RFC 9309", None, None),
        ("/x", "Mozilla/5.0", "Google", False, 2),
        ("/y", "a", "", True, None),
        ("/y", "Mozilla/5.0", "RFC 9309", None, None),
        ("/y", "Mozilla/5.0", "Google", True, None),
    ]


def test_only_the_first_of_many_lines_and_findings_are_sent() -> None:
    """A 512 KB file used to get a 28 MB response."""
    content = _answered("x\n" * 5_002, [])

    assert (len(content["lines"]), content["more_lines"]) == (5_000, 2)
    assert (len(content["findings"]), content["more_findings"]) == (1_000, 4_002)


def test_reason_for_a_long_rule_is_cut_off() -> None:
    content = _answered(f"User-agent: *\nDisallow: /{'*' * 400_000}", ["/"])

    assert len(content["answers"][0]["reason"]) == 2_000


def test_answer_for_a_fetched_file_names_its_source() -> None:
    site = FakeSite()
    site.serve("http://h", _BODY)
    paths = ["/p<%1b", "p?u=http://h", "http://h/q", "http://other/", "gopher://h/"]
    query = _query(text=None, url="http://h/some/page", paths=paths)

    with _page(site) as client:
        content = client.post("/answers", json=query).json()

    answers = [(one["allowed"], one["line"]) for one in content["answers"]]
    assert answers == [
        (False, 2), (True, None), (True, None), (None, None), (None, None)
    ]  # fmt: skip
    assert content["source"]["url"] == "http://h/robots.txt"
    assert content["source"]["status"] == 200
    assert content["source"]["fresh_until"] > content["source"]["fetched_at"]
    assert len(content["lines"]) == 3


@cases("statuses url access", {
    "both respond": ({"https": 200, "http": 200}, "https://h/robots.txt", "successful"),
    "https has no file": ({"https": 404}, "https://h/robots.txt", "unavailable"),
    "https returns an error":
        ({"https": 503, "http": 200}, "https://h/robots.txt", "unreachable"),
    "only http responds": ({"http": 200}, "http://h/robots.txt", "successful"),
    "neither responds": ({}, "https://h/robots.txt", "unreachable"),
})  # fmt: skip
@pytest.mark.parametrize("site_url", ["h", "h/?u=http://other"])
def test_site_without_a_scheme_uses_https_unless_only_http_responds(
    statuses: dict[str, int], url: str, access: str, site_url: str
) -> None:
    site = FakeSite()
    for scheme in ("https", "http"):
        if scheme in statuses:
            site.serve(f"{scheme}://h", _BODY, status=statuses[scheme])
        else:
            site.fail(f"{scheme}://h", httpx.ConnectError("refused"))

    with _page(site) as client:
        query = _query(text=None, url=site_url, paths=["/"])
        content = client.post("/answers", json=query).json()

    assert (content["source"]["url"], content["source"]["access"]) == (url, access)
    assert bool(content["lines"]) is (access == "successful")


_CHECKS = b",".join([b'""'] * 51)


@cases("content headers status message", {
    "invalid JSON": (b"{", {}, 400, "expected JSON"),
    "deeply nested JSON": (b"[" * 100_000, {}, 400, "expected JSON"),
    "other JSON": (b"[]", {}, 400, "expected text, url, agents and paths"),
    "a long path":
        (b'{"text":"","url":"","agents":[],"paths":["%s"]}' % (b"x" * 2_001), {}, 400,
         "all but the text are limited to 2000"),
    "too many checks":
        (b'{"text":"","url":"","agents":[],"paths":[%s]}' % _CHECKS, {}, 400,
         "expected at most 50 checks"),
    "an invalid URL":
        (b'{"text":null,"url":"/x","agents":[],"paths":[]}', {}, 400,
         "expected a host"),
    "a form from another site":
        (b"text=x", {"Content-Type": "application/x-www-form-urlencoded"}, 415, ""),
    # A hostile page could point its own name at this machine and send requests.
    "another host": (b"{", {"Host": "evil.example"}, 403, ""),
    "a name that starts like ours":
        (b"{", {"Host": "127.0.0.1.evil.example:8000"}, 403, ""),
    "localhost": (b"{", {"Host": "localhost:8000"}, 400, ""),
})  # fmt: skip
def test_query_that_the_page_would_not_send_is_refused(
    content: bytes, headers: dict[str, str], *, status: int, message: str
) -> None:
    with _page() as client:
        response = client.post("/answers", content=content, headers=_HEADERS | headers)

    assert response.status_code == status
    assert message in response.text


def test_every_response_has_the_security_headers_and_none_redirects() -> None:
    with _page() as client:
        gets = [client.get(path) for path in _serve._FILES]
        others = [client.get("/nothing"), client.post("/answers"), client.head("/")]

    assert [one.status_code for one in gets] == [200] * 4
    assert [one.status_code for one in others] == [404, 415, 501]
    for response in gets + others:
        policy = response.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 's")
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"


_HEAD = b"POST /answers HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
_UNFINISHED = {
    "nothing": b"",
    "part of a head": _HEAD,
    "part of a body": _HEAD + b"Content-Type: application/json\r\n\r\n{",
}


@pytest.mark.parametrize("sent", _UNFINISHED.values(), ids=_UNFINISHED)
def test_idle_connection_is_closed(
    monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(_serve._Connection, "timeout", 0.1)

    with _page() as client:
        address = (client.base_url.host, client.base_url.port)
        with socket.create_connection(address, timeout=10) as idle:
            idle.sendall(sent)

            assert idle.recv(1) == b""


def test_request_that_ends_early_is_not_reported(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with _page() as client:
        address = (client.base_url.host, client.base_url.port)
        for sent in _UNFINISHED.values():
            with socket.create_connection(address) as leaving:
                leaving.sendall(sent)
                # Closing it resets the connection.
                leaving.setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        client.get("/")

    assert capfd.readouterr().err == ""


def test_bug_is_reported(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(_serve, "about_text")

    with _page() as client, pytest.raises(httpx.RemoteProtocolError):
        client.post("/answers", json=_query())

    assert "NameError" in capfd.readouterr().err


def test_page_is_served_until_ctrl_c(serve: Serve) -> None:
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


def test_signals_during_a_fetch_show_no_traceback(serve: Serve) -> None:
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
