"""The server behind the tester page: answers, limits and headers."""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from itertools import count, repeat
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from robotsgate import RobotsChecker
from robotsgate.cli.tester import _answers, _app
from robotsgate.cli.tester._app import RateLimit, client_of, page_app
from robotsgate.testing import FakeSite, ManualClock
from tests.tables import cases

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

pytestmark = pytest.mark.anyio

_HEADERS = {"Content-Type": "application/json"}

_BODY = "User-agent: *\nDisallow: /p<\x1b\nDisalow: /\n"


@pytest.fixture
def anyio_backend() -> str:
    """uvicorn runs the app on asyncio."""
    return "asyncio"


@asynccontextmanager
async def _page(
    site: FakeSite | None = None,
    *,
    clock: ManualClock | None = None,
    own_name: str | None = None,
    addresses: Iterable[str] = repeat("198.51.100.1"),
) -> AsyncIterator[httpx.AsyncClient]:
    clock = clock or ManualClock()
    async with RobotsChecker(client=site or FakeSite(), clock=clock) as checker:
        app = page_app(
            checker,
            monotonic=clock.monotonic,
            own_name=own_name,
        )
        client_addresses = iter(addresses)

        async def from_address(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 (ASGI)
            await app(scope | {"client": (next(client_addresses), 1)}, receive, send)

        transport = httpx.ASGITransport(from_address)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://tester"
        ) as client:
            yield client


def _query(**more: object) -> dict[str, Any]:
    return {"text": _BODY, "url": "", "agents": [], "paths": []} | more


async def test_page_has_no_inline_scripts_or_styles() -> None:
    async with _page() as client:
        response = await client.get("/")

    assert response.status_code == 200
    assert "<script>" not in response.text
    assert "style=" not in response.text


async def test_page_states_its_limits() -> None:
    async with _page() as client:
        page = (await client.get("/")).text

    for limit in (
        _answers._MOST_CHECKS,
        _answers._LONGEST_NAME,
        _answers._MOST_PASTED_LINES,
        _answers._MOST_LINES,
        _answers._MOST_FINDINGS,
        _app._FETCHES_AT_ONCE,
    ):
        assert f" {limit:,} " in page
    assert f"{_answers._MOST_PASTED_BYTES // 2**20} MiB" in page
    assert f"every {_app._SECONDS_EACH:.0f} seconds" in page


async def test_answer_for_a_pasted_file_has_lines_and_findings() -> None:
    body = "User-agent: *\nDisallow: /p<\x1b\nNoindex: /\n"
    paths = ["/p<\x1b/a", "/q", "/robots.txt", "p<\x1b", "q?u=http://h", "http://"]

    async with _page() as client:
        query = json.dumps(_query(text=body, paths=paths))
        response = await client.post("/answers", content=query, headers=_HEADERS)
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


async def test_url_pasted_as_a_file_is_an_answer_without_a_warning() -> None:
    async with _page() as client:
        response = await client.post("/answers", json=_query(text="http://h/"))

    assert response.json()["lines"] == [{"number": 1, "text": "http://h/"}]


async def test_each_agent_has_its_own_answer_and_reason() -> None:
    text = "User-agent: a\nDisallow: /x\n"
    query = _query(text=text, agents=["a", "b"], paths=["/x", "/y"])

    async with _page() as client:
        content = (await client.post("/answers", json=query)).json()

    assert [one["reason"] for one in content["answers"][:2]] == [
        "by line 2 (Disallow: /x, for a)",
        "the file has no group for this agent",
    ]
    assert content["answers"][2]["reason"] == "none of the rules for a match"


async def test_dialects_that_disagree_are_named() -> None:
    text = "User-agent: *\nDisalow: /x\n"
    query = _query(text=text, agents=["a", "Mozilla/5.0"], paths=["/x", "/y"])

    async with _page() as client:
        content = (await client.post("/answers", json=query)).json()

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


async def test_only_the_first_of_many_lines_and_findings_are_sent() -> None:
    """A 512 KB file used to get a 28 MB response."""
    async with _page() as client:
        query = _query(text="x\n" * 5_002)
        content = (await client.post("/answers", json=query)).json()

    assert (len(content["lines"]), content["more_lines"]) == (5_000, 2)
    assert (len(content["findings"]), content["more_findings"]) == (1_000, 4_002)


async def test_reason_for_a_long_rule_is_cut_off() -> None:
    query = _query(text=f"User-agent: *\nDisallow: /{'*' * 400_000}", paths=["/"] * 50)

    async with _page() as client:
        content = (await client.post("/answers", json=query)).json()

    assert {len(one["reason"]) for one in content["answers"]} == {2_000}


async def test_answer_for_a_fetched_file_names_its_source() -> None:
    site = FakeSite()
    site.serve("http://h", _BODY)
    paths = ["/p<%1b", "p?u=http://h", "http://h/q", "http://other/", "gopher://h/"]
    query = _query(text=None, url="http://h/some/page", paths=paths)

    async with _page(site) as client:
        content = (await client.post("/answers", json=query)).json()

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
    "https returns an error": ({"https": 503, "http": 200}, "https://h/robots.txt",
                           "unreachable"),
    "only http responds": ({"http": 200}, "http://h/robots.txt", "successful"),
    "neither responds": ({}, "https://h/robots.txt", "unreachable"),
})  # fmt: skip
@pytest.mark.parametrize("site_url", ["h", "h/?u=http://other"])
async def test_site_without_a_scheme_uses_https_unless_only_http_responds(
    statuses: dict[str, int], url: str, access: str, site_url: str
) -> None:
    site = FakeSite()
    for scheme in ("https", "http"):
        if scheme in statuses:
            site.serve(f"{scheme}://h", _BODY, status=statuses[scheme])
        else:
            site.fail(f"{scheme}://h", httpx.ConnectError("refused"))

    async with _page(site) as client:
        query = _query(text=None, url=site_url, paths=["/"])
        content = (await client.post("/answers", json=query)).json()

    assert (content["source"]["url"], content["source"]["access"]) == (url, access)


