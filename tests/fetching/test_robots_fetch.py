"""The outcome of fetching a robots.txt over real sockets."""

from __future__ import annotations

import errno
import gzip
import ssl
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING
from unittest.mock import ANY

import pytest
import respx

from robotsgate.caching._outcome import FailureKind, Outcome
from robotsgate.caching._policy import Policy
from robotsgate.fetching import _direct
from robotsgate.fetching._fetcher import OwnFetch
from robotsgate.urls._url import Origin
from tests.faults.rows import head
from tests.fetching.fetches import (
    RULES,
    USER_AGENT,
    fetched,
    fetcher_of,
)
from tests.servers.answers import (
    Raw,
    Reply,
    Routes,
    chunked,
    dripping,
    endless,
    redirect,
)
from tests.servers.loopback import Connection
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import Answer, Serve

pytestmark = pytest.mark.anyio

ERROR_PAGE = b"<title>Page not found</title>"


# --- status, headers, body ------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "max_bytes"),
    [(206, 512_001), (404, 0), (407, 0), (599, 4_096), (999, 0)],
)
async def test_status_decides_how_much_of_the_body_is_read(
    serve: Serve, status: int, max_bytes: int
) -> None:
    server = serve(Raw(head(f"{status} X") + RULES, endless(b"x" * 999)))

    outcome = await fetched(server.url)

    body = (RULES + b"x" * 512_001)[:max_bytes]
    assert outcome == Outcome(status=status, body=body)
    assert server.is_left_alone()


async def test_only_headers_that_matter_to_caching_are_kept(serve: Serve) -> None:
    lines = ["AGE: 5", "Cache-Control: private", "X: y", "cache-control: max-age=9"]
    server = serve(Raw(head("200 OK", *lines, "Content-Length: 0")))

    outcome = await fetched(server.url)

    headers = {"age": "5", "cache-control": "private, max-age=9"}
    assert outcome == Outcome(status=200, headers=headers)


BROKEN_PAGES: dict[str, Answer] = {
    "cut off": Raw(head("500 No", "Content-Length: 99") + ERROR_PAGE),
    "reset": Raw(head("500 No", "Content-Length: 99") + ERROR_PAGE, Connection.reset),
    "in an unknown coding": Raw(head("500 No", "Content-Encoding: br") + ERROR_PAGE),
    "in cut gzip": Raw(head("500 No",
        "Content-Encoding: gzip") + gzip.compress(ERROR_PAGE)[:-1]),
}  # fmt: skip


@pytest.mark.parametrize("answer", BROKEN_PAGES.values(), ids=BROKEN_PAGES)
async def test_broken_error_page_is_empty_and_does_not_change_the_status(
    serve: Serve, answer: Answer
) -> None:
    """Its rest might say that something else was not found."""
    server = serve(answer)

    assert await fetched(server.url) == Outcome(status=500)


@cases("lines body outcome", {
    "a length": (["Content-Length: 0"], b"", Outcome(status=200)),
    "chunks": (["Transfer-Encoding: chunked"], chunked(), Outcome(status=200)),
    "the end of the connection":
        ([], b"", Outcome(failure=FailureKind.CODING, error=ANY)),
})  # fmt: skip
async def test_empty_coded_body_is_complete_if_its_end_is_announced_by(
    serve: Serve, lines: list[str], body: bytes, outcome: Outcome
) -> None:
    server = serve(Raw(head("200 OK", "Content-Encoding: gzip", *lines) + body))

    assert await fetched(server.url) == outcome


@pytest.mark.parametrize("version", ["HTTP/2.0", "HTTP/0.9", "HTTP/3.1"])
async def test_response_in_another_version_of_http_is_a_failure(
    serve: Serve, version: str
) -> None:
    server = serve(Raw(f"{version} 404 Not Found\r\n\r\n".encode()))

    outcome = await fetched(server.url)

    assert outcome == Outcome(failure=FailureKind.PROTOCOL, error=ANY)


@pytest.mark.parametrize(
    "then", [Connection.hang, dripping(b"x")], ids=["hangs", "drips"]
)
async def test_status_is_kept_if_the_error_page_never_ends(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, then: Callable[[Connection], None]
) -> None:
    """The page is not worth losing the status and Retry-After for."""
    monkeypatch.setattr(_direct, "ERROR_PAGE_SECONDS", 0.1)
    server = serve(Raw(head("503 No", "Retry-After: 600") + b"<title>Error", then))

    outcome = await fetched(server.url)

    headers = {"retry-after": "600"}
    assert outcome == Outcome(status=503, headers=headers)


async def test_error_page_is_not_read_if_the_policy_does_not_need_it(
    serve: Serve,
) -> None:
    server = serve(Raw(head("503 No") + ERROR_PAGE, Connection.hang))

    outcome = await fetched(server.url, policy=Policy(detect_missing_page=False))

    assert outcome == Outcome(status=503)


