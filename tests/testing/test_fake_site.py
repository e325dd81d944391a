from __future__ import annotations

import gzip
import math
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import httpx2
import pytest

from robotsgate import RobotsChecker
from robotsgate.testing import FakeSite, ManualClock
from tests.checking.builders import (
    AGENT,
    ORIGIN,
    OTHER_ORIGIN,
    PRIVATE,
    PUBLIC,
    ROBOTS_TXT,
    RULES,
)
from tests.tables import cases

if TYPE_CHECKING:
    from types import ModuleType

pytestmark = pytest.mark.anyio


async def response_of(site: FakeSite, url: str) -> httpx.Response:
    """The response that an httpx client gets from the site."""
    async with httpx.AsyncClient(transport=site) as client:
        return await client.get(url)


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
@pytest.mark.parametrize(
    ("body", "sent"), [("caf\u00e9", b"caf\xc3\xa9"), (b"\xff\x00", b"\xff\x00")]
)
async def test_site_sends_the_response_it_was_given(
    library: ModuleType, body: bytes | str, sent: bytes
) -> None:
    site = FakeSite()
    site.serve(ORIGIN, body, status=203, headers={"Cache-Control": "max-age=60"})

    async with library.AsyncClient(transport=site) as client:
        response = await client.get(ROBOTS_TXT)

    assert (response.status_code, response.content) == (203, sent)
    assert response.headers["cache-control"] == "max-age=60"


@pytest.mark.parametrize(("served", "requested"), [
    ("https://example.com", "https://example.com/robots.txt"),
    ("https://EXAMPLE.com:443/robots.txt#f", "https://example.com/robots.txt"),
    ("https://b\u00fccher.example", "https://xn--bcher-kva.example/robots.txt"),
    ("http://snake_case.example", "http://snake_case.example/robots.txt"),
    ("http://semi;colon", "http://semi;colon/robots.txt"),
])  # fmt: skip
async def test_site_answers_a_checker_for_any_spelling_of_an_origin(
    served: str, requested: str
) -> None:
    site = FakeSite()
    site.serve(served, "User-agent: *\nDisallow: /\n")
    checker = RobotsChecker(client=site, clock=ManualClock())

    allowed = await checker.can_fetch(AGENT, f"{requested}/page")

    assert allowed is False
    assert site.requests == [requested]


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
@pytest.mark.parametrize(("served", "requested"), [
    ("https://example.com", "https://example.com/"),
    ("https://example.com/", "https://example.com#top"),
    ("https://EXAMPLE.com:443/a#f", "https://user:word@example.com/a"),
    ("https://b\u00fccher.example/\u00fc?q=1", "https://b\u00fccher.example/%C3%BC?q=1"),
    ("http://[::1]:8080/a", "http://[::1]:8080/a#f"),
])  # fmt: skip
async def test_site_serves_pages(
    library: ModuleType, served: str, requested: str
) -> None:
    site = FakeSite()
    site.serve_page(served, "caf\u00e9", status=203)

    async with library.AsyncClient(transport=site) as client:
        page = await client.get(requested)

    assert (page.status_code, page.content) == (203, b"caf\xc3\xa9")


@cases("body arguments content_type", {
    "text": ("<p>", {}, "text/html; charset=utf-8"),
    "text with headers":
        ("<p>", {"headers": {"Age": "1"}}, "text/html; charset=utf-8"),
    "text with a different type":
        ("<p>", {"headers": {"Content-Type": "text/plain"}}, "text/plain"),
    "bytes": (b"<p>", {}, None),
    "a response": (httpx.Response(200, json={}), {}, "application/json"),
})  # fmt: skip
async def test_page_is_html_if_it_is_text(
    body: Any,  # noqa: ANN401 (anything that a page may be)
    arguments: dict[str, Any],
    content_type: str | None,
) -> None:
    site = FakeSite()
    site.serve_page(PUBLIC, body, **arguments)

    page = await response_of(site, PUBLIC)

    assert page.headers.get("content-type") == content_type


async def test_site_answers_404_for_urls_that_are_not_served() -> None:
    site = FakeSite()
    site.serve(ORIGIN, RULES)
    site.serve_page(PUBLIC, "page")
    urls = [f"{PUBLIC}?q", PRIVATE, "http://example.com/robots.txt", ROBOTS_TXT, PUBLIC]

    statuses = [(await response_of(site, url)).status_code for url in urls]

    assert statuses == [404, 404, 404, 200, 200]
    assert site.requests == urls