async def test_site_without_a_file_has_no_lines() -> None:
    site = FakeSite()
    site.serve("http://h", status=404)

    async with _page(site) as client:
        query = _query(text=None, url="http://h/", paths=["/"])
        content = (await client.post("/answers", json=query)).json()

    assert (content["lines"], content["source"]["access"]) == ([], "unavailable")
    assert content["answers"][0]["allowed"] is True


async def test_fetches_per_client_are_limited() -> None:
    clock = ManualClock()

    async def post(client: httpx.AsyncClient, number: int) -> int:
        query = _query(text=None, url=f"http://h{number}/")
        return (await client.post("/answers", json=query)).status_code

    same_network = (f"2001:db8::{number:x}" for number in count(1))
    async with _page(clock=clock, addresses=same_network) as client:
        statuses = [await post(client, number) for number in range(21)]
        cached = await post(client, 0)
        clock.advance(3)
        later = await post(client, 20)

    assert statuses == [200] * 20 + [429]
    assert (cached, later) == (200, 200)


async def test_site_that_needs_a_second_attempt_counts_as_one_fetch() -> None:
    site = FakeSite()
    for number in range(21):
        site.fail(f"https://h{number}", httpx.ConnectError("refused"))

    async with _page(site) as client:
        queries = [_query(text=None, url=f"h{number}") for number in range(21)]
        responses = [await client.post("/answers", json=one) for one in queries]

    assert [one.status_code for one in responses] == [200] * 20 + [429]


@cases("one other", {
    "two IPv6 networks": ("2001:db8::1", "2001:db8:0:1::1"),
    "two IPv4 addresses": ("198.51.100.1", "198.51.100.2"),
    "two IPv4-mapped addresses": ("::ffff:198.51.100.1", "::ffff:198.51.100.2"),
    "an address and no address": ("198.51.100.1", ""),
})  # fmt: skip
def test_different_networks_count_as_different_clients(one: str, other: str) -> None:
    assert client_of(one) != client_of(other)


def test_each_client_has_its_own_bucket_that_refills() -> None:
    limit = RateLimit(burst=2, seconds_each=10)

    taken = [limit.take("a", now) for now in (0, 0, 0, 9, 10, 11)]

    assert taken == [True, True, False, False, True, False]
    assert limit.take("b", 0)
    assert [limit.take("a", 99) for _ in range(3)] == [True, True, False]


@cases("content message", {
    "invalid JSON": (b"{", "expected JSON"),
    "deeply nested JSON": (b"[" * 100_000, "expected JSON"),
    "other JSON": (b"[]", "expected text, url, agents and paths"),
    "a long path": (b'{"text":"","url":"","agents":[],"paths":["%s"]}' % (b"x" * 2_001),
                    "all but the text are limited to 2000"),
    "too many checks": (b'{"text":"","url":"","agents":[],"paths":[%s]}'
                           % b",".join([b'""'] * 51), "expected at most 50 checks"),
    "too many lines": (b'{"text":"%s","url":"","agents":[],"paths":[]}'
                       % (b"\\n" * 50_001), "expected at most 50000 lines, got 50001"),
    "too many bytes of text": (
        b'{"text":"%s","url":"","agents":[],"paths":[]}'
        % ("\u00fc" * (2**19 + 1)).encode(),
        "expected at most 1048576 bytes of text, got 1048578"),
    "too many bytes of JSON": (b"[" + b" " * 2**22 + b"]",
                               "expected at most 4194304 bytes of JSON"),
    "an invalid URL": (b'{"text":null,"url":"/x","agents":[],"paths":[]}',
                       "expected a host"),
})  # fmt: skip
async def test_query_that_the_page_would_not_send_is_an_error(
    content: bytes, message: str
) -> None:
    async with _page() as client:
        response = await client.post("/answers", content=content, headers=_HEADERS)

    assert response.status_code == 400
    assert message in response.json()["error"]


@cases("text", {
    "quotes": ('"' * 2**20,),
    "half of a surrogate pair": ("\ud800",),
})  # fmt: skip
async def test_text_within_the_limit_is_accepted_despite_its_json_escapes(
    text: str,
) -> None:
    query = json.dumps(_query(text=text))

    async with _page() as client:
        response = await client.post("/answers", content=query, headers=_HEADERS)

    assert response.status_code == 200


async def test_form_from_another_site_is_refused() -> None:
    async with _page() as client:
        response = await client.post("/answers", data={"text": "x"})

    assert response.status_code == 415


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("tester:8000", 200),
        ("localhost:8000", 200),
        ("127.0.0.1:8000", 200),
        ("[::1]:8000", 200),
        ("evil.example", 403),
    ],
)
async def test_page_with_a_name_refuses_other_host_names(
    host: str, status: int
) -> None:
    """A hostile page could point its own name at this machine and send requests."""
    async with _page(own_name="tester") as client:
        response = await client.post("/answers", json=_query(), headers={"Host": host})

    assert response.status_code == status