@pytest.mark.parametrize("max_body_bytes", [0, 1])
async def test_body_is_cut_one_byte_beyond_the_limit_in_the_policy(
    serve: Serve, max_body_bytes: int
) -> None:
    server = serve(Reply(body=RULES))

    outcome = await fetched(server.url, policy=Policy(max_body_bytes=max_body_bytes))

    assert outcome == Outcome(status=200, body=RULES[: max_body_bytes + 1])


# --- the request ----------------------------------------------------------------


async def test_request_has_exactly_these_headers(serve: Serve) -> None:
    server = serve(Reply(body=RULES))

    await fetched(server.url)

    (request,) = server.requests
    assert request.head.decode() == (
        "GET /robots.txt HTTP/1.1\r\n"
        f"Host: 127.0.0.1:{server.port}\r\n"
        f"User-Agent: {USER_AGENT}\r\n"
        "Accept: text/plain, */*;q=0.1\r\n"
        "Accept-Encoding: gzip, deflate\r\n"
        "\r\n"
    )


# --- redirects ------------------------------------------------------------------


async def test_redirects_are_kept_in_order_up_to_2_kb_without_userinfo(
    serve: Serve,
) -> None:
    long_path = "/" + "x" * 3_000
    last = Reply(headers={"Cache-Control": "max-age=600"}, body=RULES)
    routes: dict[str, Answer] = {long_path: last}
    server = serve(Routes(routes))
    hidden = f"http://user:secret@127.0.0.1:{server.port}/a"
    routes["/robots.txt"] = redirect(hidden)
    first = {"Location": long_path, "Cache-Control": "max-age=7200", "Age": "5"}
    routes["/a"] = Reply(status=307, headers=first)

    outcome = await fetched(server.url)

    url = f"{server.url}{long_path}"[:2_048]
    assert outcome.redirects == ((f"{server.url}/a", 302), (url, 307))
    assert outcome.headers == {"cache-control": "max-age=600"}


async def test_policy_limits_the_number_of_redirects(serve: Serve) -> None:
    server = serve(redirect("/a"))

    outcome = await fetched(server.url, policy=Policy(max_redirects=0))

    assert outcome == Outcome(
        has_too_many_redirects=True, status=302, error="more than 0 redirects"
    )
    assert server.targets == ["/robots.txt"]


# --- threads --------------------------------------------------------------------


def refuse(_: object) -> None:
    raise RuntimeError("can't start new thread")


@cases("url", {
    "a lookup": ("http://a.test/",),
    "a lookup for a mock": ("http://mocked.test/",),
    "loading the certificate authorities": ("https://127.0.0.1/",),
    "a lookup for FTP": ("ftp://a.test/",),
    "an FTP session": ("ftp://127.0.0.1/",),
})  # fmt: skip
async def test_fetch_that_gets_no_thread_is_not_blamed_on_the_site(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Because none is free in time, or because the system starts none."""
    monkeypatch.setattr(threading.Thread, "start", refuse)
    with respx.mock if "mocked" in url else ExitStack():
        refused = await fetched(url)
        monkeypatch.setattr(OwnFetch, "queue_timeout", lambda _: 0)
        fetcher = fetcher_of(max_concurrent_fetches=0)
        late = await fetcher.fetch(Origin.from_url(url))

    assert [one.failure for one in (refused, late)] == [FailureKind.LOCAL] * 2
    assert refused.error == "RuntimeError: can't start new thread"
    assert late.error == "FetchFailedError: no thread was free in time"


async def test_waiting_for_a_thread_is_limited_only_by_the_deadline() -> None:
    policy = Policy(connect_timeout=0.001, fetch_deadline=0.1)
    fetcher = fetcher_of(policy=policy, max_concurrent_fetches=0)

    outcome = await fetcher.fetch(Origin.from_url("http://a.test/"))

    assert outcome == Outcome(failure=FailureKind.LOCAL, error=ANY)


def hang_for_a_while(**_: object) -> None:
    threading.Event().wait(0.5)


def fail_without_files(**_: object) -> None:
    raise OSError(errno.EMFILE, "Too many open files")


@pytest.mark.parametrize("load", [hang_for_a_while, fail_without_files])
async def test_authorities_that_cannot_be_loaded_are_not_blamed_on_the_site(
    load: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first https fetch without file descriptors used to raise out of `check`."""
    monkeypatch.setattr(ssl, "create_default_context", load)

    outcome = await fetched("https://127.0.0.1/", policy=Policy(fetch_deadline=0.05))

    assert outcome == Outcome(failure=FailureKind.LOCAL, error=ANY)