async def test_site_raises_the_given_error_until_told_otherwise() -> None:
    site = FakeSite()
    error = httpx.ConnectTimeout("too slow")
    site.fail(ORIGIN, error)

    for _ in range(2):
        with pytest.raises(httpx.ConnectTimeout) as caught:
            await response_of(site, ROBOTS_TXT)
        assert caught.value is error
    site.serve(ORIGIN, RULES)

    assert (await response_of(site, ROBOTS_TXT)).status_code == 200
    assert site.requests == [ROBOTS_TXT] * 3


async def test_site_lets_other_tasks_run_before_it_answers() -> None:
    site = FakeSite()
    events: list[str] = []

    async def request(name: str) -> None:
        events.append(f"{name} is sent")
        await response_of(site, ROBOTS_TXT)
        events.append(f"{name} is answered")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(request, "first")
        tasks.start_soon(request, "second")

    assert sorted(events[:2]) == ["first is sent", "second is sent"]


async def test_site_sends_its_answers_in_order_and_repeats_the_last() -> None:
    site = FakeSite()
    packed = gzip.compress(RULES.encode())
    answers = [
        httpx.Response(503, headers={"Retry-After": "7"}),
        httpx.ConnectError("refused"),
        httpx.Response(200, headers={"Content-Encoding": "gzip"}, content=packed),
    ]
    site.serve(ORIGIN, answers)

    first = await response_of(site, ROBOTS_TXT)
    with pytest.raises(httpx.ConnectError, match="refused"):
        await response_of(site, ROBOTS_TXT)
    last = [await response_of(site, ROBOTS_TXT) for _ in range(2)]

    assert (first.status_code, first.headers["retry-after"]) == (503, "7")
    assert [(each.status_code, each.text) for each in last] == [(200, RULES)] * 2
    assert len(answers) == 3


async def test_site_delays_each_answer_by_its_clock() -> None:
    clock = ManualClock()
    site = FakeSite(clock=clock)
    site.serve(ORIGIN, delay=5)
    site.fail(OTHER_ORIGIN, httpx.ReadTimeout("too slow"), delay=7)
    checker = RobotsChecker(client=site, clock=clock)
    answers: list[tuple[float, str | None]] = []

    async def check(url: str) -> None:
        verdict = await checker.check(AGENT, url)
        answers.append((clock.monotonic(), verdict.error))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(check, ORIGIN)
        tasks.start_soon(check, OTHER_ORIGIN)
        await clock.pass_time(10)

    assert answers == [(5, None), (7, "ReadTimeout: too slow")]


@cases("origin body arguments message", {
    "text in a list":
        (ORIGIN, ["User-agent: *"], {}, "responses or exceptions, got 'User-agent: .'"),
    "no responses": (ORIGIN, [], {}, r"at least one response, got \[\]"),
    "status together with a response":
        (ORIGIN, [httpx.Response(200)], {"status": 404}, "own status and headers"),
    "headers together with a response":
        (ORIGIN, httpx.Response(200), {"headers": {}}, "own status and headers"),
    "delay below 0":
        (ORIGIN, b"", {"delay": -1}, "delay to be 0 or more seconds, got -1"),
    "delay nan":
        (ORIGIN, b"", {"delay": math.nan}, "delay to be 0 or more seconds, got nan"),
    "a page": (PRIVATE, b"", {}, "expected an origin or .* the path '/private'"),
    "ftp": ("ftp://e.com", b"", {}, "http or https URL, got 'ftp://e.com'"),
    "not an origin": ("example.com", b"", {}, "expected an absolute URL"),
})  # fmt: skip
def test_serve_rejects_invalid_arguments(
    origin: str,
    body: Any,  # noqa: ANN401 (the caller's mistakes)
    arguments: dict[str, Any],
    message: str,
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        FakeSite().serve(origin, body, **arguments)


@pytest.mark.parametrize("url", ["/public", "example.com/public", "ftp://e.com/a"])
def test_serve_page_rejects_a_url_without_http(url: str) -> None:
    with pytest.raises(ValueError, match=r"an (absolute|http or https) URL"):
        FakeSite().serve_page(url)
