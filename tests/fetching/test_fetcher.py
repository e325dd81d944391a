"""What each answer of a server comes to: design.md §4.1 over real sockets."""

from __future__ import annotations

import errno
import gzip
import socket
import zlib
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from unittest.mock import ANY

import anyio
import httpx
import pytest
import respx

from robotsgate import AccessResult, Policy, RobotsChecker
from robotsgate.caching._outcome import Answered, BrokenRedirect, Failed, FailureKind
from robotsgate.fetching._fetcher import Fetcher
from robotsgate.fetching._transport import OneRequestTransport
from robotsgate.testing import ManualClock
from robotsgate.urls._origin import Origin
from tests.fetching.fetches import USER_AGENT, fetched
from tests.servers.answers import (
    Late,
    Raw,
    Reply,
    Routes,
    chunked,
    dripping,
    endless,
    redirect,
)
from tests.servers.loopback import Connection, LoopbackServer, Request, dead_port

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable

    from robotsgate.caching._outcome import Outcome
    from tests.servers.loopback import Answer

    Serve = Callable[..., LoopbackServer]

pytestmark = pytest.mark.anyio

RULES = b"User-agent: *\nDisallow: /private\n"
GZIPPED = gzip.compress(RULES)
HTML = b"<!doctype html><html><title>Shop</title><body>Disallow: /private</body>"
NOT_FOUND_PAGE = b"<html><head><title>Page not found</title></head></html>"
MEBIBYTE = 2**20
LARGE_FILE = RULES + b"Disallow: /a-rather-long-path\n" * 70_000
LIMIT = 512_000
HOUR, DAY = 3_600.0, 86_400.0

# What is in force: the answers for /public and /private.
RULES_DECIDE, FULL_ALLOW, FULL_DISALLOW = (True, False), (True, True), (False, False)

# For how long at least and at most.
A_DAY = (DAY, DAY)
A_MINUTE = (60.0, 66.0)
HALF_A_MINUTE = (30.0, 33.0)


@dataclass(frozen=True, slots=True)
class Row:
    """One answer of a server, and all that follows from it."""

    answer: Answer
    outcome: Outcome
    access: AccessResult
    effect: tuple[bool, bool]
    kept: tuple[float, float]


def successful(
    answer: Answer,
    body: bytes = RULES,
    *,
    effect: tuple[bool, bool] = RULES_DECIDE,
    **outcome: Any,  # noqa: ANN401 (those of Answered)
) -> Row:
    """The file was fetched."""
    expected = Answered(**{"status": 200, "body": body, **outcome})
    return Row(answer, expected, AccessResult.SUCCESSFUL, effect, A_DAY)


def unavailable(answer: Answer, outcome: Outcome) -> Row:
    """There is no file."""
    return Row(answer, outcome, AccessResult.UNAVAILABLE, FULL_ALLOW, A_DAY)


def broken_redirect(answer: Answer, *, status: int = 302, redirects: int = 0) -> Row:
    """A redirect that is not followed."""
    return unavailable(
        answer, BrokenRedirect(status=status, error=ANY, redirects=redirects)
    )


def unreachable(
    answer: Answer, outcome: Outcome, kept: tuple[float, float] = A_MINUTE
) -> Row:
    """The server failed."""
    return Row(answer, outcome, AccessResult.UNREACHABLE, FULL_DISALLOW, kept)


def failure(answer: Answer, kind: FailureKind) -> Row:
    """There was no usable response."""
    return unreachable(answer, Failed(kind=kind, error=ANY))


def coded(coding: str, body: bytes) -> Reply:
    return Reply(headers={"Content-Encoding": coding}, body=body)


