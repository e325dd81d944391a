"""The address guard from lookup to socket, and which connections it cannot see."""

from __future__ import annotations

import logging
import socket
from threading import Event
from typing import TYPE_CHECKING, NoReturn
from unittest.mock import ANY

import httpx
import pytest

from robotsgate import (
    AddressGuard,
    FailureKind,
    FetchedResponse,
    Policy,
    RobotsChecker,
)
from robotsgate.caching._outcome import Outcome
from robotsgate.fetching import counts_as_public
from robotsgate.testing import FakeSite
from tests.fetching.fetches import RULES, Followed, fetched
from tests.fetching.switchboard import Switchboard
from tests.servers.answers import Reply, redirect
from tests.servers.loopback import dead_port
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import Serve

pytestmark = pytest.mark.anyio

PUBLIC, OTHER_PUBLIC, PRIVATE = "93.184.216.34", "1.1.1.1", "10.0.0.1"

PUBLIC_ONLY = Policy(address_guard=AddressGuard.PUBLIC_ONLY)


async def test_redirect_between_public_addresses_is_followed_by_name(
    serve: Serve,
) -> None:
    first = serve(redirect("http://b.test:8080/robots.txt"))
    second = serve(Reply(body=RULES))
    names = {"a.test": [PUBLIC], "b.test": [OTHER_PUBLIC]}
    board = Switchboard(names, {PUBLIC: first, OTHER_PUBLIC: second})

    outcome = await fetched("http://a.test", client=board.client())

    assert outcome == Outcome(status=200, body=RULES, redirects=Followed(1))
    assert board.dialled == [PUBLIC, OTHER_PUBLIC]
    assert second.requests[0].headers["host"] == "b.test:8080"


async def test_name_is_resolved_once_per_hop_and_that_address_is_dialled(
    serve: Serve,
) -> None:
    """DNS rebinding: a second lookup would return a private address."""
    server = serve(Reply(body=RULES))
    board = Switchboard({"a.test": [PUBLIC, PRIVATE]}, {PUBLIC: server})
    policy = Policy(address_guard=AddressGuard.PUBLIC_ONLY)

    outcome = await fetched("http://a.test", client=board.client(), policy=policy)

    assert outcome == Outcome(status=200, body=RULES)
    assert board.looked_up == ["a.test"]
    assert board.dialled == [PUBLIC]


async def test_name_that_is_rebound_between_two_hops_is_refused(
    serve: Serve,
) -> None:
    server = serve(redirect("/again"))
    board = Switchboard({"a.test": [PUBLIC, PRIVATE]}, {PUBLIC: server})

    outcome = await fetched("http://a.test", client=board.client())

    assert outcome == Outcome(
        failure=FailureKind.ADDRESS_REFUSED, error=ANY, redirects=Followed(1)
    )
    assert board.dialled == [PUBLIC]


@cases("address is_public", {
    "a public address": (PUBLIC, True),
    "a private address": (PRIVATE, False),
    "a private address in IPv6": (f"::ffff:{PRIVATE}", False),
    "an address in an allowed network": ("10.20.0.1", True),
})  # fmt: skip
def test_counts_as_public_follows_the_rules_for_fetches(
    address: str, *, is_public: bool
) -> None:
    policy = Policy(allowed_networks=["10.20.0.0/16"])

    assert counts_as_public(address, policy) is is_public


async def test_special_addresses_of_a_name_are_skipped(serve: Serve) -> None:
    server = serve(Reply(body=RULES))
    board = Switchboard({"a.test": [f"{PRIVATE} {PUBLIC}"]}, {PUBLIC: server})
    policy = Policy(address_guard=AddressGuard.PUBLIC_ONLY)

    outcome = await fetched("http://a.test", client=board.client(), policy=policy)

    assert outcome == Outcome(status=200, body=RULES)
    assert board.dialled == [PUBLIC]


# --- the caller's own client or transport -------------------------------------------


def site(request: httpx.Request) -> httpx.Response:
    if request.url.host in {"a.test", "10.9.9.9"}:
        return httpx.Response(302, headers={"Location": "http://10.0.0.1/"})
    return httpx.Response(200, content=RULES)


