"""Credentials do not leak into requests, stores, logs, events or messages."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import httpx
import httpx2
import pytest

from robotsgate import MemoryStore, RobotsChecker, RobotsError
from robotsgate.testing import FakeSite
from tests.servers.answers import Reply, Routes, redirect
from tests.servers.loopback import Connection, dead_port

if TYPE_CHECKING:
    from types import ModuleType

    from robotsgate import Verdict
    from robotsgate.events import CheckerEvent
    from robotsgate.stores._base import Change
    from tests.servers.loopback import Serve

pytestmark = pytest.mark.anyio

SECRET = "hunter2"


class RecordingStore(MemoryStore):
    """Records what it is given to store."""

    def __init__(self) -> None:
        super().__init__()
        self.stored: list[object] = []

    async def update(self, key: str, change: Change) -> None:
        await super().update(key, change)
        self.stored.append((key, await self.get(key)))


def with_secret(url: str) -> str:
    return url.replace("://", f"://user:{SECRET}@")


async def test_userinfo_appears_nowhere(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither from the caller's URL nor from a Location."""
    last = serve(Reply(body=b"User-agent: *\nDisallow: /"))
    first = serve(redirect(with_secret(f"{last.url}/file")))
    broken = serve(redirect(f"ftp://user:{SECRET}@example.com/"))
    dead = f"http://127.0.0.1:{dead_port()}"
    silent = serve(lambda _request, connection: Connection.close(connection))
    store = RecordingStore()
    events: list[CheckerEvent] = []
    verdicts: list[Verdict] = []

    with caplog.at_level(logging.DEBUG, "robotsgate"):
        async with RobotsChecker(
            user_agent="Bot", store=store, on_event=events.append
        ) as checker:
            for url in (first.url, broken.url, dead, silent.url):
                secret_url = with_secret(f"{url}/page")
                verdicts.append(await checker.check("Bot", secret_url))
                await checker.can_fetch_many("Bot", [secret_url])
                await checker.refresh(secret_url)

    texts = [str(verdict) + repr(verdict.as_dict()) for verdict in verdicts]
    assert len(store.stored) == 8
    assert len(events) == 8
    assert SECRET not in repr([texts, verdicts, events, store.stored, checker.stats])
    assert SECRET not in caplog.text
    for request in [*first.requests, *last.requests, *broken.requests]:
        assert SECRET.encode() not in request.head
        assert "authorization" not in request.headers


async def test_userinfo_is_not_in_exceptions() -> None:
    url = f"https://user:{SECRET}@a.test/"

    async with RobotsChecker(client=FakeSite()) as checker:
        for call in (
            lambda: checker.prefetch(url),
            lambda: checker.can_fetch_many("Bot", url),
            lambda: checker.can_fetch(url, url),
        ):
            with pytest.raises((TypeError, RobotsError)) as caught:
                await call()
            assert SECRET not in str(caught.value)


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
async def test_clients_own_headers_are_sent_to_the_first_origin_only(
    serve: Serve, library: ModuleType
) -> None:
    """Custom headers used to be resent after a redirect, and its cookies were kept."""
    cookie = {"Set-Cookie": "session=secret; Path=/"}
    answers = {"/b": Reply(body=b"User-agent: *\nDisallow: /", headers=cookie)}
    first = serve(Routes(answers))
    other = serve(redirect(f"{first.url}/b"))
    location = {"Location": f"{other.url}/a"}
    answers["/robots.txt"] = Reply(status=302, headers={**location, **cookie})
    headers = {"X-Api-Key": SECRET, "Authorization": SECRET, "Cookie": SECRET}

    async with (
        library.AsyncClient(
            headers=headers, auth=("user", SECRET), cookies={"mine": SECRET}
        ) as client,
        RobotsChecker(user_agent="Bot", client=client) as checker,
    ):
        is_allowed = await checker.can_fetch("Bot", f"{first.url}/page")

    assert not is_allowed
    initial_request, redirected_request = first.requests
    assert initial_request.headers["x-api-key"] == SECRET
    assert initial_request.head.count(SECRET.encode()) == 1
    for request in (*other.requests, redirected_request):
        assert SECRET.encode() not in request.head
    assert dict(client.cookies) == {"mine": SECRET}
