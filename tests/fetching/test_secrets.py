"""What a URL or a server entrusts to a crawler stays where it belongs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from robotsgate import MemoryStore, RobotsChecker, RobotsError, Verdict
from robotsgate.testing import FakeSite, ManualClock
from tests.servers.answers import Raw, Reply, Routes, redirect
from tests.servers.loopback import Connection, dead_port

if TYPE_CHECKING:
    from collections.abc import Callable

    from robotsgate import CheckerEvent, Entry
    from tests.servers.loopback import LoopbackServer

    Serve = Callable[..., LoopbackServer]

pytestmark = pytest.mark.anyio

SECRET = "hunter2"
BODY = b"User-agent: *\nDisallow: /body-of-the-file\n"


class OpenStore(MemoryStore):
    """Shows what it was given to keep."""

    def __init__(self) -> None:
        super().__init__()
        self.entries: list[Entry] = []

    async def put(self, entry: Entry) -> None:
        self.entries.append(entry)
        await super().put(entry)


def with_secret(url: str) -> str:
    return url.replace("://", f"://user:{SECRET}@")


def seen_by(servers: list[LoopbackServer]) -> bytes:
    return b"".join(one.head for server in servers for one in server.requests)


async def test_userinfo_is_nowhere(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither that of the caller's URL nor that of a Location.

    The debug log of httpcore shows headers as they came, a Location among them.
    """
    last = serve(Reply(body=BODY))
    first = serve(redirect(with_secret(f"{last.url}/file")))
    broken = serve(redirect(f"ftp://user:{SECRET}@example.com/"))
    dead = f"http://127.0.0.1:{dead_port()}"
    silent = serve(lambda _request, connection: Connection.close(connection))
    store = OpenStore()
    events: list[CheckerEvent] = []
    verdicts: list[Verdict] = []

    with caplog.at_level(logging.DEBUG, "robotsgate"):
        async with RobotsChecker(store=store, on_event=events.append) as checker:
            for url in (first.url, broken.url, dead, silent.url):
                question = with_secret(f"{url}/page")
                verdicts.append(await checker.check("Bot", question))
                verdicts.append(await checker.check("Bot", question))
                await checker.can_fetch_many("Bot", [question])
                await checker.refresh(question)
                await checker.robots_txt(question)

    said = [str(verdict) + repr(verdict.as_dict()) for verdict in verdicts]
    assert len(verdicts) == 8
    assert store.entries
    assert events
    assert SECRET not in repr([said, verdicts, events, store.entries, checker.stats])
    assert SECRET not in caplog.text
    assert SECRET.encode() not in seen_by([first, last, broken, silent])
    assert b"authorization" not in seen_by([first, last]).lower()


async def test_body_and_cookies_are_in_no_log(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    cookie = {"Set-Cookie": f"session={SECRET}"}
    server = serve(Reply(headers=cookie, body=BODY))
    page = b"<title>Not found</title> body-of-the-file"
    error = serve(Reply(status=500, headers=cookie, body=page))

    with caplog.at_level(logging.DEBUG, "robotsgate"):
        async with RobotsChecker() as checker:
            for url in (server.url, error.url):
                await checker.check("Bot", f"{url}/body-of-the-file")

    assert caplog.records
    assert "body-of-the-file" not in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.parametrize("has_client", [False, True])
async def test_cookie_of_one_origin_is_sent_to_none(
    serve: Serve, *, has_client: bool
) -> None:
    """Ports do not part cookies, so a client would send them to the next origin."""
    cookie = {"Set-Cookie": f"session={SECRET}; Path=/"}
    clock = ManualClock()
    second = serve(Reply(headers=cookie, body=BODY))
    first = serve(
        Routes(
            {
                "/robots.txt": Reply(
                    status=302, headers={"Location": "/file", **cookie}
                ),
                "/file": Reply(headers=cookie, body=BODY),
            }
        )
    )

    async with httpx.AsyncClient(cookies={"session": SECRET}) as client:
        checker = RobotsChecker(client=client if has_client else None, clock=clock)
        async with checker:
            for _ in range(2):
                await checker.prefetch([first.url, second.url])
                clock.advance(8 * 86_400)

    assert len(first.requests) == 4
    assert len(second.requests) == 2
    assert b"cookie" not in seen_by([first, second]).lower()
    assert SECRET.encode() not in seen_by([first, second])


@pytest.mark.parametrize(
    "octets",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + BODY + b"x" * 9_000,
        b"HTTP/1.1 302 Found\r\nLocation: http://user:hunter2@a.test/\x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nSet-Cookie: session=hunter2\x00\r\n\r\n" + BODY,
    ],
    ids=["a body where chunks should be", "a broken Location", "a broken cookie"],
)
async def test_octets_that_are_no_http_are_not_quoted(
    serve: Serve, caplog: pytest.LogCaptureFixture, octets: bytes
) -> None:
    server = serve(Raw(octets))

    with caplog.at_level(logging.DEBUG, "robotsgate"):
        async with RobotsChecker() as checker:
            verdict = await checker.check("Bot", server.url)

    for text in (str(verdict), caplog.text):
        assert SECRET not in text
        assert "body-of-the-file" not in text


@pytest.mark.parametrize("kind", [dict, tuple])
async def test_entry_that_is_refused_is_not_shown(
    caplog: pytest.LogCaptureFixture, kind: type
) -> None:
    class RubbishStore(MemoryStore):
        async def get(self, origin: str) -> Any:  # noqa: ANN401 (rubbish)
            return kind([(origin, BODY)])

    async with RobotsChecker(store=RubbishStore(), client=FakeSite()) as checker:
        await checker.prefetch(["http://a.test"])

    assert checker.stats.store_failures == 1
    assert "body-of-the-file" not in caplog.text


async def test_userinfo_is_not_in_what_is_raised() -> None:
    url = f"https://user:{SECRET}@a.test/"

    async with RobotsChecker(client=FakeSite()) as checker:
        for call in (
            lambda: checker.prefetch(url),
            lambda: checker.can_fetch_many("Bot", url),
            lambda: checker.usage_preferences("Bot", url),
            lambda: checker.usage_preferences(url, url),
        ):
            with pytest.raises((TypeError, RobotsError)) as caught:
                await call()
            assert SECRET not in str(caught.value)
