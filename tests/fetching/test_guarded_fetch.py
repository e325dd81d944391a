"""The address guard from the question to the socket, and what it cannot see."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import httpx
import pytest

from robotsgate import (
    AccessResult,
    AddressGuard,
    MemoryStore,
    Policy,
    Reason,
    RobotsChecker,
)
from robotsgate.caching._outcome import Answered, Failed, FailureKind
from robotsgate.testing import FakeSite, ManualClock
from tests.fetching.fetches import fetched
from tests.fetching.switchboard import Switchboard
from tests.servers.answers import Reply, Routes, redirect

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.servers.loopback import LoopbackServer

    Serve = Callable[..., LoopbackServer]

pytestmark = pytest.mark.anyio

RULES = b"User-agent: *\nDisallow: /private\n"
PUBLIC, OTHER_PUBLIC, PRIVATE = "93.184.216.34", "1.1.1.1", "10.0.0.1"

PUBLIC_ONLY = Policy(address_guard=AddressGuard.PUBLIC_ONLY)

SPECIAL_TARGETS = {
    "a private number": "http://10.0.0.1/",
    "loopback": "http://127.0.0.1/",
    "loopback in short": "http://127.1/",
    "loopback as one number": "http://2130706433/",
    "loopback in octal": "http://0177.0.0.1/",
    "nothing in particular": "http://0.0.0.0/",
    "loopback of IPv6": "http://[::1]/",
    "mapped": "http://[::ffff:10.0.0.1]/",
    "translated by NAT64": "http://[64:ff9b::a00:1]/",
    "tunnelled by 6to4": "http://[2002:a00:1::]/",
    "unique local": "http://[fd00::1]/",
    "metadata": "http://169.254.169.254/latest/",
    "a name that resolves to a private address": "http://intern.test/",
}


@pytest.mark.parametrize("target", SPECIAL_TARGETS.values(), ids=SPECIAL_TARGETS)
async def test_redirect_into_a_closed_network_is_refused(
    serve: Serve, target: str
) -> None:
    server = serve(redirect(target))
    names = {"a.test": [PUBLIC], "intern.test": [PRIVATE]}
    board = Switchboard(names, {PUBLIC: server})

    outcome = await fetched("http://a.test", client=board.transport())

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.ADDRESS_REFUSED
    assert outcome.redirects == 1
    assert "the address guard refuses" in outcome.error
    assert board.dialled == [PUBLIC]


async def test_redirect_between_public_addresses_is_followed(serve: Serve) -> None:
    first = serve(redirect("http://b.test/robots.txt"))
    second = serve(Reply(body=RULES))
    names = {"a.test": [PUBLIC], "b.test": [OTHER_PUBLIC]}
    board = Switchboard(names, {PUBLIC: first, OTHER_PUBLIC: second})

    outcome = await fetched("http://a.test", client=board.transport())

    assert outcome == Answered(status=200, body=RULES, redirects=1)
    assert board.dialled == [PUBLIC, OTHER_PUBLIC]


async def test_redirect_within_a_closed_network_is_followed(serve: Serve) -> None:
    first = serve(redirect("http://10.0.0.2/robots.txt"))
    second = serve(Reply(body=RULES))
    board = Switchboard({"a.test": [PRIVATE]}, {PRIVATE: first, "10.0.0.2": second})

    outcome = await fetched("http://a.test", client=board.transport())

    assert outcome == Answered(status=200, body=RULES, redirects=1)


async def test_name_is_resolved_once_for_each_hop_and_that_address_is_dialled(
    serve: Serve,
) -> None:
    """DNS rebinding: the name would mean a private address the second time."""
    server = serve(Reply(body=RULES))
    board = Switchboard({"a.test": [PUBLIC, PRIVATE]}, {PUBLIC: server})
    policy = Policy(address_guard=AddressGuard.PUBLIC_ONLY)

    outcome = await fetched("http://a.test", client=board.transport(), policy=policy)

    assert outcome == Answered(status=200, body=RULES)
    assert board.looked_up == ["a.test"]
    assert board.dialled == [PUBLIC]


async def test_name_that_is_bound_anew_between_two_hops_is_refused(
    serve: Serve,
) -> None:
    server = serve(redirect("/again"))
    board = Switchboard({"a.test": [PUBLIC, PRIVATE]}, {PUBLIC: server})

    outcome = await fetched("http://a.test", client=board.transport())

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.ADDRESS_REFUSED
    assert board.dialled == [PUBLIC]


async def test_special_addresses_of_a_name_are_left_out(serve: Serve) -> None:
    server = serve(Reply(body=RULES))
    board = Switchboard({"a.test": [f"{PRIVATE} {PUBLIC}"]}, {PUBLIC: server})
    policy = Policy(address_guard=AddressGuard.PUBLIC_ONLY)

    outcome = await fetched("http://a.test", client=board.transport(), policy=policy)

    assert outcome == Answered(status=200, body=RULES)
    assert board.dialled == [PUBLIC]


async def test_guard_that_is_off_refuses_nothing(serve: Serve) -> None:
    first, second = serve(redirect("http://10.0.0.1/")), serve(Reply(body=RULES))
    board = Switchboard({"a.test": [PUBLIC]}, {PUBLIC: first, PRIVATE: second})
    policy = Policy(address_guard=AddressGuard.OFF)

    outcome = await fetched("http://a.test", client=board.transport(), policy=policy)

    assert outcome == Answered(status=200, body=RULES, redirects=1)


async def test_certificate_and_name_are_still_those_of_the_host(serve: Serve) -> None:
    """The number is dialled, but the name is what the server is asked for."""
    server = serve(Reply(body=RULES))
    board = Switchboard({"a.test": [PUBLIC]}, {PUBLIC: server})

    await fetched("http://a.test:8080", client=board.transport())

    assert server.requests[0].headers["host"] == "a.test:8080"


@pytest.mark.parametrize("path", ["/", "/private", "/robots.txt"])
async def test_refused_origin_is_disallowed_whole(serve: Serve, path: str) -> None:
    server = serve(redirect("http://10.0.0.1/"))
    board = Switchboard({"a.test": [PUBLIC]}, {PUBLIC: server})
    url = f"http://a.test{path}"

    async with RobotsChecker(client=board.transport()) as checker:
        verdict = await checker.check("ExampleBot", url)
        answers = await checker.can_fetch_many("ExampleBot", [url])

        assert not await checker.can_fetch("ExampleBot", url)
        assert checker.peek("ExampleBot", url) is False
        assert checker.peek(["ExampleBot"], url) is False
    assert answers == [False]
    assert not verdict.allowed
    assert verdict.reason is Reason.ADDRESS_REFUSED
    assert verdict.access is AccessResult.UNREACHABLE
    assert "10.0.0.1" in str(verdict)


async def test_refusal_is_never_allowed_however_long_it_lasts(serve: Serve) -> None:
    server = serve(redirect("http://10.0.0.1/"))
    board = Switchboard({"a.test": [PUBLIC]}, {PUBLIC: server})
    clock = ManualClock()

    async with RobotsChecker(client=board.transport(), clock=clock) as checker:
        for _ in range(40):
            assert not await checker.can_fetch("ExampleBot", "http://a.test/")
            clock.advance(86_400)


async def test_refusal_takes_the_place_of_a_good_copy(serve: Serve) -> None:
    answers: dict[str, object] = {"/robots.txt": Reply(body=RULES)}
    server = serve(Routes(answers))  # type: ignore[arg-type]  # answers by target
    board = Switchboard({"a.test": [PUBLIC]}, {PUBLIC: server})
    clock = ManualClock()

    async with RobotsChecker(client=board.transport(), clock=clock) as checker:
        assert await checker.can_fetch("ExampleBot", "http://a.test/")
        answers["/robots.txt"] = redirect("http://10.0.0.1/")
        clock.advance(25 * 3_600)

        assert not await checker.can_fetch("ExampleBot", "http://a.test/")


# --- a client or a transport of the caller ------------------------------------------


def site(request: httpx.Request) -> httpx.Response:
    if request.url.host in {"a.test", "10.9.9.9"}:
        return httpx.Response(302, headers={"Location": "http://10.0.0.1/"})
    return httpx.Response(200, content=RULES)


@pytest.mark.parametrize("is_client", [True, False])
async def test_number_that_a_redirect_names_is_refused_before_a_foreign_client_dials(
    *, is_client: bool
) -> None:
    transport = httpx.MockTransport(site)
    client = httpx.AsyncClient(transport=transport) if is_client else transport

    outcome = await fetched("http://a.test", client=client)
    inside = await fetched("http://10.9.9.9", client=client)

    assert isinstance(outcome, Failed)
    assert outcome.kind is FailureKind.ADDRESS_REFUSED
    assert inside == Answered(status=200, body=RULES, redirects=1)


async def test_checker_says_once_that_it_cannot_see_what_a_client_dials(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = httpx.AsyncClient(transport=httpx.MockTransport(site))

    with caplog.at_level(logging.WARNING, "robotsgate.fetching"):
        async with RobotsChecker(client=client) as checker:
            await checker.prefetch(["http://a.test", "http://b.test"])

    assert len(caplog.records) == 1
    assert "cannot see which addresses your client dials" in caplog.messages[0]
    assert "AddressGuard.OFF" in caplog.messages[0]


async def test_checker_says_nothing_where_the_guard_is_off_or_sees_all(
    caplog: pytest.LogCaptureFixture, serve: Serve
) -> None:
    server = serve(Reply(body=RULES))

    with caplog.at_level(logging.WARNING, "robotsgate.fetching"):
        async with httpx.AsyncClient() as client:
            policy = Policy(address_guard=AddressGuard.OFF)
            await fetched(server.url, client=client, policy=policy)
        await fetched("http://a.test", client=FakeSite())
        await fetched("http://a.test", client=httpx.MockTransport(site))
        await fetched(server.url)

    assert caplog.records == []


async def test_full_pool_of_the_caller_is_not_blamed_on_the_origin() -> None:
    site, clock = FakeSite(), ManualClock()
    url = "http://a.test/"
    site.serve(url, RULES)

    async with RobotsChecker(client=site, clock=clock) as checker:
        assert await checker.can_fetch("ExampleBot", url)
        site.fail(url, httpx.PoolTimeout("no connection"))
        clock.advance(25 * 3_600)
        verdict = await checker.check("ExampleBot", url)
        cold = await fetched(url, client=site)
        clock.advance(40 * 86_400)
        late = await checker.check("ExampleBot", url)
        site.serve(url, b"User-agent: *\nDisallow: /")
        clock.advance(70)

        assert not await checker.can_fetch("ExampleBot", url)
    assert verdict.allowed
    assert verdict.is_stale
    assert isinstance(cold, Failed)
    assert cold.kind is FailureKind.POOL
    assert not late.allowed


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (Policy(address_guard=AddressGuard.OFF), PUBLIC_ONLY),
        (Policy(), PUBLIC_ONLY),
        (PUBLIC_ONLY, Policy(address_guard=AddressGuard.OFF)),
        (Policy(allowed_networks=["10.0.0.0/8"]), Policy()),
    ],
    ids=["off, strict", "usual, strict", "strict, off", "with a network, without"],
)
async def test_entry_of_another_guard_is_not_used(
    serve: Serve, first: Policy, second: Policy
) -> None:
    """Neither what a laxer one has fetched nor what a stricter one has refused."""
    server, store = serve(Reply(body=RULES)), MemoryStore()
    board = Switchboard({}, {PRIVATE: server})
    url = f"http://{PRIVATE}/page"
    answers = []

    for policy in (first, second, first):
        checker = RobotsChecker(client=board.transport(), store=store, policy=policy)
        async with checker:
            answers.append(await checker.can_fetch("ExampleBot", url))

    expected = [policy != PUBLIC_ONLY for policy in (first, second, first)]
    assert answers == expected


async def test_missing_authorities_are_a_mistake_and_no_failure_of_an_origin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    board = Switchboard({"a.test": [PUBLIC]}, {})

    async with RobotsChecker(client=board.transport()) as checker:
        with pytest.raises(RuntimeError, match="expected certificate authorities"):
            await checker.can_fetch("ExampleBot", "https://a.test/")