class SiteFetcher:
    """A `Fetcher` for `site`."""

    async def get(self, url: str, headers: object, *, max_bytes: int) -> object:
        del headers, max_bytes
        response = site(httpx.Request("GET", url))
        return FetchedResponse(
            status=response.status_code,
            headers=response.headers.items(),
            body=response.content,
            is_decoded=True,
        )


@cases("client", {
    "a client": (httpx.AsyncClient(transport=httpx.MockTransport(site)),),
    "a transport": (httpx.MockTransport(site),),
    "a fetcher": (SiteFetcher(),),
})  # fmt: skip
async def test_address_in_a_redirect_is_refused_before_the_callers_client_dials(
    client: object,
) -> None:
    outcome = await fetched("http://a.test", client=client)
    internal = await fetched("http://10.9.9.9", client=client)

    assert outcome == Outcome(
        failure=FailureKind.ADDRESS_REFUSED, error=ANY, redirects=Followed(1)
    )
    assert internal == Outcome(status=200, body=RULES, redirects=Followed(1))


@pytest.fixture
def log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> pytest.LogCaptureFixture:
    """The warnings of a process that has not warned yet."""
    monkeypatch.setattr("robotsgate.fetching._robots_fetch._warned", set())
    caplog.set_level(logging.WARNING, "robotsgate.fetching")
    return caplog


async def test_process_warns_once_that_the_guard_cannot_see_what_clients_dial(
    log: pytest.LogCaptureFixture,
) -> None:
    """A job with a checker in each of its tasks used to log it 32 times."""
    client = httpx.AsyncClient(transport=httpx.MockTransport(site))

    for url in ("http://b.test", "http://c.test"):
        await fetched(url, client=client)

    assert len(log.records) == 1
    assert "cannot see which addresses your client connects" in log.messages[0]
    assert "off with policy=Policy(address_guard=AddressGuard.OFF)" in log.messages[0]


async def test_nothing_is_logged_if_the_guard_is_off_or_sees_every_address(
    log: pytest.LogCaptureFixture, serve: Serve
) -> None:
    server = serve(Reply(body=RULES))

    async with httpx.AsyncClient() as client:
        policy = Policy(address_guard=AddressGuard.OFF)
        await fetched(server.url, client=client, policy=policy)
    await fetched("http://a.test", client=FakeSite())
    await fetched("http://a.test", client=httpx.MockTransport(site))
    await fetched(server.url)

    assert log.records == []


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "http_proxy", "ALL_PROXY"])
async def test_process_warns_once_that_a_checker_uses_no_proxy(
    monkeypatch: pytest.MonkeyPatch, log: pytest.LogCaptureFixture, variable: str
) -> None:
    monkeypatch.setenv(variable, "http://proxy.test:3128")

    for client in (FakeSite(), None, None):
        RobotsChecker(user_agent="Bot", client=client)

    assert [message.partition(",")[0] for message in log.messages] == [
        f"{variable} is set"
    ]


def no_such_name(*_: object, **__: object) -> NoReturn:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def no_answer(*_: object, **__: object) -> NoReturn:
    Event().wait(0.5)
    raise TimeoutError


def loopback(*_: object, **__: object) -> list[object]:
    return [(0, 0, 0, "", ("127.0.0.1", 1))]


@cases("look_up connect_timeout error", {
    "no such name": (no_such_name, 30, "Name or service not known"),
    "no answer in time": (no_answer, 0.1, "ConnectTimeout: no response in time"),
    "nothing listening": (loopback, 30, "refused"),
})  # fmt: skip
async def test_verdict_after_a_failed_connection_names_the_unused_proxy(
    monkeypatch: pytest.MonkeyPatch,
    look_up: Callable[..., object],
    connect_timeout: float,
    error: str,
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    url = f"http://h.test:{dead_port()}/"
    policy = Policy(connect_timeout=connect_timeout)

    async with RobotsChecker(user_agent="Bot", policy=policy) as checker:
        verdict = await checker.check("Bot", url)
    monkeypatch.setenv("ALL_PROXY", "http://proxy.test:3128")
    async with RobotsChecker(user_agent="Bot", policy=policy) as checker:
        hinted = await checker.check("Bot", url)

    hint = f"{error}; the checker used no proxy, although ALL_PROXY is set"
    assert f"{error})" in str(verdict)
    assert f"{hint})" in str(hinted)