def in_chunks(*pieces: bytes, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(
        status=status,
        headers={"Transfer-Encoding": "chunked", **named},
        body=chunked(*pieces),
    )


def head(status: str, *lines: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def by_path(answers: dict[str, Answer]) -> Routes:
    return Routes(answers)


def chain_of(redirects: int, last: Answer, *, status: int = 302) -> Routes:
    """So many redirects before `last`."""
    targets = ["/robots.txt", *(f"/{number}" for number in range(redirects))]
    hops: dict[str, Answer] = {
        target: redirect(following, status=status)
        for target, following in pairwise(targets)
    }
    return Routes({**hops, targets[-1]: last})


def retry_after(status: int, value: str) -> Reply:
    return Reply(status=status, headers={"Retry-After": value})


def answered_later(status: int, value: str) -> Answered:
    return Answered(status=status, headers={"retry-after": value})


SUCCESSES: dict[str, Row] = {
    "200": successful(Reply(body=RULES)),
    "200, chunked": successful(in_chunks(RULES[:5], RULES[5:])),
    "200, chunked byte by byte": successful(
        in_chunks(*(bytes([octet]) for octet in RULES))
    ),
    "200, chunked, with trailers": successful(
        Raw(
            head("200 OK", "Transfer-Encoding: chunked")
            + chunked(RULES).removesuffix(b"\r\n")
            + b"X-Trailer: yes\r\n\r\n"
        )
    ),
    "200, ended by the end of the connection": successful(Raw(head("200 OK") + RULES)),
    "200 of HTTP/1.0": successful(Raw(b"HTTP/1.0 200 OK\r\n\r\n" + RULES)),
    "200 without a reason phrase": successful(Raw(b"HTTP/1.1 200\r\n\r\n" + RULES)),
    "200 with bare line feeds": successful(Raw(b"HTTP/1.1 200 OK\n\n" + RULES)),
    "200 with rubbish after its length": successful(
        Raw(head("200 OK", f"Content-Length: {len(RULES)}") + RULES + b"rubbish")
    ),
    "200 after early hints": successful(
        Raw(head("103 Early Hints", "Link: </x>") + head("200 OK") + RULES)
    ),
    "200 after 100": successful(Raw(head("100 Continue") + head("200 OK") + RULES)),
    "200, an HTML page": successful(Reply(body=HTML), HTML, effect=FULL_ALLOW),
    "200, an HTML page that says not found": successful(
        Reply(body=NOT_FOUND_PAGE), NOT_FOUND_PAGE, effect=FULL_ALLOW
    ),
    "200, empty": successful(Reply(), b"", effect=FULL_ALLOW),
    "200, not UTF-8": successful(
        Reply(body=b"\xff\xfe\x00" + RULES), b"\xff\xfe\x00" + RULES, effect=FULL_ALLOW
    ),
    "204": successful(
        Raw(head("204 No Content"), Connection.hang),
        b"",
        effect=FULL_ALLOW,
        status=204,
    ),
    "201": successful(Reply(status=201, body=RULES), status=201),
    "206": successful(Reply(status=206, body=RULES), status=206),
    "299": successful(Reply(status=299, body=RULES), status=299),
    "gzip": successful(coded("gzip", GZIPPED)),
    "x-gzip": successful(coded("x-gzip", GZIPPED)),
    "identity": successful(coded("identity", RULES)),
    "gzip of two members": successful(
        coded("gzip", gzip.compress(RULES[:9]) + gzip.compress(RULES[9:]))
    ),
    "gzip of two members, a chunk each": successful(
        in_chunks(
            gzip.compress(RULES[:9]), gzip.compress(RULES[9:]), Content_Encoding="gzip"
        )
    ),
    "gzip, chunked byte by byte": successful(
        in_chunks(*(bytes([octet]) for octet in GZIPPED), Content_Encoding="gzip")
    ),
    "deflate": successful(coded("deflate", zlib.compress(RULES))),
    "deflate, raw": successful(
        coded("deflate", zlib.compress(RULES, wbits=-15)),
    ),
    "a file of 2 MiB": successful(Reply(body=LARGE_FILE), LARGE_FILE[: LIMIT + 1]),
    "a file of 2 MiB, gzip": successful(
        coded("gzip", gzip.compress(LARGE_FILE)), LARGE_FILE[: LIMIT + 1]
    ),
    "a file of 2 MiB, chunked": successful(
        in_chunks(LARGE_FILE[:MEBIBYTE], LARGE_FILE[MEBIBYTE:]),
        LARGE_FILE[: LIMIT + 1],
    ),
    "a file without an end": successful(
        Raw(head("200 OK") + RULES, endless(b"#" * 999)),
        RULES + b"#" * (LIMIT + 1 - len(RULES)),
    ),
    "a file cut off beyond what counts": successful(
        Raw(head("200 OK", "Content-Length: 9999999") + LARGE_FILE[: LIMIT + 100]),
        LARGE_FILE[: LIMIT + 1],
    ),
    "a file as long as counts": successful(
        Reply(body=LARGE_FILE[:LIMIT]), LARGE_FILE[:LIMIT]
    ),
    "a file one longer than counts": successful(
        Reply(body=LARGE_FILE[: LIMIT + 1]), LARGE_FILE[: LIMIT + 1]
    ),
    "a gzip bomb": successful(
        coded("gzip", gzip.compress(bytes(100 * MEBIBYTE))),
        bytes(LIMIT + 1),
        effect=FULL_ALLOW,
    ),
    **{
        f"{status}, followed": successful(
            chain_of(1, Reply(body=RULES), status=status), redirects=1
        )
        for status in (300, 301, 302, 303, 307, 308, 399)
    },
    "five redirects": successful(chain_of(5, Reply(body=RULES)), redirects=5),
    "a redirect to an empty file": successful(
        chain_of(1, Reply(status=204)), b"", effect=FULL_ALLOW, status=204, redirects=1
    ),
    "a redirect with an endless body": successful(
        by_path(
            {
                "/robots.txt": Raw(head("302 Found", "Location: /a"), endless(b"x")),
                "/a": Raw(
                    head("302 Found", "Location: /b", "Content-Length: 99999999"),
                    Connection.hang,
                ),
                "/b": Reply(body=RULES),
            }
        ),
        redirects=2,
    ),
    "a redirect with a body in a coding nobody knows": successful(
        by_path(
            {
                "/robots.txt": Raw(
                    head("302 Found", "Location: /a", "Content-Encoding: no") + b"x"
                ),
                "/a": Reply(body=RULES),
            }
        ),
        redirects=1,
    ),
}

MISSING: dict[str, Row] = {
    **{
        f"{status}": unavailable(Reply(status=status), Answered(status=status))
        for status in (400, 401, 403, 404, 405, 410, 418, 451, 499)
    },
    "404 with an endless body": unavailable(
        Raw(head("404 Not Found"), endless(b"x" * 999)), Answered(status=404)
    ),
    "404 with a body that is cut off": unavailable(
        Raw(head("404 Not Found", "Content-Length: 99") + b"x"), Answered(status=404)
    ),
    "404 with a body in a coding nobody knows": unavailable(
        Reply(status=404, headers={"Content-Encoding": "no"}, body=b"x"),
        Answered(status=404),
    ),
    "404 with rules": unavailable(Reply(status=404, body=RULES), Answered(status=404)),
    "404 after a redirect": unavailable(
        chain_of(1, Reply(status=404)), Answered(status=404, redirects=1)
    ),
    "500 that says not found": unavailable(
        Reply(status=500, body=NOT_FOUND_PAGE),
        Answered(status=500, body=NOT_FOUND_PAGE),
    ),
    "503 that says not found, gzip": unavailable(
        Reply(
            status=503,
            headers={"Content-Encoding": "gzip"},
            body=gzip.compress(NOT_FOUND_PAGE),
        ),
        Answered(status=503, body=NOT_FOUND_PAGE),
    ),
    "500 that says not found, chunked": unavailable(
        in_chunks(NOT_FOUND_PAGE[:9], NOT_FOUND_PAGE[9:], status=500),
        Answered(status=500, body=NOT_FOUND_PAGE),
    ),
    "500 that says not found, without an end": unavailable(
        Raw(head("500 No") + NOT_FOUND_PAGE, endless(b"x" * 99)),
        Answered(status=500, body=(NOT_FOUND_PAGE + b"x" * 4_096)[:4_096]),
    ),
    "six redirects": broken_redirect(chain_of(6, Reply(body=RULES)), redirects=5),
    "six redirects, the last to nowhere": broken_redirect(
        chain_of(5, redirect("mailto:a@example.com")), redirects=5
    ),
    "a redirect to itself": broken_redirect(redirect("/robots.txt")),
    "a redirect to itself by a fragment": broken_redirect(redirect("#top")),
    "a redirect loop": broken_redirect(
        by_path({"/robots.txt": redirect("/a"), "/a": redirect("/robots.txt")}),
        redirects=1,
    ),
    **{
        f"{status} without a Location": broken_redirect(
            Reply(status=status), status=status
        )
        for status in (300, 301, 302, 303, 307, 308)
    },
    "304": broken_redirect(Raw(head("304 Not Modified")), status=304),
    "a redirect to an empty Location": broken_redirect(redirect("")),
    **{
        f"a redirect to {location[:20]}": broken_redirect(redirect(location))
        for location in (
            "ftp://127.0.0.1/robots.txt",
            "file:///robots.txt",
            "data:text/plain,x",
            "javascript:alert(1)",
            "mailto:webmaster@example.com",
            "http://",
            "http://:80/",
            "http://127.0.0.1:0/",
            "http://127.0.0.1:99999/",
            "http://127.0.0.1:x/",
            "http://[::1/",
            "http://a b/",
        )
    },
    "a redirect to a Location with a control character": broken_redirect(
        Raw(b"HTTP/1.1 302 Found\r\nLocation: /a\x01b\r\n\r\n")
    ),
    "a redirect to a Location of 20,000 characters": broken_redirect(
        redirect("/" + "x" * 20_000)
    ),
}

FAILURES: dict[str, Row] = {
    **{
        f"{status}": unreachable(Reply(status=status), Answered(status=status))
        for status in (429, 500, 501, 502, 504, 520, 599)
    },
    "503": unreachable(Reply(status=503), Answered(status=503), HALF_A_MINUTE),
    "600": unreachable(Reply(status=600), Answered(status=600)),
    "999": unreachable(Reply(status=999), Answered(status=999)),
    "101": failure(
        Raw(head("101 Switching Protocols", "Upgrade: x", "Connection: upgrade")),
        FailureKind.PROTOCOL,
    ),
    **{
        f"{status} with Retry-After {value}": unreachable(
            retry_after(status, value), answered_later(status, value), kept
        )
        for status in (429, 503)
        for value, kept in (
            ("600", (600.0, 600.0)),
            ("0", (60.0, 60.0)),
            ("999999999", (DAY, DAY)),
            # ManualClock stands at 08:00:00 of that day.
            ("Fri, 15 Jan 2027 09:00:00 GMT", (HOUR, HOUR)),
            ("soon", A_MINUTE if status == 429 else HALF_A_MINUTE),
        )
    },
    "429 with rules": unreachable(
        Reply(status=429, body=RULES), Answered(status=429, body=b"")
    ),
    "429 with an endless body": unreachable(
        Raw(head("429 No"), endless(b"x")), Answered(status=429)
    ),
    "500 with an endless body": unreachable(
        Raw(head("500 No"), endless(b"x" * 99)),
        Answered(status=500, body=b"x" * 4_096),
    ),
    "500 with a body that is cut off": unreachable(
        Raw(head("500 No", "Content-Length: 99") + b"x"),
        Answered(status=500, body=b"x"),
    ),
    "500 with a body that is reset": unreachable(
        Raw(head("500 No", "Content-Length: 99") + b"x", Connection.reset),
        Answered(status=500, body=b"x"),
    ),
    "500 with a wrong chunk": unreachable(
        Raw(head("500 No", "Transfer-Encoding: chunked") + b"zz\r\n"),
        Answered(status=500),
    ),
    "500 with a body in a coding nobody knows": unreachable(
        Reply(status=500, headers={"Content-Encoding": "br"}, body=b"x"),
        Answered(status=500),
    ),
    "500 after a redirect": unreachable(
        chain_of(1, Reply(status=500)), Answered(status=500, redirects=1)
    ),
    "no answer": failure(Raw(b""), FailureKind.PROTOCOL),
    "a reset": failure(Raw(b"", Connection.reset), FailureKind.TRANSFER),
    "half a status line": failure(Raw(b"HTTP/1.1 2"), FailureKind.PROTOCOL),
    "half a head": failure(Raw(b"HTTP/1.1 200 OK\r\nX: "), FailureKind.PROTOCOL),
    "half a head and a reset": failure(
        Raw(b"HTTP/1.1 200 OK\r\nX: ", Connection.reset), FailureKind.TRANSFER
    ),
    "half a body": failure(
        Raw(head("200 OK", "Content-Length: 99") + RULES), FailureKind.PROTOCOL
    ),
    "half a body and a reset": failure(
        Raw(head("200 OK", "Content-Length: 99") + RULES, Connection.reset),
        FailureKind.TRANSFER,
    ),
    "a body without a length and a reset": failure(
        Raw(head("200 OK") + RULES, Connection.reset), FailureKind.TRANSFER
    ),
    "half a chunk": failure(
        Raw(head("200 OK", "Transfer-Encoding: chunked") + b"ff\r\nUser-agent: *"),
        FailureKind.PROTOCOL,
    ),
    "no last chunk": failure(
        Raw(
            head("200 OK", "Transfer-Encoding: chunked")
            + chunked(RULES).removesuffix(b"0\r\n\r\n")
        ),
        FailureKind.PROTOCOL,
    ),
    "a wrong size of a chunk": failure(
        Raw(head("200 OK", "Transfer-Encoding: chunked") + b"zz\r\n" + RULES),
        FailureKind.PROTOCOL,
    ),
    "a negative size of a chunk": failure(
        Raw(head("200 OK", "Transfer-Encoding: chunked") + b"-1\r\n" + RULES),
        FailureKind.PROTOCOL,
    ),
    "a chunk longer than its size": failure(
        Raw(head("200 OK", "Transfer-Encoding: chunked") + b"1\r\n" + RULES),
        FailureKind.PROTOCOL,
    ),
    "a transfer coding nobody knows": failure(
        Raw(head("200 OK", "Transfer-Encoding: gzip") + GZIPPED), FailureKind.PROTOCOL
    ),
    "a negative length": failure(
        Raw(head("200 OK", "Content-Length: -1") + RULES), FailureKind.PROTOCOL
    ),
    "two lengths": failure(
        Raw(head("200 OK", "Content-Length: 1", "Content-Length: 2") + RULES),
        FailureKind.PROTOCOL,
    ),
    "another protocol": failure(
        Raw(b"SSH-2.0-OpenSSH_9.0\r\n\r\n"), FailureKind.PROTOCOL
    ),
    "an alert of TLS": failure(
        Raw(b"\x15\x03\x01\x00\x02\x02\x28\r\n\r\n"), FailureKind.PROTOCOL
    ),
    "HTTP/0.9": failure(Raw(RULES), FailureKind.PROTOCOL),
    "HTTP/2": failure(Raw(b"HTTP/2 200\r\n\r\n" + RULES), FailureKind.PROTOCOL),
    "a status of two digits": failure(Raw(head("20 OK")), FailureKind.PROTOCOL),
    "a status below 100": failure(Raw(head("099 OK")), FailureKind.PROTOCOL),
    "a header without a colon": failure(Raw(head("200 OK", "X")), FailureKind.PROTOCOL),
    "a header with a space in its name": failure(
        Raw(head("200 OK", "X Y: z")), FailureKind.PROTOCOL
    ),
    "a header with a NUL": failure(
        Raw(b"HTTP/1.1 200 OK\r\nX: a\x00b\r\n\r\n"), FailureKind.PROTOCOL
    ),
    "a header of 200 KB": failure(
        Raw(head("200 OK", "X: " + "x" * 200_000)), FailureKind.PROTOCOL
    ),
    "headers without an end": failure(
        Raw(b"HTTP/1.1 200 OK\r\n", endless(b"X: y\r\n" * 200)), FailureKind.PROTOCOL
    ),
    "rubbish without an end": failure(
        Raw(b"", endless(b"x" * 999)), FailureKind.PROTOCOL
    ),
    "br": failure(coded("br", b"\x8b\x00\x80x\x03"), FailureKind.CODING),
    "zstd": failure(coded("zstd", b"(\xb5/\xfd"), FailureKind.CODING),
    "a coding nobody knows": failure(coded("x-own", RULES), FailureKind.CODING),
    "two codings": failure(
        coded("gzip, gzip", gzip.compress(GZIPPED)), FailureKind.CODING
    ),
    "two codings in two headers": failure(
        Raw(
            head("200 OK", "Content-Encoding: deflate", "Content-Encoding: gzip")
            + gzip.compress(zlib.compress(RULES))
        ),
        FailureKind.CODING,
    ),
    "gzip that is none": failure(coded("gzip", RULES), FailureKind.CODING),
    "gzip cut off": failure(coded("gzip", GZIPPED[:-9]), FailureKind.CODING),
    "deflate that is none": failure(coded("deflate", RULES), FailureKind.CODING),
    "deflate cut off": failure(
        coded("deflate", zlib.compress(RULES)[:-5]), FailureKind.CODING
    ),
    "half a body of gzip": failure(
        Raw(
            head("200 OK", "Content-Encoding: gzip", "Content-Length: 999")
            + GZIPPED[:-9]
        ),
        FailureKind.PROTOCOL,
    ),
    "a redirect to a failure": unreachable(
        by_path({"/robots.txt": redirect("/a"), "/a": Raw(b"", Connection.reset)}),
        Failed(kind=FailureKind.TRANSFER, error=ANY, redirects=1),
    ),
}

ROWS = SUCCESSES | MISSING | FAILURES


def test_no_row_hides_another() -> None:
    assert len(ROWS) == len(SUCCESSES) + len(MISSING) + len(FAILURES)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_answer_comes_to(serve: Serve, row: Row) -> None:
    server = serve(row.answer)

    outcome = await fetched(server.url)

    assert outcome == row.outcome
    assert server.is_left_alone()


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
async def test_verdict_on(serve: Serve, row: Row) -> None:
    server, clock = serve(row.answer), ManualClock()

    async with RobotsChecker(clock=clock) as checker:
        verdict = await checker.check("ExampleBot", f"{server.url}/public")
        effect = (
            verdict.allowed,
            await checker.can_fetch("ExampleBot", f"{server.url}/private"),
        )
        robots_txt = await checker.can_fetch("ExampleBot", f"{server.url}/robots.txt")
        stats = checker.stats

    assert verdict.access is row.access
    assert effect == row.effect
    assert robots_txt
    assert verdict.redirects == row.outcome.redirects
    assert verdict.status == getattr(row.outcome, "status", None)
    assert (verdict.error is None) == isinstance(row.outcome, Answered)
    assert row.kept[0] <= verdict.fresh_until - clock.now() <= row.kept[1]
    assert stats.fetches == 1
    assert not verdict.is_stale


@pytest.mark.parametrize("row", FAILURES.values(), ids=FAILURES)
async def test_stale_copy_answers_after(serve: Serve, row: Row) -> None:
    is_good = True

    def answer(request: Request, connection: Connection) -> None:
        reply: Answer = Reply(body=RULES) if is_good else row.answer
        reply(request, connection)

    server, clock = serve(answer), ManualClock()

    async with RobotsChecker(clock=clock) as checker:
        await checker.can_fetch("ExampleBot", server.url)
        is_good = False
        clock.advance(DAY)
        public = await checker.check("ExampleBot", f"{server.url}/public")
        private = await checker.check("ExampleBot", f"{server.url}/private")

    assert (public.allowed, private.allowed) == RULES_DECIDE
    assert public.is_stale
    assert private.is_stale
    assert public.access is AccessResult.UNREACHABLE


# --- the request ----------------------------------------------------------------


async def test_request_is_this_and_nothing_else(serve: Serve) -> None:
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


async def test_every_request_is_unconditional_and_without_cookies(
    serve: Serve,
) -> None:
    headers = {
        "ETag": '"1"',
        "Last-Modified": "Fri, 15 Jan 2027 07:00:00 GMT",
        "Set-Cookie": "session=secret; Path=/",
    }
    server, clock = serve(Reply(headers=headers, body=RULES)), ManualClock()

    async with RobotsChecker(clock=clock, user_agent=USER_AGENT) as checker:
        await checker.can_fetch("ExampleBot", server.url)
        clock.advance(DAY)
        await checker.can_fetch("ExampleBot", server.url)
        await checker.refresh(server.url)

    first, second, third = (request.head for request in server.requests)
    assert first == second == third


async def test_hop_sends_neither_userinfo_nor_fragment_nor_cookies(
    serve: Serve,
) -> None:
    other = serve(Reply(body=RULES))
    location = f"http://user:secret@127.0.0.1:{other.port}/x?y#z"
    headers = {"Location": location, "Set-Cookie": "session=secret"}
    server = serve(Reply(status=302, headers=headers))

    outcome = await fetched(server.url)

    assert outcome == Answered(status=200, body=RULES, redirects=1)
    (request,) = other.requests
    assert request.target == "/x?y"
    assert request.headers.keys() == {
        "host",
        "user-agent",
        "accept",
        "accept-encoding",
    }
    assert request.headers["host"] == f"127.0.0.1:{other.port}"
    assert b"secret" not in request.head


async def test_userinfo_of_the_asked_url_is_not_sent(serve: Serve) -> None:
    server = serve(Reply(body=RULES))

    async with RobotsChecker() as checker:
        url = server.url.replace("//", "//user:secret@")
        allowed = await checker.can_fetch("ExampleBot", f"{url}/private?a#b")

    assert not allowed
    assert b"secret" not in server.requests[0].head
    assert b"authorization" not in server.requests[0].head.lower()


# --- redirects ------------------------------------------------------------------

LOCATIONS: dict[str, tuple[str, str]] = {
    "an absolute path": ("/a/b.txt", "/a/b.txt"),
    "a relative path": ("b.txt", "/b.txt"),
    "a path with dots": ("/a/../b.txt", "/b.txt"),
    "a query": ("?a=1", "/robots.txt?a=1"),
    "a fragment": ("/b.txt#top", "/b.txt"),
    "spaces": ("/a b", "/a%20b"),
    "the same host": ("http://127.0.0.1:{port}/c", "/c"),
    "the same host without a path": ("http://127.0.0.1:{port}", "/"),
    "no scheme": ("//127.0.0.1:{port}/c", "/c"),
    "another host": ("http://localhost:{port}/c", "/c"),
    "a number as a host": ("http://2130706433:{port}/c", "/c"),
    "a scheme in capitals": ("HTTP://127.0.0.1:{port}/c", "/c"),
    "UTF-8": ("/\u00c3\u00a9", "/%C3%A9"),
    "userinfo": ("http://user:secret@127.0.0.1:{port}/c", "/c"),
}


@pytest.mark.parametrize(("location", "target"), LOCATIONS.values(), ids=LOCATIONS)
async def test_redirect_is_followed_to(
    serve: Serve, location: str, target: str
) -> None:
    routes: dict[str, Answer] = {target: Reply(body=RULES)}
    server = serve(Routes(routes))
    routes["/robots.txt"] = redirect(location.format(port=server.port))

    outcome = await fetched(server.url)

    assert outcome == Answered(status=200, body=RULES, redirects=1)
    assert server.targets == ["/robots.txt", target]


async def test_rules_behind_a_redirect_bind_the_first_origin_only(
    serve: Serve,
) -> None:
    routes: dict[str, Answer] = {"/robots.txt": Reply(), "/far": Reply(body=RULES)}
    second = serve(Routes(routes))
    first = serve(redirect(f"{second.url}/far", status=301))

    async with RobotsChecker() as checker:
        verdict = await checker.check("ExampleBot", f"{first.url}/private")
        allowed = await checker.can_fetch("ExampleBot", f"{second.url}/private")

    assert not verdict.allowed
    assert verdict.origin == first.url
    assert verdict.redirects == 1
    assert allowed
    assert second.targets == ["/far", "/robots.txt"]


async def test_redirect_to_a_dead_port_is_a_failure_after_one(serve: Serve) -> None:
    server = serve(redirect(f"http://127.0.0.1:{dead_port()}/"))

    outcome = await fetched(server.url)

    assert outcome == Failed(kind=FailureKind.CONNECT, error=ANY, redirects=1)


async def test_headers_of_the_last_response_decide_how_long_it_is_kept(
    serve: Serve,
) -> None:
    first = {"Location": "/a", "Cache-Control": "max-age=7200", "Age": "5"}
    last = Reply(headers={"Cache-Control": "max-age=600"}, body=RULES)
    server = serve(
        Routes({"/robots.txt": Reply(status=302, headers=first), "/a": last})
    )

    outcome = await fetched(server.url)

    assert outcome == Answered(
        status=200,
        headers={"cache-control": "max-age=600"},
        body=RULES,
        redirects=1,
    )


async def test_headers_of_a_broken_redirect_are_kept(serve: Serve) -> None:
    headers = {"Location": "ftp://x/", "Cache-Control": "max-age=600", "X-Is": "here"}
    server = serve(Reply(status=302, headers=headers))

    outcome = await fetched(server.url)

    assert outcome == BrokenRedirect(
        status=302, headers={"cache-control": "max-age=600"}, error=ANY
    )


@pytest.mark.parametrize("max_redirects", [0, 1, 7])
async def test_policy_says_how_many_redirects_are_followed(
    serve: Serve, max_redirects: int
) -> None:
    policy = Policy(max_redirects=max_redirects)
    enough = serve(chain_of(max_redirects, Reply(body=RULES)))
    too_many = serve(chain_of(max_redirects + 1, Reply(body=RULES)))

    followed = await fetched(enough.url, policy=policy)
    not_followed = await fetched(too_many.url, policy=policy)

    assert followed == Answered(status=200, body=RULES, redirects=max_redirects)
    assert not_followed == BrokenRedirect(
        status=302,
        error=f"more than {max_redirects} redirects",
        redirects=max_redirects,
    )
    assert len(too_many.requests) == max_redirects + 1


async def test_redirect_counts_as_the_policy_says(serve: Serve) -> None:
    server = serve(redirect("mailto:a@example.com"))

    async with RobotsChecker(policy=Policy.strict()) as checker:
        verdict = await checker.check("ExampleBot", server.url)

    assert not verdict.allowed
    assert verdict.access is AccessResult.UNREACHABLE
    assert verdict.status == 302


# --- failures below HTTP --------------------------------------------------------


async def test_dead_port_is_unreachable() -> None:
    url = f"http://127.0.0.1:{dead_port()}"

    outcome = await fetched(url)
    async with RobotsChecker() as checker:
        verdict = await checker.check("ExampleBot", url)

    assert outcome == Failed(kind=FailureKind.CONNECT, error=ANY)
    assert f"[Errno {errno.ECONNREFUSED}]" in str(outcome.error)
    assert not verdict.allowed
    assert verdict.access is AccessResult.UNREACHABLE


@pytest.fixture
def no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers as a resolver without a network, for all but addresses."""
    look_up = socket.getaddrinfo

    def getaddrinfo(host: str | bytes, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 (those of the original)
        name = host.decode() if isinstance(host, bytes) else host
        if name.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return look_up(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


@pytest.mark.usefixtures("no_names")
@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_name_that_does_not_resolve_is_unreachable(scheme: str) -> None:
    url = f"{scheme}://www.example.invalid"

    outcome = await fetched(url)
    async with RobotsChecker() as checker:
        verdict = await checker.check("ExampleBot", url)

    assert outcome == Failed(kind=FailureKind.NAME_RESOLUTION, error=ANY)
    assert not verdict.allowed
    assert verdict.access is AccessResult.UNREACHABLE


@pytest.mark.usefixtures("no_names")
async def test_redirect_to_a_name_that_does_not_resolve_is_unreachable(
    serve: Serve,
) -> None:
    server = serve(redirect("http://www.example.invalid/robots.txt"))

    outcome = await fetched(server.url)

    assert outcome == Failed(kind=FailureKind.NAME_RESOLUTION, error=ANY, redirects=1)


@pytest.mark.usefixtures("no_names")
@pytest.mark.parametrize(
    "host",
    [
        "x" * 64 + ".invalid",
        "a..b.invalid",
        ".invalid",
        "xn--.invalid",
        "xn--a\u00e9.invalid",
        "a_b.invalid",
        "-.invalid",
        ".".join(["x" * 60] * 9) + ".invalid",
        "a'b.invalid",
        'a"b.invalid',
        "a{b}.invalid",
        "a`b.invalid",
        "a,b;c=d.invalid",
        "a\u200db.invalid",
    ],
)
async def test_odd_name_is_unreachable_and_no_exception(host: str) -> None:
    outcome = await fetched(f"http://{host}/")

    assert isinstance(outcome, Failed)
    assert outcome.redirects == 0


async def test_failed_handshake_is_unreachable(
    serve: Serve, server_tls: ssl.SSLContext
) -> None:
    server = serve(Reply(body=RULES), ssl_context=server_tls)

    async with RobotsChecker() as checker:
        verdict = await checker.check("ExampleBot", server.url)

    assert not verdict.allowed
    assert verdict.access is AccessResult.UNREACHABLE
    assert server.requests == []


async def test_rules_over_https_decide(
    serve: Serve, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    server = serve(Reply(body=RULES), ssl_context=server_tls)
    transport = OneRequestTransport(ssl_context=client_tls)

    async with RobotsChecker(client=transport) as checker:
        allowed = await checker.can_fetch("ExampleBot", f"{server.url}/private")

    assert not allowed


# --- the deadline ---------------------------------------------------------------

HURRIED = Policy(fetch_deadline=0.2)

SLOW: dict[str, Answer] = {
    "says nothing": Raw(b"", Connection.hang),
    "says half a head": Raw(b"HTTP/1.1 200 OK\r\n", Connection.hang),
    "sends its head byte by byte": Raw(b"HTTP/1.1 200 OK\r\nX: ", dripping(b"x")),
    "sends 1xx slowly, without an end": Raw(b"", dripping(head("100 Continue"))),
    "says half a body": Raw(
        head("200 OK", "Content-Length: 99") + RULES, Connection.hang
    ),
    "sends its body byte by byte": Raw(head("200 OK") + RULES, dripping(b"#")),
    "redirects slowly": Routes(
        {
            "/robots.txt": Late(0.08, redirect("/1")),
            **{f"/{n}": Late(0.08, redirect(f"/{n + 1}")) for n in range(1, 6)},
        }
    ),
}


@pytest.mark.parametrize("answer", SLOW.values(), ids=SLOW)
async def test_deadline_ends_a_fetch_from_a_server_that(
    serve: Serve, answer: Answer
) -> None:
    server = serve(answer)
    began_at = anyio.current_time()

    outcome = await fetched(server.url, policy=HURRIED)

    # The deadline may fall between following a redirect and the server's seeing it.
    assert isinstance(outcome, Failed)
    assert outcome.redirects in {len(server.requests) - 1, len(server.requests)}
    assert outcome == Failed(
        kind=FailureKind.TIMEOUT,
        error="no answer within 0.2 s",
        redirects=outcome.redirects,
    )
    assert anyio.current_time() - began_at < 10  # the server would go on for ever
    assert server.is_left_alone()


async def test_body_that_decodes_to_nothing_is_given_up_before_the_deadline(
    serve: Serve,
) -> None:
    empty_members = endless(gzip.compress(b"") * 50)
    server = serve(Raw(head("200 OK", "Content-Encoding: gzip"), empty_members))

    outcome = await fetched(server.url)

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.CODING
    assert "decode to hardly anything" in outcome.error


async def test_octets_behind_the_end_of_a_coding_are_not_waited_for(
    serve: Serve,
) -> None:
    start = head("200 OK", "Content-Encoding: deflate") + zlib.compress(RULES)
    server = serve(Raw(start, endless(b"\0")))

    outcome = await fetched(server.url)

    assert outcome == Answered(status=200, body=RULES)


async def test_body_that_never_suspends_is_given_up() -> None:
    class EndlessBody(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                yield b""

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, stream=EndlessBody())

    outcome = await fetched(
        "http://example.com",
        policy=HURRIED,
        client=httpx.MockTransport(answer),
    )

    assert outcome == Failed(kind=FailureKind.CODING, error=ANY)


@pytest.mark.parametrize("is_client", [True, False], ids=["client", "transport"])
async def test_international_name_that_idna_2008_refuses_is_asked(
    *, is_client: bool
) -> None:
    """IDNA 2008 has no emoji; browsers and name servers do."""
    hosts = []

    def answer(request: httpx.Request) -> httpx.Response:
        hosts.append((request.url.raw_host, request.headers["host"]))
        return httpx.Response(200, content=RULES)

    transport = httpx.MockTransport(answer)
    async with httpx.AsyncClient(transport=transport) as client:
        outcome = await fetched(
            "http://i\u2764.ws:8080", client=client if is_client else transport
        )

    assert outcome == Answered(status=200, body=RULES)
    assert hosts == [(b"xn--i-7iq.ws", "xn--i-7iq.ws:8080")]


async def test_deadline_makes_an_origin_unreachable(serve: Serve) -> None:
    server = serve(Raw(b"", Connection.hang))

    async with RobotsChecker(policy=HURRIED) as checker:
        verdict = await checker.check("ExampleBot", server.url)

    assert not verdict.allowed
    assert verdict.access is AccessResult.UNREACHABLE
    assert verdict.error == "no answer within 0.2 s"


async def test_deadline_ends_a_handshake(
    serve: Serve, client_tls: ssl.SSLContext
) -> None:
    server = serve(Raw(b"", Connection.hang), reads_requests=False)
    url = server.url.replace("http:", "https:")
    transport = OneRequestTransport(ssl_context=client_tls)

    outcome = await fetched(url, policy=HURRIED, client=transport)

    assert outcome == Failed(kind=FailureKind.TIMEOUT, error=ANY)
    assert server.is_left_alone()


@pytest.mark.parametrize(
    "then", [Connection.hang, dripping(b"x")], ids=["hangs", "drips"]
)
@pytest.mark.parametrize("octets", [b"", b"<title>Error"], ids=["empty", "begun"])
async def test_error_page_that_never_ends_does_not_lose_its_status(
    serve: Serve, octets: bytes, then: Callable[[Connection], None]
) -> None:
    """The status and Retry-After were here: the page is not worth losing them."""
    answer = Raw(head("503 No", "Retry-After: 600") + octets, then)
    server = serve(answer)

    outcome = await fetched(server.url, policy=HURRIED)

    assert isinstance(outcome, Answered)
    assert outcome.status == 503
    assert outcome.headers == {"retry-after": "600"}


async def test_error_page_is_not_read_where_the_policy_does_not_want_it(
    serve: Serve,
) -> None:
    server = serve(Raw(head("503 No") + NOT_FOUND_PAGE, Connection.hang))

    outcome = await fetched(server.url, policy=Policy(detect_missing_page=False))

    assert outcome == Answered(status=503)


@pytest.mark.parametrize("max_body_bytes", [0, 1, 100])
async def test_policy_says_how_much_of_a_body_counts(
    serve: Serve, max_body_bytes: int
) -> None:
    server = serve(Reply(body=LARGE_FILE))

    outcome = await fetched(server.url, policy=Policy(max_body_bytes=max_body_bytes))

    assert outcome == Answered(status=200, body=LARGE_FILE[: max_body_bytes + 1])


# --- limits ---------------------------------------------------------------------


async def test_fetch_that_is_cancelled_gives_its_slot_back(serve: Serve) -> None:
    hanging, prompt = serve(Raw(b"", Connection.hang)), serve(Reply(body=RULES))
    fetcher = Fetcher(
        None, user_agent=USER_AGENT, policy=Policy(), max_concurrent_fetches=1
    )

    for _ in range(3):
        with anyio.move_on_after(0.05):
            await fetcher.fetch(Origin.from_url(hanging.url))
    with anyio.fail_after(5):
        outcome = await fetcher.fetch(Origin.from_url(prompt.url))

    assert outcome == Answered(status=200, body=RULES)


async def test_waiting_for_a_slot_does_not_count_against_the_deadline(
    serve: Serve,
) -> None:
    hanging, prompt = serve(Raw(b"", Connection.hang)), serve(Reply(body=RULES))
    fetcher = Fetcher(
        None, user_agent=USER_AGENT, policy=HURRIED, max_concurrent_fetches=1
    )
    outcomes: dict[str, Outcome] = {}

    async def fetch(url: str) -> None:
        outcomes[url] = await fetcher.fetch(Origin.from_url(url))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(fetch, hanging.url)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(fetch, prompt.url)

    assert outcomes[hanging.url] == Failed(kind=FailureKind.TIMEOUT, error=ANY)
    assert outcomes[prompt.url] == Answered(status=200, body=RULES)


# --- without sockets ------------------------------------------------------------

STATUSES: dict[int, tuple[AccessResult, tuple[bool, bool]]] = {
    **dict.fromkeys((200, 203, 226), (AccessResult.SUCCESSFUL, RULES_DECIDE)),
    **dict.fromkeys(
        (301, 302, 400, 401, 403, 404, 410, 418, 451),
        (AccessResult.UNAVAILABLE, FULL_ALLOW),
    ),
    **dict.fromkeys(
        (101, 429, 500, 502, 503, 504, 600, 999),
        (AccessResult.UNREACHABLE, FULL_DISALLOW),
    ),
}


def mock_transport(status: int) -> httpx.MockTransport:
    return httpx.MockTransport(lambda _: httpx.Response(status, content=RULES))


@pytest.mark.parametrize(
    ("status", "access", "effect"),
    [(status, *expected) for status, expected in STATUSES.items()],
)
@pytest.mark.parametrize("way", ["transport", "client", "respx", "respx, client"])
async def test_status_means_the_same_without_sockets(
    way: str, status: int, access: AccessResult, effect: tuple[bool, bool]
) -> None:
    url = "http://example.com"
    client: httpx.AsyncClient | httpx.MockTransport | None = None
    if way == "transport":
        client = mock_transport(status)
    if way == "client":
        client = httpx.AsyncClient(transport=mock_transport(status))
    if way == "respx, client":
        client = httpx.AsyncClient()

    with respx.mock(assert_all_called="respx" in way) as mocked:
        mocked.get(f"{url}/robots.txt").respond(status, content=RULES)
        async with RobotsChecker(client=client) as checker:
            verdict = await checker.check("ExampleBot", f"{url}/public")
            allowed = await checker.can_fetch("ExampleBot", f"{url}/private")
    if client is not None:
        await client.aclose()

    assert verdict.access is access
    assert verdict.status == status
    assert (verdict.allowed, allowed) == effect


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (httpx.ConnectError("x"), FailureKind.CONNECT),
        (httpx.ConnectTimeout("x"), FailureKind.TIMEOUT),
        (httpx.ReadTimeout("x"), FailureKind.TIMEOUT),
        (httpx.ReadError("x"), FailureKind.TRANSFER),
        (httpx.RemoteProtocolError("x"), FailureKind.PROTOCOL),
        (httpx.UnsupportedProtocol("x"), FailureKind.OTHER),
        (httpx.InvalidURL("x"), FailureKind.OTHER),
        (OSError("x"), FailureKind.CONNECT),
        (UnicodeError("x"), FailureKind.NAME_RESOLUTION),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_error_of_a_transport_is_a_failure(
    error: Exception, kind: FailureKind
) -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    outcome = await fetched("http://example.com", client=httpx.MockTransport(fail))

    assert outcome == Failed(kind=kind, error=ANY)
    assert outcome.cause is error


async def test_mistake_in_a_transport_is_raised() -> None:
    def fail(_: httpx.Request) -> httpx.Response:
        raise KeyError

    with pytest.raises(KeyError):
        await fetched("http://example.com", client=httpx.MockTransport(fail))


async def test_response_that_cannot_be_closed_still_counts() -> None:
    """What was read is whole; the trouble comes after it."""

    class Stubborn(httpx.ByteStream):
        async def aclose(self) -> None:
            message = "already gone"
            raise httpx.CloseError(message)

    transport = httpx.MockTransport(
        lambda _: httpx.Response(200, stream=Stubborn(RULES))
    )

    outcome = await fetched("http://example.com", client=transport)

    assert outcome == Answered(status=200, body=RULES)
