"""Headers that the caller's function adds to the requests for robots.txt."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import aiohttp
import httpx
import httpx2
import pytest

from robotsgate import RobotsChecker
from robotsgate.caching._outcome import Outcome
from robotsgate.fetching._robots_fetch import signed_headers
from robotsgate.integrations.aiohttp import AiohttpFetcher
from robotsgate.testing import FakeSite
from tests.fetching.fetches import RULES, USER_AGENT, fetched
from tests.servers.answers import Reply, Routes, redirect
from tests.servers.ftp import FtpServer
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tests.servers.loopback import Serve

pytestmark = pytest.mark.anyio

HEADERS = (("User-Agent", USER_AGENT), ("Accept", "text/plain"))


def named(method: str, url: str, headers: Mapping[str, str]) -> dict[str, str]:
    """A signature that tells what was signed."""
    return {"Signature": f"{method} {url} {headers['User-Agent']}"}


def bearing_key(library: Any) -> Any:  # noqa: ANN401 (httpx or httpx2)
    return library.AsyncClient(headers={"X-Api-Key": "secret", "Signature": "old"})


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # as aiohttp needs it
@cases("client", {
    "no client": (nullcontext,),
    "an httpx client": (lambda: bearing_key(httpx),),
    "an httpx transport": (httpx.AsyncHTTPTransport,),
    "an httpx2 client": (lambda: bearing_key(httpx2),),
    "an aiohttp session": (aiohttp.ClientSession,),
})  # fmt: skip
async def test_each_hop_has_its_own_signature_with(
    serve: Serve, client: Callable[[], Any]
) -> None:
    last = serve(Reply(body=RULES), host="127.0.0.2")
    first = serve(Routes({"/robots.txt": redirect(f"{last.url}/rules?a=%2F")}))

    async with client() as opened:
        is_session = isinstance(opened, aiohttp.ClientSession)
        sender = AiohttpFetcher(opened) if is_session else opened
        outcome = await fetched(first.url, client=sender, sign=named)

    assert outcome.body == RULES
    for server, target in ((first, "/robots.txt"), (last, "/rules?a=%2F")):
        (request,) = server.requests
        expected = f"GET {server.url}{target} {USER_AGENT}"
        assert request.headers["signature"] == expected
        assert request.head.lower().count(b"signature:") == 1


async def test_ftp_has_no_headers_to_sign(tmp_path: Path) -> None:
    (tmp_path / "robots.txt").write_bytes(RULES)

    with FtpServer(tmp_path) as server:
        outcome = await fetched(server.url, sign=lambda *_: pytest.fail("called"))

    assert outcome == Outcome(status=226, body=RULES)


@cases("added", {
    "the new headers": ({"Signature": "a", "signature-input": "b; c"},),
    "all headers": ({**dict(HEADERS), "Signature": "a", "signature-input": "b; c"},),
    "httpx's headers":
        (httpx.Headers([*HEADERS, ("Signature", "a"), ("Signature-Input", "b; c")]),),
})  # fmt: skip
def test_function_may_return(added: Mapping[str, str]) -> None:
    given = signed_headers(HEADERS, lambda *_: added, "http://a.test/robots.txt")

    names = [name.lower() for name, _ in given]
    assert names == ["user-agent", "accept", "signature", "signature-input"]
    assert [value for _, value in given] == [USER_AGENT, "text/plain", "a", "b; c"]


def test_function_that_returns_nothing_new_signs_nothing() -> None:
    def sign(_method: str, _url: str, headers: Mapping[str, str]) -> Mapping[str, str]:
        headers.clear()  # type: ignore[attr-defined]  # ours stay as they are
        return headers

    assert signed_headers(HEADERS, sign, "http://a.test/") == list(HEADERS)


async def later(*_: object) -> dict[str, str]:
    return {}


@pytest.mark.filterwarnings("ignore:coroutine 'later' was never awaited")
@cases("added error message", {
    "nothing": (None, TypeError, "a mapping of headers, got None"),
    "pairs": ([("A", "b")], TypeError, r"a mapping of headers, got \[\('A', 'b'\)\]"),
    "a coroutine": (later(), TypeError, "a mapping of headers, got <coroutine"),
    "bytes": ({"Signature": b"x"}, TypeError, r"str, got \('Signature', b'x'\)"),
    "no name": ({"": "x"}, ValueError, "got '': 'x'"),
    "a name with a space": ({"A b": "x"}, ValueError, "got 'A b': 'x'"),
    "another request": ({"A": "x\r\n\r\nGET /"}, ValueError, r"got 'A': 'x\\r\\n"),
    "base64 with a line feed": ({"A": "x=\n"}, ValueError, r"got 'A': 'x=\\n'"),
    "no value": ({"A": ""}, ValueError, "got 'A': ''"),
    "a value that is not ASCII": ({"A": "\u00e9"}, ValueError, "printable ASCII"),
    "our header": ({"user-agent": "Other"}, ValueError, "got 'user-agent'"),
    "a header twice": ({"A": "1", "a": "2"}, ValueError, "got 'a'"),
    "Host": ({"Host": "b.test"}, ValueError, "got 'Host'"),
    "Connection": ({"connection": "close"}, ValueError, "got 'connection'"),
    "framing": ({"Transfer-Encoding": "chunked"}, ValueError, "got 'Transfer-"),
    "content": ({"Content-Length": "9"}, ValueError, "got 'Content-Length'"),
    "a condition": ({"If-None-Match": "*"}, ValueError, "got 'If-None-Match'"),
    "a credential": ({"Authorization": "x"}, ValueError, "got 'Authorization'$"),
})  # fmt: skip
def test_function_may_not_return(
    added: Any,  # noqa: ANN401 (invalid on purpose)
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        signed_headers(HEADERS, lambda *_: added, "http://a.test/robots.txt")


@pytest.mark.parametrize("kind", [OSError, ValueError, TimeoutError, RuntimeError])
async def test_exception_in_the_function_reaches_the_caller_and_nothing_is_cached(
    kind: type[Exception],
) -> None:
    """A key that cannot be read must not close a site."""
    site = FakeSite()
    site.serve("https://a.test", "User-agent: *\nDisallow: /private")
    failures = [kind("no key")]

    def sign(_method: str, _url: str, headers: Mapping[str, str]) -> Mapping[str, str]:
        if failures:
            raise failures.pop()
        return headers

    async with RobotsChecker(client=site, sign=sign) as checker:
        with pytest.raises(kind, match="no key"):
            await checker.can_fetch("Bot", "https://a.test/public")
        is_allowed = await checker.can_fetch("Bot", "https://a.test/public")

    assert is_allowed
    assert site.requests == ["https://a.test/robots.txt"]
